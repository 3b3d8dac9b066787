"""The interface of a catalog: one small class, and the values that it takes and returns.

A catalog decides which commits a table has, and stores nothing else of it. To keep tables in your own service, write a
subclass of ``Catalog`` with five methods. Everything else (staging, publishing, resolving lost answers, building a
snapshot) is the same for every catalog and done here. ``examples/catalog_of_yours.py`` is a complete catalog;
``delta_pyds.catalog.contract.check`` tests one against the rules.

Protocol: "Catalog-managed tables".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_pyds.redaction import Concealing


@dataclass(frozen=True, repr=False)
class StorageCredentials(Concealing):
    """Temporary credentials from a catalog, as options of the table's file system.

    Attributes:
        storage_options: The options, as ``delta_pyds.read`` takes them.
        expires_at_ms: The end of their validity, in milliseconds since the epoch; None for never.
    """

    storage_options: Mapping[str, Any]
    expires_at_ms: int | None = None


@dataclass(frozen=True)
class UnpublishedCommit:
    """A ratified commit that the catalog still stores: by the name of its staged file, or by its content.

    Invariant: one of ``file_name`` and ``content`` is given. Times are in milliseconds since the epoch.

    Attributes:
        version: The version that the commit is.
        timestamp_ms: The commit's in-commit timestamp.
        file_name: The name of the staged file in ``_delta_log/_staged_commits``.
        size_bytes: The size of the staged file, which shows whether the file is whole; None if the catalog does not
            keep it.
        modification_time_ms: The modification time of the staged file.
        content: The bytes of the commit.
    """

    version: int
    timestamp_ms: int
    file_name: str | None = None
    size_bytes: int | None = None
    modification_time_ms: int = 0
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ManagedTable:
    """The state of a table in its catalog at one moment.

    Attributes:
        name: The table's name in the catalog.
        table_id: The id, which no other table ever gets, even one of the same name.
        location: The path of the table.
        latest_version: The newest ratified version.
        unpublished: The ratified commits that are stored, ascending and without a gap, the last one of
            ``latest_version``; empty once all are reported as published.
        credentials: Options for the file system, if the catalog hands them out.
        forbids: Operations that only the catalog may do, as history names them (``VACUUM START``, ``OPTIMIZE``
            ...), and ``CHECKPOINT``, ``COMPACT LOG``, ``CLEAN UP`` (of the log) and ``CHECKSUM``.
    """

    name: str
    table_id: str
    location: str
    latest_version: int
    unpublished: tuple[UnpublishedCommit, ...] = ()
    credentials: StorageCredentials | None = None
    forbids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class CommitProposal:
    """A commit that is proposed as ``version``, staged (``file_name``) or inline (``content``).

    Attributes:
        table_name: The table's name in the catalog.
        table_id: The table's id in the catalog.
        version: The version that the commit would become.
        timestamp_ms: The commit's in-commit timestamp, in milliseconds since the epoch.
        txn_id: The id of the transaction; no other transaction ever has it. With ``file_name`` it identifies a repeated
            proposal.
        file_name: The name of the staged file in ``_delta_log/_staged_commits``.
        size_bytes: The size of the staged file.
        modification_time_ms: The modification time of the staged file.
        content: The bytes of an inline commit.
        protocol: The protocol that the commit sets; None if it does not change it.
        metadata: The metadata that the commit sets; None if it does not change it.
        metadata_before: The previous metadata, if the commit changes it.
        domains: The metadata domains that the commit sets or removes.
        published_version: The newest version that is known to be published; None if unknown.
    """

    table_name: str
    table_id: str
    version: int
    timestamp_ms: int
    txn_id: str
    file_name: str | None = None
    size_bytes: int = 0
    modification_time_ms: int = 0
    content: bytes | None = field(default=None, repr=False)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    metadata_before: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()
    published_version: int | None = None


@dataclass(frozen=True)
class TableReservation:
    """A reserved location for a table that does not exist yet.

    Attributes:
        name: The table's name in the catalog.
        table_id: The table's id in the catalog.
        location: A directory that no other table has.
        properties: The properties that the catalog requires of every table.
        features: The features that the catalog requires of every table, besides ``catalogManaged`` and its own.
        credentials: Options for the file system, if the catalog hands them out.
    """

    name: str
    table_id: str
    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    credentials: StorageCredentials | None = None


@dataclass(frozen=True)
class NewTable:
    """A table to register. Its version 0 is in the log at ``location``.

    Attributes:
        name: The table's name in the catalog.
        table_id: The id of its reservation.
        location: The location of its reservation.
        timestamp_ms: The in-commit timestamp of version 0, in milliseconds since the epoch.
        protocol: The protocol of version 0.
        metadata: The metadata of version 0.
        domains: The metadata domains of version 0.
    """

    name: str
    table_id: str
    location: str
    timestamp_ms: int
    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True)
class Ratified:
    """The commit is now its version, or the table now has its name.

    Attributes:
        table: The state of the table afterwards; None if the catalog does not return it.
    """

    table: ManagedTable | None = None


@dataclass(frozen=True)
class Conflict:
    """The version belongs to another commit (which the catalog may no longer store), or the name to another table."""


@dataclass(frozen=True)
class BacklogFull:
    """Nothing was ratified: too many commits are unpublished."""


@dataclass(frozen=True)
class OutcomeUnknown:
    """The commit may be ratified, or become so later: the answer was lost.

    Attributes:
        reason: The failure, as a sentence.
    """

    reason: str


@dataclass(frozen=True)
class Refused:
    """Nothing was ratified by this call, and the same proposal never will be.

    It does not show what an earlier call with an unknown outcome did.

    Attributes:
        reason: A sentence for the user.
    """

    reason: str


CommitOutcome: TypeAlias = Ratified | Conflict | BacklogFull | OutcomeUnknown | Refused
"""The answer of a catalog to a proposed commit."""


class Catalog(ABC):
    """The client of one catalog. Several threads use it; every process creates its own.

    Invariants: of all commits that are proposed as one version of a table, one at most is ratified; version 0 is
    ratified by the registration, and version ``v`` after ``v - 1``; a ratified commit stays ratified; the same proposal
    (version, and ``file_name`` or ``txn_id``) again is ``Ratified`` again as long as its commit is stored.

    Each method may raise any error if the catalog cannot be reached. For ``propose_commit`` and ``register_table`` that
    is an unknown outcome, unless it is a ``NothingWrittenError``; callers ask again.

    Protocol: "Catalog Responsibilities".

    >>> from delta_pyds.catalog import Catalog, ManagedTable
    >>> class MyCatalog(Catalog):
    ...     def load_table(self, name: str) -> ManagedTable: ...
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle copies the object into other processes of this user and machine, such as
        ``(type(self), (arguments, ...))``. By default it cannot be copied.
        """
        raise TypeError("A catalog client contains connections and secrets and cannot be pickled.")

    max_inline_bytes: int = 0
    """Commits up to this size are proposed with their content instead of a staged file; 0 for never."""

    @abstractmethod
    def load_table(self, name: str) -> ManagedTable:
        """Return the current state of the table.

        Args:
            name: The table's name in the catalog.

        Returns:
            The state, with all commits that the catalog still stores.

        Raises:
            TableNotFoundError: No table has that name (TABLE_OR_VIEW_NOT_FOUND).
        """

    @abstractmethod
    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        """Accept the commit as its version, if the table with that id is at the version before.

        Args:
            proposal: The commit.

        Returns:
            ``Ratified``, also for the same proposal again; ``Conflict`` if the version is another commit's;
            ``BacklogFull``, ``Refused`` or ``OutcomeUnknown``.
        """

    @abstractmethod
    def report_published(self, name: str, table_id: str, version: int) -> None:
        """Record that all versions up to this one are files of the log, so their commits need not be stored.

        Reporting a version again is allowed. Only ratified versions are reported.

        Args:
            name: The table's name in the catalog.
            table_id: The table's id in the catalog.
            version: The newest published version.
        """

    @abstractmethod
    def reserve_table(self, name: str) -> TableReservation:
        """Reserve a location for a new table. The table is not visible before it is registered.

        Args:
            name: The table's name in the catalog.

        Returns:
            The reservation, with a new id.

        Raises:
            UserError: The name is taken (TABLE_OR_VIEW_ALREADY_EXISTS).
        """

    def reserved_credentials(self, table_id: str) -> StorageCredentials | None:
        """Return credentials for a location that was reserved earlier or in another process.

        Args:
            table_id: The id of the reservation.

        Returns:
            The credentials; None, as here, if the catalog hands none out.
        """
        del table_id
        return None

    @abstractmethod
    def register_table(self, table: NewTable) -> CommitOutcome:
        """Give the table its name.

        Args:
            table: The table; its version 0 is in the log.

        Returns:
            ``Ratified``, also for the same table again; ``Conflict`` if another table has the name; ``Refused`` or
            ``OutcomeUnknown``.
        """
