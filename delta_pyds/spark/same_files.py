"""Whether the server of Spark Connect sees the same files under a path as this process does.

Invariant: "yes" is proved. A task of the server looks at the newest file of the table's log, and finds the very file
that is here: same name, inode, size, and times of its last change, of which the last no tool can set. A copy differs.
Needed for paths without a scheme only: who writes a scheme says that it is the same everywhere.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.source.error_transport import leaves_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = "_delta_log"
# commits come and go while two processes look: one difference is looked at again
_TRIES = 3


def require_same_files(spark: SparkSession, path: str) -> None:
    """Ask the server. Where neither side has a table, nothing is said.

    Raises: UnsupportedOperationError where the server's files are others, or cannot be proved to be these.
    """
    for _ in range(_TRIES):
        here, there = newest_log_file(path), _asked_of_server(spark, path)
        if here == there:
            return  # both the same, or both none: then opening says that there is no table
    seen = "finds no table there" if there is None else "finds another table there"
    raise UnsupportedOperationError(
        f"the path '{path}' names no file system, and the server of Spark Connect {seen}, while this process "
        f"{'finds none' if here is None else 'commits to the one that it sees'}. Give a URL with a scheme that is the "
        "same in both places, such as s3://bucket/table; for a disk that they share, 'file://' before the path.",
        table=path,
    )


def newest_log_file(path: str) -> str | None:
    """What tells the newest file of a local table's log from any other file; None where there is no log."""
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
