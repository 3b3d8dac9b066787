"""Checkpoints of every kind, time travel, transaction ids, statistics: what is in the log besides rows."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from py4j.protocol import Py4JError

import delta_pyds
from delta_pyds import DeltaError
from delta_pyds.log.last_checkpoint import canonical_form, parse_last_checkpoint
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, Table, adds, checksum_file, code_of, core_rows, rows, validate
from tests.interop.features import TYPE_ROWS, value_of
from tests.support.commits import actions

_DSC = "spark.databricks.delta."
_V2 = {"delta.checkpointPolicy": "v2"}
_ONE_FILE, _PARTS, _UUID = r"parquet", r"\d{10}\.\d{10}\.parquet", r"[0-9a-f-]{36}"
_KINDS: dict[str, tuple[Mapping[str, str], Mapping[str, str], str, str]] = {
    # properties of the table, settings of the reference; what the file's name has after "checkpoint.", and the
    # statistics that files have in it
    "checkpoint classic": ({}, {}, _ONE_FILE, ""),
    "checkpoint multi-part": ({}, {f"{_DSC}checkpoint.partSize": "3"}, _PARTS, ""),
    "checkpoint V2, top level JSON": (_V2, {f"{_DSC}checkpointV2.topLevelFileFormat": "json"}, rf"{_UUID}\.json", ""),
    "checkpoint V2, top level Parquet": (
        _V2, {f"{_DSC}checkpointV2.topLevelFileFormat": "parquet"}, rf"{_UUID}\.parquet", ""),
    "checkpoint with statistics as struct only": (
        {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
        {}, _ONE_FILE, "stats_parsed"),
    "checkpoint with statistics as JSON only": (
        {"delta.checkpoint.writeStatsAsJson": "true", "delta.checkpoint.writeStatsAsStruct": "false"},
        {}, _ONE_FILE, "stats"),
}  # fmt: skip
_SELECT = ("id", "CAST(id % 3 AS INT) AS p", "concat('v', id) AS v", "named_struct('x', id / 4) AS s")


def _marks(name: str, direction: str) -> list[pytest.MarkDecorator]:
    cell = pytest.mark.cell(name, direction)
    return [cell, pytest.mark.also_bounded] if "V2" in name else [cell]


def _kinds(direction: str) -> list[Any]:
    """Multi-part checkpoints are deprecated, and the top level of those that we write is JSON."""
    theirs_alone = ("multi-part", "top level Parquet")
    return [
        pytest.param(*values, id=name, marks=_marks(name, direction))
        for name, values in _KINDS.items()
        if direction == "reference -> us" or not any(kind in name for kind in theirs_alone)
    ]


def _source(engines: Engines, first: int, end: int) -> Any:
    return engines.spark.range(first, end, 1, 2).selectExpr(*_SELECT)


def _without_commits(path: Path, before: int) -> None:
    """Take the commits away that the checkpoint stands for: nobody may need them."""
    for file in (path / "_delta_log").glob("*.json"):
        if file.name[:20].isdigit() and int(file.name[:20]) < before and "checkpoint" not in file.name:
            file.unlink()


def _assert_kind(path: Path, version: int, name: str, stats: str) -> None:
    """The checkpoint of a version is of the kind that the row of the matrix says."""
    log = path / "_delta_log"
    begin = f"{version:020}.checkpoint."
    files = [file for file in log.glob(f"{begin}*") if re.fullmatch(name, file.name.removeprefix(begin))]
    assert len(files) > 1 if name == _PARTS else len(files) == 1, sorted(f.name for f in log.iterdir())
    if stats:
        add = pq.read_schema(files[0]).field("add").type
        assert [f.name for f in add if f.name in ("stats", "stats_parsed")] == [stats]


def _set(engines: Engines, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        engines.spark.conf.set(key, value)


def _unset(engines: Engines, settings: Mapping[str, str]) -> None:
    for key in settings:
        engines.spark.conf.unset(key)


@pytest.mark.parametrize(("properties", "settings", "name", "stats"), _kinds("reference -> us"))
def test_a_checkpoint_of_the_reference(
    engines: Engines, tmp_path: Path, properties: Mapping[str, str], settings: Mapping[str, str], name: str, stats: str
) -> None:
    table = Table(engines, tmp_path / "t")
    delta_pyds.write(_source(engines, 0, 6), str(table.path), partition_by="p", properties=properties)
    _set(engines, settings)
    try:
        engines.append_as_reference(_source(engines, 6, 12), table.path, txnAppId="app", txnVersion=3)
        table.sql("DELETE FROM {t} WHERE id % 7 = 3")
        engines.checkpoint_as_reference(table.path)
    finally:
        _unset(engines, settings)
    _assert_kind(table.path, 2, name, stats)
    _without_commits(table.path, 2)
    segment = load_snapshot(str(table.path)).segment
    assert segment.checkpoint is not None and segment.checkpoint.version == 2
    assert load_snapshot(str(table.path)).transactions["app"].version == 3
    kept = delta_pyds.explain(str(table.path), where="id > 10").files.to_pylist()
    assert 0 < sum(file["kept"] for file in kept) < len(kept)
    engines.append(_source(engines, 12, 15), table.path)
    table.seen[3] = engines.agree(table.path)
    table.finish()


@pytest.mark.parametrize(("properties", "settings", "name", "stats"), _kinds("us -> reference"))
def test_a_checkpoint_of_ours(
    engines: Engines,
    tmp_path: Path,
    properties: Mapping[str, str],
    settings: Mapping[str, str],  # noqa: ARG001 - of the reference's checkpoints
    name: str,
    stats: str,
) -> None:
    table = Table(engines, tmp_path / "t")
    delta_pyds.write(_source(engines, 0, 6), str(table.path), partition_by="p", properties=properties)
    engines.append(_source(engines, 6, 12), table.path, txnAppId="app", txnVersion=3)
    table.sql("DELETE FROM {t} WHERE id % 7 = 3")
    delta_pyds.checkpoint(str(table.path))
    _assert_kind(table.path, 2, name, stats)
    _without_commits(table.path, 2)
    assert engines.reference_snapshot(table.path).logSegment().checkpointProvider().version() == 2
    table.seen[2] = engines.agree(table.path)
    # a transaction that the checkpoint alone remembers is not written again
    engines.append_as_reference(_source(engines, 6, 12), table.path, txnAppId="app", txnVersion=3)
    assert engines.agree(table.path) == table.seen[2]
    table.sql("MERGE INTO {t} t USING (SELECT 5L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    engines.append(_source(engines, 12, 15), table.path)
    table.seen[4] = engines.agree(table.path)
    table.finish()


@pytest.mark.cell("log compaction", "us -> reference")
def test_log_compaction_of_ours(engines: Engines, tmp_path: Path) -> None:
    table = Table(engines, tmp_path / "t")
    for first in range(0, 12, 3):
        table.step(lambda first=first: engines.append(_source(engines, first, first + 3), table.path))
    delta_pyds.compact_log(str(table.path), 1, 3)
    table.seen[3] = engines.agree(table.path)
    table.sql("DELETE FROM {t} WHERE id % 7 = 3")
    table.finish()


# ---- time travel


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(False, id="theirs", marks=pytest.mark.cell("time travel", "reference -> us")),
        pytest.param(True, id="ours", marks=pytest.mark.cell("time travel", "us -> reference")),
    ],
)
@pytest.mark.parametrize("in_commit", ["false", "true"])
def test_time_travel(engines: Engines, tmp_path: Path, ours: bool, in_commit: str) -> None:
    path = tmp_path / "t"
    put = engines.append if ours else engines.append_as_reference
    times = []
    for version in range(4):
        options = {"delta.enableInCommitTimestamps": in_commit} if version == 0 else {}
        put(_source(engines, version * 3, version * 3 + 3), path, **options)
        time.sleep(0.05)
        times.append(time.time())
        time.sleep(0.05)
    for version, moment in enumerate(times[:-1]):
        theirs = rows(engines.reference(path, versionAsOf=version))
        assert rows(engines.ours(path, versionAsOf=version)) == theirs == core_rows(path, version)
        text = engines.sql(f"SELECT CAST(timestamp_micros({int(moment * 1e6)}) AS STRING)").head()[0]
        at_the_time = engines.reference(path, timestampAsOf=text)
        assert rows(at_the_time) == theirs
        assert_df_equality(
            engines.ours(path, timestampAsOf=text), at_the_time, ignore_row_order=True, ignore_nullable=True
        )
    for option in ({"versionAsOf": 9}, {"timestampAsOf": "1999-01-01"}, {"timestampAsOf": "2999-01-01"}):
        ours_says, theirs_says = (
            code_of(lambda read=read, option=option: rows(read(path, **option)))
            for read in (engines.ours, engines.reference)
        )
        assert ours_says == theirs_says


# ---- transaction ids


@pytest.mark.also_bounded
@pytest.mark.parametrize(
    "ours_first",
    [
        pytest.param(False, id="theirs", marks=pytest.mark.cell("txnAppId, txnVersion", "reference -> us")),
        pytest.param(True, id="ours", marks=pytest.mark.cell("txnAppId, txnVersion", "us -> reference")),
    ],
)
def test_each_heeds_the_transactions_of_the_other(engines: Engines, tmp_path: Path, ours_first: bool) -> None:
    path = tmp_path / "t"
    first, second = engines.append, engines.append_as_reference
    if not ours_first:
        first, second = second, first
    first(_source(engines, 0, 3), path, txnAppId="a", txnVersion=5)
    before = engines.agree(path)
    for version in (4, 5):
        second(_source(engines, 0, 3), path, txnAppId="a", txnVersion=version)
    assert engines.agree(path) == before
    second(_source(engines, 3, 6), path, txnAppId="a", txnVersion=6)
    assert len(engines.agree(path)) == 6
    engines.assert_sound(path)


# ---- statistics


@pytest.mark.also_bounded
@pytest.mark.cell("statistics as tight as the reference's", "us -> reference")
def test_statistics_of_the_same_rows(engines: Engines, tmp_path: Path) -> None:
    """Usual and unusual values of every type, nested, in an array, and null in every row."""
    columns = ["id"]
    for spoken, _, value, special in TYPE_ROWS:
        name, unusual = spoken.replace(" ", "_"), value_of(value, special)
        columns += [
            f"{value} AS c_{name}",
            f"{unusual} AS u_{name}",
            f"IF(id % 5 = 0, NULL, named_struct('c', {value}, 'u', {unusual})) AS s_{name}",
            f"array({unusual}) AS l_{name}",
            f"IF(id < 0, {value}, NULL) AS n_{name}",
        ]
    df = engines.spark.range(0, 40, 1, 1).selectExpr(*columns)
    options = {"delta.dataSkippingNumIndexedCols": "-1"}
    engines.append_as_reference(df, tmp_path / "theirs", **options)
    engines.append(df, tmp_path / "ours", **options)
    assert delta_pyds.verify(str(tmp_path / "ours")).ok
    theirs, ours = (
        _flat(json.loads(adds(tmp_path / name, [0])[0]["stats"], parse_float=str)) for name in ("theirs", "ours")
    )
    assert len(theirs) > 10 * len(TYPE_ROWS)
    for leaf, value in ours.items():
        if value != theirs.get(leaf):
            # the reference cuts a text at 32 UTF-16 units, we at 32 characters: never a wider bound than its own
            assert isinstance(value, str) and leaf.startswith((".minValues", ".maxValues")), leaf
            lower, upper = sorted((value, theirs[leaf]))
            assert value == (lower if leaf.startswith(".maxValues") else upper), leaf
    assert ours.keys() == theirs.keys()


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    """Leaves by their path; numbers as numbers, since ``1.0E-3`` and ``0.001`` are one."""
    if isinstance(value, dict):
        return {k: v for name, inner in value.items() for k, v in _flat(inner, f"{path}.{name}").items()}
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return {path: value}
        return {path: value if math.isnan(number) else number}
    return {path: value}


# ---- row tracking


@pytest.mark.parametrize("dvs", ["false", "true"])
@pytest.mark.cell("row ids and row commit versions", "reference -> us")
def test_row_ids_of_the_reference(engines: Engines, tmp_path: Path, dvs: str) -> None:
    table = Table(engines, tmp_path / "t")
    table.sql(
        "CREATE TABLE {t} (id BIGINT, v STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true', "
        f"'delta.enableDeletionVectors' = '{dvs}')"
    )
    table.sql("INSERT INTO {t} SELECT id, 'a' FROM range(0, 20, 1, 2)")
    _row_commands(table)
    _assert_same_row_ids(engines, table.path)
    table.finish()


@pytest.mark.parametrize("dvs", ["false", "true"])
@pytest.mark.cell("row ids and row commit versions", "us -> reference")
def test_row_ids_of_ours(engines: Engines, tmp_path: Path, dvs: str) -> None:
    table = Table(engines, tmp_path / "t")
    df = engines.spark.range(0, 20, 1, 2).selectExpr("id", "'a' AS v")
    properties = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": dvs}
    table.step(lambda: delta_pyds.write(df, str(table.path), properties=properties))
    table.step(lambda: engines.append(df.selectExpr("id + 20 AS id", "v"), table.path))
    _assert_same_row_ids(engines, table.path)
    numbers = _row_ids(engines, table.path)
    _row_commands(table)
    table.step(
        lambda: engines.append(
            df.selectExpr("id + 14 AS id", "'r' AS v"), table.path, mode="overwrite", replaceWhere="id >= 14"
        )
    )
    _assert_same_row_ids(engines, table.path)
    # a row that stays keeps its number, whichever engine rewrites its file
    assert all(numbers[key] == number for key, number in _row_ids(engines, table.path).items() if key < 14)
    table.finish()


def _row_ids(engines: Engines, path: Path) -> dict[int, int]:
    """The row id of each id."""
    return {row.id: row.r for row in _our_row_ids(engines, path).collect()}


def _row_commands(table: Table) -> None:
    table.sql("UPDATE {t} SET v = 'u' WHERE id % 5 = 0")
    table.sql("DELETE FROM {t} WHERE id = 3")
    table.sql("OPTIMIZE {t}")
    table.sql(
        "MERGE INTO {t} t USING (SELECT id FROM range(8, 12)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')"
    )


def _our_row_ids(engines: Engines, path: Path) -> Any:
    df = delta_pyds.read(engines.spark, str(path), row_ids=True)
    return df.selectExpr("id", "_row_id AS r", "_row_commit_version AS c")


def _assert_same_row_ids(engines: Engines, path: Path) -> None:
    theirs = engines.reference(path)
    assert_df_equality(
        _our_row_ids(engines, path),
        theirs.selectExpr("id", "_metadata.row_id AS r", "_metadata.row_commit_version AS c"),
        ignore_row_order=True,
        ignore_nullable=True,
        ignore_metadata=True,
    )


# ---- version checksums


@pytest.mark.also_bounded
@pytest.mark.cell("native engine", "reference -> us")
def test_the_native_engine_beside_the_reference(engines: Engines, tmp_path: Path) -> None:
    """Whatever the reference sets in the session, Spark's own reader serves us still, and both return the same."""
    table = Table(engines, tmp_path / "t")
    table.sql(
        "CREATE TABLE {t} (id BIGINT, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    table.sql("INSERT INTO {t} SELECT id, id % 2 FROM range(0, 40, 1, 2)")
    table.sql("DELETE FROM {t} WHERE id % 3 = 0")
    df = delta_pyds.read(engines.spark, str(table.path))
    assert delta_pyds.explain(df).engine == "native", delta_pyds.explain(df)
    assert rows(df) == table.seen[max(table.seen)]
    table.finish()


@pytest.mark.also_bounded
@pytest.mark.parametrize("wrong", ["numFiles", "tableSizeBytes", "txnId"])
@pytest.mark.cell("version checksum", "us -> reference")
def test_the_reference_validates_our_checksum(engines: Engines, tmp_path: Path, wrong: str) -> None:
    """It takes what we write, and not what is wrong: so the validation of every other test means something."""
    path = tmp_path / "t"
    engines.append(_source(engines, 0, 6), path)
    engines.assert_sound(path)
    file = checksum_file(path, 0)
    content = json.loads(file.read_text())
    content[wrong] = "another" if wrong == "txnId" else content[wrong] + 1
    file.write_text(json.dumps(content))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    with pytest.raises((AssertionError, Py4JError, DeltaError)):
        engines.assert_sound(path)
    if wrong != "txnId":
        with pytest.raises(Py4JError, match=r"(?i)checksum|mismatch"):
            validate(engines.reference_snapshot(path))


@pytest.mark.also_bounded
@pytest.mark.cell("version checksum", "reference -> us")
def test_we_validate_the_checksum_of_the_reference(engines: Engines, tmp_path: Path) -> None:
    path = tmp_path / "t"
    engines.append_as_reference(_source(engines, 0, 6), path)
    assert load_snapshot(str(path)).verify_checksum()
    file = checksum_file(path, 0)
    content = json.loads(file.read_text())
    content["tableSizeBytes"] += 1
    file.write_text(json.dumps(content))
    with pytest.raises(DeltaError, match="tableSizeBytes"):
        load_snapshot(str(path)).verify_checksum()


# ---- in-commit timestamps, history


@pytest.mark.parametrize(
    "ours",
    [
        pytest.param(False, id="theirs", marks=pytest.mark.cell("history", "reference -> us")),
        pytest.param(True, id="ours", marks=pytest.mark.cell("history", "us -> reference")),
    ],
)
def test_history(engines: Engines, tmp_path: Path, ours: bool) -> None:
    from delta_pyds.table.history import history

    path = tmp_path / "t"
    put = engines.append if ours else engines.append_as_reference
    put(_source(engines, 0, 3), path, **{"delta.enableInCommitTimestamps": "true"})
    put(_source(engines, 3, 6), path, userMetadata="note")
    put(_source(engines, 6, 9), path, mode="overwrite")
    snapshot = load_snapshot(str(path))
    mine = sorted(
        (r.version, r.timestamp_ms, r.commit_info.operation if r.commit_info else None)
        for r in history(snapshot.storage, snapshot.table_root)
    )
    theirs = engines.sql(f"DESCRIBE HISTORY delta.`{path}`").selectExpr(
        "version", "unix_millis(timestamp) AS t", "operation", "userMetadata", "operationParameters['mode'] AS mode"
    )
    found = sorted(theirs.collect(), key=lambda row: row.version)
    assert [(r.version, r.t, r.operation) for r in found] == mine
    assert [(r.operation, r.mode) for r in found[1:]] == [("WRITE", "Append"), ("WRITE", "Overwrite")]
    assert found[1].userMetadata == "note"
    assert "inCommitTimestamp" in actions(path, 2)[0]["commitInfo"]


_MANY_FEATURES = (
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
    "identityColumns", "deletionVectors", "v2Checkpoint", "domainMetadata", "vacuumProtocolCheck", "inCommitTimestamp",
    "typeWidening",
)  # fmt: skip


@pytest.mark.also_bounded
@pytest.mark.cell("checkpoint hint of a table with many features", "ping-pong")
def test_either_engine_takes_the_others_hint_of_a_table_with_many_features(engines: Engines, tmp_path: Path) -> None:
    """A V2 checkpoint's hint repeats the protocol, whose list has more than ten elements here."""
    table = Table(engines, tmp_path / "t")
    features = {f"delta.feature.{name}": "supported" for name in _MANY_FEATURES}
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in {**features, **_V2}.items())
    table.sql(
        f"CREATE TABLE {{t}} (id LONG, p INT, v STRING, s STRUCT<x: DOUBLE>) USING delta TBLPROPERTIES ({properties})"
    )
    hint = table.path / "_delta_log" / "_last_checkpoint"
    engines.append_as_reference(_source(engines, 0, 10), table.path)
    engines.checkpoint_as_reference(table.path)
    assert "+10=" in canonical_form(json.loads(hint.read_text()))
    assert parse_last_checkpoint(hint.read_bytes()).version == 1
    engines.append(_source(engines, 10, 20), table.path)
    delta_pyds.checkpoint(str(table.path))
    text = hint.read_text()
    assert "+10=" in canonical_form(json.loads(text))
    info = engines.spark._jvm.org.apache.spark.sql.delta.LastCheckpointInfo
    assert info.deserializeFromJson(text, True).version() == 2
    other = text.replace('"size":', '"size":1')
    with pytest.raises(Py4JError):
        info.deserializeFromJson(other, True)
    engines.assert_sound(table.path)


@pytest.mark.cell("log clean-up of V2 checkpoints", "ping-pong")
def test_old_readers_find_a_checkpoint_of_the_classic_name(engines: Engines, tmp_path: Path) -> None:
    """Each engine puts one before it cleans a log up; it holds the same, and the other engine reads the table by it."""
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    engines.sql(
        f"CREATE TABLE delta.`{theirs}` (id BIGINT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', "
        "'delta.checkpointInterval' = '2', 'delta.logRetentionDuration' = 'interval 1 day', "
        "'delta.deletedFileRetentionDuration' = 'interval 1 day')"
    )
    for n in range(4):
        engines.sql(f"INSERT INTO delta.`{theirs}` VALUES {n}")
    for number, file in enumerate(sorted((theirs / "_delta_log").rglob("0*"))):
        when = time.time() - 72 * 3600 + number
        os.utime(file, (when, when))
    shutil.copytree(theirs, ours)
    for n in (5, 6):
        engines.sql(f"INSERT INTO delta.`{theirs}` VALUES {n}")
        engines.append(engines.spark.range(n, n + 1, 1, 1), ours)
    found = {}
    late = {f"{_DSC}vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"}
    for path in (theirs, ours):
        assert len(engines.agree(path)) == 6
        [classic] = (path / "_delta_log").glob("*.checkpoint.parquet")
        # the commits before are gone
        assert not (path / "_delta_log" / f"{0:020}.json").exists()
        rows = {name: [row for row in column.to_pylist() if row] for name, column in _columns(classic)}
        [protocol], [metadata], [mark] = rows["protocol"], rows["metaData"], rows["checkpointMetadata"]
        found[path] = (classic.name, sorted(protocol["readerFeatures"]), metadata["id"], mark["version"])
        assert rows["sidecar"] and not rows.get("add")
        # by it alone
        for uuid_named in (path / "_delta_log").glob(f"{classic.name[:20]}.checkpoint.*-*"):
            uuid_named.unlink()
        _set(engines, late)
        try:
            assert engines.reference(path, versionAsOf=mark["version"]).count() == mark["version"]
            assert len(core_rows(path, mark["version"])) == mark["version"]
        finally:
            _unset(engines, late)
    assert found[ours] == found[theirs]


def _columns(file: Path) -> Any:
    table = pq.read_table(file)
    return zip(table.column_names, table.columns, strict=True)
