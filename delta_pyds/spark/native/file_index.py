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
from collections.abc import Iterable, Iterator, Sequence
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
# The contents without files.
HEADER = b"v1"
# So many lines are made at once.
_ROWS = 65_536
_PREFIX = "deltapy-files-"


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
            directory = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
            root = os.path.realpath(until_spark_has_read_it.enter_context(directory))
            _write(Path(root, _LOG), log_chunks(files, chosen))
        except OSError as error:
            raise NoIndexError(f"the list of files for Spark cannot be written: {error}") from error
        yield hadoop_path(root)


def _write(log: Path, chunks: Iterable[pa.Buffer | bytes]) -> None:
    log.mkdir()
    with (log / _BATCH).open("wb") as output:
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
    rows = files.rows_at(chosen).select(["uri", "size", "modificationTime"])
    for batch in rows.to_batches(max_chunksize=_ROWS):
        yield _lines(*batch.columns)


def _lines(uris: pa.Array, sizes: pa.Array, times: pa.Array) -> pa.Buffer:
    # no character of such a URI has a meaning in JSON
    lines = pc.binary_join_element_wise(
        '\n{"path":"',
        uris,
        '","size":',
        sizes.cast(pa.string()),
        ',"isDir":false,"modificationTime":',
        times.cast(pa.string()),
        ',"blockReplication":1,"blockSize":33554432,"action":"add"}',
        "",
    )
    assert not lines.null_count
    [_, offsets, data] = lines.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    return data.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())
