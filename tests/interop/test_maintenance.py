"""Maintenance by both engines: what it leaves alike, what history says of it alike, and the other one goes on."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_pyds import DeltaTable
from tests.interop.engines import code_of, properties_sql

if TYPE_CHECKING:
    from tests.interop.engines import Engines

FEATURES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@pytest.fixture
def path(engines: Engines, tmp_path: Path) -> Path:
    """By the reference: four versions with a deletion vector, change files, and partitions with odd names."""
    path = tmp_path / "t"
    name = f"delta.`{path}`"
    engines.sql(f"CREATE TABLE {name} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) {properties_sql(FEATURES)}")
    engines.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, IF(id < 5, 'a b', '_c%') FROM range(10)")
    engines.sql(f"UPDATE {name} SET id = id + 100 WHERE id = 3")
    engines.sql(f"DELETE FROM {name} WHERE id >= 5")
    return path


def ours(engines: Engines, path: Path) -> DeltaTable:
    return DeltaTable.forPath(engines.spark, str(path))


def theirs(engines: Engines, path: Path) -> Any:
    from delta.tables import DeltaTable as Reference

    return Reference.forPath(engines.spark, str(path))


@pytest.mark.cell("manifests", "ping-pong")
def test_generate(engines: Engines, path: Path) -> None:
    for table in (ours(engines, path), theirs(engines, path)):
        refusal = code_of(partial(table.generate, "symlink_format_manifest"))
        assert refusal == "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS"
    ours(engines, path).restoreToVersion(1)
    manifests = path / "_symlink_format_manifest"
    for where in ("id >= 0", "p != 'a b'"):
        engines.sql(f"INSERT INTO delta.`{path}` VALUES (50, NULL)").collect()
        if where != "id >= 0":
            rows = engines.sql(f"SELECT * FROM delta.`{path}` WHERE {where}")
            engines.append(rows, path, mode="overwrite")
        found = []
        for engine in (ours, theirs):
            shutil.rmtree(manifests, ignore_errors=True)
            engine(engines, path).generate("symlink_format_manifest")
            found.append(
                {
                    file.relative_to(manifests).as_posix(): sorted(file.read_text().splitlines())
                    for file in manifests.rglob("manifest")
                }
            )
        assert found[0] == found[1]
