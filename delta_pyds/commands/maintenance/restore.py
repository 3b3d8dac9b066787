"""Restore: a new version brings a table back to the state of an earlier version.

    result = restore(open_snapshot(storage, root), RestoreOptions(version=7))

Invariants: the files, the metadata and the clustering are those of the earlier version; the protocol only grows. New
identity values and column ids come after all that any version since has assigned. Nothing is committed if a restored
file is missing.

Protocol: "Add File and Remove File", "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from delta_pyds.commands.maintenance.file_difference import (
    MAX_PATHS,
    FileKeys,
    directories_of,
    missing_files,
    only_in,
    shown_paths,
)
from delta_pyds.errors import OptionError, TimeTravelError, UnsupportedOperationError, UserError
from delta_pyds.html_table import ShownAsTable
from delta_pyds.log.commit_reader import decode_commit, fetch_commits
from delta_pyds.log.listing import list_log
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddFile, Metadata, SingleAction
from delta_pyds.protocol.features import Feature, supported_features, supports, with_features
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import IDENTITY_HIGH_WATER_MARK, IDENTITY_STEP, StructType, parse_schema
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.redaction import safe_logger
from delta_pyds.table.definition.clustering import clustering_as_in
from delta_pyds.table.definition.identity import continues, with_high_water_marks
from delta_pyds.table.history import version_at
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, removal
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.time_travel import time_to_ms
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction

logger = safe_logger(__name__)


@dataclass(frozen=True)
class RestoreOptions:
    """One of ``version`` and ``timestamp``. ``time_zone``: the zone of a timestamp without one.

    ``ignore_missing_files``: restore even if files are missing; reading them will fail.
    """

    version: int | None = None
    timestamp: str | None = None
    time_zone: str = "UTC"
    ignore_missing_files: bool = False
    user_metadata: str | None = None


@dataclass(frozen=True)
class RestoreResult(ShownAsTable):
    """``version``: the committed version. The other numbers have the reference's names and meaning; sizes in bytes."""

    version: int
    table_size_after_restore: int
    num_of_files_after_restore: int
    num_removed_files: int
    num_restored_files: int
    removed_files_size: int
    restored_files_size: int

    def __str__(self) -> str:
        return (
            f"made version {self.version}: restored {self.num_restored_files} files, removed "
            f"{self.num_removed_files}; the table has {self.num_of_files_after_restore} files of "
            f"{self.table_size_after_restore} bytes"
        )


def restore(latest: Snapshot, options: RestoreOptions) -> RestoreResult | None:
    """Restore the table, whose latest version is ``latest``; None, without a commit, if that is the requested version.

    Raises: UserError (DELTA_CANNOT_RESTORE_TABLE_VERSION, DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER, …_GREATER) for a
        missing version of the table; UserError (DELTA_RESTORE_MISSING_FILES) naming missing files;
        UnsupportedOperationError (DELTA_ROW_TRACKING_NOT_READY) if row tracking was dropped since; a ConflictError;
        errors of opening the version.
    """
    started_s = time.monotonic()
    latest.configuration.check_writable()
    version = _version(latest, options)
    if version == latest.version:
        logger.info("The table %s is already at version %d: nothing is restored.", latest.table_root, version)
        return None
    target = open_snapshot(latest.storage, latest.table_root, version)
    _check_row_ids(target, latest)
    target_keys, latest_keys = FileKeys.of(target), FileKeys.of(latest)
    restored = [msgspec.structs.replace(file, data_change=True) for file in only_in(target, target_keys, latest_keys)]
    if not options.ignore_missing_files:
        _check_files(target, restored)
    now_ms = time.time_ns() // 1_000_000
    removed = [
        removal(file, deletion_timestamp_ms=now_ms, data_change=True)
        for file in only_in(latest, latest_keys, target_keys, REMOVAL_COLUMNS)
    ]
    sizes = {
        "tableSizeAfterRestore": target_keys.size_bytes,
        "numOfFilesAfterRestore": len(target_keys),
        "numRemovedFiles": len(removed),
        "numRestoredFiles": len(restored),
        "removedFilesSize": sum(file.size or 0 for file in removed),
        "restoredFilesSize": sum(file.size for file in restored),
    }
    if restored:
        # another engine may have written the files; if the table is a clone, some are outside of it
        latest.storage.make_all_durable(directories_of(latest.table_root, restored))
    transaction = Transaction(latest)
    # the restored state depends on no row, but changes that others commit meanwhile must not remain in it
    transaction.record_whole_table()
    transaction.set_metadata(_metadata(target, latest))
    # versions in between need the latest features
    transaction.set_protocol(with_features(latest.protocol, supported_features(target.protocol)))
    clustering = clustering_as_in(target.domain_metadata, latest.domain_metadata)
    if clustering is not None:
        transaction.set_domain(clustering)
    transaction.add(restored)
    transaction.remove(removed)
    committed = transaction.commit(
        Operation("RESTORE", {"version": options.version, "timestamp": options.timestamp}, sizes),
        user_metadata=options.user_metadata,
        isolation_level="Serializable",
    )
    result = RestoreResult(committed.version, *sizes.values())
    logger.info("Restore of table %s %s, in %.1f s.", latest.table_root, result, time.monotonic() - started_s)
    return result


def _version(latest: Snapshot, options: RestoreOptions) -> int:
    if (options.version is None) == (options.timestamp is None):
        raise OptionError(
            "a restore needs either a version or a timestamp.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
            option="version",
        )
    if options.version is not None:
        if not 0 <= options.version <= latest.version:
            raise UserError(
                f"table {latest.table_root} cannot be restored to version {options.version}: its versions go from 0 to "
                f"{latest.version}.",
                code="DELTA_CANNOT_RESTORE_TABLE_VERSION",
                table=latest.table_root,
                version=options.version,
                latest=latest.version,
            )
        return options.version
    assert options.timestamp is not None
    try:
        return version_at(
            latest.storage,
            latest.table_root,
            time_to_ms(options.timestamp, TimeZone(options.time_zone)),
            properties_of_latest=latest.configuration.properties,
            latest_version=latest.version,
        )
    except TimeTravelError as e:
        code = _RESTORE_CODES.get(e.code, e.code)
        raise TimeTravelError(e.message, code=code, **e.parameters) from None


_RESTORE_CODES = {
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
    "DELTA_TIMESTAMP_GREATER_THAN_COMMIT": "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
}


def _check_files(target: Snapshot, restored: Sequence[AddFile]) -> None:
    with step("check of restored files", target.table_root, log=logger):
        missing = missing_files(target.storage, target.table_root, restored)
    if missing:
        raise UserError(
            f"table {target.table_root} cannot be restored to version {target.version}: {len(missing)} of its files "
            "are missing, probably deleted by a vacuum. Restore a later version. To restore the remaining files of "
            f"this one, set spark.sql.files.ignoreMissingFiles=true. Missing files: {shown_paths(missing)}",
            code="DELTA_RESTORE_MISSING_FILES",
            table=target.table_root,
            version=target.version,
            paths=tuple(missing[:MAX_PATHS]),
        )


def _metadata(target: Snapshot, latest: Snapshot) -> Metadata:
    """The metadata of the version, with the values that must never decrease."""
    metadata = msgspec.structs.replace(target.metadata, id=latest.metadata.id)
    has_ids = target.configuration.column_mapping_mode != "none"
    has_marks = any(IDENTITY_STEP in field.metadata for field in target.schema)
    # a version in between may have assigned more than the latest records, which may lack these columns
    between = _actions_between(target, latest, b'"metaData"') if has_ids or has_marks else ()
    since = [action.meta_data for action in between if action.meta_data is not None]
    configuration = dict(metadata.configuration or {})
    for later in (*since, latest.metadata):
        then = later.configuration or {}
        for key in (Property.COLUMN_MAPPING_MAX_COLUMN_ID, Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION):
            # column ids in files of later versions, and the protection of earlier versions, must stay valid
            if key == Property.COLUMN_MAPPING_MAX_COLUMN_ID and not has_ids:
                continue
            if _number(then.get(key)) > _number(configuration.get(key)):
                configuration[key] = then[key]
        if has_marks and later.schema_string is not None:
            metadata = with_high_water_marks(metadata, _marks(target.schema, parse_schema(later.schema_string)))
    return msgspec.structs.replace(metadata, configuration=configuration)


def _check_row_ids(target: Snapshot, latest: Snapshot) -> None:
    """Refuse a version that tracked rows before the feature was dropped.

    The drop removes the ids of live files, and numbering begins again: rows of other files may now have the ids
    that the version's rows would get back.
    """
    if not target.configuration.supports(Feature.ROW_TRACKING):
        return
    since = (action.protocol for action in _actions_between(target, latest, b'"protocol"'))
    if any(protocol is not None and not supports(protocol, Feature.ROW_TRACKING) for protocol in since):
        raise UnsupportedOperationError(
            f"table {target.table_root} cannot be restored to version {target.version}, which tracked rows: the table "
            "feature rowTracking was dropped since, and other rows may now have the row ids of that version. Restore "
            "a version after the drop, or read this one (versionAsOf) and write its rows again.",
            code="DELTA_ROW_TRACKING_NOT_READY",
            table=target.table_root,
            version=target.version,
        )


def _actions_between(target: Snapshot, latest: Snapshot, kind: bytes) -> Iterator[SingleAction]:
    """The actions of a kind in the commits after the version, up to the latest."""
    if target.version == latest.version:
        return
    storage = latest.storage
    commits = list_log(storage, latest.table_root, target.version + 1, latest.version).commits
    for file, data in fetch_commits(storage, commits):
        lines = [line for line in data.splitlines() if kind in line]
        yield from decode_commit(b"\n".join(lines), file.path)


def _marks(schema: StructType, later: StructType) -> dict[str, int]:
    """The high-water marks in a later schema of identity columns with the same start and step."""
    pairs = ((field, later.find(field.name)) for field in schema)
    return {
        field.name: int(then.metadata[IDENTITY_HIGH_WATER_MARK])
        for field, then in pairs
        if then is not None and continues(field, then)
    }


def _number(text: str | None) -> int:
    """A property's whole number; 0 for any other text."""
    return int(text) if text and text.isascii() and text.isdecimal() else 0
