"""Temporary views that track their tables, after ``install``: each statement reads their current rows.

Our DataFrame stays at the version that it was read at, and so would a temporary view of it. The reference's view shows
each query the current table, and a statement may change the table by the view's name.

Invariant: a view is recreated only while it is certainly the one that was tracked. In any doubt it is no longer
tracked, and stays at its version. A view keeps its columns as long as the table has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.redaction import Concealing
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.locations import open_shared
from delta_pyds.spark.jvm_plans import analyzed
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.table.snapshot import Snapshot

_LIMIT = 256
_NAME = r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?`?(\w+)`?"
_CREATED = re.compile(rf"\bVIEW\s+{_NAME}|\bCACHE\s+(?:LAZY\s+)?TABLE\s+{_NAME}(?=[^;]*\bAS\b)", re.IGNORECASE)
# words that may create or drop a view without its name after VIEW or TABLE
_ANYTHING = re.compile(r"\b(?:IMMEDIATE|BEGIN|IDENTIFIER)\b", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Source(Concealing):
    """A table that a view reads as it is now."""

    path: str
    storage_options: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Origin:
    """The tables of a DataFrame's rows, and how they are read again. ``whole``: all rows and columns of one table.

    ``version``: the version that was read, if it is one table and the version is known.
    """

    sources: tuple[Source, ...]
    load: Callable[[], DataFrame] = field(repr=False)
    whole: bool
    version: int | None = None


@dataclass(frozen=True)
class _View:
    """``seen``: id and version of each table, if they are known. ``plan``: identifies the view on classic sessions.
    ``in_texts``: the text of another view may name it.
    """

    name: str
    origin: Origin
    schema: StructType
    seen: tuple[tuple[str, int], ...]
    plan: Any
    in_texts: bool = False


_origins: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()
_views: BoundedCache[tuple[str, str], _View] = BoundedCache(_LIMIT)
_tracking = False


def start() -> None:
    global _tracking
    _tracking = True


def stop() -> None:
    """Stop tracking: views stay as they are from now on."""
    global _tracking
    _tracking = False
    for key in _views:
        _views.forget(key)


def remember(frame: DataFrame, origin: Origin) -> None:
    """Let views of exactly this DataFrame track its tables."""
    _origins[frame] = origin


def remember_same(frame: DataFrame, other: DataFrame) -> None:
    """Let ``frame`` have the origin of ``other``, because it has the same rows."""
    origin = _origins.get(other)
    if origin is not None:
        _origins[frame] = origin


def origin_of(frame: DataFrame) -> Origin | None:
    return _origins.get(frame)


def created(name: Any, frame: DataFrame) -> None:
    """Track the view of that name, which was created from the frame, or stop tracking the view that it replaced."""
    if not isinstance(name, str):
        return
    track(frame.sparkSession, name, frame, _origins.get(frame))


def track(
    spark: SparkSession, name: str, frame: DataFrame, origin: Origin | None, seen: tuple[tuple[str, int], ...] = ()
) -> None:
    """``frame``: the view's. ``origin``: None for rows that track nothing. ``seen``: see ``states``."""
    name = name.strip("`")
    if origin is None or not _tracking or not can_track(spark, origin.sources):
        forget(spark, name)
        return
    if origin.version is not None and not seen:
        now = states(spark, origin.sources)
        seen = now if now and now[0][1] == origin.version else ()
    _views.put((_session(spark), name.lower()), _View(name, origin, frame.schema, seen, _plan(frame)))


def can_track(spark: SparkSession, sources: Sequence[Source]) -> bool:
    """Whether views of these tables are tracked. On Spark Connect a path without a scheme may be another table here."""
    return _tracking and bool(sources) and (not is_remote(spark) or all(has_scheme(source.path) for source in sources))


def forget(spark: SparkSession, name: Any) -> None:
    if isinstance(name, str) and _tracks_any():
        _views.forget((_session(spark), name.strip("`").lower()))


def forget_created_by(spark: SparkSession, text: str) -> None:
    """Forget the views that a statement of Spark may create, replace or drop."""
    if not _tracks_any():
        return
    if _ANYTHING.search(text):
        session = _session(spark)
        for key in _views:
            if key[0] == session:
                _views.forget(key)
        return
    names = [found[1] or found[2] for found in _CREATED.finditer(text)]
    for name in names:
        forget(spark, name)
    if names:
        for key, view in _of_session(spark, text):
            _views.put(key, replace(view, in_texts=True))


def whole_table(spark: SparkSession, name: str) -> Source | None:
    """The table whose rows and columns the view shows completely; None for any other name."""
    if not _tracks_any():
        return None
    view = _views.get((_session(spark), name.lower()))
    if view is None or not view.origin.whole or not _is_there(spark, view):
        return None
    return view.origin.sources[0]


def sources_of(spark: SparkSession, name: str) -> tuple[Source, ...]:
    """The tables that the view reads as they are now; empty for any other name."""
    if not _tracks_any():
        return ()
    view = _views.get((_session(spark), name.lower()))
    return () if view is None or not _is_there(spark, view) else view.origin.sources


def refresh(spark: SparkSession, text: Any) -> None:
    """Update the views that a statement or a name may read to the current versions of their tables.

    The log of each table is checked once. Views that neither ``text`` nor another view names are left out.
    """
    if not _tracks_any() or not isinstance(text, str):
        return
    known: dict[str, tuple[str, int]] = {}
    for key, view in _of_session(spark, text):
        seen = states(spark, view.origin.sources, known)
        if not seen or seen == view.seen:
            continue  # a read of the view reports the missing table
        if not _is_there(spark, view):
            _views.forget(key)
            continue
        try:
            with plain_calls():
                frame = _fitted(view.origin.load(), view.schema)
                frame.createOrReplaceTempView(quote_name(view.name))
        except (DeltaError, PySparkException):
            _views.forget(key)  # a table or view that its text names may no longer exist
        else:
            _views.put(key, replace(view, seen=seen, plan=_plan(frame)))


def refresh_older(spark: SparkSession, text: str, snapshot: Snapshot) -> None:
    """``refresh``, if a view that ``text`` may read shows an earlier version of this table."""
    if not _tracks_any():
        return
    read = snapshot.metadata.id
    seen = [one for _, view in _of_session(spark, text) for one in view.seen]
    if any(table_id == read and version < snapshot.version for table_id, version in seen):
        refresh(spark, text)


def _of_session(spark: SparkSession, text: str) -> list[tuple[tuple[str, str], _View]]:
    """The views that a text may read: it contains their names, or the text of another view does."""
    session, lowered = _session(spark), text.lower()
    found = []
    for key in _views:
        view = _views.get(key)
        if key[0] == session and view is not None and (view.in_texts or key[1] in lowered):
            found.append((key, view))
    return found


def states(
    spark: SparkSession, sources: Sequence[Source], known: dict[str, tuple[str, int]] | None = None
) -> tuple[tuple[str, int], ...]:
    """The current id and version of each table; empty if one of them cannot be opened."""
    known = {} if known is None else known
    try:
        for source in sources:
            if source.path not in known:
                snapshot = open_shared(spark, source.path, source.storage_options)
                known[source.path] = snapshot.metadata.id, snapshot.version
    except DeltaError:
        return ()
    return tuple(known[source.path] for source in sources)


def _fitted(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns that the view had, if the table still has them with their types."""
    now = {field.name: field.dataType for field in frame.schema.fields}
    if len(now) == len(schema.fields) or any(now.get(field.name) != field.dataType for field in schema.fields):
        return frame
    return frame.select(*(quote_name(field.name) for field in schema.fields))


def _is_there(spark: SparkSession, view: _View) -> bool:
    """Whether the session's view of that name is still the tracked one.

    On Spark Connect nothing distinguishes two views, so only the calls and statements of this process count.
    """
    if is_remote(spark):
        return True
    found = spark._jsparkSession.sessionState().catalog().getRawTempView(view.name)
    plan = found.get().plan() if found.isDefined() else None
    return bool(plan is not None and plan.isDefined() and plan.get().equals(view.plan))


def _plan(frame: DataFrame) -> Any:
    return None if is_remote(frame.sparkSession) else analyzed(frame)


def _session(spark: Any) -> str:
    """The id of a session, which has its own views."""
    return str(spark.session_id if is_remote(spark) else spark._jsparkSession.sessionUUID())


def _tracks_any() -> bool:
    return next(iter(_views), None) is not None
