"""An index of files in the driver of a Spark Connect server.

Invariant: the driver holds the files of an index until no DataFrame of this process reads them. Its directory is
deleted before the first query. Directories of clients that died are deleted by a later client, after an hour.

The driver resolves a table function of Python by calling its static method ``analyze``, in a process on its own
machine, without a job. That method writes the directory of ``file_index`` there. A temporary view then makes Spark read
the directory, once for all queries. The class is sent by value, so the server needs no package of this project.
"""

from __future__ import annotations

import secrets
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import first_line
from delta_pyds.spark.native.eligibility import FILES_VIEW_PREFIX
from delta_pyds.spark.native.file_index import HEADER
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.storage.resolve import hadoop_path

_DIRECTORY_PREFIX = "deltapy-index-"
# The bytes of the index that one request brings, before compression. A server takes 128 MB by default.
_REQUEST_BYTES = 32 << 20
# The contents repeat long texts: the lowest level makes them a tenth as long.
_LEVEL = 1

# For each session of Spark Connect: why it takes no index, as part of a sentence; empty if it takes one.
_answers: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
# for each session, the names that no view has now
_views: WeakKeyDictionary[Any, deque[str]] = WeakKeyDictionary()
_by_name: WeakValueDictionary[str, View] = WeakValueDictionary()


def reason_against_index(spark: SparkSession) -> str | None:
    """The reason why the server takes no index of files, as part of a sentence; None if it takes one.

    It takes three requests, once for a session.
    """
    known = _answers.get(spark)
    if known is None:
        try:
            with directory_on_server(spark, [HEADER]) as path, plain_calls():
                known = ""
                _ = spark.read.schema("a int").parquet(path).schema
        except PySparkException as error:
            if not isinstance(error, AnalysisException):
                return first_line(error)  # not cached: the server may recover
            known = first_line(error)
        _answers[spark] = known
    return known or None


class View:
    """A temporary view of the session that holds an index in the server's driver, until this object is deleted."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self.name = name
        self.options = options


def options_of_view(name: str) -> Mapping[str, str] | None:
    """The options of the scan whose rows the view of this name has; None if this process has no such view."""
    view = _by_name.get(name.strip("`"))
    return None if view is None else view.options


def pinned(spark: SparkSession, frame: DataFrame, options: Mapping[str, str]) -> View:
    """A view with the rows of the DataFrame. The server reads its index now. ``options``: those of its scan."""
    free = _views.setdefault(spark, deque())
    names = [free.popleft() for _ in range(len(free))]
    name = names.pop() if names else f"{FILES_VIEW_PREFIX}{secrets.token_hex(8)}"
    with plain_calls():
        try:
            frame.createOrReplaceTempView(name)
        except BaseException:
            free.append(name)
            raise
        finally:
            for unused in names:
                spark.catalog.dropTempView(unused)
    view = View(name, options)
    _by_name[name] = view
    finalize(view, free.append, name).atexit = False
    return view


def rows_of(spark: SparkSession, view: View) -> DataFrame:
    """The rows of the view. It exists as long as this DataFrame or one that is derived from it."""
    with plain_calls():
        frame: Any = spark.table(view.name)
    # the plan of every derived DataFrame has this plan as a part
    finalize(frame._plan, id, view).atexit = False
    rows: DataFrame = frame
    return rows


@contextmanager
def directory_on_server(spark: SparkSession, chunks: Iterable[pa.Buffer | bytes]) -> Iterator[str]:
    """A directory on the machine of the server's driver whose index has these contents, as a path for Spark.

    Raises: PySparkException if the server cannot write it.
    """
    name = _DIRECTORY_PREFIX + secrets.token_hex(16)
    try:
        start, root = 0, ""
        for piece in _pieces(chunks):
            root = _asked(spark, name, start, zlib.compress(piece, _LEVEL))
            start += len(piece)
        yield hadoop_path(root)
    finally:
        # a directory that is left over goes after an hour
        with suppress(PySparkException):
            _asked(spark, name, 0, None)


def _pieces(chunks: Iterable[pa.Buffer | bytes]) -> Iterator[bytes]:
    """The contents in pieces for one request each."""
    found: list[pa.Buffer | bytes] = []
    size = 0
    for chunk in chunks:
        found.append(chunk)
        size += len(memoryview(chunk))
        if size >= _REQUEST_BYTES:
            yield b"".join(found)
            found, size = [], 0
    if found:
        yield b"".join(found)


def _asked(spark: SparkSession, name: str, start: int, piece: bytes | None) -> str:
    """The directory of this name, after the server has written the piece, or deleted the directory without one."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame
    from pyspark.sql.connect.udtf import UserDefinedTableFunction
    from pyspark.util import PythonEvalType

    contents = F.lit(None).cast("binary") if piece is None else F.lit(bytearray(piece))
    function: Any = UserDefinedTableFunction(_directory_writer(), None, evalType=PythonEvalType.SQL_TABLE_UDF)
    # a call of the function would take the active session
    plan = function._build_common_inline_user_defined_table_function(F.lit(name), F.lit(start), contents)
    session: Any = spark
    [column] = ConnectDataFrame(plan, session).schema.names
    return str(column)


def _directory_writer() -> type:
    """A table function whose ``analyze`` runs on the server. It uses no name of this module.

    Its result is a schema: the path of the directory is the name of the only column.
    """

    class DirectoryWriter:
        @staticmethod
        def analyze(name: Any, start: Any, piece: Any) -> Any:
            import os
            import shutil
            import tempfile
            import time
            import zlib

            from pyspark.sql.types import IntegerType, StructType
            from pyspark.sql.udtf import AnalyzeResult

            hour = 3600
            parent = os.path.realpath(tempfile.gettempdir())
            root = os.path.join(parent, name.value)
            if piece.value is None:
                shutil.rmtree(root, ignore_errors=True)
            else:
                if not start.value:
                    for entry in os.scandir(parent):
                        try:
                            if entry.name.startswith("deltapy-index-") and entry.stat().st_mtime < time.time() - hour:
                                shutil.rmtree(entry.path, ignore_errors=True)
                        except OSError:
                            pass  # another process was faster
                # only this user can read it: names of directories may have values of rows
                log = os.path.join(root, "_spark_metadata")
                os.makedirs(root, 0o700, exist_ok=True)
                os.makedirs(log, 0o700, exist_ok=True)
                # Without its log, the directory must not look like a table without rows.
                with open(os.path.join(root, "lost-index.parquet"), "wb") as lost:
                    lost.write(b"The index of files is lost.")
                # a request that is sent again writes the same bytes to the same place
                file = os.open(os.path.join(log, "0.compact"), os.O_WRONLY | os.O_CREAT, 0o600)
                with os.fdopen(file, "wb") as output:
                    output.seek(start.value)
                    output.write(zlib.decompress(piece.value))
            return AnalyzeResult(StructType().add(root, IntegerType()))

        def eval(self, name: Any, start: Any, piece: Any) -> Iterator[tuple[int]]:
            yield (0,)  # Spark asks for this method, and no query calls it

    return DirectoryWriter
