"""What a read of changes says that it reads: the way of each commit, and files, vectors and bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.errors import MissingLogFilesError, OptionError
from delta_pyds.table.change_feed.report import ChangesReport
from tests.support.change_feed import ENABLED, cdc_file
from tests.support.table_builder import Action, TableBuilder

SCHEMA = {"id": "long", "p": "string"}
VECTORS = {"delta.enableDeletionVectors": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}


def explained(table: TableBuilder, since: int = 0, **choice: Any) -> ChangesReport:
    return delta_pyds.explain(table.path, since=since, **choice)


def made(path: Path, properties: dict[str, str]) -> tuple[TableBuilder, list[Action]]:
    """Two files of ten rows, one for each of the values a and b; versions 1 and 2."""
    table = TableBuilder(path, SCHEMA, ["p"], properties)
    table.create()
    adds = [table.append([{"id": n, "p": p} for n in range(10)])[0] for p in "ab"]
    return table, adds


def size(*actions: Action) -> int:
    return sum(next(iter(action.values()))["size"] for action in actions)


def rewritten(table: TableBuilder, old: Action, **fields: Any) -> Action:
    new = table.write_file([{"id": n, "p": "a"} for n in range(1, 11)], {"p": "a"})
    new["add"] |= fields
    table.commit([table.remove(old, **fields), new])
    return new


def test_each_way_is_named(tmp_path: Path) -> None:
    table, (a, b) = made(tmp_path, VECTORS)
    new = rewritten(table, a)  # version 3
    marked = table.delete_rows(b, [1, 2])
    table.commit(marked)  # 4
    more = table.delete_rows(marked[1], [5])
    table.commit(more)
    table.commit([table.remove(new, dataChange=False), {"add": {**new["add"], "path": "x", "dataChange": False}}])  # 6
    report = explained(table)
    columns = ("version", "way", "change_files", "data_files", "vectors", "size_bytes", "ruled_out_files")
    assert report.commits.column_names == list(columns)
    assert [tuple(row.values()) for row in report.commits.to_pylist()] == [
        (0, "none", 0, 0, 0, 0, 0),
        (1, "files", 0, 1, 0, size(a), 0),
        (2, "files", 0, 1, 0, size(b), 0),
        (3, "values", 0, 2, 0, size(a, new), 0),
        (4, "files", 0, 1, 1, size(b), 0),  # only the rows that left
        # rows of the old vector may have come back
        (5, "values", 0, 1, 2, size(b), 0),
        (6, "none", 0, 0, 0, 0, 0),
    ]
    assert report.ways == {"none": 2, "files": 3, "values": 2}
    assert (report.num_commits, report.num_data_files, report.num_vectors, report.num_change_files) == (7, 6, 3, 0)
    assert (report.size_bytes, report.version) == (size(a, b, a, new, b, b), 6)
    lines = str(report).splitlines()
    assert lines[0] == f"{tmp_path}: changes of versions 0 to 6"
    assert lines[1] == f"7 commits, 6 data files, 3 vectors, {report.size_bytes:,} bytes read"
    assert lines[3] == f"  versions 1 to 2  whole files that came or left: 2 data files, {size(a, b):,} bytes"
    assert lines[4] == f"  version 3  computed by values: 2 data files, {size(a, new):,} bytes"
    assert lines[-1] == "  version 6  no changes" and len(lines) == 8
    assert str(report.to_text(limit=2)).endswith("  ... and 4 more")
    assert "<td>1 to 2</td>" in report._repr_html_() and "computed by values" in report._repr_html_()


def test_the_net_changes_are_one(tmp_path: Path) -> None:
    table, (a, _) = made(tmp_path, {})
    new = rewritten(table, a)
    newer = rewritten(table, new)
    report = explained(table, 3, net=True)
    assert [row["way"] for row in report.commits.to_pylist()] == ["values"]
    assert (report.num_data_files, report.size_bytes) == (2, size(a, newer))
    assert str(report).splitlines()[0].endswith(": net changes of versions 3 to 4")
    assert str(report).splitlines()[2].startswith("  versions 3 to 4  computed by values: 2 data files")


def test_row_ids_and_records(tmp_path: Path) -> None:
    table, (a, _) = made(tmp_path / "ids", ROW_IDS)
    rewritten(table, a, baseRowId=0, defaultRowCommitVersion=1)
    assert explained(table, 3).ways == {"rowIds": 1}
    assert explained(table, 3, compute="values").ways == {"values": 1}
    table, (a, _) = made(tmp_path / "feed", ENABLED)
    told = cdc_file(table, [{"id": 0, "p": "a", "_change_type": "delete"}], partition_values={"p": "a"})
    table.commit([table.remove(a), table.write_file([{"id": 1, "p": "a"}], {"p": "a"}), told])
    report = explained(table)
    assert report.ways == {"none": 1, "recorded": 3}
    assert (report.num_change_files, report.num_data_files) == (1, 2)
    assert "1 change file, 2 data files" in str(report)


def test_files_that_where_rules_out_are_counted(tmp_path: Path) -> None:
    table, (a, b) = made(tmp_path, {})
    report = explained(table, where="p = 'b'")
    assert (report.num_data_files, report.size_bytes, report.num_ruled_out) == (1, size(b), 1)
    assert report.where == "p = 'b'" and "; 1 file ruled out" in str(report)
    assert explained(table, 1, until=1, where="id > 100").num_ruled_out == 1
    # with keys the other image of a row may be in a file without wanted rows
    assert delta_pyds.scan_changes(tmp_path, since=0, keys="id", where="p = 'b'").explain().num_ruled_out == 0
    # a log may have any sizes
    huge = [{"add": {**a["add"], "path": f"{n}", "size": 2**62}} for n in range(3)]
    table.commit(huge)
    assert explained(table, 3).size_bytes == 2**63 - 1


def test_by_row_ids_files_of_a_comparison_without_wanted_rows_are_ruled_out(tmp_path: Path) -> None:
    table, (a, _) = made(tmp_path, ROW_IDS)
    new = rewritten(table, a, baseRowId=0, defaultRowCommitVersion=1)
    rewritten(table, new, baseRowId=0, defaultRowCommitVersion=1)
    for where, left in (("_commit_version = 4", [0, 2]), ("p = 'b'", [0, 0]), ("id = 0", [2, 2])):
        report = explained(table, 3, where=where)
        # removed files may have any rows, since the log has no statistics of them
        assert report.commits["data_files"].to_pylist() == left, where
    assert explained(table, 3, where="_change_type = 'delete'").num_data_files == 4


def test_mistakes_are_named(tmp_path: Path) -> None:
    table, _ = made(tmp_path, {})
    for wrong in ({"until": 1}, {"net": True}, {"compute": "values"}):
        with pytest.raises(OptionError, match="without since"):
            delta_pyds.explain(tmp_path, **wrong)  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="leave one out"):
        delta_pyds.explain(tmp_path, since=1, version=1)  # type: ignore[call-overload]
    table.checkpoint()
    table.commit_file(1).unlink()
    with pytest.raises(MissingLogFilesError):
        explained(table)
