"""``delta_pyds.read`` and ``write``: the options of the format as arguments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from delta_pyds.catalog.address import locate, locate_or_reserve
from delta_pyds.errors import OptionError
from delta_pyds.spark.active_session import active, is_remote
from delta_pyds.spark.arguments import (
    catalog_argument,
    choice_argument,
    flag_argument,
    given_options,
    json_argument,
    names_argument,
    number_argument,
    option_texts,
    optional_flag_argument,
    property_options,
    text_argument,
    time_argument,
)
from delta_pyds.spark.catalog_names.locations import is_name_of_session, location_of, refresh_entry, settle
from delta_pyds.spark.catalog_names.lookup import require
from delta_pyds.spark.incoming import to_frame
from delta_pyds.spark.loading import load_by_options
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.same_files import require_same_files, shared_path
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.error_transport import error_of, errors_as_they_were
from delta_pyds.spark.source.write_result import RESULT_OPTION, WriteResult, new_result_id, take_result
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import PathLike, absolute_table_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from delta_pyds.catalog import Catalog

Engine = Literal["auto", "native", "arrow"]
Mode = Literal["append", "overwrite", "errorifexists", "error", "default", "ignore"]

# to the option createMode
_MODES = {"append": None, "overwrite": None, "errorifexists": "errorIfExists", "error": "errorIfExists",
          "default": "errorIfExists", "ignore": "ignore"}  # fmt: skip
_TIME_ZONE = "spark.sql.session.timeZone"


def read(
    spark: SparkSession,
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    time_zone: str | None = None,
    row_position: bool = False,
    row_ids: bool = False,
    min_partitions: int | None = None,
    verify_page_checksums: bool | None = None,
    storage_options: Mapping[str, Any] | None = None,
    engine: Engine = "auto",
) -> DataFrame:
    """A DataFrame of the table at ``path``: everything that the options of the format can say, in Python.

    The DataFrame is the table at one version for as long as it lives, and
    exactly the rows for which ``where`` (a Spark SQL predicate) is true.
    ``table``: instead of a path, a name that ``delta_pyds.create_table`` gave; with ``catalog`` the one that the
    catalog which manages the table knows it by (see ``delta_pyds.catalog``). ``timestamp``: text, or a datetime;
    without a zone it is in the session's time zone, as are the timestamps in ``where``. ``min_partitions``: by
    default the session's parallelism. ``verify_page_checksums``: false leaves the checksums of Parquet pages,
    where a file has them, unlooked at.

    ``engine``: ``native`` plans here and reads with Spark's own Parquet reader,
    which prunes columns and partitions, hands filters down and knows sizes, for
    each query anew; every column of it may be null for all that Spark knows.
    ``arrow`` is the Python source. ``auto`` takes ``native`` where the rows
    are certain to be the same; ``delta_pyds.explain`` of the DataFrame says
    which and why. The session's settings are looked at once, here.

    >>> delta_pyds.read(spark, "/data/events", where="day >= '2026-01-01'", columns=["id", "user.name"])
    >>> delta_pyds.read(spark, "/data/events", timestamp="2026-01-31 18:00:00", engine="native")

    Raises: OptionError for arguments that are none, or contradict each other; any DeltaError of planning, of its own
        class; with ``native`` UnsupportedOperationError naming the reasons against it; WorkerPythonError. What goes
        wrong in an action on the DataFrame is Spark's exception: ``delta_pyds.error_of`` gives the DeltaError.
    """
    if is_name_of_session(path, table, catalog):
        named = require(spark, table or "")
        refresh_entry(spark, named, storage_options)
        path = shared_path(spark, named.location)
    else:
        path, storage_options = _address(path, table, catalog, storage_options)
    chosen_engine = choice_argument("engine", engine, ("auto", "native", "arrow"))
    if version is not None and timestamp is not None:
        raise OptionError(
            "version and timestamp are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    names = names_argument("columns", columns)
    options: dict[str, Any] = {
        "where": text_argument("where", where),
        "columns": names if names is None or isinstance(names, str) else ",".join(names),
        "versionAsOf": number_argument("version", version, least=0),
        "timestampAsOf": time_argument("timestamp", timestamp),
        "rowPosition": flag_argument("row_position", row_position),
        "rowIds": flag_argument("row_ids", row_ids),
        "verifyPageChecksums": optional_flag_argument("verify_page_checksums", verify_page_checksums),
        "minPartitions": number_argument("min_partitions", min_partitions, least=1),
        "storageOptions": json_argument("storage_options", storage_options),
        "timeZone": text_argument("time_zone", time_zone),
    }
    return load_by_options(spark, path, given_options(options), chosen_engine)


def _address(
    path: PathLike | None,
    table: Any,
    catalog: Any,
    storage_options: Mapping[str, Any] | None,
    *,
    create: bool = False,
) -> tuple[PathLike, Mapping[str, Any] | None]:
    """The path as it is; for a table of a catalog where it lies, and storage options that name it there."""
    if path is not None and table is None and catalog is None:
        return path, storage_options
    name, known = text_argument("table", table), catalog_argument(catalog)
    if create and name is not None and path is None:
        address = locate_or_reserve(name, known, storage_options=storage_options)
    else:
        address = locate(path, table=name, catalog=known, storage_options=storage_options)
    return address.table_root, address.storage_options


def write(
    df: Any,
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    mode: Mode = "errorifexists",
    partition_by: str | Sequence[str] | None = None,
    cluster_by: str | Sequence[str] | None = None,
    replace_where: str | None = None,
    partition_overwrite: Literal["static", "dynamic"] | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    properties: Mapping[str, Any] | None = None,
    user_metadata: str | None = None,
    txn: tuple[str, int] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    spark: SparkSession | None = None,
) -> WriteResult:
    """Write rows as one version of the table at ``path``: what the options of the format can say, in Python.

    Either all rows of ``df`` are in the table afterwards, or none. ``df``: a DataFrame of Spark; or one of pandas, or
    an Arrow table, batch or reader, which goes to Spark through ``spark`` (by default the active session). ``mode``:
    ``append``, ``overwrite``, ``errorifexists`` or ``ignore``, the four of
    Spark, of which it gives a Python source only two. ``partition_by``,
    ``cluster_by``: column names, for a table that the write creates, which
    ``df.write.partitionBy`` cannot pass on. ``properties``: of such a table; one that is there must
    have them already. ``table``, ``catalog``: instead of a path, a name as ``read`` takes it; a new one is given
    to a new table, which lies where Spark's schema puts it. ``txn``: application id and version, so that a repeated
    write is made once. ``options``: any other option of the format, and ``optimizeWrite``: rows are shuffled by the
    partition columns before, so that there are fewer and larger files.

    >>> delta_pyds.write(df, "/data/events", mode="append").version
    >>> delta_pyds.write(df, "/data/events", mode="overwrite", replace_where="day = '2026-01-31'")

    Works in any thread. Returns: what was done; its ``version`` is None where nothing had to be.
    Raises: OptionError for arguments that are none; the DeltaError of the write, of its own class (a ConflictError
        where another writer was first); WorkerPythonError. What goes wrong in making the rows is Spark's exception.
    """
    by_name = is_name_of_session(path, table, catalog)
    if not by_name:
        path, storage_options = _address(path, table, catalog, storage_options, create=True)
    chosen_mode = choice_argument("mode", mode, tuple(_MODES))
    app_id, app_version = _transaction(txn)
    given: dict[str, Any] = {
        "partitionBy": column_list("partition_by", partition_by),
        "clusterBy": column_list("cluster_by", cluster_by),
        "replaceWhere": text_argument("replace_where", replace_where),
        "partitionOverwriteMode": text_argument("partition_overwrite", partition_overwrite),
        "mergeSchema": flag_argument("merge_schema", merge_schema) or None,
        "overwriteSchema": flag_argument("overwrite_schema", overwrite_schema) or None,
        "userMetadata": text_argument("user_metadata", user_metadata),
        "txnAppId": app_id,
        "txnVersion": app_version,
        "storageOptions": json_argument("storage_options", storage_options),
        **property_options(properties),
        **option_texts("options", options),
    }
    texts = given_options(given)
    frame = to_frame(df, spark)
    if not by_name:
        assert path is not None
        return save_by_options(frame, path, texts, mode=chosen_mode)
    place = location_of(frame.sparkSession, table or "")
    done = save_by_options(frame, place.location, texts, mode=chosen_mode)
    replaces = any(key.lower() == "createmode" and "replace" in text.lower() for key, text in texts.items())
    if place.table is None or merge_schema or overwrite_schema or replaces:
        settle(frame.sparkSession, place, storage_options)
    return done


def save_by_options(frame: DataFrame, path: PathLike, options: Mapping[str, str], *, mode: str) -> WriteResult:
    """What ``write`` does, with options as the format takes them. ``mode``: in lower case.

    Raises: what ``write`` raises.
    """
    register(frame.sparkSession)
    by_mode = _MODES[mode]
    # the option says it more exactly than the mode
    said = any(key.lower() == "createmode" for key in options)
    given = dict(options) if said or by_mode is None else {"createMode": by_mode, **options}
    return _save(frame, path, given, overwrite=mode == "overwrite")


def _save(frame: DataFrame, path: PathLike, given: Mapping[str, str], *, overwrite: bool) -> WriteResult:
    spark = frame.sparkSession
    root = absolute_table_path(path, remote=is_remote(spark))
    # whatever the user gave comes after the zone
    options = {"timeZone": spark.conf.get(_TIME_ZONE) or "UTC", **given}
    # on Spark Connect a path without a scheme may be the server's alone
    sure_of_files = not is_remote(spark) or has_scheme(path)
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.optimized_write import optimized

    with active(spark), errors_as_they_were(), plain_calls():
        rows, kept = optimized(frame, root, options, sure_of_files=sure_of_files)
        return _save_rows(rows, root, kept, overwrite=overwrite, sure_of_files=sure_of_files)


def _save_rows(
    frame: DataFrame, root: str, options: dict[str, str], *, overwrite: bool, sure_of_files: bool
) -> WriteResult:
    spark = frame.sparkSession
    using = next((key for key in options if key.lower() == "replaceusing"), None)
    if using is not None:
        from delta_pyds.spark.session_write import replace_using

        if not sure_of_files:
            require_same_files(spark, root)
        rest = {key: text for key, text in options.items() if key != using}
        return replace_using(
            frame, {**rest, "path": root}, options[using], time_zone=options["timeZone"], overwrite=overwrite
        )
    if overwrite and "replaceWhere" in options and sure_of_files:
        from delta_pyds.spark.session_write import replace_rows

        done = replace_rows(frame, {**options, "path": root}, time_zone=options["timeZone"])
        if done is not None:
            return done
    try:
        return _save_by_format(frame, root, options, overwrite=overwrite)
    except Exception as e:
        from delta_pyds.spark.session_write import lacked_a_session, write_computed

        # nothing was written: the session computes what a process without one does not know
        error = error_of(e)
        if error is None or not lacked_a_session(error):
            raise
        if not sure_of_files:
            require_same_files(spark, root)
    return write_computed(frame, {**options, "path": root}, time_zone=options["timeZone"], overwrite=overwrite)


def _save_by_format(frame: DataFrame, root: str, options: Mapping[str, str], *, overwrite: bool) -> WriteResult:
    result_id = new_result_id()
    writer = frame.write.format(DeltaDataSource.name()).options(**options).option(RESULT_OPTION, result_id)
    writer.mode("overwrite" if overwrite else "append").save(root)
    return take_result(frame.sparkSession, DeltaDataSource.name(), result_id)


def _transaction(txn: Any) -> tuple[str | None, int | None]:
    if txn is None:
        return None, None
    if not isinstance(txn, (tuple, list)) or len(txn) != 2:
        raise OptionError(
            f"the argument txn is {txn!r:.200}, but must be a pair: an application's id and a version, as ('job', 7).",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txn",
        )
    return text_argument("txn[0]", txn[0]), number_argument("txn[1]", txn[1], least=0)


def column_list(name: str, value: Any) -> str | None:
    """Names as the options take them; in a list each is one whole name, whatever is in it."""
    columns = names_argument(name, value)
    if columns is None or isinstance(columns, str):
        return columns
    return ",".join("`" + column.replace("`", "``") + "`" for column in columns)
