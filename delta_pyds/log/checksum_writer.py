"""Version checksums from the previous one and a commit's actions, or from a replay. Protocol: "Version Checksum File".

If a number is unknown, it is left out, or no checksum is written: a wrong
checksum makes readers report a corrupt table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.errors import FileExistsInStorageError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.checksum import (
    DeletedRecordCountsHistogram,
    FileSizeHistogram,
    VersionChecksum,
    file_size_histogram,
)
from delta_pyds.log.checksum_change import DELETED_RECORD_BOUNDARIES, SIZE_BOUNDARIES, CommitChange
from delta_pyds.log.commit_writer import wire_form
from delta_pyds.log.replay import LogReplay
from delta_pyds.protocol.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    SingleAction,
)
from delta_pyds.protocol.features import Feature, active_properties, supports
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.storage.base import Storage

# The reference's limits on lists in a checksum.
_MOST_TRANSACTIONS = 100
_MOST_DOMAINS = 10

_A = TypeVar("_A", SetTransaction, DomainMetadata)


def advance_checksum(
    previous: VersionChecksum,
    actions: Iterable[SingleAction],
    *,
    in_commit_timestamp: int | None,
    txn_id: str | None,
    transactions_kept: bool,
) -> VersionChecksum | None:
    """The checksum of a version, from the previous one and the version's actions.

    Args:
        previous: the checksum of the previous version.
        actions: the actions of the version's commit.
        in_commit_timestamp: the version's, if the table has them; milliseconds since the epoch.
        txn_id: the ``txnId`` of the commit.
        transactions_kept: application transactions never expire in this table.

    Returns: None if the checksum is unknown: for removes without a size, files that are added again without being
        removed, duplicate keys, and inconsistent numbers in ``previous`` or in the result.
    """
    if not is_consistent(previous):
        return None
    taken = CommitChange()
    for action in actions:
        taken.add_action(action)
    change = taken.net_change()
    metadata, protocol = taken.metadata or previous.metadata, taken.protocol or previous.protocol
    if change is None or metadata is None or protocol is None:
        return None
    known = _with_vector_numbers(previous)
    sizes = known.size_histogram
    if sizes is not None and sizes.sorted_bin_boundaries == list(SIZE_BOUNDARIES):
        counts, totals = _sum(sizes.file_counts, change.size_counts), _sum(sizes.total_bytes, change.size_totals)
        sizes = FileSizeHistogram(list(SIZE_BOUNDARIES), counts, totals)
    else:
        sizes = None
    deleted = known.deleted_record_counts_histogram_opt
    if deleted is not None:
        deleted = DeletedRecordCountsHistogram(_sum(deleted.deleted_record_counts, change.deleted_counts))
    with_vectors = _has_deletion_vectors(protocol)
    result = VersionChecksum(
        txn_id=txn_id,
        table_size_bytes=known.table_size_bytes + change.size_bytes,
        num_files=known.num_files + change.files,
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp_opt=in_commit_timestamp,
        set_transactions=_merged(
            known.set_transactions if transactions_kept else None,
            change.transactions,
            _MOST_TRANSACTIONS,
            lambda action: action.app_id,
        ),
        domain_metadata=_merged(known.domain_metadata, change.domains, _MOST_DOMAINS, lambda action: action.domain),
        metadata=metadata,
        protocol=protocol,
        file_size_histogram=sizes,
        num_deleted_records_opt=_plus(known.num_deleted_records_opt, change.deleted_records, with_vectors),
        num_deletion_vectors_opt=_plus(known.num_deletion_vectors_opt, change.vectors, with_vectors),
        deleted_record_counts_histogram_opt=deleted if with_vectors else None,
    )
    return result if is_consistent(result) else None


def first_checksum(
    actions: Iterable[SingleAction], *, in_commit_timestamp: int | None, txn_id: str | None, transactions_kept: bool
) -> VersionChecksum | None:
    """The checksum of version 0; None as in ``advance_checksum``, or without protocol and metadata."""
    return advance_checksum(
        _EMPTY,
        actions,
        in_commit_timestamp=in_commit_timestamp,
        txn_id=txn_id,
        transactions_kept=transactions_kept,
    )


def compute_checksum(
    replay: LogReplay, *, in_commit_timestamp: int | None = None, txn_id: str | None = None
) -> VersionChecksum:
    """The checksum of a version from its whole state. It takes time and 16 bytes of memory for every file.

    Args:
        replay: the state of the version.
        in_commit_timestamp: the version's, in milliseconds since the epoch; None if the table has no such timestamps.
        txn_id: the ``txnId`` of the commit.

    Raises: ValueError for a missing or superfluous ``in_commit_timestamp``; errors of LogReplay.
    """
    properties = active_properties(replay.protocol, replay.metadata.configuration or {})
    if properties.in_commit_timestamps != (in_commit_timestamp is not None):
        raise ValueError("in_commit_timestamp is required if the table has in-commit timestamps, else it must be None.")
    sizes, cardinalities, vectors = _file_numbers(replay)
    transactions = list(replay.transactions.values()) if properties.transaction_retention_ms is None else None
    with_vectors = _has_deletion_vectors(replay.protocol)
    deleted = file_size_histogram(cardinalities, DELETED_RECORD_BOUNDARIES).file_counts
    return VersionChecksum(
        txn_id=txn_id,
        table_size_bytes=exact_sum(sizes),
        num_files=len(sizes),
        num_metadata=1,
        num_protocol=1,
        in_commit_timestamp_opt=in_commit_timestamp,
        set_transactions=_at_most(_MOST_TRANSACTIONS, transactions),
        domain_metadata=_at_most(_MOST_DOMAINS, list(replay.domains.values())),
        metadata=replay.metadata,
        protocol=replay.protocol,
        file_size_histogram=file_size_histogram(sizes, SIZE_BOUNDARIES),
        num_deleted_records_opt=exact_sum(cardinalities) if with_vectors else None,
        num_deletion_vectors_opt=vectors if with_vectors else None,
        deleted_record_counts_histogram_opt=DeletedRecordCountsHistogram(deleted) if with_vectors else None,
    )


def checksum_path(table_root: str, version: int) -> str:
    """The path of a version's checksum. Protocol: "Version Checksum File"."""
    return join(log_directory(table_root), f"{version:020d}.crc")


def write_checksum(storage: Storage, table_root: str, version: int, checksum: VersionChecksum) -> bool:
    """Write the checksum after its commit; an existing one must not be replaced and stays.

    Returns: whether it was written.
    Raises: StorageError.
    """
    try:
        storage.put_if_absent(checksum_path(table_root, version), encode_checksum(checksum))
        return True
    except FileExistsInStorageError:
        return False


def encode_checksum(checksum: VersionChecksum) -> bytes:
    """The checksum as one JSON object, without fields that are None."""
    content: dict[str, Any] = {}
    for one in msgspec.structs.fields(VersionChecksum):
        value = getattr(checksum, one.name)
        if value is None:
            continue
        if isinstance(value, list):
            value = [wire_form(action) for action in value]
        elif isinstance(value, (Metadata, Protocol)):
            value = wire_form(value)
        content[one.encode_name] = value
    return msgspec.json.encode(content)


def _with_vector_numbers(checksum: VersionChecksum) -> VersionChecksum:
    """The checksum with zeros for the deletion vectors of a table that does not support them."""
    if checksum.protocol is None or _has_deletion_vectors(checksum.protocol):
        return checksum
    return msgspec.structs.replace(
        checksum,
        num_deleted_records_opt=0,
        num_deletion_vectors_opt=0,
        deleted_record_counts_histogram_opt=DeletedRecordCountsHistogram(
            [checksum.num_files, *[0] * (len(DELETED_RECORD_BOUNDARIES) - 1)]
        ),
    )


def _has_deletion_vectors(protocol: Protocol) -> bool:
    return supports(protocol, Feature.DELETION_VECTORS)


def is_consistent(checksum: VersionChecksum) -> bool:
    """Whether the numbers of the checksum are possible for one table.

    False if a commit removed files that the table did not have, as far as the numbers show it.
    """
    numbers: list[int | None] = [
        checksum.table_size_bytes,
        checksum.num_files,
        checksum.num_deleted_records_opt,
        checksum.num_deletion_vectors_opt,
    ]
    files, size_bytes = checksum.num_files, checksum.table_size_bytes
    sizes, deleted, listed = (
        checksum.size_histogram, checksum.deleted_record_counts_histogram_opt, checksum.all_files
    )  # fmt: skip
    sums = [(checksum.num_metadata, 1), (checksum.num_protocol, 1), (size_bytes if not files else 0, 0)]
    if sizes is not None:
        numbers += [*sizes.file_counts, *sizes.total_bytes]
        sums += [(sum(sizes.file_counts), files), (sum(sizes.total_bytes), size_bytes)]
    if deleted is not None:
        numbers += deleted.deleted_record_counts
        sums.append((sum(deleted.deleted_record_counts), files))
    if listed is not None:
        sums += [(len(listed), files), (sum(file.size for file in listed), size_bytes)]
    vectors = checksum.num_deletion_vectors_opt
    return (
        all(number is None or number >= 0 for number in numbers)
        and all(one == other for one, other in sums)
        and (vectors is None or vectors <= files)
    )


def _merged(previous: list[_A] | None, changed: dict[str, _A], most: int, key: Callable[[_A], str]) -> list[_A] | None:
    if previous is None:
        return None
    merged = {**{key(action): action for action in previous}, **changed}
    live = [action for action in merged.values() if not (isinstance(action, DomainMetadata) and action.removed)]
    return _at_most(most, live)


def _at_most(most: int, actions: list[_A] | None) -> list[_A] | None:
    return None if actions is None or len(actions) > most else actions


def _plus(number: int | None, change: int, wanted: bool) -> int | None:
    return number + change if number is not None and wanted else None


def _sum(numbers: list[int], change: list[int]) -> list[int]:
    # a histogram of another length is damaged: the result is negative, so the checksum is dropped
    return [one + other for one, other in itertools.zip_longest(numbers, change, fillvalue=-(1 << 62))]


# --- a whole state


def _file_numbers(replay: LogReplay) -> tuple[pa.Array, pa.Array, int]:
    """The sizes of all files, the numbers of their deleted rows, and the number of deletion vectors."""
    sizes, cardinalities, vectors = [], [], 0
    for batch in replay.adds(AddRequest(columns=("size", "deletionVector"))):
        vector = batch.files.column("deletionVector")
        sizes.append(pc.fill_null(batch.files.column("size"), 0))
        cardinalities.append(pc.fill_null(pc.struct_field(vector, "cardinality"), 0))
        vectors += len(vector) - vector.null_count
    return _joined(sizes), _joined(cardinalities), vectors


def _joined(arrays: list[pa.Array]) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.int64())


_EMPTY = VersionChecksum(
    table_size_bytes=0,
    num_files=0,
    num_metadata=1,
    num_protocol=1,
    set_transactions=[],
    domain_metadata=[],
    file_size_histogram=FileSizeHistogram(
        list(SIZE_BOUNDARIES), [0] * len(SIZE_BOUNDARIES), [0] * len(SIZE_BOUNDARIES)
    ),
    num_deleted_records_opt=0,
    num_deletion_vectors_opt=0,
    deleted_record_counts_histogram_opt=DeletedRecordCountsHistogram([0] * len(DELETED_RECORD_BOUNDARIES)),
)
