"""An invalid argument of read or write is refused by its name, before Spark is asked anything."""

from __future__ import annotations

from typing import Any, cast

import pytest

import delta_pyds
from delta_pyds.errors import OptionError

NOBODY = cast(Any, None)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("engine", None), ("engine", "fast"), ("engine", 1),
        ("where", 5), ("where", b"id = 1"), ("where", True), ("where", "\ud800"),
        ("columns", 5), ("columns", b"id"), ("columns", [1]), ("columns", [None]), ("columns", {"id": 1}),
        ("version", "1"), ("version", True), ("version", -1), ("version", 1.5),
        ("timestamp", 5), ("timestamp", b"2024"), ("time_zone", 1), ("time_zone", b"UTC"),
        ("row_position", "yes"), ("row_position", None), ("row_ids", 1),
        ("min_partitions", 0), ("min_partitions", True), ("min_partitions", "4"),
        ("storage_options", "{}"), ("storage_options", [1]), ("storage_options", {"key": b"x"}),
        ("storage_options", {"key": {1}}), ("storage_options", {b"k": 1}),
    ],
)  # fmt: skip
def test_of_a_read(argument: str, value: Any) -> None:
    with pytest.raises(OptionError, match=argument):
        delta_pyds.read(NOBODY, "/t", **{argument: value})


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("mode", None), ("mode", True), ("mode", "upsert"),
        ("partition_by", 5), ("partition_by", [None]), ("partition_by", b"p"), ("cluster_by", {"a": 1}),
        ("replace_where", 1), ("partition_overwrite", True), ("merge_schema", "true"), ("overwrite_schema", 1),
        ("user_metadata", b"x"), ("user_metadata", {"a": 1}), ("user_metadata", "\udfff"),
        ("txn", "app"), ("txn", ("app",)), ("txn", ("app", "1")), ("txn", (None, 1.5)), ("txn", (b"a", 1)),
        ("properties", ["delta.appendOnly"]), ("properties", {"delta.appendOnly": None}),
        ("properties", {"delta.appendOnly": b"true"}), ("properties", {5: "x"}),
        ("options", "mergeSchema"), ("options", {"mergeSchema": None}), ("options", {"compression": object()}),
        ("options", {None: "x"}), ("storage_options", {"secret": b"x"}),
        ("df", None), ("df", [1, 2]), ("df", "rows"),
    ],
)  # fmt: skip
def test_of_a_write(argument: str, value: Any) -> None:
    arguments = {"df": None, argument: value}
    rows = arguments.pop("df")
    with pytest.raises(OptionError, match="cannot be written" if argument == "df" else argument):
        delta_pyds.write(rows, "/t", **arguments)


def test_secrets_are_not_shown() -> None:
    with pytest.raises(OptionError) as error:
        delta_pyds.read(NOBODY, "/t", storage_options={"secret": "hush", "x": b"hush"})
    assert "hush" not in str(error.value)


def test_what_is_no_session_is_told_so() -> None:
    for call in (lambda: delta_pyds.register(NOBODY), lambda: delta_pyds.read(NOBODY, "/t")):
        with pytest.raises(OptionError, match="NoneType, but must be a SparkSession"):
            call()
