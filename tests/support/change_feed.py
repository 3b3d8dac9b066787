"""The change feed of a table: read by the core, and applied to rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import delta_pyds
from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.data.read import related_files
from delta_pyds.data.read.computed_changes import read_changes, with_changed_rows
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.table.change_feed.change_scan import ChangeScan, change_range, plan_changes
from delta_pyds.table.scan.packing import Packing, pack
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.scan_state import CHANGE_COLUMNS
from tests.support.table_builder import Action, TableBuilder

ENABLED = {"delta.enableChangeDataFeed": "true"}


def plan(path: Path, first: int | None = 0, last: int | None = None, **choice: Any) -> ChangeScan:
    latest = load_snapshot(str(path))
    return plan_changes(latest, change_range(latest, starting_version=first, ending_version=last), **choice)


def rows_of(scan: ChangeScan) -> list[dict[str, Any]]:
    schema = output_schema(scan.state)
    files = list(with_changed_rows(scan.state, scan.files()))
    batches = [batch for file in files for batch in read(scan.state, file)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema).to_pylist()
    # a task does not read rows again that it has in memory
    in_task = pa.Table.from_batches(read_changes(scan.state, scan.files()), schema).to_pylist()
    assert bag(in_task) == bag(rows)
    assert bag(rows_of_related_files(scan)) == bag(rows)
    return rows


def rows_of_related_files(scan: ChangeScan) -> list[dict[str, Any]]:
    """The rows, where each task compares as few files as footers allow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(related_files, "_LEAST_BYTES", 0)
        patch.setattr(related_files, "_LEAST_FILE_BYTES", 0)
        packed = pack(related_files.in_related_groups(scan.state, list(scan.batches())), Packing(min_partitions=2))
    found: list[dict[str, Any]] = []
    for files in packed:
        for batch in read_changes(scan.state, to_scan_files(files, scan.state.table_root)):
            found += batch.to_pylist()
    return found


def change_rows(path: Path, first: int = 0, last: int | None = None, **choice: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = delta_pyds.scan_changes(path, since=first, until=last, **choice).to_table().to_pylist()
    return rows


def with_updates(rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """The changes with updates in place of deletes and inserts of one version that have the same keys, none null."""
    rows = list(rows)

    def key_of(row: Mapping[str, Any]) -> Any:
        # NaN equals itself, and 0.0 equals -0.0
        values = ["NaN" if row[name] != row[name] else row[name] for name in keys]
        return None if None in values else (row["_commit_version"], *values)

    kinds: defaultdict[Any, set[str]] = defaultdict(set)
    for row in rows:
        kinds[key_of(row)].add(row["_change_type"])
    images = {"delete": "update_preimage", "insert": "update_postimage"}
    found = []
    for row in rows:
        key, kind = key_of(row), row["_change_type"]
        if key is not None and {"delete", "insert"} <= kinds[key]:
            kind = images.get(kind, kind)
        found.append({**row, "_change_type": kind})
    return found


def bag(rows: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None) -> Counter[str]:
    """Rows as a multiset, of these columns."""
    return Counter(repr([(n, row[n]) for n in (names or sorted(row))]) for row in rows)


def applied(before: Iterable[Mapping[str, Any]], changes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """The rows that the changes make of those before, which they must be able to."""
    rows = bag(before)
    return [rows, *(after for _, after in rebuilt(rows, changes))][-1]


def rebuilt(
    before: Counter[str], changes: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None
) -> Iterator[tuple[int, Counter[str]]]:
    """Yield each version that has changes, and the rows that they make of those before it. ``names``: as of ``bag``."""
    rows = before
    by_version: dict[int, list[Mapping[str, Any]]] = {}
    for change in changes:
        by_version.setdefault(change["_commit_version"], []).append(change)
    for version in sorted(by_version):
        gone, came = gone_and_came(by_version[version], names)
        assert not gone - (rows + came), f"version {version} takes rows that are not there"
        rows = rows + came - gone
        yield version, rows


def gone_and_came(
    changes: Iterable[Mapping[str, Any]], names: Sequence[str] | None = None
) -> tuple[Counter[str], Counter[str]]:
    """The rows that the changes take and those that they bring. ``names``: as of ``bag``."""
    sides: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = ([], [])
    for change in changes:
        values = {name: value for name, value in change.items() if name not in CHANGE_COLUMNS}
        sides[change["_change_type"] in ("insert", "update_postimage")].append(values)
    return bag(sides[0], names), bag(sides[1], names)


def cdc_file(table: TableBuilder, rows: Sequence[Mapping[str, Any]], **options: Any) -> Action:
    """Write a change data file and return its action. ``rows`` have ``_change_type``."""
    name = f"_change_data/cdc-{len(list(table.path.rglob('cdc-*')))}.snappy.parquet"
    kinds = {"_change_type": [row["_change_type"] for row in rows]}
    written = table.write_file(rows, path=name, extra_columns=kinds, stats=False, **options)["add"]
    return {"cdc": {k: written[k] for k in ("path", "partitionValues", "size")} | {"dataChange": False}}
