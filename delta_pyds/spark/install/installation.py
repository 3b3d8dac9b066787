"""``delta_pyds.install`` and ``uninstall``."""

from __future__ import annotations

import importlib.util
import os
import threading
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import find_source_in_every_thread, is_remote
from delta_pyds.spark.arguments import flag_argument
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.install import (
    batch_reads,
    batch_writes,
    catalog,
    dataframes,
    formats,
    merges,
    patches,
    pipelines,
    runtime_settings,
    statements,
    streams,
    table_writes,
)
from delta_pyds.spark.install.delta_modules import put_modules, remove_modules
from delta_pyds.spark.reference import has_reference
from delta_pyds.spark.registration import register

logger = safe_logger(__name__)
_lock = threading.RLock()
_logged: set[str] = set()


@dataclass(frozen=True)
class Installation:
    """The state after ``delta_pyds.install``.

    Attributes:
        formats: The formats that are ours in the given session.
        delta: The reason why ``delta`` is not one of them, or not completely; empty otherwise.
        modules: Whether ``import delta.tables`` finds our modules.
        classes: The classes of PySpark with our methods.

    >>> print(delta_pyds.install(spark).formats)
    """

    formats: tuple[str, ...]
    delta: str
    modules: bool
    classes: tuple[str, ...]

    def __repr__(self) -> str:
        modules = "; import delta.tables finds delta_pyds" if self.modules else ""
        about = f" {self.delta}" if self.delta else ""
        return (
            f"<delta_pyds is installed for the format {' and '.join(self.formats)} in {', '.join(self.classes)}"
            f"{modules}.{about} delta_pyds.uninstall() undoes it>"
        )


_OTHERS_MODULES = (
    "The package delta-spark is installed, so import delta.tables finds its DeltaTable, which needs the JAR. To use "
    "ours, run pip uninstall delta-spark, or write from delta_pyds import DeltaTable."
)


def install(spark: SparkSession | None = None, *, delta: bool = False) -> Installation:
    """Replace PySpark's own methods, so that this format gets what Spark does not pass to a Python source.

    This holds in every session and thread of this process, classic or of Spark Connect. A program may call this first,
    before it has a session. A second call only adds ``delta``. All other calls go to Spark, as before.

    - ``spark.read.format("deltapy").load(path)`` reads as ``delta_pyds.read``: with Spark's own Parquet reader if the
      rows are certainly the same;
    - ``df.write.format("deltapy")`` takes all modes, ``partitionBy`` and ``clusterBy``, and writes as
      ``delta_pyds.write``, with the session's ``partitionOverwriteMode``; ``writeStream`` takes both, too;
    - ``spark.sql`` is ``delta_pyds.sql`` for statements about ``deltapy.`/path```, for commands on our named tables
      and for queries of their versions;
    - ``spark.read.changes``, ``spark.readStream.changes`` and CHANGES FROM of SQL read the changes of our tables, on
      Spark 4.2 and later;
    - ``spark.table``, ``spark.read.table``, ``df.writeTo``, ``df.mergeInto``, ``saveAsTable``, ``insertInto`` and
      ``toTable`` take ``deltapy.`/path```, and names (see ``delta_pyds.create_table``), as does
      ``spark.catalog.createTable``.

    With ``delta``, a program for delta-spark runs as it is. A table that got its name with the JAR must get it again,
    by ``delta_pyds.create_table``. A program that imports ``delta`` at its top calls ``install`` above that import,
    without a session. Leave the JAR out (``spark.jars.packages``, ``--packages io.delta:...``; our
    ``configure_spark_with_delta_pip`` adds none): with the JAR, ``delta`` stays the reference's. The settings of the
    extension and the catalog may stay; Spark then logs once that it cannot find the extension. Run a program that
    must stay unchanged by ``deltapy run -- python program.py``.

    Args:
        spark: The session; by default the active one, if there is one.
        delta: Whether to handle also ``format("delta")`` and ``delta.`/path```, in sessions without the reference's
            JAR, and for ``import delta.tables``, unless a package ``delta`` is installed.

    Returns:
        The new state.

    Raises:
        OptionError: ``delta`` is not a bool, or ``spark`` is not a session.
        WorkerPythonError: Spark's workers run a Python without this package.

    >>> delta_pyds.install(delta=True)
    >>> from delta.tables import DeltaTable
    >>> df.write.format("delta").mode("ignore").partitionBy("day").save("/data/events")
    """
    wanted = flag_argument("delta", delta)
    remote = bool(os.environ.get("SPARK_REMOTE")) or importlib.util.find_spec("py4j") is None
    # settings of a session that the program already has are read at once, not with its first statement
    spark = _sessions(remote).getActiveSession() if spark is None else spark
    remote = remote if spark is None else is_remote(spark)
    if spark is not None:
        register(spark)
    with _lock:
        _put(remote)
        tracked_views.start()
        if wanted:
            formats.want_delta(True)
        ours = wanted if spark is None else formats.delta_is_ours(spark)
        modules = ours and put_modules()
        classes = tuple(_name(owner) for owner in patches.replaced())
        names = ("deltapy", "delta") if ours else ("deltapy",)
        found = Installation(names, _about_delta(spark, ours, modules), modules, classes)
    if ours and not modules:
        # a program that imports delta then uses the reference's classes, which find no JAR
        warnings.warn(_OTHERS_MODULES, stacklevel=2)
    text = repr(found)
    if text not in _logged:
        _logged.add(text)
        logger.info("%s", text)
    return found


def uninstall() -> None:
    """Undo ``install`` in all sessions. The registration by ``register`` stays. A second call does nothing.

    >>> delta_pyds.uninstall()
    """
    with _lock:
        patches.restore()
        tracked_views.stop()
        formats.want_delta(False)
        formats.restore_catalogs()
        remove_modules()
        _logged.clear()


def _put(remote: bool) -> None:
    """Replace methods in the classes of one kind of session. The first session of the other kind gets them later."""
    if not remote:
        # our methods wrap the methods that this replaces; these replacements stay when ours are removed
        find_source_in_every_thread()
    for owner, replacements in _replacements(remote):
        patches.put(owner, replacements)


def _session(original: patches.Method, /, self: Any) -> Any:
    made = original(self)
    _look_at(made)
    return made


def _init(original: patches.Method, /, self: Any, *args: Any, **kwargs: Any) -> None:
    """``SparkSession(sparkContext)``, with which programs create a session without a builder."""
    original(self, *args, **kwargs)
    _look_at(self)


def _look_at(made: SparkSession) -> None:
    with _lock:
        if patches.are_put():
            _put(is_remote(made))
            # a builder also changes the settings of an existing session
            formats.prepare(made, again=True)


def _about_delta(spark: SparkSession | None, ours: bool, modules: bool) -> str:
    if ours:
        return "" if modules else _OTHERS_MODULES
    if spark is not None and has_reference(spark):
        return "The JAR of delta-spark is in the session, so the format delta stays with delta-spark."
    return "The format delta is not handled by delta_pyds: call install(spark, delta=True)."


def _replacements(remote: bool) -> list[tuple[type, dict[str, patches.Replacement]]]:
    """The classes of PySpark for one kind of session, and the replacements of their methods.

    The classes of the other kind are not imported: their dependencies may be missing.
    """
    root = "pyspark.sql.connect" if remote else "pyspark.sql"
    readwriter = import_module(f"{root}.readwriter")
    streaming = import_module(f"{root}.streaming.readwriter")
    builder = import_module("pyspark.sql.session").SparkSession.Builder
    functions = streams.batch_functions(install) if remote else {}
    frames = import_module("pyspark.sql.connect.dataframe" if remote else "pyspark.sql.classic.dataframe")
    settings = import_module(f"{root}.conf").RuntimeConf if remote else import_module(f"{root}.conf").RuntimeConfig
    # a builder of Spark Connect sets the settings after it has created the session
    made = {"newSession": _session} | ({} if remote else {"__init__": _init})
    return [
        (readwriter.DataFrameReader, batch_reads.READER),
        (readwriter.DataFrameWriter, batch_writes.WRITER),
        (readwriter.DataFrameWriterV2, table_writes.WRITER),
        (frames.DataFrame, table_writes.FRAME | dataframes.FRAME | merges.FRAME),
        *([] if remote else [(import_module(f"{root}.pandas.conversion").PandasConversionMixin, dataframes.PANDAS)]),
        (streaming.DataStreamReader, streams.READER),
        (streaming.DataStreamWriter, streams.WRITER | functions),
        (import_module(f"{root}.catalog").Catalog, catalog.CATALOG),
        (settings, runtime_settings.SETTINGS),
        (_sessions(remote), batch_reads.SESSION | statements.SESSION | made),
        (builder, dict.fromkeys(("getOrCreate", "create"), _session)),
        *([] if (registry := pipelines.registry()) is None else [(registry, pipelines.REGISTRY)]),
    ]


def _sessions(remote: bool) -> Any:
    """The class of sessions of one kind."""
    return import_module("pyspark.sql.connect.session" if remote else "pyspark.sql.session").SparkSession


def _name(owner: type) -> str:
    return f"{owner.__module__.removeprefix('pyspark.sql.')}.{owner.__qualname__}"
