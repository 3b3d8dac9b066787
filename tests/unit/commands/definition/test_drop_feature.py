"""Features taken away: nothing of them is left in the table, and what still needs them forbids it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from delta_pyds.commands import maintain
from delta_pyds.commands.definition.alter_column import ColumnChange, alter_column
from delta_pyds.commands.definition.constraints import drop_constraint
from delta_pyds.commands.definition.drop_feature import drop_feature
from delta_pyds.commands.definition.feature_artifacts import Dropping
from delta_pyds.commands.definition.properties import set_properties, unset_properties
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.errors import ConflictError, DeltaError, UserError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.listing import list_log
from delta_pyds.log.segment import complete_checkpoints
from delta_pyds.protocol.actions import DomainMetadata, Protocol
from delta_pyds.protocol.schema import StructField, parse_type
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.history import history
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction
from delta_pyds.verification.verify import verify
from tests.support.definitions import alter, commit_info, define
from tests.support.planned_changes import delete
from tests.support.table_writes import read_rows, struct, write_rows

IDS = {"id": "long"}


def table(path: Path, **properties: str) -> None:
    named = {"delta." + key.replace("_", "."): value for key, value in properties.items()}
    define(path, IDS, properties=named)
    write_rows(path, IDS, [{"id": 1}, {"id": 2}])


def drop(path: Path, name: str, **more: Any) -> Snapshot:
    drop_feature(Dropping(lambda: load_snapshot(path)), name, **more)
    report = verify(str(path))
    assert not report.findings, report
    assert sorted(row["id"] for row in read_rows(path)) == [1, 2]
    return load_snapshot(path)


def refusal(path: Path, name: str, **more: Any) -> DeltaError:
    version = load_snapshot(path).version
    with pytest.raises(DeltaError) as error:
        drop(path, name, **more)
    assert load_snapshot(path).version == version
    return error.value


@pytest.mark.parametrize("feature", ["deletionVectors", "vacuumProtocolCheck"])
def test_a_feature_is_dropped_from_a_table_with_v2_checkpoints(tmp_path: Path, feature: str) -> None:
    properties = {f"delta.feature.{feature}": "supported", "delta.checkpointPolicy": "v2"}
    define(tmp_path, IDS, properties=properties)
    write_rows(tmp_path, IDS, [{"id": 1}, {"id": 2}])
    after = drop(tmp_path, feature)
    assert set(after.protocol.reader_features or ()) == {"v2Checkpoint"}
    kinds = {found.kind for found in complete_checkpoints(list_log(LocalStorage(), str(tmp_path)))}
    assert kinds == {"v2-json"}
    with pytest.raises(UserError) as waiting:
        drop(tmp_path, "checkpointProtection", truncate_history=True)
    assert waiting.value.code == "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    after = drop(tmp_path, "v2Checkpoint")
    assert "v2Checkpoint" not in (after.protocol.writer_features or ())
    assert after.replay.checkpoint is not None
    assert not after.replay.checkpoint.is_v2()


def test_row_tracking_leaves_nothing_behind(tmp_path: Path) -> None:
    table(tmp_path, enableRowTracking="true")
    assert refusal(tmp_path, "domainMetadata").code == "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"

    after = drop(tmp_path, "ROWTRACKING")

    assert after.protocol == Protocol(1, 7, None, ["appendOnly", "domainMetadata", "invariants"])
    assert (dict(after.configuration.configuration), dict(after.domain_metadata)) == ({}, {})
    [batch] = after.adds(AddRequest(columns=("baseRowId", "defaultRowCommitVersion")))
    assert [column.null_count for column in batch.files.columns] == [1, 1]
    assert commit_info(tmp_path)["operationParameters"] == {"featureName": "rowTracking", "truncateHistory": False}
    assert commit_info(tmp_path, -2)["operation"] == "ROW TRACKING UNBACKFILL"
    write_rows(tmp_path, IDS, [])
    assert drop(tmp_path, "domainMetadata").protocol == Protocol(1, 2)


def test_rows_that_go_meanwhile_do_not_stop_it(tmp_path: Path) -> None:
    """Ids are taken from the files that are left, in the first run."""
    table(tmp_path, enableRowTracking="true")
    write_rows(tmp_path, IDS, [{"id": 3}])

    def open_table() -> Snapshot:
        snapshot = load_snapshot(tmp_path)
        if operations(tmp_path)[-1] == "SET TBLPROPERTIES":
            delete(tmp_path, "id = 3")
        return snapshot

    drop_feature(Dropping(open_table), "rowTracking")

    done = operations(tmp_path)
    assert done[-3:] == ["DELETE", "ROW TRACKING UNBACKFILL", "DROP FEATURE"]
    assert done.count("SET TBLPROPERTIES") == 1
    assert not verify(str(tmp_path)).findings
    assert [row["id"] for row in read_rows(tmp_path)] == [1, 2]


def test_a_step_that_loses_a_race_is_made_again(tmp_path: Path) -> None:
    """And where they never end, it is said what is turned off now."""
    table(tmp_path, enableRowTracking="true")
    races = 0

    def open_table() -> Snapshot:
        nonlocal races
        snapshot = load_snapshot(tmp_path)
        if races < most and operations(tmp_path)[-1] != "DROP FEATURE":
            races += 1
            alter(tmp_path, lambda s: set_properties(s, {"delta.appendOnly": str(bool(races % 2)).lower()}))
        return snapshot

    most = 1000
    with pytest.raises(ConflictError, match="rowTrackingSuspended") as error:
        drop_feature(Dropping(open_table), "rowTracking")
    assert error.value.code == "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL"
    most = races + 2
    drop_feature(Dropping(open_table), "rowTracking")
    assert operations(tmp_path)[-1] == "DROP FEATURE" and not verify(str(tmp_path)).findings


def test_in_commit_timestamps_end(tmp_path: Path) -> None:
    table(tmp_path)
    alter(tmp_path, lambda s: set_properties(s, {"delta.enableInCommitTimestamps": "true"}))

    after = drop(tmp_path, "inCommitTimestamp")

    assert after.protocol == Protocol(1, 2)
    assert dict(after.configuration.configuration) == {"delta.enableInCommitTimestamps": "false"}


def test_domains_that_were_left_behind_go_with_their_feature(tmp_path: Path) -> None:
    table(tmp_path, feature_domainMetadata="supported")
    snapshot = load_snapshot(tmp_path)
    transaction = Transaction(snapshot)
    transaction.set_domain(DomainMetadata("mine", "{}"))
    transaction.commit(Operation("TEST", {}))

    after = drop(tmp_path, "domainMetadata")

    assert (after.protocol, dict(after.domain_metadata)) == (Protocol(1, 2), {})
    assert commit_info(tmp_path, -2)["operation"] == "DOMAIN METADATA CLEANUP"


def test_constraints_go_before_their_feature(tmp_path: Path) -> None:
    table(tmp_path, constraints_c="id > 0")
    assert refusal(tmp_path, "checkConstraints").code == "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE"
    alter(tmp_path, lambda s: drop_constraint(s, "c"))
    assert drop(tmp_path, "checkConstraints").protocol == Protocol(1, 2)


def test_another_writer_is_seen(tmp_path: Path) -> None:
    """The commit that drops comes right after the version that was looked at, or everything is looked at again."""
    table(tmp_path, feature_checkConstraints="supported")
    opened = []

    def open_table() -> Snapshot:
        snapshot = load_snapshot(tmp_path)
        if len(opened) == 1:
            write_rows(tmp_path, IDS, [{"id": 3}])
        opened.append(snapshot.version)
        return snapshot

    drop_feature(Dropping(open_table), "checkConstraints")

    assert opened == [1, 1, 2]
    assert load_snapshot(tmp_path).protocol == Protocol(1, 2)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("nosuch", "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        ("delta.appendOnly", "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY"),
        ("checkConstraints", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        ("appendOnly", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("timestampNtz", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        ("variantType", "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
    ],
)
def test_features_that_are_not_dropped(tmp_path: Path, name: str, code: str) -> None:
    table(tmp_path, feature_timestampNtz="supported", feature_variantType="supported")
    assert refusal(tmp_path, name).code == code


# --- features of readers


def operations(path: Path) -> list[str]:
    records = list(history(LocalStorage(), str(path)))
    return [str(record.commit_info and record.commit_info.operation) for record in reversed(records)]


def checkpoints(path: Path) -> dict[int, str]:
    return {c.version: c.kind for c in complete_checkpoints(list_log(LocalStorage(), str(path)))}


BARRIER = ["Empty Commit"] * 3 + ["DROP FEATURE"]


def protected(path: Path, features: list[str], **properties: str) -> Snapshot:
    """The traces of each fast drop: the feature in no list, checkpoints before it, and the property."""
    after = load_snapshot(path)
    version = after.version
    assert after.protocol == Protocol(1, 7, None, sorted(["checkpointProtection", *features]))
    expected = {"delta.requireCheckpointProtectionBeforeVersion": str(version), **properties}
    assert dict(after.configuration.configuration) == expected
    found = checkpoints(path)
    assert [found.get(v) for v in range(version - 3, version + 1)] == ["classic"] * 4
    assert operations(path)[-4:] == BARRIER
    return after


def test_deletion_vectors_go_and_their_files_are_kept_from_vacuum(tmp_path: Path) -> None:
    table(tmp_path, enableDeletionVectors="true")
    write_rows(tmp_path, IDS, [{"id": 3}, {"id": 4}])
    delete(tmp_path, "id = 3")
    delete(tmp_path, "id = 4")
    write_rows(tmp_path, IDS, [{"id": 5}, {"id": 6}])
    delete(tmp_path, "id = 5")
    delete(tmp_path, "id = 1 OR id = 6")
    write_rows(tmp_path, IDS, [{"id": 1}])
    [add] = [file for file in live_files(plan_scan(load_snapshot(tmp_path))) if file.deletion_vector is not None]
    before = load_snapshot(tmp_path).version

    drop(tmp_path, "deletionVectors")

    protected(tmp_path, ["appendOnly", "invariants"])
    assert operations(tmp_path)[before + 1 : -4] == ["UNSET TBLPROPERTIES", "REORG", "Deletion Vector Tombstones"]
    removed = {
        path for batch in load_snapshot(tmp_path).replay.tombstones(0) for path in batch.column("path").to_pylist()
    }
    vectors = {file.name for file in tmp_path.glob("*.bin")}
    assert vectors and vectors <= removed and add.path in removed
    assert sorted(row["id"] for row in read_rows(tmp_path, before)) == [1, 2]
    for file in (*tmp_path.glob("*.bin"), *tmp_path.glob("*.parquet")):
        os.utime(file, (0, 0))
    run_vacuum(plan_vacuum(LocalStorage(), str(tmp_path), VacuumOptions(log_entries=False)))
    assert vectors == {file.name for file in tmp_path.glob("*.bin")}
    assert load_snapshot(tmp_path).verify_checksum()
    restore(load_snapshot(tmp_path), RestoreOptions(version=before))
    assert load_snapshot(tmp_path).configuration.supports("deletionVectors")
    assert sorted(row["id"] for row in read_rows(tmp_path)) == [1, 2]
    assert not verify(str(tmp_path)).findings


def test_column_mapping_goes_with_its_names(tmp_path: Path) -> None:
    table(tmp_path, columnMapping_mode="name")

    after = drop(tmp_path, "columnMapping")

    protected(tmp_path, ["appendOnly", "invariants"])
    assert [dict(f.metadata) for f in after.schema] == [{}]
    [file] = live_files(plan_scan(after))
    assert pq.read_schema(tmp_path / file.path).names == ["id"]


def test_a_legacy_protocol_becomes_one_with_lists(tmp_path: Path) -> None:
    """The features that its version stood for stay supported."""
    table(tmp_path, minReaderVersion="2", minWriterVersion="5", columnMapping_mode="name")

    drop(tmp_path, "columnMapping")

    protected(tmp_path, ["appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"])


def test_widened_columns_are_written_anew_where_files_are_narrow(tmp_path: Path) -> None:
    schema = {"id": "integer", "s": {"type": "array", "elementType": "integer", "containsNull": True}}
    define(tmp_path, struct(schema), properties={"delta.enableTypeWidening": "true"})
    write_rows(tmp_path, schema, [{"id": 1, "s": [7]}])
    for name, wider in (("id", "long"), ("s", {**schema["s"], "elementType": "long"})):  # type: ignore[dict-item]
        change = ColumnChange(field_type=StructField(name, parse_type(wider), True))
        alter(tmp_path, lambda s, n=name, c=change: alter_column(s, (n,), c))  # type: ignore[misc]
    write_rows(tmp_path, load_snapshot(tmp_path).schema, [{"id": 2, "s": None}])
    kept = {file.path for file in live_files(plan_scan(load_snapshot(tmp_path)))}

    after = drop(tmp_path, "typeWidening")

    protected(tmp_path, ["appendOnly", "invariants"])
    assert operations(tmp_path)[-7:-4] == ["UNSET TBLPROPERTIES", "REORG", "DROP FEATURE"]
    assert [dict(f.metadata) for f in after.schema] == [{}, {}]
    now = {file.path for file in live_files(plan_scan(after))}
    assert len(now & kept) == 1 and len(now - kept) == 1
    types = {str(pq.read_schema(tmp_path / path).field("id").type) for path in now}
    assert types == {"int64"}


def test_checkpoints_become_classic_ones(tmp_path: Path) -> None:
    table(tmp_path, checkpointPolicy="v2", checkpointInterval="1")
    assert set(checkpoints(tmp_path).values()) == {"v2-json"}

    drop(tmp_path, "v2Checkpoint")

    protected(
        tmp_path, ["appendOnly", "invariants"],
        **{"delta.checkpointPolicy": "classic", "delta.checkpointInterval": "1"},
    )  # fmt: skip


def test_where_no_checkpoint_can_be_written_the_feature_stays(tmp_path: Path) -> None:
    table(tmp_path, feature_vacuumProtocolCheck="supported")
    for version in range(1, 20):
        (tmp_path / "_delta_log" / f"{version:020}.checkpoint.parquet").mkdir()

    with pytest.raises(DeltaError, match="drop the feature again") as caught:
        drop(tmp_path, "vacuumProtocolCheck")

    assert caught.value.code == "DELTA_FEATURE_DROP_CHECKPOINT_FAILED"
    assert load_snapshot(tmp_path).protocol.reader_features == ["vacuumProtocolCheck"]


def test_two_features_are_dropped_one_after_the_other(tmp_path: Path) -> None:
    table(tmp_path, enableDeletionVectors="true", feature_vacuumProtocolCheck="supported")
    drop(tmp_path, "vacuumProtocolCheck")
    first = load_snapshot(tmp_path)
    assert first.protocol.reader_features == ["deletionVectors"]

    drop(tmp_path, "deletionVectors")

    assert protected(tmp_path, ["appendOnly", "invariants"]).version > first.version


def test_protected_versions_go_all_together(tmp_path: Path) -> None:
    """No clean-up leaves some of them: a reader of the oldest one left may not know the feature."""
    table(tmp_path, feature_vacuumProtocolCheck="supported", logRetentionDuration="interval 7 days")
    drop(tmp_path, "vacuumProtocolCheck")
    dropped = load_snapshot(tmp_path).version
    code = "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION"
    assert refusal(tmp_path, "checkpointProtection").code == code
    with pytest.raises(UserError) as error:
        drop(tmp_path, "checkpointProtection", truncate_history=True)
    assert error.value.code == "DELTA_FEATURE_DROP_CHECKPOINT_PROTECTION_WAIT_FOR_RETENTION_PERIOD"
    age(tmp_path, hours=240, last=dropped - 1)
    maintain.checkpoint(tmp_path)
    assert min(file.version for file in list_log(LocalStorage(), str(tmp_path)).commits) == 0

    after = drop(tmp_path, "checkpointProtection", truncate_history=True)

    assert after.protocol == Protocol(1, 2)
    assert dict(after.configuration.configuration) == {"delta.logRetentionDuration": "interval 7 days"}
    listing = list_log(LocalStorage(), str(tmp_path))
    assert min(file.version for file in (*listing.commits, *listing.checkpoints)) == dropped


@pytest.mark.parametrize("clean", [False, True])
def test_history_is_truncated_after_its_time(tmp_path: Path, clean: bool) -> None:
    """In two calls where the table used the feature; a clean table waits until old versions are old enough."""
    table(tmp_path, enableDeletionVectors="true")
    write_rows(tmp_path, IDS, [{"id": 3}])
    delete(tmp_path, "id = 3")
    write_rows(tmp_path, IDS, [{"id": 4}, {"id": 5}])
    delete(tmp_path, "id = 4")
    delete(tmp_path, "id = 5")
    if clean:
        alter(tmp_path, lambda s: unset_properties(s, ["delta.enableDeletionVectors"]))
    for code in ("HISTORICAL_VERSIONS_EXIST" if clean else "WAIT_FOR_RETENTION_PERIOD", "HISTORICAL_VERSIONS_EXIST"):
        with pytest.raises(UserError) as error:
            drop(tmp_path, "deletionVectors", truncate_history=True)
        assert error.value.code == f"DELTA_FEATURE_DROP_{code}"
        assert load_snapshot(tmp_path).configuration.supports("deletionVectors")
    age(tmp_path, hours=25, last=load_snapshot(tmp_path).version)

    after = drop(tmp_path, "deletionVectors", truncate_history=True)

    assert after.protocol == Protocol(1, 2)
    assert dict(after.configuration.configuration) == {}
    assert commit_info(tmp_path)["operationParameters"] == {"featureName": "deletionVectors", "truncateHistory": True}
    assert min(file.version for file in list_log(LocalStorage(), str(tmp_path)).commits) == after.version - 3


def age(path: Path, hours: float, last: int) -> None:
    """The log's files up to that version as if they had been written so much earlier, one minute after the other."""
    now = time.time()
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) <= last:
            when = now - hours * 3600 - 60 * (last - int(file.name[:20]))
            os.utime(file, (when, when))


def test_a_feature_that_is_used_again_is_taken_away_again(tmp_path: Path) -> None:
    table(tmp_path, enableDeletionVectors="true")
    calls = []

    def open_table() -> Snapshot:
        calls.append(load_snapshot(tmp_path).version)
        if operations(tmp_path)[-1] == "Empty Commit" and len(calls) < 9:
            alter(tmp_path, lambda s: set_properties(s, {"delta.enableDeletionVectors": "true"}))
        return load_snapshot(tmp_path)

    drop_feature(Dropping(open_table), "deletionVectors")

    protected(tmp_path, ["appendOnly", "invariants"])
    assert operations(tmp_path).count("SET TBLPROPERTIES") > 0


def test_appends_of_others_do_not_begin_it_anew(tmp_path: Path) -> None:
    table(tmp_path, feature_vacuumProtocolCheck="supported")
    rows = 3

    def open_table() -> Snapshot:
        nonlocal rows
        snapshot = load_snapshot(tmp_path)
        if operations(tmp_path)[-3:] == ["Empty Commit"] * 3 or rows == 4:
            write_rows(tmp_path, IDS, [{"id": rows}])
            rows += 1
        return snapshot

    drop_feature(Dropping(open_table), "vacuumProtocolCheck")

    done = operations(tmp_path)
    assert done.count("Empty Commit") == 3 and done.count("DROP FEATURE") == 1
    version = done.index("DROP FEATURE")
    found = load_snapshot(tmp_path).configuration.configuration
    assert found["delta.requireCheckpointProtectionBeforeVersion"] == str(version)


def test_a_restore_between_brings_no_narrow_file_into_a_table_without_the_feature(tmp_path: Path) -> None:
    define(tmp_path, struct({"id": "integer"}), properties={"delta.enableTypeWidening": "true"})
    write_rows(tmp_path, {"id": "integer"}, [{"id": 1}, {"id": 2}])
    change = ColumnChange(field_type=StructField("id", parse_type("long"), True))
    alter(tmp_path, lambda s: alter_column(s, ("id",), change))
    restored = []

    def open_table() -> Snapshot:
        if operations(tmp_path)[-1] == "REORG" and not restored:
            restored.append(load_snapshot(tmp_path).version - 1)
            restore(load_snapshot(tmp_path), RestoreOptions(version=restored[0]))
        return load_snapshot(tmp_path)

    drop_feature(Dropping(open_table), "typeWidening")

    [file] = live_files(plan_scan(load_snapshot(tmp_path)))
    assert restored and str(pq.read_schema(tmp_path / file.path).field("id").type) == "int64"
    assert not verify(str(tmp_path)).findings


def test_a_vector_that_is_named_by_an_absolute_path_below_the_root_is_kept_too(tmp_path: Path) -> None:
    """As a table has it that was replaced by a clone of its own clone."""
    table(tmp_path, enableDeletionVectors="true")
    write_rows(tmp_path, IDS, [{"id": 3}, {"id": 4}])
    delete(tmp_path, "id = 3")
    [vector] = tmp_path.glob("*.bin")
    log = tmp_path / "_delta_log"
    commit = log / f"{load_snapshot(tmp_path).version:020}.json"
    odd = re.sub(r'"u","pathOrInlineDv":"[^"]*"', f'"p","pathOrInlineDv":"file:{vector}"', commit.read_text())
    commit.write_text(odd)
    for file in log.glob("*.crc"):
        file.unlink()
    delete(tmp_path, "id = 4")

    drop(tmp_path, "deletionVectors")

    tombstones = load_snapshot(tmp_path).replay.tombstones(0)
    assert vector.name in {path for batch in tombstones for path in batch.column("path").to_pylist()}


def test_ids_that_no_mapping_asks_for_go_with_the_feature(tmp_path: Path) -> None:
    table(tmp_path, feature_columnMapping="supported")
    log = tmp_path / "_delta_log"
    commit = log / f"{0:020}.json"
    stray = '"metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"x"}'.replace('"', '\\"')
    text = commit.read_text()
    assert text.count('\\"metadata\\":{}') == 1
    commit.write_text(text.replace('\\"metadata\\":{}', stray))
    for file in log.glob("*.crc"):
        file.unlink()

    after = drop(tmp_path, "columnMapping")

    assert "columnMapping" not in str(after.metadata.schema_string)
    assert "REMOVE COLUMN MAPPING" not in operations(tmp_path)
    protected(tmp_path, ["appendOnly", "invariants"])


def test_a_live_file_whose_path_has_a_tombstone_with_a_vector_is_written_anew(tmp_path: Path) -> None:
    """Readers that know no vectors would take it for the file's own."""
    table(tmp_path, enableDeletionVectors="true")
    [before] = live_files(plan_scan(load_snapshot(tmp_path)))
    version = load_snapshot(tmp_path).version
    delete(tmp_path, "id = 1")
    restore(load_snapshot(tmp_path), RestoreOptions(version=version))

    [after] = live_files(plan_scan(drop(tmp_path, "deletionVectors")))

    assert after.path != before.path


def test_a_replacement_goes_on_protecting(tmp_path: Path) -> None:
    table(tmp_path, feature_vacuumProtocolCheck="supported")
    drop(tmp_path, "vacuumProtocolCheck")
    number = load_snapshot(tmp_path).configuration.configuration
    define(tmp_path, IDS, "replace")
    assert load_snapshot(tmp_path).configuration.configuration == number
