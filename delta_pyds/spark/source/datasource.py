"""The data source that Spark finds under the name ``deltapy``."""

from __future__ import annotations

import contextlib
import copyreg
import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.source.error_transport import leaves_worker
from delta_pyds.spark.versions import has_admission_control

if TYPE_CHECKING:
    from delta_pyds.spark.options.read import ReadOptions
    from delta_pyds.spark.planning.driver import Opened
    from delta_pyds.spark.source.stream_reader import DeltaStreamReader

# The process in which Spark runs pushFilters has loaded this module, and no other process has.
_PUSHDOWN_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"
# The process of a stream's source looks for modules that the user sent along (--py-files, addArtifact) in a directory
# that Spark 4.2 and 4.3 do not fill, "streaming_job". It runs on the same machine as the process that made the source.
_PLACE = __file__.removesuffix(__name__.replace(".", os.sep) + ".py").rstrip(os.sep)
_REVIVED = (
    "(lambda sys, load: (sys.path.append(place) if place not in sys.path else None, "
    "object.__new__(load(module).DeltaDataSource))[1])(__import__('sys'), __import__('importlib').import_module)"
)


_HIDES = "SPARK_HIDE_TRACEBACK"
_WORKERS = "pyspark.sql.worker."
_hidden_by_us = False


def _show_tracebacks(shown: bool) -> None:
    """Set whether Spark shows a traceback of this process, one of its workers, above an error.

    A missing path shows none: Spark passes no path of a table that plain CREATE TABLE ... USING deltapy LOCATION
    made. Nothing refuses that statement, so the first line of the error must say what to run.
    """
    global _hidden_by_us
    if shown and _hidden_by_us:
        # the process goes on with other tables
        os.environ.pop(_HIDES, None)
        _hidden_by_us = False
    elif not shown and _HIDES not in os.environ and any(name.startswith(_WORKERS) for name in sys.modules):
        os.environ[_HIDES] = "1"
        _hidden_by_us = True


class DeltaDataSource(DataSource):
    """``spark.read.format("deltapy")``.

    Invariant: it holds the options and the pinned version, never a snapshot: Spark sends the
    instance to every process that it uses.
    """

    _pinned_version: int | None = None
    _table_id: str | None = None
    _zone_used: bool = False
    _schema_is_ours: bool = False

    @classmethod
    def name(cls) -> str:
        return "deltapy"

    @leaves_worker
    def schema(self) -> StructType:
        """The columns that the options select, at the version that this DataFrame is pinned to."""
        from delta_pyds.spark.options.stream import parse_stream_options, tracks_schema
        from delta_pyds.spark.planning.driver import open_table, output_columns
        from delta_pyds.spark.planning.extra_columns import extra_fields
        from delta_pyds.spark.planning.types import to_spark
        from delta_pyds.spark.source.write_result import RESULT_OPTION, schema_with_result

        if RESULT_OPTION in self.options:
            return schema_with_result(self.options[RESULT_OPTION])
        options = self._read_options()
        opened = open_table(options)
        configuration = opened.snapshot.configuration
        if tracks_schema(self.options):
            from delta_pyds.spark.source.stream_driver import read_configuration, schema_tracking

            tracking = schema_tracking(opened, options, parse_stream_options(self.options))
            configuration = read_configuration(opened, tracking)
        columns = output_columns(opened, options, configuration)
        self._pin(opened)
        self._schema_is_ours = True
        return StructType([*to_spark(columns).fields, *extra_fields(options)])

    def _pin(self, opened: Opened) -> None:
        self._pinned_version = opened.snapshot.version
        self._table_id = opened.snapshot.metadata.id
        self._zone_used = opened.zone_used

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as usual, with the location of this package: the process that unpickles finds the package there."""
        if type(self) is not DeltaDataSource:  # a user's subclass, which may be pickled by value
            return copyreg.__newobj__, (type(self),), self.__getstate__()  # type: ignore[attr-defined]
        return eval, (_REVIVED, {"place": _PLACE, "module": __name__}), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        """Pin the version before the instance leaves the process that made it.

        Spark makes one instance for a load and pickles it once; with a user's
        schema it does not ask for ours, and each reader would find its own version.
        """
        if self._pinned_version is None:
            from delta_pyds.spark.planning.driver import open_table

            # this may be for a write, which must not fail here; a read raises the error later
            with contextlib.suppress(Exception):
                self._pin(open_table(self._read_options(quiet=True)))
        return dict(self.__dict__)

    @leaves_worker
    def reader(self, schema: Any) -> DataSourceReader:
        from delta_pyds.spark.options.stream import refuse_schema_tracking
        from delta_pyds.spark.planning.pinned import Pinned
        from delta_pyds.spark.source.reader import DeltaReader, PushingDeltaReader, pushes_filters

        options = self._read_options()
        refuse_schema_tracking(self.options)
        in_pushdown_worker = _PUSHDOWN_WORKER in sys.modules
        kind = PushingDeltaReader if in_pushdown_worker and pushes_filters(options) else DeltaReader
        pinned = Pinned(self._pinned_version, self._table_id, self._zone_used)
        if self._schema_is_ours or not isinstance(schema, StructType):
            reader = kind(options, pinned, None)
            if not isinstance(schema, StructType):
                from delta_pyds.spark.options.stream import refuse_stream_options
                from delta_pyds.spark.other_engines import engine_here

                refuse_stream_options(self.options, engine_here())
                # Sail 0.7 asks another instance for the columns, and passes them to this one in Arrow's types
                reader.require_columns(schema)
            return reader
        return kind(options, pinned, schema)

    def _read_options(self, *, quiet: bool = False) -> ReadOptions:
        # imported here: Spark sends the instance to every executor, which must not load planning
        from delta_pyds.spark.options.read import parse_read_options

        if not quiet:
            _show_tracebacks("path" in self.options or "table" in self.options)
        return parse_read_options(self.options, quiet=quiet)

    @leaves_worker
    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """Plan a write. Invalid writes are refused here if possible, before a task starts."""
        if not isinstance(schema, StructType):
            from delta_pyds.spark.other_engines import schema_of
            from delta_pyds.spark.source.foreign_writer import foreign_writer

            return foreign_writer(self.options, schema_of(schema), overwrite=overwrite)
        from delta_pyds.commands.write.write import plan_write
        from delta_pyds.spark.options.write import parse_write_options
        from delta_pyds.spark.planning.time_zone import assumed_time_zone
        from delta_pyds.spark.planning.types import from_spark
        from delta_pyds.spark.source.unknown_expressions import BY_WRITE, naming_what_computes
        from delta_pyds.spark.source.write_result import RESULT_OPTION
        from delta_pyds.spark.source.writer import DeltaWriter

        request = parse_write_options(
            self.options,
            from_spark(schema),
            overwrite=overwrite,
            assumed_time_zone=assumed_time_zone(),
        )
        with naming_what_computes(BY_WRITE):
            plan = plan_write(request)
        return DeltaWriter(plan, self.options.get(RESULT_OPTION))

    @leaves_worker
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from delta_pyds.spark.options.stream import parse_stream_options
        from delta_pyds.spark.planning.pinned import Pinned

        _require_spark(schema)
        return stream_reader_class()(
            self._read_options(),
            parse_stream_options(self.options),
            Pinned(self._pinned_version, self._table_id, self._zone_used),
            schema,
            schema_is_ours=self._schema_is_ours,
        )

    @leaves_worker
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Plan one batch of a stream, or commit one: Spark asks for both in the same way.

        Only the planner may look at the table: the commit must use the plan that the tasks had.
        """
        _require_spark(schema)
        from delta_pyds.spark.source.stream_writer import DeltaStreamWriter, commits_batches

        if commits_batches():
            return DeltaStreamWriter(dict(self.options))
        from delta_pyds.commands.write.stream import plan_batch
        from delta_pyds.spark.options.write import parse_stream_write_options
        from delta_pyds.spark.planning.time_zone import assumed_time_zone
        from delta_pyds.spark.planning.types import from_spark
        from delta_pyds.spark.source.unknown_expressions import BY_BATCH, naming_what_computes

        request, application = parse_stream_write_options(
            self.options,
            from_spark(schema),
            overwrite=overwrite,
            assumed_time_zone=assumed_time_zone(),
        )
        with naming_what_computes(BY_BATCH):
            plan = plan_batch(request, application)
        return DeltaStreamWriter(dict(self.options), plan)


def stream_reader_class() -> type[DeltaStreamReader]:
    if has_admission_control():
        from delta_pyds.spark.source.stream_admission import AdmittingStreamReader

        return AdmittingStreamReader
    from delta_pyds.spark.source.stream_position import PositionedStreamReader

    return PositionedStreamReader


def _require_spark(schema: Any) -> None:
    """Raises: UnsupportedOperationError on another engine: its rules for batches of a stream are unknown."""
    if not isinstance(schema, StructType):
        from delta_pyds.spark.other_engines import engine_here

        raise UnsupportedOperationError(
            f"a stream with the format deltapy needs Apache Spark, but this server is {engine_here()}. Nothing was "
            "written. Run this on a server of Apache Spark. Batch reads and writes work on both."
        )
