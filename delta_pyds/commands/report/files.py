"""The live files as columns, and histograms of them.

Invariant: one row for each live file, in the order of the log. A number that the log lacks is null. An impossible one
(less than 0, more than a pebibyte) is clamped, so that sums stay in their type.

Protocol: "Add File and Remove File", "Per-file Statistics", "Deletion Vectors".
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.commands.layout.cubes import COLUMNS_TAG, ID_TAG
from delta_pyds.expr.stats_rewrite import Needs
from delta_pyds.log.adds import AddRequest
from delta_pyds.table.scan.file_statistics import Path, SkippingColumns, partition_strings
from delta_pyds.table.snapshot import Snapshot

_MOST = 1 << 50
_KIB = 1024
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
# each bin is four times as wide as the one before
_SIZE_EDGES = tuple(_KIB * 4**n for n in range(12))
_AGES = (
    ("< 1 h", _HOUR_MS), ("1-24 h", _DAY_MS), ("1-7 d", 7 * _DAY_MS), ("7-30 d", 30 * _DAY_MS),
    ("30-90 d", 90 * _DAY_MS), ("90-365 d", 365 * _DAY_MS), ("1-2 y", 730 * _DAY_MS),
)  # fmt: skip
_RATIOS = (("none", 0.0), ("≤ 1 %", 0.01), ("1-5 %", 0.05), ("5-10 %", 0.1), ("10-25 %", 0.25), ("25-50 %", 0.5))

FILE_FIELDS = pa.schema(
    [
        ("size", pa.int64()),
        ("time_ms", pa.int64()),
        ("rows", pa.int64()),
        ("deleted", pa.int64()),
        ("vector", pa.bool_()),
        ("partition", pa.dictionary(pa.int32(), pa.string())),
        ("cube", pa.string()),
        ("cube_columns", pa.dictionary(pa.int32(), pa.string())),
        ("provider", pa.dictionary(pa.int32(), pa.string())),
    ]
)


@dataclass(frozen=True)
class Bars:
    """A histogram. ``counts``: the files of each label. ``weights``: the sum of another number of these files."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    weights: tuple[int, ...]


@dataclass(frozen=True)
class Ranges:
    """The minimum and the maximum of a column in each file: null where unknown, None if unknown for all files."""

    low: pa.ChunkedArray | None
    high: pa.ChunkedArray | None


def read_files(
    snapshot: Snapshot, ranges: Collection[Path] = (), *, tags: bool = False
) -> tuple[pa.Table, dict[Path, Ranges]]:
    """The live files with ``FILE_FIELDS``, and the ranges of these columns.

    ``deleted`` is 0 if there is no deletion vector; ``rows`` includes deleted rows. ``partition``: the values as JSON,
    which is unambiguous. ``tags``: read the tags of clustering; else ``cube`` and ``cube_columns`` are null.

    Raises: errors of reading the log.
    """
    paths = frozenset(ranges)
    skipping = SkippingColumns(Needs(bounds=paths, num_records=True), snapshot.schema, "UTC", snapshot.table_root)
    physical = {f.name: f.physical_name for f in snapshot.schema}
    partitions = [physical[name] for name in snapshot.configuration.partition_columns]
    columns = ["size", "modificationTime", "deletionVector", "clusteringProvider"]
    columns += [name for name, wanted in (("partitionValues", partitions), ("tags", tags)) if wanted]
    request = AddRequest(
        columns=tuple(columns),
        filter_fields=skipping.json_fields,
        parsed_filter_fields=skipping.parsed_fields,
        with_filter_fields=True,
    )
    batches: list[pa.RecordBatch] = []
    found: dict[Path, tuple[list[pa.Array], list[pa.Array]]] = {path: ([], []) for path in paths}
    for batch in snapshot.adds(request):
        if not batch.files.num_rows:
            continue
        assert batch.filter_fields is not None
        statistics = skipping.of(batch.filter_fields)
        batches.append(_row_of(batch.files, statistics.num_records(), partitions, tags=tags))
        for path, (low, high) in found.items():
            _keep(low, statistics.minimum(path), batch.files.num_rows)
            _keep(high, statistics.maximum(path), batch.files.num_rows)
    files = pa.Table.from_batches(batches, FILE_FIELDS).unify_dictionaries()
    return files, {path: Ranges(_joined(low), _joined(high)) for path, (low, high) in found.items()}


def partition_names(text: str, columns: Sequence[str]) -> str:
    """A value of ``partition`` for people: ``day=2026-01-31, city=Bern``."""
    values = json.loads(text)
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in zip(columns, values, strict=True))


def sizes(files: pa.Table) -> Bars:
    """Files by size; ``weights``: their bytes. Empty bins on both sides are left out."""
    labels = [f"< {_bytes(_SIZE_EDGES[0])}"]
    labels += [_between(low, high) for low, high in itertools.pairwise(_SIZE_EDGES)]
    labels += [f"≥ {_bytes(_SIZE_EDGES[-1])}"]
    size = files.column("size")
    return _trimmed(_bars(labels, _bin_numbers(size, _SIZE_EDGES), size))


def ages(files: pa.Table, now_ms: int) -> Bars:
    """Files by the time since they were written; ``weights``: their bytes."""
    edges = [edge for _, edge in _AGES]
    labels = [*(label for label, _ in _AGES), "≥ 2 y"]
    age = pc.subtract(pa.scalar(now_ms), files.column("time_ms"))
    return _bars(labels, _bin_numbers(age, edges), files.column("size"))


def deletions(files: pa.Table) -> Bars:
    """Files by their share of deleted rows; ``weights``: the deleted rows.

    Files with a deletion vector and an unknown number of rows are in a bin of their own, which is left out when empty.
    """
    deleted, rows = files.column("deleted"), files.column("rows")
    at_least_one = pc.max_element_wise(rows.cast(pa.float64()), 1.0, skip_nulls=False)
    ratio = pc.if_else(pc.equal(deleted, 0), pa.scalar(0.0), pc.divide(deleted.cast(pa.float64()), at_least_one))
    bins = pc.multiply(deleted, 0)
    for _, edge in _RATIOS:
        bins = pc.add(bins, pc.greater(ratio, edge).cast(pa.int64()))
    labels = [*(label for label, _ in _RATIOS), "> 50 %", "unknown"]
    bars = _bars(labels, pc.fill_null(bins, len(labels) - 1), deleted)
    return bars if bars.counts[-1] else Bars(bars.labels[:-1], bars.counts[:-1], bars.weights[:-1])


def total(values: pa.ChunkedArray | pa.Array) -> int:
    """The sum, 0 for no values. It is computed as a double, which no number of a log can overflow."""
    return int(pc.sum(values.cast(pa.float64())).as_py() or 0)


def _row_of(files: pa.RecordBatch, rows: pa.Array | None, partitions: Sequence[str], *, tags: bool) -> pa.RecordBatch:
    number = files.num_rows
    vector = files.column("deletionVector")
    present = pc.fill_null(pc.and_(vector.is_valid(), pc.struct_field(vector, "storageType").is_valid()), False)
    deleted = pc.if_else(present, _sound(pc.struct_field(vector, "cardinality")), 0)
    texts = pa.nulls(number, pa.string())
    return pa.RecordBatch.from_arrays(
        [
            _sound(files.column("size")),
            _sound(files.column("modificationTime")),
            pa.nulls(number, pa.int64()) if rows is None else _bounded(rows),
            deleted,
            present,
            _partition_text(files, partitions).dictionary_encode(),
            _tag(files, ID_TAG) if tags else texts,
            (_tag(files, COLUMNS_TAG) if tags else texts).dictionary_encode(),
            files.column("clusteringProvider").dictionary_encode(),
        ],
        schema=FILE_FIELDS,
    )


def _partition_text(files: pa.RecordBatch, partitions: Sequence[str]) -> pa.Array:
    """The values as a JSON list, each distinct combination once."""
    if not partitions:
        return pa.repeat(pa.scalar("[]"), files.num_rows)
    add = files.to_struct_array()
    parts = []
    for name in partitions:
        encoded = partition_strings(add, name).dictionary_encode(null_encoding="encode")
        texts = pa.array([json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()])
        parts.append(texts.cast(pa.string()).take(encoded.indices))
    joined = pc.binary_join_element_wise(*parts, ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def _tag(files: pa.RecordBatch, name: str) -> pa.Array:
    return pc.map_lookup(files.column("tags"), query_key=pa.scalar(name), occurrence="last").cast(pa.string())


def _sound(values: pa.Array) -> pa.Array:
    return pc.fill_null(_bounded(values), 0)


def _bounded(values: pa.Array) -> pa.Array:
    kept = pc.min_element_wise(pc.max_element_wise(values.cast(pa.int64()), 0, skip_nulls=False), _MOST)
    return pc.if_else(values.is_valid(), kept, pa.scalar(None, pa.int64()))


def _keep(arrays: list[pa.Array], found: pa.Array | None, number: int) -> None:
    """Append the batch's values. A batch of unknown values gets nulls, once a later batch shows the type."""
    arrays.append(pa.nulls(number) if found is None else found)


def _joined(arrays: list[pa.Array]) -> pa.ChunkedArray | None:
    typed = next((a.type for a in arrays if not pa.types.is_null(a.type)), None)
    if typed is None:
        return None
    return pa.chunked_array([a.cast(typed) if pa.types.is_null(a.type) else a for a in arrays], typed)


def _bin_numbers(values: pa.ChunkedArray, edges: Sequence[int]) -> pa.ChunkedArray:
    """The number of edges that each value has reached."""
    bins = pc.multiply(values, 0)
    for edge in edges:
        bins = pc.add(bins, pc.greater_equal(values, edge).cast(pa.int64()))
    return bins


def _bars(labels: Sequence[str], bins: pa.ChunkedArray, weight: pa.ChunkedArray) -> Bars:
    counts, weights = [], []
    for number in range(len(labels)):
        here = pc.equal(bins, number)
        counts.append(int(pc.sum(here.cast(pa.int64())).as_py() or 0))
        weights.append(total(weight.filter(here)))
    return Bars(tuple(labels), tuple(counts), tuple(weights))


def _trimmed(bars: Bars) -> Bars:
    filled = [n for n, count in enumerate(bars.counts) if count]
    kept = slice(filled[0], filled[-1] + 1) if filled else slice(0, 0)
    return Bars(bars.labels[kept], bars.counts[kept], bars.weights[kept])


def _between(low: int, high: int) -> str:
    (first, unit), last = _bytes(low).split(), _bytes(high)
    return f"{first}-{last}" if last.endswith(unit) else f"{first} {unit}-{last}"


def _bytes(edge: int) -> str:
    for unit in ("KiB", "MiB", "GiB"):
        edge //= _KIB
        if edge < _KIB:
            return f"{edge} {unit}"
    return f"{edge} GiB"


def chunks(column: pa.ChunkedArray) -> Iterator[memoryview]:
    """The values of an int64 column without nulls, as memory: one Python number at a time."""
    for chunk in column.chunks:
        buffer = chunk.buffers()[1]
        if len(chunk):
            yield memoryview(buffer).cast("q")[chunk.offset : chunk.offset + len(chunk)]
