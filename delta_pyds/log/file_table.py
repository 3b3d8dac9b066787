"""Logical files as Arrow rows, the common form of file actions in checkpoints and commits.

A million files are a million rows, never a million objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.path_keys import KnownPaths, path_keys
from delta_pyds.protocol.actions import AddFile, RemoveFile

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

# The fields of ``remove`` in a checkpoint; statistics and tags are dropped.
TOMBSTONE_COLUMNS: dict[str, pa.DataType] = {
    "path": pa.string(),
    "deletionTimestamp": pa.int64(),
    "dataChange": pa.bool_(),
    "extendedFileMetadata": pa.bool_(),
    "partitionValues": STRING_MAP,
    "size": pa.int64(),
    "deletionVector": DELETION_VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
}
_TYPES = {**FILE_COLUMNS, **TOMBSTONE_COLUMNS}

KEY_COLUMNS = ("path", "deletionVector")

# Each path's key with the deletion vector ids with which later commits added or removed it.
Touched = Mapping[str, frozenset["str | None"]]


def file_schema(columns: Sequence[str]) -> pa.Schema:
    return pa.schema([(name, _TYPES[name]) for name in columns])


def files_to_batch(files: Iterable[AddFile | RemoveFile], columns: Sequence[str]) -> pa.RecordBatch:
    """File actions as a batch with these columns of ``FILE_COLUMNS`` or ``TOMBSTONE_COLUMNS``."""
    rows = list(files)
    arrays = [pa.array([_field(f, name) for f in rows], _TYPES[name]) for name in columns]
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return pa.RecordBatch.from_arrays(arrays, schema=file_schema(columns))


_ATTRIBUTE = {f.encode_name: f.name for action in (AddFile, RemoveFile) for f in msgspec.structs.fields(action)}


def _field(file: AddFile | RemoveFile, column: str) -> object:
    value = getattr(file, _ATTRIBUTE[column])
    if value is None:
        return None
    if column == "deletionVector":
        return msgspec.to_builtins(value)
    if column in ("partitionValues", "tags"):
        return list(value.items())
    return value


def conform_files(files: pa.StructArray, columns: Sequence[str]) -> pa.RecordBatch:
    """These columns of a checkpoint's ``add`` or ``remove`` structs, cast to the types of this module.

    Casts change the widths of integers and the names of children of maps. A column that the checkpoint lacks is null.
    The caller must drop null rows first.
    """
    fields = {files.type.field(i).name: i for i in range(files.type.num_fields)}
    arrays = []
    for name in columns:
        target = _TYPES[name]
        if name not in fields:
            arrays.append(pa.nulls(len(files), target))
            continue
        arrays.append(_cast(files.field(fields[name]), target))
    return pa.RecordBatch.from_arrays(arrays, schema=file_schema(columns))


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), target)
        have = {array.type.field(i).name: i for i in range(array.type.num_fields)}
        children = [
            _cast(array.field(have[f.name]), f.type) if f.name in have else pa.nulls(len(array), f.type) for f in target
        ]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    return array.cast(target)


class UntouchedRows:
    """Selects the rows of a checkpoint's ``add`` or ``remove`` whose key no later commit names.

    Protocol: "Action Reconciliation".
    """

    def __init__(self, touched: Touched) -> None:
        self._paths = KnownPaths(touched)
        self._nothing = not touched
        keys = [_key(path, vector) for path, vectors in touched.items() for vector in vectors]
        self._keys = pa.array(keys, pa.string())

    def mask(self, files: pa.StructArray) -> pa.BooleanArray | None:
        """A mask of the rows with a file that no commit touched; None if this is true of all rows.

        ``files`` must have the fields ``KEY_COLUMNS`` if any file was touched.
        """
        # some writers use a struct of nulls for a missing action
        path = files.field("path") if files.type.get_field_index("path") >= 0 else None
        present = files if path is None or not path.null_count else path
        mask = present.is_valid() if present.null_count else None
        if self._nothing:
            return mask
        shadowed = self._shadowed(files)
        if shadowed is None:
            return mask
        own = pc.invert(pc.is_in(pa.array(range(len(files)), pa.int64()), value_set=shadowed))
        return own if mask is None else pc.and_(mask, own)

    def _shadowed(self, files: pa.StructArray) -> pa.Int64Array | None:
        """The positions of touched files."""
        # a path may still be live with another deletion vector: the whole key is built, but only for touched paths
        hits = self._paths.positions(files.field("path").cast(pa.string()))
        if len(hits) == 0:
            return None
        keys = file_keys(conform_files(files.take(hits), KEY_COLUMNS))
        found = hits.filter(pc.is_in(keys, value_set=self._keys)).cast(pa.int64())
        return found if len(found) else None


def file_keys(files: pa.RecordBatch) -> pa.StringArray:
    """``file_key`` of each file as one text. ``files`` has ``KEY_COLUMNS``."""
    ids = _vector_ids(files.column("deletionVector"))
    return pc.binary_join_element_wise(path_keys(files.column("path")), ids, "\n")


def _key(path: str, vector: str | None) -> str:
    return f"{path}\n{vector or ''}"


def _vector_ids(vectors: pa.StructArray) -> pa.StringArray:
    """The unique ids of deletion vectors; the empty text for a file without a vector."""
    kind, text, offset = (vectors.field(name) for name in ("storageType", "pathOrInlineDv", "offset"))
    suffix = pc.binary_join_element_wise("@", offset.cast(pa.string()), "").fill_null("")
    ids = pc.binary_join_element_wise(kind, text, suffix, "").fill_null("")
    return pc.if_else(vectors.is_valid(), ids, "")
