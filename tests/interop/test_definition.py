"""The same changes of a table's definition by the reference's SQL and by our methods: equal metadata and history."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import DeltaTable, IdentityGenerator
from delta_pyds.protocol.features import supported_features
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, rows

Ours = Callable[[DeltaTable], None]
PROPERTIES = "SET TBLPROPERTIES"


def properties(**given: str) -> tuple[str, Ours]:
    """Properties ``delta.a.b`` given as ``a_b``."""
    named = {"delta." + key.replace("_", "."): value for key, value in given.items()}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in named.items())
    return f"{PROPERTIES} ({text})", lambda t: t.setProperties(named)


STEPS: list[tuple[str, Ours]] = [
    ("ADD COLUMNS (n1 INT COMMENT 'c' FIRST)", lambda t: t.addColumn("n1", "INT", comment="c", first=True)),
    ("ADD COLUMNS (s.w INT AFTER x)", lambda t: t.addColumn("s.w", "INT", after="x")),
    ("ADD COLUMNS (s.y.element.v STRING)", lambda t: t.addColumn("s.y.element.v", "STRING")),
    ("ALTER COLUMN id COMMENT 'xx'", lambda t: t.alterColumn("id", comment="xx")),
    ("ALTER COLUMN id AFTER g", lambda t: t.moveColumn("id", after="g")),
    ("ADD CONSTRAINT Pos CHECK (id > 0)", lambda t: t.addConstraint("Pos", "id > 0")),
    ("DROP CONSTRAINT IF EXISTS nosuch", lambda t: t.dropConstraint("nosuch", ifExists=True)),
    properties(columnMapping_mode="name"),
    ("DROP CONSTRAINT pos", lambda t: t.dropConstraint("pos")),
    ("RENAME COLUMN p TO pp", lambda t: t.renameColumn("p", "pp")),
    ("RENAME COLUMN s.x TO `x y`", lambda t: t.renameColumn("s.x", "x y")),
    ("ADD COLUMNS (n2 INT, n3 ARRAY<STRUCT<q: INT>>)", lambda t: t.addColumns(_two_columns())),
    ("DROP COLUMNS (n1, s.w)", lambda t: t.dropColumns("n1", "s.w")),
    properties(enableTypeWidening="true"),
    ("ALTER COLUMN g TYPE BIGINT", lambda t: t.alterColumn("g", dataType="BIGINT")),
    ("ALTER COLUMN m.value.q TYPE DOUBLE", lambda t: t.alterColumn("m.value.q", dataType="DOUBLE")),
    properties(enableChangeDataFeed="true"),
    properties(enableDeletionVectors="true", checkpointPolicy="v2"),
    properties(enableInCommitTimestamps="true"),
    properties(enableRowTracking="true"),
    properties(enableInCommitTimestamps="false", feature_allowColumnDefaults="supported"),
    ("ALTER COLUMN n2 SET DEFAULT 5", lambda t: t.alterColumn("n2", default="5")),
    ("ALTER COLUMN n2 DROP DEFAULT", lambda t: t.alterColumn("n2", dropDefault=True)),
    (f"{PROPERTIES} ('comment' = 'about', 'my' = 'x')", lambda t: t.setProperties({"comment": "about", "my": "x"})),
    ("UNSET TBLPROPERTIES ('my')", lambda t: t.unsetProperties("my")),
    ("RENAME COLUMN s.`x y` TO x", lambda t: t.renameColumn("s.`x y`", "x")),
    properties(columnMapping_mode="none"),
]  # fmt: skip


def _two_columns() -> Any:
    from pyspark.sql.types import ArrayType, IntegerType, StructType

    return StructType().add("n2", IntegerType()).add("n3", ArrayType(StructType().add("q", IntegerType())))


@pytest.mark.cell("alter table", "us -> reference")
def test_alter_table_says_the_same(engines: Engines, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` (id INT, s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>, "
        "m MAP<STRING, STRUCT<q: INT>>, p STRING, g INT) USING delta PARTITIONED BY (p)"
    )
    engines.sql(
        f"INSERT INTO delta.`{theirs}` SELECT /*+ COALESCE(1) */ id + 1, named_struct('x', id, 'y', "
        "array(named_struct('z', id))), map('k', named_struct('q', id)), 'p', id FROM range(3)"
    )
    shutil.copytree(theirs, ours)
    for text, change in STEPS:
        engines.sql(f"ALTER TABLE delta.`{theirs}` {text}")
        change(DeltaTable.forPath(engines.spark, ours))
        assert definition(ours) == definition(theirs), text
        assert commit(ours) == commit(theirs), text
    engines.assert_sound(ours)
    assert engines.agree(ours) == rows(engines.reference(theirs))
    engines.sql(f"INSERT INTO delta.`{ours}` (id, pp) VALUES (9, 'q')")
    engines.sql(f"DELETE FROM delta.`{ours}` WHERE id = 1")
    assert len(engines.agree(ours)) == 3
    engines.assert_sound(ours)


@pytest.mark.cell("create and replace", "us -> reference")
@pytest.mark.parametrize("replaces", [False, True])
def test_a_built_table_is_the_references(engines: Engines, tmp_path: Path, replaces: bool) -> None:
    from delta.tables import DeltaTable as TheirTable
    from delta.tables import IdentityGenerator as TheirGenerator

    made = {}
    for name, kind, generator in (("theirs", TheirTable, TheirGenerator), ("ours", DeltaTable, IdentityGenerator)):
        path = made[name] = tmp_path / name
        if replaces:
            first = kind.create(engines.spark).location(str(path)).addColumn("id", "BIGINT").addColumn("z", "INT")
            for key in ("enableDeletionVectors", "enableRowTracking", "enableChangeDataFeed", "appendOnly"):
                first = first.property(f"delta.{key}", "false" if key == "appendOnly" else "true")
            first.property("delta.columnMapping.mode", "name").property("my", "x").execute()
        built = kind.replace(engines.spark) if replaces else kind.create(engines.spark)
        (
            built.location(str(path))
            .addColumn("id", "BIGINT", generatedAlwaysAs=generator(5, 2))
            .addColumn("a", "INT", nullable=False, comment="c")
            .addColumn("g", "INT", generatedAlwaysAs="a + 1")
            .addColumn("s", "STRUCT<x: INT NOT NULL, y: VARCHAR(3)>")
            .addColumn("v", "VARCHAR(5)")
            .clusterBy("a", "s.x")
            .comment("about")
            .property("delta.columnMapping.mode", "name")
            .property("delta.constraints.c", "a > 0")
            .execute()
        )
    assert definition(made["ours"]) == definition(made["theirs"])
    assert commit(made["ours"]) == commit(made["theirs"])
    engines.sql(f"INSERT INTO delta.`{made['ours']}` (a, s, v) VALUES (1, named_struct('x', 1, 'y', 'b'), 'abc')")
    assert len(engines.agree(made["ours"])) == 1
    engines.assert_sound(made["ours"])


@pytest.mark.cell("features dropped", "us -> reference")
def test_features_are_dropped_alike(engines: Engines, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        "'delta.feature.checkConstraints' = 'supported')"
    )
    engines.sql(f"INSERT INTO delta.`{theirs}` VALUES 1, 2")
    shutil.copytree(theirs, ours)
    for feature in ("checkConstraints", "rowTracking", "domainMetadata"):
        engines.sql(f"ALTER TABLE delta.`{theirs}` DROP FEATURE {feature}")
        DeltaTable.forPath(engines.spark, ours).dropFeatureSupport(feature)
        assert definition(ours) == definition(theirs), feature
        assert commit(ours) == commit(theirs), feature
    engines.sql(f"INSERT INTO delta.`{ours}` VALUES 3")
    assert len(engines.agree(ours)) == 3
    engines.assert_sound(ours)


READER_FEATURES = {
    "deletionVectors": ("'delta.enableDeletionVectors' = 'true'", ["DELETE FROM {t} WHERE id = 1"]),
    "columnMapping": (
        "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'",
        ["ALTER TABLE {t} RENAME COLUMN v TO w"],
    ),
    "typeWidening": ("'delta.enableTypeWidening' = 'true'", ["ALTER TABLE {t} ALTER COLUMN v TYPE BIGINT"]),
    "v2Checkpoint": ("'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2'", []),
    "vacuumProtocolCheck": ("'delta.feature.vacuumProtocolCheck' = 'supported'", []),
    "vacuumProtocolCheck beside V2 checkpoints": (
        "'delta.feature.vacuumProtocolCheck' = 'supported', 'delta.checkpointPolicy' = 'v2'",
        [],
    ),
}


@pytest.mark.cell("features of readers dropped", "ping-pong")
@pytest.mark.parametrize("case", READER_FEATURES)
def test_features_of_readers_are_dropped_alike(engines: Engines, tmp_path: Path, case: str) -> None:
    """The same commits and checkpoints; the other engine reads, travels back, writes, and drops what is left."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    properties, statements = READER_FEATURES[case]
    feature = case.partition(" ")[0]
    table = f"delta.`{theirs}`"
    engines.sql(f"CREATE TABLE {table} (id INT, v INT) USING delta TBLPROPERTIES ({properties})")
    first = f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, id FROM range(9)"
    for statement in (first, *statements, f"INSERT INTO {table} VALUES (10, 1)"):
        engines.sql(statement.format(t=table))
    shutil.copytree(theirs, ours)
    before = load_snapshot(str(ours)).version
    then = rows(engines.reference(theirs))
    engines.sql(f"ALTER TABLE {table} DROP FEATURE {feature}")
    DeltaTable.forPath(engines.spark, ours).dropFeatureSupport(feature)
    assert definition(ours) == definition(theirs)
    last = load_snapshot(str(theirs)).version
    assert [commit(ours, v) for v in range(before, last + 1)] == [commit(theirs, v) for v in range(before, last + 1)]
    assert checkpoints(ours) == checkpoints(theirs)
    for path in (ours, theirs):
        assert engines.agree(path) == then
        assert rows(engines.reference(path, versionAsOf=before)) == then
        assert rows(engines.ours(path, versionAsOf=before)) == then
        engines.sql(f"INSERT INTO delta.`{path}` VALUES (11, 2)")
        DeltaTable.forPath(engines.spark, path).delete("id = 3")
        assert len(engines.agree(path)) == len(then)
        engines.assert_sound(path)
        with pytest.raises(Exception, match="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"):
            DeltaTable.forPath(engines.spark, path).dropFeatureSupport(feature)


@pytest.mark.cell("alter table", "us -> reference")
@pytest.mark.parametrize("compatibility", ["V1", "V2"])
def test_iceberg_compatibility_forbids_the_same(engines: Engines, tmp_path: Path, compatibility: str) -> None:
    """A replaced table, and what must stay out; then the reference goes on with what we turned it on for."""
    on = f"delta.enableIcebergCompat{compatibility}"
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    columns = "(id INT, p INT, q INT, t TIMESTAMP)"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` {columns} USING delta PARTITIONED BY (p) TBLPROPERTIES ('{on}' = 'true')"
    )
    shutil.copytree(theirs, ours)
    for partitions in ("PARTITIONED BY (q)", "", "PARTITIONED BY (p, q)"):
        text = f"REPLACE TABLE delta.`%s` {columns} USING delta {partitions} TBLPROPERTIES ('{on}' = 'true')"
        code = _code(lambda: engines.sql(text % theirs))  # noqa: B023 - called at once
        builder = DeltaTable.replace(engines.spark).location(str(ours)).property(on, "true")
        for name, kind in (("id", "INT"), ("p", "INT"), ("q", "INT"), ("t", "TIMESTAMP")):
            builder = builder.addColumn(name, kind)
        names = re.findall(r"[pq]", partitions.removeprefix("PARTITIONED BY"))
        builder = builder.partitionedBy(*names) if names else builder
        assert _code(builder.execute) == code == "REPLACE_TABLE_CHANGE_PARTITION_NAMES"
    for key, value in (("delta.enableDeletionVectors", "true"), ("delta.columnMapping.mode", "none")):
        code = _code(lambda: engines.sql(f"ALTER TABLE delta.`{theirs}` SET TBLPROPERTIES ('{key}' = '{value}')"))  # noqa: B023
        assert _code(lambda: DeltaTable.forPath(engines.spark, ours).setProperties({key: value})) == code  # noqa: B023

    table = tmp_path / "turned on"
    engines.sql(
        f"CREATE TABLE delta.`{table}` (id INT, d DATE, s STRUCT<x: INT>) USING delta TBLPROPERTIES "
        "('delta.columnMapping.mode' = 'name')"
    )
    engines.sql(f"INSERT INTO delta.`{table}` VALUES (1, DATE'2020-01-01', named_struct('x', 2))")
    DeltaTable.forPath(engines.spark, table).setProperties({on: "true"})
    engines.sql(f"INSERT INTO delta.`{table}` VALUES (2, NULL, NULL)")
    DeltaTable.forPath(engines.spark, table).delete("id = 1")
    engines.sql(f"OPTIMIZE delta.`{table}`")
    assert len(engines.agree(table)) == 1
    engines.assert_sound(table)


def _code(action: Callable[[], object]) -> str:
    with pytest.raises(Exception, match="DELTA_ICEBERG_COMPAT_VIOLATION") as caught:
        action()
    return str(re.findall(r"DELTA_ICEBERG_COMPAT_VIOLATION\.([A-Z_]+)", str(caught.value))[0])


@pytest.mark.cell("history truncated", "ping-pong")
def test_a_history_is_truncated_by_the_other_engine(engines: Engines, tmp_path: Path) -> None:
    """One engine drops and protects; the other truncates, after the time that it has to wait, and protects no more."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` (id INT) USING delta TBLPROPERTIES "
        "('delta.feature.vacuumProtocolCheck' = 'supported')"
    )
    engines.sql(f"INSERT INTO delta.`{theirs}` VALUES 1, 2")
    shutil.copytree(theirs, ours)
    engines.sql(f"ALTER TABLE delta.`{theirs}` DROP FEATURE vacuumProtocolCheck")
    DeltaTable.forPath(engines.spark, ours).dropFeatureSupport("vacuumProtocolCheck")
    by_us = "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    for path, drop in (
        (theirs, lambda: DeltaTable.forPath(engines.spark, theirs).dropFeatureSupport("checkpointProtection", True)),
        (ours, lambda: engines.sql(f"ALTER TABLE delta.`{ours}` DROP FEATURE checkpointProtection TRUNCATE HISTORY")),
    ):
        with pytest.raises(Exception, match=by_us):
            drop()
        age(path)
        drop()
        assert sorted(supported_features(load_snapshot(str(path)).protocol)) == ["appendOnly", "invariants"]
        assert len(engines.agree(path)) == 2
        engines.assert_sound(path)
    assert definition(ours) == definition(theirs)
    assert commit(ours) == commit(theirs)


def age(path: Path) -> None:
    """All files of the log as if they were of two days ago, a second after the other."""
    for n, file in enumerate(sorted((path / "_delta_log").glob("0*"))):
        when = time.time() - 48 * 3600 + n
        os.utime(file, (when, when))


def checkpoints(path: Path) -> list[str]:
    names = (file.name for file in (path / "_delta_log").glob("[0-9]*.checkpoint.*"))
    return sorted({plain(name) for name in names})


def definition(path: Path) -> dict[str, Any]:
    """What a table is, without what is drawn at random and without the order of keys and features."""
    snapshot = load_snapshot(str(path))
    metadata = snapshot.metadata
    return {
        "schema": json.loads(plain(metadata.schema_string or "")),
        "partitions": metadata.partition_columns,
        "description": metadata.description,
        "properties": {
            key: "at some time" if key.endswith("EnablementTimestamp") else plain(value or "")
            for key, value in (metadata.configuration or {}).items()
        },
        "versions": (snapshot.protocol.min_reader_version, snapshot.protocol.min_writer_version),
        "features": sorted(supported_features(snapshot.protocol)),
        "domains": {
            name: json.loads(plain(domain.configuration)).get("clusteringColumns", "")
            for name, domain in snapshot.domain_metadata.items()
        },
    }


def commit(path: Path, version: int | None = None) -> dict[str, Any]:
    """What a commit says of itself, by default the newest."""
    commits = [file for file in (path / "_delta_log").glob("*.json") if file.stem.isdigit()]
    newest = max(commits) if version is None else next(file for file in commits if int(file.stem) == version)
    info = next(json.loads(line)["commitInfo"] for line in newest.read_text().splitlines() if "commitInfo" in line)
    return {
        "operation": info["operation"],
        "parameters": {key: parsed(value) for key, value in info["operationParameters"].items()},
    }


def parsed(value: Any) -> Any:
    text = plain(value) if isinstance(value, str) else value
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return text
    if isinstance(found, dict):
        return {key.lower(): parsed(inner) for key, inner in found.items()}
    return found


def plain(text: str) -> str:
    """Without UUIDs."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "uuid", text)
