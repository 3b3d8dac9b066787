"""Maintenance by both engines: what it leaves alike, what history says of it alike, and the other one goes on."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import code_of, properties_sql, rows
from tests.support.commits import actions

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
    """The commit as the log describes it, without what differs by engine, time or chance."""
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


@pytest.mark.cell("shallow clone", "ping-pong")
def test_clone(engines: Engines, path: Path, tmp_path: Path) -> None:
    """The reference's by SQL: what its Python method returns is an object of the JVM, and no DataFrame."""
    mine, reference = tmp_path / "mine", tmp_path / "reference"
    own = ours(engines, path).clone(str(mine), True)
    foreign = engines.sql(cloning(path, reference))
    assert own.columns == foreign.columns
    assert own.collect() == foreign.collect()
    assert told(mine, 0) == told(reference, 0)
    assert engines.agree(mine) == engines.agree(reference) == engines.agree(path)
    assert described(mine) == described(reference)
    engines.assert_sound(mine)
    # who has files is replaced by us alone
    replaced = shutil.copytree(mine, tmp_path / "replaced")
    refusal = code_of(lambda: engines.sql(cloning(path, replaced, replace=True)).collect())
    assert refusal == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
    ours(engines, path).cloneAtVersion(1, str(replaced), True, True)
    assert engines.agree(replaced) == rows(engines.reference(path, versionAsOf=1))
    engines.assert_sound(replaced)
    for version, properties in ((1, {}), (3, {"a": "b"})):
        for table in (mine, reference):
            engines.sql(f"DELETE FROM delta.`{table}`").collect()
        at = load_snapshot(str(mine)).version + 1
        own = ours(engines, path).cloneAtVersion(version, str(mine), True, True, properties)
        foreign = engines.sql(cloning(path, reference, replace=True, version=version, properties=properties))
        assert own.collect() == foreign.collect()
        assert told(mine, at) == told(reference, at)
        assert described(mine) == described(reference)
    # each goes on with the clone of the other
    engines.sql(f"DELETE FROM delta.`{mine}` WHERE id = 0").collect()
    ours(engines, reference).delete("id = 0")
    assert engines.agree(mine) == engines.agree(reference)
    engines.assert_sound(mine)
    assert not delta_pyds.verify(str(reference)).findings
    # where something is, and nothing says to replace it
    assert code_of(partial(ours(engines, path).clone, str(mine), True)) == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
    refusal = code_of(lambda: engines.sql(cloning(path, mine)).collect())
    assert refusal == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


def cloning(
    source: Path,
    target: Path,
    *,
    replace: bool = False,
    properties: dict[str, str] | None = None,
    version: int | None = None,
) -> str:
    how = "CREATE OR REPLACE" if replace else "CREATE"
    at = "" if version is None else f"VERSION AS OF {version}"
    return f"{how} TABLE delta.`{target}` SHALLOW CLONE delta.`{source}` {at} {properties_sql(properties or {})}"


def described(path: Path) -> dict[str, Any]:
    """Files with their vectors, metadata and protocol, without what each engine makes up."""
    snapshot = load_snapshot(str(path))
    files = {}
    for file in live_files(plan_scan(snapshot)):
        vector = file.deletion_vector
        files[file.path] = (
            file.size, file.stats, file.partition_values, vector, file.base_row_id, file.default_row_commit_version,
        )  # fmt: skip
    metadata = snapshot.metadata
    return {
        "files": files,
        "configuration": metadata.configuration,
        "schema": metadata.schema_string,
        "partitions": metadata.partition_columns,
        "names": (metadata.name, metadata.description),
        "protocol": snapshot.protocol,
    }


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


@pytest.mark.cell("convert", "ping-pong")
def test_convert(engines: Engines, tmp_path: Path) -> None:
    from delta.tables import DeltaTable as Reference

    mine = tmp_path / "mine"
    engines.sql(
        "SELECT id, IF(id = 3, NULL, concat('s', id)) AS s, id / 2 AS f, CAST(id AS DECIMAL(10, 2)) AS d, "
        "date_add(DATE'2026-01-01', CAST(id AS INT)) AS day, timestamp_seconds(id) AS at, "
        "named_struct('x', id) AS n, array(id) AS l, IF(id < 4, 'a b', NULL) AS p FROM range(8)"
    ).coalesce(1).write.partitionBy("p").parquet(str(mine))
    reference = tmp_path / "reference"
    shutil.copytree(mine, reference)
    DeltaTable.convertToDelta(engines.spark, f"parquet.`{mine}`", "p string")
    Reference.convertToDelta(engines.spark, f"parquet.`{reference}`", "p string")
    assert told(mine, 0) == told(reference, 0)
    assert engines.agree(mine) == engines.agree(reference)
    one, other = described(mine), described(reference)
    for side in (one, other):
        side["files"] = {path: (size, values) for path, (size, _, values, *_) in side["files"].items()}
    assert one == other
    engines.assert_sound(mine)
    for where in ("id = 3", "s = 's1'", "d > 5", "day < DATE'2026-01-03'", "n.x = 2", "at = timestamp_seconds(7)"):
        assert engines.reference(mine).where(where).count() == engines.reference(reference).where(where).count()
    engines.sql(f"DELETE FROM delta.`{mine}` WHERE id = 1").collect()
    engines.agree(mine)
