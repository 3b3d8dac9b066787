"""The files below a table's root, as Arrow rows.

Invariants: paths are relative to the root and literal; no symbolic link is followed; the log, hidden names and other
tables below this one are not entered. A file with an unknown time counts as young: a writer may be about to commit it.
A file is an object only while its directory is being listed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.errors import FileNotFoundInStorageError, OptionError
from delta_pyds.progress import advance_of_step
from delta_pyds.protocol.paths import LOG_DIRECTORY, is_absolute, join
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import hadoop_path, normalize_table_root
from delta_pyds.table.configuration import TableConfiguration

logger = safe_logger(__name__)

FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])
# the columns of the reference's inventory
INVENTORY_COLUMNS = ("path", "length", "isDir", "modificationTime")

# smaller times are before 1973, so they are probably seconds: read as milliseconds, new files would look old
_EARLIEST_MS = 100_000_000_000
_BATCH_ROWS = 65_536
# paths that are not plain and relative, or may be hidden: checked one by one
_ODD = r"(^|/)([._]|metadata(/|$))|//|:/|^/|/$|^$"
# directories that begin with an underscore, but belong to the table
_OF_THE_TABLE = ("_delta_index", "_change_data")


@dataclass
class FoundFiles:
    """Files older than a time, and empty directories.

    ``num_directories``: all directories, without the root. ``num_without_time``: the number of files of unknown age,
    which are left out.
    """

    batches: list[pa.RecordBatch] = field(default_factory=list)
    empty_directories: list[str] = field(default_factory=list)
    num_directories: int = 0
    num_without_time: int = 0

    @property
    def table(self) -> pa.Table:
        return pa.Table.from_batches(self.batches, FILES)


def hidden_names(configuration: TableConfiguration) -> Callable[[str], bool]:
    """A function that recognizes the names that a vacuum ignores, as in the reference: those of the log, of other tools
    and of running jobs. Partition directories are not hidden, even if the column's name begins with an underscore.
    """
    columns = {f.name for f in configuration.schema if f.name in configuration.partition_columns}
    columns |= {f.physical_name for f in configuration.schema if f.name in configuration.partition_columns}
    partitions = tuple(f"{name}=" for name in columns)
    formats = configuration.configuration.get("delta.universalFormat.enabledFormats") or ""
    iceberg = "iceberg" in formats or configuration.properties.iceberg_compat is not None

    def is_hidden(name: str) -> bool:
        if iceberg and name == "metadata":
            return True
        return name.startswith(("_", ".")) and not name.startswith((*_OF_THE_TABLE, *partitions))

    return is_hidden


def list_old_files(
    storage: Storage, table_root: str, *, before_ms: int, is_hidden: Callable[[str], bool], threads: int
) -> FoundFiles:
    """All files below the root that were last changed before a time (since the epoch). Lists directories concurrently.

    Files without a known time are left out, with a warning.

    Raises: StorageError for a directory that cannot be listed.
    """
    found, advance = FoundFiles(), advance_of_step()
    with ThreadPoolExecutor(threads, thread_name_prefix="deltapy-list") as pool:
        waiting = deque([("", False)])
        running: set[Future[_Listed]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < 2 * threads:
                    directory, is_old = waiting.popleft()
                    job = pool.submit(_list_one, storage, table_root, directory, is_old, before_ms, is_hidden)
                    running.add(job)
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for listed in (future.result() for future in done):
                    advance(1)
                    found.batches += listed.batches
                    found.num_directories += len(listed.directories)
                    waiting.extend(listed.directories)
                    found.empty_directories += listed.empty
                    found.num_without_time += listed.num_without_time
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    found.empty_directories.sort(reverse=True)
    _warn_of_unknown_times(table_root, found)
    return found


@dataclass(frozen=True)
class _Listed:
    """``directories``: each with whether its last change is before the time. ``empty``: the directory itself, if it is
    old and empty.
    """

    batches: list[pa.RecordBatch]
    directories: list[tuple[str, bool]]
    empty: list[str]
    num_without_time: int = 0


def _list_one(
    storage: Storage, table_root: str, directory: str, is_old: bool, before_ms: int, is_hidden: Callable[[str], bool]
) -> _Listed:
    batches: list[pa.RecordBatch] = []
    directories: list[tuple[str, bool]] = []
    paths: list[str] = []
    sizes: list[int] = []
    empty = is_old
    without_time = 0
    prefix = f"{directory}/" if directory else ""
    try:
        for entry in storage.list_directory(join(table_root, directory) if directory else table_root):
            empty = False
            if directory and entry.name == LOG_DIRECTORY:
                return _Listed([], [], [])  # another table
            if entry.kind == "other" or is_hidden(entry.name):
                continue
            if entry.kind == "directory":
                directories.append((prefix + entry.name, 0 < entry.modification_time_ms < before_ms))
            elif entry.modification_time_ms <= 0:
                without_time += 1
            elif entry.modification_time_ms < before_ms:
                paths.append(prefix + entry.name)
                sizes.append(entry.size_bytes)
                if len(paths) == _BATCH_ROWS:
                    batches.append(_batch(paths, sizes))
                    paths, sizes = [], []
    except FileNotFoundInStorageError:
        if not directory:
            raise
        empty = False
    if paths:
        batches.append(_batch(paths, sizes))
    return _Listed(batches, directories, [directory] if empty else [], without_time)


def _warn_of_unknown_times(table_root: str, found: FoundFiles) -> None:
    if found.num_without_time:
        logger.warning(
            "The age of %d files below %s is unknown, so they are not deleted, even if no version needs them.",
            found.num_without_time,
            table_root,
        )


def _batch(paths: Sequence[str], sizes: Sequence[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(paths, pa.string()), pa.array(sizes, pa.int64())], schema=FILES)


# --- an inventory from the user


def files_of_inventory(
    inventory: Iterable[pa.RecordBatch], table_root: str, *, before_ms: int, is_hidden: Callable[[str], bool]
) -> FoundFiles:
    """The files of a user's inventory, which has ``INVENTORY_COLUMNS``. Paths outside of the root are left out.

    Paths are literal, and relative to the root or absolute. The time 0 means unknown, as in ``list_old_files``.

    Raises: OptionError for an inventory without these columns, with nulls in them, or with times that are not in
        milliseconds.
    """
    found = FoundFiles()
    for batch in inventory:
        paths, lengths, are_directories, times = _inventory_columns(batch)
        found.num_directories += are_directories.true_count
        times = times.filter(pc.invert(are_directories))
        paths, lengths = (column.filter(pc.invert(are_directories)) for column in (paths, lengths))
        _require_milliseconds(paths, times)
        known = pc.greater(times, 0)
        found.num_without_time += len(times) - known.true_count
        old = pc.and_(known, pc.less(times, before_ms))
        paths, lengths = _without(table_root, paths.filter(old)), lengths.filter(old)
        odd = pc.match_substring_regex(paths, _ODD)
        plain = pc.invert(odd)
        found.batches.append(pa.RecordBatch.from_arrays([paths.filter(plain), lengths.filter(plain)], schema=FILES))
        kept: list[str] = []
        sizes: list[int] = []
        for path, size in zip(paths.filter(odd).to_pylist(), lengths.filter(odd).to_pylist(), strict=True):
            relative = path_below(path, table_root)
            if relative is not None and not any(map(is_hidden, relative.split("/"))):
                kept.append(relative)
                sizes.append(size)
        if kept:
            found.batches.append(_batch(kept, sizes))
    _warn_of_unknown_times(table_root, found)
    return found


def _require_milliseconds(paths: pa.StringArray, times: pa.Int64Array) -> None:
    """Raises: OptionError for a time in seconds."""
    wrong = pc.and_(pc.greater(times, 0), pc.less(times, _EARLIEST_MS))
    if wrong.true_count:
        path, time_ms = paths.filter(wrong)[0].as_py(), times.filter(wrong)[0].as_py()
        raise OptionError(
            f"the inventory has the modification time {time_ms} for {path!r}. Times must be milliseconds since 1970, "
            "but this one is before 1973: if the times are seconds, multiply them by 1000.",
            code="DELTA_INVALID_INVENTORY_SCHEMA",
            option="inventory",
        )


def _without(table_root: str, paths: pa.StringArray) -> pa.StringArray:
    """The paths without the root, in our spelling or Hadoop's, if they begin with it."""
    for root in dict.fromkeys((table_root.rstrip("/"), hadoop_path(table_root).rstrip("/"))):
        prefix = f"{root}/"
        paths = pc.if_else(pc.starts_with(paths, prefix), pc.utf8_slice_codeunits(paths, len(prefix)), paths)
    return paths


def _inventory_columns(batch: pa.RecordBatch) -> Iterator[pa.Array]:
    types = (pa.string(), pa.int64(), pa.bool_(), pa.int64())
    for name, wanted in zip(INVENTORY_COLUMNS, types, strict=True):
        if batch.schema.get_field_index(name) < 0:
            raise OptionError(
                f"the inventory has no column {name!r}: it needs {', '.join(INVENTORY_COLUMNS)}, but has "
                f"{', '.join(batch.schema.names) or 'none'}.",
                code="DELTA_INVALID_INVENTORY_SCHEMA",
                option="inventory",
            )
        column = batch.column(name)
        if column.type != wanted or column.null_count:
            raise OptionError(
                f"the column {name!r} of the inventory must be {wanted} without nulls, but is {column.type} with "
                f"{column.null_count} nulls.",
                code="DELTA_INVALID_INVENTORY_SCHEMA",
                option="inventory",
            )
        yield column


def path_below(path: str, table_root: str) -> str | None:
    """The path relative to the root; None if it is not below it, or has empty or dot segments."""
    if is_absolute(path):
        path = normalize_table_root(path)
        prefix = table_root.rstrip("/") + "/"
        if not path.startswith(prefix):
            return None
        path = path[len(prefix) :]
    return None if not {"", ".", ".."}.isdisjoint(path.split("/")) else path
