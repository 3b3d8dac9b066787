"""Checkpoints of every kind: small actions as objects, file actions as Arrow rows.

A classic checkpoint is one Parquet file, a multi-part one several; a V2
checkpoint is a JSON or Parquet file that may refer to sidecars. What a file
holds decides, not its name: a plain name may hide a V2 checkpoint.

Protocol: "Checkpoints", "V2 Spec", "Classic checkpoint".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.log.commit_reader import read_commit
from delta_pyds.log.file_table import KEY_COLUMNS, conform_add, files_to_batch
from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    Sidecar,
    SingleAction,
    file_key,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import resolve_sidecar_path
from delta_pyds.storage.base import Storage

_A = TypeVar("_A", bound=Action)

# Rows decoded at a time. Large enough for vectorised work; small enough that what
# a batch needs (some 500 bytes of statistics a file, several times over) is memory
# that was touched before: 65,536 rows took 1.3 to 1.6 times as long.
BATCH_ROWS = 16_384

Touched = Mapping[str, frozenset["str | None"]]
Keep = Callable[[pa.StructArray], pa.BooleanArray]


@dataclass(frozen=True)
class AddRequest:
    """What a scan wants of the adds.

    ``columns``: of ``FILE_COLUMNS``, what to return. ``facts``: further fields of
    ``add`` that ``keep`` looks at, dotted (``partitionValues``, ``stats``).
    ``parsed_facts``: the same for checkpoints that carry ``stats_parsed``,
    instead of ``stats``. ``keep``: gets the ``add`` rows with those fields and
    says which to return; None keeps all. ``with_facts``: return them as well.
    """

    columns: tuple[str, ...]
    facts: tuple[str, ...] = ()
    parsed_facts: tuple[str, ...] = ()
    keep: Keep | None = None
    with_facts: bool = False


@dataclass(frozen=True)
class FileBatch:
    """Live files: ``files`` has the requested columns; ``facts`` the add rows with the facts, when asked for."""

    files: pa.RecordBatch
    facts: pa.StructArray | None = None


class Checkpoint:
    """One complete checkpoint. Opens its files when they are needed, each once."""

    def __init__(self, storage: Storage, table_root: str, files: CheckpointFiles) -> None:
        self._storage = storage
        self._table_root = table_root
        self.files = files

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
    def _parts(self) -> tuple[_Part, ...]:
        return tuple(_Part(self._storage, f.path) for f in self.files.files if not f.path.endswith(".json"))

    @cached_property
    def _sidecars(self) -> tuple[_Part, ...]:
        listed = [a.sidecar for a in self._json_actions if a.sidecar is not None]
        for part in self._parts:
            listed += part.actions("sidecar", Sidecar)
        return tuple(
            _Part(self._storage, resolve_sidecar_path(self._table_root, s.path), self.files.files[0].path)
            for s in listed
        )

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
            found = part.actions(name, kind)
            if found:
                return found[0]
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
            live = [f for f in inline if f.path not in touched or file_key(f)[1] not in touched[f.path]]
            yield from commit_adds(live, request)
        for part in (*self._parts, *self._sidecars):
            yield from part.adds(request, touched)


def commit_adds(files: Sequence[AddFile], request: AddRequest) -> Iterator[FileBatch]:
    """Adds that came as objects, through the same request."""
    for start in range(0, len(files), BATCH_ROWS):
        chunk = files[start : start + BATCH_ROWS]
        facts = files_to_batch(chunk, request.facts).to_struct_array() if request.facts else _empty_structs(len(chunk))
        columns = files_to_batch(chunk, request.columns)
        if request.keep is not None:
            mask = request.keep(facts)
            facts, columns = facts.filter(mask), columns.filter(mask)
        if len(columns):
            yield FileBatch(columns, facts if request.with_facts else None)


def _empty_structs(length: int) -> pa.StructArray:
    return pa.array([{}] * length, pa.struct([]))


class _Part:
    """One Parquet file of a checkpoint."""

    def __init__(self, storage: Storage, path: str, referred_by: str | None = None) -> None:
        self._storage = storage
        self.path = path
        self._referred_by = referred_by

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turn what Arrow and the storage say about this file into a sentence for the user."""
        try:
            yield
        except FileNotFoundInStorageError:
            where = f", which {self._referred_by} refers to," if self._referred_by else ""
            raise MissingLogFilesError(
                f"the checkpoint file {self.path}{where} does not exist, so the table's files cannot be listed. "
                "Restore it, or delete the checkpoint it belongs to if all commits of the log are still there.",
                code="DELTA_MISSING_PART_FILES",
                path=self.path,
            ) from None
        except (pa.ArrowException, OSError, msgspec.ValidationError, KeyError, TypeError) as e:
            raise CorruptLogError(
                f"the checkpoint file {self.path} cannot be read ({e}). Restore it, or delete the checkpoint it "
                "belongs to if all commits of the log are still there.",
                code="DELTA_CORRUPT_CHECKPOINT",
                path=self.path,
            ) from e

    @cached_property
    def _file(self) -> pq.ParquetFile:
        with self._explaining():
            source = self._storage.parquet_source(self.path)
            try:
                return pq.ParquetFile(source)
            except FileNotFoundError:
                raise FileNotFoundInStorageError(f"{self.path} does not exist.", path=self.path) from None

    @cached_property
    def _leaves(self) -> tuple[str, ...]:
        schema = self._file.schema
        return tuple(schema.column(i).path for i in range(len(schema)))

    def _row_groups_with(self, name: str) -> list[int]:
        """Row groups that may hold an action: those where its columns are not all null."""
        leaves = [i for i, path in enumerate(self._leaves) if path.startswith(name + ".")]
        metadata = self._file.metadata
        groups = []
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            if not all(_all_null(group.column(leaf)) for leaf in leaves):
                groups.append(i)
        return groups

    def actions(self, name: str, kind: type[_A]) -> list[_A]:
        """All actions of one small kind, as objects."""
        found: list[_A] = []
        with self._explaining():
            groups = self._row_groups_with(name)
            if groups:
                for batch in self._file.iter_batches(BATCH_ROWS, row_groups=groups, columns=[name]):
                    column = batch.column(0)
                    present = column.filter(column.is_valid()) if column.null_count else column
                    found += [msgspec.convert(_plain(v.as_py(), v.type), kind) for v in present]
        return found

    def adds(self, request: AddRequest, touched: Touched) -> Iterator[FileBatch]:
        with self._explaining():
            self._check_add({*request.columns, *request.facts})
            yield from self._adds(request, touched)

    def _check_add(self, names: set[str]) -> None:
        """Refuse an ``add`` column of another shape, which would read as a table without files or without values."""
        schema = self._file.schema_arrow
        if "add" not in schema.names:
            return
        add = schema.field("add").type
        fields = {f.name: f.type for f in add} if pa.types.is_struct(add) else {}
        if "path" not in fields:
            raise pa.ArrowInvalid("its column add has no field path")
        if "partitionValues" in names and not pa.types.is_map(fields.get("partitionValues", pa.null())):
            raise pa.ArrowInvalid("its column add has no map partitionValues")

    def _adds(self, request: AddRequest, touched: Touched) -> Iterator[FileBatch]:
        parsed = any(path.startswith("add.stats_parsed.") for path in self._leaves)
        facts = self._present(request.parsed_facts if parsed else request.facts)
        key = KEY_COLUMNS if touched else ()
        needed = tuple(dict.fromkeys(("path", *request.columns, *facts, *key)))
        select = _Selector(request, touched)
        for group in self._row_groups_with("add"):
            # without something to test there is nothing to be gained by decoding twice
            if request.keep is None or request.with_facts or set(request.columns) <= {*facts, *key}:
                for add in self._read(group, needed):
                    mask = select(add)
                    yield from select.finish(add if mask is None else add.filter(mask))
                continue
            masks = [select(add) for add in self._read(group, (*facts, *key))]
            if not any(mask is None or mask.true_count for mask in masks):
                continue
            for add, mask in zip(self._read(group, ("path", *request.columns)), masks, strict=True):
                if mask is None or mask.true_count:
                    yield from select.finish(add if mask is None else add.filter(mask))

    def _present(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(n for n in names if any(p == "add." + n or p.startswith("add." + n + ".") for p in self._leaves))

    def _read(self, group: int, names: Sequence[str]) -> Iterator[pa.StructArray]:
        """The ``add`` column of a row group with just these fields, batch by batch, null rows included."""
        columns = ["add." + n for n in dict.fromkeys(names)]
        with self._explaining():
            if not self._present(names):
                columns = ["add.path"]
            batches = self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns)
            more = self._file.metadata.row_group(group).num_rows > BATCH_ROWS
            for batch in _decoded_ahead(batches) if more else batches:
                yield batch.column(0)


class _Selector:
    """Which adds of a checkpoint are live and wanted."""

    def __init__(self, request: AddRequest, touched: Touched) -> None:
        self._request = request
        self._touched = touched
        self._paths = pa.array(list(touched), pa.string())

    def __call__(self, add: pa.StructArray) -> pa.BooleanArray | None:
        """A mask over the rows, or None when all of them are wanted."""
        # some writers have a struct of nulls where there is no add
        path = add.field("path") if add.type.get_field_index("path") >= 0 else None
        present = add if path is None or not path.null_count else path
        mask = present.is_valid() if present.null_count else None
        if self._touched:
            mask = _and(mask, self._untouched(add))
        if self._request.keep is not None:
            mask = _and(mask, self._request.keep(add))
        return mask

    def _untouched(self, add: pa.StructArray) -> pa.BooleanArray | None:
        paths = add.field("path").cast(pa.string())
        hits = pc.indices_nonzero(pc.is_in(paths, value_set=self._paths)).to_pylist()
        # a path may live on with another deletion vector: ask for the whole key, in the few rows that matter
        shadowed = [i for i in hits if _key_id(add[i]) in self._touched[paths[i].as_py()]]
        if not shadowed:
            return None
        return pc.invert(pc.is_in(_positions(len(add)), value_set=pa.array(shadowed, pa.int64())))

    def finish(self, add: pa.StructArray) -> Iterator[FileBatch]:
        if add.field("path").null_count:
            add = add.filter(add.field("path").is_valid())
        if len(add):
            facts = add if self._request.with_facts else None
            yield FileBatch(conform_add(add, self._request.columns), facts)


def _decoded_ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each decoded while the one before is looked at."""
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, batches, None)
        while (batch := pending.result()) is not None:
            pending = pool.submit(next, batches, None)
            yield batch


def _all_null(column: pq.ColumnChunkMetaData) -> bool:
    statistics = column.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == column.num_values


def _positions(length: int) -> pa.Array:
    return pa.array(range(length), pa.int64())


def _and(left: pa.BooleanArray | None, right: pa.BooleanArray | None) -> pa.BooleanArray | None:
    if left is None or right is None:
        return left if right is None else right
    return pc.and_(left, right)


def _key_id(add: pa.StructScalar) -> str | None:
    vector = add["deletionVector"].as_py() if "deletionVector" in add else None
    if vector is None or vector.get("storageType") is None:
        return None
    return msgspec.convert(vector, DeletionVectorDescriptor).unique_id


def _plain(value: Any, data_type: pa.DataType) -> Any:
    """A Parquet value in the shape that JSON would give: maps as objects, absent fields left out."""
    if value is None:
        return None
    if pa.types.is_struct(data_type):
        return {f.name: _plain(value[f.name], f.type) for f in data_type if value.get(f.name) is not None}
    if pa.types.is_map(data_type):
        return {k: _plain(v, data_type.item_type) for k, v in value}
    if pa.types.is_list(data_type):
        return [_plain(v, data_type.value_type) for v in value]
    return value
