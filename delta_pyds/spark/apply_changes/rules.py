"""The arguments of ``apply_changes`` that say what a change means, checked without a session or a table.

Invariant: rules can be pickled if expressions are SQL text, because Spark Connect sends the function of a stream to its
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.arguments import flag_argument, names_argument
from delta_pyds.spark.row_changes.column_text import name_of
from delta_pyds.table.scan.column_selection import parse_column_list

# The names of Databricks' pipelines. A program of them finds the same columns.
START_COLUMN, END_COLUMN = "__START_AT", "__END_AT"
SEQUENCE_COLUMN, DELETED_COLUMN = "__SEQUENCE", "__DELETED"
OWN_COLUMNS = (SEQUENCE_COLUMN, DELETED_COLUMN, START_COLUMN, END_COLUMN)

Expression = Column | str
Names = str | Column | Sequence[str | Column]


@dataclass(frozen=True, eq=False)
class ChangeRules:
    """``columns``: those of the changes that the target gets; None for all. ``except_columns``: those left out.

    ``sequence_name``: the column that ``sequence_by`` names; None for an expression. ``history``: SCD 2.
    """

    keys: tuple[str, ...]
    sequence_by: Expression
    sequence_name: str | None
    delete_when: Expression | None
    tombstones: bool
    history: bool
    columns: tuple[str, ...] | None
    except_columns: tuple[str, ...]


def change_rules(
    *,
    keys: Any,
    sequence_by: Any,
    delete_when: Any,
    scd: Any,
    tombstones: Any,
    column_list: Any,
    except_column_list: Any,
    ignore_null_updates: Any,
    track_history_column_list: Any,
    track_history_except_column_list: Any,
) -> ChangeRules:
    """Raises: OptionError for an invalid argument, UnsupportedOperationError for one that is not supported."""
    _refuse_unsupported(ignore_null_updates, track_history_column_list, track_history_except_column_list)
    names = _names("keys", keys)
    if not names:
        raise OptionError("the argument keys names no column: give those that identify a row.", option="keys")
    if str(scd) not in ("1", "2") or isinstance(scd, bool):
        raise OptionError(f"the argument scd is {scd!r:.200}, but must be 1 or 2.", option="scd")
    history = str(scd) == "2"
    if not flag_argument("tombstones", tombstones) and history:
        raise OptionError(
            "tombstones=False is only for scd=1: with scd=2, __END_AT of the rows remembers deletes. Leave it out.",
            option="tombstones",
        )
    columns, excepted = _names("column_list", column_list), _names("except_column_list", except_column_list)
    if columns and excepted:
        raise OptionError("column_list and except_column_list are both given: give one of them.", option="column_list")
    sequence = _expression("sequence_by", sequence_by)
    if sequence is None:
        raise OptionError(
            "the argument sequence_by is missing: give the column or expression that orders the changes of a key.",
            option="sequence_by",
        )
    return ChangeRules(
        keys=names,
        sequence_by=sequence,
        sequence_name=name_of(sequence),
        delete_when=_expression("delete_when", delete_when),
        tombstones=tombstones,
        history=history,
        columns=columns or None,
        except_columns=excepted,
    )


def _refuse_unsupported(ignore_null_updates: Any, tracked: Any, untracked: Any) -> None:
    if flag_argument("ignore_null_updates", ignore_null_updates):
        raise UnsupportedOperationError(
            "ignore_null_updates is not supported: a partial change that comes late would need the sequence of each "
            "column, but the table has that of each row. Complete the changes first.",
            option="ignore_null_updates",
        )
    for name, value in (("track_history_column_list", tracked), ("track_history_except_column_list", untracked)):
        if value is not None:
            raise UnsupportedOperationError(
                f"{name} is not supported: two changes in one history row would lose the second sequence, and a late "
                "change between them could not be applied. Each change begins a row; combine equal rows in a query.",
                option=name,
            )


def _names(argument: str, value: Any) -> tuple[str, ...]:
    """The names of whole columns: text with commas, one Column, or a list of names and Columns.

    Raises: OptionError.
    """
    if isinstance(value, Column):
        value = [value]
    if isinstance(value, (list, tuple)):
        return tuple(dict.fromkeys(_name(argument, item) for item in value))
    given = names_argument(argument, value)
    if given is None or (isinstance(given, str) and not given.strip()):
        return ()
    if not isinstance(given, str):
        return tuple(dict.fromkeys(given))
    return tuple(dict.fromkeys(_whole(argument, path) for path in parse_column_list(given, argument)))


def _name(argument: str, item: Any) -> str:
    """In a list, a text is one whole name, even with dots and commas."""
    if not isinstance(item, Column):
        given = names_argument(argument, [item])
        assert isinstance(given, tuple)
        return given[0]
    name = name_of(item)
    if name is None:
        raise OptionError(
            f"the argument {argument} has {item!r:.200}, but must have names of columns: compute it in the changes.",
            option=argument,
        )
    return name


def _whole(argument: str, path: tuple[str, ...]) -> str:
    if len(path) > 1:
        raise OptionError(
            f"the argument {argument} has {'.'.join(path)!r:.200}, a nested field: make it a column of the changes.",
            option=argument,
        )
    return path[0]


def _expression(argument: str, value: Any) -> Expression | None:
    if value is None or isinstance(value, Column) or (isinstance(value, str) and value.strip()):
        return value
    raise OptionError(
        f"the argument {argument} is {value!r:.200}, but must be SQL text or a Column.",
        option=argument,
    )
