"""The artifacts of a feature in a table, and their removal, so that the feature can be dropped.

Invariant: no row changes, and readers see the same table. A feature is first turned off, so that no writer creates new
artifacts while the old ones are removed. Each step is a separate commit: after an error, the table is in the state of
the last step, and the next drop continues there.

Protocol: "Deletion Vectors", "Column Mapping", "Type Widening", "V2 Spec", "Row Tracking", "In-Commit Timestamps",
"Domain Metadata", "CHECK Constraints".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import msgspec
import pyarrow.compute as pc

from delta_pyds.commands.definition.change import DefinitionChange, DefinitionOptions, commit_change
from delta_pyds.commands.definition.unmapping import remove_mapping
from delta_pyds.commands.definition.widened_files import forget_type_changes, has_type_changes, rewrite_narrow_files
from delta_pyds.commands.layout.optimize import plan_reorg
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner, TaskRunner
from delta_pyds.errors import ConflictError, UserError
from delta_pyds.log.adds import AddRequest
from delta_pyds.protocol.actions import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    AddFile,
    DomainMetadata,
    RemoveFile,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.paths import encode_path, join, path_key, resolve_data_path
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX, Property
from delta_pyds.protocol.schema import StructField, StructType, change_fields, parse_schema, schema_to_string
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.definition.column_mapping import MAPPING_KEYS, unmapped_field
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.conflict import UNBACKFILL
from delta_pyds.table.transaction.transaction import Transaction

VECTOR_TOMBSTONES = "Deletion Vector Tombstones"
# as in the reference, to limit the size of a commit
_FILES_AT_ONCE = 100_000
_MOST_RUNS = 20
_PLACE = Place("process", "a feature is dropped")
_DOMAINS = (CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN)
_ENABLEMENT = (
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    Property.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
)


@dataclass(frozen=True)
class Dropping:
    """How a feature is dropped.

    ``open_table``: opens the latest version. ``runner``: makes a runner for tasks that read so many bytes.
    """

    open_table: Callable[[], Snapshot]
    options: DefinitionOptions = field(default_factory=DefinitionOptions)
    command: CommandOptions = field(default_factory=CommandOptions)
    runner: Callable[[int], TaskRunner] = lambda _: LocalRunner()


def has_artifacts(snapshot: Snapshot, feature: str) -> bool:
    """Whether this version uses the feature, or its properties allow writers to use it."""
    configuration = snapshot.configuration
    properties = configuration.properties
    if feature == Feature.CHECK_CONSTRAINTS:
        return bool(_constraints(snapshot))
    if feature == Feature.DOMAIN_METADATA:
        return bool(snapshot.domain_metadata)
    if feature == Feature.IN_COMMIT_TIMESTAMP:
        return properties.in_commit_timestamps or any(key in configuration.configuration for key in _ENABLEMENT)
    if feature == Feature.ROW_TRACKING:
        off = properties.row_tracking_suspended and not properties.row_tracking
        return not off or next(_with_ids(snapshot), None) is not None
    if feature == Feature.DELETION_VECTORS:
        return properties.deletion_vectors or _has_vectors(snapshot)
    if feature == Feature.COLUMN_MAPPING:
        return configuration.column_mapping_mode != "none" or _has_stray_ids(snapshot)
    if feature in (Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW):
        return properties.type_widening or has_type_changes(snapshot.schema)
    if feature == Feature.V2_CHECKPOINT:
        return properties.checkpoint_policy == "v2" or _has_v2_checkpoint(snapshot)
    if feature == Feature.CHECKPOINT_PROTECTION:
        return Property.REQUIRE_CHECKPOINT_PROTECTION_BEFORE_VERSION in configuration.configuration
    return False


def remove_artifacts(dropping: Dropping, snapshot: Snapshot, feature: str) -> bool:
    """Remove all artifacts of the feature. Returns: whether there were any.

    Raises: UserError (DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE) for constraints, which only the user can drop; errors
        of the commands that rewrite files; a ConflictError.
    """
    if feature == Feature.DELETION_VECTORS:
        return _without_vectors(dropping, snapshot)
    if not has_artifacts(snapshot, feature):
        return False
    if feature == Feature.CHECK_CONSTRAINTS:
        raise UserError(
            f"table {snapshot.table_root} has the CHECK constraints {', '.join(_constraints(snapshot))}: drop them "
            "first (dropConstraint).",
            code="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            table=snapshot.table_root,
        )
    if feature == Feature.DOMAIN_METADATA:
        _drop_domains(snapshot, dropping.options)
    elif feature == Feature.IN_COMMIT_TIMESTAMP:
        _without_timestamps(snapshot, dropping.options)
    elif feature == Feature.ROW_TRACKING:
        _without_row_ids(dropping, snapshot)
    elif feature == Feature.COLUMN_MAPPING:
        _without_mapping(dropping, snapshot)
    elif feature in (Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW):
        return _without_narrow_files(dropping, snapshot)
    elif feature == Feature.V2_CHECKPOINT:
        _set(snapshot, {Property.CHECKPOINT_POLICY: "classic"}, dropping.options)
    return True


def unset(dropping: Dropping, snapshot: Snapshot, *keys: str) -> None:
    """Remove these properties. As in the reference, a version is committed even if the table has none of them."""
    kept = {key: value for key, value in snapshot.configuration.configuration.items() if key not in keys}
    _change(
        snapshot, kept, Operation("UNSET TBLPROPERTIES", {"properties": list(keys), "ifExists": True}), dropping.options
    )


def _set(snapshot: Snapshot, properties: dict[str, str], options: DefinitionOptions) -> None:
    configuration = {**snapshot.configuration.configuration, **properties}
    _change(snapshot, configuration, Operation("SET TBLPROPERTIES", {"properties": properties}), options)


def _change(
    snapshot: Snapshot, configuration: Mapping[str, str | None], operation: Operation, options: DefinitionOptions
) -> None:
    metadata = msgspec.structs.replace(snapshot.metadata, configuration=dict(configuration))
    commit_change(snapshot, DefinitionChange(operation, metadata), options)


# --- writer features


def _constraints(snapshot: Snapshot) -> list[str]:
    keys = (key for key in snapshot.configuration.configuration if key.lower().startswith(CONSTRAINT_PREFIX))
    return sorted(key[len(CONSTRAINT_PREFIX) :] for key in keys)


def _drop_domains(snapshot: Snapshot, options: DefinitionOptions) -> None:
    """Remove the domains of features that were dropped before.

    Raises: UserError (DELTA_FEATURE_DROP_DEPENDENT_FEATURE) for an unknown system domain, which another feature may
        need. Protocol: "Writer Requirements for Domain Metadata".
    """
    unknown = sorted(name for name in snapshot.domain_metadata if name.startswith("delta.") and name not in _DOMAINS)
    if unknown:
        raise UserError(
            f"the table feature {Feature.DOMAIN_METADATA} cannot be dropped from table {snapshot.table_root}: the "
            f"system domain {', '.join(unknown)} is unknown to delta_pyds, and another feature may need it. Remove it "
            "with the engine that wrote it.",
            code="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            table=snapshot.table_root,
            feature=Feature.DOMAIN_METADATA,
            domains=unknown,
        )
    transaction = Transaction(snapshot)
    for name, domain in snapshot.domain_metadata.items():
        transaction.set_domain(DomainMetadata(name, domain.configuration, removed=True))
    operation = Operation("DOMAIN METADATA CLEANUP", {"domainMetadataRemovedCount": len(snapshot.domain_metadata)})
    transaction.commit(operation, user_metadata=options.user_metadata)


def _without_timestamps(snapshot: Snapshot, options: DefinitionOptions) -> None:
    kept = {key: value for key, value in snapshot.configuration.configuration.items() if key not in _ENABLEMENT}
    gone = [key for key in _ENABLEMENT if key in snapshot.configuration.configuration]
    if snapshot.configuration.properties.in_commit_timestamps:
        kept[Property.ENABLE_IN_COMMIT_TIMESTAMPS] = "false"
        gone.append(Property.ENABLE_IN_COMMIT_TIMESTAMPS)
    _change(snapshot, kept, Operation("UNSET TBLPROPERTIES", {"properties": gone, "ifExists": True}), options)


def _without_row_ids(dropping: Dropping, snapshot: Snapshot) -> None:
    batches = 0
    while has_artifacts(snapshot, Feature.ROW_TRACKING):
        properties = snapshot.configuration.properties
        if properties.row_tracking or not properties.row_tracking_suspended:
            # from then on, no writer assigns ids
            off = {Property.ENABLE_ROW_TRACKING: "false", Property.ROW_TRACKING_SUSPENDED: "true"}
            _set(snapshot, off, dropping.options)
            snapshot = dropping.open_table()
            continue
        files = list(islice(_with_ids(snapshot), _FILES_AT_ONCE))
        transaction = Transaction(snapshot)
        transaction.record_files(file.path for file in files)
        transaction.add(
            msgspec.structs.replace(file, data_change=False, base_row_id=None, default_row_commit_version=None)
            for file in files
        )
        transaction.commit(
            Operation(UNBACKFILL, {"batchId": str(batches)}), user_metadata=dropping.options.user_metadata
        )
        batches += 1
        snapshot = dropping.open_table()


def _with_ids(snapshot: Snapshot) -> Iterator[AddFile]:
    scan = plan_scan(snapshot)
    return (
        file for file in live_files(scan) if file.base_row_id is not None or file.default_row_commit_version is not None
    )


# --- reader features


def _without_narrow_files(dropping: Dropping, snapshot: Snapshot) -> bool:
    """Rewrite narrow files, and then remove the record of type changes from exactly the version that was checked.

    A restore may bring narrow files back without changing the metadata, so any file added in between is a conflict.
    """
    recorded = has_type_changes(snapshot.schema)
    unset(dropping, snapshot, Property.ENABLE_TYPE_WIDENING)
    for left in range(_MOST_RUNS - 1, -1, -1):
        snapshot = dropping.open_table()
        if rewrite_narrow_files(snapshot, dropping.command, dropping.runner):
            continue
        try:
            forget_type_changes(snapshot, dropping.options)
            return recorded
        except ConflictError:
            if not left:
                raise
    raise ConflictError(
        f"files of table {snapshot.table_root} were rewritten {_MOST_RUNS} times, but other writers added files of "
        "narrower types again. Stop them, and drop the feature again.",
        code="DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        table=snapshot.table_root,
    )


def _without_mapping(dropping: Dropping, snapshot: Snapshot) -> None:
    if snapshot.configuration.column_mapping_mode != "none":
        runner = dropping.runner(snapshot.totals.size_bytes)
        remove_mapping(snapshot, runner, dropping.options, dropping.command, keep_mode=False)
        return
    # leftover ids and names in the schema of an unmapped table; no file depends on them
    bare = change_fields(_logged_schema(snapshot), unmapped_field)
    gone = (Property.COLUMN_MAPPING_MODE, Property.COLUMN_MAPPING_MAX_COLUMN_ID)
    kept = {key: value for key, value in snapshot.configuration.configuration.items() if key not in gone}
    metadata = msgspec.structs.replace(
        snapshot.metadata, schema_string=schema_to_string(bare), configuration=dict(kept)
    )
    operation = Operation("UNSET TBLPROPERTIES", {"properties": list(gone), "ifExists": True})
    commit_change(snapshot, DefinitionChange(operation, metadata), dropping.options)


def _has_stray_ids(snapshot: Snapshot) -> bool:
    """Whether a field has an id or a physical name, which are ignored without column mapping."""
    found = Property.COLUMN_MAPPING_MAX_COLUMN_ID in snapshot.configuration.configuration

    def look(f: StructField) -> StructField:
        nonlocal found
        found |= not MAPPING_KEYS.isdisjoint(f.metadata)
        return f

    change_fields(_logged_schema(snapshot), look)
    return found


def _logged_schema(snapshot: Snapshot) -> StructType:
    """The schema in the log. The snapshot's schema has no ids if the table does not map columns."""
    text = snapshot.metadata.schema_string
    return snapshot.schema if text is None else parse_schema(text)


def _has_v2_checkpoint(snapshot: Snapshot) -> bool:
    """Whether this version is read from a checkpoint that only readers with the feature can read."""
    checkpoint = snapshot.replay.checkpoint
    return checkpoint is not None and checkpoint.is_v2()


def _has_vectors(snapshot: Snapshot) -> bool:
    for batch in snapshot.adds(AddRequest(columns=("deletionVector",))):
        column = batch.files.column("deletionVector")
        if pc.any(pc.and_(column.is_valid(), column.field("storageType").is_valid())).as_py():
            return True
    return False


def _without_vectors(dropping: Dropping, snapshot: Snapshot) -> bool:
    """Remove deletion vectors by rewriting files, and protect vector files that old versions need from vacuum.

    A writer without the feature ignores vectors in tombstones, so each vector file gets its own tombstone. That writer
    would also apply the tombstone of a file with a vector to the same file without one. So a live file with
    such a tombstone is rewritten too; a restore may leave one.
    """
    found = has_artifacts(snapshot, Feature.DELETION_VECTORS)
    if found:
        unset(dropping, snapshot, Property.ENABLE_DELETION_VECTORS)
        snapshot = dropping.open_table()
    shadowed = _tombstones(snapshot).with_vectors

    def chosen(files: Iterable[AddFile]) -> Iterator[AddFile]:
        return (file for file in files if file.deletion_vector is not None or path_key(file.path) in shadowed)

    # after a lost race the files are looked at again
    plan = plan_reorg(snapshot, (), replace(dropping.command, row_level_concurrency=False), chosen)
    if plan.bins:
        run_layout(plan, _PLACE, dropping.runner(plan.bytes_to_read))
        snapshot = dropping.open_table()
    transaction = Transaction(snapshot)
    transaction.remove(
        RemoveFile(path=path, deletion_timestamp=int(time.time() * 1000), data_change=False)
        for path in _tombstones(snapshot).unprotected
    )
    transaction.commit(Operation(VECTOR_TOMBSTONES, {}), user_metadata=dropping.options.user_metadata)
    return found


@dataclass
class _Tombstones:
    """The tombstones within their retention.

    ``with_vectors``: path keys (``path_key``) of files that were removed with a vector. ``vector_files``: each file of
    vectors with the time of the newest tombstone that needs it. ``others``: each path key with the time of the newest
    tombstone without a vector.
    """

    with_vectors: set[str] = field(default_factory=set)
    vector_files: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)

    @property
    def unprotected(self) -> list[str]:
        """The files of vectors without a tombstone of their own that lasts as long as they are needed."""
        return sorted(path for path, when in self.vector_files.items() if self.others.get(path_key(path), -1) < when)


def _tombstones(snapshot: Snapshot) -> _Tombstones:
    found = _Tombstones()
    since_ms = int(time.time() * 1000) - snapshot.configuration.properties.deleted_file_retention_ms
    for batch in snapshot.replay.tombstones(since_ms):
        columns = (batch.column(name).to_pylist() for name in ("path", "deletionVector", "deletionTimestamp"))
        for path, vector, removed_ms in zip(*columns, strict=True):
            when = removed_ms or 0
            if vector is None or vector["storageType"] is None:
                key = path_key(path)
                found.others[key] = max(when, found.others.get(key, 0))
                continue
            found.with_vectors.add(path_key(path))
            file = _vector_file(snapshot.table_root, vector)
            if file is not None:
                found.vector_files[file] = max(when, found.vector_files.get(file, 0))
    return found


def _vector_file(root: str, vector: Mapping[str, Any]) -> str | None:
    """The file of a vector; None if it is inline or outside of this table, which vacuum ignores."""
    if vector["storageType"] == "p":
        # a clone of a clone may have absolute paths below its own root
        path = normalize_table_root(resolve_data_path(root, vector["pathOrInlineDv"]))
        below = join(root, "")
        return encode_path(path.removeprefix(below)) if path.startswith(below) else None
    if vector["storageType"] != "u":
        return None
    return encode_path(DeletionVectorDescriptor("u", vector["pathOrInlineDv"], 0, 0).relative_path())
