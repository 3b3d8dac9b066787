"""A table at one version: protocol, metadata, and access to its files without holding a list of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from delta_pyds.catalog.address import locate
from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.catalog.opening import table_storage
from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.errors import CorruptLogError, DeltaError, MissingLogFilesError, OptionError, TimeTravelError
from delta_pyds.log.adds import AddRequest, FileBatch
from delta_pyds.log.checksum import ReplayedState, read_checksum, verify_checksum
from delta_pyds.log.replay import LogReplay
from delta_pyds.log.segment import LogSegment, load_segment
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_pyds.protocol.paths import LogFileKind
from delta_pyds.protocol.schema import StructType
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.redaction import safe_logger, shown
from delta_pyds.storage.base import Storage
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.configuration import TableConfiguration, load_configuration, require_managed
from delta_pyds.table.history import version_at
from delta_pyds.table.time_travel import time_to_ms

if TYPE_CHECKING:
    from delta_pyds.catalog import Catalog

logger = safe_logger(__name__)

# Attempts to open a table past checkpoints that cannot be read.
_CHECKPOINT_ATTEMPTS = 3


@dataclass(frozen=True)
class TableTotals:
    """The live files of a version, as the log states them.

    Attributes:
        num_files: The number of live files.
        size_bytes: The sum of their sizes.
    """

    num_files: int
    size_bytes: int


class Snapshot:
    """One version of a table, which ``delta_pyds.load_snapshot`` opens.

    Invariants: readable by this software (``load_configuration`` passed); immutable; holds the actions of the commits
    after its checkpoint, and of the checkpoint only the requested actions.

    >>> snapshot = delta_pyds.load_snapshot("/data/events")
    >>> snapshot.version, snapshot.schema.names, snapshot.totals.size_bytes
    """

    def __init__(self, storage: Storage, segment: LogSegment, known: tuple[Protocol, Metadata] | None = None) -> None:
        """``known``: see ``LogReplay``; it was not compared with the log."""
        self.storage = storage
        self.segment = segment
        self.is_assumed = known is not None
        self.replay = LogReplay(storage, segment, known)
        self.configuration: TableConfiguration = load_configuration(
            segment.table_root,
            segment.version,
            self.replay.protocol,
            self.replay.metadata,
            by_catalog=is_catalog_managed(storage),
        )

    @property
    def table_root(self) -> str:
        """The canonical path of the table."""
        return self.segment.table_root

    @property
    def version(self) -> int:
        """The version."""
        return self.segment.version

    @property
    def schema(self) -> StructType:
        """The columns, as the metadata of this version has them."""
        return self.configuration.schema

    @property
    def protocol(self) -> Protocol:
        """The reader and writer versions and features. Protocol: "Protocol Evolution"."""
        return self.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """The identity, schema, partition columns and properties. Protocol: "Change Metadata"."""
        return self.configuration.metadata

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """The last transaction of each application, by the application's id. Protocol: "Transaction Identifiers"."""
        return self.replay.transactions

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Live domain metadata by domain. Protocol: "Domain Metadata"."""
        return self.replay.domains

    def is_current(self) -> bool:
        """Whether the sidecars of the checkpoint are still the files that were read.

        The log's segment does not name sidecars.

        Returns:
            True if they are, and for a version without sidecars.

        >>> delta_pyds.load_snapshot("/data/events").is_current()
        """
        checkpoint = self.replay.checkpoint
        return checkpoint is None or checkpoint.has_same_sidecars()

    def adds(self, request: AddRequest) -> Iterator[FileBatch]:
        """Read the live files as Arrow rows, in bounded memory.

        Args:
            request: The columns of the files to return, and a filter; an ``AddRequest`` of ``delta_pyds.log.adds``.

        Returns:
            Batches, with the rows of the files in ``files``.

        Raises:
            CorruptLogError: A file of the log cannot be decoded.
            StorageError: A file of the log cannot be read.

        Protocol: "Action Reconciliation", "Add File and Remove File".

        >>> from delta_pyds.log.adds import AddRequest
        >>> for batch in delta_pyds.load_snapshot("/data/events").adds(AddRequest(columns=("path", "size"))):
        ...     print(batch.files.num_rows)
        """
        return self.replay.adds(request)

    @cached_property
    def totals(self) -> TableTotals:
        """The number and size of the live files. The first call reads all live files of the log."""
        files = size = 0
        for batch in self.adds(AddRequest(columns=("size",))):
            files += batch.files.num_rows
            size += exact_sum(batch.files.column("size"))
        return TableTotals(files, size)

    def verify_checksum(self) -> bool:
        """Compare the version checksum file with the replayed log.

        Returns:
            True if they agree; False if there is no readable checksum file for this version.

        Raises:
            ChecksumMismatchError: They differ; the error lists every difference.
            CorruptLogError: A file of the log cannot be decoded.
            StorageError: A file of the log cannot be read.

        Protocol: "Version Checksum File".

        >>> delta_pyds.load_snapshot("/data/events").verify_checksum()
        True
        """
        file = self.segment.checksum
        checksum = read_checksum(self.storage, file) if file is not None else None
        if checksum is None:
            return False
        vectors = deleted = 0
        for batch in self.adds(AddRequest(columns=("deletionVector",))):
            column = batch.files.column("deletionVector")
            present = pc.and_(column.is_valid(), column.field("storageType").is_valid())
            vectors += present.true_count
            deleted += exact_sum(column.field("cardinality").filter(present))
        verify_checksum(
            checksum,
            ReplayedState(
                table_root=self.table_root,
                version=self.version,
                num_files=self.totals.num_files,
                table_size_bytes=self.totals.size_bytes,
                num_deletion_vectors=vectors,
                num_deleted_records=deleted,
                protocol=self.protocol,
                metadata=self.metadata,
                set_transactions=list(self.transactions.values()),
                domain_metadata=list(self.domain_metadata.values()),
            ),
        )
        return True


def load_snapshot(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    timestamp_ms: int | None = None,
    time_zone: str = "UTC",
    storage_options: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Open a table at a version, at a time, or as it is now. At most one of version and times is given.

    Args:
        path: The path of the table: absolute, relative, ``~/...`` or of a store.
        table: Instead of a path, the name of the table in ``catalog``.
        catalog: The catalog that manages the table: ``sqlite:///path``, a name with settings in a file or the
            environment, or a ``delta_pyds.catalog.Catalog``. The default is the catalog ``default``. It is given with
            ``table`` only.
        version: The version to open; by default the latest.
        timestamp: Instead of a version, a time: the last commit up to this time. It is text or a datetime.
        timestamp_ms: The same in milliseconds since the epoch.
        time_zone: The zone of a ``timestamp`` that names none. The default is UTC, because there is no session.
        storage_options: Options of the store, as its fsspec package takes them.

    Returns:
        The snapshot. It stays at its version.

    Raises:
        TableNotFoundError: There is no table.
        TimeTravelError: The table does not have that version, or no commit is at or before that time.
        OptionError: An argument is invalid, or more than one of version and times is given.
        ExpressionError: The time zone is unknown.
        MissingLogFilesError: Files of the log that the version needs are gone.
        CorruptLogError: A file of the log cannot be decoded.
        UnsupportedFeatureError: The table has a feature that this software does not read.
        StorageError: The files cannot be read.
        CatalogError: The catalog failed.

    Protocol: "Snapshots", "Action Reconciliation", "Table Discovery".

    >>> snapshot = delta_pyds.load_snapshot("/data/events", timestamp="2026-01-31 18:00:00")
    >>> snapshot.version, snapshot.totals.num_files, snapshot.schema.names
    >>> delta_pyds.load_snapshot(table="main.sales.orders", catalog="sqlite:///data/catalog.db")
    """
    if sum(given is not None for given in (version, timestamp, timestamp_ms)) > 1:
        raise OptionError(
            "a version and a time, or two times, are given: a table is opened at one of them.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    if timestamp is not None:
        timestamp_ms = time_to_ms(timestamp, TimeZone(time_zone))
    address = locate(path, table=table, catalog=catalog, storage_options=storage_options)
    root = address.table_root
    storage = table_storage(root, address.storage_options)
    if timestamp_ms is not None:
        latest = open_snapshot(storage, root)
        version = version_at(
            storage,
            root,
            timestamp_ms,
            properties_of_latest=latest.configuration.properties,
            latest_version=latest.version,
        )
    return open_snapshot(storage, root, version)


def open_snapshot(
    storage: Storage, table_root: str, version: int | None = None, segment: LogSegment | None = None
) -> Snapshot:
    """Open a version. A damaged checkpoint or compaction is not used if the other files suffice.

    ``segment``: the version's, if the caller has listed the log already.
    """
    ignoring: frozenset[str] = frozenset()
    newest = version is None and segment is None
    segment = segment or load_segment(storage, table_root, version)
    checkpoints = 0
    while True:
        try:
            snapshot = Snapshot(storage, segment)
            if newest:
                require_managed(snapshot.configuration)
            return snapshot
        except (CorruptLogError, MissingLogFilesError) as e:
            damaged = _compactions(segment, e)
            if not damaged:
                damaged = _checkpoint(segment, e)
                checkpoints += 1
            if not damaged or checkpoints == _CHECKPOINT_ATTEMPTS:
                raise
            ignoring |= damaged
            try:
                segment = load_segment(storage, table_root, segment.version, ignoring=ignoring)
            except (MissingLogFilesError, TimeTravelError):
                raise e from None  # there is no other file to use: the error must name the damaged one
            _warn_once(f"{e.message} Reading the table without that file.")


# cached: a table with a damaged file may be opened again and again
@lru_cache(maxsize=256)
def _warn_once(message: str) -> None:
    logger.warning("%s", message)


def _compactions(segment: LogSegment, error: DeltaError) -> frozenset[str]:
    """The log compactions that an error says are damaged."""
    # errors hold paths as they are shown
    paths = error.parameters.get("paths") or (error.parameters.get("path"),)
    return frozenset(
        f.path for f in segment.commits if shown(f.path) in paths and f.name.kind is LogFileKind.COMPACTION
    )


def _checkpoint(segment: LogSegment, error: DeltaError) -> frozenset[str]:
    """The checkpoint, if the error says that it is damaged."""
    path = error.parameters.get("path")
    if path is None or segment.checkpoint is None or any(shown(f.path) == path for f in segment.commits):
        return frozenset()
    return frozenset(f.path for f in segment.checkpoint.files)
