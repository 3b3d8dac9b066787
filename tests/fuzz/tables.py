"""Tables to damage: small, so that most of their bytes matter, and of every kind of file that a table can have.

Invariant: a table is the same, byte for byte, whenever and wherever it is made, but for the path of its root, so
that a seed and a number mean the same damage again.
"""

from __future__ import annotations

import datetime as dt
import functools
import random
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from tests.support.change_feed import cdc_file
from tests.support.delta_types import field
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class BaseTable:
    """A table to make, and what can be asked of it.

    ``make``: writes it at a path, and returns its rows where it knows them by itself. ``predicates``: for ``where``.
    ``versions``: earlier versions that can be read. ``changes``: whether it has a change feed.
    """

    name: str
    make: Callable[[Path], Rows | None]
    predicates: Sequence[str]
    versions: Sequence[int] = ()
    changes: bool = False


def build(table: BaseTable, root: Path) -> Rows | None:
    """Make the table at ``root``; its rows, where it knows them without reading."""
    names = random.Random(table.name)
    with ExitStack() as stack:
        stack.enter_context(mock.patch("uuid.uuid4", lambda: uuid.UUID(int=names.getrandbits(128), version=4)))
        # without them Parquet has no way to notice that a value was changed
        checked = functools.partial(pq.write_table, write_page_checksum=True)
        stack.enter_context(mock.patch.object(pq, "write_table", checked))
        return table.make(root)


def _days(count: int, **more: Any) -> Rows:
    return [{"id": i, "p": "abc"[i % 3], "d": dt.date(2024, 1, 1 + i % 2), **more} for i in range(count)]


def _commits(root: Path) -> Rows:
    t = TableBuilder(root, {"id": "long", "p": "string", "d": "date"}, ["p", "d"])
    t.create([{"txn": {"appId": "a", "version": 1}}])
    adds = t.append(_days(8))
    t.append([{"id": 100, "p": "a/b=ü %", "d": None}])
    t.commit([t.remove(adds[0]), t.write_file([{"id": 50}], {"p": "a", "d": "2024-01-01"})], operation="MERGE")
    t.checksum()
    return t.expected_rows()


_TYPES = {
    "l": "long", "i": "integer", "h": "short", "b": "byte", "f": "float", "g": "double", "t": "boolean",
    "s": "string", "x": "binary", "d": "date", "z": "timestamp", "n": "timestamp_ntz", "e": "decimal(9,2)",
    "k": "decimal(38,10)", "a": ["long"], "m": "map<string,long>", "r": {"x": "string", "y": {"z": "integer"}},
}  # fmt: skip


def _typed(i: int) -> dict[str, Any]:
    moment = dt.datetime(2024, 1, 1 + i, 12, 30, 1, 123456)
    return {
        "l": i, "i": -i, "h": i, "b": i, "f": i / 2, "g": -i / 4, "t": i % 2 == 0, "s": f"text {i}", "x": b"\x00\xff",
        "d": moment.date(), "z": moment.replace(tzinfo=dt.timezone.utc), "n": moment, "e": Decimal(i) / 4,
        "k": Decimal(i) / 8, "a": [i, None], "m": {"k": i}, "r": {"x": f"x{i}", "y": {"z": i}},
    }  # fmt: skip


def _types(root: Path) -> Rows:
    t = TableBuilder(root, _TYPES)
    t.create()
    t.append([_typed(i) for i in range(4)])
    t.append([_typed(i) for i in range(4, 6)] + [dict.fromkeys(_TYPES)], row_group_size=2)
    t.checkpoint(stats_struct=True)
    t.append([_typed(i) for i in range(6, 9)])
    t.checksum()
    return t.expected_rows()


def _multi_part(root: Path) -> Rows:
    t = TableBuilder(root, {"id": "long", "p": "string", "d": "date"}, ["p", "d"])
    t.create()
    adds = t.append(_days(9))
    t.checkpoint(kind="classic")
    t.commit([t.remove(adds[1])], operation="DELETE")
    t.checkpoint(kind="multipart", parts=3, stats_struct=True, stats_json=False, partition_values_struct=True)
    t.append([{"id": 77, "p": "c", "d": dt.date(2024, 3, 1)}])
    t.cleanup_log(2)
    return t.expected_rows()


def _v2(root: Path, kind: str) -> Rows:
    properties = {"delta.checkpointPolicy": "v2", "delta.enableDeletionVectors": "true"}
    t = TableBuilder(root, {"id": "long", "p": "string", "s": {"x": "string"}}, ["p"], properties)
    t.create([{"txn": {"appId": "a", "version": 1}}])
    adds = t.append([{"id": i, "p": "ab"[i % 2], "s": {"x": f"x{i}"}} for i in range(12)])
    t.delete(adds[0], [1, 2])
    t.checkpoint(kind=kind, sidecars=2, stats_struct=True, partition_values_struct=True)
    t.append([{"id": 40, "p": "b", "s": None}])
    t.checksum()
    t.cleanup_log(2)
    return t.expected_rows()


def _vectors(root: Path) -> Rows:
    t = TableBuilder(root, {"id": "long", "s": "string"}, properties={"delta.enableDeletionVectors": "true"})
    t.create()
    files = [t.append([{"id": n * 10 + i, "s": f"s{i}"} for i in range(8)])[0] for n in range(4)]
    pairs = t.delete_rows_of_many([(files[0], [0, 3]), (files[1], [7])], prefix="ab")
    t.commit([action for pair in pairs for action in pair], operation="DELETE")
    t.delete(files[2], [2, 4, 5], "i")
    t.delete(files[3], [0, 1, 2], "p")
    t.checksum()
    return t.expected_rows()


def _mapped(root: Path) -> Rows:
    properties = {"delta.columnMapping.mode": "name"}
    t = TableBuilder(root, {"id": "long", "p x": "string", "s": {"a b": "integer"}}, ["p x"], properties)
    t.create()
    t.append([{"id": i, "p x": "ab"[i % 2], "s": {"a b": i}} for i in range(8)])
    t.checkpoint(stats_struct=True, partition_values_struct=True)
    t.append([{"id": 20, "p x": None, "s": None}])
    return t.expected_rows()


def _changes(root: Path) -> Rows:
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    features = (["deletionVectors"], ["changeDataFeed"])
    t = TableBuilder(root, {"id": "long", "s": "string"}, properties=properties, features=features)
    t.create()
    [first] = t.append([{"id": i, "s": "old"} for i in range(6)])
    [second] = t.append([{"id": i, "s": "old"} for i in range(10, 14)])
    changed = t.write_file([{"id": i, "s": "new" if i == 2 else "old"} for i in range(6)])
    rows = [{"id": 2, "s": s, "_change_type": f"update_{k}image"} for s, k in (("old", "pre"), ("new", "post"))]
    t.commit([t.remove(first), changed, cdc_file(t, rows)], operation="UPDATE")
    t.delete(second, [0, 2])
    t.compact_log(1, 2)
    return t.expected_rows()


def _tracked(root: Path) -> Rows:
    properties = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row_id",
        "delta.rowTracking.materializedRowCommitVersionColumnName": "_row_version",
        "delta.enableInCommitTimestamps": "true",
    }
    t = TableBuilder(root, {"id": "long"}, properties=properties)
    t.create([_high_water_mark(-1)])
    for n in range(4):
        add = t.write_file([{"id": n * 10 + i} for i in range(3)], baseRowId=n * 3, defaultRowCommitVersion=n + 1)
        t.commit([add, _high_water_mark(n * 3 + 2)])
    t.compact_log(1, 3)
    t.compact_log(0, 2)
    for version in range(5):
        t.checksum(version, all_files=True)
    return t.expected_rows()


def _high_water_mark(last: int) -> dict[str, Any]:
    configuration = f'{{"rowIdHighWaterMark":{last}}}'
    return {"domainMetadata": {"domain": "delta.rowTracking", "configuration": configuration, "removed": False}}


def _checked(root: Path) -> Rows:
    """Expressions in the definition: ``verify`` evaluates them."""
    fields = [
        field("id", "long", False),
        field("half", "long", True, {"delta.generationExpression": "id % 2"}),
        field("short", "string", True, {"__CHAR_VARCHAR_TYPE_STRING": "varchar(8)"}),
    ]
    properties = {"delta.constraints.positive": "id >= 0", "delta.constraints.known": "short IN ('a', 'b') OR id > 3"}
    features = ([], ["generatedColumns", "checkConstraints"])
    t = TableBuilder(root, {"type": "struct", "fields": fields}, ["half"], properties, features=features)
    t.create()
    for n in range(3):
        t.append([{"id": n * 4 + i, "half": i % 2, "short": "ab"[i % 2]} for i in range(4)])
    t.checkpoint(version=1)
    return t.expected_rows()


def _written(root: Path, policy: str) -> None:
    """A table of our own writer, with the files that it adds by itself."""
    schema = {"id": "long", "p": "integer", "s": "string", "r": {"y": "double"}, "z": "timestamp"}
    properties = {
        "delta.checkpointPolicy": policy,
        "delta.checkpointInterval": "3",
        "delta.enableInCommitTimestamps": "true",
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.columnMapping.mode": "name",
    }
    for n in range(5):
        rows = [
            {
                "id": i,
                "p": i % 2,
                "s": f"s{i}",
                "r": {"y": i / 3},
                "z": dt.datetime(2024, 1, 1 + n, tzinfo=dt.timezone.utc),
            }
            for i in range(n * 6, n * 6 + 6)
        ]
        given: dict[str, Any] = {"partition_by": ["p"], "properties": properties} if n == 0 else {}
        write_rows(root, schema, rows, **given)


_BY_DAY = ("id > 4", "p = 'a'", "d = DATE'2024-01-01' AND id < 6")
_BY_PART = ("id < 5", "p = 'b'", "id > 8 OR p = 'a'")
_BY_ID = ("id < 12", "id >= 20 AND id < 24", "id IN (1, 11, 31)")

TABLES: Sequence[BaseTable] = (
    BaseTable("commits", _commits, _BY_DAY, (1, 2)),
    BaseTable("types", _types, ("l > 4", "s = 'text 2'", "d < DATE'2024-01-03'", "e > 1.2", "r.y.z = 3"), (1, 2)),
    BaseTable("multi-part", _multi_part, _BY_DAY),
    BaseTable("v2-json", functools.partial(_v2, kind="v2-json"), _BY_PART),
    BaseTable("v2-parquet", functools.partial(_v2, kind="v2-parquet"), _BY_PART),
    BaseTable("vectors", _vectors, _BY_ID, (4, 6)),
    BaseTable("mapped", _mapped, ("id < 5", "`p x` = 'a'", "s.`a b` > 3"), (1,)),
    BaseTable("changes", _changes, _BY_ID, (2, 3), changes=True),
    BaseTable("tracked", _tracked, _BY_ID, (2, 3)),
    BaseTable("checked", _checked, ("id > 5", "short = 'a'", "half = 1 AND id < 6")),
    BaseTable("written", functools.partial(_written, policy="classic"), ("id < 8", "p = 1", "r.y > 4.0"), (2, 3)),
    BaseTable("written-v2", functools.partial(_written, policy="v2"), ("id < 8", "p = 1", "s >= 's3'"), (2, 3)),
)
