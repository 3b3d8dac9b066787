"""The session of a thread: on a classic session Spark looks a Python source up in it, and some threads have none.

A write, in a batch or as a stream, asks the active session of the JVM's thread
for the source, whatever session the DataFrame belongs to. Each Python
thread has its own thread of the JVM. The main thread gets a new one after Ctrl-C,
because py4j drops its connection. Both lack an active session (tried on Spark 4.3).
Reads, SQL and Spark Connect do not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from pyspark.sql import SparkSession

_SOURCE = "deltapy"
_HOOKED = "_finds_deltapy_in_every_thread"


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """Have Spark look the source up in this session.

    Another session that the thread has is its active one again afterwards; a thread without one keeps this one.
    """
    if is_remote(spark):
        yield
        return
    sessions = _sessions(spark)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())


def find_source_in_every_thread() -> None:
    """Have ``df.write.format("deltapy")`` and ``df.writeStream.format("deltapy")`` work in threads without a session.

    Spark has no setting for it: its lookup asks a variable of the JVM's thread. So the two ``format`` methods of
    PySpark's classic writers give the thread the DataFrame's session, for this format and if it has none.
    """
    from pyspark.sql.readwriter import DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    writers: tuple[Any, ...] = (DataFrameWriter, DataStreamWriter)
    for writer in writers:
        if not getattr(writer.format, _HOOKED, False):
            writer.format = _with_session(writer.format)


def _with_session(format_method: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    @wraps(format_method)
    def with_session(self: Any, source: str) -> Any:
        if isinstance(source, str) and source.lower() == _SOURCE:
            sessions = _sessions(self._spark)
            if sessions.getActiveSession().isEmpty():
                sessions.setActiveSession(self._spark._jsparkSession)
        return format_method(self, source)

    setattr(with_session, _HOOKED, True)
    return with_session


def _sessions(spark: Any) -> Any:
    return spark._jvm.SparkSession
