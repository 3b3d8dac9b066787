"""What the log knows of each file, as a small table that Spark joins to the rows of the files.

One row for each file: Spark's name of it, the partition values, and which rows
are deleted. Only built-in functions look at it, so that nothing has to be
installed or registered where Spark runs.

Protocol: "Partition Value Serialization", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.protocol.schema import DataType, PrimitiveType
from delta_pyds.protocol.temporal import show_timestamp
from delta_pyds.spark.native_deletions import deleted_words
from delta_pyds.table.file_facts import typed_partition_values
from delta_pyds.table.native_eligibility import RESERVED_PREFIX
from delta_pyds.table.native_files import NativeFiles
from delta_pyds.table.scan import Scan

FILE = f"{RESERVED_PREFIX}file"
KNOWN = f"{RESERVED_PREFIX}known_file"
ROW = f"{RESERVED_PREFIX}row"
VECTOR = f"{RESERVED_PREFIX}deleted"
_VALUE = f"{RESERVED_PREFIX}value_"
# Words of deletion vectors that are sent to every executor; 64 MB, which say of 500 million rows whether they live.
MAX_WORDS = 8 << 20


class TooManyWordsError(Exception):
    """The deletion vectors are too large to be sent to every executor."""


@dataclass(frozen=True)
class SideTable:
    """``table``: a row for each file. ``values``: the partition columns, by physical name, typed."""

    table: pa.Table
    values: dict[str, Column]
    deletions: bool

    @property
    def is_live(self) -> Column:
        """True for a row of the joined files that is not deleted; an error for a row of a file that is not known.

        That cannot be, but if it were, deleted rows would be returned, or live ones lost.
        """
        unknown = F.raise_error(F.concat(F.lit("deltapy does not know the data file "), F.col(FILE))).cast("boolean")
        live = bit_is_clear(F.col(VECTOR), F.col(ROW)) if self.deletions else F.lit(True)
        return F.when(F.col(KNOWN).isNotNull(), live).otherwise(unknown)


def bit_is_clear(words: Column, row: Column) -> Column:
    """Whether the words, an array of bigint, leave the row alive; behind the last word every row is."""
    word = F.get(words, F.shiftright(row, 6).cast("int"))
    bit = F.getbit(word, row.bitwiseAND(F.lit(63)).cast("int"))
    return F.coalesce(bit, F.lit(0).cast("tinyint")) == F.lit(0)


def side_table(
    scan: Scan, files: NativeFiles, chosen: Sequence[int], partition_columns: Sequence[str], names: Sequence[str]
) -> SideTable:
    """The table for the files at the positions ``chosen``, which Spark calls ``names``.

    Raises: TooManyWordsError; ProtocolError for a partition value that is none; DeletionVectorError.
    """
    columns = {KNOWN: pa.array(names, pa.string())}
    values: dict[str, Column] = {}
    types = {f.physical_name: f.data_type for f in scan.snapshot.schema}
    for i, name in enumerate(partition_columns):
        at = scan.state.partition_columns.index(name)
        texts = pa.array([files.files[n].partition_values[at] for n in chosen], pa.string())
        typed = typed_partition_values(texts, types[name], scan.state.time_zone)
        columns[f"{_VALUE}{i}"], values[name] = _sent(typed, types[name], F.col(f"{_VALUE}{i}"))
    deletions = files.files[chosen[0]].deletion_vector is not None
    if deletions:
        columns[VECTOR] = _vectors(scan, files, chosen)
    return SideTable(pa.table(columns), values, deletions)


def _vectors(scan: Scan, files: NativeFiles, chosen: Sequence[int]) -> pa.Array:
    found, total = [], 0
    for n in chosen:
        words = deleted_words(scan.snapshot.storage, scan.snapshot.table_root, files.files[n], files.num_records[n])
        total += len(words)
        if total > MAX_WORDS:
            raise TooManyWordsError
        found.append(words)
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
