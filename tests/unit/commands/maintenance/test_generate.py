"""Manifests name exactly the files of the table, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_pyds.commands.maintenance.generate import generate_manifests
from delta_pyds.errors import StorageError, UserError
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder

SCHEMA = {"id": "long", "p": "string", "q": "integer"}


def manifests(path: Path) -> dict[str, list[str]]:
    root = path / "_symlink_format_manifest"
    return {
        file.relative_to(root).as_posix(): file.read_text().splitlines() for file in root.rglob("*") if file.is_file()
    }


def test_each_partition_has_its_manifest_with_paths_that_can_be_opened(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t t", SCHEMA, ["p", "q"])
    table.create()
    adds = table.append([{"id": 1, "p": "a b", "q": 1}, {"id": 2, "p": "x/y%", "q": None}])
    assert generate_manifests(load_snapshot(str(table.path))) == 2
    found = manifests(table.path)
    assert set(found) == {"p=a b/q=1/manifest", "p=x%2Fy%25/q=__HIVE_DEFAULT_PARTITION__/manifest"}
    paths = [path for lines in found.values() for path in lines]
    assert sorted(Path(path.removeprefix("file:")) for path in paths) == sorted(map(table.data_file, adds))
    assert all(Path(path.removeprefix("file:")).exists() for path in paths)


def test_a_partition_that_is_gone_loses_its_manifest(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", SCHEMA, ["p", "q"])
    table.create()
    [one, _] = table.append([{"id": 1, "p": "a", "q": 1}, {"id": 2, "p": "b", "q": 1}])
    generate_manifests(load_snapshot(str(table.path)))
    table.commit([table.remove(one)])
    log = sorted(table.log_path.iterdir())
    assert generate_manifests(load_snapshot(str(table.path))) == 1
    assert set(manifests(table.path)) == {"p=b/q=1/manifest"}
    assert not (table.path / "_symlink_format_manifest" / "p=a").exists()
    assert sorted(table.log_path.iterdir()) == log


def test_a_manifest_beyond_a_link_is_not_deleted(tmp_path: Path) -> None:
    """The files there may be another table's."""
    table = TableBuilder(tmp_path / "t", SCHEMA, ["p", "q"])
    table.create()
    theirs = tmp_path / "theirs" / "manifest"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    (table.path / "_symlink_format_manifest").symlink_to(theirs.parent)
    with pytest.raises(StorageError, match="symbolic link"):
        generate_manifests(load_snapshot(str(table.path)))
    assert theirs.read_text() == "theirs"


def test_a_table_without_partitions_has_one_manifest_though_it_be_empty(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    assert generate_manifests(load_snapshot(str(table.path))) == 1
    assert manifests(table.path) == {"manifest": []}


def test_what_readers_of_plain_files_would_misread_is_refused(tmp_path: Path) -> None:
    marked = TableBuilder(tmp_path / "v", {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    marked.create()
    [add] = marked.append([{"id": 1}, {"id": 2}])
    generate_manifests(load_snapshot(str(marked.path)))
    marked.delete(add, [0])
    mapped = TableBuilder(tmp_path / "m", {"id": "long"}, properties={"delta.columnMapping.mode": "name"})
    mapped.create()
    for table, code in (
        (marked, "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"),
        (mapped, "DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING"),
    ):
        with pytest.raises(UserError) as caught:
            generate_manifests(load_snapshot(str(table.path)))
        assert caught.value.code == code
