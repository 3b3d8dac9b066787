"""Optimize by each engine on copies of one table: the same bins, rows, ids, tags, accounts; then they take turns."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.changed_alike import change_rows, row_ids
from tests.interop.engines import Engines
from tests.support.commits import actions

pytestmark = pytest.mark.cell("layout", "us -> reference")

_FEATURES = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.columnMapping.mode": "name",
}
# sizes are the writers' own, times and tasks the machine's
_OWN = r"Size$|size$|Bytes$|TimeMs$|^totalScheduledTasks$|^avg$|^min$|^max$"


@dataclass(frozen=True)
class Turn:
    """One command: as the reference's SQL, and by our ``DeltaTable``."""

    sql: str
    ours: Callable[[Any], Any]


COMPACT = Turn("OPTIMIZE {t}", lambda t: t.optimize().executeCompaction())
COMPACT_SOME = Turn("OPTIMIZE {t} WHERE p = 1", lambda t: t.optimize().where("p = 1").executeCompaction())
ZORDER = Turn("OPTIMIZE {t} ZORDER BY (id, s.x)", lambda t: t.optimize().executeZOrderBy("id", "s.x"))
PURGE = Turn("REORG TABLE {t} APPLY (PURGE)", lambda t: t.optimize().executePurge())
CLUSTER_BY = Turn("ALTER TABLE {t} CLUSTER BY (`n m`, s.x)", lambda t: t.clusterBy("`n m`", "s.x"))
FULL = Turn("OPTIMIZE {t} FULL", lambda t: t.optimize(full=True).executeCompaction())
NO_CLUSTER = Turn("ALTER TABLE {t} CLUSTER BY NONE", lambda t: t.clusterBy())

TABLES = {
    "partitioned": ("PARTITIONED BY (p)", {}, [COMPACT_SOME, ZORDER, COMPACT, COMPACT]),
    "features": ("", _FEATURES, [PURGE, COMPACT, ZORDER, PURGE]),
    "clustered": ("CLUSTER BY (id)", _FEATURES, [COMPACT, CLUSTER_BY, COMPACT, FULL, NO_CLUSTER]),
}


@pytest.mark.also_bounded
@pytest.mark.parametrize(("layout", "properties", "turns"), TABLES.values(), ids=list(TABLES))
def test_both_lay_out_alike(
    engines: Engines, tmp_path: Path, layout: str, properties: dict[str, str], turns: list[Turn]
) -> None:
    first = tmp_path / "first"
    settings = {"delta.columnMapping.mode": "name", **properties}
    stated = ", ".join(f"'{name}' = '{value}'" for name, value in settings.items())
    schema = "id STRING, `n m` BIGINT, p INT, s STRUCT<x: INT, y: STRING>"
    engines.sql(f"CREATE TABLE delta.`{first}` ({schema}) USING delta {layout} TBLPROPERTIES ({stated})")
    for start in range(0, 90, 30):
        append(engines, first, start)
    engines.sql(f"DELETE FROM delta.`{first}` WHERE `n m` % 10 = 3")
    second = Path(shutil.copytree(first, tmp_path / "second"))
    tracked = "delta.enableRowTracking" in properties
    for number, turn in enumerate(turns):
        theirs, ours = (first, second) if number % 2 == 0 else (second, first)
        before = engines.agree(ours)
        ids = row_ids(engines, ours) if tracked else None
        expected = engines.sql(turn.sql.format(t=f"delta.`{theirs}`"))
        found = turn.ours(delta_pyds.DeltaTable.forPath(engines.spark, str(ours)))
        if found is not None:
            assert found.schema == expected.schema
            assert told(found) == told(expected)
        version = load_snapshot(str(theirs)).version
        assert load_snapshot(str(ours)).version == version
        assert engines.agree(ours) == engines.agree(theirs) == before
        assert account(ours, version) == account(theirs, version)
        assert tags(ours, version) == tags(theirs, version)
        if ids is not None:
            assert row_ids(engines, ours) == ids
            assert change_rows(engines.reference, ours, version) == change_rows(engines.reference, theirs, version)
        engines.assert_sound(ours)
        for path in (first, second):
            append(engines, path, 1000 + 100 * number)
            engines.sql(f"DELETE FROM delta.`{path}` WHERE `n m` = {number + 1}")


def append(engines: Engines, path: Path, start: int) -> None:
    """Thirty rows in one file of each partition."""
    columns = "concat('i', id) AS id", "id AS `n m`", "CAST(id % 2 AS INT) AS p"
    struct = "named_struct('x', CAST(id % 7 AS INT), 'y', 'z') AS s"
    rows = engines.spark.range(start, start + 30, 1, 1).selectExpr(*columns, struct)
    engines.append_as_reference(rows, path)


def told(frame: Any) -> Any:
    [row] = frame.collect()
    return without_own(row.asDict(recursive=True)["metrics"])


def without_own(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: without_own(part) for name, part in value.items() if not re.search(_OWN, name)}


def account(path: Path, version: int) -> Any:
    """The commit's own description."""
    [info] = [line["commitInfo"] for line in actions(path, version) if "commitInfo" in line]
    parameters = dict(info["operationParameters"])
    if "predicate" in parameters:
        # the reference shows it as its parser left it, ('p = 1)
        parameters["predicate"] = [re.sub("[()']", "", text) for text in json.loads(parameters["predicate"])]
    names = ["operation", "isolationLevel", "isBlindAppend", "readVersion"]
    if any("add" in line for line in actions(path, version)):
        # of a commit without files the reference does not say that row ids are kept
        names.append("tags")
    return {
        **{name: info.get(name) for name in names},
        "parameters": parameters,
        "metrics": without_own(info.get("operationMetrics")),
    }


def tags(path: Path, version: int) -> Any:
    """Of each new and each old file: what readers of the log are told, but for names, sizes and statistics."""
    adds = [line["add"] for line in actions(path, version) if "add" in line]
    removes = [line["remove"] for line in actions(path, version) if "remove" in line]
    cubes = [a.get("tags") or {} for a in adds]
    told = [
        (a["partitionValues"], a["dataChange"], a.get("clusteringProvider"), cube.get("ZCUBE_ZORDER_BY"))
        for a, cube in zip(adds, cubes, strict=True)
    ]
    gone = [(r["partitionValues"], r["dataChange"]) for r in removes]
    return sorted(map(str, told)), sorted(map(str, gone)), len({cube.get("ZCUBE_ID") for cube in cubes})


def test_files_get_the_statistics_that_clustering_needs(engines: Engines, tmp_path: Path) -> None:
    """The reference lets a table be clustered by columns that its files have no statistics of; ours are made then."""
    path = tmp_path / "t"
    engines.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING, s STRUCT<x: DOUBLE>) USING delta "
        "TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1', 'delta.enableDeletionVectors' = 'true')"
    )
    select = "id", "concat('v', id) AS v", "named_struct('x', id / 2) AS s"
    for start in (0, 30):
        engines.append_as_reference(engines.spark.range(start, start + 30, 1, 1).selectExpr(*select), path)
    engines.sql(f"DELETE FROM delta.`{path}` WHERE id = 31")
    engines.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols')")
    before = engines.agree(path)
    delta_pyds.DeltaTable.forPath(engines.spark, str(path)).clusterBy("v", "s.x")
    assert engines.agree(path) == before
    # files that are added again, with more said of them, leave no number to go on with: there is no checksum
    assert not delta_pyds.verify(str(path)).findings
    # both skip by them now
    assert engines.reference(path).where("s.x < 10").count() == engines.ours(path).where("s.x < 10").count() == 20
    [kept] = [file for file in delta_pyds.explain(str(path), where="s.x < 10").files.to_pylist() if file["kept"]]
    assert kept
    engines.sql(f"OPTIMIZE delta.`{path}`")
    assert engines.agree(path) == before
    engines.assert_sound(path)
