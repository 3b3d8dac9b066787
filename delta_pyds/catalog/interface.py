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

    ``storage_options``: as ``delta_pyds.read`` takes them. ``expires_at_ms``: since the epoch; None for never.
    """

    storage_options: Mapping[str, Any]
    expires_at_ms: int | None = None


@dataclass(frozen=True)
class UnpublishedCommit:
    """A ratified commit that the catalog still stores: by the name of its staged file, or by its content.

    Invariant: one of ``file_name`` (in ``_delta_log/_staged_commits``) and ``content`` is given. ``size_bytes``: of the
    staged file, to detect a truncated one; None if the catalog does not store it. Times are in milliseconds since the
    epoch; ``timestamp_ms`` is the commit's in-commit timestamp.
    """

    version: int
    timestamp_ms: int
    file_name: str | None = None
    size_bytes: int | None = None
    modification_time_ms: int = 0
    content: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ManagedTable:
    """The state of a table in a catalog at one moment.

    ``table_id``: no other table ever gets it, even under the same name. ``latest_version``: the newest ratified one.
    ``unpublished``: the ratified commits that are stored, ascending and without a gap, up to ``latest_version``; empty
    once all are reported as published. ``forbids``: operations that only the catalog may do, as history names them
    (``VACUUM START``, ``OPTIMIZE`` ...), and ``CHECKPOINT``, ``COMPACT LOG``, ``CLEAN UP`` (of the log) and
    ``CHECKSUM``.
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

    ``txn_id``: no other transaction ever has it; a repeated proposal is identified by it and ``file_name``.
    ``protocol``, ``metadata``: the new ones; None if the commit does not change them. ``metadata_before``: the metadata
    that it replaces. ``domains``: the metadata domains that it sets or removes. ``published_version``: the newest
    version that is known to be published; None if unknown.
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
    """A location for a table that does not exist yet.

    ``location``: a directory that no other table uses. ``properties``, ``features``: the catalog's requirements for
    every table, besides ``catalogManaged`` and the requirements of that feature.
    """

    name: str
    table_id: str
    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    credentials: StorageCredentials | None = None


@dataclass(frozen=True)
class NewTable:
    """A table to register under its name. Its version 0 is in the log at ``location``."""

    name: str
    table_id: str
    location: str
    timestamp_ms: int
    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] = ()


@dataclass(frozen=True)
class Ratified:
    """The commit is its version, or the table has its name. ``table``: its state afterwards, if it was returned."""

    table: ManagedTable | None = None


@dataclass(frozen=True)
class Conflict:
    """The version belongs to another commit (which the catalog may no longer store), or the name to another table."""


@dataclass(frozen=True)
class BacklogFull:
    """Nothing was ratified: too many commits are unpublished."""


@dataclass(frozen=True)
class OutcomeUnknown:
    """The commit may be ratified, or become so later: the answer was lost."""

    reason: str


@dataclass(frozen=True)
class Refused:
    """This call ratified nothing, and the same proposal will always be refused. ``reason``: a sentence for the user.

    An earlier call with an unknown outcome may have ratified it.
    """

    reason: str


CommitOutcome: TypeAlias = Ratified | Conflict | BacklogFull | OutcomeUnknown | Refused
"""The answer of a catalog to a proposed commit."""


class Catalog(ABC):
    """The client of one catalog. Several threads use it; every process creates its own.

    Invariants: at most one of the commits that are proposed as one version of a table is ratified; version ``v`` is
    ratified after ``v - 1``, and version 0 by the registration; a ratified commit stays ratified; repeating a proposal
    (version, and ``file_name`` or ``txn_id``) returns ``Ratified`` again as long as its commit is stored.

    If the catalog cannot be reached, a method may raise any error. For ``propose_commit`` and ``register_table`` the
    outcome is then unknown, unless the error is a ``NothingWrittenError``; callers try again.

    >>> from delta_pyds.catalog import Catalog, ManagedTable
    >>> class MyCatalog(Catalog):
    ...     def load_table(self, name: str) -> ManagedTable: ...

    Protocol: "Catalog Responsibilities".
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle copies the object into other processes of this user and machine, such as
        ``(type(self), (arguments, ...))``. By default it cannot be copied.
        """
        raise TypeError("a catalog's client has connections and secrets, so it cannot be pickled for another process.")

    max_inline_bytes: int = 0
    """Commits up to this size are proposed with their content instead of a staged file; 0 for never."""

    @abstractmethod
    def load_table(self, name: str) -> ManagedTable:
        """The current state of the table.

        Raises: TableNotFoundError (TABLE_OR_VIEW_NOT_FOUND) if no table has that name.
        """

    @abstractmethod
    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        """Accept the commit as its version, if the table with that id is at the version before."""

    @abstractmethod
    def report_published(self, name: str, table_id: str, version: int) -> None:
        """Take note that all versions up to this one are files of the log, so their commits need not be stored.

        Reporting a version again is allowed. Only ratified versions are reported.
        """

    @abstractmethod
    def reserve_table(self, name: str) -> TableReservation:
        """Reserve a location for a new table. The table is not visible before it is registered.

        Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS) if the name is taken.
        """

    def reserved_credentials(self, table_id: str) -> StorageCredentials | None:
        """Credentials for a location that was reserved earlier or in another process; None without any."""
        del table_id
        return None

    @abstractmethod
    def register_table(self, table: NewTable) -> CommitOutcome:
        """Give the table its name: ``Conflict`` if another table has it, ``Ratified`` for the same table again."""
