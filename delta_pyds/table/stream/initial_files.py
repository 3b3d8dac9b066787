"""The files of a stream's initial snapshot, in the stream's order."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import PARTITION_PREFIX
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.file_table import DELETION_VECTOR, STRING_MAP
from delta_pyds.protocol.partition_values import format_partition_value
from delta_pyds.protocol.schema import TIMESTAMP
from delta_pyds.table.scan.row_selection import RowSelection
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.stream.files import NO_FILES, StreamFiles, and_masks, path_mask, sizes_of
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, COMMIT_TIMESTAMP_COLUMN, COMMIT_VERSION_COLUMN

_TIME = "modificationTime"
_WANTED = "wanted"


def initial_files(
    snapshot: Snapshot,
    selection: RowSelection,
    exclude: re.Pattern[str] | None = None,
    *,
    change_feed_ms: int | None = None,
) -> StreamFiles:
    """The files of the snapshot by modification time, then by path (as bytes): the same order in every process.

    Memory: one row of ``columnar.scan_files`` for each file, in Arrow.

    Args:
        change_feed_ms: the snapshot's commit time, for a change feed, where all rows of the snapshot are inserts. Then
            ``selection`` is of a ``changes.change_relation``, and the rows also have ``selected`` and ``changeData``.
    """
    columns = dict.fromkeys((*selection.file_fields, _TIME))
    skipping = selection.skipping_columns
    request = AddRequest(
        tuple(columns), skipping.json_fields, skipping.parsed_fields, with_filter_fields=bool(selection.filters)
    )
    change = None if change_feed_ms is None else _change_values(snapshot.version, change_feed_ms)
    batches = []
    for batch in snapshot.adds(request):
        files, add = batch.files, batch.filter_fields
        wanted = None
        if selection.filters:
            assert add is not None
            wanted = selection.keep(add if change is None else _with_values(add, change))
        wanted = and_masks(wanted, path_mask(files, exclude))
        rows = selection.to_scan_batch(files)
        if change is not None:
            rows = _as_inserts(rows, selection, change)
        all_wanted = pa.repeat(pa.scalar(True), files.num_rows)
        rows = rows.append_column(_TIME, pc.fill_null(files.column(_TIME), 0))
        batches.append(rows.append_column(_WANTED, all_wanted if wanted is None else wanted))
    return _ordered(pa.Table.from_batches(batches)) if batches else NO_FILES


def _ordered(table: pa.Table) -> StreamFiles:
    keys = table.select([_TIME, "path"]).combine_chunks()
    order = pc.sort_indices(keys, sort_keys=[(_TIME, "ascending"), ("path", "ascending")])
    del keys
    wanted = table.column(_WANTED).take(order)
    rows = table.drop_columns([_TIME, _WANTED]).take(order.filter(wanted)).combine_chunks()
    numbers = pc.indices_nonzero(wanted).cast(pa.int64())
    if not len(numbers):
        return NO_FILES
    [batch] = rows.to_batches()
    return StreamFiles(numbers, sizes_of(batch), batch)


# --- a snapshot as part of the change feed


def _change_values(version: int, timestamp_ms: int) -> dict[str, str]:
    time = format_partition_value(timestamp_ms * 1000, TIMESTAMP)
    assert time is not None
    return {CHANGE_TYPE_COLUMN: "insert", COMMIT_VERSION_COLUMN: str(version), COMMIT_TIMESTAMP_COLUMN: time}


def _as_inserts(rows: pa.RecordBatch, selection: RowSelection, change: dict[str, str]) -> pa.RecordBatch:
    for position, name in enumerate(selection.state.partition_columns):
        if name in change:
            column = f"{PARTITION_PREFIX}{position}"
            values = pa.repeat(pa.scalar(change[name], pa.string()), rows.num_rows)
            rows = rows.set_column(rows.schema.get_field_index(column), column, values)
    rows = rows.append_column("selected", pa.nulls(rows.num_rows, DELETION_VECTOR))
    return rows.append_column("changeData", pa.repeat(pa.scalar(False), rows.num_rows))


def _with_values(add: pa.StructArray, change: dict[str, str]) -> pa.StructArray:
    """The adds with the same additional partition values in each, for a predicate."""
    position = add.type.get_field_index("partitionValues")
    if position < 0:
        return add
    maps = add.field(position)
    if not maps.type.equals(STRING_MAP):
        maps = maps.cast(STRING_MAP) if pa.types.is_map(maps.type) else pa.nulls(len(add), STRING_MAP)
    counts = pc.fill_null(pc.list_value_length(maps.cast(_ENTRIES)), 0)
    parents = pc.list_parent_indices(maps.cast(_ENTRIES))
    entries = pc.list_flatten(maps.cast(_ENTRIES))
    own = pa.array(range(len(add)), pa.int64())
    every = pa.concat_arrays([parents.cast(pa.int64()), *[own] * len(change)])
    order = pc.array_sort_indices(every)
    keys = pa.concat_arrays([entries.field("key"), *(_repeated(key, len(add)) for key in change)])
    items = pa.concat_arrays([entries.field("value"), *(_repeated(value, len(add)) for value in change.values())])
    ends = pc.cumulative_sum(pc.add(counts.cast(pa.int32()), pa.scalar(len(change), pa.int32())))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    with_change = pa.MapArray.from_arrays(offsets, keys.take(order), items.take(order))
    fields = [add.type.field(i) for i in range(add.type.num_fields)]
    children = [add.field(i) for i in range(add.type.num_fields)]
    fields[position] = pa.field("partitionValues", with_change.type)
    children[position] = with_change
    return pa.StructArray.from_arrays(children, fields=fields, mask=add.is_null() if add.null_count else None)


_ENTRIES = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))


def _repeated(value: str, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), length)
