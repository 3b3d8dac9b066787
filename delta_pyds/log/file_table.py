"""Logical files as Arrow rows: the one shape in which adds of checkpoints and of commits meet.

A million files are a million rows, never a million objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa

from delta_pyds.protocol.actions import AddFile

STRING_MAP = pa.map_(pa.string(), pa.string())
DELETION_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
        ("maxRowIndex", pa.int64()),
    ]
)

# Columns of a file table, named as the protocol names the fields of ``add``.
FILE_COLUMNS: dict[str, pa.DataType] = {
    "path": pa.string(),
    "partitionValues": STRING_MAP,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": STRING_MAP,
    "deletionVector": DELETION_VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
}

KEY_COLUMNS = ("path", "deletionVector")


def file_schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, FILE_COLUMNS[name]) for name in columns])


def files_to_batch(files: Iterable[AddFile], columns: Sequence[str]) -> pa.RecordBatch:
    """Adds of commits as a batch of the named columns."""
    rows = list(files)
    arrays = [pa.array([_field(f, name) for f in rows], FILE_COLUMNS[name]) for name in columns]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=file_schema(columns))


_ATTRIBUTE = {
    "path": "path",
    "partitionValues": "partition_values",
    "size": "size",
    "modificationTime": "modification_time",
    "dataChange": "data_change",
    "stats": "stats",
    "tags": "tags",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
    "clusteringProvider": "clustering_provider",
}


def _field(file: AddFile, column: str) -> object:
    value = getattr(file, _ATTRIBUTE[column])
    if value is None:
        return None
    if column == "deletionVector":
        return msgspec.to_builtins(value)
    if column in ("partitionValues", "tags"):
        return list(value.items())
    return value


def conform_add(add: pa.StructArray, columns: Sequence[str]) -> pa.RecordBatch:
    """The named columns out of a checkpoint's ``add`` struct, in the types of ``FILE_COLUMNS``.

    A field that the checkpoint lacks is null. Rows are those of ``add``; the
    caller drops the ones where it is null first. Fields of another type
    (integers of other widths, maps with other child names) are cast.
    """
    fields = {add.type.field(i).name: i for i in range(add.type.num_fields)}
    arrays = []
    for name in columns:
        target = FILE_COLUMNS[name]
        if name not in fields:
            arrays.append(pa.nulls(len(add), target))
            continue
        arrays.append(_to(add.field(fields[name]), target))
    return pa.RecordBatch.from_arrays(arrays, schema=file_schema(columns))


def _to(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), target)
        have = {array.type.field(i).name: i for i in range(array.type.num_fields)}
        children = [
            _to(array.field(have[f.name]), f.type) if f.name in have else pa.nulls(len(array), f.type) for f in target
        ]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    return array.cast(target)
