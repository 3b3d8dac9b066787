"""Partition values and deleted rows of each file as a small table, which Spark joins to the rows of the files.

The table has one row for each file: Spark's name of it, the partition values, and the deleted rows. Only built-in
functions read it, so nothing needs to be installed or registered where Spark runs.

Protocol: "Partition Value Serialization", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.columnar.scan_files import PARTITION_PREFIX
from delta_pyds.errors import ProtocolError
from delta_pyds.expr.nodes import Literal
from delta_pyds.protocol.partition_values import invalid_in_file, parse_partition_value
from delta_pyds.protocol.schema import DataType, PrimitiveType
from delta_pyds.protocol.temporal import show_timestamp
from delta_pyds.spark.native.eligibility import RESERVED_PREFIX
from delta_pyds.spark.native.expressions import literal
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.spark.native.vectors import VECTOR, as_lists, is_live, unknown_file, words_of
from delta_pyds.table.scan.file_statistics import typed_partition_values
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.scan_state import ScanFile

FILE = f"{RESERVED_PREFIX}file"
KNOWN = f"{RESERVED_PREFIX}known_file"
IS_KNOWN = f"{KNOWN} IS NOT NULL"
NUMBER = f"{RESERVED_PREFIX}number"
_VALUE = f"{RESERVED_PREFIX}value_"
_SIZE = f"{RESERVED_PREFIX}size"
_KNOWN_SIZE = f"{RESERVED_PREFIX}known_size"


@dataclass(frozen=True)
class SideTable:
    """``table``: a row for each file. ``values``: the typed partition columns, by physical name. ``deletions``: whether
    the table has the vectors.

    ``by_size``: all sizes differ, so Spark looks a file up by its size and does not build its name for every row. That
    takes a Spark that was told the sizes of the log, so that both have the same.
    """

    table: pa.Table
    values: Mapping[str, Column]
    deletions: bool
    by_size: bool

    @property
    def metadata(self) -> Mapping[str, str]:
        """The field of ``_metadata`` that identifies a file, and the name of its column."""
        return {"file_size": _SIZE} if self.by_size else {"file_path": FILE}

    @property
    def condition(self) -> Column:
        """The condition of the join."""
        return F.col(_SIZE) == F.col(_KNOWN_SIZE) if self.by_size else F.col(FILE) == F.col(KNOWN)

    @property
    def is_live(self) -> str:
        """True for a row of the joined files that the table does not delete; an error for a row of an unknown file."""
        unknown = unknown_file(f"concat('of ', CAST({_SIZE} AS STRING), ' bytes')" if self.by_size else FILE)
        live = is_live(VECTOR) if self.deletions else "true"
        return f"CASE WHEN {IS_KNOWN} THEN {live} ELSE {unknown} END"


def side_table(
    scan: Scan,
    files: NativeFiles,
    chosen: Sequence[int],
    *,
    with_values: bool,
    with_deletions: bool,
    sizes_of_log: bool,
) -> SideTable:
    """The table for the files at the positions ``chosen``. ``sizes_of_log``: Spark has the sizes of the log.

    ``with_deletions``: add the deletion vectors. Otherwise the number of a file is its index in ``chosen``.

    Raises: ProtocolError for an invalid partition value; DeletionVectorError.
    """
    rows = files.rows_at(chosen).combine_chunks()
    sizes = rows.column("size")
    columns = {KNOWN: rows.column("uri"), _KNOWN_SIZE: sizes}
    values: dict[str, Column] = {}
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    for i, name in enumerate(scan.state.partition_columns if with_values else ()):
        typed = typed_partition_values(
            rows.column(f"{PARTITION_PREFIX}{i}").combine_chunks(),
            types[name],
            scan.state.time_zone,
            paths=rows.column("path").combine_chunks(),
            table=scan.snapshot.table_root,
            column=name,
        )
        columns[f"{_VALUE}{i}"], values[name] = _sent(typed, types[name], F.col(f"{_VALUE}{i}"))
    if with_deletions:
        columns[VECTOR] = as_lists(words_of(scan, files, chosen))
    else:
        columns[NUMBER] = pa.array(range(len(chosen)), pa.int64())
    by_size = sizes_of_log and pc.count_distinct(sizes).as_py() == len(sizes)
    return SideTable(pa.table(columns), values, with_deletions, by_size)


def constant_values(scan: Scan, file: ScanFile) -> dict[str, Column]:
    """The partition values of a file, by physical name, as constants. Raises: ProtocolError."""
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    values: dict[str, Column] = {}
    for name, text in zip(scan.state.partition_columns, file.partition_values, strict=True):
        try:
            value = parse_partition_value(text, types[name], scan.state.time_zone)
        except ProtocolError as e:
            raise invalid_in_file(e, scan.snapshot.table_root, file.path, name) from None
        values[name] = literal(Literal(value, types[name]))
    return values


def _sent(values: pa.Array, data_type: DataType, column: Column) -> tuple[pa.Array, Column]:
    """Values in a form that no time zone changes on the way to Spark, and the column that restores them."""
    if pt.is_date(values.type):
        return values.view(pa.int32()), F.date_from_unix_date(column)
    if pt.is_timestamp(values.type) and data_type == PrimitiveType("timestamp"):
        return values.view(pa.int64()), F.timestamp_micros(column)
    if pt.is_timestamp(values.type):
        texts = [None if micros is None else show_timestamp(micros) for micros in values.view(pa.int64()).to_pylist()]
        return pa.array(texts, pa.string()), column.cast("timestamp_ntz")
    return values, column
