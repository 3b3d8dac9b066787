"""``delta_pyds.changes``: the rows that differ between versions of any table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark.errors import AnalysisException

from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark.arguments import (
    flag_argument,
    json_argument,
    names_argument,
    text_argument,
)
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.options.values import time_zone_option
from delta_pyds.spark.session import table_address
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.spark.spark_errors import explained
from delta_pyds.storage.table_path import PathLike
from delta_pyds.table.change_feed.arguments import compute_changes_of, key_columns, version_or_time
from delta_pyds.table.scan.read_report import remember, report_of
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from delta_pyds.catalog import Catalog


def changes(
    spark: SparkSession,
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    since: int | str | dt.datetime,
    until: int | str | dt.datetime | None = None,
    net: bool = False,
    keys: str | Sequence[str] | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    compute: Literal["auto", "rowIds", "values", "never"] = "auto",
    time_zone: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Return the rows that commits inserted, updated and deleted, of any table.

    Where the change feed was on, its records are read. Elsewhere the changes are computed from the files and deletion
    vectors that the commits added and removed. On a table with row tracking, a row is the same if its row id is. Its
    update has two rows, and a row that only moved to another file has none. On other tables, rows of a commit with
    equal values cancel each other. The rest are inserts and deletes, unless ``keys`` pairs them.

    Args:
        spark: The session, classic or of Spark Connect.
        path: The path of the table, as ``read`` takes it.
        table: Instead of a path, a name, as ``read`` takes it.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        since: The first commit: its version, or a time, which means the first commit at or after it.
        until: The last commit: its version, or a time, which means the last commit at or before it. By default the
            latest.
        net: Whether to return only the difference between the table before ``since`` and after ``until``. It is always
            computed. A row that came and went is not in it.
        keys: Columns that identify a row. A delete and an insert of one version with the same keys become the two
            images of an update. They must be unique in the table; nulls are never paired.
        where: A predicate of Spark SQL over the columns of the result; by default all rows. With ``keys``, Spark
            computes it after the pairing, in the session's zone, and it skips no files.
        columns: The columns to return, nested ones with dots; by default all, and the three of a change.
        compute: ``auto`` compares rows by row ids if the table tracks rows, else by values. ``rowIds`` and ``values``
            allow one way only. ``never`` refuses changes that were not recorded, as delta-spark does.
        time_zone: The zone of timestamps without one, in ``where``, ``since`` and ``until``; by default the session's.
        storage_options: Options of the store, as its fsspec package takes them; values that JSON can express.

    Returns:
        The columns of the table, and ``_change_type`` (``insert``, ``delete``, ``update_preimage`` or
        ``update_postimage``), ``_commit_version`` and ``_commit_timestamp``; with ``net``, those of the last commit. An
        action on it raises Spark's exception: ``delta_pyds.error_of`` gives the DeltaError. ``delta_pyds.explain`` of
        it says how the changes are found, and what that reads.

    Raises:
        OptionError: An argument is invalid.
        ColumnNotFoundError: ``keys``, ``where`` or ``columns`` names a column that the result does not have.
        TableNotFoundError: There is no table, or no table of that name.
        TimeTravelError: The table does not have the first commit, or not that time.
        UserError: The range ends before it starts, its schemas do not fit, or ``compute`` does not allow them.
        ExpressionError: ``where`` is invalid or not supported.
        DeltaError: The table cannot be opened; see ``load_snapshot``.

    >>> delta_pyds.changes(spark, "/data/prices", since=3, until=5)
    >>> delta_pyds.changes(spark, "/data/prices", since="2026-01-31", net=True, keys="id")
    """
    path, storage_options = table_address(spark, path, table, catalog, storage_options)
    json_argument("storage_options", storage_options)
    names = names_argument("columns", columns)
    given_keys = names_argument("keys", keys)
    has_keys = given_keys is not None and given_keys != ()
    predicate = text_argument("where", where)
    options = ReadOptions(
        "",
        change_feed=True,
        **_bound("since", "starting", since),
        **({} if until is None else _bound("until", "ending", until)),
        net_changes=flag_argument("net", net),
        compute_changes=compute_changes_of(text_argument("compute", compute) or "auto", "compute"),
        # an image of a pair may not satisfy it
        where=None if has_keys else predicate,
        columns=names if names is None or isinstance(names, str) else ",".join(names),
        time_zone=time_zone_option(text_argument("time_zone", time_zone)),
        storage_options=storage_options or {},
    )
    frame = load(spark, path, options, "arrow")
    if not has_keys:
        return frame
    paired = _with_updates(frame, key_columns(given_keys, frame.columns))
    if predicate is not None:
        _require_session_zone(spark, options.time_zone)
        try:
            paired = paired.where(predicate)
        except AnalysisException as error:
            raise ExpressionError(f"the argument where: {explained(error).message}", multiline=True) from None
    remember(paired, report_of(frame))
    return paired


def _require_session_zone(spark: SparkSession, time_zone: str | None) -> None:
    """Raises: OptionError for another zone: with keys, Spark computes the predicate."""
    # asking costs a request on Spark Connect
    if time_zone is not None and time_zone != (session := spark.conf.get(TIME_ZONE)):
        raise OptionError(
            f"time_zone is {time_zone!r}, but with keys the predicate where is computed in the session's zone, "
            f"{session!r}. Set the session's zone ({TIME_ZONE}), or leave out keys or where.",
            option="time_zone",
        )


def _bound(argument: str, end: Literal["starting", "ending"], value: Any) -> dict[str, Any]:
    """The option for one end of the range."""
    found = version_or_time(argument, value)
    if isinstance(found, int):
        return {f"{end}_version": found}
    return {f"{end}_timestamp": text_argument(argument, found)}


def _with_updates(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Make updates of the deletes and inserts of one version with the same keys."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    chosen = [f.col(quote_name(name)) for name in keys]
    group = Window.partitionBy(*chosen, f.col(COMMIT_VERSION_COLUMN))
    kind = f.col(CHANGE_TYPE_COLUMN)

    def count(change_type: str) -> Column:
        return f.count(f.when(kind == change_type, True)).over(group)

    paired = (count("delete") > 0) & (count("insert") > 0)
    for column in chosen:
        paired = paired & column.isNotNull()
    image = f.when(kind == "delete", "update_preimage").when(kind == "insert", "update_postimage")
    return frame.withColumn(CHANGE_TYPE_COLUMN, f.coalesce(f.when(paired, image), kind))
