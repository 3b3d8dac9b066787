"""Unity Catalog, through version 1 of its interface for Delta tables. Needs ``urllib3``.

Invariants: a proposal contains the table's id, so another table of the same name never gets the commit. Changes of
schema, properties, protocol and domains are part of the same call. Every error except a refusal by the server leaves
the outcome unknown. The server accepts any version as the first one of a new table, so the sequence is checked here.

    DELTA_PYDS_CATALOG_PROD_URL=https://unity.example
    DELTA_PYDS_CATALOG_PROD_TOKEN=...

Specification: "Unity Catalog Managed Tables", version 1.0. It permits checkpoints, compactions and checksums, and no
other maintenance by clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from delta_pyds.catalog.interface import (
    BacklogFull,
    Catalog,
    CommitOutcome,
    CommitProposal,
    Conflict,
    ManagedTable,
    NewTable,
    OutcomeUnknown,
    Ratified,
    Refused,
    StorageCredentials,
    TableReservation,
)
from delta_pyds.catalog.managed import CLEAN_UP
from delta_pyds.catalog.outcomes import refused_for_another, refused_version
from delta_pyds.catalog.settings import CatalogSettings, read_settings
from delta_pyds.catalog.table_state import require_consistent
from delta_pyds.catalog.unity_config import CREATE, CREDENTIALS, LOAD, STAGE, UPDATE, UnityConfig
from delta_pyds.catalog.unity_credentials import CredentialCache
from delta_pyds.catalog.unity_http import UnityError, UnityHttp, path_of
from delta_pyds.catalog.unity_json import (
    LoadedTable,
    StagingTable,
    creation,
    is_managed,
    managed_table,
    proposed,
    published,
)
from delta_pyds.errors import (
    CatalogError,
    DeltaError,
    NothingWrittenError,
    OptionError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.protocol.properties import Property

FORBIDDEN = frozenset((CLEAN_UP, "VACUUM START", "VACUUM END", "OPTIMIZE", "REORG"))
# Required in every version of a managed table. A server checks them only if the protocol changes too.
REQUIRED = {
    Property.CHECKPOINT_POLICY: "v2",
    Property.CHECKPOINT_WRITE_STATS_AS_JSON: "true",
    Property.CHECKPOINT_WRITE_STATS_AS_STRUCT: "true",
    Property.ENABLE_DELETION_VECTORS: "true",
    Property.ENABLE_IN_COMMIT_TIMESTAMPS: "true",
}
_NOT_FOUND, _CONFLICT, _TOO_MANY = 404, 409, 429
_VERSION_TAKEN = "CommitVersionConflictException"
_BACKLOG_FULL = "ResourceExhaustedException"


class UnityCatalog(Catalog):
    """``http``: the client of the server's REST interface.

    >>> UnityCatalog.of({"url": "https://unity.example", "token": token}).load_table("main.sales.orders")
    """

    def __init__(self, http: UnityHttp) -> None:
        self._http = http
        self._config = UnityConfig(http)
        self._credentials = CredentialCache(http)
        # ids of tables with at least one commit on the server: it checks the sequence of their later commits
        self._begun: set[str] = set()
        # ids of tables whose commits must also contain Iceberg metadata
        self._converted: set[str] = set()

    def __repr__(self) -> str:
        return f"UnityCatalog({self._http.shown!r})"

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> UnityCatalog:
        """The catalog of these settings: ``url``, ``token``. When the server refuses the token, the settings are read
        again for a new one.
        """
        renewed = None
        if isinstance(settings, CatalogSettings):
            name, url, token = settings.catalog, settings["url"], settings.get("token")

            def renewed() -> str | None:
                now = read_settings(name)
                # a token for another address must not be sent to this one
                return now.get("token") if now.get("url") == url else token

        return cls(UnityHttp(settings["url"], settings.get("token"), renewed=renewed))

    def load_table(self, name: str) -> ManagedTable:
        path = _path(name)
        table = self._loaded(name, path)
        try:
            if not self._config.offers(_parts(name)[0], CREDENTIALS):
                return table
            credentials = self._credentials.of_table(path, table.table_id, table.location)
        except UnityError as error:
            raise self._failure(f"gave no credentials for the files of table {name!r}", error) from None
        return table if credentials is None else replace(table, credentials=credentials)

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        if proposal.file_name is None:
            return Refused("Unity Catalog accepts staged commits only")
        if proposal.version < 1:
            return Conflict()
        name, path = proposal.table_name, _path(proposal.table_name)
        lost = _lost(proposal)
        if lost:
            return Refused(f"Unity Catalog requires the table properties {', '.join(lost)}: do not change them")
        if proposal.table_id in self._converted:
            return Refused(
                "the catalog also keeps Iceberg metadata for the table (UniForm), which delta_pyds does not support. "
                "Write to it with an engine that supports UniForm"
            )
        self._require_to_write(name, UPDATE)
        if proposal.version > 1 and proposal.table_id not in self._begun:
            wrong = self._out_of_sequence(proposal, path)
            if wrong is not None:
                return wrong
        try:
            loaded = self._http.post(path, proposed(proposal), LoadedTable)
        except UnityError as error:
            return self._of_refused_proposal(proposal, path, error)
        table = managed_table(name, loaded, FORBIDDEN)
        if not _has(table, proposal):
            # a cache or proxy may return an earlier state
            return OutcomeUnknown(f"the answer of the catalog {self._http.shown} lacks the commit")
        return Ratified(self._saw(table))

    def report_published(self, name: str, table_id: str, version: int) -> None:
        if version < 1:
            return  # only version 0, which the registration published
        try:
            self._http.post(_path(name), published(table_id, version), LoadedTable)
        except UnityError as error:
            if error.status == _CONFLICT:
                return  # another table now has the name
            raise self._failure(
                f"did not record that version {version} of table {name!r} is published", error
            ) from None

    def reserve_table(self, name: str) -> TableReservation:
        catalog, schema, table = _parts(name)
        self._require(name, STAGE)
        try:
            made = self._http.post(
                path_of("catalogs", catalog, "schemas", schema, "staging-tables"), {"name": table}, StagingTable
            )
        except UnityError as error:
            if error.status == _CONFLICT:
                raise UserError(
                    f"the table {name} already exists in the catalog {self._http.shown}.",
                    code="TABLE_OR_VIEW_ALREADY_EXISTS",
                    table=name,
                ) from None
            if error.status == _NOT_FOUND:
                raise UserError(
                    f"the table {name} cannot be created in the catalog {self._http.shown}: {error}. Create its schema "
                    "there first, or check its name.",
                    code="SCHEMA_NOT_FOUND",
                    table=name,
                ) from None
            raise self._failure(f"gave no location for the new table {name!r}", error) from None
        wanted = made.required_protocol
        features = {*(wanted.reader_features or ()), *(wanted.writer_features or ())}
        return TableReservation(
            name,
            made.table_id,
            made.location,
            # the writer chooses the value of a property that has none here
            properties={key: value for key, value in made.required_properties.items() if value is not None},
            features=tuple(sorted(features)),
            credentials=self._credentials.take(made.table_id, made.location, made.storage_credentials),
        )

    def reserved_credentials(self, table_id: str) -> StorageCredentials | None:
        try:
            return self._credentials.of_reserved(table_id)
        except UnityError as error:
            raise self._failure("gave no credentials for the files of the new table", error) from None

    def register_table(self, table: NewTable) -> CommitOutcome:
        catalog, schema, name = _parts(table.name)
        self._require_to_write(table.name, CREATE)
        try:
            loaded = self._http.post(
                path_of("catalogs", catalog, "schemas", schema, "tables"), creation(name, table), LoadedTable
            )
        except UnityError as error:
            return self._of_refused_registration(table, error)
        made = managed_table(table.name, loaded, FORBIDDEN)
        if made.table_id != table.table_id:
            return OutcomeUnknown(f"the answer of the catalog {self._http.shown} is for another table")
        return Ratified(made)

    # --- answers of the server

    def _require(self, name: str, call: str) -> None:
        """Raises: UnsupportedOperationError for a call that the server does not offer; CatalogError."""
        try:
            self._config.require(_parts(name)[0], call)
        except UnityError as error:
            raise self._failure("did not list the calls that it offers", error) from None

    def _require_to_write(self, name: str, call: str) -> None:
        """As ``_require``, but raises NothingWrittenError instead of its errors."""
        try:
            self._require(name, call)
        except DeltaError as error:
            raise NothingWrittenError(error.message) from None

    def _loaded(self, name: str, path: str) -> ManagedTable:
        self._require(name, LOAD)
        try:
            loaded = self._http.get(path, LoadedTable)
        except UnityError as error:
            if error.status == _NOT_FOUND and error.kind:
                raise TableNotFoundError(
                    f"there is no table {name} in the catalog {self._http.shown} ({error}). Check its name.",
                    code="TABLE_OR_VIEW_NOT_FOUND",
                    table=name,
                ) from None
            raise self._failure(f"did not return table {name!r}", error) from None
        if not is_managed(loaded):
            raise UnsupportedOperationError(
                f"the catalog {self._http.shown} does not manage the commits of table {name}: open it by its path, "
                f"{loaded.metadata.location}.",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                table=name,
            )
        if loaded.uniform is None:
            self._converted.discard(loaded.metadata.table_uuid)
        else:
            self._converted.add(loaded.metadata.table_uuid)
        return self._saw(managed_table(name, loaded, FORBIDDEN))

    def _saw(self, table: ManagedTable) -> ManagedTable:
        if table.latest_version > 0:
            self._begun.add(table.table_id)
        return table

    def _out_of_sequence(self, proposal: CommitProposal, path: str) -> CommitOutcome | None:
        """The refusal of a proposal that must not be sent to the server; None if it can be sent.

        Raises: NothingWrittenError if the server does not return the latest version.
        """
        try:
            table = require_consistent(self._loaded(proposal.table_name, path))
        except TableNotFoundError as error:
            return Refused(error.message)
        except DeltaError as error:
            raise NothingWrittenError(error.message) from None
        if table.table_id != proposal.table_id:
            return refused_for_another(proposal)
        if proposal.version > table.latest_version + 1:
            return refused_version(table.latest_version)
        return None

    def _of_refused_proposal(self, proposal: CommitProposal, path: str, error: UnityError) -> CommitOutcome:
        if error.acted:
            return OutcomeUnknown(str(error))
        if error.status == _TOO_MANY:
            if error.kind == _BACKLOG_FULL:
                return BacklogFull()
            raise NothingWrittenError(f"The catalog {self._http.shown} is busy: {error}.")
        if error.status == _CONFLICT:
            if error.kind == _VERSION_TAKEN:
                return Conflict()
            # another table has the name, or another writer holds the server's lock
            try:
                same = self._loaded(proposal.table_name, path).table_id == proposal.table_id
            except TableNotFoundError:
                same = False
            except DeltaError as failed:
                raise NothingWrittenError(failed.message) from None
            if not same:
                return refused_for_another(proposal)
            raise NothingWrittenError(f"The catalog {self._http.shown} did not accept the commit: {error}.")
        return Refused(str(error))

    def _of_refused_registration(self, table: NewTable, error: UnityError) -> CommitOutcome:
        """The outcome, decided by the table that now has the name: a repeated registration is refused too."""
        if error.acted:
            return OutcomeUnknown(str(error))
        if error.status == _TOO_MANY:
            raise NothingWrittenError(f"The catalog {self._http.shown} is busy: {error}.")
        try:
            known = self._loaded(table.name, _path(table.name))
        except TableNotFoundError:
            return Refused(str(error))
        except UnsupportedOperationError:
            return Conflict()
        if known.table_id == table.table_id:
            return Ratified(known)
        return Conflict() if error.status == _CONFLICT else Refused(str(error))

    def _failure(self, what: str, error: UnityError) -> CatalogError:
        return CatalogError(f"The catalog {self._http.shown} {what}: {error}.")


def _has(table: ManagedTable, proposal: CommitProposal) -> bool:
    """Whether the table may contain the commit. The list may lack a published commit."""
    named = [commit.file_name for commit in table.unpublished if commit.version == proposal.version]
    return (
        table.table_id == proposal.table_id
        and table.latest_version >= proposal.version
        and named in ([], [proposal.file_name])
    )


def _lost(proposal: CommitProposal) -> list[str]:
    """The required properties that this commit removes or changes."""
    if proposal.metadata is None or proposal.metadata_before is None:
        return []
    before, after = (one.configuration or {} for one in (proposal.metadata_before, proposal.metadata))
    return [f"{key}={wanted}" for key, wanted in REQUIRED.items() if before.get(key) == wanted != after.get(key)]


def _parts(name: str) -> tuple[str, str, str]:
    parts = name.split(".")
    if len(parts) != 3 or not all(part.strip() for part in parts):
        raise OptionError(
            f"'{name}' is not the name of a table in Unity Catalog: write catalog.schema.table.", option="table"
        )
    return parts[0], parts[1], parts[2]


def _path(name: str) -> str:
    catalog, schema, table = _parts(name)
    return path_of("catalogs", catalog, "schemas", schema, "tables", table)
