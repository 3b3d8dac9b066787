"""The adds of checkpoints and commits that a request selects, as Arrow rows.

Protocol: "Checkpoints", "Action Reconciliation".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.log.checkpoint_part import BATCH_ROWS, CheckpointPart
from delta_pyds.log.checkpoint_statistics import to_json
from delta_pyds.log.file_table import KEY_COLUMNS, Touched, UntouchedRows, conform_files, files_to_batch
from delta_pyds.log.statistics_cache import SELECTED_ROWS, STATISTICS_CACHE, Columns, StatisticsFilter, size_of
from delta_pyds.protocol.actions import AddFile
from delta_pyds.storage.read_ahead import Expectation, in_background

# row groups that are requested before they are read
_MAX_BYTES_AHEAD = 32 << 20

# the cache key of the mask of rows that are adds
_PRESENT = "present"

Keep = Callable[[pa.StructArray], pa.BooleanArray]


@dataclass(frozen=True)
class AddRequest:
    """The adds and columns that a scan requests.

    ``columns``: the columns of ``FILE_COLUMNS`` to return; ``stats`` is made from
    ``stats_parsed`` if a checkpoint has only that. ``filter_fields``: further fields
    of ``add`` that ``keep`` needs, dotted (``partitionValues``, ``stats``).
    ``parsed_filter_fields``: replaces them for checkpoints with ``stats_parsed``.
    ``keep``: a mask of the ``add`` rows to return; None keeps all. The columns of a
    ``StatisticsFilter`` are cached. ``with_filter_fields``: also return the rows with those fields.
    """

    columns: tuple[str, ...]
    filter_fields: tuple[str, ...] = ()
    parsed_filter_fields: tuple[str, ...] = ()
    keep: Keep | None = None
    with_filter_fields: bool = False


@dataclass(frozen=True)
class FileBatch:
    """Live files. ``files``: the requested columns. ``filter_fields``: the add rows with the fields to filter by."""

    files: pa.RecordBatch
    filter_fields: pa.StructArray | None = None


class _RowsAhead:
    """Reads row groups, requesting those of ``groups`` in order while earlier ones are read.

    A row group is released when it has been read. ``close`` releases the others.
    """

    def __init__(self, part: CheckpointPart, kind: str, names: Sequence[str], groups: Iterable[int] = ()) -> None:
        self._part = part
        self._kind = kind
        self.names = tuple(names)
        self._waiting = deque(groups)
        self._expected: dict[int, Expectation] = {}
        self._bytes: dict[int, int] = {}

    def begin(self, group: int) -> None:
        """Request a row group."""
        if group not in self._expected:
            expectation = self._part.expect_rows(self._kind, group, self.names)
            self._expected[group] = expectation
            self._bytes[group] = expectation.num_bytes

    def begin_next(self) -> None:
        """Request the next of ``groups``."""
        if self._waiting:
            self.begin(self._waiting.popleft())

    def rows(self, group: int) -> Generator[pa.StructArray, None, None]:
        """See ``CheckpointPart.rows``."""
        self.begin(group)
        while self._waiting and sum(self._bytes.values()) < _MAX_BYTES_AHEAD:
            self.begin_next()
        try:
            yield from self._part.rows(self._kind, group, self.names)
        finally:
            self._release(group)

    def _release(self, group: int) -> None:
        self._expected.pop(group, Expectation()).close()
        self._bytes.pop(group, None)

    def close(self) -> None:
        for group in list(self._expected):
            self._release(group)


class PartScan:
    """The adds of one Parquet file that a request selects; must be closed.

    In a store, columns are requested ahead: filter columns while the previous row group is filtered, result columns
    while the next one is.
    """

    def __init__(self, part: CheckpointPart, request: AddRequest, touched: Touched, content: Hashable) -> None:
        self._part = part
        self._request = request
        self._touched = touched
        self._content = content
        self._opening: Future[None] | None = None
        self._ahead: list[_RowsAhead] = []

    def begin_ahead(self) -> None:
        """Open the file and request its first row group in the background, if it is in a store."""
        if self._opening is None and self._part.is_remote:
            self._opening = in_background(self._part.path, self._begin)

    def close(self) -> None:
        for ahead in self._ahead:
            ahead.close()

    def _begin(self) -> None:
        part, request = self._part, self._request
        with part.translating_errors():
            part.check_files("add", {*request.columns, *request.filter_fields})
            parsed = part.has_below("add.stats_parsed")
            fields = part.present("add", request.parsed_filter_fields if parsed else request.filter_fields)
            key = KEY_COLUMNS if self._touched else ()
            columns = request.columns
            if parsed and "stats" in columns and not part.has_in_all("stats", "add"):
                columns = (*columns, "stats_parsed")  # missing texts of statistics are made from this struct
            self._groups = part.row_groups_with("add")
            # decoding in two passes saves work only if the filter needs fewer columns
            self._single_pass = request.keep is None or request.with_filter_fields or set(columns) <= {*fields, *key}
            self._cached = {} if self._single_pass else self._cached_columns()
            returned = ("path", *columns, *(fields if self._single_pass else ()), *key)
            unknown = [group for group in self._groups if group not in self._cached]
            self._result_rows = _RowsAhead(part, "add", returned, self._groups if self._single_pass else ())
            self._filter_rows = _RowsAhead(part, "add", fields, () if self._single_pass else unknown)
            self._ahead = [self._result_rows, self._filter_rows]
            for ahead in self._ahead:
                ahead.begin_next()

    def batches(self) -> Iterator[FileBatch]:
        opening, self._opening = self._opening, None
        if opening is None:
            self._begin()
        else:
            opening.result()
        with self._part.translating_errors():
            yield from self._one_pass() if self._single_pass else self._two_passes()

    def _one_pass(self) -> Iterator[FileBatch]:
        select, keep = _Selector(self._request, self._touched), self._request.keep
        for group in self._groups:
            for add in self._result_rows.rows(group):
                yield from select.finish(add if keep is None else add.filter(keep(add)))

    def _two_passes(self) -> Iterator[FileBatch]:
        select = _Selector(self._request, self._touched)
        wanted: deque[tuple[int, pa.ChunkedArray]] = deque()
        for group in self._groups:
            mask = pa.chunked_array(self._masks(group), pa.bool_())
            if pc.any(mask).as_py():
                if self._selection(group, mask) not in SELECTED_ROWS:
                    self._result_rows.begin(group)
                wanted.append((group, mask))
            if len(wanted) > self._part.is_remote:
                yield from self._selected(select, *wanted.popleft())
        for group, mask in wanted:
            yield from self._selected(select, group, mask)

    def _selected(self, select: _Selector, group: int, wanted: pa.ChunkedArray) -> Iterator[FileBatch]:
        selection = self._selection(group, wanted)
        rows = SELECTED_ROWS.get(selection)
        if rows is not None:
            for add in rows:
                yield from select.finish(add)
            return
        found, size = [], 0
        for add in self._decoded(group, wanted):
            size += size_of([add])
            # a selection of most files would evict all others
            if size <= SELECTED_ROWS.limit // 8:
                found.append(add)
            else:
                found.clear()
            yield from select.finish(add)
        if selection is not None and found:
            SELECTED_ROWS.put(selection, found)

    def _decoded(self, group: int, wanted: pa.ChunkedArray) -> Iterator[pa.StructArray]:
        """The wanted rows of a row group."""
        start = 0
        with closing(self._result_rows.rows(group)) as rows:
            for add in rows:
                mask = wanted.slice(start, len(add)).combine_chunks()
                start += len(add)
                if len(mask) < len(add):
                    break
                if mask.true_count:
                    yield add.filter(mask)
        if start != len(wanted):
            # applying the mask to other rows would lose a file
            raise pa.ArrowInvalid(f"row group {group} has at least {start} rows, but {len(wanted)} rows of statistics")

    def _selection(self, group: int, wanted: pa.ChunkedArray) -> Hashable:
        """A key of the wanted rows and their fields, for the cache; None if the file may change unnoticed."""
        if self._content is None:
            return None
        positions = pc.indices_nonzero(wanted)
        digest = blake2b(memoryview(positions.buffers()[1])[: positions.nbytes], digest_size=16).digest()
        return self._content, self._part.path, group, self._result_rows.names, len(positions), digest

    def _cached_columns(self) -> dict[int, list[tuple[int, Columns]]]:
        """The cached columns of row groups, from earlier requests."""
        keep = self._request.keep
        if self._content is None or not isinstance(keep, StatisticsFilter):
            return {}
        keys = (_PRESENT, *keep.keys)
        cached = {g: STATISTICS_CACHE.get(self._content, (self._part.path, g), keys) for g in self._groups}
        return {group: columns for group, columns in cached.items() if columns is not None}

    def _masks(self, group: int) -> list[pa.BooleanArray]:
        """The mask of the wanted files of a row group, for each batch."""
        keep = self._request.keep
        assert keep is not None
        rows = self._filter_rows.rows(group)
        if self._content is None or not isinstance(keep, StatisticsFilter):
            return [_and_present(keep(add), _present(add)) for add in rows]
        if (cached := self._cached.pop(group, None)) is not None:
            return [_and_present(keep.matches(columns, length), present) for length, (present, *columns) in cached]
        masks, found, size = [], [], 0
        for add in rows:
            present, columns = _present(add), keep.columns(add)
            masks.append(_and_present(keep.matches(columns, len(add)), present))
            size += size_of(columns)
            if size <= STATISTICS_CACHE.limit_bytes // 2:
                found.append((len(add), (present, *columns)))
            else:
                found.clear()
        if found:
            STATISTICS_CACHE.put(self._content, (self._part.path, group), (_PRESENT, *keep.keys), found)
        return masks


def _present(add: pa.StructArray) -> pa.BooleanArray | None:
    """The mask of rows that are adds; None if all are. With it, rows of other actions are not decoded."""
    return add.is_valid() if add.null_count else None


def _and_present(wanted: pa.BooleanArray, present: pa.BooleanArray | None) -> pa.BooleanArray:
    return wanted if present is None else pc.and_(wanted, present)


class _Selector:
    """Selects the live adds of a checkpoint and the requested columns."""

    def __init__(self, request: AddRequest, touched: Touched) -> None:
        self._request = request
        self._untouched = UntouchedRows(touched)

    def finish(self, add: pa.StructArray) -> Iterator[FileBatch]:
        live = self._untouched.mask(add)
        if live is not None:
            add = add.filter(live)
        if add.field("path").null_count:
            add = add.filter(add.field("path").is_valid())
        if len(add):
            filter_fields = add if self._request.with_filter_fields else None
            files = conform_files(add, self._request.columns)
            yield FileBatch(_with_statistics(files, add), filter_fields)


def _with_statistics(files: pa.RecordBatch, add: pa.StructArray) -> pa.RecordBatch:
    """The files with JSON statistics, made from the struct if the checkpoint has only that."""
    index, struct = files.schema.get_field_index("stats"), add.type.get_field_index("stats_parsed")
    if index < 0 or struct < 0 or not pa.types.is_struct(add.field(struct).type):
        return files
    return files.set_column(index, files.schema.field(index), to_json(files.column(index), add.field(struct)))


def commit_adds(files: Sequence[AddFile], request: AddRequest) -> Iterator[FileBatch]:
    """The adds of commits that the request selects."""
    for start in range(0, len(files), BATCH_ROWS):
        chunk = files[start : start + BATCH_ROWS]
        filter_fields = (
            files_to_batch(chunk, request.filter_fields).to_struct_array()
            if request.filter_fields
            else pa.array([{}] * len(chunk), pa.struct([]))
        )
        columns = files_to_batch(chunk, request.columns)
        if request.keep is not None:
            mask = request.keep(filter_fields)
            filter_fields, columns = filter_fields.filter(mask), columns.filter(mask)
        if len(columns):
            yield FileBatch(columns, filter_fields if request.with_filter_fields else None)
