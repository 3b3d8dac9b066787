"""A planned scan as a DataFrame over Spark's own Parquet reader.

Invariant: the DataFrame has the rows of the scan, and depends on no query: Spark prunes columns, filters, splits and
joins for each query again.

Protocol: "Column Mapping", "Deletion Vectors", "Partition Value Serialization".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.expr.types import is_floating
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import LONG, STRING, VOID, DataType, StructField
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.log_rows import from_log
from delta_pyds.spark.native.columns import from_file, is_plain, nested, output, physical_type, spark_type
from delta_pyds.spark.native.comet import takes_word_joins
from delta_pyds.spark.native.eligibility import METADATA_COLUMN, SessionDescription, unique_fields
from delta_pyds.spark.native.expressions import MAX_PARTS, to_column
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.spark.native.parts import Part, parts_of
from delta_pyds.spark.native.relations import RECURSIVE, indexed_rows, takes_index
from delta_pyds.spark.native.side_table import IS_KNOWN, NUMBER, SideTable, constant_values, side_table
from delta_pyds.spark.native.vectors import (
    FILE_SIZE,
    ROW,
    VECTOR,
    Slots,
    as_lists,
    in_one_array,
    is_live,
    is_live_by_size,
    slots_of,
    vector_table,
    words_of,
)
from delta_pyds.spark.native.word_join import fits, require, without_deleted, word_table
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.changed_rows import FILE_COLUMN, POSITION_COLUMN

# names the table, for ``row_sources``; Spark ignores it
TABLE_OPTION = "deltapyTable"
# the user chose the version, so commits change none of the rows
FIXED_OPTION = "deltapyFixedVersion"
# columns of the table have other names in files
MAPPED_OPTION = "deltapyMapped"
# Options that replace settings of the session. Files without a calendar are read without a shift of dates.
PINNED_OPTIONS = {
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    # stars and braces in names have no meaning
    "__globPaths__": "false",
}
_METADATA = spark_types.StructType(
    [
        spark_types.StructField("file_path", spark_types.StringType(), False),
        spark_types.StructField("file_name", spark_types.StringType(), False),
        spark_types.StructField("file_size", spark_types.LongType(), False),
        spark_types.StructField("file_block_start", spark_types.LongType(), False),
        spark_types.StructField("file_block_length", spark_types.LongType(), False),
        spark_types.StructField("file_modification_time", spark_types.TimestampType(), False),
        spark_types.StructField("row_index", spark_types.LongType()),
    ]
)
_VERIFY = "parquet.page.verify-checksum.enabled"
_UNKNOWN = "a row of a data file that deltapy does not know"
# A constant array comes with every task of a query. A longer one is broadcast once to each executor: 4 MB.
MAX_WORDS_IN_TASKS = 1 << 19


class NativeScanError(Exception):
    """Spark cannot read the planned scan. The message is a reason, as part of a sentence."""


def native_frame(
    spark: SparkSession,
    scan: Scan,
    files: NativeFiles,
    *,
    session: SessionDescription,
    located: bool = False,
    with_metadata: bool = False,
    fixed: bool = False,
) -> DataFrame:
    """The rows of the scan. The caller has found no reason against Spark's reader.

    ``located``: add ``FILE_COLUMN``, Spark's URI of the file,
    and ``POSITION_COLUMN``, the position in it. ``with_metadata``: add Spark's hidden column ``_metadata``.
    ``fixed``: the user chose the version.

    Raises: NativeScanError; NoIndexError; what Spark raises when it cannot take the files; DeletionVectorError.
    """
    if not files.files:
        extra = [_field(FILE_COLUMN, STRING), _field(POSITION_COLUMN, LONG)] if located else []
        if with_metadata:
            extra.append(spark_types.StructField(METADATA_COLUMN, _METADATA))
        none = empty_frame(spark, spark_types.StructType([*to_spark(scan.state.output).fields, *extra]))
        return none if fixed else from_log(none, scan.snapshot.table_root)
    indexed = takes_index(spark, session, scan.state.table_root, len(files.files))
    source = _Source(spark, scan, files, session, indexed, located, with_metadata, fixed)
    rows = reduce(lambda one, other: one.unionAll(other), map(source.rows, parts_of(files, scan.state)))
    fields = {f.name: f for f in source.fields}

    @cache
    def column(name: str) -> Column:
        return _column(fields[name], scan)

    if scan.state.predicate is not None:
        condition = to_column(scan.state.predicate, lambda path: nested(column(path[0]), path[1:]))
        if condition is None:
            raise NativeScanError(
                f"where has more than {MAX_PARTS:,} parts, or one that has no counterpart in Spark's columns"
            )
        rows = rows.filter(condition)
    shown = to_spark(scan.state.output).fields
    if _as_they_are(scan, source, shown):
        in_files = (f for f in scan.state.output if f.name not in scan.state.partition_columns)
        converted = {f.name: column(f.name) for f in in_files if is_floating(f.data_type)}
        # Spark would insert into a view of a plain file scan, without a commit in the log
        return rows.withColumns(converted) if converted else rows.filter("true")
    hidden = (METADATA_COLUMN,) if with_metadata else ()
    return rows.select(*_outputs(scan, fields, shown, column), *source.location, *hidden)


def _as_they_are(scan: Scan, source: _Source, shown: Sequence[spark_types.StructField]) -> bool:
    """Whether the rows of the files already have the columns of the scan, but for floating point numbers.

    A selection of all columns changes nothing, and each column costs calls to Spark's driver: two thirds of a load for
    a table with 16 columns.
    """
    wanted = scan.state.output
    return (
        not source.with_metadata
        and source.names == [f.name for f in wanted]
        and not any(f.metadata for f in shown)
        and all(have.data_type == want.data_type for have, want in zip(source.fields, wanted, strict=True))
        and all(
            f.name in scan.state.partition_columns or is_plain(f.data_type) or is_floating(f.data_type) for f in wanted
        )
        and all(f.physical_name == f.name for f in wanted)
    )


def _column(field: StructField, scan: Scan) -> Column:
    """A column of the table, for the rows of all parts."""
    if field.data_type == VOID:
        return F.lit(None)
    column = F.col(quote_name(field.physical_name))
    return column if field.physical_name in scan.state.partition_columns else from_file(column, field.data_type)


def _outputs(
    scan: Scan,
    fields: Mapping[str, StructField],
    shown: Sequence[spark_types.StructField],
    column: Callable[[str], Column],
) -> list[Column]:
    """The columns of the scan by their names, with the same metadata as the Python source."""
    found = []
    for field, other in zip(scan.state.output, shown, strict=True):
        value = output(column(field.name), fields[field.name].data_type, field.data_type)
        metadata = {"metadata": other.metadata} if other.metadata else {}
        found.append(value.alias(field.name, **metadata))
    return found


class _Source:
    """The rows of each part, with the same columns by physical names: those of the files, then the partition columns.

    Calls to Spark's driver are slow, so everything that parts share is made once.
    """

    def __init__(
        self,
        spark: SparkSession,
        scan: Scan,
        files: NativeFiles,
        session: SessionDescription,
        indexed: bool,
        located: bool,
        with_metadata: bool,
        fixed: bool,
    ) -> None:
        self._fixed = fixed
        self.with_metadata = with_metadata
        self.location = (FILE_COLUMN, POSITION_COLUMN) if located else ()
        self._spark = spark
        self._scan = scan
        self._files = files
        self._indexed = indexed
        # an accelerator takes a join that removes deleted rows, and not the filter
        self._joins_words = takes_word_joins(session.settings)
        self._optimizes_whole = session.optimizes_whole
        self.fields = read_fields(scan)
        self._hive = files.hive_columns or ()
        names = [f.physical_name for f in self.fields if f.data_type != VOID]
        partitions = scan.state.partition_columns
        self._names_in_files = [n for n in names if n not in partitions]
        self._partition_names = [n for n in names if n in partitions]
        self.names = [*self._names_in_files, *self._partition_names]

    def rows(self, part: Part) -> DataFrame:
        """The rows of a part that are not deleted."""
        first = self._files.files[part.chosen[0]]
        deleted = first.deletion_vector is not None
        positions = bool(self.location) or deleted
        metadata = self.with_metadata or bool(self.location) or part.joined
        # Spark has two ways to read positions of rows. It refuses the shorter one in a query that reads ``_metadata``
        # whole: of a view, and without the rules of the optimizer that leave out its other fields.
        shorter = not metadata or (self._optimizes_whole and not self.with_metadata)
        frame = self._parquet(part, with_positions=positions and shorter, with_metadata=metadata)
        row_index = f"{METADATA_COLUMN}.row_index"
        if self.with_metadata:
            frame = frame.withColumns({METADATA_COLUMN: self._metadata, ROW: F.col(row_index)})
        elif positions and not shorter:
            frame = frame.withColumn(ROW, F.col(row_index))
        slots = self._slots(part) if part.joined else None
        joined = part.joined and slots is None
        words_join = deleted and self._joins_words and fits(self._files, part.chosen)
        values: Mapping[str, Column] = {}
        if joined:
            side = side_table(
                self._scan,
                self._files,
                part.chosen,
                with_values=not self._hive,
                with_deletions=deleted and not words_join,
                sizes_of_log=self._indexed,
            )
            values = side.values
            frame = self._joined(frame, side)
        elif not self._hive:
            values = constant_values(self._scan, first)
        if words_join:
            frame = self._without_deleted(frame, part, slots)
        elif deleted and not joined:
            frame = self._live(frame, part, slots)
        if self._reader_has_the_columns and not (self.location or self.with_metadata or joined):
            return frame.drop(ROW, VECTOR, METADATA_COLUMN) if deleted else frame
        columns = [values[n].alias(n) if n in values else self._column(n) for n in self.names]
        if self.location:
            file = self._column(FILE_COLUMN) if joined else F.col("_metadata.file_path").alias(FILE_COLUMN)
            columns += [file, self._column(ROW).alias(POSITION_COLUMN)]
        if self.with_metadata:
            columns.append(self._column(METADATA_COLUMN))
        return frame.select(*columns)

    def _slots(self, part: Part) -> Slots | None:
        """The slots that find the files of a joined part by their sizes; None if they need a join."""
        first = self._files.files[part.chosen[0]]
        valued = self._scan.state.partition_columns and not self._hive
        if first.deletion_vector is None or valued or not self._indexed:
            return None
        return slots_of(self._sizes(part))

    def _sizes(self, part: Part) -> list[int]:
        sizes: list[int] = self._files.rows_at(part.chosen).column("size").to_pylist()
        return sizes

    def _live(self, frame: DataFrame, part: Part, slots: Slots | None) -> DataFrame:
        """The rows of the files that are not deleted, with the column ``VECTOR``."""
        words = words_of(self._scan, self._files, part.chosen)
        if slots is not None:
            words = [in_one_array(slots, self._sizes(part), words)]
        table = self._spark.createDataFrame(vector_table(as_lists(words)))
        if len(words[0]) <= MAX_WORDS_IN_TASKS:
            frame = frame.withColumn(VECTOR, table.scalar())
        else:
            frame = frame.crossJoin(F.broadcast(table))
        return frame.filter(is_live(VECTOR) if slots is None else is_live_by_size(slots))

    def _without_deleted(self, frame: DataFrame, part: Part, slots: Slots | None) -> DataFrame:
        """As ``_live``, by a join that an accelerator takes."""
        file, numbers = (NUMBER, list(range(len(part.chosen)))) if part.joined else (None, [0])
        if slots is not None:
            file, numbers = FILE_SIZE, self._sizes(part)
            known = f"{FILE_SIZE} IN ({', '.join(map(str, numbers))})"
            frame = frame.filter(require(known, _UNKNOWN))
        words = words_of(self._scan, self._files, part.chosen)
        return without_deleted(frame, self._spark.createDataFrame(word_table(words, numbers)), file)

    @cached_property
    def _reader_has_the_columns(self) -> bool:
        """Whether Spark's reader returns exactly ``names``: a selection of columns costs calls to Spark's driver."""
        above = "=" in self._scan.snapshot.table_root.rpartition("/")[2]
        return self._schema(with_positions=False).names == self.names and not (self._hive and above)

    @cached_property
    def _metadata(self) -> Column:
        """The column ``_metadata``, as in the reference: with row positions if there may be deletion vectors."""
        column = F.col(METADATA_COLUMN)
        if "deletionVectors" in (self._scan.snapshot.protocol.reader_features or ()):
            return column
        return column.dropFields("row_index")

    @cached_property
    def _column(self) -> Callable[[str], Column]:
        return cache(lambda name: F.col(quote_name(name)))

    # --- files

    def _parquet(self, part: Part, *, with_positions: bool, with_metadata: bool) -> DataFrame:
        schema, options = self._schema(with_positions=with_positions), self._options
        if self._indexed:
            return indexed_rows(self._spark, self._files, part.chosen, schema, options, with_metadata=with_metadata)
        # Spark lists each path by itself
        reader = self._spark.read.schema(schema).options(**options)
        return reader.parquet(*map(hadoop_path, (self._files.files[n].path for n in part.chosen)))

    def _schema(self, *, with_positions: bool) -> spark_types.StructType:
        types = {f.physical_name: f.data_type for f in self.fields}
        schema = [_field(n, physical_type(types[n])) for n in self._names_in_files]
        if with_positions:
            schema.append(_field(ROW, LONG))
        # unused partition values may have a type that Spark does not infer from directories
        schema += [_field(n, types.get(n, STRING)) for n in self._hive]
        return spark_types.StructType(schema)

    @cached_property
    def _options(self) -> dict[str, str]:
        options = {
            **PINNED_OPTIONS,
            _VERIFY: "true" if self._scan.state.verify_page_checksums else "false",
            TABLE_OPTION: self._scan.snapshot.table_root,
            **({FIXED_OPTION: "true"} if self._fixed else {}),
            **({MAPPED_OPTION: "true"} if any(f.physical_name != f.name for f in self._scan.snapshot.schema) else {}),
        }
        if not self._hive:
            # a directory named a=b above or in the table has no meaning
            return {**options, RECURSIVE: "true"}
        if not self._indexed:
            options["basePath"] = hadoop_path(self._scan.snapshot.table_root)
        return {**options, "timeZone": self._scan.state.time_zone}

    def _joined(self, frame: DataFrame, side: SideTable) -> DataFrame:
        wanted = {**side.metadata, **({"file_path": FILE_COLUMN} if self.location else {})}
        metadata = [F.col(f"{METADATA_COLUMN}.{source}").alias(name) for source, name in wanted.items()]
        table = F.broadcast(self._spark.createDataFrame(side.table))
        is_live = side.is_live
        if self._joins_words and not side.deletions:
            is_live = require(IS_KNOWN, _UNKNOWN)
        return frame.select("*", *metadata).join(table, side.condition, "left").filter(is_live)


def read_fields(scan: Scan) -> tuple[StructField, ...]:
    """The columns to read. A column is read whole if predicate and output need different parts of it."""
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
