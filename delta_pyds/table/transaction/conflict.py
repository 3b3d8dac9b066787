"""Conflict detection between a transaction and a commit that was made meanwhile. Pure functions, no I/O.

Invariant: ``check_definition`` and ``check_files`` accept a transaction only if it would have made the same
changes after the winning commit, as far as its isolation level requires.
Missing information counts as a conflict.

Protocol: "Delta Log Entries" defines a valid log; the rules for commits that
may follow each other are the reference's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import pyarrow as pa

from delta_pyds.columnar.evaluate import matches
from delta_pyds.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConflictError,
    DeltaError,
    MetadataChangedError,
    ProtocolChangedError,
)
from delta_pyds.expr.nodes import Expr, references
from delta_pyds.protocol.actions import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SingleAction,
)
from delta_pyds.protocol.paths import path_key
from delta_pyds.protocol.schema import TIMESTAMP, StructType
from delta_pyds.table.configuration import load_configuration, require_managed
from delta_pyds.table.scan.file_statistics import typed_partition_values
from delta_pyds.table.scan.partition_match import partition_part
from delta_pyds.table.transaction.adoption import (
    adopted_metadata,
    dropped_features,
    features_that_bind_files,
    is_identity_only,
)

F = TypeVar("F", AddFile, RemoveFile)
IsolationLevel = Literal["Serializable", "WriteSerializable", "SnapshotIsolation"]

BACKFILL = "ROW TRACKING BACKFILL"
UNBACKFILL = "ROW TRACKING UNBACKFILL"
RENUMBERING = (BACKFILL, UNBACKFILL)


@dataclass(frozen=True)
class ReadPredicate:
    """Partitions that were read. ``time_zone``: that of partition timestamps without a zone; None if unknown.

    ``all_files``: every file of these partitions was read. Otherwise ``TransactionInfo.read_files`` names those.
    """

    expr: Expr
    time_zone: str | None = None
    all_files: bool = False


@dataclass(frozen=True)
class TransactionInfo:
    """The reads and changes of a transaction.

    ``read_files``, ``removed_files``: the ``path_key`` of each file. ``schema``
    and ``partition_columns`` are those that the predicates are bound to. ``loses_columns``: a column is dropped, or
    gets another physical name or type. ``by_catalog``: the table was opened through its catalog.
    """

    operation: str
    table_root: str
    isolation: IsolationLevel
    schema: StructType
    partition_columns: tuple[str, ...] = ()
    blind_append: bool = False
    read_whole_table: bool = False
    predicates: Sequence[ReadPredicate] = ()
    read_files: Set[str] = frozenset()
    removed_files: Set[str] = frozenset()
    read_applications: Set[str] = frozenset()
    domains: Set[str] = frozenset()
    adds_files: bool = False
    changes_metadata: bool = False
    loses_columns: bool = False
    changes_protocol: bool = False
    by_catalog: bool = False


@dataclass(frozen=True)
class WinningCommit:
    """A commit that came first, with its actions by kind."""

    version: int
    info: CommitInfo | None = None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    applications: frozenset[str] = frozenset()
    domains: Mapping[str, DomainMetadata] | None = None

    @staticmethod
    def of(version: int, actions: Iterable[SingleAction]) -> WinningCommit:
        """Sort the actions of a commit file."""
        seen = list(actions)
        return WinningCommit(
            version,
            next((a.commit_info for a in seen if a.commit_info is not None), None),
            next((a.protocol for a in seen if a.protocol is not None), None),
            next((a.meta_data for a in seen if a.meta_data is not None), None),
            tuple(a.add for a in seen if a.add is not None),
            tuple(a.remove for a in seen if a.remove is not None),
            frozenset(a.txn.app_id for a in seen if a.txn is not None),
            {a.domain_metadata.domain: a.domain_metadata for a in seen if a.domain_metadata is not None},
        )

    @property
    def operation(self) -> str:
        """The operation that the commit names."""
        return (self.info.operation if self.info else None) or "an unnamed operation"

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit states that it read nothing. Without this statement, it may have read the table."""
        return self.info is not None and self.info.is_blind_append is True

    @property
    def changes_data(self) -> bool:
        """False if the commit only moved rows to other files, or changed no file."""
        return any(a.data_change for a in self.adds) or any(r.data_change for r in self.removes)

    @property
    def renumbers(self) -> bool:
        """Whether the commit only assigned or removed row ids: the files and their rows are the same as before."""
        return self.operation in RENUMBERING


@dataclass(frozen=True)
class Adopted:
    """The table's protocol and metadata after the winning commit.

    ``row_tracking_enabled``: the winning commit enabled it, so this transaction does not preserve row ids.
    """

    protocol: Protocol
    metadata: Metadata
    row_tracking_enabled: bool = False


def check_definition(
    current: TransactionInfo, winner: WinningCommit, protocol: Protocol, metadata: Metadata
) -> Adopted:
    """The checks of everything but files. Such a conflict cannot be mended.

    Raises: a ConflictError; UnsupportedFeatureError if the winning commit added a feature that is not supported for
    writing.
    """
    new_protocol = _check_protocol(current, winner, protocol, metadata)
    new_metadata, row_tracking = _check_metadata(current, winner, new_protocol, metadata)
    _check_domains(current, winner)
    _check_clustering(current, winner)
    _check_applications(current, winner)
    return Adopted(new_protocol, new_metadata, row_tracking)


def check_files(current: TransactionInfo, winner: WinningCommit) -> None:
    """Check that the winning commit removed no file that was read, and added no file that would have been read.

    Raises: ConcurrentAppendError, ConcurrentDeleteReadError, ConcurrentDeleteDeleteError.
    """
    _check_added_files(current, winner)
    _check_removed_files(current, winner)


def touches_other_reads(current: TransactionInfo, winner: WinningCommit) -> bool:
    """Whether the winning commit removed or added files that the transaction reads beside those that it changes."""
    if current.read_whole_table:
        return True
    others = [predicate for predicate in current.predicates if predicate.all_files]
    if winner.removes and _first_match(current, others, winner.removes) is not None:
        return True
    return bool(winner.adds) and _first_match(current, others, winner.adds) is not None


def _check_protocol(
    current: TransactionInfo, winner: WinningCommit, protocol: Protocol, metadata: Metadata
) -> Protocol:
    new = winner.protocol
    if new is None:
        return protocol
    after = load_configuration(
        current.table_root, winner.version, new, winner.metadata or metadata, by_catalog=current.by_catalog
    )
    after.check_writable()
    require_managed(after)
    if current.changes_protocol:
        raise _conflict(
            ProtocolChangedError,
            current,
            winner,
            "changed the table's protocol, which this transaction changes too",
            "Run the operation again; it will start from the new protocol.",
        )
    if dropped := dropped_features(protocol, new):
        raise _conflict(
            ProtocolChangedError,
            current,
            winner,
            f"dropped table features ({', '.join(dropped)})",
            "Run the operation again; it will start from the new protocol.",
        )
    if current.adds_files and (binding := features_that_bind_files(protocol, new)):
        raise _conflict(
            ProtocolChangedError,
            current,
            winner,
            f"added table features for which the files of this transaction were not written ({', '.join(binding)})",
            "Run the operation again; it will write its files for the new protocol.",
        )
    return new


def _check_metadata(
    current: TransactionInfo, winner: WinningCommit, protocol: Protocol, metadata: Metadata
) -> tuple[Metadata, bool]:
    new = winner.metadata
    if new is None:
        return metadata, False
    if current.changes_metadata:
        raise _conflict(
            MetadataChangedError,
            current,
            winner,
            "changed the table's metadata, which this transaction changes too",
            "Run the operation again; it will start from the new schema and properties.",
        )
    if is_identity_only(winner.info):
        return new, False
    adopted = adopted_metadata(metadata, new, protocol)
    if adopted is None:
        raise _conflict(
            MetadataChangedError,
            current,
            winner,
            "changed the table's schema, partitioning or properties",
            "Run the operation again; it will use the new definition.",
        )
    return new, adopted.row_tracking_enabled


def _check_domains(current: TransactionInfo, winner: WinningCommit) -> None:
    both = sorted((current.domains & (winner.domains or {}).keys()) - {ROW_TRACKING_DOMAIN})
    if both:
        raise _conflict(
            ConcurrentTransactionError,
            current,
            winner,
            f"wrote the metadata domain {both[0]!r}, which this transaction writes too",
            "Run the operation again; it will start from the domain's new configuration.",
            domain=both[0],
        )


def _check_clustering(current: TransactionInfo, winner: WinningCommit) -> None:
    """The reference lacks this check, so its tables may be clustered by a column that they no longer have."""
    if current.loses_columns and CLUSTERING_DOMAIN in (winner.domains or {}):
        raise _conflict(
            ConcurrentTransactionError,
            current,
            winner,
            "changed the clustering columns, and this transaction may drop one of them",
            "Run the operation again; it will see the new clustering columns.",
            domain=CLUSTERING_DOMAIN,
        )


def _check_applications(current: TransactionInfo, winner: WinningCommit) -> None:
    both = sorted(current.read_applications & winner.applications)
    if both:
        raise _conflict(
            ConcurrentTransactionError,
            current,
            winner,
            f"was written for the application {both[0]!r}, whose last version this transaction depends on",
            "Two writers use one txnAppId, or two runs of one stream share a checkpoint: stop one of them, and run the "
            "operation again if the table does not have its data yet.",
            app_id=both[0],
        )


def _check_added_files(current: TransactionInfo, winner: WinningCommit) -> None:
    if current.blind_append or current.isolation == "SnapshotIsolation" or not winner.adds:
        return
    if current.operation in RENUMBERING or winner.renumbers:
        return
    if current.isolation == "WriteSerializable" and winner.is_blind_append and not current.changes_metadata:
        return
    found = _first_read(current, winner.adds)
    if found is not None:
        raise _conflict(
            ConcurrentAppendError,
            current,
            winner,
            f"added files to {_where(current, found.partition_values)}, which this transaction read",
            "Run the operation again; it will see the new files. "
            + (
                "To let writers run concurrently, name the partitions of each one in its predicate."
                if current.partition_columns
                else "Writers that change an unpartitioned table exclude each other."
            ),
            path=found.path,
            partition=_shown_partition(found.partition_values),
        )


def _check_removed_files(current: TransactionInfo, winner: WinningCommit) -> None:
    if not winner.removes:
        return
    # a rebased layout leaves out the files that others removed or committed again
    read_files = frozenset() if current.operation in RENUMBERING else current.read_files
    read = next((r for r in winner.removes if path_key(r.path) in read_files), None)
    if read is None:
        read = _first_match(current, [p for p in current.predicates if p.all_files], winner.removes)
    if read is not None or current.read_whole_table:
        found = read or winner.removes[0]
        raise _conflict(
            ConcurrentDeleteReadError,
            current,
            winner,
            f"removed the file {found.path} from {_where(current, found.partition_values)}, which this "
            "transaction read",
            "Run the operation again; it will read the current table.",
            path=found.path,
            partition=_shown_partition(found.partition_values),
        )
    twice = next((r for r in winner.removes if path_key(r.path) in current.removed_files), None)
    if twice is not None:
        raise _conflict(
            ConcurrentDeleteDeleteError,
            current,
            winner,
            f"removed the file {twice.path} from {_where(current, twice.partition_values)}, which this transaction "
            "removes too",
            "Run the operation again; it will start from the current files.",
            path=twice.path,
            partition=_shown_partition(twice.partition_values),
        )


def _first_read(current: TransactionInfo, adds: Sequence[AddFile]) -> AddFile | None:
    """The first file that the transaction would have read."""
    if current.read_whole_table or not current.partition_columns:
        return adds[0]
    return _first_match(current, current.predicates, adds)


def _first_match(current: TransactionInfo, predicates: Iterable[ReadPredicate], files: Sequence[F]) -> F | None:
    """The first file in the partitions of a predicate, or in an unknown partition."""
    found = (_first_in_partitions(current, predicate, files) for predicate in predicates)
    return next((file for file in found if file is not None), None)


def _first_in_partitions(current: TransactionInfo, predicate: ReadPredicate, files: Sequence[F]) -> F | None:
    expr = partition_part(predicate.expr, current.partition_columns)
    fields = [f for f in current.schema if f.name in {path[0] for path in references(expr)}]
    columns: dict[str, pa.Array] = {}
    for field in fields:
        texts = []
        for file in files:
            values = file.partition_values or {}
            if field.physical_name not in values:
                return file
            text = values[field.physical_name]
            if (
                text
                and field.data_type == TIMESTAMP
                and predicate.time_zone is None
                and not text.endswith(("Z", "UTC"))
            ):
                return file
            texts.append(text)
        try:
            columns[field.name] = typed_partition_values(
                pa.array(texts, pa.string()), field.data_type, predicate.time_zone or "UTC"
            )
        except (DeltaError, pa.ArrowException):
            return files[0]
    try:
        found = matches(expr, lambda path: columns[path[0]], len(files))
    except (DeltaError, pa.ArrowException):
        return files[0]
    position = found.index(True).as_py()
    return None if position < 0 else files[position]


def _where(current: TransactionInfo, partition: Mapping[str, str | None] | None) -> str:
    if not current.partition_columns or not partition:
        return "the table"
    return f"partition [{_shown_partition(partition)}]"


def _shown_partition(partition: Mapping[str, str | None] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in (partition or {}).items())


def _conflict(
    kind: type[ConflictError], current: TransactionInfo, winner: WinningCommit, did: str, advice: str, **parameters: Any
) -> ConflictError:
    return kind(
        f"{current.operation} on table {current.table_root!r} was not committed: version {winner.version} "
        f"({winner.operation}) came first and {did}. {advice}",
        operation=current.operation,
        table=current.table_root,
        version=winner.version,
        winning_operation=winner.operation,
        **parameters,
    )
