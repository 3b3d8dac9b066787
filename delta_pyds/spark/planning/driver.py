"""Planning on the driver's side: options to a snapshot, a scan and its partitions.

Imported by the data source in Spark's planner processes only; executors never load it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.catalog.opening import table_storage
from delta_pyds.errors import OptionError, TableNotFoundError, UserError
from delta_pyds.expr.nodes import Expr
from delta_pyds.log.listing import is_settled
from delta_pyds.log.segment import LogSegment, load_segment
from delta_pyds.protocol.schema import StructType
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.planning.time_zone import assumed_time_zone
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.change_feed.change_scan import ChangeRange, ChangeScan, change_range, plan_changes
from delta_pyds.table.change_feed.changes import change_relation
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.history import version_at
from delta_pyds.table.scan.column_selection import match_user_schema
from delta_pyds.table.scan.packing import Packing, pack
from delta_pyds.table.scan.row_selection import Relation, select_rows
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.time_travel import time_to_ms

_AT_VERSION = re.compile(r"(.+)@[vV](\d+)")
_AT_TIME = re.compile(r"(.+)@(\d{17})")

# Planner processes are reused, and every query opens its table in two of them.
_snapshots: BoundedCache[tuple[LogSegment, str], Snapshot] = BoundedCache(16)


@dataclass(frozen=True)
class Opened:
    """A snapshot and the time zone in force.

    ``zone_assumed``: the user named none, so that of Spark's JVM was taken;
    ``zone_used``: choosing the version depended on it. ``starting_ms``,
    ``ending_ms``: the timestamps of a change feed or stream, in ms since the epoch.
    """

    snapshot: Snapshot
    time_zone: str
    zone_assumed: bool
    zone_used: bool = False
    starting_ms: int | None = None
    ending_ms: int | None = None


def open_table(options: ReadOptions, pinned_version: int | None = None) -> Opened:
    """Open the table that the options name, at the version that they name or at the pinned one.

    ``path@v12`` and ``path@yyyyMMddHHmmssSSS`` count only where the literal path is no table.
    Raises: TableNotFoundError, OptionError, TimeTravelError and what opening a snapshot raises.
    """
    zone = options.time_zone or assumed_time_zone()
    assumed = options.time_zone is None
    rules = TimeZone(zone)
    if pinned_version is not None:
        return _with_times(Opened(_open(located(options)[0], options, pinned_version), zone, assumed), options, rules)
    root, version, at = located(options)
    if (version is not None or at is not None) and (options.version is not None or options.timestamp is not None):
        raise OptionError(
            f"the path {options.path} names a version, and so does an option: give one of them.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            path=options.path,
        )
    if (version is not None or at is not None) and options.change_feed:
        raise OptionError(
            f"the path {options.path} names a version, and readChangeFeed reads what changed in a range of versions: "
            "leave that out of the path. endingVersion and endingTimestamp say where the range ends.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
            option="path",
        )
    version = options.version if version is None else version
    text = options.timestamp if options.timestamp is not None else _spell_out(at) if at else None
    if text is None:
        return _with_times(Opened(_open(root, options, version), zone, assumed), options, rules)
    timestamp_ms = time_to_ms(text, rules)
    latest = _open(root, options, None)
    version = version_at(
        latest.storage,
        root,
        timestamp_ms,
        properties_of_latest=latest.configuration.properties,
        latest_version=latest.version,
    )
    return Opened(_open(root, options, version), zone, assumed, zone_used=rules.used)


def _with_times(opened: Opened, options: ReadOptions, rules: TimeZone) -> Opened:
    start, end = options.starting_timestamp, options.ending_timestamp
    if start is None and end is None:
        return opened
    starting_ms = None if start is None else time_to_ms(start, rules, up=True)
    ending_ms = None if end is None else time_to_ms(end, rules)
    return replace(opened, starting_ms=starting_ms, ending_ms=ending_ms, zone_used=rules.used)


def located(options: ReadOptions) -> tuple[str, int | None, str | None]:
    """The table's root, and what the path itself says of version or time."""
    literal = normalize_table_root(options.path)
    match = _AT_VERSION.fullmatch(literal) or _AT_TIME.fullmatch(literal)
    if match is None:
        return literal, None, None
    try:
        load_segment(table_storage(literal, options.storage_options), literal)
        return literal, None, None
    except TableNotFoundError:
        pass
    if _AT_VERSION.fullmatch(literal):
        return match[1], int(match[2]), None
    return match[1], None, match[2]


def _spell_out(digits: str) -> str:
    d = digits
    return f"{d[0:4]}-{d[4:6]}-{d[6:8]} {d[8:10]}:{d[10:12]}:{d[12:14]}.{d[14:17]}"


def _open(root: str, options: ReadOptions, version: int | None) -> Snapshot:
    """A snapshot, from the cache when the log's files are the same ones: by name, size, time and generation."""
    storage = table_storage(root, options.storage_options)
    segment = load_segment(storage, root, version)
    options_key = repr(sorted(options.storage_options.items()))
    snapshot = _snapshots.get((segment, options_key))
    files = [*segment.commits, *(segment.checkpoint.files if segment.checkpoint else ())]
    if snapshot is not None and all(map(is_settled, files)) and snapshot.is_current():
        return snapshot
    snapshot = open_snapshot(storage, root, version, segment)
    # under the segment that it really stands on, which is another one where a checkpoint was damaged
    _snapshots.put((snapshot.segment, options_key), snapshot)
    return snapshot


def plan(
    opened: Opened, options: ReadOptions, user_schema: StructType | None = None, pushed: tuple[Expr, ...] = ()
) -> Scan | ChangeScan:
    """Plan the scan that the options describe, of rows or of changes.

    ``user_schema``: of the user, or of an entry of Spark's catalog: nobody tells which.
    """
    check_column_options(options, user_schema)
    if user_schema is not None and not options.change_feed:
        _check_schema(opened.snapshot, user_schema)
    if options.change_feed:
        return plan_changes(
            opened.snapshot,
            _change_range(opened, options),
            where=options.where,
            columns=options.columns,
            schema=user_schema,
            time_zone=opened.time_zone,
            storage_options=options.storage_options,
            verify_page_checksums=options.verify_page_checksums,
        )
    return plan_scan(
        opened.snapshot,
        where=options.where,
        columns=options.columns,
        schema=user_schema,
        pushed=pushed,
        time_zone=opened.time_zone,
        row_position=options.row_position,
        row_ids=options.row_ids,
        storage_options=options.storage_options,
        verify_page_checksums=options.verify_page_checksums,
    )


def output_columns(opened: Opened, options: ReadOptions, configuration: TableConfiguration) -> StructType:
    """The columns that a load returns. Whether it is a batch or a stream Spark does not say at that time.

    ``configuration``: what the rows are read with, where it does not depend on a range of versions.
    """
    if not options.change_feed:
        relation = Relation.of(configuration)
    elif options.ending_version is None and options.ending_timestamp is None:
        relation = change_relation(configuration)
    else:
        return plan(opened, options).state.output
    return select_rows(relation, where=options.where, columns=options.columns, time_zone=opened.time_zone).state.output


def _change_range(opened: Opened, options: ReadOptions) -> ChangeRange:
    if options.starting_version == "latest":
        raise OptionError(
            "startingVersion=latest is for a stream: spark.read takes the changes of a range of versions, so give "
            "the number of the first.",
            option="startingVersion",
        )
    return change_range(
        opened.snapshot,
        starting_version=options.starting_version,
        starting_timestamp_ms=opened.starting_ms,
        ending_version=options.ending_version,
        ending_timestamp_ms=opened.ending_ms,
    )


def _check_schema(snapshot: Snapshot, user_schema: StructType) -> None:
    """Raises: ColumnNotFoundError, UserError (DELTA_READ_SCHEMA_CONFLICT)."""
    root = snapshot.table_root
    try:
        match_user_schema(snapshot.schema, user_schema, root)
    except UserError as e:
        raise type(e)(
            f"{e.message} If it is the schema of a table in Spark's catalog, the two differ: ALTER TABLE by plain "
            f"spark.sql changes the catalog alone. Run delta_pyds.sql(spark, 'ALTER TABLE delta.`{root}` ...') for the "
            "table, and undo in the catalog what was done there alone by the opposite ALTER TABLE. Names that "
            "delta_pyds.create_table gives follow their tables; called again with if_not_exists=True it mends one.",
            code=e.code,
            **e.parameters,
        ) from None


def check_column_options(options: ReadOptions, user_schema: StructType | None) -> None:
    """Raises: OptionError where two things choose the columns."""
    if user_schema is not None and options.columns is not None:
        raise OptionError(
            "a schema and the option columns are both given, and both choose columns: give one of them.",
            option="columns",
        )


def partitions(files: Iterable[pa.RecordBatch], options: ReadOptions) -> list[pa.RecordBatch]:
    """Files, as rows of ``columnar.scan_files``, packed."""
    packing = Packing(
        options.max_partition_bytes, options.open_cost_bytes, options.min_partitions or os.cpu_count() or 1
    )
    return pack(files, packing)


def check_same_table(snapshot: Snapshot, table_id: str) -> None:
    """A DataFrame belongs to the table it was planned on, not to another one at the same path."""
    if snapshot.metadata.id != table_id:
        raise UserError(
            f"the table at {snapshot.table_root} was replaced by another one since the DataFrame was made. "
            "Load it again.",
            code="DELTA_TABLE_ID_MISMATCH",
            table=snapshot.table_root,
        )
