"""The files to read as an index of Spark, without any listing.

Invariant: Spark reads exactly the given files, and believes the sizes and times of the log. Planning opens no data file
and asks a store nothing about one.

Spark takes names, sizes and times of files from the log of a streaming file sink, if a directory has one
(``MetadataLogFileIndex``). The files may lie anywhere. Spark reads that log once, when it makes the DataFrame: a
classic session needs the directory no longer afterwards, not even for ``REFRESH`` or a cached plan.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.storage.resolve import hadoop_path

_LOG = "_spark_metadata"
# The first batch as a compaction: Spark reads this name at every compaction interval of the session.
_BATCH = "0.compact"
# The contents of a log without files.
HEADER = b"v1"
# The number of lines that are made at once.
_ROWS = 65_536
PREFIX = "deltapy-files-"
# The size of a block of a local file. Spark asks for the blocks of a file only after a listing.
BLOCK_SIZE = 32 << 20


class NoIndexError(Exception):
    """Spark cannot be given an index. The message is a reason, as part of a sentence."""


@contextmanager
def written_index(files: NativeFiles, chosen: Sequence[int]) -> Iterator[str]:
    """A directory that names the files at the positions ``chosen`` to Spark, for ``spark.read.parquet``.

    Raises: NoIndexError if the directory cannot be written.
    """
    # only this user can read it: names of directories may have values of rows
    with ExitStack() as until_spark_has_read_it:
        try:
            directory = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
            root = os.path.realpath(until_spark_has_read_it.enter_context(directory))
            log = Path(root, _LOG)
            log.mkdir()
            write_chunks(log / _BATCH, log_chunks(files, chosen))
        except OSError as error:
            raise NoIndexError(f"the list of files for Spark cannot be written: {error}") from error
        yield hadoop_path(root)


def write_chunks(file: Path, chunks: Iterable[pa.Buffer | bytes]) -> None:
    with file.open("wb") as output:
        for chunk in chunks:
            output.write(chunk)


def digest(files: NativeFiles, chosen: Sequence[int]) -> bytes:
    """A digest of all that the log says about these files."""
    found = blake2b(digest_size=32)
    for chunk in log_chunks(files, chosen):
        found.update(chunk)
    return found.digest()


def log_chunks(files: NativeFiles, chosen: Sequence[int]) -> Iterator[pa.Buffer | bytes]:
    """The log's bytes, some thousand files at a time: a header, and a line of JSON for each file."""
    yield HEADER
    yield from text_chunks(files.rows_at(chosen), _line)


def _line(batch: pa.RecordBatch) -> tuple[pa.Array | str, ...]:
    # no character of such a URI has a meaning in JSON
    return (
        '\n{"path":"',
        batch.column("uri"),
        '","size":',
        batch.column("size").cast(pa.string()),
        ',"isDir":false,"modificationTime":',
        batch.column("modificationTime").cast(pa.string()),
        f',"blockReplication":1,"blockSize":{BLOCK_SIZE},"action":"add"}}',
    )


def text_chunks(rows: pa.Table, pieces: Callable[[pa.RecordBatch], Sequence[pa.Array | str]]) -> Iterator[pa.Buffer]:
    """The bytes of a text for each row, joined from columns and constants, some thousand rows at a time."""
    for batch in rows.select(["uri", "size", "modificationTime"]).to_batches(max_chunksize=_ROWS):
        texts = pc.binary_join_element_wise(*pieces(batch), "")
        assert not texts.null_count
        [_, offsets, data] = texts.buffers()
        ends = pa.Array.from_buffers(pa.int32(), len(texts) + 1, [None, offsets], offset=texts.offset)
        yield data.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())
