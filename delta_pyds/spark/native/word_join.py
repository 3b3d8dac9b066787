"""Deletion vectors as a table of words, and the anti join that removes the deleted rows.

An accelerator runs this join, and no filter with an array (`comet`). Spark alone runs the filter of `vectors` faster.
The table has a row for each word with a deleted row: a number that identifies its file, the index of the word and its
bits.

Invariant: a row without a position is an error. A row after the last word of its file is live.

Protocol: "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.spark.native.eligibility import RESERVED_PREFIX
from delta_pyds.spark.native.files import NativeFiles
from delta_pyds.spark.native.vectors import HAS_POSITION, ROW

_FILE = f"{RESERVED_PREFIX}deleted_in"
_INDEX = f"{RESERVED_PREFIX}deleted_index"
_WORD = f"{RESERVED_PREFIX}deleted_word"
# Spark holds the table as rows in its driver, and a hash map of it in each executor.
MAX_JOINED_WORDS = 1 << 21


def fits(files: NativeFiles, chosen: Sequence[int]) -> bool:
    """Whether the table of these files is surely small enough. No vector is read."""
    return sum(files.num_records[n] // 64 + 1 for n in chosen) <= MAX_JOINED_WORDS


def word_table(words: Sequence[pa.Array], numbers: Sequence[int]) -> pa.Table:
    """The table for the vectors of files, as words, and the numbers that identify the files."""
    found = [pc.indices_nonzero(own) for own in words]
    return pa.table(
        {
            _FILE: pa.concat_arrays([pa.repeat(n, len(own)) for n, own in zip(numbers, found, strict=True)]),
            _INDEX: pa.concat_arrays(found).cast(pa.int64()),
            _WORD: pa.concat_arrays([own.take(at) for own, at in zip(words, found, strict=True)]),
        },
        schema=pa.schema([pa.field(name, pa.int64(), nullable=False) for name in (_FILE, _INDEX, _WORD)]),
    )


def without_deleted(frame: DataFrame, table: DataFrame, file: str | None = None) -> DataFrame:
    """The rows of the files that are not deleted.

    ``table``: that of ``word_table``. ``file``: a number that identifies the file of a row, which the caller has
    checked; None if there is one file.
    """
    same_word = f"shiftright({ROW}, 6) = {_INDEX} AND shiftright({_WORD}, CAST({ROW} & 63 AS INT)) & 1 = 1"
    condition = same_word if file is None else f"{file} = {_FILE} AND {same_word}"
    known = frame.filter(require(HAS_POSITION, "Spark gave no position of a row, which deletion vectors need"))
    return known.join(F.broadcast(table), F.expr(condition), "left_anti")


def require(condition: str, reason: str) -> str:
    """A filter that keeps all rows, and an error if the condition is not true.

    Accelerators run no ``raise_error``. For the index 0 Spark raises an error in each mode. It shows this text.
    """
    return f"element_at(array(true), CASE WHEN {condition} THEN 1 ELSE 0 /* {reason} */ END)"
