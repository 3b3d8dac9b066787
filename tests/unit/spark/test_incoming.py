"""Rows of pandas and Arrow on their way to Spark: no value changes, and no type is guessed."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from delta_pyds.errors import OptionError
from delta_pyds.spark.incoming import to_frame


class Session:
    """Takes the rows as a session does, and gives them back."""

    def createDataFrame(self, rows: Any) -> Any:  # noqa: N802
        return rows


def handed_over(rows: Any) -> Any:
    return to_frame(rows, Session())


def test_unsigned_numbers_become_wider_ones() -> None:
    rows = pd.DataFrame(
        {
            "a": np.array([1, 255], "uint8"),
            "b": np.array([1, 2**64 - 1], "uint64"),
            "c": pd.array([2**32 - 1, None], "UInt32"),
            "d": np.array([0.5, 1], "float16"),
            "e": pd.array([True, None], "boolean"),
        }
    )
    table = handed_over(rows)
    assert table.schema.types == [pa.int16(), pa.decimal128(20, 0), pa.int64(), pa.float32(), pa.bool_()]
    assert table.to_pydict() == {
        "a": [1, 255],
        "b": [Decimal(1), Decimal(2**64 - 1)],
        "c": [2**32 - 1, None],
        "d": [0.5, 1.0],
        "e": [True, None],
    }


def test_frames_without_rows_keep_their_types() -> None:
    table = handed_over(pd.DataFrame({"a": pd.Series([], dtype="int64"), "t": pd.Series([], dtype="datetime64[ns]")}))
    assert table.num_rows == 0 and table.schema.types == [pa.int64(), pa.timestamp("ns")]
    assert handed_over(pd.DataFrame()).num_columns == 0


def test_what_arrow_has_and_spark_has_not_inside_of_other_types_too() -> None:
    table = handed_over(
        pa.table(
            {
                "v": pa.array(["x"], pa.string_view()),
                "d": pa.array([86_400_000], pa.date64()),
                "l": pa.array([[{"u": 2**64 - 1}]], pa.list_(pa.struct([("u", pa.uint64())]))),
                "m": pa.array([[("k", 255)]], pa.map_(pa.string(), pa.uint8())),
                "c": pa.array(["x"]).dictionary_encode(),
                "w": pa.array([Decimal(1)], pa.decimal256(20, 2)),
            }
        )
    )
    assert table.schema.field("l").type == pa.list_(pa.struct([("u", pa.decimal128(20, 0))]))
    assert table.to_pylist()[0] == {
        "v": "x",
        "d": dt.date(1970, 1, 2),
        "l": [{"u": Decimal(2**64 - 1)}],
        "m": [("k", 255)],
        "c": "x",
        "w": Decimal(1),
    }


def test_names_stay_as_they_are_twice_too() -> None:
    assert handed_over(pd.DataFrame([[1, 2]], columns=["a", "a"])).column_names == ["a", "a"]
    assert handed_over(pd.DataFrame([[1, 2]])).column_names == ["0", "1"]


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame({"good": [1, 2], "odd": [1, "a"]}),
        pd.DataFrame({"odd": [1 + 2j]}),
        pd.DataFrame({"odd": pd.period_range("2026-01", periods=2, freq="M")}),
        pd.DataFrame({"odd": pd.arrays.SparseArray([0, 1])}),
        pd.DataFrame({"odd": [2**70]}),
        pa.table({"odd": pa.RunEndEncodedArray.from_arrays([2], [1])}),
        pa.table({"odd": pa.array([Decimal(10**40)], pa.decimal256(50, 2))}),
        pa.table({"odd": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])}),
        pa.table({"odd": pa.array([1], pa.time32("s"))}),
    ],
)
def test_a_column_that_spark_has_no_type_for_is_named(rows: Any) -> None:
    with pytest.raises(OptionError, match="the column 'odd' of type") as error:
        handed_over(rows)
    assert error.value.parameters["column"] == "odd"


def test_what_spark_finds_in_the_values_is_a_sentence_too() -> None:
    class Refusing(Session):
        def createDataFrame(self, rows: Any) -> Any:  # noqa: N802
            return pc.assume_timezone(rows.column("t"), "Europe/Paris")  # as Spark does

    with pytest.raises(OptionError, match="doesn't exist in timezone"):
        to_frame(pd.DataFrame({"t": pd.to_datetime(["2026-03-29 02:30:00"])}), Refusing())
