"""One Parquet file that is being written.

Invariant: each call of ``write`` is one row group, and the file counts for
nothing before ``close`` has returned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from delta_pyds.data.file_schema import FileColumn
from delta_pyds.data.write.statistics import StatisticsCollector, StatisticsPlan
from delta_pyds.errors import OptionError, StorageError
from delta_pyds.storage.base import Storage

# by lower-case option: pyarrow's name, and what Spark puts into the name of a file
_CODECS = {
    "snappy": ("snappy", ".snappy"),
    "zstd": ("zstd", ".zstd"),
    "gzip": ("gzip", ".gz"),
    "lz4": ("lz4", ".lz4raw"),
    "lz4raw": ("lz4", ".lz4raw"),
    "lz4_raw": ("lz4", ".lz4raw"),
    "brotli": ("brotli", ".br"),
    "uncompressed": ("none", ""),
    "none": ("none", ""),
}

# enough to see whether values repeat, few enough to cost nothing
_SAMPLE_ROWS = 16_384
# with 16,384 rows that is a column of some 35,000 values: as many as a dictionary page holds of short strings
_MOSTLY_DISTINCT = 0.8


@dataclass(frozen=True)
class Codec:
    """``name``: for pyarrow. ``suffix``: what goes before ``.parquet``, with its dot."""

    name: str
    suffix: str


def codec(option: str) -> Codec:
    """The codec that the option ``compression`` names.

    Raises: OptionError for an unknown one.
    """
    known = _CODECS.get(option.strip().lower())
    if known is None:
        raise OptionError(
            f"the compression '{option}' is not known: use one of {', '.join(sorted(_CODECS))}.",
            compression=option,
        )
    return Codec(*known)


def dictionary_columns(columns: Sequence[FileColumn], sample: pa.Table) -> list[str]:
    """The Parquet paths of the leaves to encode by dictionary: all but plain columns whose values hardly repeat.

    A dictionary that is given up half way costs as much as all the rest of the encoding.
    """
    sample = sample.slice(0, _SAMPLE_ROWS)
    paths: list[str] = []
    for column, values in zip(columns, sample.columns, strict=True):
        if column.children:
            paths += (path for path, _ in _leaves(column, column.name))
        elif not pt.is_boolean(column.data_type):
            distinct = pc.count_distinct(values, mode="only_valid").as_py()
            if distinct <= _MOSTLY_DISTINCT * max(1, len(values) - values.null_count):
                paths.append(column.name)
    return paths


def bounded_columns(columns: Sequence[FileColumn]) -> list[str]:
    """The Parquet paths of the leaves that the footer tells bounds and nulls of: all but floating ones.

    A footer's bounds leave NaN out, as Parquet wants it. To Spark NaN is the greatest value, and its reader, the
    reference's too, rules row groups out by these bounds all the same: ``x > 5`` would lose the rows with NaN.
    """
    return [path for c in columns for path, leaf in _leaves(c, c.name) if not pt.is_floating(leaf.data_type)]


def _leaves(column: FileColumn, path: str) -> Iterator[tuple[str, FileColumn]]:
    if not column.children:
        yield path, column
        return
    groups = {True: ".key_value", False: ".list"}
    between = "" if pt.is_struct(column.data_type) else groups[pt.is_map(column.data_type)]
    for child in column.children:
        yield from _leaves(child, f"{path}{between}.{child.name}")


class OutputFile:
    """A file that row groups are added to. ``path``: full and literal."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        schema: pa.Schema,
        codec: Codec,
        dictionary: Sequence[str],
        bounded: Sequence[str],
        plan: StatisticsPlan,
    ) -> None:
        self.path = path
        self.num_rows = 0
        self._storage = storage
        self._statistics = StatisticsCollector(plan)
        self._footers: list[Any] = []
        with self._naming("created"):
            self._stream = CountedOutput(storage.open_output(path))
            options: Mapping[str, Any] = {
                "compression": codec.name,
                "use_dictionary": list(dictionary) or False,
                "write_statistics": list(bounded),
                # integers where they suffice, as Spark writes them
                "store_decimal_as_integer": True,
                "use_compliant_nested_type": True,
                # it would repeat the schema in Arrow's terms, which no reader of tables needs
                "store_schema": False,
                # damage would otherwise be decoded as other values
                "write_page_checksum": True,
                "metadata_collector": self._footers,
            }
            self._writer = pq.ParquetWriter(self._stream, schema, **options)

    @property
    def stream(self) -> BinaryIO:
        """What the storage gave to write to."""
        return self._stream.stream

    @property
    def size_bytes(self) -> int:
        """Written so far; all of the file once it is closed."""
        return self._stream.written

    def write(self, rows: pa.Table) -> None:
        """Add the rows as one row group."""
        self._statistics.observe(rows)
        with self._naming("written"):
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.num_rows += rows.num_rows

    def close(self) -> tuple[int, str]:
        """Finish the file. Returns: its modification time in ms, and its statistics as JSON.

        Raises: StorageError when the storage does not have it as it was written.
        """
        with self._naming("written"):
            self._writer.close()
            self._stream.close()
        found = self._storage.status(self.path)
        if found.size_bytes != self.size_bytes:
            raise StorageError(
                f"{self.path!r} has {found.size_bytes} bytes in the storage, but {self.size_bytes} were written. "
                "Nothing was committed; write again.",
                path=self.path,
            )
        return found.modification_time_ms, self._statistics.json(self._footers[0])

    def abandon(self) -> None:
        """Let go of the file, whatever state it is in; what is there of it stays."""
        for close in (self._stream.discard, self._writer.close, self._stream.close):
            with contextlib.suppress(Exception):
                close()

    @contextlib.contextmanager
    def _naming(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{self.path!r} could not be {verb}: {error.strerror or error}.", path=self.path
            ) from error


class CountedOutput:
    """What the Parquet writer takes for a file: it counts the bytes that pass."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self._discarded = False
        self.written = 0

    @property
    def closed(self) -> bool:
        return self.stream.closed and not self._discarded

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self.written

    def write(self, data: Any) -> int:
        count = memoryview(data).nbytes
        if not self._discarded:
            self.stream.write(data)
        self.written += count
        return count

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.close()

    def discard(self) -> None:
        """Make no object of it, where it is to be one; what is written from now on is lost."""
        discard = getattr(self.stream, "discard", None)
        if discard is not None:
            self._discarded = True
            discard()
