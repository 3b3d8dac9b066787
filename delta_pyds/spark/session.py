"""``delta_pyds.read`` and ``write``: the options of the format as arguments."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from delta_pyds.catalog.address import locate, locate_or_reserve
from delta_pyds.commands.write.request import CreateMode, WriteRequest
from delta_pyds.errors import OptionError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.active_session import active, is_remote
from delta_pyds.spark.arguments import (
    catalog_argument,
    choice_argument,
    flag_argument,
    json_argument,
    names_argument,
    number_argument,
    option_texts,
    text_argument,
    time_argument,
)
from delta_pyds.spark.catalog_names.locations import is_name_of_session, location_of, refresh_entry, settle
from delta_pyds.spark.catalog_names.lookup import require
from delta_pyds.spark.incoming import to_frame
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions, version_option
from delta_pyds.spark.options.values import application_option, boolean_option, time_zone_option
from delta_pyds.spark.options.write import column_paths, partition_overwrite_mode, with_options, write_texts
from delta_pyds.spark.options.write import replace_using as replace_using_columns
from delta_pyds.spark.partition_conditions import rows_read
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.row_sources import depends_on_table
from delta_pyds.spark.same_files import require_same_files, shared_path
from delta_pyds.spark.settings import DYNAMIC_OVERWRITE, TIME_ZONE
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

_MODES: dict[str, CreateMode] = {
    "append": "createIfNotExists",
    "overwrite": "createIfNotExists",
    "errorifexists": "errorIfExists",
    "error": "errorIfExists",
    "default": "errorIfExists",
    "ignore": "ignore",
}
_OPTIMIZE_WRITE = "optimizeWrite"
_READS_TABLE = "readstable"
# a process without a session cannot do these; and the path is given separately
_OF_SESSION = ("optimizewrite", "replaceusing", "path")


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
    check_footers: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    engine: Engine = "auto",
) -> DataFrame:
    """Return a DataFrame of a table: the table at one version for as long as the DataFrame lives.

    The engine ``native`` plans here and reads with Spark's own Parquet reader. For each query again, that reader prunes
    columns and partitions, pushes filters down and knows sizes. To Spark every column of it is nullable. The engine
    ``arrow`` is the Python source. Settings of the session are read once, here.

    Args:
        spark: The session, classic or of Spark Connect.
        path: The path of the table: absolute, relative to this process, ``~/...`` or of a store. On Spark Connect it is
            absolute.
        table: Instead of a path, a name: of the session's catalog (see ``delta_pyds.create_table``), or with
            ``catalog`` of that one.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        where: A predicate of Spark SQL; by default all rows. Only rows for which it is true are returned.
        columns: The columns to read, nested ones with dots, as a list or as text with commas; by default all.
        version: The version to read; by default the latest.
        timestamp: Instead of a version, a time: the last commit up to this time. It is text or a datetime.
        time_zone: The zone of timestamps without one, in ``where`` and ``timestamp``; by default the session's.
        row_position: Whether to add the columns ``_file_path`` and ``_row_position``.
        row_ids: Whether to add the columns ``_row_id`` and ``_row_commit_version``, of a table with row tracking.
        min_partitions: The least number of partitions to plan, 1 or more; by default the session's parallelism.
        verify_page_checksums: Whether to verify the checksums of Parquet pages, if a file has them. None means True.
            The accelerator Comet verifies none.
        check_footers: Whether to read the footer of each file first. Then the engine ``auto`` reads with the Python
            source if Spark's own reader gives a file another meaning: unsigned numbers, timestamps of the Julian
            calendar, nulls in a NOT NULL column.
        storage_options: Options of the store, as its fsspec package takes them; values that JSON can express.
        engine: ``native``, ``arrow``, or ``auto``: ``native`` if its rows are certainly the same.
            ``delta_pyds.explain`` of the DataFrame says which engine was chosen, and why.

    Returns:
        The DataFrame. An action on it raises Spark's exception: ``delta_pyds.error_of`` gives the DeltaError.

    Raises:
        OptionError: An argument is invalid, such as an unknown time zone, or arguments contradict each other.
        TableNotFoundError: There is no table, or no table of that name.
        TimeTravelError: The table does not have that version or time.
        ExpressionError: ``where`` is invalid or not supported.
        ColumnNotFoundError: ``where`` or ``columns`` names a column that the table does not have.
        UnsupportedOperationError: ``native`` was given and cannot read the table; the error names the reasons.
        WorkerPythonError: Spark's workers run a Python without this package.
        DeltaError: The table cannot be opened; see ``load_snapshot``.

    >>> delta_pyds.read(spark, "/data/events", where="day >= '2026-01-01'", columns=["id", "user.name"])
    >>> delta_pyds.read(spark, "/data/events", timestamp="2026-01-31 18:00:00", engine="native")
    """
    path, storage_options = table_address(spark, path, table, catalog, storage_options)
    chosen_engine = choice_argument("engine", engine, ("auto", "native", "arrow"))
    if version is not None and timestamp is not None:
        raise OptionError(
            "version and timestamp are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    names = names_argument("columns", columns)
    json_argument("storage_options", storage_options)
    checked = number_argument("version", version, least=0)
    options = ReadOptions(
        "",
        version=None if checked is None else version_option(str(checked)),
        timestamp=time_argument("timestamp", timestamp),
        where=text_argument("where", where),
        columns=names if names is None or isinstance(names, str) else ",".join(names),
        time_zone=time_zone_option(text_argument("time_zone", time_zone)),
        min_partitions=number_argument("min_partitions", min_partitions, least=1),
        row_position=flag_argument("row_position", row_position),
        row_ids=flag_argument("row_ids", row_ids),
        verify_page_checksums=verify_page_checksums is None
        or flag_argument("verify_page_checksums", verify_page_checksums),
        check_footers=flag_argument("check_footers", check_footers),
        storage_options=storage_options or {},
    )
    return load(spark, path, options, chosen_engine)


def table_address(
    spark: SparkSession,
    path: PathLike | None,
    table: str | None,
    catalog: str | Catalog | None,
    storage_options: Mapping[str, Any] | None,
) -> tuple[PathLike, Mapping[str, Any] | None]:
    """The path of a table that ``read`` is given, and its storage options. Raises: as ``read``."""
    if is_name_of_session(path, table, catalog):
        named = require(spark, table or "")
        refresh_entry(spark, named, storage_options)
        return shared_path(spark, named.location), storage_options
    return _address(path, table, catalog, storage_options)


def _address(
    path: PathLike | None,
    table: Any,
    catalog: Any,
    storage_options: Mapping[str, Any] | None,
    *,
    create: bool = False,
) -> tuple[PathLike, Mapping[str, Any] | None]:
    """The path as given. For a table of a catalog: its location, and storage options that name the table."""
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
    """Write rows as one version of a table, from any thread: either all rows are in the table afterwards, or none.

    Args:
        df: The rows: a DataFrame of Spark or pandas, or an Arrow table, batch or reader. All but Spark's go through the
            driver's memory.
        path: The path of the table: absolute, relative to this process, ``~/...`` or of a store. On Spark Connect it is
            absolute.
        table: Instead of a path, a name, as ``read`` takes it. A new table gets the name, and the location that Spark's
            schema or the catalog gives.
        catalog: The catalog that manages the table, as ``load_snapshot`` takes it.
        mode: ``append``, ``overwrite``, ``errorifexists`` (also ``error`` and ``default``) or ``ignore``, in any case.
            All create a table that does not exist. If it exists, the last two fail or do nothing.
        partition_by: The partition columns of a table that the write creates, as a list or as text with commas.
        cluster_by: The clustering columns of a table that the write creates, nested ones with dots.
        replace_where: With ``overwrite``, a predicate of Spark SQL: only rows for which it is true are replaced.
        partition_overwrite: With ``overwrite``: ``dynamic`` replaces only partitions that get rows, ``static`` all
            rows. The default is ``static``; a setting of the session does not count.
        merge_schema: Whether to add columns to the table that only ``df`` has.
        overwrite_schema: With ``overwrite``, whether to replace the schema and the partitioning.
        properties: Properties of a table that the write creates; an existing table must have them already.
        user_metadata: Text that the commit keeps.
        txn: Application id and version: the table gets a version of an application once, even if the write is repeated.
        storage_options: Options of the store, as its fsspec package takes them; values that JSON can express.
        options: Any other option of the format; its values are texts, numbers or booleans. ``optimizeWrite`` shuffles
            rows by the partition columns first, so that there are fewer and larger files. Options win over arguments.
        spark: The session for rows that are not a DataFrame of Spark; by default the active one.

    Returns:
        The result; its ``version`` is None if there was nothing to commit.

    Raises:
        OptionError: An argument is invalid, or arguments contradict each other.
        UserError: The table exists already, or the rows do not fit the table.
        ConstraintViolationError: A row breaks a constraint of the table.
        ConflictError: A conflicting commit came first.
        WorkerPythonError: Spark's workers run a Python without this package.
        DeltaError: The write failed otherwise. An error in the rows' own query is Spark's exception.

    >>> delta_pyds.write(df, "/data/events", mode="append").version
    >>> delta_pyds.write(df, "/data/events", mode="overwrite", replace_where="day = '2026-01-31'")
    """
    by_name = is_name_of_session(path, table, catalog)
    if not by_name:
        path, storage_options = _address(path, table, catalog, storage_options, create=True)
    chosen_mode = choice_argument("mode", mode, tuple(_MODES))
    json_argument("storage_options", storage_options)
    overwrites = text_argument("partition_overwrite", partition_overwrite)
    request = replace(
        _request(chosen_mode),
        partition_by=_paths("partition_by", "partitionBy", partition_by),
        cluster_by=_paths("cluster_by", "clusterBy", cluster_by),
        replace_where=text_argument("replace_where", replace_where),
        partition_overwrite=None if overwrites is None else partition_overwrite_mode(overwrites),
        merge_schema=flag_argument("merge_schema", merge_schema),
        overwrite_schema=flag_argument("overwrite_schema", overwrite_schema),
        user_metadata=text_argument("user_metadata", user_metadata),
        application=_transaction(txn),
        storage_options=storage_options or {},
        properties=option_texts("properties", properties),
    )
    texts = option_texts("options", options)
    frame = to_frame(df, spark)
    if not by_name:
        assert path is not None
        return _save(frame, path, request, texts)[0]
    location = location_of(frame.sparkSession, table or "")
    done, written = _save(frame, location.path, request, texts)
    if location.table is None or merge_schema or overwrite_schema or written.replaces_table:
        settle(frame.sparkSession, location, storage_options)
    return done


def save_by_options(frame: DataFrame, path: PathLike, options: Mapping[str, str], *, mode: str) -> WriteResult:
    """``write`` with options as the format takes them. ``mode``: in lower case.

    Raises: as ``write``.
    """
    return _save(frame, path, _request(mode), options)[0]


def _request(mode: str) -> WriteRequest:
    """A write in one of Spark's modes. Table and columns are not known yet."""
    return WriteRequest("", StructType(()), "overwrite" if mode == "overwrite" else "append", create_mode=_MODES[mode])


def _save(
    frame: DataFrame, path: PathLike, request: WriteRequest, options: Mapping[str, str]
) -> tuple[WriteResult, WriteRequest]:
    """``options``: the format's, and those that only a session takes; they override the request."""
    spark = frame.sparkSession
    register(spark)
    root = absolute_table_path(path, remote=is_remote(spark))
    given = {key.lower(): text for key, text in options.items()}
    asked = boolean_option(given, _OPTIMIZE_WRITE)
    of_format = {key: text for key, text in options.items() if key.lower() not in _OF_SESSION}
    zone = time_zone_option(spark.conf.get(TIME_ZONE)) or "UTC"
    request = with_options(replace(request, table_root=root, time_zone=zone), of_format)
    if request.partition_overwrite == "dynamic":
        _require_dynamic_overwrite(spark)
    if "replaceusing" in given:
        request = replace(request, replace_using=replace_using_columns(given["replaceusing"]))
    # on Spark Connect a path without a scheme may be the server's alone
    sure_of_files = not is_remote(spark) or has_scheme(path)
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.optimized_write import optimized

    with active(spark), errors_as_they_were(), plain_calls():
        if request.read_version is None and _READS_TABLE not in given:
            reads = depends_on_table(frame, root, sure_of_files=sure_of_files)
            request = replace(request, reads_table=reads, reads_where=rows_read(frame, root) if reads else None)
        rows = optimized(frame, request, asked, sure_of_files=sure_of_files)
        return _save_rows(rows, root, request, sure_of_files=sure_of_files), request


def _require_dynamic_overwrite(spark: SparkSession) -> None:
    """Raises: OptionError (DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED) if the session turns it off."""
    if (spark.conf.get(DYNAMIC_OVERWRITE, None) or "true").strip().lower() == "false":
        raise OptionError(
            f"the write asks for partitionOverwriteMode=dynamic, but the session sets {DYNAMIC_OVERWRITE} to false. "
            "Set it to true, or write with replaceWhere.",
            code="DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED",
            option="partitionOverwriteMode",
        )


def _save_rows(frame: DataFrame, root: str, request: WriteRequest, *, sure_of_files: bool) -> WriteResult:
    spark = frame.sparkSession
    if request.replace_using:
        from delta_pyds.spark.session_write import replace_using

        if not sure_of_files:
            require_same_files(spark, root)
        return replace_using(frame, request)
    if request.mode == "overwrite" and request.replace_where is not None and sure_of_files:
        from delta_pyds.spark.session_write import replace_rows

        done = replace_rows(frame, request)
        if done is not None:
            return done
    try:
        return _save_by_format(frame, root, request)
    except Exception as e:
        from delta_pyds.spark.session_write import needs_session, write_computed

        # nothing was written: the session computes what a process without one does not know
        error = error_of(e)
        if error is None or not needs_session(error):
            raise
        if not sure_of_files:
            require_same_files(spark, root)
    return write_computed(frame, request)


def _save_by_format(frame: DataFrame, root: str, request: WriteRequest) -> WriteResult:
    result_id = new_result_id()
    # the mode of Sail's append may also be "error" or "ignore", so an option names it
    texts = {**write_texts(request), "createMode": request.create_mode, RESULT_OPTION: result_id}
    frame.write.format(DeltaDataSource.name()).options(**texts).mode(request.mode).save(root)
    return take_result(frame.sparkSession, DeltaDataSource.name(), result_id)


def _transaction(txn: Any) -> tuple[str, int] | None:
    if txn is None:
        return None
    if not isinstance(txn, (tuple, list)) or len(txn) != 2:
        raise OptionError(
            f"the argument txn is {txn!r:.200}, but must be a pair: an application's id and a version, as ('job', 7).",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txn",
        )
    app_id, version = text_argument("txn[0]", txn[0]), number_argument("txn[1]", txn[1], least=0)
    return application_option(app_id, None if version is None else str(version))


def column_list(name: str, value: Any) -> str | None:
    """Names as the options take them; in a list each item is one whole name, also with dots and commas."""
    columns = names_argument(name, value)
    if columns is None or isinstance(columns, str):
        return columns
    return ",".join(quote_name(column) for column in columns)


def _paths(name: str, option: str, value: Any) -> tuple[tuple[str, ...], ...] | None:
    text = column_list(name, value)
    return None if text is None else column_paths(text, option)
