"""Checks of the arguments of ``DeltaTable`` and its builders. Each error has the class that the reference raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame

ExpressionOrColumn = str | Column
ColumnMapping = Mapping[str, ExpressionOrColumn]


def expression(value: Any, name: str = "'condition'") -> Column | str:
    """Raises: TypeError for a value that is neither a Column nor SQL text."""
    if isinstance(value, (Column, str)):
        return value
    raise TypeError(f"{name} must be a Spark SQL Column or a string (an expression in SQL), but is a {type(value)}.")


def optional_condition(value: Any) -> Column | str | None:
    return None if value is None else expression(value, "'condition'")


def assignments(value: Any, name: str) -> dict[str, Column | str]:
    """Column names to new values, in the order given.

    Raises: ValueError for None; TypeError for a value that is not a dict, and for invalid keys and values.
    """
    if value is None:
        raise ValueError(f"{name} cannot be None.")
    if not isinstance(value, dict):
        raise TypeError(f"{name} must be a dict, but is a {type(value)}.")
    for column, new in value.items():
        if not isinstance(column, str):
            raise TypeError(
                f"Keys of dict in {name} must contain only strings with column names, but {column!r:.200} is a "
                f"{type(column)}."
            )
        if not isinstance(new, (Column, str)):
            raise TypeError(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings (expressions in SQL syntax), "
                f"but {new!r:.200} is a {type(new)}."
            )
    return dict(value)


def source_frame(value: Any) -> DataFrame:
    """Raises: ValueError for None, TypeError for a value that is not a DataFrame."""
    if value is None:
        raise ValueError("'source' in merge cannot be None.")
    if not isinstance(value, DataFrame):
        raise TypeError(f"Type of 'source' in merge must be DataFrame, but is {type(value)}.")
    return value


def merge_condition(value: Any) -> Column | str:
    """Raises: ValueError for None, TypeError for a value that is neither a Column nor SQL text."""
    if value is None:
        raise ValueError("'condition' in merge cannot be None.")
    return expression(value)


def row_limit(value: Any) -> int | None:
    """The number of versions to show; a number below 1 shows none. Raises: TypeError for a value that is not an int."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"'limit' in history must be an int, but is a {type(value)}.")
    return max(value, 0)


def whole_number(value: Any, name: str) -> None:
    """Raises: ValueError, as the reference does for a wrong type."""
    _of_type(value, int, name, "an int")


def text(value: Any, name: str) -> None:
    """Raises: ValueError, as the reference does for a wrong type."""
    _of_type(value, str, name, "a string")


def flag(value: Any, name: str) -> None:
    """Raises: ValueError, as the reference does for a wrong type."""
    _of_type(value, bool, name, "a boolean")


def column_names(given: tuple[Any, ...], what: str) -> list[str]:
    """Names that are given one by one, or as one list. Raises: TypeError for a name that is not a str."""
    names = given[0] if len(given) == 1 and isinstance(given[0], (list, tuple)) else given
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{what} must be str, but {name!r:.200} is a {type(name)}.")
    return list(names)


def properties(value: Any) -> dict[str, str]:
    """Table properties. Raises: ValueError for anything but a dict of texts."""
    _of_type(value, dict, "properties", "a dict")
    for name, text_of in value.items():
        text(name, f"the key {name!r:.200} of properties")
        text(text_of, f"the value of {name!r:.200} in properties")
    return dict(value)


def _of_type(value: Any, wanted: type, name: str, words: str) -> None:
    if not isinstance(value, wanted):
        raise ValueError(f"{name} needs to be {words} but got '{type(value)}'.")
