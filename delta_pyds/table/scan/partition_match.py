"""Predicates over partition columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import compress, islice

import pyarrow as pa

from delta_pyds.columnar.evaluate import matches
from delta_pyds.columnar.values import values_array
from delta_pyds.errors import ProtocolError
from delta_pyds.expr.binder.build import Builder, bind_column
from delta_pyds.expr.logic import and_, or_
from delta_pyds.expr.nodes import FALSE, TRUE, Expr, Literal, conjuncts, references
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.partition_values import PartitionValue, invalid_in_file, parse_partition_value
from delta_pyds.protocol.schema import StructField, StructType

_FILES_AT_ONCE = 10_000


def in_partitions(
    schema: StructType, partition_columns: Iterable[str], written: Iterable[Mapping[str, str | None]]
) -> Expr:
    """A predicate that is true for rows in the given partitions, which are compared by value, not by spelling.

    ``written``: partition values by physical name, as in the log; timestamps have a time zone.
    """
    fields = [f for f in schema if f.name in set(partition_columns)]
    builder = Builder("UTC")
    distinct = dict.fromkeys(tuple(values.get(f.physical_name) for f in fields) for values in written)
    parts: list[Expr] = []
    if len(fields) == 1:
        column = bind_column([fields[0].name], schema)
        values = [Literal(parse_partition_value(t[0], fields[0].data_type), fields[0].data_type) for t in distinct]
        known = [v for v in values if v.value is not None]
        parts = [builder.is_in(column, known)] if known else []
        parts += [builder.null_safe_equal(column, v) for v in values if v.value is None]
    else:
        for texts in distinct:
            equal = [
                builder.null_safe_equal(
                    bind_column([f.name], schema), Literal(parse_partition_value(t, f.data_type), f.data_type)
                )
                for f, t in zip(fields, texts, strict=True)
            ]
            parts.append(and_(equal))
    return or_(parts) if parts else FALSE


def partition_part(predicate: Expr, partition_columns: Collection[str]) -> Expr:
    """The conjuncts that use only partition columns; true for all rows for which the whole predicate is true."""
    parts = [p for p in conjuncts(predicate) if is_partition_predicate(p, partition_columns)]
    return and_(parts) if parts else TRUE


def is_partition_predicate(predicate: Expr, partition_columns: Collection[str]) -> bool:
    """Whether the predicate uses only partition columns."""
    return all(path[0] in partition_columns for path in references(predicate))


def files_matching(
    files: Iterable[AddFile], predicate: Expr, schema: StructType, *, table: str, time_zone: str
) -> Iterator[AddFile]:
    """The files whose partition values satisfy the predicate: exactly, whereas skipping may keep more files.

    ``table``: the root of the table, for messages.
    Raises: ProtocolError for an invalid partition value, because its file's rows are then unknown.
    """
    used = {path[0] for path in references(predicate)}
    fields = [f for f in schema if f.name in used]
    pending = iter(files)
    while chunk_files := list(islice(pending, _FILES_AT_ONCE)):
        arrays = [
            values_array(tuple(_value(file, f, table, time_zone) for file in chunk_files), f.data_type) for f in fields
        ]
        batch = pa.RecordBatch.from_arrays(arrays, names=[f.name for f in fields])
        yield from compress(chunk_files, matches(predicate, batch, len(chunk_files)).to_pylist())


def _value(file: AddFile, field: StructField, table: str, time_zone: str) -> PartitionValue:
    try:
        return parse_partition_value((file.partition_values or {}).get(field.physical_name), field.data_type, time_zone)
    except ProtocolError as e:
        raise invalid_in_file(e, table, file.path, field.name) from None
