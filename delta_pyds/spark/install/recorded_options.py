"""The calls that a reader or writer of PySpark has received: on classic sessions only the JVM stores them.

Invariant: each call goes to PySpark's own object first, so that its errors are Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import to_str

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.install.formats import DELTAPY, is_ours
from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.settings import DEFAULT_FORMAT

_NAME = "_deltapy_recorded"


class RecordedOptions:
    """The recorded calls; None for a method that was not called."""

    def __init__(self) -> None:
        self.format: str | None = None
        self.mode: str | None = None
        self.schema: Any = None
        self.partition_by: tuple[Any, ...] = ()
        self.cluster_by: tuple[Any, ...] = ()
        # bucketBy, sortBy: a write to our table refuses them
        self.refused: dict[str, Any] = {}
        self.properties: dict[str, str] = {}
        self.table: str | None = None
        # of the source of a stream
        self.name: str | None = None
        # foreach, foreachBatch
        self.own_sink = False
        self._options: dict[str, tuple[str, str]] = {}

    def add_option(self, key: str, value: Any) -> None:
        text = to_str(value)
        if text is not None:
            self._options[key.lower()] = key, text

    def add_options(self, **options: Any) -> None:
        for key, value in options.items():
            self.add_option(key, value)

    def set_schema(self, schema: Any) -> None:
        self.schema = schema

    def set_name(self, source_name: str) -> None:  # named as by PySpark
        self.name = source_name

    def set_mode(self, saveMode: str | None) -> None:  # named as by PySpark
        self.mode = self.mode if saveMode is None else saveMode

    def set_partitions(self, *cols: Any) -> None:
        self.partition_by = one_by_one(cols)

    def set_clusters(self, *cols: Any) -> None:
        self.cluster_by = one_by_one(cols)

    def set_own_sink(self, *_args: Any, **_kwargs: Any) -> None:
        self.own_sink = True

    def option(self, name: str) -> str | None:
        found = self._options.get(name.lower())
        return None if found is None else found[1]

    def options(self, *without: str) -> dict[str, str]:
        """The options as given, except ``without`` (names in lower case)."""
        return {key: text for lowered, (key, text) in self._options.items() if lowered not in without}


def recorded(target: Any) -> RecordedOptions:
    """The calls that a reader or writer has received until now."""
    found = target.__dict__.get(_NAME)
    if found is None:
        found = target.__dict__[_NAME] = RecordedOptions()
    assert isinstance(found, RecordedOptions)
    return found


def session_of(target: Any) -> SparkSession:
    """The session of a reader or writer, classic or of Spark Connect."""
    known: Mapping[str, Any] = target.__dict__
    spark: SparkSession = next(known[name] for name in ("_spark", "_client", "_session") if name in known)
    return spark


def frame_of(writer: Any) -> DataFrame:
    """The rows of a ``df.write``. On Spark Connect the writer has only the plan."""
    frame: Any = writer._df
    if is_remote(session_of(writer)):
        from pyspark.sql.connect.dataframe import DataFrame as ConnectDataFrame

        frame = ConnectDataFrame(frame, writer._spark)
    return cast("DataFrame", frame)


def for_ours(target: Any, given: Any) -> bool:
    """Whether a read or write has our format. ``given``: the call's own format; by default the recorded one, or else
    the session's default."""
    name = recorded(target).format if given is None else given
    if name is None:
        name = session_of(target).conf.get(DEFAULT_FORMAT, "parquet")
    return isinstance(name, str) and is_ours(session_of(target), name)


# --- the methods that record


def format_method(original: Method, /, self: Any, source: str) -> Any:
    ours = isinstance(source, str) and is_ours(session_of(self), source)
    result = original(self, DELTAPY if ours else source)
    calls = recorded(self)
    calls.format = DELTAPY if ours else source
    # as in Spark, the last sink counts
    calls.own_sink = False
    return result


def recording(note: Callable[..., None]) -> Replacement:
    """The method, after which ``note`` gets the recorded calls and the arguments of this call."""

    def method(original: Method, /, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        note(recorded(self), *args, **kwargs)
        return result

    return method


def one_by_one(columns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Columns as ``partitionBy`` takes them: one by one, or in one list."""
    if len(columns) == 1 and isinstance(columns[0], (list, tuple)):
        return tuple(columns[0])
    return columns
