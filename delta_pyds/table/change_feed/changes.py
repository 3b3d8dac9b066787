"""The row changes of one commit, as files to read.

Protocol: "Add CDC File", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import COMPARED
from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.expr.nodes import conjuncts, references
from delta_pyds.log.file_table import DELETION_VECTOR, STRING_MAP, file_schema
from delta_pyds.protocol.actions import AddFile, CommitInfo, RemoveFile, SingleAction, file_key
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.partition_values import format_partition_value
from delta_pyds.protocol.paths import path_key
from delta_pyds.protocol.schema import LONG, STRING, TIMESTAMP, StructField, StructType
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.row_selection import FILE_FIELDS, Relation, RowSelection
from delta_pyds.tasks.scan_state import (
    CHANGE_COLUMNS,
    CHANGE_TYPE_COLUMN,
    COMMIT_TIMESTAMP_COLUMN,
    COMMIT_VERSION_COLUMN,
    ComparedFile,
)

ChangeKind = Literal["insert", "delete", "cdc"]

_CHANGE_FIELDS = tuple(
    StructField(name, data_type) for name, data_type in zip(CHANGE_COLUMNS, (STRING, LONG, TIMESTAMP), strict=True)
)
_SELECTED, _CHANGE_DATA, _COMPARED = "selected", "changeData", "compared"
_ROWS_CHANGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_SCHEMA = pa.schema(
    [
        *file_schema((*FILE_FIELDS, "partitionValues", "stats")),
        pa.field(_SELECTED, DELETION_VECTOR),
        pa.field(_CHANGE_DATA, pa.bool_()),
        pa.field(_COMPARED, COMPARED),
    ]
)

_File = TypeVar("_File", AddFile, RemoveFile)


# outside the garbage collector: a commit may have very many, and they form no cycles
class FileChange(msgspec.Struct, frozen=True, gc=False):
    """A file, the rows in it that a commit changed, and the type of the change.

    The changed rows are those of ``selected``, or all if it is None, minus those of ``deletion_vector``.

    Attributes:
        kind: "cdc" means that the file's column ``_change_type`` gives the change of each row.
        path: as in the log.
        partition_values, size: None if the action lacks them, as in ``remove`` actions of early writers
            (``extendedFileMetadata``).
        stats: JSON that bounds all of the rows; None if unknown.
        compared: set if some of the rows may not have changed: see ``computed``.
    """

    kind: ChangeKind
    path: str
    partition_values: Mapping[str, str | None] | None
    size: int | None
    deletion_vector: DeletionVectorDescriptor | None = None
    selected: DeletionVectorDescriptor | None = None
    stats: str | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    compared: ComparedFile | None = None


def changes_of(actions: Sequence[SingleAction]) -> list[FileChange]:
    """The changes that one commit made, from its actions.

    Applied to the rows before the commit, they give the rows after it. Files that were only rewritten
    (``dataChange`` false) change nothing.
    Protocol: "Reader Requirements for AddCDCFile".
    """
    # a repeated action counts once
    written = {path_key(a.cdc.path): a.cdc for a in actions if a.cdc is not None}
    if written:
        return [FileChange("cdc", c.path, c.partition_values, c.size) for c in written.values()]
    if any(a.commit_info is not None and _only_rewrote_files(a.commit_info) for a in actions):
        return []
    adds = _by_key(a.add for a in actions)
    removes = _by_key(a.remove for a in actions)
    for key in adds.keys() & removes.keys():
        if _same_partition(removes[key], adds[key]):
            del adds[key], removes[key]
    # paths whose deletion vector changes, and nothing else
    paths = {path for path, _ in adds} & {path for path, _ in removes}
    before: dict[str, list[tuple[str, str | None]]] = {}
    for key in removes:
        if key[0] in paths:
            before.setdefault(key[0], []).append(key)
    found: list[FileChange] = []
    for key, add in adds.items():
        old_keys = before.get(key[0], [])
        same = next((k for k in old_keys if _same_partition(removes[k], add)), None)
        if same is not None:
            old_keys.remove(same)
            old = removes.pop(same)
            # the file stays: its rows come or go if either action says dataChange
            if old.data_change or add.data_change:
                found += _vector_changes(old, add)
        elif add.data_change:
            found.append(_all_rows("insert", add))
    return found + [_all_rows("delete", remove) for remove in removes.values() if remove.data_change]


def change_relation(configuration: TableConfiguration) -> Relation:
    """The change feed as a relation: the table's columns, and the change columns as partition columns.

    Raises:
        UserError: the table has a column with the name of a change column (RESERVED_CDC_COLUMNS_ON_READ).
    """
    for field in configuration.schema:
        if {field.name.lower(), field.physical_name.lower()} & set(CHANGE_COLUMNS):
            raise UserError(
                f"the change feed of the table {configuration.table_root} cannot be read: the table's column "
                f"'{field.name}' has a name that the change feed reserves ({', '.join(CHANGE_COLUMNS)}). Read the "
                "table without readChangeFeed, or rename the column.",
                code="RESERVED_CDC_COLUMNS_ON_READ",
                table=configuration.table_root,
                column=field.name,
            )
    return Relation(
        configuration.table_root,
        StructType((*configuration.schema.fields, *_CHANGE_FIELDS)),
        (*configuration.partition_columns, *CHANGE_COLUMNS),
        configuration.column_mapping_mode,
        change_feed=True,
    )


def selected_changes(files: pa.RecordBatch, selection: RowSelection) -> pa.RecordBatch:
    """The rows of ``change_files`` that may hold wanted rows, as rows of ``columnar.scan_files``."""
    mask = kept_changes(files, selection)
    if mask is not None:
        files = files.filter(mask)
    batch = selection.to_scan_batch(files)
    for name in (_SELECTED, _CHANGE_DATA, _COMPARED):
        batch = batch.append_column(_SCHEMA.field(name), files.column(name))
    return batch


def change_files(changes: Sequence[FileChange], *, version: int, timestamp_ms: int) -> pa.RecordBatch:
    """All changed files, before any are skipped: row i is change i.

    Returns: the columns that every file of a scan has, ``partitionValues`` (including those of the change columns,
        without ``_change_type`` for a cdc file), ``stats``, ``selected``, ``changeData`` and ``compared``. The
        partition values of the relation must be present: see ``without_partition_values``.
    """
    of_commit = [
        (COMMIT_VERSION_COLUMN, str(version)),
        (COMMIT_TIMESTAMP_COLUMN, format_partition_value(timestamp_ms * 1000, TIMESTAMP)),
    ]
    values = [
        [*(c.partition_values or {}).items(), *of_commit, (CHANGE_TYPE_COLUMN, None if c.kind == "cdc" else c.kind)]
        for c in changes
    ]
    columns = {
        "path": pa.array([c.path for c in changes], pa.string()),
        "size": pa.array([c.size for c in changes], pa.int64()),
        "deletionVector": _vectors(c.deletion_vector for c in changes),
        "baseRowId": pa.array([c.base_row_id for c in changes], pa.int64()),
        "defaultRowCommitVersion": pa.array([c.default_row_commit_version for c in changes], pa.int64()),
        "partitionValues": pa.array(values, STRING_MAP),
        "stats": pa.array([c.stats for c in changes], pa.string()),
        _SELECTED: _vectors(c.selected for c in changes),
        _CHANGE_DATA: pa.array([c.kind == "cdc" for c in changes], pa.bool_()),
        _COMPARED: pa.array([None if c.compared is None else asdict(c.compared) for c in changes], COMPARED),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in _SCHEMA.names], schema=_SCHEMA)


def without_partition_values(changes: Iterable[FileChange], relation: Relation) -> list[FileChange]:
    """The changes of a partitioned table that lack their partition values."""
    if set(relation.partition_columns) <= set(CHANGE_COLUMNS):
        return []
    return [c for c in changes if c.partition_values is None]


def check_partition_values(changes: Sequence[FileChange], relation: Relation, version: int) -> None:
    """Raises: ProtocolError for a file of a partitioned table without partition values."""
    lacking = without_partition_values(changes, relation)
    if lacking:
        raise ProtocolError(
            f"the change feed of the table {relation.table_root} cannot be read at version {version}: the commit names "
            f"the file '{lacking[0].path}' without its partition values. Early writers left them out, and the previous "
            f"version, which has them, is not available. Read the changes from version {version + 1} on.",
            code="DELTA_CHANGE_DATA_FILE_WITHOUT_PARTITION_VALUES",
            table=relation.table_root,
            version=version,
            path=lacking[0].path,
        )


# --- what a commit changed


def _only_rewrote_files(info: CommitInfo) -> bool:
    """Whether the commit is a MERGE that rewrote files and changed no row."""
    metrics = info.operation_metrics
    if info.operation != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(str(metrics.get(name)) == "0" for name in _ROWS_CHANGED)


def _by_key(files: Iterable[_File | None]) -> dict[tuple[str, str | None], _File]:
    """The logical files that were added or removed, each once, by key."""
    found: dict[tuple[str, str | None], _File] = {}
    for file in files:
        if file is not None:
            found[file_key(file)] = file
    return found


def _same_partition(old: RemoveFile, new: AddFile) -> bool:
    """Whether the file keeps its partition, as far as the remove says. If not, each of its rows changes."""
    there, here = old.partition_values or {}, new.partition_values or {}
    return all((there[name] or None) == (here[name] or None) for name in there.keys() & here.keys())


def _all_rows(kind: ChangeKind, file: AddFile | RemoveFile) -> FileChange:
    values: Mapping[str, str | None] | None = file.partition_values
    # early writers leave them out or empty, which does not mean the null partition
    if isinstance(file, RemoveFile) and not file.extended_file_metadata and not values:
        values = None
    return FileChange(
        kind,
        file.path,
        values,
        file.size,
        deletion_vector=file.deletion_vector,
        stats=file.stats,
        base_row_id=file.base_row_id,
        default_row_commit_version=file.default_row_commit_version,
    )


def _vector_changes(old: RemoveFile, new: AddFile) -> list[FileChange]:
    """The rows that only one of a file's two deletion vectors has: deleted or restored rows."""
    found: list[FileChange] = []
    file = _all_rows("insert", new)
    if new.deletion_vector is not None and new.deletion_vector.cardinality:
        # tight bounds of the new file do not cover the deleted rows
        stats = old.stats or (new.stats if _bounds_all_rows(new.stats) else None)
        found.append(
            msgspec.structs.replace(
                file,
                kind="delete",
                deletion_vector=old.deletion_vector,
                selected=new.deletion_vector,
                stats=stats,
            )
        )
    if old.deletion_vector is not None and old.deletion_vector.cardinality:
        found.append(msgspec.structs.replace(file, selected=old.deletion_vector))
    return found


class _Bounds(msgspec.Struct, rename="camel"):
    tight_bounds: bool = True


def _bounds_all_rows(stats: str | None) -> bool:
    """Whether the statistics also bound deleted rows. Protocol: "Per-file Statistics"."""
    try:
        return stats is not None and not decode_json(stats, _Bounds).tight_bounds
    except InvalidJSONError:
        return False


# --- file skipping


def kept_changes(files: pa.RecordBatch, selection: RowSelection) -> pa.BooleanArray | None:
    """Which rows of ``change_files`` may hold wanted rows; None if all may."""
    if not selection.filters:
        return None
    add = files.to_struct_array()
    mask = selection.keep(add)
    compared = files.column(_COMPARED)
    by_row_id = pc.is_valid(pc.struct_field(compared, "row_ids"))
    unknown_type = pc.or_(files.column(_CHANGE_DATA), compared.is_valid())
    if mask is None or not pc.any(unknown_type).as_py():
        return mask
    # the change types of these rows are not known yet, so conditions on them cannot skip the file
    parts = tuple(
        part
        for whole in selection.filters
        for part in conjuncts(whole)
        if (CHANGE_TYPE_COLUMN,) not in references(part)
    )
    by_the_rest = replace(selection, filters=parts).keep(add)
    mask = pc.if_else(unknown_type, True if by_the_rest is None else by_the_rest, mask)
    # By row ids, a wanted row may have its other image in a file of its group without wanted rows. By values, a row
    # whose partner was skipped stays, and the predicate drops it later: the two have equal values.
    group = pc.struct_field(compared, "group")
    return pc.or_(mask, pc.and_(by_row_id, pc.is_in(group, value_set=group.filter(mask).drop_null())))


def _vectors(vectors: Iterable[DeletionVectorDescriptor | None]) -> pa.StructArray:
    rows: list[Any] = [None if v is None else msgspec.to_builtins(v) for v in vectors]
    return pa.array(rows, DELETION_VECTOR) if any(rows) else pa.nulls(len(rows), DELETION_VECTOR)
