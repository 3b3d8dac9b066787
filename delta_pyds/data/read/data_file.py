"""One open data file: its footer, its columns, and its errors.

Invariant: an error of Arrow or the storage becomes an error that names the file. If the user can repair the file, it
says how. The file is always closed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.columnar.parquet_footer import ColumnChunk, ParquetFooter, open_parquet, short_footer
from delta_pyds.data.file_schema import FileColumn, file_columns, has_views, without_views
from delta_pyds.data.read.dictionaries import checked_pieces, dictionary_columns
from delta_pyds.data.read.int96 import decodes_to_nanoseconds
from delta_pyds.errors import (
    CorruptDataFileError,
    DeltaError,
    FileNotFoundInStorageError,
    StorageError,
    UnsupportedFeatureError,
)
from delta_pyds.storage.read_ahead import Expectation, expect
from delta_pyds.tasks.scan_state import ScanFile, ScanState

# with fewer rows, batches of dictionaries are not faster
_MANY_ROWS = 1 << 14


# made once: every file of a local table gets it, several times
_NOTHING_EXPECTED = Expectation()


@dataclass(eq=False)
class DataFile:
    """An open Parquet file; ``path`` and ``table`` are for messages.

    Attributes:
        reopen: opens the same file again, to decode the named columns as dictionaries; None if that is unsupported.
        source: the source of the bytes.
        prefetcher: accepts the byte ranges to read next, if it has a method ``expect``.
        may_have_views: the file may ask for string or binary views. Set it to False to skip the check of each batch.
        named_errors: the context in which errors of Arrow and the storage get the file's name.
    """

    parquet: pq.ParquetFile
    path: str
    table: str
    reopen: Callable[[Sequence[str]], pq.ParquetFile] | None = None
    source: Any = None
    prefetcher: Any = None
    may_have_views: bool = True

    def __post_init__(self) -> None:
        self.named_errors = NamedErrors(self.table, self.path)
        self.prefetches = hasattr(self.prefetcher, "expect")

    @cached_property
    def columns(self) -> tuple[FileColumn, ...]:
        with self.named_errors:
            columns = file_columns(self.parquet.schema_arrow)
        leaves = columns[-1].last_leaf if columns else 0
        if leaves != self.metadata.num_columns:
            # columns are read by index, so a wrong count would mean a wrong column
            raise _corrupt(
                self.table, self.path, f"its footer has {self.metadata.num_columns} columns, but Arrow decodes {leaves}"
            )
        return columns

    @cached_property
    def metadata(self) -> Any:
        return self.parquet.metadata

    @cached_property
    def has_nanosecond_int96(self) -> bool:
        """Whether INT96 columns are decoded to nanoseconds, instead of microseconds."""
        return decodes_to_nanoseconds(self.metadata)

    @cached_property
    def has_views(self) -> bool:
        """Whether the file asks for string or binary views."""
        with self.named_errors:
            return any(map(has_views, self.parquet.schema_arrow.types))

    @cached_property
    def footer(self) -> ParquetFooter:
        """The column chunks of each row group; use it within ``named_errors``."""
        return ParquetFooter(self.metadata, self.source)

    def chunk(self, row_group: int, leaf: int) -> ColumnChunk:
        """As ``footer.chunk``. Its first call parses the footer a second time; many small files need no call."""
        return self.footer.chunk(row_group, leaf)

    @cached_property
    def key_values(self) -> Mapping[bytes, bytes]:
        """The footer's key-value pairs."""
        return self.metadata.metadata or {}

    @cached_property
    def num_rows(self) -> int:
        return int(self.metadata.num_rows)

    def size_of(self, leaf: int) -> int:
        """Bytes of a leaf column on disk, in the first row group."""
        with self.named_errors:
            return self.footer.chunk(0, leaf).compressed_bytes if self.metadata.num_row_groups else 0

    def check_names(self) -> None:
        """Call it if the file lacks a column. Raises: CorruptDataFileError if a column name is damaged."""
        with self.named_errors:
            self.footer.check_names()

    def check_absent(self, names: Sequence[str]) -> None:
        """The same, for columns of the schema's top level that are found by name alone.

        The footer names each column twice. If the bytes of a name are nowhere in it, no damage hides the column.
        """
        if any(self.footer.has_bytes(name.encode()) for name in names):
            self.check_names()

    def smallest_leaf(self) -> int:
        """The leaf column with the fewest bytes, which should be the cheapest to decode."""
        return min(range(self.metadata.num_columns), key=self.size_of)

    def expect(self, row_groups: Sequence[int], leaves: Sequence[int]) -> Expectation:
        """Request the ranges that ``decode`` will read from a remote store. ``decode`` itself does so too."""
        if not self.prefetches:
            return _NOTHING_EXPECTED
        with self.named_errors:
            chunks = [self.footer.chunk(group, leaf) for group in row_groups for leaf in leaves]
            return expect(self.prefetcher, [(c.first_byte, c.first_byte + c.compressed_bytes) for c in chunks])

    def decode(self, row_groups: Sequence[int], leaves: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Decode the leaves of these row groups, in batches of at most ``batch_rows`` rows, in the file's order.

        With many rows, text is decoded as a dictionary if the file has few distinct values (see ``dictionaries``).
        """
        with self.named_errors:
            promised = sum(self.metadata.row_group(i).num_rows for i in row_groups)
            names: Sequence[str] = ()
            parquet = self.parquet
            if self.reopen is not None and min(batch_rows, promised) >= _MANY_ROWS:
                names = dictionary_columns(self.columns, self.metadata, self.footer, row_groups, leaves)
                parquet = self.reopen(names) if names else parquet
            batches = parquet.reader.iter_batches(
                batch_rows, row_groups=row_groups, column_indices=leaves, use_threads=False
            )
        with self.expect(row_groups, leaves):
            while True:
                with self.named_errors:
                    batch = next(batches, None)
                    if batch is None:
                        break
                    if self.may_have_views:
                        batch = _without_views(batch)
                    pieces = list(checked_pieces(batch, names)) if names else [batch]
                promised -= batch.num_rows
                yield from pieces
        if promised:
            raise _corrupt(
                self.table,
                self.path,
                f"its row groups have {abs(promised)} {'fewer' if promised > 0 else 'more'} rows than its footer says",
            )


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(map(has_views, batch.schema.types)):
        return batch
    fields = [f.with_type(without_views(f.type)) for f in batch.schema]
    if all(new.type is old.type or new.type.equals(old.type) for new, old in zip(fields, batch.schema, strict=True)):
        return batch
    columns = [c.cast(f.type) for c, f in zip(batch.columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@contextmanager
def open_data_file(open_source: Callable[[], Any], state: ScanState, file: ScanFile) -> Iterator[DataFile]:
    """Open a data file of a scan. ``open_source``: opens the source of its bytes, which is closed here.

    Raises:
        FileNotFoundInStorageError: the file does not exist.
        CorruptDataFileError: it is not the Parquet file described by the log.
        UnsupportedFeatureError: it is encrypted.
    """
    with NamedErrors(state.table_root, file.path):
        source = prefetcher = open_source()
        if not isinstance(source, pa.NativeFile):
            # one lock for all decoders: each seeks and then reads
            source = pa.PythonFile(source, mode="r")
        try:
            _check_size(state.table_root, file, _size(source))
            options: dict[str, Any] = {
                # Arrow reads ahead, except in a local file, and in a remote one whose ranges ``expect`` requests
                "pre_buffer": not (isinstance(source, pa.OSFile | pa.BufferReader) or hasattr(prefetcher, "expect")),
                "verify_page_checksums": state.verify_page_checksums,
            }
            parquet = open_parquet(source, metadata=short_footer(prefetcher), **options)
            if decodes_to_nanoseconds(parquet.metadata):
                options["int96_unit"] = "ns"
                parquet = open_parquet(source, metadata=parquet.metadata, **options)
        except BaseException:
            source.close()
            raise
    try:
        again: dict[Sequence[str], pq.ParquetFile] = {}

        def reopen(dictionaries: Sequence[str]) -> pq.ParquetFile:
            if dictionaries not in again:
                again[dictionaries] = open_parquet(
                    source, metadata=parquet.metadata, dictionaries=dictionaries, **options
                )
            return again[dictionaries]

        yield DataFile(parquet, file.path, state.table_root, reopen, source, prefetcher)
    finally:
        parquet.close(force=True)


def _size(source: Any) -> int:
    if not isinstance(source, pa.PythonFile):
        return int(source.size())
    size = source.seek(0, os.SEEK_END)
    source.seek(0)
    return int(size)


def _check_size(table: str, file: ScanFile, found: int) -> None:
    if found != file.size_bytes and file.size_bytes > 0:
        raise _corrupt(table, file.path, f"it has {found} bytes, but the log says {file.size_bytes}")
    if found == 0:
        raise _corrupt(table, file.path, "it is empty")


def _corrupt(table: str, path: str, problem: str) -> DeltaError:
    return CorruptDataFileError(
        f"the data file '{path}' of the table '{table}' cannot be read: {problem}. It was damaged, cut short or "
        "overwritten: restore the file from a backup, or the table to a version that does not need it.",
        table=table,
        path=path,
    )


def _too_large(table: str, path: str, problem: str) -> DeltaError:
    """The file may be damaged, because its pages state their own sizes, or the machine may be too small."""
    return StorageError(
        f"the data file '{path}' of the table '{table}' needs more memory than available: "
        f"{problem or 'out of memory'}. "
        "If other files of this size can be read, it was damaged: restore it from a backup, or the table to a version "
        "that does not need it. Otherwise give the Python workers more memory (spark.executor.memoryOverhead), or read "
        "fewer columns.",
        code="DELTA_OUT_OF_MEMORY",
        table=table,
        path=path,
    )


class NamedErrors:
    """A context in which errors of Arrow and the storage become errors that name the file.

    It is a class because each file of a scan enters it a dozen times, and entering a generator takes five times as
    long.
    """

    __slots__ = ("_path", "_table")

    def __init__(self, table: str, path: str) -> None:
        self._table = table
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            _raise_named(error, self._table, self._path)


def _raise_named(error: BaseException, table: str, path: str) -> None:
    """Raise an error that names the file. Returns: for an error that must be raised unchanged."""
    if isinstance(error, FileNotFoundInStorageError | FileNotFoundError):
        raise FileNotFoundInStorageError(
            f"the data file '{path}', which the log of the table '{table}' names, does not exist. This version may be "
            "older than VACUUM's retention: read a newer version. Or the file was deleted manually: restore the file, "
            "restore the table to a version without it, or remove it from the log with FSCK REPAIR TABLE of "
            "Databricks.",
            table=table,
            path=path,
        ) from None
    if isinstance(error, DeltaError | pa.ArrowCancelled):
        return
    if isinstance(error, pa.ArrowNotImplementedError):
        raise UnsupportedFeatureError(
            f"the data file '{path}' of the table '{table}' needs a feature that is not supported: {error}.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            table=table,
            path=path,
        ) from error
    if isinstance(error, MemoryError | pa.ArrowCapacityError):
        raise _too_large(table, path, str(error).rstrip(".")) from error
    if isinstance(error, OSError) and error.errno is not None:
        raise StorageError(f"the data file '{path}' could not be read: {error}.", table=table, path=path) from error
    if isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError | OverflowError):
        text = str(error)
        if "encrypt" in text.lower() or "decrypt" in text.lower():
            raise UnsupportedFeatureError(
                f"the data file '{path}' of the table '{table}' is encrypted, which is not supported.",
                code="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
                feature="parquetEncryption",
                path=path,
            ) from None
        raise _corrupt(table, path, text.rstrip(".")) from error
