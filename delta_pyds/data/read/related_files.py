"""Files of a commit that are compared with each other, in groups as small as the footers allow.

Rows of two files are not the same if no value of one column can be in both. So a commit that rewrote many files is
compared in many tasks, and in each the rows fit into memory.

Invariant: if footers are right, the same row is never in files of two groups. The log's statistics would do for files
that were added; files that were removed mostly have none there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from delta_pyds.columnar.scan_files import COMPARED, to_scan_files
from delta_pyds.data.read.data_file import open_data_file
from delta_pyds.data.read.file_plan import FilePlan
from delta_pyds.data.read.footer_statistics import RowGroupStatistics
from delta_pyds.data.read.row_groups import row_groups_in
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.schema import LONG, PrimitiveType, StructField, StructType
from delta_pyds.tasks.scan_state import ScanFile, ScanState

_LOADERS = 16
# Fewer bytes are compared in one task at once. Opening a shorter file takes as long as decoding much of it.
_LEAST_BYTES = 16 * 1024 * 1024
_LEAST_FILE_BYTES = 1024 * 1024
# the first columns mostly have the keys
_MOST_COLUMNS = 8
_ORDERED = frozenset({"byte", "short", "integer", "long", "date", "timestamp", "timestamp_ntz", "string"})


def in_related_groups(state: ScanState, batches: Sequence[pa.RecordBatch]) -> Sequence[pa.RecordBatch]:
    """Split groups of compared files. A file that no file of the other side may share rows with is not compared.

    Args:
        batches: rows of ``columnar.scan_files``, with one schema.
    """
    if state.compared_columns is None or not any(map(_has_compared, batches)):
        return batches
    batch = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    compared = batch.column("compared").to_pylist()
    members: defaultdict[int, list[int]] = defaultdict(list)
    for row, one in enumerate(compared):
        if one is not None:
            members[one["group"]].append(row)
    order = [row for row, one in enumerate(compared) if one is None]
    changed: list[Any] = [None] * len(order)
    numbers = count()
    for rows in members.values():
        for group in _related(state, batch.take(pa.array(rows))):
            number = next(numbers)
            found = [{**compared[rows[at]], "group": number} for at in group]
            # all rows came, or all left
            one_sided = len({one["removed"] for one in found}) == 1
            changed += [None] * len(found) if one_sided else found
            order += [rows[at] for at in group]
    taken = batch.take(pa.array(order, pa.int64()))
    at = batch.schema.get_field_index("compared")
    return [taken.set_column(at, batch.schema.field(at), pa.array(changed, COMPARED))]


def _has_compared(files: pa.RecordBatch) -> bool:
    # the first rows of a stream are those of a snapshot
    return "compared" in files.schema.names and files.column("compared").null_count < files.num_rows


def _related(state: ScanState, files: pa.RecordBatch) -> list[list[int]]:
    """The numbers of the files of each group."""
    sizes = [size or 0 for size in files.column("size").to_pylist()]
    every = list(range(len(sizes)))
    if sum(sizes) < max(_LEAST_BYTES, _LEAST_FILE_BYTES * len(sizes)):
        return [every]
    try:
        ranges = _ranges(state, list(to_scan_files(files, state.table_root)))
    except DeltaError:
        # the task that reads the file reports it
        return [every]
    best = [every]
    for column in zip(*ranges, strict=True):
        if None not in column:
            groups = _overlapping(column)
            if _largest(groups, sizes) < _largest(best, sizes):
                best = groups
    return best


def _largest(groups: Sequence[Sequence[int]], sizes: Sequence[int]) -> int:
    return max(sum(sizes[at] for at in group) for group in groups)


@dataclass(frozen=True)
class ValueRange:
    """All values of a column in a file. ``low``, ``high``: None if all are null."""

    low: Any
    high: Any
    has_nulls: bool


def _overlapping(ranges: Sequence[ValueRange | None]) -> list[list[int]]:
    """The numbers of the ranges in groups that share no value, in the order of their lowest values."""
    known = [(at, one) for at, one in enumerate(ranges) if one is not None]
    ordered = sorted((one.low, one.high, at) for at, one in known if one.low is not None)
    groups: list[list[int]] = []
    highest: Any = None
    for low, high, at in ordered:
        if groups and low <= highest:
            groups[-1].append(at)
            highest = max(highest, high)
        else:
            groups.append([at])
            highest = high
    # null is one more value
    nulls = {at for at, one in known if one.has_nulls or one.low is None}
    with_nulls = [group for group in groups if nulls.intersection(group)]
    groups = [group for group in groups if not nulls.intersection(group)]
    only_nulls = [at for at, one in known if one.low is None]
    if with_nulls or only_nulls:
        groups.append([*(at for group in with_nulls for at in group), *only_nulls])
    return groups


def _ranges(state: ScanState, files: Sequence[ScanFile]) -> list[list[ValueRange | None]]:
    """The range of each column in each file; None if it is unknown. Raises: errors of opening a data file."""
    compared = files[0].compared
    assert compared is not None and state.compared_columns is not None
    if compared.row_ids is None:
        fields = [f for f in state.compared_columns.fields if _is_ordered(f)][:_MOST_COLUMNS]
    else:
        # materialized ids are found by the name of their column in each mode
        state = replace(state, column_mapping_mode="none")
        fields = [] if compared.row_ids.row_id is None else [StructField(compared.row_ids.row_id, LONG)]
    state = replace(
        state, output=StructType(tuple(fields)), inputs=StructType(()), predicate=None, skip=None, row_ids=None
    )
    plans = SharedPlans(state)

    def ranges_of(file: ScanFile) -> list[ValueRange | None]:
        with open_data_file(lambda: plans.source_of(file), state, file) as data:
            plan = FilePlan(state, file, data)
            with data.named_errors:
                groups = row_groups_in(data.metadata, data.footer, 0, None, file.size_bytes)
                statistics = plan.statistics([group for group in groups if group.num_rows])
                ranges = [_range(statistics, field) for field in fields]
        if compared.row_ids is None:
            return ranges
        stored = ranges[0] if ranges else ValueRange(None, None, True)
        return [_range_of_row_ids(file, stored, sum(statistics.num_records().to_pylist()))]

    with ThreadPoolExecutor(_LOADERS, thread_name_prefix="deltapy-footers") as pool:
        return list(pool.map(ranges_of, files))


def _range_of_row_ids(file: ScanFile, stored: ValueRange | None, num_rows: int) -> ValueRange | None:
    """Row ids are materialized, or follow from the position. ``stored``: of the materialized ones."""
    if stored is None or (stored.has_nulls and file.base_row_id is None):
        return None
    if not stored.has_nulls or file.base_row_id is None or not num_rows:
        return stored
    bounds = [file.base_row_id, file.base_row_id + num_rows - 1]
    bounds += [] if stored.low is None else [stored.low, stored.high]
    return ValueRange(min(bounds), max(bounds), has_nulls=False)


def _range(statistics: RowGroupStatistics, field: StructField) -> ValueRange | None:
    path = (field.name,)
    low, high, nulls = statistics.minimum(path), statistics.maximum(path), statistics.null_count(path)
    rows = statistics.num_records().to_pylist()
    counts = [None] * len(rows) if nulls is None else nulls.to_pylist()
    lows, highs = (_plain(bound, len(rows)) for bound in (low, high))
    some = [i for i, number in enumerate(rows) if counts[i] != number]
    if any(lows[i] is None or highs[i] is None or lows[i] > highs[i] for i in some):
        return None
    has_nulls = any(number != 0 for number in counts)
    if not some:
        return ValueRange(None, None, has_nulls)
    return ValueRange(min(lows[i] for i in some), max(highs[i] for i in some), has_nulls)


def _plain(bounds: pa.Array | None, count: int) -> list[Any]:
    """Values with an order in Python; times as numbers, because Python knows no far ones."""
    if bounds is None:
        return [None] * count
    kind = bounds.type
    if pt.is_temporal(kind):
        bounds = bounds.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    # texts have the order of their bytes
    values = bounds.cast(pa.binary()) if pt.is_string(kind) else bounds
    return list(values.to_pylist())


def _is_ordered(field: StructField) -> bool:
    return isinstance(field.data_type, PrimitiveType) and field.data_type.name in _ORDERED
