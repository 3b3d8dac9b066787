"""Options of ``spark.read``, read once into typed values.

Keys match without regard to case, as Spark hands them over in lower case.
Unknown keys are logged and otherwise ignored, as the reference does.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.errors import ExpressionError, OptionError, UnsupportedOperationError
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.table.packing import DEFAULT_MAX_PARTITION_BYTES, DEFAULT_OPEN_COST_BYTES

logger = logging.getLogger(__name__)

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

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
        if _boolean(given, key, key):
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
        time_zone=_time_zone(given.get("timezone")),
        max_partition_bytes=_bytes(given, "maxPartitionBytes", DEFAULT_MAX_PARTITION_BYTES),
        open_cost_bytes=_bytes(given, "openCostInBytes", DEFAULT_OPEN_COST_BYTES, least=0),
        min_partitions=_count(given, "minPartitions"),
        row_position=_boolean(given, "rowposition", "rowPosition") or False,
        row_ids=_boolean(given, "rowids", "rowIds") or False,
        push_filters=_boolean(given, "pushfilters", "pushFilters"),
        storage_options=_storage_options(given.get("storageoptions")),
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


def _boolean(given: Mapping[str, str], key: str, name: str) -> bool | None:
    text = given.get(key)
    if text is None:
        return None
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise OptionError(f"the option {name} is '{text}', but must be true or false.", option=name, value=text)
    return value == "true"


def _bytes(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    match = _SIZE.fullmatch(text.strip())
    value = int(match[1]) << (10 * _UNITS[match[2].lower()]) if match else -1
    if value < least:
        raise OptionError(
            f"the option {name} is '{text}', but must be a number of bytes such as 134217728 or 128m.",
            option=name,
            value=text,
        )
    return value


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise OptionError(f"the option {name} is '{text}', but must be 1 or more.", option=name, value=text)
    return int(text)


def _time_zone(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        return TimeZone(text.strip()).name
    except ExpressionError as e:
        raise OptionError(f"the option timeZone: {e.message}", option="timeZone", value=text) from None


def _storage_options(text: str | None) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OptionError(
            "the option storageOptions must be a JSON object of arguments for the file system, such as "
            '{"endpoint_url": "http://127.0.0.1:9000"}.',
            option="storageOptions",
        )
    return value
