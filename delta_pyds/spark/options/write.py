"""Options of ``df.write`` and ``df.writeStream``, read once into a ``WriteRequest``.

Keys match without regard to case, as Spark hands them over in lower case.
Unknown keys are logged and otherwise ignored, as the reference does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from delta_pyds.commands.write.request import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_BACKOFF_MS,
    CreateMode,
    WriteRequest,
)
from delta_pyds.data.write.output_file import codec
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.options.names import WRITE_NAMES, refuse_near
from delta_pyds.spark.options.read import OF_CATALOG
from delta_pyds.spark.options.values import (
    boolean_option,
    bytes_option,
    choice_option,
    count_option,
    no_path,
    table_address,
    texts_option,
    time_zone_option,
)
from delta_pyds.table.scan.column_selection import parse_column_list

logger = safe_logger(__name__)

_WRITE_OPTIONS = frozenset(map(str.lower, WRITE_NAMES))
# what the reference offers and this version does not: silently ignoring it would change which rows are there
_REFUSED = {"replaceon": "replaceOn", "replaceusing": "replaceUsing"}
_WITHOUT_EFFECT = {
    "optimizewrite": "a Python data source cannot ask Spark to put rows together: use delta_pyds.write, or "
    'df.hint("rebalance") before the write'
}
_CREATE_MODES: tuple[CreateMode, ...] = (
    "createIfNotExists", "errorIfExists", "ignore", "errorIfNotExists", "replace", "createOrReplace",
)  # fmt: skip
# Spark's own, which it hands over too
_OF_SPARK_STREAMS = frozenset(("checkpointlocation", "queryname"))
_APPENDS_OR_REPLACES = "a stream appends rows, or replaces the whole table in the output mode complete"
_AT_THE_LATEST = "a table is written at its latest version only"
# without a meaning for a stream: taken in silence, the user would believe in rows that are not there
_NOT_FOR_STREAMS = {
    "txnVersion": "the version of each commit of a stream is its batch id",
    "replaceWhere": _APPENDS_OR_REPLACES,
    "replaceOn": _APPENDS_OR_REPLACES,
    "replaceUsing": _APPENDS_OR_REPLACES,
    "readVersion": "each batch appends to the version that it finds",
    "versionAsOf": _AT_THE_LATEST,
    "timestampAsOf": _AT_THE_LATEST,
}
_warned: set[str] = set()
_INSERT = "INSERT INTO t WITH (path = '/path/of/table') ..."
_MAX_LONG = (1 << 63) - 1
_ISOLATION_LEVELS = ("Serializable", "WriteSerializable")


def parse_write_options(
    options: Mapping[str, str], incoming: StructType, *, overwrite: bool, assumed_time_zone: str
) -> WriteRequest:
    """Check and type the options of a batch write.

    Raises: OptionError for a value that is none of the option's, and for options that contradict each other.
    """
    given = {k.lower(): v for k, v in options.items()}
    table_root, storage = parse_table_options(options)
    for key in ("versionasof", "timestampasof"):
        if key in given:
            raise OptionError(
                f"the option {key} is for reading: a table is written at its latest version only.", option=key
            )
    for key, name in _REFUSED.items():
        if key in given:
            raise UnsupportedOperationError(
                f"the option {name} is not supported here: use replaceWhere"
                f"{', or delta_pyds.write' if name == 'replaceUsing' else ''}. Nothing was written.",
                option=name,
            )
    properties = {
        **texts_option(given, "tableProperties"),
        **{k: v for k, v in options.items() if k.lower().startswith("delta.")},
    }
    for key in given:
        if key not in _WRITE_OPTIONS | OF_CATALOG and not key.startswith("delta."):
            refuse_near(key, WRITE_NAMES)
            _say_ignored(key, given[key], "a write")
    compression = given.get("compression", "snappy")
    # an unknown one is refused now, not by every task
    codec(compression)
    partition_overwrite = choice_option(given, "partitionOverwriteMode", ("static", "dynamic"))
    request = WriteRequest(
        table_root=table_root,
        incoming=incoming,
        mode="overwrite" if overwrite else "append",
        storage_options=storage,
        create_mode=cast(CreateMode, choice_option(given, "createMode", _CREATE_MODES) or "createIfNotExists"),
        replace_where=given.get("replacewhere"),
        partition_overwrite=cast('Literal["static", "dynamic"] | None', partition_overwrite),
        merge_schema=boolean_option(given, "mergeschema", "mergeSchema") or False,
        overwrite_schema=boolean_option(given, "overwriteschema", "overwriteSchema") or False,
        partition_by=_columns(given, "partitionBy"),
        cluster_by=_columns(given, "clusterBy"),
        properties=properties,
        table_comment=given.get("comment"),
        user_metadata=given.get("usermetadata"),
        application=_application(given),
        data_change=boolean_option(given, "datachange", "dataChange") is not False,
        max_records_per_file=count_option(given, "maxRecordsPerFile", least=0) or 0,
        target_file_bytes=bytes_option(given, "targetFileSize", 0) or None,
        compression=compression,
        time_zone=time_zone_option(given.get("timezone")) or assumed_time_zone,
        isolation_level=choice_option(given, "isolationLevel", _ISOLATION_LEVELS),
        max_attempts=count_option(given, "maxCommitAttempts") or DEFAULT_MAX_ATTEMPTS,
        max_backoff_ms=count_option(given, "maxCommitBackoffMs") or DEFAULT_MAX_BACKOFF_MS,
        task_parallelism=count_option(given, "taskParallelism"),
        read_version=count_option(given, "readVersion", least=0),
    )
    request.check()
    return request


def _say_ignored(key: str, value: str, where: str) -> None:
    if key not in _WITHOUT_EFFECT:
        logger.warning("deltapy does not know the option '%s' of %s and ignores it.", key, where)
    elif value.strip().lower() != "false":
        logger.warning("The option %s is ignored here: %s.", key, _WITHOUT_EFFECT[key])


def parse_stream_write_options(
    options: Mapping[str, str], incoming: StructType, *, overwrite: bool, assumed_time_zone: str
) -> tuple[WriteRequest, str | None]:
    """Check and type the options of a stream's sink: what to write, and the application id if the user gave one.

    ``overwrite``: the output mode is complete.
    Raises: OptionError for a value that is none of the option's, for options that contradict each other, and
        for options that mean nothing in a stream.
    """
    given = {k.lower(): v for k, v in options.items()}
    _check_stream(given, complete=overwrite)
    ignored = [
        k for k in given if k not in _WRITE_OPTIONS | _OF_SPARK_STREAMS | OF_CATALOG and not k.startswith("delta.")
    ]
    for key in ignored:
        refuse_near(key, WRITE_NAMES)
        # each batch asks again, in the same process
        if key not in _warned:
            _warned.add(key)
            _say_ignored(key, given[key], "a stream's sink")
    application = given.get("txnappid")
    apart = {*ignored, *_OF_SPARK_STREAMS, "txnappid"}
    kept = {k: v for k, v in options.items() if k.lower() not in apart}
    request = parse_write_options(kept, incoming, overwrite=overwrite, assumed_time_zone=assumed_time_zone)
    return request, application


def parse_table_options(options: Mapping[str, str], *, create: bool = True) -> tuple[str, Mapping[str, Any]]:
    """The root of the table that a write goes to, and the options of its storage. ``create``: also where there is none
    of that name yet, for which its catalog reserves a place then.

    Raises: OptionError where there is no path; TableNotFoundError for a name without a table.
    """
    given = {k.lower(): v for k, v in options.items()}
    address = table_address(given, '.save("/path/of/table")', _INSERT, create=create)
    return address.table_root, address.storage_options


def _check_stream(given: Mapping[str, str], *, complete: bool) -> None:
    if not given.get("path", "").strip() and "table" not in given:
        raise no_path('.start("/path/of/table")', _INSERT)
    for name, why in _NOT_FOR_STREAMS.items():
        if name.lower() in given:
            raise OptionError(
                f"the option {name} is not for a stream: {why}. Leave it out, or use foreachBatch with df.write.",
                option=name,
            )
    if boolean_option(given, "datachange", "dataChange") is False:
        raise OptionError(
            "the option dataChange=false is not for a stream: it says that rows of the table are only moved, and those "
            "of a stream are new to it. Leave it out.",
            option="dataChange",
        )
    if choice_option(given, "partitionOverwriteMode", ("static", "dynamic")) == "dynamic":
        raise OptionError(
            "the option partitionOverwriteMode=dynamic is not for a stream: it appends rows, or replaces the whole "
            "table in the output mode complete. To overwrite the partitions of each batch, use foreachBatch with "
            "df.write.",
            option="partitionOverwriteMode",
        )
    mode = choice_option(given, "createMode", _CREATE_MODES)
    if mode in ("errorIfExists", "ignore", "replace", "createOrReplace"):
        raise OptionError(
            f"the option createMode={mode} is not for a stream: its second batch finds the table that the first one "
            "has made. Leave it out, or say errorIfNotExists for a table that must be there before the stream.",
            option="createMode",
        )
    if boolean_option(given, "overwriteschema", "overwriteSchema") and not complete:
        raise OptionError(
            'overwriteSchema replaces the schema of the table and all rows, so it needs .outputMode("complete"). '
            "To add columns, use mergeSchema.",
            option="overwriteSchema",
        )
    if "txnappid" in given and not given["txnappid"].strip():
        raise OptionError(
            "the option txnAppId is empty: give a text that is this query's alone, or leave the option out for the "
            "query's own id.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txnAppId",
        )


def _application(given: Mapping[str, str]) -> tuple[str, int] | None:
    app_id, version = given.get("txnappid"), given.get("txnversion")
    if app_id is None and version is None:
        return None
    if not app_id or version is None or not version.strip().isdecimal() or int(version) > _MAX_LONG:
        raise OptionError(
            "an idempotent write needs both txnAppId (a text) and txnVersion (a number from 0 to 2^63 - 1), but got "
            f"txnAppId={app_id!r} and txnVersion={version!r}.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txnAppId",
        )
    return app_id, int(version)


def _columns(given: Mapping[str, str], name: str) -> tuple[tuple[str, ...], ...] | None:
    """Columns as paths; the empty text is no column, which is not the same as not saying."""
    text = given.get(name.lower())
    if text is None:
        return None
    return parse_column_list(text, name) if text.strip() else ()
