"""One Parquet file that is being written.

Invariant: each call of ``write`` is one row group. The file is incomplete until ``close`` has returned.
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

# for each option in lower case: pyarrow's name, and Spark's part of the file name
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

# this sample shows whether values repeat, at no noticeable cost
_SAMPLE_ROWS = 16_384
# A column with this share of distinct values in the sample has some 35,000 in all, if they repeat at random: as many
# short strings fit into a dictionary page.
_MOSTLY_DISTINCT = 0.8


@dataclass(frozen=True)
class Codec:
    """``name``: pyarrow's. ``suffix``: the part of the file name before ``.parquet``, with its dot."""

    name: str
    suffix: str


def codec(option: str) -> Codec:
    """The codec of the option ``compression``.

    Raises: OptionError for an unknown codec.
    """
    known = _CODECS.get(option.strip().lower())
    if known is None:
        raise OptionError(
            f"the compression '{option}' is not supported: use one of {', '.join(sorted(_CODECS))}.",
            compression=option,
        )
    return Codec(*known)


def dictionary_columns(columns: Sequence[FileColumn], sample: pa.Table) -> list[str]:
    """The Parquet paths of the leaves to encode with a dictionary: all but flat columns with mostly distinct values.

    A dictionary that is abandoned half way costs as much as the rest of the encoding.
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
    """The Parquet paths of the leaves with bounds and null counts in the footer: all but floating point ones.

    Bounds in footers exclude NaN, as Parquet requires. For Spark NaN is the greatest value, but its reader (and the
    reference's) skips row groups by these bounds anyway: ``x > 5`` would lose the rows with NaN.
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
    """A file that gets row groups. ``path``: absolute, not percent-encoded."""

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
                # decimals are integers if these suffice, as Spark writes them
                "store_decimal_as_integer": True,
                "use_compliant_nested_type": True,
                # the schema in Arrow's terms, which readers of Delta tables do not need
                "store_schema": False,
                # without checksums, damaged pages could be decoded as other values
                "write_page_checksum": True,
                "metadata_collector": self._footers,
            }
            self._writer = pq.ParquetWriter(self._stream, schema, **options)

    @property
    def stream(self) -> BinaryIO:
        """The stream that the storage opened."""
        return self._stream.stream

    @property
    def size_bytes(self) -> int:
        """The bytes written so far; the size of the file once it is closed."""
        return self._stream.written

    def write(self, rows: pa.Table) -> None:
        """Add the rows as one row group."""
        self._statistics.observe(rows)
        with self._naming("written"):
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.num_rows += rows.num_rows

    def close(self) -> tuple[int, str]:
        """Finish the file. Returns: its modification time in ms, and its statistics as JSON.

        Raises: StorageError if the stored file does not have the written size.
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
        """Release the file in any state; what was written so far may remain."""
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
    """The file object for the Parquet writer; it counts the bytes written."""

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
        """Abort the object, if the storage creates it only on close; later writes are dropped."""
        discard = getattr(self.stream, "discard", None)
        if discard is not None:
            self._discarded = True
            discard()
