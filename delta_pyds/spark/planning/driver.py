"""Planning on the driver: from options to a snapshot, a scan and its partitions.

The data source imports it in Spark's planner processes only; executors never load it.
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
from delta_pyds.tasks.scan_state import ScanState

_AT_VERSION = re.compile(r"(.+)@[vV](\d+)")
_AT_TIME = re.compile(r"(.+)@(\d{17})")

# Planner processes are reused, and every query opens its table in two of them.
_snapshots: BoundedCache[tuple[LogSegment, str], Snapshot] = BoundedCache(16)


@dataclass(frozen=True)
class Opened:
    """A snapshot and its time zone.

    ``zone_assumed``: whether the zone is that of Spark's JVM, because the user named none. ``zone_used``: whether the
    version depends on it. ``starting_ms``, ``ending_ms``: the timestamps of a change feed or stream, in milliseconds
    since the epoch.
    """

    snapshot: Snapshot
    time_zone: str
    zone_assumed: bool
    zone_used: bool = False
    starting_ms: int | None = None
    ending_ms: int | None = None


def open_table(options: ReadOptions, pinned_version: int | None = None) -> Opened:
    """Open the table of the options, at their version or at the pinned one.

    ``path@v12`` and ``path@yyyyMMddHHmmssSSS`` name a version only if the literal path is not a table.
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
            f"the path {options.path} names a version, and so does an option. Leave one of them out.",
            code="DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
            path=options.path,
        )
    if (version is not None or at is not None) and options.change_feed:
        raise OptionError(
            f"the path {options.path} names a version, but readChangeFeed reads the changes of a range of versions. "
            "Leave the version out of the path. endingVersion and endingTimestamp say where the range ends.",
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
    """The table's root, and the version or time that the path names."""
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
    """A snapshot, from the cache if the log's files are the same by name, size, time and generation."""
    storage = table_storage(root, options.storage_options)
    segment = load_segment(storage, root, version)
    options_key = repr(sorted(options.storage_options.items()))
    snapshot = _snapshots.get((segment, options_key))
    files = [*segment.commits, *(segment.checkpoint.files if segment.checkpoint else ())]
    if snapshot is not None and all(map(is_settled, files)) and snapshot.is_current():
        return snapshot
    snapshot = open_snapshot(storage, root, version, segment)
    # the key is the segment that was really read, which differs if a checkpoint was damaged
    _snapshots.put((snapshot.segment, options_key), snapshot)
    return snapshot


def plan(
    opened: Opened, options: ReadOptions, user_schema: StructType | None = None, pushed: tuple[Expr, ...] = ()
) -> Scan | ChangeScan:
    """Plan the scan that the options describe, of rows or of changes.

    ``user_schema``: the user's, or a Spark catalog entry's: Spark does not say which.
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
            compute=options.compute_changes,
            net=options.net_changes,
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
    """The columns of a load. Spark does not say yet whether it is a batch or a stream.

    ``configuration``: the table's, if it does not depend on a range of versions.
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
            "startingVersion=latest is for streams: spark.read reads the changes of a range of versions, so give "
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
    """Check the schema of the user. Raises: ColumnNotFoundError, UserError (DELTA_READ_SCHEMA_CONFLICT)."""
    root = snapshot.table_root
    try:
        match_user_schema(snapshot.schema, user_schema, root)
    except UserError as e:
        raise type(e)(
            f"{e.message} If the schema is that of a name in Spark's catalog, the two differ: "
            f"ALTER TABLE by plain spark.sql changes the catalog alone. "
            f"Run delta_pyds.sql(spark, 'ALTER TABLE delta.`{root}` ...') "
            "for the table, and undo the change in the catalog by the opposite ALTER TABLE. Names that "
            "delta_pyds.create_table gives track their tables; call it again with if_not_exists=True to repair one.",
            code=e.code,
            **e.parameters,
        ) from None


def check_column_options(options: ReadOptions, user_schema: StructType | None) -> None:
    """Raises: OptionError if both a schema and an option choose the columns."""
    if user_schema is not None and options.columns is not None:
        raise OptionError(
            "a schema and the option columns are both given, and both choose columns: give one of them.",
            option="columns",
        )


def partitions(state: ScanState, files: Iterable[pa.RecordBatch], options: ReadOptions) -> list[pa.RecordBatch]:
    """The partitions: files, as rows of ``columnar.scan_files``, packed."""
    packing = Packing(
        options.max_partition_bytes, options.open_cost_bytes, options.min_partitions or os.cpu_count() or 1
    )
    if state.compared_columns is not None:
        # imported here: most reads are of rows
        from delta_pyds.data.read.related_files import in_related_groups

        files = in_related_groups(state, list(files))
    return pack(files, packing)


def check_same_table(snapshot: Snapshot, table_id: str) -> None:
    """Check that the table is the one that the DataFrame was planned on, not another one at the same path."""
    if snapshot.metadata.id != table_id:
        raise UserError(
            f"the table at {snapshot.table_root} was replaced by another one since the DataFrame was made. "
            "Load it again.",
            code="DELTA_TABLE_ID_MISMATCH",
            table=snapshot.table_root,
        )
