"""Each cell of the decision table: what a winner may have done, against what we read and do, by isolation level."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest

from delta_pyds.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConflictError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedFeatureError,
)
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SingleAction,
)
from delta_pyds.protocol.schema import DATE, LONG, STRING, TIMESTAMP, StructField, StructType, schema_to_string
from delta_pyds.table.transaction.conflict import (
    Adopted,
    IsolationLevel,
    ReadPredicate,
    TransactionInfo,
    WinningCommit,
    check_definition,
    check_files,
)

SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("p", STRING),
        StructField("n", LONG),
        StructField("t", TIMESTAMP),
        StructField("d", DATE),
    )
)
PARTITIONS = ("p", "n", "t", "d")
PROTOCOL = Protocol(1, 2)
METADATA = Metadata(id="id", schema_string=schema_to_string(SCHEMA), partition_columns=[], configuration={})
BOTH = pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable"])


def predicate(text: str, schema: StructType = SCHEMA, zone: str | None = None) -> ReadPredicate:
    return ReadPredicate(parse_predicate(text, schema, time_zone="UTC").expr, zone)


def current(
    isolation: Any = "Serializable", *, partitioned: bool = False, where: str | None = None, **given: Any
) -> TransactionInfo:
    predicates = () if where is None else (predicate(where, zone=given.pop("zone", None)),)
    return TransactionInfo(
        "UPDATE", "/t", isolation, SCHEMA, PARTITIONS if partitioned else (), predicates=predicates, **given
    )


def winner(*actions: Any, blind: bool | None = None, operation: str = "WRITE", tags: Any = None) -> WinningCommit:
    info = CommitInfo(operation=operation, is_blind_append=blind, tags=tags)
    names = {
        AddFile: "add", RemoveFile: "remove", Metadata: "meta_data", Protocol: "protocol", SetTransaction: "txn",
        DomainMetadata: "domain_metadata", AddCDCFile: "cdc",
    }  # fmt: skip
    return WinningCommit.of(
        8, [SingleAction(commit_info=info), *(SingleAction(**{names[type(a)]: a}) for a in actions)]
    )


def run(
    mine: TransactionInfo, other: WinningCommit, protocol: Protocol = PROTOCOL, metadata: Metadata = METADATA
) -> Adopted:
    adopted = check_definition(mine, other, protocol, metadata)
    check_files(mine, other)
    return adopted


def add(path: str = "new", **partition: str | None) -> AddFile:
    values: dict[str, str | None] = {"p": "a", "n": "1", "t": None, "d": None}
    return AddFile(path, {**values, **partition})


def metadata(configuration: dict[str, str | None] | None = None, **changes: Any) -> Metadata:
    values: dict[str, Any] = {
        "id": "id",
        "schema_string": METADATA.schema_string,
        "partition_columns": [],
        "configuration": configuration or {},
    }
    return Metadata(**{**values, **changes})


# --- 1: the protocol


@BOTH
def test_a_winner_without_anything_that_matters_changes_nothing(isolation: IsolationLevel) -> None:
    adopted = run(current(isolation, read_whole_table=True), winner())
    assert adopted == Adopted(PROTOCOL, METADATA, False)


@BOTH
@pytest.mark.parametrize(
    "protocol", [Protocol(3, 7, ["fancyReads"], ["fancyReads"]), Protocol(4, 8), Protocol(1, 7, None, ["fancyWrites"])]
)
def test_a_protocol_that_we_cannot_follow_is_named(isolation: IsolationLevel, protocol: Protocol) -> None:
    with pytest.raises(UnsupportedFeatureError):
        run(current(isolation, blind_append=True), winner(protocol))


@BOTH
def test_two_changes_of_the_protocol_conflict(isolation: IsolationLevel) -> None:
    with pytest.raises(ProtocolChangedError) as error:
        run(current(isolation, changes_protocol=True, blind_append=True), winner(Protocol(1, 3)))
    assert error.value.code == "DELTA_PROTOCOL_CHANGED"


@BOTH
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Protocol(1, 3), Protocol(1, 2)),
        (Protocol(1, 7, None, ["appendOnly", "checkConstraints"]), Protocol(1, 7, None, ["appendOnly"])),
        (Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly"]), Protocol(1, 7, None, ["appendOnly"])),
    ],
)
def test_a_winner_that_drops_a_feature_conflicts(isolation: IsolationLevel, before: Protocol, after: Protocol) -> None:
    with pytest.raises(ProtocolChangedError, match="dropped table features"):
        run(current(isolation, blind_append=True), winner(after), before)


@BOTH
@pytest.mark.parametrize("after", [Protocol(1, 4), Protocol(1, 7, None, ["appendOnly", "invariants", "rowTracking"])])
def test_a_winner_that_only_adds_features_is_adopted(isolation: IsolationLevel, after: Protocol) -> None:
    assert run(current(isolation, blind_append=True, changes_metadata=True), winner(after)).protocol == after


@BOTH
def test_files_written_before_a_feature_that_binds_them_are_not_added_after_it(isolation: IsolationLevel) -> None:
    after = winner(Protocol(1, 7, None, ["appendOnly", "invariants", "materializePartitionColumns"]))
    with pytest.raises(ProtocolChangedError, match="materializePartitionColumns"):
        run(current(isolation, blind_append=True, adds_files=True), after)
    assert run(current(isolation), after).protocol == after.protocol


# --- 2: the metadata


@BOTH
def test_two_changes_of_the_metadata_conflict_even_if_the_winners_could_be_adopted(isolation: IsolationLevel) -> None:
    for tags in (None, {"delta.identity.schemaUpdate": "true"}):
        with pytest.raises(MetadataChangedError) as error:
            run(current(isolation, blind_append=True, changes_metadata=True), winner(metadata(), tags=tags))
        assert error.value.code == "DELTA_METADATA_CHANGED"


@BOTH
def test_new_marks_of_identity_columns_do_not_matter_to_others(isolation: IsolationLevel) -> None:
    changed = metadata(schema_string=METADATA.schema_string.replace("{}", '{"delta.identity.highWaterMark":9}', 1))
    adopted = run(current(isolation, blind_append=True), winner(changed, tags={"delta.identity.schemaUpdate": "true"}))
    assert adopted.metadata == changed
    with pytest.raises(MetadataChangedError):
        run(current(isolation, blind_append=True), winner(changed, tags={"delta.identity.schemaUpdate": "false"}))


ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
ROW_TRACKING_OFF = {**ROW_TRACKING, "delta.enableRowTracking": "false"}
ROW_TRACKING_NAMES = [key for key in ROW_TRACKING if "materialized" in key]
ICT = {
    "delta.enableInCommitTimestamps": "true",
    "delta.inCommitTimestampEnablementVersion": "8",
    "delta.inCommitTimestampEnablementTimestamp": "1",
}
ICT_OFF = {**ICT, "delta.enableInCommitTimestamps": "false", "delta.inCommitTimestampEnablementVersion": "3"}
RICH = Protocol(
    3,
    7,
    ["columnMapping", "deletionVectors", "v2Checkpoint"],
    [
        "columnMapping", "deletionVectors", "v2Checkpoint", "rowTracking", "domainMetadata", "inCommitTimestamp",
        "appendOnly", "invariants",
    ],
)  # fmt: skip
ADOPTABLE: list[dict[str, str | None]] = [
    ROW_TRACKING,
    ICT,
    {"delta.enableInCommitTimestamps": "true"},
    {"delta.enableDeletionVectors": "true"},
    {"delta.checkpointPolicy": "v2"},
    {"io.unitycatalog.tableId": "x"},
]


@BOTH
@pytest.mark.parametrize("change", ADOPTABLE)
def test_properties_that_leave_files_as_they_are_are_adopted(
    isolation: IsolationLevel, change: dict[str, str | None]
) -> None:
    new = metadata(change)
    adopted = run(current(isolation, blind_append=True, adds_files=True), winner(new), RICH)
    assert adopted.metadata == new
    assert adopted.row_tracking_enabled == ("delta.enableRowTracking" in change)


@BOTH
@pytest.mark.parametrize(("off", "on"), [(ROW_TRACKING_OFF, ROW_TRACKING), (ICT_OFF, ICT)])
def test_a_feature_that_is_turned_on_again_is_adopted(
    isolation: IsolationLevel, off: dict[str, str | None], on: dict[str, str | None]
) -> None:
    mine = current(isolation, blind_append=True, adds_files=True)
    assert run(mine, winner(metadata(on)), RICH, metadata(off)).metadata == metadata(on)


@BOTH
@pytest.mark.parametrize("change", ADOPTABLE[:5])
def test_they_are_not_adopted_where_the_protocol_does_not_support_them(
    isolation: IsolationLevel, change: dict[str, str | None]
) -> None:
    with pytest.raises(MetadataChangedError):
        run(current(isolation, blind_append=True), winner(metadata(change)), Protocol(1, 2))


@BOTH
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"delta.appendOnly": "true"}),
        ({}, {"delta.enableChangeDataFeed": "true"}),
        ({}, {"delta.constraints.c": "id > 0"}),
        ({}, {"delta.columnMapping.mode": "id"}),
        ({}, {"user.key": "v"}),
        ({}, {**ROW_TRACKING, "user.key": "v"}),
        ({"delta.enableDeletionVectors": "true"}, {"delta.enableDeletionVectors": "false"}),
        ({"delta.enableDeletionVectors": "true"}, {}),
        ({"user.key": "v"}, {**ROW_TRACKING}),
        (ROW_TRACKING, {"delta.enableRowTracking": "true"}),
        (ICT, {"delta.enableInCommitTimestamps": "true"}),
        (ROW_TRACKING, {**ROW_TRACKING, "delta.enableRowTracking": "false"}),
        ({"delta.checkpointPolicy": "v2"}, {"delta.checkpointPolicy": "classic"}),
        ({**ICT}, {**ICT, "delta.enableInCommitTimestamps": "false"}),
        ({"io.unitycatalog.tableId": "x"}, {"io.unitycatalog.tableId": "y"}),
        *((ROW_TRACKING, {**ROW_TRACKING, key: "another"}) for key in ROW_TRACKING_NAMES),
        *((ROW_TRACKING_OFF, {**ROW_TRACKING, key: "another"}) for key in ROW_TRACKING_NAMES),
        (ICT, {**ICT, "delta.inCommitTimestampEnablementVersion": "3"}),
        ({"delta.enableInCommitTimestamps": "true"}, ICT),
        ({"delta.columnMapping.maxColumnId": "5"}, {"delta.columnMapping.maxColumnId": "6"}),
        ({}, {"delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1"}),
        ({}, {"delta.enableDeletionVectors": "perhaps"}),
    ],
)
def test_any_other_change_of_properties_conflicts(
    isolation: IsolationLevel, before: dict[str, str | None], after: dict[str, str | None]
) -> None:
    with pytest.raises(MetadataChangedError):
        run(current(isolation, blind_append=True), winner(metadata(after)), RICH, metadata(before))


@BOTH
@pytest.mark.parametrize(
    "change",
    [
        {"schema_string": schema_to_string(StructType((*SCHEMA.fields, StructField("x", LONG))))},
        {"partition_columns": ["p"]},
        {"description": "new"},
        {"name": "new"},
        {"id": "another"},
    ],
)
def test_a_change_of_anything_but_properties_conflicts(isolation: IsolationLevel, change: dict[str, Any]) -> None:
    with pytest.raises(MetadataChangedError):
        run(current(isolation, blind_append=True), winner(metadata(**change)), RICH)


def mapped(names: dict[str, str] | None = None, extra: dict[str, Any] | None = None, mode: str = "name") -> Metadata:
    fields = [
        StructField(
            f.name,
            f.data_type,
            metadata={
                "delta.columnMapping.id": i + 1,
                "delta.columnMapping.physicalName": (names or {}).get(f.name, f.name),
                **(extra or {}),
            },
        )
        for i, f in enumerate(SCHEMA)
    ]
    return metadata(
        {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "5"},
        schema_string=schema_to_string(StructType(tuple(fields))),
    )


@BOTH
def test_column_mapping_by_the_names_that_columns_have_is_adopted(isolation: IsolationLevel) -> None:
    mine = current(isolation, blind_append=True, adds_files=True)
    assert run(mine, winner(mapped()), RICH).metadata == mapped()
    for refused in (mapped({"id": "col-1"}), mapped(extra={"comment": "new"}), mapped(mode="id")):
        with pytest.raises(MetadataChangedError):
            run(mine, winner(refused), RICH)


# --- 3 and 4: domains and applications


@BOTH
def test_the_same_domain_conflicts_and_another_does_not(isolation: IsolationLevel) -> None:
    mine = current(isolation, blind_append=True, domains=frozenset({"d", "delta.rowTracking"}))
    assert run(mine, winner(DomainMetadata("e", "{}")))
    assert run(mine, winner(DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":1}')))
    with pytest.raises(ConcurrentTransactionError, match="'d'") as error:
        run(mine, winner(DomainMetadata("d", "{}")))
    assert error.value.code == "DELTA_CONCURRENT_TRANSACTION"


@BOTH
def test_a_column_does_not_go_where_others_chose_clustering_columns(isolation: IsolationLevel) -> None:
    clustered = winner(DomainMetadata("delta.clustering", '{"clusteringColumns":[["n"]]}'))
    run(current(isolation, changes_metadata=True), clustered)
    with pytest.raises(ConcurrentTransactionError, match="clustering columns"):
        run(current(isolation, changes_metadata=True, loses_columns=True), clustered)
    run(current(isolation, loses_columns=True), winner(DomainMetadata("other", "")))


@BOTH
def test_an_application_that_we_read_conflicts_and_another_does_not(isolation: IsolationLevel) -> None:
    mine = current(isolation, blind_append=True, read_applications=frozenset({"app"}))
    assert run(mine, winner(SetTransaction("other", 1)))
    assert run(current(isolation, blind_append=True), winner(SetTransaction("app", 1)))
    with pytest.raises(ConcurrentTransactionError, match="'app'"):
        run(mine, winner(SetTransaction("app", 1)))


# --- 7: files that the winner added

BLIND, READING = True, False


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    ("isolation", "winner_blind", "changes_metadata", "conflict"),
    [
        ("Serializable", BLIND, False, True),
        ("Serializable", READING, False, True),
        ("Serializable", None, False, True),
        ("WriteSerializable", BLIND, False, False),
        ("WriteSerializable", READING, False, True),
        ("WriteSerializable", None, False, True),
        ("WriteSerializable", BLIND, True, True),
        ("WriteSerializable", READING, True, True),
        ("SnapshotIsolation", BLIND, False, False),
        ("SnapshotIsolation", READING, False, False),
    ],
)
@pytest.mark.parametrize("data_change", [True, False])
def test_files_added_to_a_table_read_whole(
    partitioned: bool,
    isolation: IsolationLevel,
    winner_blind: bool | None,
    changes_metadata: bool,
    conflict: bool,
    data_change: bool,
) -> None:
    mine = current(isolation, partitioned=partitioned, read_whole_table=True, changes_metadata=changes_metadata)
    other = winner(AddFile("new", {"p": "a"}, data_change=data_change), blind=winner_blind)
    if not conflict:
        assert run(mine, other)
        return
    with pytest.raises(ConcurrentAppendError) as error:
        run(mine, other)
    assert error.value.code == "DELTA_CONCURRENT_APPEND"


@BOTH
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_blind_append_follows_whatever_was_added_or_removed(isolation: IsolationLevel, partitioned: bool) -> None:
    mine = current(isolation, partitioned=partitioned, blind_append=True, adds_files=True)
    assert run(mine, winner(add(), RemoveFile("old"), blind=False))


@BOTH
def test_in_an_unpartitioned_table_any_new_file_counts_as_read(isolation: IsolationLevel) -> None:
    mine = current(isolation, read_files=frozenset({"x"}))
    with pytest.raises(ConcurrentAppendError, match="unpartitioned"):
        run(mine, winner(add(), blind=False))


@BOTH
@pytest.mark.parametrize(
    ("where", "partition", "conflict"),
    [
        ("p = 'a'", {"p": "a"}, True),
        ("p = 'a'", {"p": "b"}, False),
        ("p = 'a'", {"p": None}, False),
        ("p IS NULL", {"p": None}, True),
        ("p IS NULL", {"p": ""}, True),
        ("p <> 'a'", {"p": "b"}, True),
        ("n > 5", {"n": "10"}, True),
        ("n > 5", {"n": "3"}, False),
        ("n = 7", {"n": "+07"}, True),
        ("n > 5 AND p = 'b'", {"n": "10", "p": "a"}, False),
        ("n > 5 OR p = 'a'", {"n": "1", "p": "a"}, True),
        # what is not about partitions narrows nothing
        ("id = 1", {"p": "z"}, True),
        ("id = 1 AND p = 'a'", {"p": "b"}, False),
        ("id = 1 AND p = 'a'", {"p": "a"}, True),
        ("id = 1 OR p = 'a'", {"p": "b"}, True),
        ("d = DATE'2024-01-01'", {"d": "2024-01-01"}, True),
        ("d = DATE'2024-01-01'", {"d": "2024-01-02"}, False),
        ("t = TIMESTAMP'2024-01-01 00:00:00Z'", {"t": "2024-01-01T00:00:00.000000Z"}, True),
        ("t = TIMESTAMP'2024-01-01 00:00:00Z'", {"t": "2024-01-01T00:00:01.000000Z"}, False),
        # nobody knows which instant that is, nor what number
        ("t = TIMESTAMP'2024-01-01 00:00:00Z'", {"t": "2024-03-01 00:00:00"}, True),
        ("n > 5", {"n": "three"}, True),
    ],
)
def test_in_a_partitioned_table_new_files_count_where_the_predicate_looks(
    isolation: IsolationLevel, where: str, partition: dict[str, str | None], conflict: bool
) -> None:
    mine = current(isolation, partitioned=True, where=where)
    other = winner(add(**partition), blind=False)
    if not conflict:
        assert run(mine, other)
        return
    with pytest.raises(ConcurrentAppendError):
        run(mine, other)


@BOTH
def test_a_time_zone_tells_which_instant_a_partition_is(isolation: IsolationLevel) -> None:
    mine = current(isolation, partitioned=True, where="t = TIMESTAMP'2024-01-01 00:00:00Z'", zone="Europe/Berlin")
    assert run(mine, winner(add(t="2024-03-01 00:00:00"), blind=False))
    with pytest.raises(ConcurrentAppendError):
        run(mine, winner(add(t="2024-01-01 01:00:00"), blind=False))


@BOTH
def test_a_file_without_the_value_that_decides_may_be_anywhere(isolation: IsolationLevel) -> None:
    with pytest.raises(ConcurrentAppendError):
        run(current(isolation, partitioned=True, where="p = 'a'"), winner(AddFile("new", {}), blind=False))


@BOTH
def test_partition_values_are_found_by_physical_names(isolation: IsolationLevel) -> None:
    field = StructField("p", STRING, metadata={"delta.columnMapping.physicalName": "col-1"})
    schema = StructType((field,))
    mine = TransactionInfo("UPDATE", "/t", isolation, schema, ("p",), predicates=(predicate("p = 'a'", schema),))
    assert run(mine, winner(AddFile("new", {"col-1": "b"}), blind=False))
    with pytest.raises(ConcurrentAppendError):
        run(mine, winner(AddFile("new", {"col-1": "a"}), blind=False))


@BOTH
def test_each_predicate_counts_and_each_file(isolation: IsolationLevel) -> None:
    both = (predicate("p = 'a'"), predicate("p = 'b'"))
    mine = TransactionInfo("UPDATE", "/t", isolation, SCHEMA, PARTITIONS, predicates=both)
    assert run(mine, winner(*(add(f"c{i}", p="c") for i in range(50)), blind=False))
    with pytest.raises(ConcurrentAppendError) as error:
        run(mine, winner(add("c", p="c"), add("b", p="b"), blind=False))
    assert error.value.parameters["path"] == "b"


@BOTH
def test_a_partitioned_table_of_which_no_partition_was_read_takes_new_files(isolation: IsolationLevel) -> None:
    assert run(current(isolation, partitioned=True, removed_files=frozenset({"x"})), winner(add(), blind=False))


@BOTH
@pytest.mark.parametrize("operation", ["ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"])
def test_files_that_only_got_their_row_ids_are_not_new(isolation: IsolationLevel, operation: str) -> None:
    assert run(current(isolation, read_whole_table=True), winner(add(), operation=operation, blind=False))
    mine = TransactionInfo(operation, "/t", isolation, SCHEMA, read_whole_table=True)
    assert run(mine, winner(add(), blind=False))


# --- 8 and 9: files that the winner removed

ALL = pytest.mark.parametrize("isolation", ["Serializable", "WriteSerializable", "SnapshotIsolation"])


@ALL
def test_a_removed_file_that_we_read_conflicts(isolation: IsolationLevel) -> None:
    mine = current(isolation, partitioned=True, read_files=frozenset({"x"}))
    assert run(mine, winner(RemoveFile("y")))
    with pytest.raises(ConcurrentDeleteReadError) as error:
        run(mine, winner(RemoveFile("y"), RemoveFile("x", partition_values={"p": "a"})))
    assert error.value.code == "DELTA_CONCURRENT_DELETE_READ"
    assert error.value.parameters["path"] == "x"


@ALL
@pytest.mark.parametrize(
    ("where", "partition", "conflict"),
    [
        ("p = 'a'", {"p": "a"}, True),
        ("p = 'a'", {"p": "b"}, False),
        ("p = 'a'", {"p": None}, False),
        ("p IS NULL", {"p": ""}, True),
        ("n = 7", {"n": "+07", "p": None}, True),
        ("n = 7 AND p = 'b'", {"n": "7", "p": "a"}, False),
        # a writer may leave the values out; then the file may be anywhere
        ("p = 'a'", None, True),
        ("p = 'a'", {}, True),
        ("p = 'a'", {"n": "7"}, True),
        ("n > 5", {"n": "three"}, True),
        ("t = TIMESTAMP'2024-01-01 00:00:00Z'", {"t": "2024-03-01 00:00:00"}, True),
    ],
)
def test_a_file_removed_from_partitions_that_were_read_whole_conflicts(
    isolation: IsolationLevel, where: str, partition: dict[str, str | None] | None, conflict: bool
) -> None:
    read = replace(predicate(where), all_files=True)
    mine = TransactionInfo("UPDATE", "/t", isolation, SCHEMA, PARTITIONS, predicates=(predicate("p = 'z'"), read))
    other = winner(RemoveFile("y", partition_values={"p": "-", "n": "0", "t": "2020-01-01 00:00:00Z"}))
    assert run(mine, other)
    other = replace(other, removes=(RemoveFile("x", partition_values=partition), *other.removes))
    if not conflict:
        assert run(mine, other)
        return
    with pytest.raises(ConcurrentDeleteReadError) as error:
        run(mine, other)
    assert error.value.parameters["path"] == "x"


@ALL
def test_a_removed_file_that_we_did_not_read_leaves_its_partition_as_it_was(isolation: IsolationLevel) -> None:
    mine = current(isolation, partitioned=True, where="p = 'a'", read_files=frozenset({"x"}))
    assert run(mine, winner(RemoveFile("y", partition_values={"p": "a"}), RemoveFile("z")))


@ALL
@pytest.mark.parametrize("operation", ["ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL"])
def test_who_only_gives_or_takes_row_ids_leaves_removed_files_out(isolation: IsolationLevel, operation: str) -> None:
    mine = TransactionInfo(operation, "/t", isolation, SCHEMA, read_files=frozenset({"x"}))
    assert run(mine, winner(RemoveFile("x")))


@ALL
def test_any_removed_file_conflicts_with_a_read_of_the_whole_table(isolation: IsolationLevel) -> None:
    with pytest.raises(ConcurrentDeleteReadError):
        run(current(isolation, read_whole_table=True), winner(RemoveFile("y", data_change=False)))


@ALL
def test_a_file_that_both_remove_conflicts(isolation: IsolationLevel) -> None:
    mine = current(isolation, partitioned=True, removed_files=frozenset({"x"}))
    assert run(mine, winner(RemoveFile("y")))
    with pytest.raises(ConcurrentDeleteDeleteError) as error:
        run(mine, winner(RemoveFile("x")))
    assert error.value.code == "DELTA_CONCURRENT_DELETE_DELETE"


@ALL
def test_a_removed_path_counts_whatever_its_deletion_vector(isolation: IsolationLevel) -> None:
    from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor

    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 1, offset=4)
    with pytest.raises(ConcurrentDeleteDeleteError):
        run(
            current(isolation, partitioned=True, removed_files=frozenset({"x"})),
            winner(RemoveFile("x", deletion_vector=vector)),
        )


# --- order, and what is said


def test_the_checks_are_made_in_the_references_order() -> None:
    domain, txn = DomainMetadata("d", "{}"), SetTransaction("app", 1)
    actions: list[Any] = [Protocol(1, 3), metadata({"a": "b"}), domain, txn, add(), RemoveFile("x")]
    mine: dict[str, Any] = {
        "changes_protocol": True,
        "changes_metadata": True,
        "domains": frozenset({"d"}),
        "read_applications": frozenset({"app"}),
        "read_files": frozenset({"x"}),
        "removed_files": frozenset({"x"}),
    }
    order: list[tuple[type[ConflictError], tuple[str, ...]]] = [
        (ProtocolChangedError, ("changes_protocol",)),
        (MetadataChangedError, ()),
        (ConcurrentTransactionError, ("domains",)),
        (ConcurrentTransactionError, ("read_applications",)),
        (ConcurrentAppendError, ()),
        (ConcurrentDeleteReadError, ("read_files",)),
        (ConcurrentDeleteDeleteError, ("removed_files",)),
    ]
    for position, (kind, keys) in enumerate(order):
        with pytest.raises(ConflictError) as error:
            run(current(**mine), winner(*actions, blind=False))
        assert type(error.value) is kind, position
        for key in keys:
            del mine[key]
        if kind is MetadataChangedError:
            actions = [a for a in actions if not isinstance(a, Metadata)]
        if kind is ConcurrentAppendError:
            actions = [a for a in actions if not isinstance(a, AddFile)]
    assert run(current(**mine), winner(*actions, blind=False))


def test_the_error_names_the_operation_the_table_the_winner_and_the_partition() -> None:
    with pytest.raises(ConcurrentAppendError) as error:
        run(current(partitioned=True, where="p = 'a'"), winner(add(p="a", n="3"), operation="MERGE", blind=False))
    message = str(error.value)
    for part in ("UPDATE", "'/t'", "version 8", "MERGE", "p=a", "n=3", "Run the operation again"):
        assert part in message, part
    copy = pickle.loads(pickle.dumps(error.value))
    assert type(copy) is ConcurrentAppendError and copy.parameters["version"] == 8
