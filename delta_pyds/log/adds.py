"""Adds of checkpoints and commits as Arrow rows, as far as a request wants them.

Protocol: "Checkpoints", "Action Reconciliation".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.log.checkpoint_part import BATCH_ROWS, CheckpointPart
from delta_pyds.log.checkpoint_statistics import to_json
from delta_pyds.log.file_table import KEY_COLUMNS, Touched, UntouchedRows, conform_files, files_to_batch
from delta_pyds.log.rows_ahead import RowsAhead
from delta_pyds.log.statistics_cache import STATISTICS_CACHE, Columns, StatisticsFilter, size_of
from delta_pyds.protocol.actions import AddFile
from delta_pyds.storage.read_ahead import in_background

# the key of the mask of rows that are adds
_PRESENT = "present"

Keep = Callable[[pa.StructArray], pa.BooleanArray]


@dataclass(frozen=True)
class AddRequest:
    """What a scan wants of the adds.

    ``columns``: of ``FILE_COLUMNS``, what to return; ``stats`` is made of the
    struct where a checkpoint holds nothing else. ``filter_fields``: further fields of
    ``add`` that ``keep`` looks at, dotted (``partitionValues``, ``stats``).
    ``parsed_filter_fields``: the same for checkpoints that carry ``stats_parsed``,
    instead of ``stats``. ``keep``: gets the ``add`` rows with those fields and
    says which to return; None keeps all. What a ``StatisticsFilter`` looks at is kept for the next request.
    ``with_filter_fields``: return the add rows with those fields as well.
    """

    columns: tuple[str, ...]
    filter_fields: tuple[str, ...] = ()
    parsed_filter_fields: tuple[str, ...] = ()
    keep: Keep | None = None
    with_filter_fields: bool = False


@dataclass(frozen=True)
class FileBatch:
    """Live files: ``files`` has the requested columns; ``filter_fields`` the add rows with the fields to filter by."""

    files: pa.RecordBatch
    filter_fields: pa.StructArray | None = None


class PartScan:
    """The adds of one Parquet file that a request wants. To be closed.

    Of a file in a store, what decides about the next row groups is asked for while one is decided on, and what is
    returned of one while the next is decided on.
    """

    def __init__(self, part: CheckpointPart, request: AddRequest, touched: Touched, content: Hashable) -> None:
        self._part = part
        self._request = request
        self._touched = touched
        self._content = content
        self._beginning: Future[None] | None = None
        self._ahead: list[RowsAhead] = []

    def begin_ahead(self) -> None:
        """Open the file and ask for its first row group, in the background, where a store would be waited for."""
        if self._beginning is None and self._part.waits:
            self._beginning = in_background(self._part.path, self._begin)

    def close(self) -> None:
        for ahead in self._ahead:
            ahead.close()

    def _begin(self) -> None:
        part, request = self._part, self._request
        with part.explaining():
            part.check_files("add", {*request.columns, *request.filter_fields})
            parsed = part.has_below("add.stats_parsed")
            fields = part.present("add", request.parsed_filter_fields if parsed else request.filter_fields)
            key = KEY_COLUMNS if self._touched else ()
            columns = request.columns
            if parsed and "stats" in columns and not part.has_in_all("stats", "add"):
                columns = (*columns, "stats_parsed")  # the text is made of it where it is missing
            self._groups = part.row_groups_with("add")
            # without something to test there is nothing to be gained by decoding twice
            self._at_once = request.keep is None or request.with_filter_fields or set(columns) <= {*fields, *key}
            self._known = {} if self._at_once else self._known_columns()
            returned = ("path", *columns, *(fields if self._at_once else ()), *key)
            unknown = [group for group in self._groups if group not in self._known]
            self._returned = RowsAhead(part, "add", returned, self._groups if self._at_once else ())
            self._deciding = RowsAhead(part, "add", fields, () if self._at_once else unknown)
            self._ahead = [self._returned, self._deciding]
            for ahead in self._ahead:
                ahead.begin_next()

    def batches(self) -> Iterator[FileBatch]:
        beginning, self._beginning = self._beginning, None
        if beginning is None:
            self._begin()
        else:
            beginning.result()
        with self._part.explaining():
            yield from self._all_at_once() if self._at_once else self._decided()

    def _all_at_once(self) -> Iterator[FileBatch]:
        select, keep = _Selector(self._request, self._touched), self._request.keep
        for group in self._groups:
            for add in self._returned.rows(group):
                yield from select.finish(add if keep is None else add.filter(keep(add)))

    def _decided(self) -> Iterator[FileBatch]:
        select = _Selector(self._request, self._touched)
        wanted: deque[tuple[int, pa.ChunkedArray]] = deque()
        for group in self._groups:
            mask = pa.chunked_array(self._verdicts(group), pa.bool_())
            if pc.any(mask).as_py():
                self._returned.begin(group)
                wanted.append((group, mask))
            if len(wanted) > self._part.waits:
                yield from self._chosen(select, *wanted.popleft())
        for group, mask in wanted:
            yield from self._chosen(select, group, mask)

    def _chosen(self, select: _Selector, group: int, wanted: pa.ChunkedArray) -> Iterator[FileBatch]:
        start = 0
        with closing(self._returned.rows(group)) as rows:
            for add in rows:
                mask = wanted.slice(start, len(add)).combine_chunks()
                start += len(add)
                if len(mask) < len(add):
                    break
                if mask.true_count:
                    yield from select.finish(add.filter(mask))
        if start != len(wanted):
            # a verdict on another row would leave out a file
            raise pa.ArrowInvalid(f"row group {group} has {start} rows or more, and {len(wanted)} of its statistics")

    def _known_columns(self) -> dict[int, list[tuple[int, Columns]]]:
        """What is known of row groups from requests before."""
        keep = self._request.keep
        if self._content is None or not isinstance(keep, StatisticsFilter):
            return {}
        keys = (_PRESENT, *keep.keys)
        known = {g: STATISTICS_CACHE.get(self._content, (self._part.path, g), keys) for g in self._groups}
        return {group: columns for group, columns in known.items() if columns is not None}

    def _verdicts(self, group: int) -> list[pa.BooleanArray]:
        """Which files of a row group are wanted, batch by batch."""
        keep = self._request.keep
        assert keep is not None
        rows = self._deciding.rows(group)
        if self._content is None or not isinstance(keep, StatisticsFilter):
            return [_of_adds(keep(add), _present(add)) for add in rows]
        if (known := self._known.pop(group, None)) is not None:
            return [_of_adds(keep.verdict(columns, length), present) for length, (present, *columns) in known]
        masks, found, size = [], [], 0
        for add in rows:
            present, columns = _present(add), keep.columns(add)
            masks.append(_of_adds(keep.verdict(columns, len(add)), present))
            size += size_of(columns)
            if size <= STATISTICS_CACHE.limit_bytes // 2:
                found.append((len(add), (present, *columns)))
            else:
                found.clear()
        if found:
            STATISTICS_CACHE.put(self._content, (self._part.path, group), (_PRESENT, *keep.keys), found)
        return masks


def _present(add: pa.StructArray) -> pa.BooleanArray | None:
    """Which rows are adds; None where all are. Those of other actions would be decoded for nothing."""
    return add.is_valid() if add.null_count else None


def _of_adds(wanted: pa.BooleanArray, present: pa.BooleanArray | None) -> pa.BooleanArray:
    return wanted if present is None else pc.and_(wanted, present)


class _Selector:
    """Which adds of a checkpoint are live, and what is wanted of them."""

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
    """Files whose statistics the checkpoint has as a struct alone, with their JSON."""
    place, struct = files.schema.get_field_index("stats"), add.type.get_field_index("stats_parsed")
    if place < 0 or struct < 0 or not pa.types.is_struct(add.field(struct).type):
        return files
    return files.set_column(place, files.schema.field(place), to_json(files.column(place), add.field(struct)))


def commit_adds(files: Sequence[AddFile], request: AddRequest) -> Iterator[FileBatch]:
    """Adds that came as objects, through the same request."""
    for start in range(0, len(files), BATCH_ROWS):
        chunk = files[start : start + BATCH_ROWS]
        filter_fields = (
            files_to_batch(chunk, request.filter_fields).to_struct_array()
            if request.filter_fields
            else _empty_structs(len(chunk))
        )
        columns = files_to_batch(chunk, request.columns)
        if request.keep is not None:
            mask = request.keep(filter_fields)
            filter_fields, columns = filter_fields.filter(mask), columns.filter(mask)
        if len(columns):
            yield FileBatch(columns, filter_fields if request.with_filter_fields else None)


def _empty_structs(length: int) -> pa.StructArray:
    return pa.array([{}] * length, pa.struct([]))
