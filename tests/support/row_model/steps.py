"""Steps that change a table, drawn: what each asks for, and its text for an engine that speaks SQL.

A table has the columns ``k`` (bigint), ``n`` (int), ``s``, ``p`` (string; the partition column where there is one), and
``z0``, ``z1`` ... (bigint), which steps add. Rows are drawn with a value ``z``, which every column of that name gets.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from tests.support.row_model.expressions import (
    PARTITIONS,
    TEXTS,
    Column,
    Expression,
    call,
    conditions,
    numbers,
    texts,
)
from tests.support.row_model.expressions import Literal as Constant

BASE = {"k": "long", "n": "integer", "s": "string", "p": "string"}
SQL_TYPES = {"long": "BIGINT", "integer": "INT", "string": "STRING"}
CONSTRAINT = "n IS NULL OR n <> 7"

Rows = tuple[Mapping[str, Any], ...]
Assignments = tuple[tuple[str, Expression], ...]


def type_of(column: str) -> str:
    """By its name: the columns that steps add are numbers."""
    return BASE.get(column, "long")


def schema_of(columns: Sequence[str]) -> dict[str, str]:
    return {name: type_of(name) for name in columns}


def with_columns(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Drawn rows as rows with these columns."""
    return [{name: row["z" if name.startswith("z") else name] for name in columns} for row in rows]


@dataclass(frozen=True)
class Layout:
    """A kind of table."""

    deletion_vectors: bool = False
    change_feed: bool = False
    mapped: bool = False
    row_tracking: bool = False
    partitioned: bool = False
    constrained: bool = False
    v2_checkpoints: bool = False
    # by steps alone: no table begins so. The feature stays supported, and then the reference takes no ZORDER BY.
    clustered: bool = False
    clustering: bool = False
    # whether the feature of row ids is supported, and how often it was dropped
    ids: bool = False
    ids_dropped: int = 0

    @property
    def properties(self) -> dict[str, str]:
        """Those that the table is created with."""
        given = {
            "delta.enableDeletionVectors": self.deletion_vectors and "true",
            "delta.enableChangeDataFeed": self.change_feed and "true",
            "delta.columnMapping.mode": self.mapped and "name",
            "delta.enableRowTracking": self.row_tracking and "true",
            "delta.checkpointPolicy": self.v2_checkpoints and "v2",
            "delta.constraints.never_seven": self.constrained and CONSTRAINT,
        }
        return {key: value for key, value in given.items() if value}


LAYOUTS = st.builds(
    Layout, *(st.booleans() for _ in ("dv", "cdf", "mapped", "tracking", "partitioned", "constrained")), st.just(False)
)


@dataclass(frozen=True)
class Append:
    """Each inner tuple is a task. ``new_column``: the rows have one more column than the table (mergeSchema)."""

    tasks: tuple[Rows, ...]
    new_column: bool = False


@dataclass(frozen=True)
class Overwrite:
    """All rows are replaced; with ``where`` those that it selects; with ``dynamic`` those of the written partitions."""

    tasks: tuple[Rows, ...]
    where: Expression | None = None
    dynamic: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """The arguments of the write."""
        if self.where is not None:
            return {"mode": "overwrite", "replace_where": self.where.sql()}
        return {"mode": "overwrite", **({"partition_overwrite": "dynamic"} if self.dynamic else {})}


@dataclass(frozen=True)
class Checkpoint:
    """The rows stay."""


@dataclass(frozen=True)
class Delete:
    condition: Expression | None

    def sql(self, table: str) -> str:
        return f"DELETE FROM {table}{_where(self.condition)}"


@dataclass(frozen=True)
class Update:
    condition: Expression | None
    assignments: Assignments

    def sql(self, table: str) -> str:
        return f"UPDATE {table} SET {_set(self.assignments)}{_where(self.condition)}"


@dataclass(frozen=True)
class Clause:
    """``assignments``: None is ``*``. Of an insert they are columns and values."""

    action: Literal["update", "delete", "insert"]
    condition: Expression | None = None
    assignments: Assignments | None = None

    def sql(self) -> str:
        given = f" AND {self.condition.sql()}" if self.condition is not None else ""
        if self.action == "delete":
            return f"{given} THEN DELETE"
        if self.action == "update":
            return f"{given} THEN UPDATE SET {'*' if self.assignments is None else _set(self.assignments)}"
        if self.assignments is None:
            return f"{given} THEN INSERT *"
        columns, values = ", ".join(c for c, _ in self.assignments), ", ".join(v.sql() for _, v in self.assignments)
        return f"{given} THEN INSERT ({columns}) VALUES ({values})"


@dataclass(frozen=True)
class Merge:
    """``evolve``: with schema evolution. ``new_column``: the source has one more column than the table.
    ``narrow``: it has no column ``s``, which only evolution allows beside ``*``.
    """

    rows: Rows
    condition: Expression
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    not_matched_by_source: tuple[Clause, ...] = ()
    evolve: bool = False
    new_column: bool = False
    narrow: bool = False

    def source_columns(self, columns: Sequence[str]) -> list[str]:
        """Those of the source, where the table has ``columns``."""
        found = [name for name in columns if not (self.narrow and name == "s")]
        return [*found, next_column(columns)] if self.new_column else found

    @property
    def has_star(self) -> bool:
        """Whether some clause takes all columns."""
        return any(c.assignments is None and c.action != "delete" for c in (*self.matched, *self.not_matched))

    def sql(self, table: str, source: str) -> str:
        parts = [
            f"MERGE {'WITH SCHEMA EVOLUTION ' if self.evolve else ''}INTO {table} t",
            f"USING {source} s ON {self.condition.sql()}",
            *(f"WHEN MATCHED{c.sql()}" for c in self.matched),
            *(f"WHEN NOT MATCHED{c.sql()}" for c in self.not_matched),
            *(f"WHEN NOT MATCHED BY SOURCE{c.sql()}" for c in self.not_matched_by_source),
        ]
        return " ".join(parts)


class Upkeep:
    """A step that lays rows out again, cleans up, goes back, or alters what the table is: see ``upkeep``."""

    def effect(self, model: Any) -> Any:
        """The ``Effect`` on a ``Model``."""
        raise NotImplementedError


Step = Append | Overwrite | Checkpoint | Delete | Update | Merge | Upkeep


def next_column(columns: Sequence[str]) -> str:
    """The column that a step adds to a table with these: the first number that is free, so old names come again."""
    return next(name for name in (f"z{i}" for i in range(len(columns))) if name not in columns)


def _where(condition: Expression | None) -> str:
    return "" if condition is None else f" WHERE {condition.sql()}"


def _set(assignments: Assignments) -> str:
    return ", ".join(f"{name} = {value.sql()}" for name, value in assignments)


# --- drawing

KEYS = st.one_of(st.none(), *[st.integers(0, 25)] * 6)
ROW = st.fixed_dictionaries(
    {
        "k": KEYS,
        "n": st.sampled_from([None, -3, -1, 0, 1, 2, 3, 4, 5, 6, 8, 6]),
        "s": st.sampled_from([None, *TEXTS]),
        "p": st.sampled_from([None, *PARTITIONS]),
        "z": st.sampled_from([None, 0, 1, 2]),
    }
)
ROWS = st.lists(ROW, max_size=6).map(tuple)
TASKS = st.lists(ROWS, min_size=1, max_size=3).map(tuple)
# of a source few keys are there twice, because most such merges are refused
SOURCES = st.one_of(ROWS, *[st.lists(ROW, max_size=7, unique_by=lambda r: str(r["k"])).map(tuple)] * 4)


@functools.cache
def _value(column: str, *relations: str | None) -> st.SearchStrategy[Expression]:
    if type_of(column) == "string":
        return st.one_of(texts(*relations), st.just(Constant(None)))
    return st.one_of(numbers(*relations), st.just(Constant(None)), st.integers(0, 9).map(Constant))


@st.composite
def assignments(draw: st.DrawFn, *relations: str | None, every: bool = False) -> Assignments:
    """At least one column, each once; ``every``: all columns that a table always has."""
    names = list(BASE) if every else draw(st.lists(st.sampled_from(list(BASE)), min_size=1, max_size=2, unique=True))
    return tuple((name, draw(_value(name, *relations))) for name in names)


@st.composite
def _clauses(
    draw: st.DrawFn, actions: Sequence[Literal["update", "delete", "insert"]], star: bool, *relations: str | None
) -> tuple[Clause, ...]:
    """Some clauses of one kind; only the last may have no condition."""
    found: list[Clause] = []
    for _ in range(draw(st.integers(0, 2))):
        action = draw(st.sampled_from(list(actions)))
        given: Assignments | None = None
        if action != "delete" and not (star and draw(st.booleans())):
            given = draw(assignments(*relations, every=action == "insert" and draw(st.booleans())))
        found.append(Clause(action, draw(conditions(*relations)), given))
    if found and draw(st.booleans()):
        last = found.pop()
        found.append(Clause(last.action, None, last.assignments))
    return tuple(found)


_T, _S = "t", "s"
_BY_KEY = call("({0} = {1})", Column("k", _T), Column("k", _S))
_BY_PARTITION = call("({0} = {1})", Column("p", _T), Column("p", _S))
# pairs of rows that meet by equal values, and any others
EQUAL = st.one_of(
    *[st.just(_BY_KEY)] * 4,
    st.just(call("({0} AND {1})", _BY_KEY, _BY_PARTITION)),
    st.just(call("({0} <=> {1})", Column("k", _T), Column("k", _S))),
    st.just(call("({0} = {1})", Column("n", _T), Column("n", _S))),
    st.just(call("({0} AND {1})", _BY_KEY, call("({0} > {1})", Column("n", _T), Column("n", _S)))),
    st.builds(lambda c: call("({0} AND {1})", _BY_KEY, c), conditions(_T)),
    st.builds(lambda c: call("({0} AND {1})", _BY_KEY, c), conditions(_S)),
)
ON = st.one_of(
    EQUAL,
    EQUAL,
    st.just(call("({0} OR {1})", _BY_KEY, call("({0} = {1})", Column("n", _T), Column("n", _S)))),
    st.just(call("({0} > {1})", Column("k", _T), call("({0} + {1})", Column("k", _S), Constant(20)))),
    st.just(call("({0} = {1})", Constant(1), Constant(0))),
)


@st.composite
def merges(draw: st.DrawFn, in_process: bool = False) -> Merge:
    """``in_process``: only those that our own evaluator knows."""
    matched = draw(_clauses(("update", "delete"), True, _T, _S))
    not_matched = draw(_clauses(("insert",), True, _S))
    by_source = draw(st.one_of(st.just(()), _clauses(("update", "delete"), False, _T)))
    if not (matched or not_matched or by_source):
        matched, not_matched = (Clause("update"),), (Clause("insert"),)
    evolve = not in_process and draw(st.sampled_from([False, False, True]))
    return Merge(
        draw(SOURCES),
        draw(EQUAL if in_process else ON),
        matched,
        not_matched,
        by_source,
        evolve,
        new_column=evolve and draw(st.booleans()),
        narrow=evolve and draw(st.booleans()),
    )


_CONDITION = st.one_of(conditions(None), conditions(None), conditions(None), st.none())
DELETES: st.SearchStrategy[Step] = st.builds(Delete, _CONDITION)
UPDATES: st.SearchStrategy[Step] = st.builds(Update, _CONDITION, assignments(None))
MERGES: st.SearchStrategy[Step] = merges()
MERGES_IN_PROCESS: st.SearchStrategy[Step] = merges(in_process=True)
OTHERS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Append, TASKS, st.sampled_from([False, False, True])),
    st.builds(Overwrite, TASKS),
    st.builds(Overwrite, TASKS, conditions(None, plain=True)),
    st.builds(Checkpoint),
)
STEPS: st.SearchStrategy[Step] = st.one_of(DELETES, UPDATES, UPDATES, MERGES, MERGES, OTHERS)
