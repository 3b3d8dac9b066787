"""Partition values and deleted rows of each file as a small table, which Spark joins to the rows of the files.

One row for each file: Spark's name of it, the partition values, and which rows
are deleted. Only built-in functions look at it, so that nothing has to be
installed or registered where Spark runs.

Protocol: "Partition Value Serialization", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.errors import ProtocolError
from delta_pyds.expr.nodes import Literal
from delta_pyds.protocol.partition_values import parse_partition_value, wrong_in_file
from delta_pyds.protocol.schema import DataType, PrimitiveType
from delta_pyds.protocol.temporal import show_timestamp
from delta_pyds.spark.native.deletions import deleted_words
from delta_pyds.spark.native.eligibility import RESERVED_PREFIX
from delta_pyds.spark.native.expressions import literal
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.table.scan.file_statistics import typed_partition_values
from delta_pyds.table.scan.scan import Scan
from delta_pyds.tasks.scan_state import ScanFile

FILE = f"{RESERVED_PREFIX}file"
KNOWN = f"{RESERVED_PREFIX}known_file"
# A column of this name, of type long, is the row's position in its file: Spark's Parquet reader fills it in for its own
# _metadata.row_index. Asking for it by that name costs a third less, because no struct is made of it for every row.
ROW = "_tmp_metadata_row_index"
VECTOR = f"{RESERVED_PREFIX}deleted"
_VALUE = f"{RESERVED_PREFIX}value_"
_SIZE = f"{RESERVED_PREFIX}size"
_KNOWN_SIZE = f"{RESERVED_PREFIX}known_size"
_LOADERS = 8


@dataclass(frozen=True)
class SideTable:
    """``table``: a row for each file. ``values``: the partition columns, by physical name, typed.

    ``by_size``: no two of the files have one size, so that Spark can look a file up by a number and need not make
    its name for every row. That each file has the size that the log promises was found when its footer was read.
    """

    table: pa.Table
    values: Mapping[str, Column]
    deletions: bool
    by_size: bool

    @property
    def metadata(self) -> Mapping[str, str]:
        """What Spark has to tell of each file: the field of ``_metadata``, and the column that it becomes."""
        return {"file_size": _SIZE} if self.by_size else {"file_path": FILE}

    @property
    def condition(self) -> Column:
        """Which row of the table belongs to a row of the files."""
        return F.col(_SIZE) == F.col(_KNOWN_SIZE) if self.by_size else F.col(FILE) == F.col(KNOWN)

    @property
    def is_live(self) -> Column:
        """True for a row of the joined files that is not deleted; an error for a row of a file that is not known.

        Without the error, a file that Spark names in another way would show its deleted rows, or none at all.
        """
        found = F.concat(F.lit("of "), F.col(_SIZE), F.lit(" bytes")) if self.by_size else F.col(FILE)
        unknown = F.raise_error(F.concat(F.lit("deltapy does not know the data file "), found)).cast("boolean")
        live = is_live(F.col(VECTOR)) if self.deletions else F.lit(True)
        return F.when(F.col(KNOWN).isNotNull(), live).otherwise(unknown)


def is_live(words: Column) -> Column:
    """Whether the words, an array of bigint, leave the row alive; behind the last word every row is.

    An error where Spark does not say which row of its file it is: else deleted rows would be back.
    """
    row = F.col(ROW)
    word = F.get(words, F.shiftright(row, 6).cast("int"))
    bit = F.getbit(word, row.bitwiseAND(F.lit(63)).cast("int"))
    live = F.coalesce(bit, F.lit(0).cast("tinyint")) == F.lit(0)
    unknown = F.raise_error(F.lit("Spark does not tell the positions of rows, which deletion vectors name"))
    return F.when(row.isNotNull(), live).otherwise(unknown.cast("boolean"))


def side_table(
    scan: Scan, files: NativeFiles, chosen: Sequence[int], names: Sequence[str], *, with_values: bool
) -> SideTable:
    """The table for the files at the positions ``chosen``, which Spark calls ``names``.

    Raises: ProtocolError for a partition value that is none; DeletionVectorError.
    """
    sizes = [files.files[n].size_bytes for n in chosen]
    columns = {KNOWN: pa.array(names, pa.string()), _KNOWN_SIZE: pa.array(sizes, pa.int64())}
    values: dict[str, Column] = {}
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    for i, name in enumerate(scan.state.partition_columns if with_values else ()):
        texts = pa.array([files.files[n].partition_values[i] for n in chosen], pa.string())
        typed = typed_partition_values(
            texts,
            types[name],
            scan.state.time_zone,
            paths=pa.array([files.files[n].path for n in chosen], pa.string()),
            table=scan.snapshot.table_root,
            column=name,
        )
        columns[f"{_VALUE}{i}"], values[name] = _sent(typed, types[name], F.col(f"{_VALUE}{i}"))
    deletions = files.files[chosen[0]].deletion_vector is not None
    if deletions:
        columns[VECTOR] = vectors(scan, files, chosen)
    return SideTable(pa.table(columns), values, deletions, by_size=min(sizes) > 0 and len(set(sizes)) == len(sizes))


def constant_values(scan: Scan, file: ScanFile) -> dict[str, Column]:
    """The partition values of a file, by physical name, as constants. Raises: ProtocolError."""
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    values: dict[str, Column] = {}
    for name, text in zip(scan.state.partition_columns, file.partition_values, strict=True):
        try:
            value = parse_partition_value(text, types[name], scan.state.time_zone)
        except ProtocolError as e:
            raise wrong_in_file(e, scan.snapshot.table_root, file.path, name) from None
        values[name] = literal(Literal(value, types[name]))
    return values


def vectors(scan: Scan, files: NativeFiles, chosen: Sequence[int]) -> pa.Array:
    """The deletion vectors of the files, a list of words for each. Raises: DeletionVectorError."""
    storage, table = scan.snapshot.storage, scan.snapshot.table_root
    with ThreadPoolExecutor(_LOADERS) as pool:
        found = list(pool.map(lambda n: deleted_words(storage, table, files.files[n], files.num_records[n]), chosen))
    offsets = pa.array([0, *accumulate(map(len, found))], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.concat_arrays(found))


def _sent(values: pa.Array, data_type: DataType, column: Column) -> tuple[pa.Array, Column]:
    """Values in a form that no time zone touches on its way to Spark, and how to get them back."""
    if pt.is_date(values.type):
        return values.view(pa.int32()), F.date_from_unix_date(column)
    if pt.is_timestamp(values.type) and data_type == PrimitiveType("timestamp"):
        return values.view(pa.int64()), F.timestamp_micros(column)
    if pt.is_timestamp(values.type):
        texts = [None if micros is None else show_timestamp(micros) for micros in values.view(pa.int64()).to_pylist()]
        return pa.array(texts, pa.string()), column.cast("timestamp_ntz")
    return values, column
