"""``history()`` and ``detail()`` of one table by both, column by column, for a table with entries of every kind.

Two copies of a table take the same steps, one by the reference and one by us: the entries of both say the same, and
each history is read alike by both engines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import DeltaTable
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.changed_alike import without_predicates
from tests.interop.engines import Engines

# what a step says is of its engine, its time, or of sizes that its files have
_OWN = ("timestamp", "engineInfo", "operationMetrics", "operationParameters")
_ROWS = ("numDeletedRows", "numCopiedRows")
SOURCE = "SELECT 5L AS id, 9 AS v, 'y' AS p"
# the command, in SQL and by us
STEPS: list[tuple[str, Callable[[DeltaTable], object]]] = [
    ("UPDATE {t} SET v = v + 1 WHERE id = 3", lambda t: t.update("id = 3", {"v": "v + 1"})),
    ("DELETE FROM {t} WHERE id = 4", lambda t: t.delete("id = 4")),
    (
        f"MERGE INTO {{t}} t USING ({SOURCE}) s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        lambda t: (
            t.alias("t")
            .merge(t.toDF().sparkSession.sql(SOURCE).alias("s"), "t.id = s.id")
            .whenMatchedDelete()
            .whenNotMatchedInsertAll()
            .execute()
        ),
    ),
    ("OPTIMIZE {t} WHERE p = 'x'", lambda t: t.optimize().where("p = 'x'").executeCompaction()),
    ("OPTIMIZE {t} ZORDER BY (id)", lambda t: t.optimize().executeZOrderBy("id")),
    ("REORG TABLE {t} APPLY (PURGE)", lambda t: t.optimize().executePurge()),
    ("RESTORE TABLE {t} TO VERSION AS OF 1", lambda t: t.restoreToVersion(1)),
    ("VACUUM {t} RETAIN 0 HOURS", lambda t: t.vacuum(0)),
    ("ALTER TABLE {t} ADD COLUMNS (w INT COMMENT 'c')", lambda t: t.addColumn("w", "INT", comment="c")),
    ("ALTER TABLE {t} ALTER COLUMN v COMMENT 'about'", lambda t: t.alterColumn("v", comment="about")),
    ("ALTER TABLE {t} ADD CONSTRAINT c CHECK (id >= 0)", lambda t: t.addConstraint("c", "id >= 0")),
    ("ALTER TABLE {t} DROP CONSTRAINT c", lambda t: t.dropConstraint("c")),
    (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        lambda t: t.setProperties({"delta.columnMapping.mode": "name"}),
    ),
    ("ALTER TABLE {t} RENAME COLUMN w TO ww", lambda t: t.renameColumn("w", "ww")),
    ("ALTER TABLE {t} DROP COLUMNS (ww)", lambda t: t.dropColumns("ww")),
    (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true', 'my' = 'x')",
        lambda t: t.setProperties({"delta.enableInCommitTimestamps": "true", "my": "x"}),
    ),
    ("ALTER TABLE {t} UNSET TBLPROPERTIES ('my')", lambda t: t.unsetProperties("my")),
    (
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        lambda t: t.setProperties({"delta.enableRowTracking": "true"}),
    ),
    ("ALTER TABLE {t} DROP FEATURE rowTracking", lambda t: t.dropFeatureSupport("rowTracking")),
    ("DELETE FROM {t}", lambda t: t.delete()),
]  # fmt: skip


@pytest.mark.cell("history and detail", "ping-pong")
def test_histories_of_both(engines: Engines, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT, v INT, p STRING) USING delta PARTITIONED BY (p) COMMENT 'a table' "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    shutil.copytree(theirs, ours)
    write(engines, theirs, ours, 0)
    write(engines, theirs, ours, 20, userMetadata="by hand", txnAppId="app", txnVersion="1")
    write(engines, theirs, ours, 40, mode="overwrite", replaceWhere="p = 'x' AND id > 38")
    for text, step in STEPS:
        engines.sql(text.format(t=f"delta.`{theirs}`")).collect()
        step(DeltaTable.forPath(engines.spark, str(ours)))
        assert load_snapshot(str(ours)).version == load_snapshot(str(theirs)).version, text
    write(engines, theirs, ours, 60, mode="overwrite", overwriteSchema="true")
    for path in (theirs, ours):
        add_foreign_entries(path)
        assert_read_alike(engines, path)
    mine, reference = (shown(engines, path) for path in (ours, theirs))
    assert [entry["operation"] for entry in mine] == [entry["operation"] for entry in reference]
    for entry, expected in zip(mine, reference, strict=True):
        assert entry == expected


@pytest.mark.cell("history and detail", "ping-pong")
def test_details_of_a_clustered_table(engines: Engines, tmp_path: Path) -> None:
    path = tmp_path / "t"
    engines.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, s STRUCT<`a b`: INT>) USING delta CLUSTER BY (id, s.`a b`) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableRowTracking' = 'true', 'odd' = 'x=,y')"
    )
    engines.sql(f"INSERT INTO delta.`{path}` SELECT id, named_struct('a b', 1) FROM range(9)")
    assert_read_alike(engines, path)
    engines.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY NONE")
    assert_read_alike(engines, path)


def write(engines: Engines, theirs: Path, ours: Path, start: int, mode: str = "append", **options: str) -> None:
    rows = engines.spark.range(start, start + 9, 1, 1).selectExpr("id", "CAST(id AS INT) AS v", "'x' AS p")
    engines.append_as_reference(rows, theirs, mode, **options)
    engines.append(rows, ours, mode, **options)


def add_foreign_entries(path: Path) -> None:
    """Entries that neither engine writes: none at all, one that has everything, and one in an odd place."""
    full = {
        "timestamp": 1_700_000_000_000, "userId": "1", "userName": "somebody", "operation": "MANUAL",
        "operationParameters": {"a": "b", "quoted": '["c"]'},
        "job": {
            "jobId": "1", "jobName": "j", "jobRunId": "2", "runId": "3", "jobOwnerId": "o", "triggerType": "manual",
        },
        "notebook": {"notebookId": "9"}, "clusterId": "c-1", "readVersion": 3, "isolationLevel": "Serializable",
        "isBlindAppend": True, "operationMetrics": {"m": "1"}, "userMetadata": "um", "tags": {"k": "v"},
        "engineInfo": "other", "txnId": "t", "inCommitTimestamp": 4_000_000_000_000, "unknown": {"to": ["both"]},
    }  # fmt: skip
    some = {"timestamp": 1, "operation": "PARTIAL", "operationParameters": {}, "inCommitTimestamp": 4_000_000_000_001}
    transaction = {"txn": {"appId": "foreign", "version": 1}}
    for lines in ([{"commitInfo": full}, transaction], [{"commitInfo": some}]):
        version = load_snapshot(str(path)).version + 1
        text = "\n".join(json.dumps(line) for line in lines)
        (path / "_delta_log" / f"{version:020}.json").write_text(text + "\n")


def assert_read_alike(engines: Engines, path: Path) -> None:
    """Names, types and order of columns, and every value."""
    from delta.tables import DeltaTable as Reference

    engines.reference_snapshot(path)
    mine, reference = (kind.forPath(engines.spark, str(path)) for kind in (DeltaTable, Reference))
    asks: list[Callable[[Any], Any]] = [lambda t: t.history(), lambda t: t.history(2), lambda t: t.detail()]
    for ask in asks:
        found, expected = ask(mine), ask(reference)
        assert found.schema == expected.schema
        for row, right in zip(found.collect(), expected.collect(), strict=True):
            assert row.asDict(True) == right.asDict(True)


def shown(engines: Engines, path: Path) -> list[dict[str, Any]]:
    """The history as we read it, without what is each engine's own; of metrics their names."""
    entries = []
    for row in DeltaTable.forPath(engines.spark, str(path)).history().collect():
        entry = {name: value for name, value in row.asDict(True).items() if name not in _OWN}
        parameters = without_predicates(row.operationParameters or {})
        entry["parameters"] = {name: parsed(value) for name, value in parameters.items()}
        # of a replacement that deletes nothing we do not say so
        entry["metrics"] = sorted(
            n for n, count in (row.operationMetrics or {}).items() if n not in _ROWS or count != "0"
        )
        entries.append(entry)
    return entries


def parsed(value: Any) -> Any:
    """JSON in a text, in whatever order its writer put it, and the features of a protocol."""
    found = json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value
    if isinstance(found, dict):
        return {name: sorted(part) if name.endswith("Features") else part for name, part in found.items()}
    return found
