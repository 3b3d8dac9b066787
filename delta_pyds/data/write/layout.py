"""The layout of a write: partitions, their directories, and the paths of files in the log.

Invariant: rows of one file have the same partition values, as strings of the log. The path in the log, percent-decoded
once, is the path of the file.

Protocol: "Partition Value Serialization", "Add File and Remove File".
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.data.columns import grouped
from delta_pyds.data.write.parquet_schema import mapped_schema
from delta_pyds.protocol.partition_values import format_partition_value
from delta_pyds.protocol.schema import StructField
from delta_pyds.tasks.write_state import WriteState

PartitionKey = tuple[str | None, ...]

CHANGE_DATA_DIRECTORY = "_change_data"
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"
# the characters that Hive and Spark escape, without those that they escape only on Windows
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
# the maximum of one name in a directory, on every common file system
_MAX_NAME_BYTES = 255
_ALPHANUMERIC = string.ascii_letters + string.digits


def escape_path_name(text: str) -> str:
    """A column's name or value as part of a directory name, escaped as in Hive and Spark."""
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def unescape_path_name(text: str) -> str:
    """The inverse of ``escape_path_name``."""
    return re.sub("%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)


def partition_directory(names: Sequence[str], key: PartitionKey) -> str:
    """``a=1/b=x``, escaped. A name that is too long for file systems is truncated, with a digest to keep it unique.

    Readers must not take partition values from it: they are in the log.
    """
    parts = []
    for name, value in zip(names, key, strict=True):
        shown = NULL_DIRECTORY if value is None else escape_path_name(value)
        part = f"{escape_path_name(name)}={shown}"
        if len(part.encode()) > _MAX_NAME_BYTES:
            digest = hashlib.sha256(part.encode()).hexdigest()[:32]
            part = f"{part.encode()[: _MAX_NAME_BYTES - 33].decode(errors='ignore')}-{digest}"
        parts.append(part)
    return "/".join(parts)


class Layout:
    """The grouping of a write's rows into partitions, and the names of the directories.

    ``columns``: the partition columns, in the order of the partitioning. ``positions``: their positions among the
    table's columns.
    """

    def __init__(self, state: WriteState) -> None:
        fields = {f.name: (i, f) for i, f in enumerate(mapped_schema(state))}
        self.columns: tuple[StructField, ...] = tuple(fields[name][1] for name in state.partition_columns)
        self.positions = tuple(fields[name][0] for name in state.partition_columns)
        self._names = tuple(f.physical_name for f in self.columns)
        self._random = state.random_prefix_length
        self._change_data = state.change_data

    def values(self, key: PartitionKey) -> Mapping[str, str | None]:
        """``add.partitionValues`` of a partition."""
        return dict(zip(self._names, key, strict=True))

    def directory(self, key: PartitionKey) -> str:
        """The directory of the partition's next file, relative to the table's root; empty for the root itself."""
        if self._random is not None:
            return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(self._random))
        directory = partition_directory(self._names, key)
        if not self._change_data:
            return directory
        return f"{CHANGE_DATA_DIRECTORY}/{directory}" if directory else CHANGE_DATA_DIRECTORY

    def split(self, columns: Sequence[pa.Array], rows: pa.RecordBatch) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
        """Group rows by partition, keeping their order; each partition is yielded once.

        ``columns``: the partition columns of the rows, which may not be in ``rows``.
        """
        keys, codes = self._keys(columns, rows.num_rows)
        if len(keys) == 1:
            yield keys[0], rows
            return
        for code, some in grouped(rows, codes, len(keys)):
            yield keys[code], some

    def _keys(self, columns: Sequence[pa.Array], num_rows: int) -> tuple[list[PartitionKey], pa.Array]:
        """The distinct partitions, and the index of each row's partition."""
        keys: list[PartitionKey] = [()]
        codes = pa.nulls(num_rows, pa.int32()).fill_null(0)
        for field, column in zip(self.columns, columns, strict=True):
            texts, own = _texts(column, field)
            pairs = pc.add(pc.multiply(codes.cast(pa.int64()), len(texts)), own.cast(pa.int64())).dictionary_encode()
            found = pairs.dictionary.to_pylist()
            keys = [(*keys[pair // len(texts)], texts[pair % len(texts)]) for pair in found]
            codes = pairs.indices
        return keys, codes


def _texts(column: pa.Array, field: StructField) -> tuple[list[str | None], pa.Array]:
    """The distinct partition value strings, and the index of each row's string."""
    encoded = column.dictionary_encode(null_encoding="encode")
    texts = [format_partition_value(v, field.data_type) for v in _plain(encoded.dictionary)]
    positions: dict[str | None, int] = {}
    for text in texts:
        positions.setdefault(text, len(positions))
    if len(positions) == len(texts):
        return texts, encoded.indices
    # null and the empty string are one partition
    position = pa.array([positions[text] for text in texts], pa.int32())
    return list(positions), position.take(encoded.indices)


def _plain(values: pa.Array) -> list[Any]:
    """Python values for ``format_partition_value``: days, microseconds, other values as they are."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_string(values.type):
        # text from Spark may not be UTF-8; format_partition_value decodes it and has a clear error
        values = values.cast(pa.binary())
    plain: list[Any] = values.to_pylist()
    return plain
