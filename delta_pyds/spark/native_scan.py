"""A planned scan as a DataFrame over Spark's own Parquet reader.

Invariant: the DataFrame has the rows of the scan, and nothing in it belongs to
one query: Spark prunes columns, filters, splits and joins anew for each.

Protocol: "Column Mapping", "Deletion Vectors", "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.protocol.schema import STRING, DataType, StructField
from delta_pyds.spark.native_columns import from_file, nested, output, physical_type, spark_type
from delta_pyds.spark.native_expressions import quoted, to_column
from delta_pyds.spark.native_parts import Part, parts_of
from delta_pyds.spark.native_side_table import (
    ROW,
    VECTOR,
    SideTable,
    bit_is_clear,
    constant_values,
    side_table,
    vectors,
)
from delta_pyds.spark.types import to_spark
from delta_pyds.storage.resolve import normalize_table_root, scheme_of
from delta_pyds.table.native_eligibility import VOID, unique_fields
from delta_pyds.table.native_files import NativeFiles, spark_path
from delta_pyds.table.scan import Scan

# What would otherwise be the session's to decide. Files that do not name their calendar are taken at their word.
_PINNED = {
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # names are names: no star or brace in them means anything
    "__globPaths__": "false",
}
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_DEFAULT_LISTING = 32


class NativeScanError(Exception):
    """Spark cannot read the scan as it is planned; the message is a reason, as part of a sentence."""


def native_frame(spark: SparkSession, scan: Scan, files: NativeFiles, *, remote: bool) -> DataFrame:
    """The rows of the scan. The caller made sure that nothing speaks against it.

    ``remote``: the session is one of Spark Connect.
    Raises: NativeScanError; what Spark raises when it cannot list the files; DeletionVectorError.
    """
    if not files.files:
        return spark.createDataFrame([], to_spark(scan.state.output))
    frames = [_Part(spark, scan, files, part, remote).frame() for part in parts_of(files, scan.state)]
    return reduce(lambda one, other: one.unionAll(other), frames)


class _Part:
    """Files that are read in one way: see ``native_parts``."""

    def __init__(self, spark: SparkSession, scan: Scan, files: NativeFiles, part: Part, remote: bool) -> None:
        self._spark = spark
        self._scan = scan
        self._state = scan.state
        self._files = files
        self._part = part
        self._remote = remote
        self._fields = read_fields(scan)
        self._hive = files.hive_columns or ()

    def frame(self) -> DataFrame:
        frame = self._parquet()
        values: Mapping[str, Column] = {}
        if self._part.joined:
            side = side_table(
                self._scan, self._files, self._part.chosen, self._names(frame), with_values=not self._hive
            )
            values = side.values
            frame = self._joined(frame, side)
        else:
            first = self._files.files[self._part.chosen[0]]
            if not self._hive:
                values = constant_values(self._scan, first)
            if first.deletion_vector is not None:
                words = vectors(self._scan, self._files, self._part.chosen)
                table = self._spark.createDataFrame(pa.table({VECTOR: words}))
                rows = frame.select("*", F.col("_metadata.row_index").alias(ROW))
                frame = rows.filter(bit_is_clear(table.scalar(), F.col(ROW)))
        columns = {f.name: self._column(f, values) for f in self._fields}
        if self._state.predicate is not None:
            condition = to_column(self._state.predicate, lambda path: nested(columns[path[0]], path[1:]))
            if condition is None:
                raise NativeScanError("where has a part that has no counterpart in Spark's columns")
            frame = frame.filter(condition)
        return frame.select(*self._outputs(columns))

    def _outputs(self, columns: dict[str, Column]) -> list[Column]:
        """The columns of the scan under their own names, with the metadata that the other engine shows."""
        read = {f.name: f.data_type for f in self._fields}
        found = []
        for field, shown in zip(self._state.output, to_spark(self._state.output).fields, strict=True):
            column = output(columns[field.name], read[field.name], field.data_type)
            metadata = {"metadata": shown.metadata} if shown.metadata else {}
            found.append(column.alias(field.name, **metadata))
        return found

    def _column(self, field: StructField, values: Mapping[str, Column]) -> Column:
        name = field.physical_name
        if name in self._state.partition_columns:
            return values.get(name, F.col(quoted(name)))
        return F.lit(None) if field.data_type == VOID else from_file(F.col(quoted(name)), field.data_type)

    # --- files

    def _parquet(self) -> DataFrame:
        read = [f for f in self._fields if f.physical_name not in self._state.partition_columns]
        types = {f.physical_name: f.data_type for f in self._fields}
        schema = [_field(f.physical_name, physical_type(f.data_type)) for f in read if f.data_type != VOID]
        # values that nobody looks at may be of a type that directories do not tell
        schema += [_field(n, types.get(n, STRING)) for n in self._hive]
        reader = self._spark.read.schema(spark_types.StructType(schema)).options(**_PINNED)
        if self._hive:
            reader = reader.options(basePath=spark_path(self._scan.snapshot.table_root), timeZone=self._state.time_zone)
        else:
            # a directory called a=b above the table or in it means nothing
            reader = reader.option("recursiveFileLookup", "true")
        paths = [spark_path(self._files.files[i].path) for i in self._part.chosen]
        if self._remote or len(paths) <= _DEFAULT_LISTING or scheme_of(self._state.table_root) != "file":
            return reader.parquet(*paths)
        # Spark would start a job with one task for each file to find its size; on a disk asking costs nothing
        before = self._spark.conf.get(_LISTING)
        self._spark.conf.set(_LISTING, str(len(paths)))
        try:
            return reader.parquet(*paths)
        finally:
            self._spark.conf.set(_LISTING, before or str(_DEFAULT_LISTING))

    def _names(self, frame: DataFrame) -> list[str]:
        """What Spark calls each of the chosen files, in their order.

        Spark's own spelling of a path is asked for, not guessed: which characters are escaped is Java's to know.
        """
        found: dict[str, str] = {}
        for name in frame.inputFiles():
            # the same name has three slashes here and one in the rows
            found[normalize_table_root(unquote(name))] = name.replace("file:///", "file:/", 1)
        wanted = [normalize_table_root(self._files.files[i].path) for i in self._part.chosen]
        missing = [path for path in wanted if path not in found]
        if missing or len(found) != len(wanted):
            raise NativeScanError(f"Spark does not list the file '{(missing or wanted)[0]}' as the log names it")
        return [found[path] for path in wanted]

    def _joined(self, frame: DataFrame, side: SideTable) -> DataFrame:
        metadata = [F.col(f"_metadata.{source}").alias(name) for source, name in side.metadata.items()]
        table = F.broadcast(self._spark.createDataFrame(side.table))
        return frame.select("*", *metadata).join(table, side.condition, "left").filter(side.is_live)


def read_fields(scan: Scan) -> tuple[StructField, ...]:
    """The columns to read, whole where the predicate and the output need different parts of one."""
    output, inputs = ({f.name: f for f in s} for s in (scan.state.output, scan.state.inputs))
    fields = []
    for f in unique_fields(scan.state):
        both = f.name in output and f.name in inputs
        if both and output[f.name].data_type != inputs[f.name].data_type:
            whole = scan.snapshot.schema.find(f.name)
            assert whole is not None
            fields.append(whole)
        else:
            fields.append(f)
    return tuple(fields)


def _field(name: str, data_type: DataType) -> spark_types.StructField:
    return spark_types.StructField(name, spark_type(data_type))
