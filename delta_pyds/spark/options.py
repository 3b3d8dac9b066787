"""Options of ``spark.read``, read once into typed values.

Keys match without regard to case, as Spark hands them over in lower case.
Unknown keys are logged and otherwise ignored, as the reference does.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.option_values import boolean_option, bytes_option, count_option, storage_options, time_zone_option
from delta_pyds.table.packing import DEFAULT_MAX_PARTITION_BYTES, DEFAULT_OPEN_COST_BYTES

logger = logging.getLogger(__name__)

_READ_OPTIONS = {
    name.lower(): name
    for name in (
        "path", "paths", "versionAsOf", "timestampAsOf", "where", "columns", "timeZone", "maxPartitionBytes",
        "openCostInBytes", "minPartitions", "rowPosition", "rowIds", "pushFilters", "storageOptions",
    )
}  # fmt: skip

_CHANGE_FEED = ("readchangefeed", "readchangedata")


@dataclass(frozen=True)
class ReadOptions:
    """What a load asks for. ``time_zone`` is None where the user did not say."""

    path: str
    version: int | None = None
    timestamp: str | None = None
    where: str | None = None
    columns: str | None = None
    time_zone: str | None = None
    max_partition_bytes: int = DEFAULT_MAX_PARTITION_BYTES
    open_cost_bytes: int = DEFAULT_OPEN_COST_BYTES
    min_partitions: int | None = None
    row_position: bool = False
    row_ids: bool = False
    push_filters: bool | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Check and type the options of a batch read.

    Raises: OptionError for a value that is none of the option's, and for
        options that contradict each other; UnsupportedOperationError for the change data feed.
    """
    given = {k.lower(): v for k, v in options.items()}
    for key in _CHANGE_FEED:
        if boolean_option(given, key, key):
            raise UnsupportedOperationError(
                "the change data feed (option readChangeFeed) is not supported by this version of deltapy. "
                "Read the table's rows without it, or use a newer release.",
                option="readChangeFeed",
            )
    if "paths" in given:
        raise OptionError(
            "deltapy reads one table at a time, but load() was given several paths. Load each and union them.",
            option="path",
        )
    path = given.get("path", "").strip()
    if not path:
        raise OptionError(
            'the path of the table is missing: give it as .load("/path/of/table") or .option("path", ...).',
            option="path",
        )
    for key in given:
        if key not in _READ_OPTIONS and key not in _CHANGE_FEED:
            logger.warning("deltapy does not know the option '%s' and ignores it.", key)
    version, timestamp = given.get("versionasof"), given.get("timestampasof")
    if version is not None and timestamp is not None:
        raise OptionError(
            "versionAsOf and timestampAsOf are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    return ReadOptions(
        path=path,
        version=_version(version),
        timestamp=timestamp,
        where=given.get("where"),
        columns=given.get("columns"),
        time_zone=time_zone_option(given.get("timezone")),
        max_partition_bytes=bytes_option(given, "maxPartitionBytes", DEFAULT_MAX_PARTITION_BYTES),
        open_cost_bytes=bytes_option(given, "openCostInBytes", DEFAULT_OPEN_COST_BYTES, least=0),
        min_partitions=count_option(given, "minPartitions"),
        row_position=boolean_option(given, "rowposition", "rowPosition") or False,
        row_ids=boolean_option(given, "rowids", "rowIds") or False,
        push_filters=boolean_option(given, "pushfilters", "pushFilters"),
        storage_options=storage_options(given.get("storageoptions")),
    )


def _version(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII):
        raise OptionError(
            f"the option versionAsOf is '{text}', but must be a version number, 0 or more.",
            code="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            option="versionAsOf",
            value=text,
        )
    return int(text)
