"""Checksums of commits: what is left out when it cannot be known, and how the file looks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from delta_pyds.errors import StorageError
from delta_pyds.log.checksum import VersionChecksum, read_checksum
from delta_pyds.log.checksum_change import DELETED_RECORD_BOUNDARIES, SIZE_BOUNDARIES
from delta_pyds.log.checksum_writer import (
    advance_checksum,
    checksum_path,
    compute_checksum,
    encode_checksum,
    first_checksum,
    write_checksum,
)
from delta_pyds.log.replay import LogReplay
from delta_pyds.log.segment import load_segment
from delta_pyds.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SingleAction,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

METADATA = Metadata(id="m", schema_string="{}")
PROTOCOL = Protocol(1, 2)
WITH_VECTORS = Protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
FIELDS = {
    AddFile: "add",
    RemoveFile: "remove",
    CommitInfo: "commit_info",
    Metadata: "meta_data",
    Protocol: "protocol",
    SetTransaction: "txn",
    DomainMetadata: "domain_metadata",
}


def lines(*actions: Action) -> list[SingleAction]:
    return [SingleAction(**{FIELDS[type(action)]: action}) for action in actions]


def first(*actions: Action, kept: bool = True) -> VersionChecksum:
    checksum = first_checksum(
        lines(METADATA, PROTOCOL, *actions), in_commit_timestamp=None, txn_id=None, transactions_kept=kept
    )
    assert checksum is not None
    return checksum


def after(previous: VersionChecksum, *actions: Action, kept: bool = True) -> VersionChecksum | None:
    return advance_checksum(previous, iter(lines(*actions)), in_commit_timestamp=5, txn_id="t", transactions_kept=kept)


def vector(name: str, cardinality: int) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("u", name, 9, cardinality)


def test_the_bins_are_the_references() -> None:
    assert len(SIZE_BOUNDARIES) == 95
    assert list(SIZE_BOUNDARIES) == sorted(set(SIZE_BOUNDARIES))
    mib = [boundary / (1 << 20) for boundary in SIZE_BOUNDARIES]
    # by hand, at the joints of the steps
    joints = [0, 1 / 128, 1, 2, 4, 8, 40, 48, 120, 124, 144, 160, 576, 640, 1408, 1536, 2048, 2304, 4096, 8192, 262144]
    assert [joint for joint in joints if joint in mib] == joints
    assert mib[-6:] == [8192, 16384, 32768, 65536, 131072, 262144]
    assert DELETED_RECORD_BOUNDARIES == (0, 1, 10, 100, 1000, 10**4, 10**5, 10**6, 10**7, 2**31 - 1)


def test_the_file_is_one_object_with_every_required_field() -> None:
    checksum = after(first(), AddFile("a", size=9000), SetTransaction("app", 1), DomainMetadata("d", "{}"))
    assert checksum is not None
    counts, totals = [0] * 95, [0] * 95
    counts[1], totals[1] = 1, 9000
    assert json.loads(encode_checksum(checksum)) == {
        "txnId": "t",
        "tableSizeBytes": 9000,
        "numFiles": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": 5,
        "setTransactions": [{"appId": "app", "version": 1}],
        "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
        "metadata": {
            "id": "m",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": "{}",
            "partitionColumns": [],
            "configuration": {},
        },
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
        "fileSizeHistogram": {"sortedBinBoundaries": list(SIZE_BOUNDARIES), "fileCounts": counts, "totalBytes": totals},
    }


def test_removes_take_away_what_adds_brought() -> None:
    start = first(AddFile("a", size=10), AddFile("b", size=20))
    end = after(start, RemoveFile("a", size=10), AddFile("c", size=1 << 30))
    assert end is not None
    assert (end.num_files, end.table_size_bytes) == (2, 20 + (1 << 30))
    assert end.file_size_histogram is not None
    assert (sum(end.file_size_histogram.file_counts), end.file_size_histogram.total_bytes[0]) == (2, 20)


@pytest.mark.parametrize(
    "actions",
    [
        [RemoveFile("a")],
        [AddFile("a", size=-1)],
        [AddFile("a", size=10), AddFile("a", size=10)],
        [RemoveFile("a", size=10), AddFile("a", size=10)],
        [RemoveFile("a", size=10), RemoveFile("x", size=10), RemoveFile("y", size=10)],
        [RemoveFile("a", size=999)],
        [AddFile("a", size=10, data_change=False)],
        [AddFile("x", size=1), AddFile("a", size=10, data_change=False)],
        [METADATA, METADATA],
        [PROTOCOL, PROTOCOL],
        [SetTransaction("a", 1), SetTransaction("a", 2)],
        [DomainMetadata("d", "1"), DomainMetadata("d", "2")],
        [CommitInfo(operation="Manual Update"), AddFile("n", size=1)],
        [CommitInfo(operation="COMPUTE STATS"), AddFile("a", size=10), RemoveFile("b", size=20)],
    ],
    ids=repr,
)
def test_what_does_not_add_up_gives_no_checksum(actions: list[Action]) -> None:
    assert after(first(AddFile("a", size=10), AddFile("b", size=20)), *actions) is None


def test_a_rearranged_table_is_followed() -> None:
    end = after(
        first(AddFile("a", size=10), AddFile("b", size=20)),
        RemoveFile("a", size=10, data_change=False),
        RemoveFile("b", size=20, data_change=False),
        AddFile("ab", size=29, data_change=False),
    )
    assert end is not None
    assert (end.num_files, end.table_size_bytes) == (1, 29)


@pytest.mark.parametrize("operation", ["COMPUTE STATS", "ROW TRACKING BACKFILL"])
def test_files_added_again_are_counted_once(operation: str) -> None:
    start = first(AddFile("a", size=10))
    end = after(
        start,
        CommitInfo(operation=operation),
        AddFile("a", size=10, stats="{}", data_change=False),
        DomainMetadata("delta.rowTracking", "{}"),
    )
    assert end is not None
    assert (end.num_files, end.table_size_bytes, end.file_size_histogram) == (1, 10, start.file_size_histogram)
    assert end.domain_metadata == [DomainMetadata("delta.rowTracking", "{}")]


def test_deletion_vectors_are_counted_once_the_table_can_have_them() -> None:
    start = first(AddFile("a", size=10), AddFile("b", size=10))
    assert b"Deletion" not in encode_checksum(start)
    one = after(start, WITH_VECTORS, RemoveFile("a", size=10), AddFile("a", size=10, deletion_vector=vector("x", 12)))
    assert one is not None
    assert (one.num_deletion_vectors_opt, one.num_deleted_records_opt) == (1, 12)
    assert one.deleted_record_counts_histogram_opt is not None
    assert one.deleted_record_counts_histogram_opt.deleted_record_counts == [1, 0, 1, *[0] * 7]
    two = after(
        one,
        RemoveFile("a", size=10, deletion_vector=vector("x", 12)),
        AddFile("a", size=10, deletion_vector=vector("y", 100)),
    )
    assert two is not None
    assert (two.num_deletion_vectors_opt, two.num_deleted_records_opt, two.num_files) == (1, 100, 2)


def test_unknown_vector_numbers_stay_unknown() -> None:
    start = VersionChecksum(10, 1, 1, 1, metadata=METADATA, protocol=WITH_VECTORS)
    end = after(start, AddFile("b", size=1, deletion_vector=vector("x", 3)))
    assert end is not None
    assert (end.num_files, end.num_deletion_vectors_opt, end.num_deleted_records_opt) == (2, None, None)
    assert end.file_size_histogram is end.deleted_record_counts_histogram_opt is end.set_transactions is None


def test_bins_of_another_writer_are_dropped() -> None:
    start = first(AddFile("a", size=1))
    assert start.file_size_histogram is not None
    other = msgspec.structs.replace(start.file_size_histogram, sorted_bin_boundaries=[0, 5])
    end = after(msgspec.structs.replace(start, file_size_histogram=other), AddFile("b", size=1))
    assert end is not None
    assert end.file_size_histogram is None


def test_a_damaged_histogram_is_not_carried_on() -> None:
    start = first(AddFile("a", size=1))
    assert start.file_size_histogram is not None
    short = msgspec.structs.replace(start.file_size_histogram, file_counts=[1])
    assert after(msgspec.structs.replace(start, file_size_histogram=short), AddFile("b", size=1)) is None


@pytest.mark.parametrize("known", [{"metadata": None}, {"protocol": None}])
def test_a_checksum_without_metadata_or_protocol_is_not_written(known: dict[str, Any]) -> None:
    start = msgspec.structs.replace(first(), **known)
    assert after(start, AddFile("a")) is None
    assert after(start, METADATA, PROTOCOL) is not None


def test_transactions_are_merged_and_bounded() -> None:
    start = first(*(SetTransaction(f"a{number}", 1) for number in range(100)))
    end = after(start, SetTransaction("a7", 2))
    assert end is not None
    assert end.set_transactions is not None
    assert {t.app_id: t.version for t in end.set_transactions} == {f"a{n}": 1 + (n == 7) for n in range(100)}
    more = after(end, SetTransaction("a100", 1))
    assert more is not None
    assert more.set_transactions is None
    later = after(more, SetTransaction("a7", 3))
    assert later is not None
    assert later.set_transactions is None


def test_transactions_that_expire_are_left_out() -> None:
    assert first(SetTransaction("a", 1), kept=False).set_transactions is None
    end = after(first(SetTransaction("a", 1)), kept=False)
    assert end is not None
    assert end.set_transactions is None


def test_domains_are_merged_without_tombstones_and_bounded() -> None:
    start = first(*(DomainMetadata(f"d{number}", "x") for number in range(10)))
    end = after(start, DomainMetadata("d3", "x", removed=True), DomainMetadata("d4", "y"), DomainMetadata("new", "z"))
    assert end is not None
    assert end.domain_metadata is not None
    expected = {f"d{number}": "x" for number in range(10) if number != 3} | {"d4": "y", "new": "z"}
    assert {domain.domain: domain.configuration for domain in end.domain_metadata} == expected
    more = after(end, DomainMetadata("eleventh", ""))
    assert more is not None
    assert more.domain_metadata is None


def test_a_checksum_is_never_overwritten() -> None:
    storage = MemoryStorage()
    write_checksum(storage, "memory://t", 3, first(AddFile("a", size=1)))
    before = storage.read(checksum_path("memory://t", 3))
    write_checksum(storage, "memory://t", 3, first())
    assert storage.read(checksum_path("memory://t", 3)) == before


def test_a_checksum_that_cannot_be_written_says_so() -> None:
    def fail(operation: str, path: str) -> None:
        raise StorageError(f"{operation} {path}")

    with pytest.raises(StorageError):
        write_checksum(MemoryStorage(on_call=fail), "memory://t", 3, first())


def test_a_computed_one_is_read_back_the_same(tmp_path: Path) -> None:
    storage, root = LocalStorage(), str(tmp_path)
    table = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableInCommitTimestamps": "true"})
    table.create()
    table.append([{"id": 1}])
    table.checkpoint()
    table.append([{"id": 2}])
    replay = LogReplay(storage, load_segment(storage, root))
    with pytest.raises(ValueError, match="in-commit timestamp"):
        compute_checksum(replay)
    checksum = compute_checksum(replay, in_commit_timestamp=7, txn_id="t")
    write_checksum(storage, root, 2, checksum)
    file = load_segment(storage, root).checksum
    assert file is not None
    read = read_checksum(storage, file)
    assert read is not None
    assert (read.num_files, read.in_commit_timestamp_opt, read.txn_id) == (2, 7, "t")
    assert read.table_size_bytes == sum(action["add"]["size"] for action in table.active())
    assert encode_checksum(read) == encode_checksum(checksum)


def test_an_empty_table_can_be_computed(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path, {"id": "long"}, properties={"delta.setTransactionRetentionDuration": "interval 1 day"}
    )
    table.create([{"txn": {"appId": "a", "version": 1}}])
    checksum = compute_checksum(LogReplay(LocalStorage(), load_segment(LocalStorage(), str(tmp_path))))
    assert (checksum.num_files, checksum.table_size_bytes, checksum.set_transactions) == (0, 0, None)
    assert checksum.file_size_histogram is not None
    assert sum(checksum.file_size_histogram.file_counts) == 0
