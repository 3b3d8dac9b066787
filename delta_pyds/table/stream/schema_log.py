"""The schema log of a stream, stored beside its checkpoint: the option ``schemaTrackingLocation``.

Files have the layout of the reference implementation: ``<location>/_schema_log_<table id>[_<tracking id>]/<n>``, with
n from 0. Each file has the line ``v1`` and a line of JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from delta_pyds.errors import (
    CorruptLogError,
    FileNotFoundInStorageError,
    OptionError,
    ProtocolError,
    StorageError,
    UserError,
)
from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.protocol.actions import Metadata, Protocol, SingleAction
from delta_pyds.protocol.features import is_managed
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.schema import (
    StructType,
    parse_schema,
    schema_to_string,
)
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.stream.schema import SchemaStep, check_same_table, same_for_readers, schema_step

ALLOW_RENAME = "allowSourceColumnRename"
ALLOW_DROP = "allowSourceColumnDrop"
ALLOW_TYPE_CHANGE = "allowSourceColumnTypeChange"

Allowance = Literal["always"] | int | None
_FORMAT = "v1"


@dataclass(frozen=True)
class Allowed:
    """The changes of columns that the user allows: always, for one version of the table, or never."""

    rename: Allowance = None
    drop: Allowance = None
    type_change: Allowance = None


@dataclass(frozen=True)
class TrackedSchema:
    """The schema that a stream reads the table with from ``version`` on.

    ``metadata`` has the id, the schema, the partition columns and the properties; a schema log has no other fields.
    """

    version: int
    metadata: Metadata
    protocol: Protocol


class _Entry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The JSON of a file. Schemas are schemaStrings; the protocol is an action as in a commit."""

    table_id: str
    delta_commit_version: int
    data_schema_json: str
    partition_schema_json: str
    source_metadata_path: str
    table_configurations: dict[str, str | None] | None = None
    protocol_json: str | None = None
    previous_metadata_seq_num: int | None = None


@dataclass(frozen=True)
class _NumberedEntry:
    number: int
    previous: int
    schema: TrackedSchema


def parse_allowed(text: str | None, option: str) -> Allowance:
    """Parse an option such as allowSourceColumnDrop: ``always``, a version of the table, or None if not set.

    Raises: OptionError for any other value.
    """
    if text is None:
        return None
    value = text.strip().lower()
    if value == "always":
        return "always"
    if value.isascii() and value.isdigit():
        return int(value)
    raise OptionError(
        f"the option {option} is {text!r}, but must be 'always' or the version of the table that made the change, "
        "such as '7'.",
        option=option,
        value=text,
    )


class SchemaTracking:
    """The schema log of one source of one query.

    Invariants: entries are only added, and each is created atomically with a new number: if two processes append, one
    succeeds and the other is refused. Versions ascend. The stream reads with the newest entry. ``allow``: see
    ``check_unblocked``.
    """

    def __init__(
        self, storage: Storage, location: str, table_id: str, tracking_id: str | None = None, allow: Allowed = Allowed()
    ) -> None:
        if tracking_id is not None and (not tracking_id or "/" in tracking_id or "\0" in tracking_id):
            raise OptionError(
                f"the option streamingSourceTrackingId is {tracking_id!r}, but becomes part of a directory's name: it "
                "must not be empty or contain '/'.",
                option="streamingSourceTrackingId",
                value=tracking_id,
            )
        self._storage = storage
        self._location = location.rstrip("/")
        self._table_id = table_id
        self._allow = allow
        self._newest: _NumberedEntry | None = None
        self.directory = f"{self._location}/_schema_log_{table_id}" + (f"_{tracking_id}" if tracking_id else "")

    def latest(self) -> TrackedSchema | None:
        """The newest entry; None for an empty log. Reads the log once, and caches the entry until ``append``.

        Raises: CorruptLogError naming the damaged file; UserError for an entry of another table.
        """
        newest = self._read_newest()
        return None if newest is None else newest.schema

    def previous(self) -> TrackedSchema | None:
        """The entry before the newest one, or None.

        Raises: CorruptLogError if its file is missing or damaged.
        """
        newest = self._read_newest()
        if newest is None or newest.previous < 0:
            return None
        try:
            return self._read(newest.previous).schema
        except FileNotFoundInStorageError:
            raise _damaged(self._path(newest.previous), f"is missing, although {newest.number} follows it") from None

    def append(self, version: int, metadata: Metadata, protocol: Protocol) -> None:
        """Add an entry: the stream reads with this schema from ``version`` on.

        If several processes append the same entry, one file is created and all succeed. After a lost answer of the
        store, the entry is read back.

        Raises:
            UserError: the log has another entry for this or a later version (DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT):
                another stream writes to it, or this one was restarted from scratch.
            ProtocolError: delta_pyds cannot read the table.
            StorageError: the store cannot create a file atomically.
        """
        newest = self._read_newest()
        entry = self._encode(version, metadata, protocol)
        if newest is not None and self._already_recorded(newest, entry, version):
            return
        number = 0 if newest is None else newest.number + 1
        path = self._path(number)
        self._storage.require_put_if_absent(self.directory)
        self._newest = None
        try:
            self._storage.put_if_absent(path, _FORMAT.encode("ascii") + b"\n" + msgspec.json.encode(entry))
        except StorageError as error:
            # another process was first, or our file was created and the answer was lost
            try:
                existing = self._read(number)
            except FileNotFoundInStorageError:
                raise error from None
            if not self._already_recorded(existing, entry, version):
                # the other process is at an earlier version, and may continue differently
                raise self._conflict(version, existing) from error
        self._newest = self._decode(number, entry, path)

    def check_unblocked(self) -> None:
        """Refuse to continue a stream after columns were renamed, dropped or retyped, unless the user allowed it.

        Each kind of change has an option, which must be ``always`` or the version of the newest entry. Additions need
        no option.

        Raises:
            UserError: with the missing options (DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION), or
                for a change of type other than widening (DELTA_SCHEMA_CHANGED_WITH_VERSION).
        """
        before, now = self.previous(), self.latest()
        if before is None or now is None:
            return
        old, new = self._configuration(before), self._configuration(now)
        step = schema_step(old.schema, new.schema)
        narrowed = SchemaStep(retyped=tuple(change for change in step.retyped if not change.widens))
        if narrowed:
            raise UserError(
                f"the table (id {self._table_id}) changed in version {now.version} in a way that no stream can follow: "
                f"{narrowed}, and old values may not fit the new type. Start the query with a new "
                "checkpoint location, and a target with the new type.",
                code="DELTA_SCHEMA_CHANGED_WITH_VERSION",
                version=now.version,
                retryable=False,
            )
        missing = [
            option
            for option, changed, allowed in (
                (ALLOW_RENAME, step.renamed, self._allow.rename),
                (ALLOW_DROP, step.dropped, self._allow.drop),
                (ALLOW_TYPE_CHANGE, step.retyped, self._allow.type_change),
            )
            if changed and allowed not in ("always", now.version)
        ]
        if missing:
            raise self._blocked(step, before, now, missing)

    def changes(self, read: TableConfiguration, found: TableConfiguration) -> bool:
        """Whether a stream that reads with ``read`` must stop at a commit with ``found`` and adopt it.

        See ``schema.same_for_readers`` for the comparison. Change data is checked separately, by
        ``schema.check_change_data``.

        Raises: UserError (DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
        """
        check_same_table(read, found)
        return not same_for_readers(read, found)

    # --- files

    def _path(self, number: int) -> str:
        return f"{self.directory}/{number}"

    def _read_newest(self) -> _NumberedEntry | None:
        if self._newest is None:
            try:
                # entries are numbers; temporary files of writers sort before them
                names = [status.name for status in self._storage.list_from(self.directory, "0")]
            except FileNotFoundInStorageError:
                return None
            numbers = [int(n) for n in names if n.isascii() and n.isdigit() and str(int(n)) == n]
            if not numbers:
                return None
            self._newest = self._read(max(numbers))
        return self._newest

    def _read(self, number: int) -> _NumberedEntry:
        path = self._path(number)
        data = self._storage.read(path)
        try:
            first, _, rest = data.decode("utf-8").partition("\n")
        except UnicodeDecodeError:
            raise _damaged(path, "is not UTF-8 text") from None
        if first.strip() != _FORMAT:
            problem = f"has the format {first[:20]!r}" if first[:1] == "v" else "does not begin with a format"
            raise _damaged(path, f"{problem}, but this version reads {_FORMAT}")
        try:
            entry = decode_json(rest, _Entry)
        except InvalidJSONError as error:
            raise _damaged(path, f"is incomplete or not an entry of a schema log ({error})") from None
        return self._decode(number, entry, path)

    def _decode(self, number: int, entry: _Entry, path: str) -> _NumberedEntry:
        if entry.table_id != self._table_id:
            raise UserError(
                f"the schema log {path!r} belongs to the table with the id {entry.table_id}, but the stream reads the "
                f"one with the id {self._table_id}. Give the query its own schemaTrackingLocation, under its "
                "checkpoint location.",
                code="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                path=path,
                table_id=self._table_id,
                found_table_id=entry.table_id,
            )
        if entry.table_configurations is None or entry.protocol_json is None:
            raise _damaged(path, "lacks the properties or the protocol of the table, as written by old releases")
        try:
            action = decode_json(entry.protocol_json, SingleAction)
            partitions = parse_schema(entry.partition_schema_json).names
            parse_schema(entry.data_schema_json)
        except (InvalidJSONError, ProtocolError) as error:
            text = error.message if isinstance(error, ProtocolError) else str(error)
            raise _damaged(
                path, f"has a schema or a protocol that cannot be read ({text.rstrip('.')})", parsed=True
            ) from None
        if action.protocol is None:
            raise _damaged(path, "has no protocol action")
        if entry.delta_commit_version < 0:
            raise _damaged(path, f"has the version {entry.delta_commit_version}")
        previous = number - 1 if entry.previous_metadata_seq_num is None else entry.previous_metadata_seq_num
        if not -1 <= previous < number:
            raise _damaged(path, f"has the invalid previous entry {previous}")
        metadata = Metadata(
            id=entry.table_id,
            schema_string=entry.data_schema_json,
            partition_columns=list(partitions),
            configuration=entry.table_configurations,
        )
        return _NumberedEntry(number, previous, TrackedSchema(entry.delta_commit_version, metadata, action.protocol))

    def _encode(self, version: int, metadata: Metadata, protocol: Protocol) -> _Entry:
        if metadata.id != self._table_id:
            raise UserError(
                f"the schema of the table with the id {metadata.id} cannot be recorded in the schema log "
                f"{self.directory!r} of the table with the id {self._table_id}. The table was replaced by "
                "another one: start the query with a new checkpoint location.",
                code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
                path=self.directory,
                version=version,
            )
        # only a readable schema is recorded: with any other the query could never start again
        configuration = self._configuration(TrackedSchema(version, metadata, protocol))
        schema = parse_schema(metadata.schema_string or "")
        partitions = StructType(tuple(f for n in configuration.partition_columns for f in schema if f.name == n))
        return _Entry(
            table_id=metadata.id,
            delta_commit_version=version,
            data_schema_json=metadata.schema_string or "",
            partition_schema_json=schema_to_string(partitions),
            source_metadata_path=self._location,
            table_configurations=dict(metadata.configuration or {}),
            protocol_json=encode_commit([protocol]).decode("utf-8").strip(),
        )

    # --- comparing entries

    def _already_recorded(self, newest: _NumberedEntry, entry: _Entry, version: int) -> bool:
        """Whether the newest entry equals this one; False if this one can follow it. Raises: as ``append``."""
        if newest.schema.version < version:
            return False
        if _comparable(newest.schema) == _comparable(self._decode(newest.number, entry, self.directory).schema):
            return True
        raise self._conflict(version, newest)

    def _conflict(self, version: int, existing: _NumberedEntry) -> UserError:
        return UserError(
            f"the schema log {self.directory!r} already has an entry for version {existing.schema.version} of "
            f"the table ({existing.number}), but this stream is at version {version}. Another stream uses the same "
            "log, or the checkpoint was replaced without the log. Give every source of a query its own "
            "schemaTrackingLocation or streamingSourceTrackingId; if another process runs the same query, stop one "
            "and restart the other.",
            code="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
            path=self._path(existing.number),
            version=version,
            found_version=existing.schema.version,
        )

    def _configuration(self, tracked: TrackedSchema) -> TableConfiguration:
        label = f"of the schema log {self.directory}"
        return load_configuration(
            label, tracked.version, tracked.protocol, tracked.metadata, by_catalog=is_managed(tracked.protocol)
        )

    def _blocked(self, step: SchemaStep, before: TrackedSchema, now: TrackedSchema, missing: list[str]) -> UserError:
        once = "".join(f'.option("{option}", "{now.version}")' for option in missing)
        always = "".join(f'.option("{option}", "always")' for option in missing)
        return UserError(
            f"between version {before.version} and version {now.version} of the table (id {self._table_id}) columns "
            f"were changed that the stream's target may use: {step}. Prepare the target, then restart "
            f"the query with {once} to allow this change, or with {always} to allow all future changes.",
            code="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
            version=now.version,
            previous_version=before.version,
            changes=str(step),
            options={option: str(now.version) for option in missing},
        )


def _comparable(tracked: TrackedSchema) -> tuple[object, ...]:
    """A key that is equal for equal schemas, even if their JSON differs."""
    metadata, protocol = tracked.metadata, tracked.protocol
    return (
        tracked.version,
        parse_schema(metadata.schema_string or ""),
        metadata.partition_columns,
        metadata.configuration,
        (protocol.min_reader_version, protocol.min_writer_version),
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )


def _damaged(path: str, problem: str, *, parsed: bool = False) -> CorruptLogError:
    return CorruptLogError(
        f"the entry {path!r} of a stream's schema log {problem}. Restore the file from a copy, or use the release that "
        "wrote it; otherwise start the query with a new checkpoint location and schemaTrackingLocation.",
        code="DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED"
        if parsed
        else "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
        path=path,
    )
