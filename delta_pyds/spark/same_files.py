"""Whether the server of Spark Connect sees the same files under a path as this process does.

Invariant: "yes" is proved. A task of the server looks at the newest file of the table's log, and finds the same file as
this process: the same name, inode, size and times of change. No tool can set the last time, so a copy differs.
The proof is needed only for paths without a scheme: with a scheme the user says that the path is the same everywhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import PathLike, absolute_table_path

_LOG = "_delta_log"
# the log may change while two processes look: after one difference they look again
_TRIES = 3
_KEPT = 4096
# for each session: paths of tables, and whether they are proved to be the same. A shared disk stays shared. If one is
# not, only callers that need the proof ask again. A path that the cache dropped is asked for again
_answers: WeakKeyDictionary[Any, BoundedCache[str, bool]] = WeakKeyDictionary()


def require_same_files(spark: SparkSession, path: str) -> None:
    """Ask the server, once for a path and a session. Raise nothing if neither side has a table.

    Raises: UnsupportedOperationError if the server's files are others, or cannot be proved to be these.
    """
    known = _known(spark)
    if known.get(path):
        return
    for _ in range(_TRIES):
        here, there = newest_log_file(path), _asked_of_server(spark, path)
        if here == there:
            if here is not None:
                known.put(path, True)
            return  # both the same, or both none: then opening says that there is no table
    seen = "finds no table there" if there is None else "finds another table there"
    raise UnsupportedOperationError(
        f"the path '{path}' names no file system. The server of Spark Connect {seen}, but this process "
        f"{'finds none' if here is None else 'would commit to the one that it finds'}. Give a URL that means the same "
        "table in both places, such as s3://bucket/table. For a shared disk, put 'file://' before the path.",
        table=path,
    )


def root_for_server(spark: SparkSession, path: PathLike) -> str:
    """The absolute path of a table. On Spark Connect, a path without a scheme is proved to be the same on the server.

    Raises: as ``require_same_files``; OptionError for a path that is not absolute there.
    """
    remote = is_remote(spark)
    root = absolute_table_path(path, remote=remote)
    if remote and not has_scheme(path):
        require_same_files(spark, root)
    return root


def shared_path(spark: SparkSession, path: PathLike) -> PathLike:
    """A local path with a scheme, if the server of Spark Connect is proved to have the same files; any other path
    as it is. Raises: OptionError for a path that is not absolute.
    """
    if not is_remote(spark) or has_scheme(path):
        return path
    root = absolute_table_path(path, remote=True)
    known = _known(spark)
    if known.get(root) is None:
        try:
            require_same_files(spark, root)
        except UnsupportedOperationError:
            known.put(root, False)
    return f"file://{root}" if known.get(root) else path


def _known(spark: SparkSession) -> BoundedCache[str, bool]:
    return _answers.setdefault(spark, BoundedCache(_KEPT))


def newest_log_file(path: str) -> str | None:
    """The identity of the newest file in a local table's log; None if there is no log."""
    log = os.path.join(path, _LOG)
    try:
        names = [name for name in os.listdir(log) if name.endswith(".json") and name[:20].isdigit()]
        newest = max(names, default=None)
        if newest is None:
            return None
        found = os.stat(os.path.join(log, newest))
    except OSError:
        return None
    return json.dumps([newest, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns])


def _asked_of_server(spark: SparkSession, path: str) -> str | None:
    @leaves_worker
    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from delta_pyds.spark.same_files import newest_log_file

        for batch in batches:
            found = [newest_log_file(one) for one in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.string())], names=["file"])

    rows = spark.createDataFrame(pa.table({"path": [path]})).mapInArrow(look, "file string").toArrow()
    found: str | None = rows.column(0)[0].as_py()
    return found
