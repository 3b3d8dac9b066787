"""The difference between two lists of files, of one table or of two, and which of the files exist.

Files differ by path and deletion vector. One listing answers for a directory of many files.

Invariant: only the files that differ become objects; the lists themselves stay Arrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.log.adds import AddRequest
from delta_pyds.log.file_table import FILE_COLUMNS, KEY_COLUMNS, file_keys
from delta_pyds.progress import advance_of_step
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.paths import join, resolve_data_path
from delta_pyds.storage.base import Storage
from delta_pyds.table.scan.live_files import adds_of
from delta_pyds.table.snapshot import Snapshot

_THREADS = 16
# up to this number of files in one directory, single requests cost less than a listing
_ASKED_ONE_BY_ONE = 32
# paths in a message, and in the parameters of an error
_SHOWN, MAX_PATHS = 10, 100


@dataclass(frozen=True)
class FileKeys:
    """The keys of a version's files, in the order of its snapshot, and the sum of their sizes."""

    keys: pa.ChunkedArray
    size_bytes: int

    @staticmethod
    def none() -> FileKeys:
        """The keys of an empty list."""
        return FileKeys(pa.chunked_array([], pa.string()), 0)

    @staticmethod
    def of(snapshot: Snapshot) -> FileKeys:
        """Read the keys of a snapshot's files."""
        chunks: list[pa.Array] = []
        size = 0
        for batch in snapshot.adds(AddRequest(columns=(*KEY_COLUMNS, "size"))):
            chunks.append(file_keys(batch.files))
            size += exact_sum(batch.files.column("size"))
        return FileKeys(pa.chunked_array(chunks, pa.string()), size)

    def __len__(self) -> int:
        return len(self.keys)


def only_in(
    snapshot: Snapshot, keys: FileKeys, others: FileKeys, columns: tuple[str, ...] = tuple(FILE_COLUMNS)
) -> Iterator[AddFile]:
    """The files of a version that are not among ``others``, with these fields of ``add``. ``keys``: the version's."""
    differs = pc.invert(pc.is_in(keys.keys, value_set=others.keys))
    if not pc.any(differs).as_py():
        return
    start = 0
    for batch in snapshot.adds(AddRequest(columns=columns)):
        mask = differs.slice(start, len(batch.files))
        start += len(batch.files)
        yield from adds_of(batch.files.filter(mask.combine_chunks()))


def file_paths(table_root: str, files: Iterable[AddFile]) -> Iterator[str]:
    """The whole paths of data files, and of the files of their deletion vectors."""
    for file in files:
        yield resolve_data_path(table_root, file.path)
        vector = file.deletion_vector
        if vector is not None and vector.storage_type == "u":
            yield join(table_root, vector.relative_path())
        elif vector is not None and vector.storage_type == "p":
            yield resolve_data_path(table_root, vector.path_or_inline_dv)


def directories_of(table_root: str, files: Iterable[AddFile]) -> list[str]:
    """The root, and the directories of files outside of it."""
    below = table_root.rstrip("/") + "/"
    paths = (path for path in file_paths(table_root, files) if not path.startswith(below))
    return [table_root, *dict.fromkeys(path.rpartition("/")[0] for path in paths)]


def missing_files(storage: Storage, table_root: str, files: Iterable[AddFile]) -> list[str]:
    """The data files and files of deletion vectors that do not exist, as whole paths, sorted."""
    directories: dict[str, set[str]] = defaultdict(set)
    for path in file_paths(table_root, files):
        directory, _, name = path.rpartition("/")
        directories[directory].add(name)

    advance = advance_of_step()

    def missing(directory: str) -> list[str]:
        names = directories[directory]
        advance(len(names))
        if len(names) <= _ASKED_ONE_BY_ONE:
            return [f"{directory}/{name}" for name in names if not storage.exists(f"{directory}/{name}")]
        try:
            there = {entry.name for entry in storage.list_directory(directory) if entry.kind != "directory"}
        except FileNotFoundInStorageError:
            there = set()
        return [f"{directory}/{name}" for name in names - there]

    with ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-check") as pool:
        return sorted(path for found in pool.map(missing, directories) for path in found)


def shown_paths(paths: Sequence[str]) -> str:
    """The first paths, for a message."""
    return ", ".join(paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else "")
