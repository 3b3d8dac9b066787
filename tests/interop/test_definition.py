"""The same changes of a table's definition by the reference's SQL and by our methods: equal metadata and history."""

from __future__ import annotations

import json
import re
import shutil
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


def commit(path: Path) -> dict[str, Any]:
    """What the newest commit says of itself."""
    newest = max((path / "_delta_log").glob("*.json"))
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
