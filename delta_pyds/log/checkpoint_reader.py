"""Checkpoints of every kind: small actions as objects, file actions as Arrow rows.

A classic checkpoint is one Parquet file, a multi-part one several; a V2
checkpoint is a JSON or Parquet file that may refer to sidecars. What a file
holds decides, not its name: a plain name may hide a V2 checkpoint.

Protocol: "Checkpoints", "V2 Spec", "Classic checkpoint".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.log.checkpoint_part import BATCH_ROWS, CheckpointPart
from delta_pyds.log.checkpoint_statistics import to_json
from delta_pyds.log.commit_reader import read_commit
from delta_pyds.log.file_table import KEY_COLUMNS, Touched, UntouchedRows, conform_files, files_to_batch
from delta_pyds.log.listing import is_settled
from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.log.sidecars import sidecar_files, statuses
from delta_pyds.log.statistics_cache import STATISTICS_CACHE, StatisticsFilter, size_of
from delta_pyds.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
    SingleAction,
    file_key,
)
from delta_pyds.storage.base import FileStatus, Storage

_A = TypeVar("_A", bound=Action)

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


class Checkpoint:
    """One complete checkpoint. Opens its files when they are needed, each once."""

    def __init__(self, storage: Storage, table_root: str, files: CheckpointFiles) -> None:
        self._storage = storage
        self._table_root = table_root
        self.files = files
        # asked now: later, a file that took the place of one of just now would be taken for it
        self._settled = all(map(is_settled, files.files))

    @property
    def version(self) -> int:
        return self.files.version

    @cached_property
    def _json_actions(self) -> tuple[SingleAction, ...]:
        return tuple(
            action
            for file in self.files.files
            if file.path.endswith(".json")
            for action in read_commit(self._storage, file)
        )

    @cached_property
    def _parts(self) -> tuple[CheckpointPart, ...]:
        return tuple(
            CheckpointPart(self._storage, file.path, content=self._content_of(file))
            for file in self.files.files
            if not file.path.endswith(".json")
        )

    @cached_property
    def _sidecar_files(self) -> tuple[FileStatus, ...]:
        """The sidecars as they were before anything of them was read."""
        listed = [a.sidecar for a in self._json_actions if a.sidecar is not None]
        for part in self._parts:
            listed += part.actions("sidecar", Sidecar)
        found = sidecar_files(self._storage, self._table_root, listed, self.files.files[0].path)
        self._settled = self._settled and all(map(is_settled, found))
        return found

    @cached_property
    def _sidecars(self) -> tuple[CheckpointPart, ...]:
        top_level = self.files.files[0].path
        return tuple(
            CheckpointPart(self._storage, file.path, top_level, self._content_of(file)) for file in self._sidecar_files
        )

    def _content_of(self, file: Hashable) -> Hashable:
        return (self._storage, file) if self._settled else None

    def is_v2(self) -> bool:
        """Whether only readers that know V2 checkpoints understand it, whatever its name says.

        Raises: as ``require_sidecars``.
        """
        return self.files.kind in ("v2-json", "v2-parquet") or bool(self._sidecar_files)

    def require_sidecars(self) -> None:
        """Raises: MissingLogFilesError, CorruptLogError where a sidecar is not there, or not of the promised size."""
        _ = self._sidecar_files

    def has_same_sidecars(self) -> bool:
        """Whether the sidecars are still the files that they were, if they were looked at: else nothing is known."""
        known = self.__dict__.get("_sidecar_files", ())
        return all(map(is_settled, known)) and statuses(self._storage, [f.path for f in known]) == list(known)

    @cached_property
    def protocol(self) -> Protocol | None:
        return self._single("protocol", Protocol, [a.protocol for a in self._json_actions])

    @cached_property
    def metadata(self) -> Metadata | None:
        return self._single("metaData", Metadata, [a.meta_data for a in self._json_actions])

    @cached_property
    def transactions(self) -> tuple[SetTransaction, ...]:
        return self._all("txn", SetTransaction, [a.txn for a in self._json_actions])

    @cached_property
    def domains(self) -> tuple[DomainMetadata, ...]:
        return self._all("domainMetadata", DomainMetadata, [a.domain_metadata for a in self._json_actions])

    def _single(self, name: str, kind: type[_A], inline: Sequence[_A | None]) -> _A | None:
        for action in inline:
            if action is not None:
                return action
        for part in self._parts:
            found = part.first(name, kind)
            if found is not None:
                return found
        return None

    def _all(self, name: str, kind: type[_A], inline: Sequence[_A | None]) -> tuple[_A, ...]:
        found = [a for a in inline if a is not None]
        for part in self._parts:
            found += part.actions(name, kind)
        return tuple(found)

    def adds(self, request: AddRequest, touched: Touched) -> Iterator[FileBatch]:
        """Yield the adds that no later commit touched and that ``request.keep`` keeps, in file order.

        ``touched``: keys (path, deletion vector ids) of file actions in the
        commits after the checkpoint: those files are not this checkpoint's any more.
        """
        inline = [a.add for a in self._json_actions if a.add is not None]
        if inline:
            yield from commit_adds([f for f in inline if not _is_touched(f, touched)], request)
        for part in self.file_parts:
            with part.explaining():
                part.check_files("add", {*request.columns, *request.filter_fields})
                yield from _part_adds(part, request, touched, self._content)

    @cached_property
    def _content(self) -> Hashable:
        """What the checkpoint holds, by a short name for it; None where it is not certain.

        Every file of it is in the name, with size, time and generation: a sidecar may have been damaged and restored.
        """
        files = (self.files.files, self._sidecar_files)
        if not self._settled:
            return None
        return self._storage, hashlib.blake2b(repr(files).encode(), digest_size=16).hexdigest()

    @property
    def file_parts(self) -> tuple[CheckpointPart, ...]:
        """The Parquet files that hold file actions."""
        return (*self._parts, *self._sidecars)

    def inline_removes(self, touched: Touched) -> list[RemoveFile]:
        """Tombstones that a JSON checkpoint holds itself, without those that later commits touched."""
        removes = [a.remove for a in self._json_actions if a.remove is not None]
        return [f for f in removes if not _is_touched(f, touched)]


def _is_touched(file: AddFile | RemoveFile, touched: Touched) -> bool:
    path, vector = file_key(file)
    return vector in touched.get(path, ())


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


def _part_adds(part: CheckpointPart, request: AddRequest, touched: Touched, content: Hashable) -> Iterator[FileBatch]:
    parsed = part.has_below("add.stats_parsed")
    filter_fields = part.present("add", request.parsed_filter_fields if parsed else request.filter_fields)
    key = KEY_COLUMNS if touched else ()
    columns = request.columns
    if parsed and "stats" in columns and not part.has_in_all("stats", "add"):
        columns = (*columns, "stats_parsed")  # the text is made of it where it is missing
    select = _Selector(request, touched)
    for group in part.row_groups_with("add"):
        # without something to test there is nothing to be gained by decoding twice
        if request.keep is None or request.with_filter_fields or set(columns) <= {*filter_fields, *key}:
            for add in part.rows("add", group, ("path", *columns, *filter_fields, *key)):
                yield from select.finish(add if request.keep is None else add.filter(request.keep(add)))
            continue
        wanted = pa.chunked_array(_verdicts(part, group, filter_fields, request.keep, content), pa.bool_())
        if not pc.any(wanted).as_py():
            continue
        start = 0
        for add in part.rows("add", group, ("path", *columns, *key)):
            mask = wanted.slice(start, len(add)).combine_chunks()
            start += len(add)
            if len(mask) < len(add):
                break
            if mask.true_count:
                yield from select.finish(add.filter(mask))
        if start != len(wanted):
            # a verdict on another row would leave out a file
            raise pa.ArrowInvalid(f"row group {group} has {start} rows or more, and {len(wanted)} of its statistics")


def _verdicts(
    part: CheckpointPart, group: int, filter_fields: Sequence[str], keep: Keep, content: Hashable
) -> list[pa.BooleanArray]:
    """Which files of a row group are wanted, batch by batch."""
    if content is None or not isinstance(keep, StatisticsFilter):
        return [_of_adds(keep(add), _present(add)) for add in part.rows("add", group, filter_fields)]
    name, keys = (part.path, group), (_PRESENT, *keep.keys)
    known = STATISTICS_CACHE.get(content, name, keys)
    if known is not None:
        return [_of_adds(keep.verdict(columns, length), present) for length, (present, *columns) in known]
    masks, found, size = [], [], 0
    for add in part.rows("add", group, filter_fields):
        present, columns = _present(add), keep.columns(add)
        masks.append(_of_adds(keep.verdict(columns, len(add)), present))
        size += size_of(columns)
        if size <= STATISTICS_CACHE.limit_bytes // 2:
            found.append((len(add), (present, *columns)))
        else:
            found.clear()
    if found:
        STATISTICS_CACHE.put(content, name, keys, found)
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
