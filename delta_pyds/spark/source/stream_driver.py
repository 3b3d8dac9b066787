"""Opening a stream on the driver: from options to its source, and to the state of its tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql.types import StructType as SparkStructType

from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.catalog.opening import task_options
from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.options.stream import StreamReadOptions
from delta_pyds.spark.planning.driver import Opened, check_column_options, check_same_table, located, open_table
from delta_pyds.spark.planning.pinned import Pinned
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.source.task_scan import TaskScan, task_scan
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.change_feed.change_scan import select_changes
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.scan.row_selection import Relation, select_rows
from delta_pyds.table.stream.commit import StreamRules
from delta_pyds.table.stream.schema_log import Allowed, SchemaTracking, parse_allowed
from delta_pyds.table.stream.source import StreamOptions, StreamSource
from delta_pyds.tasks.scan_state import ScanState


@dataclass(frozen=True)
class OpenedStream:
    """A stream's source, and the state that its tasks need besides their files."""

    source: StreamSource
    task: TaskScan
    storage: Storage

    def task_now(self) -> TaskScan:
        """The state for the tasks of a batch that is planned now, with the catalog's current credentials.

        Earlier ones may expire before the query ends.
        """
        if not is_catalog_managed(self.storage):
            return self.task
        state = self.task.state
        return replace(
            self.task, state=replace(state, storage_options=task_options(self.storage, state.storage_options))
        )


def open_stream(
    options: ReadOptions, stream: StreamReadOptions, pinned: Pinned, user_schema: StructType | None
) -> OpenedStream:
    """Open the table as it was when the stream was loaded: its rows have that schema.

    Raises: DeltaError for a table that cannot be opened; UserError if another table is at the path now.
    """
    check_column_options(options, user_schema)
    if options.net_changes:
        raise OptionError(
            "netChanges compares the two ends of a range of versions, but a stream has no end. Leave it out, or read "
            "the changes with spark.read.",
            option="netChanges",
        )
    _, version, time = located(options)
    if version is not None or time is not None:
        raise OptionError(
            f"the path {options.path} names a version, but a stream reads new versions as they come. Leave "
            "the version out. startingVersion and startingTimestamp say where a stream begins.",
            option="path",
        )
    opened = open_table(options, pinned.version)
    if pinned.table_id is not None:
        check_same_table(opened.snapshot, pinned.table_id)
    tracking = schema_tracking(opened, options, stream)
    read = read_configuration(opened, tracking)
    select = partial(select_changes, read) if options.change_feed else partial(select_rows, Relation.of(read))
    selection = select(
        where=options.where,
        columns=options.columns,
        schema=user_schema,
        time_zone=opened.time_zone,
        storage_options=task_options(opened.snapshot.storage, options.storage_options),
        verify_page_checksums=options.verify_page_checksums,
    )
    source = StreamSource(
        opened.snapshot.storage,
        opened.snapshot.table_root,
        StreamOptions(
            starting_version=options.starting_version,
            starting_timestamp_ms=opened.starting_ms,
            max_files=stream.max_files,
            max_bytes=stream.max_bytes,
            rules=StreamRules(
                ignore_deletes=stream.ignore_deletes,
                ignore_changes=stream.ignore_changes,
                skip_change_commits=stream.skip_change_commits,
            ),
            exclude=stream.exclude,
            fail_on_data_loss=stream.fail_on_data_loss,
            read_change_feed=options.change_feed,
            compute_changes=options.compute_changes,
        ),
        read,
        selection,
        tracking=tracking,
    )
    task = task_scan(selection, opened, zone_used=pinned.zone_used or opened.zone_used)
    return OpenedStream(source, task, opened.snapshot.storage)


def schema_tracking(opened: Opened, options: ReadOptions, stream: StreamReadOptions) -> SchemaTracking | None:
    """The log of the schemas that the stream has had; None if the user gave no location for it."""
    if stream.schema_tracking_location is None:
        return None
    location = absolute_table_path(stream.schema_tracking_location)
    if location == opened.snapshot.table_root:
        raise UserError(
            f"schemaTrackingLocation is the table {location} itself: give another directory to each stream, best "
            "below its checkpointLocation.",
            code="DELTA_SCHEMA_LOCATION_INVALID",
        )
    return SchemaTracking(
        resolve_storage(location, options.storage_options),
        location,
        opened.snapshot.metadata.id,
        stream.tracking_id,
        Allowed(
            rename=parse_allowed(stream.allow_rename, "allowSourceColumnRename"),
            drop=parse_allowed(stream.allow_drop, "allowSourceColumnDrop"),
            type_change=parse_allowed(stream.allow_type_change, "allowSourceColumnTypeChange"),
        ),
    )


def read_configuration(opened: Opened, tracking: SchemaTracking | None) -> TableConfiguration:
    """The protocol and metadata that the stream's rows are read with."""
    tracked = None if tracking is None else tracking.latest()
    if tracked is None:
        return opened.snapshot.configuration
    return opened.snapshot.configuration.redefined(tracked.version, tracked.protocol, tracked.metadata)


def check_same_columns(frame: SparkStructType, state: ScanState) -> None:
    """Raises: UserError if the stream would now return other columns than the DataFrame has."""
    before, now = ([(f.name, f.dataType) for f in columns] for columns in (frame, to_spark(state.output)))
    if before != now:
        raise UserError(
            f"the schema of the table {state.table_root} has changed since the stream was loaded: it had the columns "
            f"({', '.join(n for n, _ in before)}), and the schema log now has ({', '.join(n for n, _ in now)}). "
            "Create the DataFrame again with spark.readStream and restart the query.",
            code="DELTA_STREAMING_METADATA_EVOLUTION",
            table=state.table_root,
        )
