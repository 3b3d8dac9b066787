"""Shallow clone: a new table, or a new version of one, that refers to the data files of another.

    result = shallow_clone(source, target_storage, "/data/copy", CloneOptions(replace=True))

Invariants: the target's files are the source's, by absolute paths, with their deletion vectors, statistics and tags; no
data is copied. Rows keep the source's row ids, unless the target has already assigned ids: then they get new ones,
because a table never assigns an id twice. The target has its own history and id, and never changes the source's files.
Files that a vacuum of the source deletes are missing in the clone, too. The user's properties must fit the files, so
every row satisfies the rules of the clone.

Protocol: "Add File and Remove File" (absolute paths), "Deletion Vectors" (storage type p), "Row Tracking", "Change
Metadata", "Column Mapping", "Iceberg Compatibility V2", "CHECK Constraints".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.commands.maintenance.file_difference import (
    MAX_PATHS,
    FileKeys,
    directories_of,
    file_paths,
    missing_files,
    only_in,
    shown_paths,
)
from delta_pyds.errors import (
    FileNotFoundInStorageError,
    OptionError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.html_table import ShownAsTable
from delta_pyds.log.segment import latest_version
from delta_pyds.progress import step
from delta_pyds.protocol.actions import (
    ROW_TRACKING_DOMAIN,
    AddFile,
    Metadata,
    Protocol,
    RemoveFile,
    file_key,
)
from delta_pyds.protocol.features import Feature, implied_features, supported_features, with_features
from delta_pyds.protocol.paths import encode_path, is_absolute, path_key
from delta_pyds.protocol.properties import (
    CONSTRAINT_PREFIX,
    ICEBERG_COMPAT_PROPERTIES,
    Property,
    TableProperties,
    parse_properties,
)
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.allowed_roots import require_all_allowed
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import hadoop_path, scheme_of
from delta_pyds.table.definition.clustering import clustering_as_in, require_clustering_statistics
from delta_pyds.table.definition.property_rules import check_consistent, read_properties
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_rules import check_columns
from delta_pyds.table.definition.statistics_columns import check_statistics_columns
from delta_pyds.table.scan.live_files import REMOVAL_COLUMNS, removal
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.row_tracking import high_water_mark
from delta_pyds.table.transaction.transaction import TableToCreate, Transaction

logger = safe_logger(__name__)

# properties that describe the source's history
_OF_ITS_HISTORY = (
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION,
)
_ROW_ID_COLUMNS = (Property.MATERIALIZED_ROW_ID_COLUMN_NAME, Property.MATERIALIZED_ROW_COMMIT_VERSION_COLUMN_NAME)
_NO_FILES = FileKeys.none()


@dataclass(frozen=True)
class CloneOptions:
    """``replace``: a new version turns an existing table at the target into the clone.

    ``properties``: set on the clone; they override those of the source.
    """

    replace: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    user_metadata: str | None = None


@dataclass(frozen=True)
class CloneResult(ShownAsTable):
    """``version``: the target's. The other numbers have the reference's names and meaning; sizes are in bytes."""

    version: int
    source_table_size: int
    source_num_of_files: int
    num_removed_files: int
    num_copied_files: int
    removed_files_size: int
    copied_files_size: int

    def __str__(self) -> str:
        return (
            f"made version {self.version}: added {self.source_num_of_files} files of the source, with "
            f"{self.source_table_size} bytes; removed {self.num_removed_files} files"
        )


def shallow_clone(source: Snapshot, storage: Storage, target_root: str, options: CloneOptions) -> CloneResult:
    """Clone a version of a table to a path.

    Raises: UserError (DELTA_UNSUPPORTED_NON_EMPTY_CLONE) if the target is not empty and may not be replaced,
        (DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE) for the source itself, (DELTA_FILE_NOT_FOUND_DETAILED) for missing
        files; OptionError for a target in another store; StorageError for files that the target's storage cannot open;
        UnsupportedOperationError if a catalog manages one of the two; as ``_clone_properties``; a ConflictError.
    """
    started_s, root = time.monotonic(), source.table_root
    if source.configuration.by_catalog or is_catalog_managed(storage):
        raise UnsupportedOperationError(
            f"table {root if source.configuration.by_catalog else target_root} is managed by a catalog, which does not "
            "know that a shallow clone shares files with another table. Copy the rows to a new table instead.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            table=root,
        )
    source.configuration.check_writable()
    _check_location(root, target_root)
    existing = _existing(storage, target_root, options)
    wanted = _clone_properties(source, options.properties)
    new_row_ids = _needs_new_row_ids(source, existing)
    metadata = _metadata(source, existing, wanted, new_row_ids=new_row_ids)
    protocol = _protocol(source, existing, metadata, wanted)
    now_ms = time.time_ns() // 1_000_000
    keys = FileKeys.of(source)
    base = _as_uri(root)
    adds = [_of_source(file, base, new_row_ids=new_row_ids) for file in only_in(source, keys, _NO_FILES)]
    _check_files(source, storage, target_root, adds)
    removes: list[RemoveFile] = []
    if existing is not None:
        files = only_in(existing, FileKeys.of(existing), _NO_FILES, REMOVAL_COLUMNS)
        removes = [removal(file, deletion_timestamp_ms=now_ms, data_change=True) for file in files]
    metrics = {
        "sourceTableSize": keys.size_bytes,
        "sourceNumOfFiles": len(keys),
        "numRemovedFiles": len(removes),
        "numCopiedFiles": 0,
        "removedFilesSize": sum(file.size or 0 for file in removes),
        "copiedFilesSize": 0,
    }
    if adds:
        # another engine may have written the files; if the source is a clone, some are outside of it
        source.storage.make_all_durable(directories_of(root, adds))
    transaction = Transaction(existing or TableToCreate(storage, target_root))
    transaction.record_whole_table()
    transaction.set_metadata(metadata)
    transaction.set_protocol(protocol)
    clustering = clustering_as_in(source.domain_metadata, {} if existing is None else existing.domain_metadata)
    if clustering is not None:
        transaction.set_domain(clustering)
    if not new_row_ids:
        # new ids of the clone begin after the source's
        transaction.set_row_id_mark(high_water_mark(source.domain_metadata.get(ROW_TRACKING_DOMAIN)))
    already = {path_key(file.path) for file in removes}
    if any(path_key(add.path) in already for add in adds):
        adds, removes = _without_both(adds, removes)
    transaction.add(adds)
    transaction.remove(removes)
    committed = transaction.commit(
        Operation("CLONE", {"source": f"delta.`{hadoop_path(root)}`", "sourceVersion": source.version}, metrics),
        user_metadata=options.user_metadata,
        # rows that others append meanwhile to the replaced table must not remain besides the source's rows
        isolation_level="Serializable",
    )
    result = CloneResult(committed.version, *metrics.values())
    logger.info("Clone of %s to %s %s, in %.1f s.", root, target_root, result, time.monotonic() - started_s)
    return result


def _check_location(root: str, target_root: str) -> None:
    if target_root == root:
        raise UserError(
            f"table {root} cannot be cloned onto itself. Clone it to another path; to go back to an earlier version, "
            "restore it.",
            code="DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
            table=root,
        )
    if scheme_of(target_root) != scheme_of(root):
        raise OptionError(
            f"table {root} cannot be cloned to {target_root}: a shallow clone refers to the files of the source, and a "
            "table cannot refer to files in another store. Clone it to a path of the same store.",
            code="DELTA_INVALID_CLONE_PATH",
            option="target",
        )


def _check_files(source: Snapshot, storage: Storage, target_root: str, adds: Sequence[AddFile]) -> None:
    """Check that the target's storage can open the files. For the latest version, which is complete, one is enough."""
    is_latest = latest_version(source.storage, source.table_root) == source.version
    require_all_allowed(storage, file_paths(target_root, adds))
    with step("check of cloned files", target_root, log=logger):
        missing = missing_files(storage, target_root, adds[:1] if is_latest else adds)
    if missing:
        raise UserError(
            f"version {source.version} of table {source.table_root} cannot be cloned: {len(missing)} of its files are "
            f"missing, probably deleted by a vacuum. Clone a later version. Missing files: {shown_paths(missing)}",
            code="DELTA_FILE_NOT_FOUND_DETAILED",
            table=source.table_root,
            version=source.version,
            paths=tuple(missing[:MAX_PATHS]),
        )


def _needs_new_row_ids(source: Snapshot, existing: Snapshot | None) -> bool:
    """Whether the target has assigned row ids, which may equal those of the source's rows, or the source has none."""
    if not source.configuration.supports(Feature.ROW_TRACKING):
        return True
    return existing is not None and high_water_mark(existing.domain_metadata.get(ROW_TRACKING_DOMAIN)) >= 0


def _existing(storage: Storage, target_root: str, options: CloneOptions) -> Snapshot | None:
    try:
        snapshot = open_snapshot(storage, target_root)
    except TableNotFoundError:
        snapshot = None
    if snapshot is not None and options.replace:
        snapshot.configuration.check_writable()
        return snapshot
    there = "a table" if snapshot is not None else _first_name(storage, target_root)
    if there is not None:
        raise UserError(
            f"{target_root} is not empty ({there}), so nothing was cloned. Clone to another path"
            + (", or set replace=True to replace this table." if snapshot is not None else "."),
            code="DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
            table=target_root,
        )
    return None


def _first_name(storage: Storage, directory: str) -> str | None:
    try:
        return next((entry.name for entry in storage.list_directory(directory)), None)
    except FileNotFoundInStorageError:
        return None


def _metadata(source: Snapshot, existing: Snapshot | None, wanted: _CloneProperties, *, new_row_ids: bool) -> Metadata:
    configuration = {key: value for key, value in wanted.configuration.items() if key not in _OF_ITS_HISTORY}
    if existing is not None:
        # the earlier versions remain in the log of the target
        configuration.update(
            (key, value) for key, value in existing.configuration.configuration.items() if key in _OF_ITS_HISTORY
        )
    if new_row_ids:
        # row ids of the source in columns of its files must not be read
        configuration.update(
            (key, f"_{key.rpartition('.')[2]}-{uuid.uuid4()}") for key in _ROW_ID_COLUMNS if configuration.get(key)
        )
    before = None if existing is None else existing.metadata
    return msgspec.structs.replace(
        source.metadata,
        id=str(uuid.uuid4()) if before is None else before.id,
        name=None if before is None else before.name,
        description=None if before is None else before.description,
        created_time=time.time_ns() // 1_000_000 if before is None else before.created_time,
        configuration=configuration,
    )


def _protocol(source: Snapshot, existing: Snapshot | None, metadata: Metadata, wanted: _CloneProperties) -> Protocol:
    """The protocol of the source, with the features of the existing target and those that the properties need."""
    protocol = source.protocol
    if existing is not None:
        protocol = with_features(existing.protocol, supported_features(source.protocol))
    return upgrade_protocol(protocol, metadata, features=wanted.features)


def _as_uri(root: str) -> str:
    """A root as Hadoop spells it, percent-encoded for the log, without a slash at the end."""
    scheme, _, rest = hadoop_path(root).rstrip("/").partition(":")
    # after a scheme, Java does not encode colons in URIs either
    return f"{scheme}:{encode_path(rest).replace('%3A', ':')}"


def _of_source(file: AddFile, base: str, *, new_row_ids: bool) -> AddFile:
    """The file with absolute paths, also of its vector. ``base``: the source's root as a URI."""
    vector = file.deletion_vector
    if vector is not None and vector.storage_type == "u":
        file_of_vector = f"{base}/{encode_path(vector.relative_path())}"
        vector = msgspec.structs.replace(vector, storage_type="p", path_or_inline_dv=file_of_vector)
    path = file.path if is_absolute(file.path) else f"{base}/{file.path}"
    return msgspec.structs.replace(
        file,
        path=path,
        deletion_vector=vector,
        data_change=True,
        base_row_id=None if new_row_ids else file.base_row_id,
        # with new row ids, row commit versions are the target's
        default_row_commit_version=None,
    )


def _without_both(adds: list[AddFile], removes: list[RemoveFile]) -> tuple[list[AddFile], list[RemoveFile]]:
    """Leave out files that the target has already, for example from an earlier clone."""
    both = {file_key(file) for file in adds} & {file_key(file) for file in removes}
    return (
        [file for file in adds if file_key(file) not in both],
        [file for file in removes if file_key(file) not in both],
    )


@dataclass(frozen=True)
class _CloneProperties:
    """``configuration``: the source's, overridden by the user's. ``features``: requested by name or by versions."""

    configuration: Mapping[str, str | None]
    features: tuple[str, ...]


def _clone_properties(source: Snapshot, given: Mapping[str, str]) -> _CloneProperties:
    """The properties of a clone.

    Raises: OptionError for invalid properties (see ``property_rules``), and for CHECK constraints
        (DELTA_ADD_CONSTRAINTS); UserError (DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE) for another column mapping;
        UnsupportedOperationError for Iceberg compatibility.
    """
    for key in given:
        if key.lower().startswith(CONSTRAINT_PREFIX):
            raise OptionError(
                f"the property {key} is a CHECK constraint, but a clone checks no rows. Clone without it, and call "
                "DeltaTable.addConstraint of the clone, which checks the existing rows.",
                code="DELTA_ADD_CONSTRAINTS",
                property=key,
            )
    request = read_properties(given)
    if Feature.CLUSTERING in request.features:
        raise OptionError(
            "the table feature clustering cannot be added to a clone by its name: use DeltaTable.clusterBy of the "
            "clone, with the clustering columns.",
            code="DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    configuration = {**source.configuration.configuration, **request.configuration}
    check_consistent(configuration)
    _check_files_fit(source, parse_properties(configuration))
    implied = implied_features(request.reader_version or 1, request.writer_version or 1)
    return _CloneProperties(configuration, tuple(dict.fromkeys((*request.features, *sorted(implied)))))


def _check_files_fit(source: Snapshot, after: TableProperties) -> None:
    before = source.configuration
    mode = before.column_mapping_mode
    # under another mode readers would search for the columns in the files by other names
    if after.column_mapping_mode != mode:
        raise UserError(
            f"a clone of table {source.table_root} cannot have {Property.COLUMN_MAPPING_MODE}="
            f"{after.column_mapping_mode}: its files are those of the source, with the column names of mode {mode}. "
            "Clone without the property, and change the clone afterwards.",
            code="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            table=source.table_root,
        )
    for version, key in ICEBERG_COMPAT_PROPERTIES.items():
        if after.iceberg_compat == version != before.properties.iceberg_compat:
            raise UnsupportedOperationError(
                f"{key} cannot be turned on for a clone of table {source.table_root}: its files were not written for "
                "it. Create a new table with the property, and write the rows to it.",
                code="DELTA_ICEBERG_COMPAT_VIOLATION.CHANGE_VERSION_NEED_REWRITE",
                table=source.table_root,
            )
    if after.change_data_feed and not before.properties.change_data_feed:
        check_columns(before.schema, before.partition_columns, mapped=mode != "none", change_data_feed=True)
    if after.stats_columns != before.properties.stats_columns:
        check_statistics_columns(before.schema, after.stats_columns, before.partition_columns)
    require_clustering_statistics(before, after, source.domain_metadata, f"the clone of table {source.table_root}")
