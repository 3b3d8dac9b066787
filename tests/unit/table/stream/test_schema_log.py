"""The schemas that a stream went through: written once, whole, by one of many, and never misread."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import (
    CorruptLogError,
    DeltaError,
    NothingWrittenError,
    OptionError,
    StorageError,
    UnsupportedFeatureError,
    UserError,
)
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_PHYSICAL_NAME,
    INTEGER,
    LONG,
    STRING,
    DataType,
    StructField,
    StructType,
    schema_to_string,
)
from delta_pyds.storage.base import Storage
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.stream.schema_log import Allowance, Allowed, SchemaTracking, parse_allowed
from tests.support.memory_storage import MemoryStorage

LOCATION = "memory://checkpoint/schemas"
TABLE = "5f3c"
DIRECTORY = f"{LOCATION}/_schema_log_{TABLE}"
MAPPED: dict[str, str | None] = {"delta.columnMapping.mode": "name"}
PROTOCOL = Protocol(2, 5)
CONFLICT = "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
BLOCKED = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"


def metadata(*columns: tuple[str, str, DataType], table_id: str = TABLE, **given: Any) -> Metadata:
    """``columns``: logical name, physical name, type."""
    fields = tuple(
        StructField(name, data_type, True, {COLUMN_MAPPING_ID: n, COLUMN_MAPPING_PHYSICAL_NAME: physical})
        for n, (name, physical, data_type) in enumerate(columns, 1)
    )
    given = {"partition_columns": [], "configuration": MAPPED, **given}
    return Metadata(id=table_id, schema_string=schema_to_string(StructType(fields)), **given)


ID = ("id", "p1", LONG)
NAME = ("name", "p2", STRING)
FIRST = metadata(ID, NAME)
ADDED = metadata(ID, NAME, ("more", "p3", STRING))
RENAMED = metadata(ID, ("title", "p2", STRING))
DROPPED = metadata(ID)


def log(storage: Storage | None = None, **given: Any) -> SchemaTracking:
    given = {"tracking_id": None, "allow": Allowed(), **given}
    return SchemaTracking(storage or MemoryStorage(), LOCATION, TABLE, **given)


def names(storage: MemoryStorage) -> list[str]:
    return [status.name for status in storage.list_from(DIRECTORY, "")]


def configuration(given: Metadata, version: int = 5, protocol: Protocol = PROTOCOL) -> TableConfiguration:
    return load_configuration("/t", version, protocol, given)


# --- what is kept


def test_an_empty_log_has_no_entry() -> None:
    assert log().latest() is None
    assert log().previous() is None
    log().check_unblocked()


def test_what_was_appended_is_read_by_another_process() -> None:
    storage = MemoryStorage()
    given = metadata(
        ID, NAME, partition_columns=["name"], configuration={**MAPPED, "delta.enableChangeDataFeed": "true", "x": None}
    )
    protocol = Protocol(3, 7, ["columnMapping"], ["columnMapping", "changeDataFeed"])
    writer = log(storage)
    writer.append(7, given, protocol)
    for tracking in (writer, log(storage)):
        latest = tracking.latest()
        assert latest is not None
        assert latest.version == 7
        assert latest.metadata == given
        assert latest.protocol == protocol
        found = load_configuration("/t", latest.version, latest.protocol, latest.metadata)
        assert found.schema == configuration(given).schema
        assert (found.column_mapping_mode, found.partition_columns) == ("name", ("name",))


def test_an_entry_has_the_files_and_fields_of_the_reference() -> None:
    storage = MemoryStorage()
    log(storage).append(3, metadata(ID, NAME, partition_columns=["name"]), PROTOCOL)
    assert names(storage) == ["0"]
    first, second = storage.read(f"{DIRECTORY}/0").decode().split("\n")
    assert first == "v1"
    entry = json.loads(second)
    assert set(entry) == {
        "tableId", "deltaCommitVersion", "dataSchemaJson", "partitionSchemaJson", "sourceMetadataPath",
        "tableConfigurations", "protocolJson",
    }  # fmt: skip
    assert (entry["tableId"], entry["deltaCommitVersion"]) == (TABLE, 3)
    assert [f["name"] for f in json.loads(entry["dataSchemaJson"])["fields"]] == ["id", "name"]
    assert [f["name"] for f in json.loads(entry["partitionSchemaJson"])["fields"]] == ["name"]
    assert json.loads(entry["protocolJson"]) == {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    assert entry["tableConfigurations"] == MAPPED


def test_partition_columns_keep_their_order() -> None:
    storage = MemoryStorage()
    log(storage).append(3, metadata(ID, NAME, partition_columns=["name", "id"]), PROTOCOL)
    latest = log(storage).latest()
    assert latest is not None and latest.metadata.partition_columns == ["name", "id"]


def hand_written(number: int = 0, **changes: Any) -> bytes:
    """An entry as the reference writes it."""
    entry = {
        "tableId": TABLE,
        "deltaCommitVersion": number,
        "dataSchemaJson": FIRST.schema_string,
        "partitionSchemaJson": '{"type":"struct","fields":[]}',
        "sourceMetadataPath": "file:/c/sources/0/metadata",
        "tableConfigurations": MAPPED,
        "protocolJson": '{"protocol":{"minReaderVersion":2,"minWriterVersion":5}}',
        **changes,
    }
    return b"v1\n" + json.dumps({k: v for k, v in entry.items() if v is not None}).encode()


def test_entries_of_the_reference_are_read_with_their_pointers() -> None:
    storage = MemoryStorage()
    entries: list[dict[str, Any]] = [{}, {"deltaCommitVersion": 1}, {"previousMetadataSeqNum": 0, "unknown": [1]}]
    for number, changes in enumerate(entries):
        storage.put(f"{DIRECTORY}/{number}", hand_written(number, **changes))
    tracking = log(storage)
    latest, previous = tracking.latest(), tracking.previous()
    assert latest is not None and previous is not None
    assert (latest.version, previous.version) == (2, 0)
    tracking.append(9, FIRST, PROTOCOL)
    previous = log(storage).previous()
    assert previous is not None and previous.version == 2


def test_the_newest_entry_is_the_highest_number_and_not_the_last_name() -> None:
    storage = MemoryStorage()
    tracking = log(storage)
    for version in range(12):
        tracking.append(version, FIRST, PROTOCOL)
    assert len(names(storage)) == 12
    again = log(storage)
    latest, previous = again.latest(), again.previous()
    assert latest is not None and latest.version == 11
    assert previous is not None and previous.version == 10


def test_files_that_are_no_entries_do_not_count() -> None:
    storage = MemoryStorage()
    log(storage).append(1, FIRST, PROTOCOL)
    for name in (".1.crc", ".2.tmp", "3.tmp", "04", "five", "\N{SUPERSCRIPT TWO}"):
        storage.put(f"{DIRECTORY}/{name}", b"half")
    latest = log(storage).latest()
    assert latest is not None and latest.version == 1
    log(storage).append(2, FIRST, PROTOCOL)
    assert "1" in names(storage)


def test_sources_of_one_query_are_kept_apart_by_their_tracking_id() -> None:
    storage = MemoryStorage()
    log(storage).append(1, FIRST, PROTOCOL)
    second = log(storage, tracking_id="orders")
    assert second.latest() is None
    second.append(4, RENAMED, PROTOCOL)
    assert storage.exists(f"{DIRECTORY}_orders/0")
    latest = log(storage).latest()
    assert latest is not None and latest.version == 1


@pytest.mark.parametrize("tracking_id", ["", "a/b", "../x", "a\0"])
def test_a_tracking_id_that_is_no_name_is_refused(tracking_id: str) -> None:
    with pytest.raises(OptionError, match="streamingSourceTrackingId"):
        log(tracking_id=tracking_id)


def test_a_trailing_slash_of_the_location_is_the_same_location() -> None:
    storage = MemoryStorage()
    SchemaTracking(storage, LOCATION + "/", TABLE, None, Allowed()).append(1, FIRST, PROTOCOL)
    assert log(storage).latest() is not None


def test_the_newest_entry_is_listed_once_until_something_is_appended() -> None:
    calls: list[str] = []
    storage = MemoryStorage(on_call=lambda operation, _: calls.append(operation))
    log(storage).append(1, FIRST, PROTOCOL)
    calls.clear()
    tracking = log(storage)
    for _ in range(3):
        tracking.latest()
    assert calls == ["list_from", "read"]
    tracking.append(2, ADDED, PROTOCOL)
    calls.clear()
    latest = tracking.latest()
    assert latest is not None and latest.version == 2
    assert calls == []


def test_the_local_disk_keeps_a_log_too(tmp_path: Path) -> None:
    for version, given in ((1, FIRST), (5, ADDED)):
        SchemaTracking(LocalStorage(), f"{tmp_path}/c/s", TABLE, None, Allowed()).append(version, given, PROTOCOL)
    tracking = SchemaTracking(LocalStorage(), f"file://{tmp_path}/c/s", TABLE, None, Allowed())
    latest, previous = tracking.latest(), tracking.previous()
    assert latest is not None and previous is not None
    assert (latest.version, previous.version) == (5, 1)
    assert sorted(p.name for p in (tmp_path / "c/s" / f"_schema_log_{TABLE}").iterdir()) == ["0", "1"]


# --- who writes


def test_appending_the_same_version_again_changes_nothing() -> None:
    storage = MemoryStorage()
    tracking = log(storage)
    for again in (tracking, tracking, log(storage)):
        again.append(4, FIRST, PROTOCOL)
    assert names(storage) == ["0"]


def test_the_same_schema_in_other_json_is_the_same() -> None:
    storage = MemoryStorage()
    protocol = Protocol(3, 7, ["columnMapping", "deletionVectors"], ["columnMapping", "deletionVectors"])
    log(storage).append(4, FIRST, protocol)
    text = json.dumps(json.loads(FIRST.schema_string or ""), indent=1, sort_keys=True)
    other = Metadata(id=TABLE, schema_string=text, partition_columns=None, configuration=dict(MAPPED))
    turned = Protocol(3, 7, ["deletionVectors", "columnMapping"], ["deletionVectors", "columnMapping"])
    log(storage).append(4, other, turned)
    assert names(storage) == ["0"]


@pytest.mark.parametrize(("version", "given"), [(4, RENAMED), (3, FIRST), (0, FIRST)])
def test_a_log_that_is_ahead_or_says_otherwise_is_a_conflict(version: int, given: Metadata) -> None:
    storage = MemoryStorage()
    log(storage).append(4, FIRST, PROTOCOL)
    with pytest.raises(UserError, match="streamingSourceTrackingId") as error:
        log(storage).append(version, given, PROTOCOL)
    assert error.value.code == CONFLICT
    assert names(storage) == ["0"]


def test_processes_that_append_the_same_all_succeed_and_leave_one_entry() -> None:
    storage = MemoryStorage()
    log(storage).append(1, FIRST, PROTOCOL)
    together = threading.Barrier(8)

    def run(_: int) -> None:
        tracking = log(storage)
        tracking.latest()
        together.wait()
        tracking.append(6, RENAMED, PROTOCOL)
        latest = tracking.latest()
        assert latest is not None and latest.version == 6

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    assert names(storage) == ["0", "1"]


@pytest.mark.parametrize("others_version", [3, 9])
def test_of_two_that_append_different_versions_one_wins_and_the_other_is_told(others_version: int) -> None:
    storage = MemoryStorage()
    log(storage).append(1, FIRST, PROTOCOL)
    ours, others = log(storage), log(storage)
    assert ours.latest() == others.latest()
    others.append(others_version, ADDED, PROTOCOL)
    with pytest.raises(UserError) as error:
        ours.append(6, RENAMED, PROTOCOL)
    assert error.value.code == CONFLICT
    assert error.value.parameters["found_version"] == others_version
    latest = ours.latest()
    assert latest is not None and latest.version == others_version
    assert names(storage) == ["0", "1"]


def test_many_that_append_different_versions_leave_no_gap_and_ascending_versions() -> None:
    storage = MemoryStorage()
    together = threading.Barrier(8)

    def run(version: int) -> str:
        tracking = log(storage)
        tracking.latest()
        together.wait()
        try:
            tracking.append(version, FIRST, PROTOCOL)
        except UserError as error:
            return error.code
        return "appended"

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(8)))
    assert set(results) <= {"appended", CONFLICT}
    numbers = sorted(int(n) for n in names(storage))
    assert numbers == list(range(results.count("appended")))
    versions = [json.loads(storage.read(f"{DIRECTORY}/{n}").split(b"\n")[1])["deltaCommitVersion"] for n in numbers]
    assert versions == sorted(set(versions))


def test_a_lost_answer_is_settled_by_reading_the_entry() -> None:
    storage = MemoryStorage()

    def lost(_: str, path: str) -> None:
        raise StorageError(f"no answer for {path}")

    tracking = log(storage)
    storage.after_call = lost
    tracking.append(4, FIRST, PROTOCOL)
    storage.after_call = None
    assert names(storage) == ["0"]
    latest = tracking.latest()
    assert latest is not None and latest.version == 4


def test_a_put_that_failed_is_an_error_and_can_be_made_again() -> None:
    storage = MemoryStorage()
    tracking = log(storage)

    def refused(operation: str, path: str) -> None:
        if operation == "put_if_absent":
            raise NothingWrittenError("the disk is full", path=path)

    storage.on_call = refused
    with pytest.raises(NothingWrittenError, match="the disk is full"):
        tracking.append(4, FIRST, PROTOCOL)
    storage.on_call = None
    assert tracking.latest() is None
    tracking.append(4, FIRST, PROTOCOL)
    assert names(storage) == ["0"]


def test_a_process_that_died_after_its_put_is_followed_by_one_that_finds_the_entry() -> None:
    storage = MemoryStorage()

    class Killed(BaseException):
        pass

    def die(_: str, __: str) -> None:
        raise Killed

    storage.after_call = die
    with pytest.raises(Killed):
        log(storage).append(4, FIRST, PROTOCOL)
    storage.after_call = None
    log(storage).append(4, FIRST, PROTOCOL)
    assert names(storage) == ["0"]


def test_a_store_without_put_if_absent_refuses_before_anything_is_written() -> None:
    def refuse(operation: str, path: str) -> None:
        if operation == "require_put_if_absent":
            raise StorageError(f"no put-if-absent below {path}")

    storage = MemoryStorage(on_call=refuse)
    with pytest.raises(StorageError, match="no put-if-absent"):
        log(storage).append(1, FIRST, PROTOCOL)
    assert not storage.exists(f"{DIRECTORY}/0")


def test_a_schema_of_another_table_is_not_kept() -> None:
    storage = MemoryStorage()
    with pytest.raises(UserError) as error:
        log(storage).append(1, metadata(ID, table_id="another"), PROTOCOL)
    assert error.value.code == "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
    assert not storage.exists(f"{DIRECTORY}/0")


def test_a_table_that_cannot_be_read_is_not_kept() -> None:
    storage = MemoryStorage()
    with pytest.raises(UnsupportedFeatureError, match="fancy"):
        log(storage).append(1, FIRST, Protocol(3, 7, ["fancy"], ["fancy"]))
    with pytest.raises(DeltaError, match="no schemaString"):
        log(storage).append(1, Metadata(id=TABLE), PROTOCOL)
    assert not storage.exists(f"{DIRECTORY}/0")


# --- damage


def test_an_entry_cut_short_anywhere_is_an_error_that_names_the_file() -> None:
    storage = MemoryStorage()
    log(storage).append(1, FIRST, PROTOCOL)
    whole = storage.read(f"{DIRECTORY}/0")
    for length in range(len(whole)):
        storage.put(f"{DIRECTORY}/0", whole[:length])
        with pytest.raises(CorruptLogError, match="_schema_log_5f3c/0") as error:
            log(storage).latest()
        assert error.value.code == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (hand_written().replace(b"v1", b"v2", 1), "has the format 'v2'"),
        (b'{"tableId":"5f3c"}', "does not begin with a format"),
        (b"v1\n{}", "tableId"),
        (b"v1\nnull", "is incomplete or not an entry"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (hand_written(deltaCommitVersion="7"), "is incomplete or not an entry"),
        (hand_written(deltaCommitVersion=-1), "has the version -1"),
        (hand_written(tableConfigurations=None), "lacks the properties"),
        (hand_written(protocolJson=None), "lacks the properties or the protocol"),
        (hand_written(protocolJson='{"txn":{"appId":"a","version":1}}'), "no protocol action"),
        (hand_written(protocolJson="{"), "cannot be read"),
        (hand_written(dataSchemaJson="{"), "cannot be read"),
        (hand_written(dataSchemaJson='"long"'), "cannot be read"),
        (hand_written(partitionSchemaJson="[]"), "cannot be read"),
        (hand_written(previousMetadataSeqNum=0), "invalid previous entry 0"),
        (hand_written(previousMetadataSeqNum=-2), "invalid previous entry -2"),
    ],
)
def test_an_entry_that_cannot_be_understood_stops_the_stream(data: bytes, words: str) -> None:
    storage = MemoryStorage()
    storage.put(f"{DIRECTORY}/0", data)
    for attempt in (log(storage).latest, log(storage).check_unblocked):
        with pytest.raises(CorruptLogError, match="_schema_log_5f3c/0") as error:
            attempt()
        assert words in error.value.message
        assert "new checkpoint location" in error.value.message
        unparsed = words == "cannot be read"
        assert (error.value.code == "DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED") == unparsed
        assert (error.value.code == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED") != unparsed
    with pytest.raises(CorruptLogError):
        log(storage).append(5, FIRST, PROTOCOL)
    assert names(storage) == ["0"]


def test_an_older_entry_that_is_gone_or_damaged_stops_the_stream_too() -> None:
    storage = MemoryStorage()
    tracking = log(storage)
    tracking.append(1, FIRST, PROTOCOL)
    tracking.append(4, RENAMED, PROTOCOL)
    storage.put(f"{DIRECTORY}/0", b"v1\n{")
    with pytest.raises(CorruptLogError, match="_schema_log_5f3c/0"):
        log(storage).check_unblocked()
    storage.delete(f"{DIRECTORY}/0")
    with pytest.raises(CorruptLogError, match="is missing, although 1 follows it"):
        log(storage, allow=Allowed("always", "always", "always")).check_unblocked()


def test_an_entry_of_another_table_is_refused() -> None:
    storage = MemoryStorage()
    storage.put(f"{DIRECTORY}/0", hand_written(tableId="another"))
    with pytest.raises(UserError, match="another") as error:
        log(storage).latest()
    assert error.value.code == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"


# --- going on


WIDER = metadata(("id", "p1", LONG), NAME)
NARROW = metadata(("id", "p1", INTEGER), NAME)
ALL_KINDS = metadata(("key", "p1", LONG))
R, D, T = "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange"


def stepped(old: Metadata, new: Metadata) -> MemoryStorage:
    storage = MemoryStorage()
    tracking = log(storage)
    tracking.append(2, old, PROTOCOL)
    tracking.append(7, new, PROTOCOL)
    return storage


@pytest.mark.parametrize("allow", [Allowed(), Allowed("always", "always", "always")])
@pytest.mark.parametrize(
    "new",
    [
        FIRST,
        ADDED,
        metadata(NAME, ID),
        metadata(ID, NAME, partition_columns=["name"]),
        metadata(ID, NAME, configuration={**MAPPED, "delta.enableChangeDataFeed": "true"}),
    ],
)
def test_an_additive_step_needs_nobody(new: Metadata, allow: Allowed) -> None:
    storage = stepped(FIRST, new)
    log(storage, allow=allow).check_unblocked()
    # it was looked at, not passed over: the step back to one column is not for nobody
    log(storage).append(9, metadata(ID), PROTOCOL)
    if allow == Allowed():
        with pytest.raises(UserError) as error:
            log(storage, allow=allow).check_unblocked()
        assert error.value.parameters["options"] == {D: "9"}
    else:
        log(storage, allow=allow).check_unblocked()


def test_column_mapping_turned_on_needs_nobody() -> None:
    off = Metadata(id=TABLE, schema_string=metadata(("id", "id", LONG)).schema_string, configuration={})
    storage = stepped(off, metadata(("id", "id", LONG)))
    log(storage).check_unblocked()
    # by the mapping that there is now a rename is seen
    log(storage).append(9, metadata(("key", "id", LONG)), PROTOCOL)
    with pytest.raises(UserError) as error:
        log(storage).check_unblocked()
    assert error.value.parameters["options"] == {R: "9"}


@pytest.mark.parametrize(
    ("old", "new", "options", "words"),
    [
        (FIRST, RENAMED, [R], "'name' was renamed to 'title'"),
        (FIRST, DROPPED, [D], "'name' was dropped"),
        (FIRST, metadata(ID, ("name", "p9", STRING)), [D], "'name' was dropped"),
        (NARROW, WIDER, [T], "the type of 'id' from int to bigint was changed"),
        (FIRST, metadata(("key", "p1", LONG)), [R, D], "'id' was renamed to 'key', 'name' was dropped"),
        (NARROW, ALL_KINDS, [R, D, T], "'key' from int to bigint"),
    ],
)
def test_a_step_that_hurts_waits_for_the_user(old: Metadata, new: Metadata, options: list[str], words: str) -> None:
    storage = stepped(old, new)
    with pytest.raises(UserError) as error:
        log(storage).check_unblocked()
    assert error.value.code == BLOCKED
    assert words in error.value.message
    assert "version 2" in error.value.message and "version 7" in error.value.message
    assert error.value.parameters["options"] == dict.fromkeys(options, "7")
    for option in (R, D, T):
        assert (f'.option("{option}", "7")' in error.value.message) == (option in options)

    def allowed(value: Allowance) -> Allowed:
        return Allowed(*(value if option in options else None for option in (R, D, T)))

    log(storage, allow=allowed("always")).check_unblocked()
    log(storage, allow=allowed(7)).check_unblocked()
    for version in (0, 2, 6, 8):
        with pytest.raises(UserError) as error:
            log(storage, allow=allowed(version)).check_unblocked()
        assert error.value.parameters["options"] == dict.fromkeys(options, "7")


def test_only_the_options_that_are_missing_are_asked_for() -> None:
    with pytest.raises(UserError) as error:
        log(stepped(NARROW, ALL_KINDS), allow=Allowed(rename=7, type_change="always")).check_unblocked()
    assert error.value.parameters["options"] == {D: "7"}


def test_what_the_user_let_through_once_is_not_what_comes_after() -> None:
    storage = stepped(FIRST, RENAMED)
    tracking = log(storage, allow=Allowed(rename=7))
    tracking.check_unblocked()
    tracking.append(9, metadata(ID, ("caption", "p2", STRING)), PROTOCOL)
    with pytest.raises(UserError) as error:
        log(storage, allow=Allowed(rename=7)).check_unblocked()
    assert error.value.parameters["options"] == {R: "9"}


def test_a_step_that_was_passed_is_not_asked_about_again() -> None:
    storage = stepped(FIRST, RENAMED)
    with pytest.raises(UserError):
        log(storage).check_unblocked()
    log(storage).append(9, metadata(ID, ("title", "p2", STRING), ("more", "p3", STRING)), PROTOCOL)
    log(storage).check_unblocked()


@pytest.mark.parametrize("new", [NARROW, metadata(("id", "p1", STRING), NAME)])
def test_a_type_that_does_not_hold_the_old_values_is_never_let_through(new: Metadata) -> None:
    with pytest.raises(UserError, match="'id' from bigint to") as error:
        log(stepped(FIRST, new), allow=Allowed("always", "always", "always")).check_unblocked()
    assert error.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    assert error.value.parameters["retryable"] is False


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, None), ("always", "always"), (" Always ", "always"), ("7", 7), ("0", 0)],
)
def test_the_options_are_always_or_a_version(text: str | None, value: Allowance) -> None:
    assert parse_allowed(text, R) == value


@pytest.mark.parametrize("text", ["", "true", "-1", "7.0", "v7", "always,7", "\N{ARABIC-INDIC DIGIT SEVEN}", "1e3"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(OptionError, match=D):
        parse_allowed(text, D)


# --- what a stream stops for


def with_column(**metadata_of_field: Any) -> Metadata:
    mapping = {COLUMN_MAPPING_ID: 1, COLUMN_MAPPING_PHYSICAL_NAME: "p1"}
    schema = StructType((StructField("id", LONG, True, {**mapping, **metadata_of_field}),))
    return Metadata(id=TABLE, schema_string=schema_to_string(schema), configuration=MAPPED)


@pytest.mark.parametrize(
    ("given", "protocol"),
    [
        (ADDED, PROTOCOL),
        (RENAMED, PROTOCOL),
        (DROPPED, PROTOCOL),
        (NARROW, PROTOCOL),
        (metadata(NAME, ID), PROTOCOL),
        (metadata(ID, ("name", "p9", STRING)), PROTOCOL),
        (metadata(ID, NAME, partition_columns=["name"]), PROTOCOL),
        (metadata(ID, NAME, configuration={"delta.columnMapping.mode": "id"}), PROTOCOL),
        (metadata(ID, NAME, configuration={}), PROTOCOL),
        (FIRST, Protocol(3, 7, ["columnMapping", "deletionVectors"], ["columnMapping", "deletionVectors"])),
    ],
)
def test_a_change_that_matters_to_readers_is_a_change(given: Metadata, protocol: Protocol) -> None:
    first, other = configuration(FIRST), configuration(given, 8, protocol)
    assert log().changes(first, other)
    assert log().changes(other, first)
    assert not log().changes(other, configuration(given, 9, protocol))


def test_nullability_matters() -> None:
    loose = configuration(with_column())
    fields = tuple(StructField(f.name, f.data_type, False, f.metadata) for f in loose.schema)
    tight = Metadata(id=TABLE, schema_string=schema_to_string(StructType(fields)), configuration=MAPPED)
    assert log().changes(loose, configuration(tight))


@pytest.mark.parametrize(
    "given",
    [
        {"comment": "new"},
        {"CURRENT_DEFAULT": "1"},
        {"delta.generationExpression": "1"},
        {"delta.invariants": "{}"},
        {"delta.identity.highWaterMark": 9},
    ],
)
def test_what_only_writers_look_at_does_not_stop_a_stream(given: dict[str, Any]) -> None:
    assert not log().changes(configuration(with_column()), configuration(with_column(**given), 8))


def test_a_collation_matters() -> None:
    collated = with_column(__COLLATIONS={"id": "spark.UTF8_LCASE"})
    assert log().changes(configuration(with_column()), configuration(collated))


def test_properties_and_features_of_writers_do_not_stop_a_stream() -> None:
    lists = ["columnMapping"], ["columnMapping", "appendOnly", "rowTracking", "domainMetadata", "unheardOf"]
    given = metadata(ID, NAME, configuration={**MAPPED, "delta.appendOnly": "true", "team": "a"}, description="new")
    assert not log().changes(configuration(FIRST), configuration(given, 8, Protocol(3, 7, *lists)))


def test_another_table_is_no_change_but_an_error() -> None:
    with pytest.raises(UserError) as error:
        log().changes(configuration(FIRST), configuration(metadata(ID, NAME, table_id="another"), 8))
    assert error.value.code == "DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
