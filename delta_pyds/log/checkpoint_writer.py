"""Checkpoints: classic ones in one file, V2 ones as a JSON file with sidecars.

Invariant: a checkpoint appears completely or not at all. A crash leaves at most
sidecars that nothing refers to.

Protocol: "Checkpoints", "V2 Spec", "V1 Spec", "Sidecar Files", "Handling Backward compatibility while moving to
UUID-named v2 Checkpoints".
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.errors import CorruptLogError, FileExistsInStorageError
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.log.checkpoint_rows import KINDS, CheckpointRows, CheckpointSettings, row_of
from delta_pyds.log.checkpoint_schema import add_type, classic_schema, short_schema_json, sidecar_schema, v2_schema
from delta_pyds.log.commit_reader import read_commit
from delta_pyds.log.commit_writer import encode_commit, wire_form
from delta_pyds.log.last_checkpoint import LastCheckpointHint, V2CheckpointHint
from delta_pyds.log.replay import LogReplay
from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.protocol.actions import Action, CheckpointMetadata, Sidecar, SingleAction
from delta_pyds.protocol.features import Feature, supports_for_readers
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.paths import SIDECAR_DIRECTORY, join, log_directory, version_prefix
from delta_pyds.storage.base import Storage

__all__ = ["CheckpointSettings", "write_checkpoint", "write_compatibility_checkpoint"]

# Readers decode and skip whole row groups.
_ROW_GROUP_ROWS = 65_536
# fewer rows are encoded faster than a thread starts
_WORTH_A_THREAD = 4_096
# The reference's limits: every reader fetches the hint, so it must be short.
_MAX_ACTIONS_IN_HINT = 30
_MAX_SIDECARS_IN_HINT = 30


def write_checkpoint(storage: Storage, replay: LogReplay, settings: CheckpointSettings) -> LastCheckpointHint:
    """Write the checkpoint of the replay's version.

    An existing classic checkpoint stays, and the hint describes it. A V2
    checkpoint is written only if the table supports the feature: other readers
    would not find it. Memory holds the compressed classic checkpoint (some 200
    bytes for each file of the table), or one sidecar.

    Returns: the hint to the checkpoint, for ``_last_checkpoint``.
    Raises: StorageError; CorruptLogError or MissingLogFilesError for an older
        checkpoint that cannot be read; ProtocolError for an invalid partition value.
    """
    rows = CheckpointRows(replay, settings)
    if settings.policy == "v2" and supports_for_readers(replay.protocol, Feature.V2_CHECKPOINT):
        return _write_v2(storage, replay, rows, settings.sidecar_actions)
    return _write_classic(storage, replay, rows)


# --- classic


def _write_classic(storage: Storage, replay: LogReplay, rows: CheckpointRows) -> LastCheckpointHint:
    version, root = replay.segment.version, replay.segment.table_root
    path = join(log_directory(root), f"{version_prefix(version)}.checkpoint.parquet")
    if storage.exists(path):
        return _hint_of_existing(storage, path, version)
    schema = classic_schema(rows.add_type)
    small = rows.small_table(schema)
    counts = _Counts()
    # small actions and files have separate row groups, so that either can be read without the other
    data = _parquet(schema, [[small], counts.of_adds(rows, schema), counts.of_removes(rows, schema)])
    try:
        storage.put_if_absent(path, data)
    except FileExistsInStorageError:
        return _hint_of_existing(storage, path, version)
    return LastCheckpointHint(
        version=version,
        size=small.num_rows + counts.adds + counts.removes,
        size_in_bytes=len(data),
        num_of_add_files=counts.adds,
        checkpoint_schema=_decoded(short_schema_json(schema)),
    )


def _hint_of_existing(storage: Storage, path: str, version: int) -> LastCheckpointHint:
    part = CheckpointPart(storage, path)
    # it may be a V2 checkpoint with sidecars, whose files are not counted here
    files = part.count("add.path") if not part.count("sidecar.path") else None
    return LastCheckpointHint(
        version=version,
        size=part.num_rows,
        size_in_bytes=storage.status(path).size_bytes,
        num_of_add_files=files,
    )


# --- V2


def _write_v2(storage: Storage, replay: LogReplay, rows: CheckpointRows, sidecar_actions: int) -> LastCheckpointHint:
    version, root = replay.segment.version, replay.segment.table_root
    schema = sidecar_schema(rows.add_type)
    num_adds, num_removes = rows.count()
    num_files = num_adds + num_removes
    parts = max(1, -(-num_files // sidecar_actions))
    counts = _Counts()
    tables = chain(counts.of_adds(rows, schema), counts.of_removes(rows, schema))
    chunks = _chunked(tables, max(1, -(-num_files // parts)))
    sidecars = [_write_sidecar(storage, replay, schema, next(chunks, []), n, parts) for n in range(1, parts + 1)]
    if next(chunks, None) is not None or (counts.adds, counts.removes) != (num_adds, num_removes):
        raise CorruptLogError(
            f"table {root} had {num_adds} files and {num_removes} tombstones at version {version} when they were "
            f"counted, but {counts.adds} and {counts.removes} when they were written: a file of the log changed "
            "meanwhile. No checkpoint was written; a later commit will write one.",
            code="DELTA_CHECKPOINT_SNAPSHOT_MISMATCH",
            table=root,
            version=version,
        )
    sidecar_bytes = sum(s.size_in_bytes for s in sidecars)
    tags: dict[str, str | None] = {
        "sidecarNumActions": str(num_files),
        "sidecarSizeInBytes": str(sidecar_bytes),
        "numOfAddFiles": str(num_adds),
    }
    schema_text = short_schema_json(schema)
    if schema_text is not None:
        tags["sidecarFileSchema"] = schema_text
    metadata = CheckpointMetadata(version, tags)
    data = encode_commit((metadata, *sidecars, *rows.small_actions))
    path = join(log_directory(root), f"{version_prefix(version)}.checkpoint.{uuid.uuid4()}.json")
    storage.put_if_absent(path, data)
    status = storage.status(path)
    actions = [_wrapped(a) for a in (*rows.small_actions, metadata)]
    return LastCheckpointHint(
        version=version,
        size=num_files + 1 + len(sidecars) + len(rows.small_actions),
        size_in_bytes=len(data) + sidecar_bytes,
        num_of_add_files=num_adds,
        v2_checkpoint=V2CheckpointHint(
            path=status.name,
            size_in_bytes=len(data),
            modification_time=status.modification_time_ms,
            non_file_actions=actions if len(actions) <= _MAX_ACTIONS_IN_HINT else None,
            sidecar_files=(
                [msgspec.to_builtins(wire_form(s)) for s in sidecars]
                if len(sidecars) <= _MAX_SIDECARS_IN_HINT
                else None
            ),
        ),
    )


def _write_sidecar(
    storage: Storage, replay: LogReplay, schema: pa.Schema, tables: list[pa.Table], number: int, of: int
) -> Sidecar:
    version, directory = version_prefix(replay.segment.version), log_directory(replay.segment.table_root)
    name = f"{version}.checkpoint.{number:010d}.{of:010d}.{uuid.uuid4()}.parquet"
    path = join(join(directory, SIDECAR_DIRECTORY), name)
    data = _parquet(schema, [tables])
    # synced at once, unlike a data file: a sidecar must be on the disk before the checkpoint that refers to it
    storage.put_if_absent(path, data)
    return Sidecar(name, len(data), storage.status(path).modification_time_ms)


def _wrapped(action: Action) -> dict[str, Any]:
    kind = KINDS.get(type(action), "checkpointMetadata")
    return {kind: msgspec.to_builtins(wire_form(action))}


# --- V2 under the classic name


def write_compatibility_checkpoint(storage: Storage, table_root: str, files: CheckpointFiles) -> str | None:
    """Write a copy of a V2 checkpoint under the classic name.

    Readers without V2 checkpoints ignore names with a UUID. From this copy they learn the protocol and report an
    unsupported table; without it they would report a damaged log.

    Returns: the path of the copy; None if it exists already or the checkpoint has no UUID in its name.
    Raises: StorageError; CorruptLogError for a checkpoint that cannot be read.
    Protocol: "Handling Backward compatibility while moving to UUID-named v2 Checkpoints".
    """
    path = join(log_directory(table_root), f"{version_prefix(files.version)}.checkpoint.parquet")
    if files.kind not in ("v2-json", "v2-parquet") or storage.exists(path):
        return None
    [file] = files.files
    if files.kind == "v2-parquet":
        data = storage.read(file.path)
    else:
        schema = v2_schema(add_type(stats_as_json=True, statistics=None, partition_values=None))
        kinds = {f.encode_name: f.name for f in msgspec.structs.fields(SingleAction) if f.encode_name in schema.names}
        actions = [(n, getattr(line, kinds[n])) for line in read_commit(storage, file) for n in kinds]
        lines = [(name, action) for name, action in actions if action is not None]
        columns = [pa.array([row_of(a, f.type) if n == f.name else None for n, a in lines], f.type) for f in schema]
        data = _parquet(schema, [[pa.Table.from_arrays(columns, schema=schema)]])
    try:
        storage.put_if_absent(path, data)
    except FileExistsInStorageError:
        return None
    return path


# --- rows to Parquet


class _Counts:
    """Counts file actions while they are written."""

    def __init__(self) -> None:
        self.adds = 0
        self.removes = 0

    def of_adds(self, rows: CheckpointRows, schema: pa.Schema) -> Iterator[pa.Table]:
        for add in rows.adds():
            self.adds += len(add)
            yield _one_column(add, "add", schema)

    def of_removes(self, rows: CheckpointRows, schema: pa.Schema) -> Iterator[pa.Table]:
        for remove in rows.removes():
            self.removes += len(remove)
            yield _one_column(remove, "remove", schema)


def _one_column(array: pa.StructArray, name: str, schema: pa.Schema) -> pa.Table:
    """Checkpoint rows with one kind of action; the other columns are null."""
    arrays = [array if f.name == name else pa.nulls(len(array), f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


# cached: the schema is the same for every checkpoint of a table
@lru_cache(maxsize=16)
def _bounded_columns(schema: pa.Schema) -> tuple[str, ...]:
    """The Parquet paths of the leaves that get statistics in the footer: all except floating point ones.

    Parquet bounds ignore NaN, and ``maxValues`` may be NaN: a reader that skips row groups by them would lose files.
    """
    out = io.BytesIO()
    pq.write_table(schema.empty_table(), out)
    leaves = pq.ParquetFile(out).schema
    columns = [leaves.column(i) for i in range(len(leaves))]
    return tuple(column.path for column in columns if column.physical_type not in ("FLOAT", "DOUBLE"))


def _parquet(schema: pa.Schema, sections: Iterable[Iterable[pa.Table]]) -> bytes:
    """The bytes of a Parquet file with the tables; no row group spans two sections."""
    out = io.BytesIO()
    with (
        pq.ParquetWriter(
            out,
            schema,
            compression="snappy",
            store_schema=False,
            write_statistics=list(_bounded_columns(schema)),
            write_page_checksum=True,
        ) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        # one row group is encoded while the next is assembled
        encoding: Future[None] | None = None
        for tables in sections:
            for group in _chunked(tables, _ROW_GROUP_ROWS):
                if encoding is not None:
                    encoding.result()
                    encoding = None
                table = pa.concat_tables(group)
                if table.num_rows < _WORTH_A_THREAD:
                    writer.write_table(table, _ROW_GROUP_ROWS)
                else:
                    encoding = pool.submit(writer.write_table, table, _ROW_GROUP_ROWS)
        if encoding is not None:
            encoding.result()
    return out.getvalue()


def _chunked(tables: Iterable[pa.Table], num_rows: int) -> Iterator[list[pa.Table]]:
    """The rows of the tables in chunks of ``num_rows``, the last one shorter; no chunks without rows."""
    pending: list[pa.Table] = []
    length = 0
    for table in tables:
        while length + len(table) >= num_rows:
            cut = num_rows - length
            yield [*pending, table.slice(0, cut)]
            table, pending, length = table.slice(cut), [], 0
        if len(table):
            pending.append(table)
            length += len(table)
    if pending:
        yield pending


def _decoded(text: str | None) -> Any:
    return None if text is None else decode_json(text)
