"""Variant columns: plain ones are rearranged, shredded ones are reassembled.

Invariant: the result is ``struct<value, metadata>`` with complete values, so later code does not need to know about
shredding. The metadata stays as in the file: it has every key, shredded or not.
Specification: Parquet "Variant Shredding".
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from delta_pyds.columnar.cast import Child, ColumnLocation, Convert, is_list_like, leaf, list_parts, struct_of
from delta_pyds.columnar.schema import VARIANT
from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.read.variant_encoding import (
    NULL,
    encode_array,
    encode_object,
    metadata_keys,
    object_parts,
    primitive_encoder,
)
from delta_pyds.errors import CorruptDataFileError, UnsupportedFeatureError

Encoded = list[bytes | None]  # None: missing
Keys = dict[str, int]


def variant_of(source: FileColumn, where: ColumnLocation) -> Convert:
    """A function that converts a file's variant group to ``struct<value, metadata>``.

    Raises:
        SchemaMismatchError: the group is not a variant.
        UnsupportedFeatureError: it is shredded into an unsupported type.
    """
    parts = {c.name: i for i, c in enumerate(source.children)}
    metadata, value = parts.get("metadata"), parts.get("value")
    if not pt.is_struct(source.data_type) or metadata is None or (value is None and "typed_value" not in parts):
        raise where.mismatch(source.data_type, "variant")
    get_metadata = leaf(source.children[metadata].data_type, pa.binary(), where.child("metadata"))
    if value is None or "typed_value" in parts:
        _check_shredded(source, where)
        return lambda array: _rebuilt(array, where)
    get_value = leaf(source.children[value].data_type, pa.binary(), where.child("value"))
    return struct_of(
        VARIANT,
        [
            Child(value, lambda a: _no_nulls(a if get_value is None else get_value(a)), where.child("value")),
            Child(metadata, get_metadata, where.child("metadata")),
        ],
    )


def _no_nulls(values: pa.Array) -> pa.Array:
    """The values with nulls replaced by the variant null, because a present variant must have a value."""
    return pc.fill_null(values, pa.scalar(NULL, pa.binary())) if values.null_count else values


def _check_shredded(group: FileColumn, where: ColumnLocation) -> None:
    """Refuse, before any row is read, a group that ``_encode`` cannot reassemble."""
    if not group.children:
        raise _unsupported(f"a part of it has type {group.data_type}, not a group of value and typed_value", where)
    for child in group.children:
        if child.name in ("metadata", "value"):
            leaf(child.data_type, pa.binary(), where.child(child.name))
        elif child.name != "typed_value":
            raise _unsupported(f"it has a field '{child.name}' besides metadata, value and typed_value", where)
        elif pt.is_struct(child.data_type):
            for field in child.children:
                _check_shredded(field, where.child(field.name))
        elif is_list_like(child.data_type):
            _check_shredded(child.children[0], where.child("element"))
        elif primitive_encoder(child.data_type) is None:
            raise _unsupported(f"a part of it has type {child.data_type}", where)


def _unsupported(problem: str, where: ColumnLocation) -> UnsupportedFeatureError:
    from delta_pyds.protocol.features import Feature  # only needed here, and executors start without it

    return UnsupportedFeatureError(
        f"the variant column '{where.column}' of the data file '{where.file}' is shredded in a way that is not "
        f"supported (variantShredding): {problem}.",
        code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        feature=Feature.VARIANT_SHREDDING,
        file=where.file,
        column=where.column,
    )


def _damaged(problem: object, where: ColumnLocation) -> CorruptDataFileError:
    return CorruptDataFileError(
        f"the variant column '{where.column}' of the data file '{where.file}' is damaged: {problem}.",
        code="MALFORMED_VARIANT",
        file=where.file,
        column=where.column,
    )


def _rebuilt(array: pa.Array, where: ColumnLocation) -> pa.Array:
    present = array.is_valid()
    dense = array.filter(present) if array.null_count else array
    metadata = _binary(dense.field("metadata"))
    known: dict[bytes, Keys] = {}
    keys = []
    try:
        for raw in metadata.to_pylist():
            if raw is None:
                raise ValueError("a value has no metadata")
            if raw not in known:
                known[raw] = metadata_keys(raw)
            keys.append(known[raw])
        # a missing value in a present variant is the variant null
        values = [NULL if v is None else v for v in _encode(dense, keys)]
    except ValueError as e:
        raise _damaged(e, where) from None
    whole = pa.StructArray.from_arrays([pa.array(values, pa.binary()), metadata], fields=list(VARIANT))
    if not array.null_count:
        return whole
    # each present row takes the next rebuilt value
    indices = pc.if_else(present, pc.subtract(pc.cumulative_sum(present.cast(pa.int64())), 1), None)
    return whole.take(indices)


def _binary(array: pa.Array) -> pa.Array:
    convert = leaf(array.type, pa.binary(), ColumnLocation("", ""))
    return array if convert is None else convert(array)


def _encode(group: pa.Array, keys: Sequence[Keys]) -> Encoded:
    """The value of each row of a group of ``value`` and ``typed_value``; None where both are null."""
    names = [f.name for f in group.type]
    plain: Encoded = _binary(group.field("value")).to_pylist() if "value" in names else [None] * len(group)
    if "typed_value" not in names:
        return plain
    typed = group.field("typed_value")
    while isinstance(typed, pa.ExtensionArray):
        typed = typed.storage
    if pt.is_struct(typed.type):
        return _objects(typed, plain, keys)
    shredded = _arrays(typed, keys) if is_list_like(typed.type) else _primitives(typed)
    if any(v is not None and w is not None for v, w in zip(plain, shredded, strict=True)):
        raise ValueError("a value that is not an object is stored both shredded and not")
    return [v if w is None else w for v, w in zip(plain, shredded, strict=True)]


def _objects(typed: pa.Array, plain: Encoded, keys: Sequence[Keys]) -> Encoded:
    """Objects from their shredded fields, and from the remaining fields in ``plain``."""
    names = [f.name for f in typed.type]
    fields = [_encode(typed.field(i), keys) for i in range(len(names))]
    out: Encoded = []
    for row, here in enumerate(typed.is_valid().to_pylist()):
        rest = plain[row]
        if not here:
            out.append(rest)
            continue
        parts: dict[int, bytes] = {} if rest is None else object_parts(rest)
        for name, encoded in zip(names, fields, strict=True):
            value = encoded[row]
            if value is None:
                continue
            key = keys[row].get(name)
            if key is None:
                raise ValueError(f"the shredded key '{name}' is not in the metadata")
            if key in parts:
                raise ValueError(f"the key '{name}' is stored both shredded and not")
            parts[key] = value
        order = {key: name.encode() for name, key in keys[row].items()}
        if not parts.keys() <= order.keys():
            raise ValueError("an object has a key that is not in the metadata")
        out.append(encode_object(sorted(parts.items(), key=lambda item: order[item[0]])))
    return out


def _arrays(typed: pa.Array, keys: Sequence[Keys]) -> Encoded:
    if len(typed) == 0:
        return []
    lengths = pc.fill_null(pc.list_value_length(typed), 0).to_pylist()
    _, elements = list_parts(typed)
    of_element = [k for k, n in zip(keys, lengths, strict=True) for _ in range(n)]
    encoded = [NULL if v is None else v for v in _encode(elements, of_element)]
    out: Encoded = []
    at = 0
    for here, length in zip(typed.is_valid().to_pylist(), lengths, strict=True):
        out.append(encode_array(encoded[at : at + length]) if here else None)
        at += length
    return out


def _primitives(typed: pa.Array) -> Encoded:
    found = primitive_encoder(typed.type)
    if found is None:
        raise ValueError(f"a part of it has type {typed.type}")
    encode, storage = found
    values = typed if storage is None else typed.view(storage)
    return [None if v is None else encode(v) for v in values.to_pylist()]
