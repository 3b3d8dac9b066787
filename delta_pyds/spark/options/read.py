"""Options of ``spark.read`` and ``spark.readStream``, read once into typed values.

Keys match without regard to case, because Spark passes them in lower case.
Unknown keys are logged and otherwise ignored, as the reference does, unless they are near to a supported one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal

from delta_pyds.errors import OptionError
from delta_pyds.redaction import Concealing, safe_logger
from delta_pyds.spark.options.names import refuse_near
from delta_pyds.spark.options.values import (
    OptionField,
    boolean_option,
    bytes_option,
    count_option,
    format_text,
    parsed,
    table_address,
    texts_of,
    time_zone_of,
)
from delta_pyds.table.change_feed.arguments import compute_changes_of
from delta_pyds.table.change_feed.computed import ComputeChanges
from delta_pyds.table.scan.packing import DEFAULT_MAX_PARTITION_BYTES, DEFAULT_OPEN_COST_BYTES

logger = safe_logger(__name__)

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
# those of ``spark.read.changes`` alone; see ``options.changes``
SPARK_CHANGES_OPTIONS = {
    name.lower(): name
    for name in ("deduplicationMode", "computeUpdates", "startingBoundInclusive", "endingBoundInclusive")
}

# beside a version that this package chose, and not the user; for ``row_sources``
PINNED_OPTION = "deltapyPinnedVersion"


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
    compute_changes: ComputeChanges = "auto"
    net_changes: bool = False


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
        if key not in READ_OPTIONS and key not in STREAM_OPTIONS and key not in _OF_SPARK | {PINNED_OPTION.lower()}:
            refuse_near(key, (*READ_OPTIONS.values(), *STREAM_OPTIONS.values()))
            logger.warning("deltapy does not know the option '%s' and ignores it.", key)
    if "versionasof" in given and "timestampasof" in given:
        raise OptionError(
            "versionAsOf and timestampAsOf are both given: a table is read at a version or at a time, not both.",
            code="DELTA_ONEOF_IN_TIMETRAVEL",
        )
    change_feed = any(boolean_option(given, n) for n in ("readChangeFeed", "readChangeData"))
    if change_feed:
        _check_change_feed(given)
    for key in ("computechanges", "netchanges"):
        if key in given and not change_feed:
            raise OptionError(
                f"{READ_OPTIONS[key]} is given, but readChangeFeed is not true, so rows of the table would be read and "
                "not its changes. Add readChangeFeed=true, or leave it out.",
                option=READ_OPTIONS[key],
            )
    found = {**parsed(_FIELDS, given), "change_feed": change_feed}
    return ReadOptions(address.table_root, storage_options=address.storage_options, **found)


def read_texts(options: ReadOptions) -> dict[str, str]:
    """The options as Spark's format takes them, without the path: ``parse_read_options`` gives the same value.

    Raises: OptionError for storage options that JSON cannot express.
    """
    texts = texts_of(_FIELDS, options, {f.name: f.default for f in fields(ReadOptions)})
    if options.storage_options:
        texts["storageOptions"] = format_text(options.storage_options)
    return texts


def _check_change_feed(given: Mapping[str, str]) -> None:
    for key, name in SPARK_CHANGES_OPTIONS.items():
        if key in given:
            raise OptionError(
                f"{name} is an option of Spark's own reads of changes, not of readChangeFeed. Leave it out, or read "
                "the changes by spark.read.changes, after delta_pyds.install.",
                code="DELTA_CHANGELOG_UNSUPPORTED_OPTION",
                option=name,
            )
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


def _version(given: Mapping[str, str], name: str) -> int:
    return version_option(given[name.lower()], name)


def _starting_version(given: Mapping[str, str], name: str) -> int | Literal["latest"]:
    return "latest" if given[name.lower()].strip().lower() == "latest" else _version(given, name)


def _compute_changes(given: Mapping[str, str], name: str) -> ComputeChanges:
    return compute_changes_of(given[name.lower()], name)


_FIELDS = (
    OptionField("versionAsOf", "version", _version),
    OptionField("timestampAsOf", "timestamp"),
    OptionField("where", "where"),
    OptionField("columns", "columns"),
    OptionField("timeZone", "time_zone", time_zone_of),
    OptionField("maxPartitionBytes", "max_partition_bytes", partial(bytes_option, default=DEFAULT_MAX_PARTITION_BYTES)),
    OptionField("openCostInBytes", "open_cost_bytes", partial(bytes_option, default=DEFAULT_OPEN_COST_BYTES, least=0)),
    OptionField("minPartitions", "min_partitions", count_option),
    OptionField("rowPosition", "row_position", boolean_option),
    OptionField("rowIds", "row_ids", boolean_option),
    OptionField("pushFilters", "push_filters", boolean_option),
    OptionField("verifyPageChecksums", "verify_page_checksums", boolean_option),
    OptionField("checkFooters", "check_footers", boolean_option),
    OptionField("readChangeFeed", "change_feed", boolean_option),
    OptionField("startingVersion", "starting_version", _starting_version),
    OptionField("startingTimestamp", "starting_timestamp"),
    OptionField("endingVersion", "ending_version", _version),
    OptionField("endingTimestamp", "ending_timestamp"),
    OptionField("computeChanges", "compute_changes", _compute_changes),
    OptionField("netChanges", "net_changes", boolean_option),
)
_OTHERS = ("table", "catalog", "path", "paths", "storageOptions", "allowedRoots", "readChangeData")
# lower-case key to its usual spelling
READ_OPTIONS = {name.lower(): name for name in (*_OTHERS, *(option.name for option in _FIELDS))}
