"""What a table says of itself in one line. Protocol: "Change Metadata", "Protocol Evolution", "Clustered Table"."""

from __future__ import annotations

import json
from pathlib import Path

from delta_pyds.table.detail import table_detail
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder


def clustered(*paths: list[str]) -> dict[str, object]:
    configuration = json.dumps({"clusteringColumns": list(paths)})
    return {"domainMetadata": {"domain": "delta.clustering", "configuration": configuration, "removed": False}}


def test_numbers_times_and_features(tmp_path: Path) -> None:
    """The last commit's file says when the table changed, and features are those listed or implied, ascending."""
    table = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    table.create(timestamp_ms=1_000)
    first = table.append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])
    table.commit([table.remove(first[0])], timestamp_ms=7_000)

    detail = table_detail(load_snapshot(table.path))

    assert (detail.location, detail.id, detail.partition_columns) == (str(table.path), table.table_id, ("p",))
    assert (detail.num_files, detail.size_bytes) == (1, first[1]["add"]["size"])
    assert (detail.last_modified_ms, detail.clustering_columns) == (7_000, ())
    assert (detail.min_reader_version, detail.min_writer_version) == (1, 2)
    assert detail.features == ("appendOnly", "invariants")


def test_a_table_whose_last_commit_is_gone(tmp_path: Path) -> None:
    """Only its checkpoint is left: nothing says when it was."""
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.checkpoint()
    for version in (0, 1):
        table.commit_file(version).unlink()

    detail = table_detail(load_snapshot(table.path))

    assert (detail.last_modified_ms, detail.num_files) == (None, 1)


def test_clustering_columns_are_logical(tmp_path: Path) -> None:
    """The domain names physical paths; one that the schema has no more keeps its name."""
    table = TableBuilder(
        tmp_path / "t",
        {"id": "long", "place": {"type": "struct", "fields": [
            {"name": "zip", "type": "long", "nullable": True, "metadata": {}}
        ]}},
        features=([], ["clustering", "domainMetadata"]),
    )  # fmt: skip
    table.create([clustered(["id"], ["place", "zip"], ["gone"], ["a `b", "2nd"])])

    detail = table_detail(load_snapshot(table.path))

    assert detail.clustering_columns == ("id", "place.zip", "gone", "`a ``b`.`2nd`")
