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
    optional_flag_argument,
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
from delta_pyds.spark.plain_calls import plain_calls
from delta_pyds.spark.registration import register
from delta_pyds.spark.same_files import require_same_files, shared_path
from delta_pyds.spark.settings import TIME_ZONE
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
    each query again; to Spark every column of it is nullable.
    ``arrow`` is the Python source. ``auto`` takes ``native`` where the rows
    are certain to be the same; ``delta_pyds.explain`` of the DataFrame says
    which and why. The session's settings are looked at once, here.

    >>> delta_pyds.read(spark, "/data/events", where="day >= '2026-01-01'", columns=["id", "user.name"])
    >>> delta_pyds.read(spark, "/data/events", timestamp="2026-01-31 18:00:00", engine="native")

    Raises: OptionError for invalid arguments, and for arguments that contradict each other; any DeltaError of planning,
        of its own class; with ``native`` UnsupportedOperationError naming the reasons against it; WorkerPythonError. An
        action on the DataFrame raises Spark's exception: ``delta_pyds.error_of`` gives the DeltaError.
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
        verify_page_checksums=optional_flag_argument("verify_page_checksums", verify_page_checksums) is not False,
        storage_options=storage_options or {},
    )
    return load(spark, path, options, chosen_engine)


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
    Raises: OptionError for invalid arguments; the DeltaError of the write, of its own class (a ConflictError where
        another writer was first); WorkerPythonError. An error in the rows' own query is Spark's exception.
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
    place = location_of(frame.sparkSession, table or "")
    done, written = _save(frame, place.location, request, texts)
    if place.table is None or merge_schema or overwrite_schema or written.replaces_table:
        settle(frame.sparkSession, place, storage_options)
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
    """``options``: of the format, and those that a session alone takes; they win over the request."""
    spark = frame.sparkSession
    register(spark)
    root = absolute_table_path(path, remote=is_remote(spark))
    given = {key.lower(): text for key, text in options.items()}
    asked = boolean_option(given, _OPTIMIZE_WRITE)
    of_format = {key: text for key, text in options.items() if key.lower() not in _OF_SESSION}
    zone = time_zone_option(spark.conf.get(TIME_ZONE)) or "UTC"
    request = with_options(replace(request, table_root=root, time_zone=zone), of_format)
    if "replaceusing" in given:
        request = replace(request, replace_using=replace_using_columns(given["replaceusing"]))
    # on Spark Connect a path without a scheme may be the server's alone
    sure_of_files = not is_remote(spark) or has_scheme(path)
    # imported here: it loads what planning needs, and workers import this module too
    from delta_pyds.spark.optimized_write import optimized

    with active(spark), errors_as_they_were(), plain_calls():
        rows = optimized(frame, request, asked, sure_of_files=sure_of_files)
        return _save_rows(rows, root, request, sure_of_files=sure_of_files), request


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
        from delta_pyds.spark.session_write import lacked_a_session, write_computed

        # nothing was written: the session computes what a process without one does not know
        error = error_of(e)
        if error is None or not lacked_a_session(error):
            raise
        if not sure_of_files:
            require_same_files(spark, root)
    return write_computed(frame, request)


def _save_by_format(frame: DataFrame, root: str, request: WriteRequest) -> WriteResult:
    result_id = new_result_id()
    writer = frame.write.format(DeltaDataSource.name()).options(**write_texts(request)).option(RESULT_OPTION, result_id)
    writer.mode(request.mode).save(root)
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
