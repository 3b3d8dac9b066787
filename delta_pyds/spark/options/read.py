"""Options of ``spark.read`` and ``spark.readStream``, read once into typed values.

Keys match without regard to case, because Spark passes them in lower case.
Unknown keys are logged and otherwise ignored, as the reference does, unless they are near to a supported one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from delta_pyds.errors import OptionError
from delta_pyds.redaction import Concealing, safe_logger
from delta_pyds.spark.options.names import refuse_near
from delta_pyds.spark.options.values import (
    boolean_option,
    bytes_option,
    count_option,
    format_text,
    table_address,
    time_zone_option,
)
from delta_pyds.table.scan.packing import DEFAULT_MAX_PARTITION_BYTES, DEFAULT_OPEN_COST_BYTES

logger = safe_logger(__name__)

# lower-case key to its usual spelling
READ_OPTIONS = {
    name.lower(): name
    for name in (
        "table", "catalog",
        "path", "paths", "versionAsOf", "timestampAsOf", "where", "columns", "timeZone", "maxPartitionBytes",
        "openCostInBytes", "minPartitions", "rowPosition", "rowIds", "pushFilters", "storageOptions", "allowedRoots",
        "verifyPageChecksums", "checkFooters",
        "readChangeFeed", "readChangeData", "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp",
    )
}  # fmt: skip
# Spark's catalog stores them for a table made with CREATE TABLE ... USING deltapy, and passes them with each use
OF_CATALOG = frozenset(("owner", "location", "provider", "is_managed_location", "external", "comment", "collation"))
# Spark passes a query's own options too
_OF_SPARK = OF_CATALOG | {"checkpointlocation", "queryname"}
STREAM_OPTIONS = {
    name.lower(): name
    for name in (
        "maxFilesPerTrigger", "maxBytesPerTrigger", "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion",
        "skipChangeCommits", "excludeRegex", "failOnDataLoss", "limitFirstBatch", "schemaTrackingLocation",
        "schemaLocation", "streamingSourceTrackingId", "allowSourceColumnRename", "allowSourceColumnDrop",
        "allowSourceColumnTypeChange",
    )
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class ReadOptions(Concealing):
    """The options of a load. ``time_zone`` is None if the user gave none."""

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
    verify_page_checksums: bool = True
    check_footers: bool = False
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    change_feed: bool = False
    starting_version: int | Literal["latest"] | None = None
    starting_timestamp: str | None = None
    ending_version: int | None = None
    ending_timestamp: str | None = None


# option to field; ``read_texts`` makes text of these alone
_FIELDS = {
    "versionAsOf": "version",
    "timestampAsOf": "timestamp",
    "where": "where",
    "columns": "columns",
    "timeZone": "time_zone",
    "maxPartitionBytes": "max_partition_bytes",
    "openCostInBytes": "open_cost_bytes",
    "minPartitions": "min_partitions",
    "rowPosition": "row_position",
    "rowIds": "row_ids",
    "pushFilters": "push_filters",
    "verifyPageChecksums": "verify_page_checksums",
    "checkFooters": "check_footers",
    "readChangeFeed": "change_feed",
    "startingVersion": "starting_version",
    "startingTimestamp": "starting_timestamp",
    "endingVersion": "ending_version",
    "endingTimestamp": "ending_timestamp",
}


def parse_read_options(options: Mapping[str, str], *, quiet: bool = False) -> ReadOptions:
    """Check and type the options that a batch read and a stream share.

    ``quiet``: unknown keys are not logged, because they may be a writer's.

    Raises: OptionError for an invalid value of an option, for a name that is nearly an option's, and for
        options that contradict each other.
    """
    given = {k.lower(): v for k, v in options.items()}
    if "paths" in given:
        raise OptionError(
            "deltapy reads one table at a time, but load() was given several paths. Load each and union them.",
            option="path",
        )
    address = table_address(given, '.load("/path/of/table")', "SELECT ... FROM t WITH (path = '/path/of/table')")
    for key in () if quiet else given:
        if key not in READ_OPTIONS and key not in STREAM_OPTIONS and key not in _OF_SPARK:
            refuse_near(key, (*READ_OPTIONS.values(), *STREAM_OPTIONS.values()))
            logger.warning("deltapy does not know the option '%s' and ignores it.", key)
    version, timestamp = given.get("versionasof"), given.get("timestampasof")
    if version is not None and timestamp is not None:
        raise OptionError(
            "versionAsOf and timestampAsOf are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    change_feed = any(boolean_option(given, n) for n in ("readChangeFeed", "readChangeData"))
    if change_feed:
        _check_change_feed(given)
    return ReadOptions(
        path=address.table_root,
        version=_version(version, "versionAsOf"),
        timestamp=timestamp,
        where=given.get("where"),
        columns=given.get("columns"),
        time_zone=time_zone_option(given.get("timezone")),
        max_partition_bytes=bytes_option(given, "maxPartitionBytes", DEFAULT_MAX_PARTITION_BYTES),
        open_cost_bytes=bytes_option(given, "openCostInBytes", DEFAULT_OPEN_COST_BYTES, least=0),
        min_partitions=count_option(given, "minPartitions"),
        row_position=boolean_option(given, "rowPosition") or False,
        row_ids=boolean_option(given, "rowIds") or False,
        push_filters=boolean_option(given, "pushFilters"),
        verify_page_checksums=boolean_option(given, "verifyPageChecksums") is not False,
        check_footers=boolean_option(given, "checkFooters") or False,
        storage_options=address.storage_options,
        change_feed=change_feed,
        starting_version=_starting_version(given.get("startingversion")),
        starting_timestamp=given.get("startingtimestamp"),
        ending_version=_version(given.get("endingversion"), "endingVersion"),
        ending_timestamp=given.get("endingtimestamp"),
    )


def read_texts(options: ReadOptions) -> dict[str, str]:
    """The options as Spark's format takes them, without the path: ``parse_read_options`` gives the same value.

    Raises: OptionError for storage options that JSON cannot express.
    """
    defaults = {f.name: f.default for f in fields(ReadOptions)}
    found = {name: getattr(options, field) for name, field in _FIELDS.items()}
    texts = {name: format_text(value) for name, value in found.items() if value != defaults[_FIELDS[name]]}
    if options.storage_options:
        texts["storageOptions"] = format_text(options.storage_options)
    return texts


def _check_change_feed(given: Mapping[str, str]) -> None:
    for key in ("versionasof", "timestampasof"):
        if key in given:
            raise OptionError(
                f"{READ_OPTIONS[key]} reads a table at one version, but readChangeFeed reads the changes of a range "
                "of versions. Leave one of them out. startingVersion and endingVersion, or the times, set the range.",
                code="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
                option=READ_OPTIONS[key],
            )
    for key in ("rowids", "rowposition"):
        if boolean_option(given, READ_OPTIONS[key]):
            raise OptionError(
                f"{READ_OPTIONS[key]} cannot be combined with readChangeFeed: rows of change data files have "
                "neither ids nor a position in the table. Leave one of them out.",
                option=READ_OPTIONS[key],
            )


def _version(text: str | None, name: str) -> int | None:
    return None if text is None else version_option(text, name)


def version_option(text: str, name: str = "versionAsOf") -> int:
    """Raises: OptionError (DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE) for an invalid version number."""
    if not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII):
        raise OptionError(
            f"the option {name} is '{text}', but must be a version number, 0 or more.",
            code="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            option=name,
            value=text,
        )
    return int(text)


def _starting_version(text: str | None) -> int | Literal["latest"] | None:
    return "latest" if text is not None and text.strip().lower() == "latest" else _version(text, "startingVersion")
