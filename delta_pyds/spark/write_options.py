"""Options of ``df.write``, read once into a ``WriteRequest``.

Keys match without regard to case, as Spark hands them over in lower case.
Unknown keys are logged and otherwise ignored, as the reference does.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal, cast

from delta_pyds.commands.write_request import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_MAX_BACKOFF_MS,
    CreateMode,
    WriteRequest,
)
from delta_pyds.data.output_file import codec
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.option_values import (
    boolean_option,
    bytes_option,
    choice_option,
    count_option,
    storage_options,
    time_zone_option,
)
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.column_selection import parse_column_list

logger = logging.getLogger(__name__)

_WRITE_OPTIONS = frozenset(
    name.lower()
    for name in (
        "path", "createMode", "replaceWhere", "partitionOverwriteMode", "mergeSchema", "overwriteSchema", "partitionBy",
        "clusterBy", "comment", "userMetadata", "txnAppId", "txnVersion", "dataChange", "maxRecordsPerFile",
        "targetFileSize", "compression", "timeZone", "isolationLevel", "maxCommitAttempts", "maxCommitBackoffMs",
        "storageOptions",
    )
)  # fmt: skip
# what the reference offers and this version does not: silently ignoring it would change which rows are there
_REFUSED = {"replaceon": "replaceOn", "replaceusing": "replaceUsing"}
_CREATE_MODES: tuple[CreateMode, ...] = ("createIfNotExists", "errorIfExists", "ignore", "errorIfNotExists")
_MAX_LONG = (1 << 63) - 1
_ISOLATION_LEVELS = ("Serializable", "WriteSerializable")


def parse_write_options(
    options: Mapping[str, str], incoming: StructType, *, overwrite: bool, assumed_time_zone: str
) -> WriteRequest:
    """Check and type the options of a batch write.

    Raises: OptionError for a value that is none of the option's, and for options that contradict each other.
    """
    given = {k.lower(): v for k, v in options.items()}
    path = given.get("path", "").strip()
    if not path:
        raise OptionError(
            'the path of the table is missing: give it as .save("/path/of/table") or .option("path", ...).',
            option="path",
        )
    for key in ("versionasof", "timestampasof"):
        if key in given:
            raise OptionError(
                f"the option {key} is for reading: a table is written at its latest version only.", option=key
            )
    for key, name in _REFUSED.items():
        if key in given:
            raise UnsupportedOperationError(
                f"the option {name} is not supported by this version of deltapy: use replaceWhere. "
                "Nothing was written.",
                option=name,
            )
    properties = {k: v for k, v in options.items() if k.lower().startswith("delta.")}
    for key in given:
        if key not in _WRITE_OPTIONS and not key.startswith("delta."):
            logger.warning("deltapy does not know the option '%s' of a write and ignores it.", key)
    compression = given.get("compression", "snappy")
    # an unknown one is refused now, not by every task
    codec(compression)
    partition_overwrite = choice_option(given, "partitionOverwriteMode", ("static", "dynamic"))
    request = WriteRequest(
        table_root=normalize_table_root(path),
        incoming=incoming,
        mode="overwrite" if overwrite else "append",
        storage_options=storage_options(given.get("storageoptions")),
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
    )
    request.check()
    return request


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
