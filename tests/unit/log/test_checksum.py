"""Version checksum files and their comparison with a replayed state."""

from __future__ import annotations

import bisect
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import ChecksumMismatchError
from delta_pyds.log.checksum import (
    ReplayedState,
    VersionChecksum,
    file_size_histogram,
    read_checksum,
    verify_checksum,
)
from delta_pyds.log.segment import load_segment
from delta_pyds.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction, file_key
from delta_pyds.storage.local import LocalStorage
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    table = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    table.create()
    [add] = table.append([{"id": i} for i in range(10)])
    table.append([{"id": 10}])
    table.commit(
        [
            *table.delete_rows(add, [1, 2, 3]),
            {"txn": {"appId": "app", "version": 7, "lastUpdated": 5}},
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        ]
    )
    return table


def read(table: TableBuilder) -> VersionChecksum:
    file = load_segment(LocalStorage(), str(table.path)).checksum
    assert file is not None
    checksum = read_checksum(LocalStorage(), file)
    assert checksum is not None
    return checksum


def state_of(table: TableBuilder) -> ReplayedState:
    """From the builder's model, which replays on its own."""
    adds = [msgspec.convert(action["add"], AddFile) for action in table.active()]
    vectors = [add.deletion_vector for add in adds if add.deletion_vector is not None]
    return ReplayedState(
        table_root=str(table.path),
        version=table.version,
        num_files=len(adds),
        table_size_bytes=sum(add.size for add in adds),
        protocol=msgspec.convert(table.protocol()["protocol"], Protocol),
        metadata=msgspec.convert(table.metadata()["metaData"], Metadata),
        set_transactions=[SetTransaction("app", 7, 5)],
        domain_metadata=[DomainMetadata("d", "{}")],
        num_deletion_vectors=len(vectors),
        num_deleted_records=sum(vector.cardinality for vector in vectors),
        file_keys=frozenset(map(file_key, adds)),
    )


def test_a_right_checksum_agrees(table: TableBuilder) -> None:
    table.checksum(all_files=True)
    checksum = read(table)
    assert (checksum.num_files, checksum.num_deletion_vectors_opt, checksum.num_deleted_records_opt) == (2, 1, 3)
    assert checksum.all_files is not None
    verify_checksum(checksum, state_of(table))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"numFiles": 3}, "numFiles is 2 by replay but 3"),
        ({"tableSizeBytes": 1}, "tableSizeBytes"),
        ({"numDeletionVectorsOpt": 0}, "numDeletionVectors is 1 by replay but 0"),
        ({"numDeletedRecordsOpt": 9}, "numDeletedRecords is 3 by replay but 9"),
        ({"setTransactions": []}, "setTransactions"),
        ({"setTransactions": [{"appId": "app", "version": 8, "lastUpdated": 5}]}, "setTransactions"),
        ({"domainMetadata": [{"domain": "d", "configuration": "x", "removed": False}]}, "domainMetadata"),
        (
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            "protocol.minReaderVersion is 3 by replay but 1",
        ),
        ({"metadata": {"id": "other"}}, "metaData.id"),
        ({"numMetadata": 2}, "counts 2 metaData actions"),
        ({"numProtocol": 0}, "counts 0 protocol actions"),
        ({"allFiles": []}, "the list of files not in allFiles"),
        ({"allFiles": [{"path": "ghost"}]}, "ghost"),
    ],
)
def test_each_part_is_compared(table: TableBuilder, changes: dict[str, Any], said: str) -> None:
    table.checksum(**changes)
    with pytest.raises(ChecksumMismatchError) as caught:
        verify_checksum(read(table), state_of(table))
    assert said in caught.value.message
    assert str(table.path) in caught.value.message


def test_all_differences_are_listed(table: TableBuilder) -> None:
    table.checksum(numFiles=3, tableSizeBytes=1, numProtocol=2)
    with pytest.raises(ChecksumMismatchError) as caught:
        verify_checksum(read(table), state_of(table))
    assert len(caught.value.parameters["differences"]) == 3
    assert caught.value.code == "DELTA_CHECKSUM_MISMATCH"


def test_what_one_side_does_not_say_is_not_compared(table: TableBuilder) -> None:
    state = state_of(table)
    verify_checksum(VersionChecksum(state.table_size_bytes, 2, 1, 1), state)
    table.checksum(all_files=True)
    verify_checksum(read(table), ReplayedState("/t", 3, 2, state.table_size_bytes))


def test_order_and_absent_values_do_not_matter() -> None:
    recorded = VersionChecksum(
        0,
        0,
        1,
        1,
        protocol=Protocol(3, 7, ["a", "b"], ["c", "a", "b"]),
        metadata=Metadata(id="x", configuration={}, partition_columns=[]),
        set_transactions=[SetTransaction("b", 2), SetTransaction("a", 1)],
    )
    replayed = ReplayedState(
        "/t",
        0,
        0,
        0,
        protocol=Protocol(3, 7, ["b", "a"], ["a", "b", "c"]),
        metadata=Metadata(id="x"),
        set_transactions=[SetTransaction("a", 1), SetTransaction("b", 2)],
    )
    verify_checksum(recorded, replayed)
    one_less: list[tuple[str, Any]] = [
        ("protocol", Protocol(3, 7, ["b"], ["a", "b", "c"])),
        ("protocol", Protocol(3, 7, ["b", "a"], ["a", "b"])),
        ("metadata", Metadata(id="x", configuration={"k": "v"})),
        ("metadata", Metadata(id="x", partition_columns=["p"])),
        ("set_transactions", [SetTransaction("a", 1)]),
        ("set_transactions", [SetTransaction("a", 2), SetTransaction("b", 1)]),
    ]
    for part, other in one_less:
        with pytest.raises(ChecksumMismatchError) as caught:
            verify_checksum(recorded, replace(replayed, **{part: other}))
        assert len(caught.value.parameters["differences"]) == 1


def test_in_commit_timestamps_are_compared() -> None:
    recorded = VersionChecksum(0, 0, 1, 1, in_commit_timestamp_opt=5)
    with pytest.raises(ChecksumMismatchError, match="inCommitTimestamp is 6 by replay but 5"):
        verify_checksum(recorded, ReplayedState("/t", 0, 0, 0, in_commit_timestamp=6))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"numFiles": 1}', '{"tableSizeBytes": "x"}'])
def test_a_damaged_checksum_is_passed_over_with_a_warning(
    table: TableBuilder, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    table.checksum().write_text(content)
    file = load_segment(LocalStorage(), str(table.path)).checksum
    assert file is not None
    assert read_checksum(LocalStorage(), file) is None
    assert file.path in caplog.text


def test_a_checksum_that_has_gone_is_passed_over(table: TableBuilder) -> None:
    path = table.checksum()
    file = load_segment(LocalStorage(), str(table.path)).checksum
    assert file is not None
    path.unlink()
    assert read_checksum(LocalStorage(), file) is None


@pytest.mark.parametrize("key", ["fileSizeHistogram", "histogramOpt"])
def test_histograms_are_compared_under_both_names(table: TableBuilder, key: str) -> None:
    sizes = pa.array([action["add"]["size"] for action in table.active()], pa.int64())
    right = {
        "sortedBinBoundaries": [0, 10, 1 << 20],
        "fileCounts": [0, 2, 0],
        "totalBytes": [0, sum(sizes.to_pylist()), 0],
    }
    base = {"fileSizeHistogram": None}
    state = state_of(table)
    for change, agrees in ({}, True), ({"fileCounts": [1, 1, 0]}, False):
        table.checksum(**{**base, key: right | change})
        checksum = read(table)
        assert checksum.size_histogram is not None
        with_histogram = ReplayedState(
            str(table.path),
            state.version,
            state.num_files,
            state.table_size_bytes,
            file_size_histogram=file_size_histogram(sizes, checksum.size_histogram.sorted_bin_boundaries),
        )
        if agrees:
            verify_checksum(checksum, with_histogram)
        else:
            with pytest.raises(ChecksumMismatchError, match=r"fileSizeHistogram\.fileCounts"):
                verify_checksum(checksum, with_histogram)


@given(st.lists(st.integers(0, 50)), st.sets(st.integers(1, 60)))
def test_histogram_counts_as_one_by_one(sizes: list[int], inner: set[int]) -> None:
    boundaries = [0, *sorted(inner)]
    counts, totals = [0] * len(boundaries), [0] * len(boundaries)
    for size in sizes:
        bin_number = bisect.bisect_right(boundaries, size) - 1
        counts[bin_number] += 1
        totals[bin_number] += size
    histogram = file_size_histogram(pa.array(sizes, pa.int64()), boundaries)
    assert (histogram.file_counts, histogram.total_bytes) == (counts, totals)
