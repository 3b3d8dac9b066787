"""``INSERT INTO ... REPLACE USING``; the option ``replaceUsing`` is in ``tests/support/delta_programs.py``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import delta_pyds
from delta_pyds.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    OptionError,
    SqlSyntaxError,
    UnsupportedOperationError,
    UserError,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_rows_with_the_keys_of_the_query_are_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")

    def sql(text: str) -> DataFrame:
        return delta_pyds.sql(spark, text.replace("<T>", f"delta.`{path}`"))

    def rows() -> list[str]:
        return sorted(repr(tuple(row)) for row in delta_pyds.read(spark, path).collect())

    sql(
        "CREATE TABLE <T> (id BIGINT, `a.b` DOUBLE, twice BIGINT GENERATED ALWAYS AS (id * 2), c CHAR(3)) USING delta "
        "TBLPROPERTIES (delta.enableDeletionVectors = true, delta.columnMapping.mode = 'name', "
        "delta.constraints.few = 'id < 100')"
    )
    sql("INSERT INTO <T> (id, `a.b`) VALUES (1, 0.5), (2, 1.5), (3, CAST('NaN' AS DOUBLE)), (4, NULL)")

    # by position, with the table itself as the source, and a value that is not yet a number of the table's type
    sql("INSERT INTO <T> REPLACE USING (id) SELECT id + 1, `a.b` * 2, 2 * (id + 1), 'x' FROM <T> WHERE id = 1")
    assert rows() == ["(1, 0.5, 2, None)", "(2, 1.0, 4, 'x  ')", "(3, nan, 6, None)", "(4, None, 8, None)"]
    # by name; NaN is NaN, null is nothing
    sql(
        "INSERT INTO <T> BY NAME REPLACE USING (`a.b`) SELECT `a.b`, id FROM VALUES "
        "(double('NaN'), 7), (NULL, 8), (1.0D, 9) AS t(`a.b`, id)"
    )
    assert [row[1] for row in rows()] == ["1", "4", "7", "8", "9"]
    # not seen twice: which rows the query gives is not the same from one time to the next
    sql("INSERT INTO <T> BY NAME REPLACE USING (id) SELECT CAST(floor(rand() * 90) AS BIGINT) AS id FROM range(50)")
    assert len(rows()) - 50 <= 5 and delta_pyds.DeltaTable.forPath(spark, path).history(1).collect()[0].version == 4
    delta_pyds.verify(path).raise_for_errors()

    refusals: list[tuple[type[Exception], str, str]] = [
        (ConstraintViolationError, "few", "BY NAME REPLACE USING (id) SELECT 100L AS id"),
        (UserError, "column 1 of the table, but column 2", "REPLACE USING (id) SELECT 1L AS x, 1 AS id, 2L, 'a'"),
        (ColumnNotFoundError, "'nope' of REPLACE USING", "BY NAME REPLACE USING (nope) SELECT 1L AS id"),
        (ColumnNotFoundError, "'id' of REPLACE USING", "BY NAME REPLACE USING (id) SELECT 1D AS `a.b`"),
        (UnsupportedOperationError, "cannot compare the column", "BY NAME REPLACE USING (c) SELECT 1L AS id, 'a' AS c"),
        (SqlSyntaxError, "list of columns", "(id) REPLACE USING (id) SELECT 1L"),
    ]
    before = rows()
    for kind, message, text in refusals:
        with pytest.raises(kind, match=message):
            sql(f"INSERT INTO <T> {text}")
    frame = spark.range(1)
    with pytest.raises(OptionError, match="mode overwrite"):
        delta_pyds.write(frame, path, mode="append", options={"replaceUsing": "id"})
    with pytest.raises(OptionError, match="takes columns"):
        delta_pyds.write(frame, path, mode="overwrite", options={"replaceUsing": "id.x"})
    assert rows() == before
