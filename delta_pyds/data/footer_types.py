"""What a data file holds that Spark's own Parquet reader would refuse or take for something else.

Spark goes by the table's type and not by all that the file says of its own: an
unsigned or decimal number that a file keeps as an integer it reads as a plain
integer, nanoseconds and some codecs it does not read. Writers that follow the
protocol write none of these, but the log does not say who wrote a file.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.cast import is_list_like, widens
from delta_pyds.data.data_file import open_data_file
from delta_pyds.data.transform import Binder, Binding
from delta_pyds.protocol.handoff import ScanFile, ScanState
from delta_pyds.storage.base import Storage

_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4"})


def foreign_to_spark(storage: Storage, state: ScanState, file: ScanFile) -> list[str]:
    """What speaks against Spark's reader in the columns of the file that the scan reads, as parts of a sentence.

    Raises: what opening a data file and finding the table's columns in it raises.
    """
    with open_data_file(storage, state, file) as data:
        binder = Binder(file.path, data.columns, state.column_mapping_mode)
        fields = [f for f in (*state.output, *state.inputs) if f.physical_name not in state.partition_columns]
        bindings = [binder.bind(f) for f in fields]
        found = [f"the data file '{file.path}' keeps {what}" for b in bindings for what in _of_binding(b)]
        for leaf in sorted({leaf for b in bindings for leaf in b.leaves(data.size_of)}):
            for group in range(min(1, data.metadata.num_row_groups)):
                codec = data.metadata.row_group(group).column(leaf).compression
                if codec not in _CODECS:
                    found.append(f"the data file '{file.path}' is compressed with {codec.lower()}")
        return list(dict.fromkeys(found))


def _of_binding(binding: Binding) -> Iterator[str]:
    if binding.source is None:
        return
    for child in binding.children:
        yield from _of_binding(child)
    source, target = binding.source.data_type, binding.target
    parted = pt.is_struct(source) or pt.is_map(source) or is_list_like(source)
    if not parted and not _is_alike(source, target):
        yield f"the column '{binding.where.column}' as {source}"


def _is_alike(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether Spark reads values that decode as ``source`` as the same ``target`` as we do."""
    if pt.is_dictionary(source):
        source = source.value_type
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        # an instant is no wall clock time, whatever Spark makes of it
        return source.unit in ("us", "ms") and (source.tz is None or target.tz is not None)
    if pt.is_string(target) or pt.is_binary(target):
        return bool(pt.is_string(source) or pt.is_binary(source) or pt.is_large_string(source) or source == target)
    # what a column held before its type was widened; Spark does as we do, in filters too
    return bool(source == target or (widens(source, target) and not pt.is_unsigned_integer(source)))
