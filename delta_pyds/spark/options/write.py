"""Options of ``df.write`` and ``df.writeStream``, read once into a ``WriteRequest``; and back, for Spark's format.

Keys match without regard to case, because Spark passes them in lower case.
Unknown keys are logged and otherwise ignored, as the reference does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import cast

from delta_pyds.commands.write.request import CreateMode, PartitionOverwrite, SaveMode, WriteRequest
from delta_pyds.data.write.output_file import codec
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.protocol.properties import ISOLATION_LEVELS
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.options.names import WRITE_NAMES, refuse_near
from delta_pyds.spark.options.read import OF_CATALOG
from delta_pyds.spark.options.values import (
    OptionField,
    application_option,
    boolean_option,
    bytes_option,
    choice,
    choice_option,
    count_option,
    format_text,
    no_path,
    parsed,
    table_address,
    texts_of,
    texts_option,
    time_zone_of,
)
from delta_pyds.table.scan.column_selection import parse_column_list

logger = safe_logger(__name__)

_WRITE_OPTIONS = frozenset(map(str.lower, WRITE_NAMES))
# the reference offers them and this version does not: ignoring them would change the rows of the table
_REFUSED = {"replaceon": "replaceOn", "replaceusing": "replaceUsing", "targetalias": "targetAlias"}
_NULLS_STAY = "useNullIntolerantEqualityWithDPO"
_WITHOUT_EFFECT = {
    "optimizewrite": "a Python data source cannot ask Spark to put rows together: use delta_pyds.write, or "
    'df.hint("rebalance") before the write'
}
_CREATE_MODES: tuple[CreateMode, ...] = (
    "createIfNotExists", "errorIfExists", "ignore", "errorIfNotExists", "replace", "createOrReplace",
)  # fmt: skip
# Spark's own options, which it passes too
_OF_SPARK_STREAMS = frozenset(("checkpointlocation", "queryname"))
_APPENDS_OR_REPLACES = "a stream appends rows, or replaces the whole table in the output mode complete"
_AT_THE_LATEST = "a table is written at its latest version only"
# they mean nothing to a stream: if they were ignored, the user would expect rows that are not there
_NOT_FOR_STREAMS = {
    "txnVersion": "the version of each commit of a stream is its batch id",
    "replaceWhere": _APPENDS_OR_REPLACES,
    "replaceOn": _APPENDS_OR_REPLACES,
    "replaceUsing": _APPENDS_OR_REPLACES,
    "readVersion": "each batch appends to the version that it finds",
    "readsWhere": "a batch that loses a race is an error, and the stream can be started again",
    "readsTable": "a batch that loses a race is an error, and the stream can be started again",
    "versionAsOf": _AT_THE_LATEST,
    "timestampAsOf": _AT_THE_LATEST,
}
_warned: set[str] = set()
_INSERT = "INSERT INTO t WITH (path = '/path/of/table') ..."
_PARTITION_OVERWRITE_MODES: tuple[PartitionOverwrite, ...] = ("static", "dynamic")


def parse_write_options(
    options: Mapping[str, str], incoming: StructType, *, overwrite: bool, assumed_time_zone: str
) -> WriteRequest:
    """Check and type the options of a batch write.

    Raises: OptionError for an invalid value, and for options that contradict each other.
    """
    mode: SaveMode = "overwrite" if overwrite else "append"
    return with_options(WriteRequest("", incoming, mode, time_zone=assumed_time_zone), options)


def with_options(request: WriteRequest, options: Mapping[str, str]) -> WriteRequest:
    """The request with these options too, which win over its own. Its table stays, unless they name another one.

    Raises: as ``parse_write_options``.
    """
    given = {k.lower(): v for k, v in options.items()}
    if request.table_root:
        given["path"] = request.table_root
    address = table_address(given, '.save("/path/of/table")', _INSERT, create=True, storage=request.storage_options)
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
    if boolean_option(given, _NULLS_STAY):
        raise UnsupportedOperationError(
            f"the option {_NULLS_STAY} is not supported here: partitions of null would be replaced too. Use "
            "delta_pyds.write with replaceUsing, which keeps them. Nothing was written.",
            option=_NULLS_STAY,
        )
    for key in given:
        if key not in _WRITE_OPTIONS | OF_CATALOG and not key.startswith("delta."):
            refuse_near(key, WRITE_NAMES)
            _say_ignored(key, given[key], "a write")
    request = replace(
        request,
        table_root=address.table_root,
        storage_options=address.storage_options,
        properties=_properties(request.properties, options, given),
        application=_application(request, given),
        **parsed(_FIELDS, given),
    )
    request.check()
    return request


def write_texts(request: WriteRequest) -> dict[str, str]:
    """The options as Spark's format takes them, without the path and the mode.

    ``parse_write_options`` gives the same request, but for ``replace_using``, which no format takes.
    """
    # without a time zone, the zone of Spark's JVM is assumed
    texts = texts_of(_FIELDS, request, {f.name: f.default for f in fields(WriteRequest)} | {"time_zone": None})
    if request.application is not None:
        texts["txnAppId"], texts["txnVersion"] = map(str, request.application)
    if request.properties:
        texts["tableProperties"] = format_text(request.properties)
    if request.storage_options:
        texts["storageOptions"] = format_text(request.storage_options)
    return texts


def _application(request: WriteRequest, given: Mapping[str, str]) -> tuple[str, int] | None:
    app_id, version = request.application or (None, None)
    text = None if version is None else str(version)
    return application_option(given.get("txnappid", app_id), given.get("txnversion", text))


def _properties(before: Mapping[str, str], options: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Delta's properties are options by their own names; all others are in ``tableProperties``."""
    if "tableproperties" in given:
        before = {k: v for k, v in before.items() if k.lower().startswith("delta.")} | texts_option(
            given, "tableProperties"
        )
    return {**before, **{k: v for k, v in options.items() if k.lower().startswith("delta.")}}


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
    Raises: OptionError for an invalid value, for options that contradict each other, and for options that mean
        nothing in a stream.
    """
    given = {k.lower(): v for k, v in options.items()}
    _check_stream(given, complete=overwrite)
    ignored = [
        k for k in given if k not in _WRITE_OPTIONS | _OF_SPARK_STREAMS | OF_CATALOG and not k.startswith("delta.")
    ]
    for key in ignored:
        refuse_near(key, WRITE_NAMES)
        # Spark makes a writer for each batch, in the same process
        if key not in _warned:
            _warned.add(key)
            _say_ignored(key, given[key], "a stream's sink")
    application = given.get("txnappid")
    apart = {*ignored, *_OF_SPARK_STREAMS, "txnappid"}
    kept = {k: v for k, v in options.items() if k.lower() not in apart}
    request = parse_write_options(kept, incoming, overwrite=overwrite, assumed_time_zone=assumed_time_zone)
    return request, application


def _check_stream(given: Mapping[str, str], *, complete: bool) -> None:
    if not given.get("path", "").strip() and "table" not in given:
        raise no_path('.start("/path/of/table")', _INSERT)
    for name, why in _NOT_FOR_STREAMS.items():
        if name.lower() in given:
            raise OptionError(
                f"the option {name} is not for a stream: {why}. Leave it out, or use foreachBatch with df.write.",
                option=name,
            )
    if boolean_option(given, "dataChange") is False:
        raise OptionError(
            "the option dataChange=false is not for a stream: it means that the rows are in the table already, but the "
            "rows of a stream are new. Leave it out.",
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
            "has made. Leave it out, or use errorIfNotExists for a table that must exist before the stream.",
            option="createMode",
        )
    if boolean_option(given, "overwriteSchema") and not complete:
        raise OptionError(
            'overwriteSchema replaces the schema of the table and all rows, so it needs .outputMode("complete"). '
            "To add columns, use mergeSchema.",
            option="overwriteSchema",
        )
    if "txnappid" in given and not given["txnappid"].strip():
        raise OptionError(
            "the option txnAppId is empty: give a text that no other query uses, or leave the option out: the "
            "default is the query's own id.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option="txnAppId",
        )


def partition_overwrite_mode(text: str) -> PartitionOverwrite:
    """Raises: OptionError for another text."""
    return cast(PartitionOverwrite, choice("partitionOverwriteMode", text, _PARTITION_OVERWRITE_MODES))


def column_paths(text: str, option: str) -> tuple[tuple[str, ...], ...]:
    """Columns as paths; the empty text names none. Raises: OptionError for an invalid list."""
    return parse_column_list(text, option) if text.strip() else ()


def replace_using(text: str) -> tuple[str, ...]:
    """The columns of the option ``replaceUsing``. Raises: OptionError for an invalid list, and for a nested field."""
    paths = parse_column_list(text, "replaceUsing")
    nested = next((path for path in paths if len(path) > 1), None)
    if nested is not None:
        raise OptionError(
            f"replaceUsing takes columns, but {'.'.join(nested)!r:.200} is a nested field.", option="replaceUsing"
        )
    return tuple(name for (name,) in paths)


def _columns(given: Mapping[str, str], name: str) -> tuple[tuple[str, ...], ...]:
    return column_paths(given[name.lower()], name)


def _columns_text(paths: Iterable[Sequence[str]]) -> str:
    return ",".join(".".join(quote_name(part) for part in path) for path in paths)


def _compression(given: Mapping[str, str], name: str) -> str:
    # an unsupported one is refused here, not in every task
    codec(given[name.lower()])
    return given[name.lower()]


def _one_of(*choices: str) -> Callable[[Mapping[str, str], str], str | None]:
    return partial(choice_option, choices=choices)


_FIELDS = (
    OptionField("createMode", "create_mode", _one_of(*_CREATE_MODES)),
    OptionField("replaceWhere", "replace_where"),
    OptionField("partitionOverwriteMode", "partition_overwrite", _one_of(*_PARTITION_OVERWRITE_MODES)),
    OptionField("mergeSchema", "merge_schema", boolean_option),
    OptionField("overwriteSchema", "overwrite_schema", boolean_option),
    OptionField("partitionBy", "partition_by", _columns, _columns_text),
    OptionField("clusterBy", "cluster_by", _columns, _columns_text),
    OptionField("comment", "table_comment"),
    OptionField("userMetadata", "user_metadata"),
    OptionField("dataChange", "data_change", boolean_option),
    OptionField("maxRecordsPerFile", "max_records_per_file", partial(count_option, least=0)),
    OptionField("targetFileSize", "target_file_bytes", partial(bytes_option, default=0)),
    OptionField("compression", "compression", _compression),
    OptionField("timeZone", "time_zone", time_zone_of),
    OptionField("isolationLevel", "isolation_level", _one_of(*ISOLATION_LEVELS)),
    OptionField("maxCommitAttempts", "max_attempts", count_option),
    OptionField("maxCommitBackoffMs", "max_backoff_ms", count_option),
    OptionField("taskParallelism", "task_parallelism", count_option),
    OptionField("readVersion", "read_version", partial(count_option, least=0)),
    OptionField("readsTable", "reads_table", boolean_option),
    OptionField("readsWhere", "reads_where"),
    OptionField("rowLevelConcurrency", "row_level_concurrency", boolean_option),
)
