"""The content of a checkpoint of any kind, read without the statistics of its Parquet files.

The few actions about the table are values. File actions are read in batches by column, and yielded with the parsed
statistics and partition values of the checkpoint.

Protocol: "Checkpoint Specs", "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from delta_pyds.columnar.parquet_footer import open_parquet
from delta_pyds.errors import DeltaError
from delta_pyds.log.checkpoint_part import plain_value
from delta_pyds.log.decoded_size import MAX_TEXT_BYTES, longest_text_of_file, rows_per_batch
from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.paths import resolve_sidecar_path
from delta_pyds.storage.base import Storage
from delta_pyds.verification.actions import Actions, parse_actions, typed_action
from delta_pyds.verification.report import Findings

_BATCH_ROWS = 16_384
_SMALL = ("txn", "metaData", "protocol", "domainMetadata", "sidecar", "checkpointMetadata")
_FORBIDDEN = ("commitInfo", "cdc")
_STATS_PARSED = "stats_parsed"
_VALUES_PARSED = "partitionValues_parsed"


@dataclass(frozen=True)
class CheckpointAdd:
    """An add of a checkpoint. ``parsed``: its ``stats_parsed``, by (kind, physical names); None without such a column.

    Values are Arrow's, but dates are days and timestamps microseconds.
    """

    add: AddFile
    parsed: dict[tuple[str, ...], Any] | None
    partition_values: dict[str, Any] | None


@dataclass
class CheckpointContent:
    """The actions of a checkpoint without adds and removes, which ``CheckpointReader.read`` yields.

    ``columns``: the dotted names of its Parquet columns. ``kinds``: the leaves of ``stats_parsed`` that are a
    ``date`` or a ``timestamp``. ``inline_files``: file actions are in the checkpoint itself, not in sidecars.
    """

    files: CheckpointFiles
    actions: Actions = field(default_factory=Actions)
    columns: set[str] = field(default_factory=set)
    kinds: dict[tuple[str, ...], str] = field(default_factory=dict)
    inline_files: bool = False
    num_actions: int = 0


class CheckpointReader:
    """Reads one checkpoint. Problems are findings. ``content`` is complete after ``read``."""

    def __init__(self, storage: Storage, table_root: str, files: CheckpointFiles, findings: Findings) -> None:
        self._storage = storage
        self._table_root = table_root
        self._findings = findings
        self.content = CheckpointContent(files)
        self.damaged = False

    def read(self) -> Iterator[CheckpointAdd | RemoveFile]:
        """Yield the file actions, those of sidecars last. The other actions are in ``content`` afterwards."""
        for file in self.content.files.files:
            if file.path.endswith(".json"):
                yield from self._json(file.path)
            else:
                yield from self._parquet(file.path, sidecar=False)
        if self.content.actions.sidecars and self.content.inline_files:
            self._findings.error(
                "checkpoint.sidecars", self.where, "file actions are both in the checkpoint and in sidecars."
            )
        for sidecar in self.content.actions.sidecars:
            try:
                path = resolve_sidecar_path(self._table_root, sidecar.path)
                size = self._storage.status(path).size_bytes
            except DeltaError as e:
                self._findings.error(
                    "checkpoint.sidecar-missing", self.where, f"the sidecar {sidecar.path} cannot be read: {e.message}"
                )
                self.damaged = True
                continue
            if size != sidecar.size_in_bytes:
                self._findings.error(
                    "checkpoint.sidecar-size",
                    self.where,
                    f"the sidecar {path} has {size} bytes, but the checkpoint says {sidecar.size_in_bytes}.",
                )
            yield from self._parquet(path, sidecar=True)

    @property
    def where(self) -> str:
        return self.content.files.files[0].path

    def _json(self, path: str) -> Iterator[CheckpointAdd | RemoveFile]:
        whole = False
        with self._findings.guard("checkpoint.unreadable", path):
            data = self._storage.read(path)
            found = parse_actions(data, path, self._findings, prefix="checkpoint")
            self.damaged |= found.damaged
            if found.commit_infos or found.cdcs:
                self._forbidden(path)
            self.content.num_actions += sum(len(actions) for actions in found.lists().values())
            self.content.inline_files |= bool(found.adds or found.removes)
            adds, removes = found.adds, found.removes
            found.adds, found.removes = [], []
            for name, actions in self.content.actions.lists().items():
                actions += found.lists()[name]
            yield from (CheckpointAdd(add, None, None) for add in adds)
            yield from removes
            self.content.columns |= {"add.stats", "add.tags"}
            whole = True
        self.damaged |= not whole

    def _forbidden(self, path: str) -> None:
        self._findings.error("checkpoint.forbidden-action", path, "it holds commitInfo or cdc actions.")

    def _parquet(self, path: str, *, sidecar: bool) -> Iterator[CheckpointAdd | RemoveFile]:
        whole = False
        with self._findings.guard("checkpoint.unreadable", path):
            source = self._storage.parquet_source(path)
            try:
                parquet = open_parquet(source, pre_buffer=True)
                schema = parquet.schema_arrow
                for column in schema:
                    if pa.types.is_struct(column.type):
                        self.content.columns |= {f"{column.name}.{f.name}" for f in column.type}
                if "add" in schema.names and pa.types.is_struct(add := schema.field("add").type):
                    index = add.get_field_index(_STATS_PARSED)
                    self.content.kinds |= dict(_kinds(add.field(index).type, ())) if index >= 0 else {}
                rows = 0
                longest = longest_text_of_file(source, parquet.metadata, _BATCH_ROWS)
                if longest > MAX_TEXT_BYTES:
                    raise ValueError(f"it holds a text of {longest} bytes, which may be repeated in many rows")
                for batch in parquet.iter_batches(rows_per_batch(longest, _BATCH_ROWS)):
                    rows += batch.num_rows
                    yield from self._batch(batch, path, sidecar=sidecar)
                if rows != parquet.metadata.num_rows:
                    raise ValueError(f"it holds {rows} rows, but its footer says {parquet.metadata.num_rows}")
            finally:
                source.close()
            whole = True
        self.damaged |= not whole

    def _batch(self, batch: pa.RecordBatch, path: str, *, sidecar: bool) -> Iterator[CheckpointAdd | RemoveFile]:
        names = set(batch.schema.names)
        counted = 0
        for name in names & {*_SMALL, *_FORBIDDEN}:
            column = batch.column(name)
            present = _present(column)
            counted += len(present)
            if not len(present):
                continue
            if name in _FORBIDDEN:
                self._forbidden(path)
            elif sidecar:
                self._findings.error("checkpoint.sidecars", path, f"the sidecar holds {name} actions.")
            else:
                bodies = [plain_value(v.as_py(), v.type) for v in present]
                typed = [typed_action(name, b, path, self._findings, prefix="checkpoint") for b in bodies]
                self.damaged |= None in typed
                self.content.actions.lists()[name].extend(t for t in typed if t is not None)
        for name, rows in (("add", _adds), ("remove", _removes)):
            if name in names:
                _check_path(name, batch.schema.field(name).type)
                present = _present(batch.column(name))
                counted += len(present)
                self.content.inline_files |= bool(len(present)) and not sidecar
                yield from rows(present)
        self.content.num_actions += counted
        if counted != batch.num_rows:
            self._findings.error(
                "checkpoint.many-actions",
                path,
                f"{batch.num_rows} rows hold {counted} actions, but each must hold one.",
            )


def _present(column: pa.Array) -> pa.Array:
    """The rows that have an action. Some writers have a struct of nulls instead of null."""
    rows = column.filter(column.is_valid()) if column.null_count else column
    for key in ("path", "appId", "domain"):
        if pa.types.is_struct(rows.type) and rows.type.get_field_index(key) >= 0:
            values = rows.field(key)
            return rows.filter(values.is_valid()) if values.null_count else rows
    return rows


def _check_path(name: str, data_type: pa.DataType) -> None:
    at = data_type.get_field_index("path") if pa.types.is_struct(data_type) else -1
    if at < 0 or not any(test(data_type.field(at).type) for test in (pa.types.is_string, pa.types.is_large_string)):
        raise ValueError(f"its column {name} has no field path of the type string")


def _adds(rows: pa.StructArray) -> Iterator[CheckpointAdd]:
    if not len(rows):
        return
    get = _Columns(rows)
    parsed = _leaves(rows.field(_STATS_PARSED), ()) if get.has(_STATS_PARSED) else None
    parsed_rows = _by_row(parsed, len(rows)) if parsed is not None else [None] * len(rows)
    values = _leaves(rows.field(_VALUES_PARSED), ()) if get.has(_VALUES_PARSED) else None
    value_rows = _by_row(values, len(rows)) if values is not None else [None] * len(rows)
    columns = zip(
        get("path"), get("partitionValues"), get("size"), get("modificationTime"), get("stats"), get("tags"),
        get("deletionVector"), get("baseRowId"), get("defaultRowCommitVersion"), get("clusteringProvider"),
        parsed_rows, value_rows, strict=True,
    )  # fmt: skip
    for path, partition, size, time, stats, tags, vector, base, commit, provider, stats_row, value_row in columns:
        add = AddFile(
            path, _map(partition), -1 if size is None else size, time or 0, False, stats, _map(tags), _vector(vector),
            base, commit, provider,
        )  # fmt: skip
        yield CheckpointAdd(add, stats_row, None if value_row is None else {k[0]: v for k, v in value_row.items()})


def _removes(rows: pa.StructArray) -> Iterator[RemoveFile]:
    if not len(rows):
        return
    get = _Columns(rows)
    columns = zip(
        get("path"), get("deletionTimestamp"), get("extendedFileMetadata"), get("partitionValues"), get("size"),
        get("stats"), get("tags"), get("deletionVector"), get("baseRowId"), get("defaultRowCommitVersion"), strict=True,
    )  # fmt: skip
    for path, time, extended, partition, size, stats, tags, vector, base, commit in columns:
        yield RemoveFile(
            path, time, False, extended, _map(partition), size, stats, _map(tags), _vector(vector), base, commit
        )


class _Columns:
    """Fields of a struct array as Python values; nulls for a field that does not exist."""

    def __init__(self, rows: pa.StructArray) -> None:
        self._rows = rows

    def has(self, name: str) -> bool:
        return bool(self._rows.type.get_field_index(name) >= 0)

    def __call__(self, name: str) -> list[Any]:
        if not self.has(name):
            return [None] * len(self._rows)
        column = self._rows.field(name)
        if column.null_count == len(column):
            return [None] * len(column)
        found: list[Any] = column.to_pylist()
        return found


def _map(value: Any) -> dict[str, str | None] | None:
    return None if value is None else dict(value)


def _vector(value: Any) -> DeletionVectorDescriptor | None:
    if value is None or value.get("storageType") is None:
        return None
    return msgspec.convert({k: v for k, v in value.items() if v is not None}, DeletionVectorDescriptor)


def _leaves(column: pa.Array, path: tuple[str, ...]) -> dict[tuple[str, ...], list[Any]]:
    """The values of all nested fields of a struct, as lists by path. A field of a null struct is null."""
    if pa.types.is_struct(column.type):
        found: dict[tuple[str, ...], list[Any]] = {}
        for f, child in zip(column.type, column.flatten(), strict=True):
            found |= _leaves(child, (*path, f.name))
        return found
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    return {path: column.to_pylist()}


def _kinds(data_type: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if pa.types.is_struct(data_type):
        for f in data_type:
            yield from _kinds(f.type, (*path, f.name))
    elif pa.types.is_date32(data_type):
        yield path, "date"
    elif pa.types.is_timestamp(data_type):
        yield path, "timestamp"


def _by_row(leaves: dict[tuple[str, ...], list[Any]], length: int) -> list[dict[tuple[str, ...], Any]]:
    rows: list[dict[tuple[str, ...], Any]] = [{} for _ in range(length)]
    for path, values in leaves.items():
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                row[path] = value
    return rows
