"""Maintenance by both engines: what it leaves alike, what history says of it alike, and the other one goes on."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds
from delta_pyds import DeltaTable
from tests.interop.engines import actions, code_of, properties_sql

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


def twice(path: Path) -> tuple[Path, Path]:
    """The table for us, and a copy for the reference."""
    copy = path.with_name("copy")
    shutil.copytree(path, copy)
    return path, copy


def ours(engines: Engines, path: Path) -> DeltaTable:
    return DeltaTable.forPath(engines.spark, str(path))


def theirs(engines: Engines, path: Path) -> Any:
    from delta.tables import DeltaTable as Reference

    return Reference.forPath(engines.spark, str(path))


def told(path: Path, version: int) -> dict[str, Any]:
    """What the log says of a commit, without what differs by engine, time or chance."""
    info = next(line["commitInfo"] for line in actions(path, version) if "commitInfo" in line)
    names = ("operation", "operationParameters", "operationMetrics", "isolationLevel", "isBlindAppend", "tags")
    return {name: info.get(name) for name in names}


def data_files(path: Path) -> set[str]:
    """All but the log, and Hadoop's checksums."""
    return {
        file.relative_to(path).as_posix()
        for file in path.rglob("*")
        if file.is_file() and "_delta_log" not in file.parts and not file.name.startswith(".")
    }


@pytest.mark.cell("vacuum", "ping-pong")
@pytest.mark.parametrize("lite", [False, True])
def test_vacuum(engines: Engines, path: Path, lite: bool) -> None:
    def by_reference(table: Path) -> None:
        engines.sql(f"VACUUM delta.`{table}` {'LITE' if lite else ''} RETAIN 0 HOURS").collect()

    one, other = twice(path)
    ours(engines, one).vacuum(0, lite=lite)
    by_reference(other)
    assert data_files(one) == data_files(other)
    assert [told(one, version) for version in (4, 5)] == [told(other, version) for version in (4, 5)]
    if lite:
        note = "_delta_log/_last_vacuum_info"
        assert (one / note).read_text().strip() == (other / note).read_text().strip()
    assert engines.agree(one) == engines.agree(other)
    engines.assert_sound(one)
    # what one has begun the other goes on with
    for table in (one, other):
        engines.sql(f"DELETE FROM delta.`{table}` WHERE id = 0").collect()
        engines.sql(f"INSERT OVERWRITE delta.`{table}` SELECT 1, 'x'").collect()
    by_reference(one)
    ours(engines, other).vacuum(0, lite=lite)
    # the reference wrote a vector for rows whose file it then removed whole, so no commit names it
    vectors = [{name for name in data_files(table) if name.endswith(".bin")} for table in (one, other)]
    assert vectors[0] == vectors[1]
    assert len(vectors[0]) == int(lite)
    assert [len(data_files(table)) for table in (one, other)] == [1 + len(vectors[0])] * 2
    engines.agree(one)
    engines.agree(other)
    assert not delta_pyds.verify(str(one)).findings


@pytest.mark.cell("restore", "ping-pong")
def test_restore(engines: Engines, path: Path) -> None:
    one, other = twice(path)
    for version in (2, 1, 4):
        mine = ours(engines, one).restoreToVersion(version)
        reference = theirs(engines, other).restoreToVersion(version)
        assert mine.schema == reference.schema
        assert mine.collect() == reference.collect()
        assert engines.agree(one) == engines.agree(other)
    assert [told(one, version) for version in (4, 5, 6)] == [told(other, version) for version in (4, 5, 6)]
    engines.assert_sound(one)
    moment = ours(engines, one).history().where("version = 1").collect()[0].timestamp
    [mine], [reference] = (
        table.restoreToTimestamp(str(moment)).collect() for table in (ours(engines, one), theirs(engines, other))
    )
    assert mine == reference
    logged = [told(one, 7), told(other, 7)]
    # the reference leaves out zeros at the end of a second's fraction
    times = [info["operationParameters"].pop("timestamp").partition(".") for info in logged]
    assert [(time, fraction.rstrip("0")) for time, _, fraction in times[:1]] == [
        (time, fraction.rstrip("0")) for time, _, fraction in times[1:]
    ]
    assert logged[0] == logged[1]
    engines.sql(f"DELETE FROM delta.`{one}` WHERE id = 0").collect()
    engines.agree(one)


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
