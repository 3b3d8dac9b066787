from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.data.write.ingest import Ingest
from delta_pyds.data.write.store_assignment import fits
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ConstraintViolationError, UserError
from delta_pyds.expr.nodes import Cast, Column, Literal
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DecimalType,
    StructField,
    StructType,
)
from delta_pyds.tasks.write_state import Check, ColumnSource, IdentityColumn, WriteState
from tests.support.write_states import SESSION, batch, column, expression, given, greater, state_of


def ingested(state: WriteState, rows: pa.RecordBatch, session: TaskSession = SESSION) -> pa.RecordBatch:
    result = Ingest(state, session).apply(rows)
    result.validate(full=True)
    assert result.schema.names == list(state.schema.names)
    for found, wanted in zip(result.schema, arrow_schema(state.schema), strict=True):
        assert fits(found.type, wanted.type)
    return result


def test_columns_that_fit_are_handed_on_without_a_copy() -> None:
    kinds = [LONG, INTEGER, DOUBLE, STRING, BOOLEAN, DATE, DecimalType(10, 2)]
    fields = [column(f"c{i}", kind) for i, kind in enumerate(kinds)]
    rows = pa.RecordBatch.from_arrays(
        [pa.array([None, None], f.type) for f in arrow_schema(StructType(tuple(fields)))],
        schema=pa.schema(
            [f.with_metadata({"SPARK::metadata::json": "{}"}) for f in arrow_schema(StructType(tuple(fields)))]
        ),
    )
    result = ingested(state_of(given(*fields)), rows)
    for before, after in zip(rows.columns, result.columns, strict=True):
        assert [b and b.address for b in before.buffers()] == [b and b.address for b in after.buffers()]
    assert result.schema.field(0).metadata is None


def test_columns_come_in_the_tables_order_and_spelling() -> None:
    columns = [ColumnSource(column("Id"), "input", 1), ColumnSource(column("Name", STRING), "input", 0)]
    rows = batch({"NAME": ["a"], "id": [1]}, {"NAME": pa.large_string()})
    assert ingested(state_of(columns), rows).to_pydict() == {"Id": [1], "Name": ["a"]}


def test_the_sessions_label_on_timestamps_changes_no_instant() -> None:
    rows = batch({"t": pa.array([5], pa.timestamp("us", "Asia/Tokyo"))})
    result = ingested(state_of(given(column("t", TIMESTAMP))), rows)
    assert result.column("t").type == pa.timestamp("us", "UTC")
    assert result.column("t").cast(pa.int64()).to_pylist() == [5]


def test_missing_columns_are_null_of_their_type() -> None:
    nested = StructType((StructField("x", ArrayType(STRING)),))
    columns = [*given(column("a")), ColumnSource(column("s", nested), "null"), ColumnSource(column("v", VOID), "null")]
    assert ingested(state_of(columns), batch({"a": [1, 2]})).to_pydict() == {
        "a": [1, 2],
        "s": [None, None],
        "v": [None, None],
    }


def test_batches_of_any_length_follow_each_other() -> None:
    columns = [
        *given(column("a")),
        ColumnSource(column("d", STRING), "default", expression=expression(Literal("x", STRING))),
        ColumnSource(column("n"), "null"),
        ColumnSource(column("id"), "identity", identity=IdentityColumn(1, 1, None, False)),
    ]
    ingest = Ingest(state_of(columns), SESSION)
    seen: list[Any] = []
    for length in (2, 0, 5, 1):
        result = ingest.apply(batch({"a": list(range(length))}))
        assert result.num_rows == length
        assert result.column("d").to_pylist() == ["x"] * length
        assert result.column("n").null_count == length
        seen += result.column("id").to_pylist()
    assert seen == [1, 2, 3, 4, 5, 6, 7, 8]
    assert ingest.identity_marks == {"id": 8}


def test_a_batch_of_another_type_is_planned_anew() -> None:
    ingest = Ingest(state_of(given(column("a"))), SESSION)
    assert ingest.apply(batch({"a": [1]}, {"a": pa.int32()})).to_pydict() == {"a": [1]}
    assert ingest.apply(batch({"a": [2]})).to_pydict() == {"a": [2]}
    assert ingest.apply(batch({"a": [None]}, {"a": pa.null()})).column("a").type == pa.int64()
    with pytest.raises(UserError, match="'a' as string"):
        ingest.apply(batch({"a": ["x"]}, {"a": pa.string()}))


def test_rows_without_any_column_take_defaults() -> None:
    columns = [ColumnSource(column("d"), "default", expression=expression(Literal(7, LONG)))]
    rows = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert ingested(state_of(columns), rows).to_pydict() == {"d": [7, 7]}


def test_columns_at_another_place_than_announced_are_not_taken() -> None:
    columns = [ColumnSource(column("a"), "input", 1)]
    for rows in (batch({"a": [1], "b": [2]}), batch({"a": [1]})):
        with pytest.raises(UserError, match=r"'a' of table .* should be column 2"):
            Ingest(state_of(columns), SESSION).apply(rows)


def test_generated_columns_see_converted_defaulted_and_numbered_columns() -> None:
    def copies(name: str) -> Any:
        return expression(Column((name,), LONG), name)

    columns = [
        ColumnSource(column("of_a"), "generated", expression=copies("a")),
        ColumnSource(column("a"), "input", 0),
        ColumnSource(column("d"), "default", expression=expression(Literal(5, LONG))),
        ColumnSource(column("of_d"), "generated", expression=copies("d")),
        ColumnSource(column("id"), "identity", identity=IdentityColumn(10, 10, None, False)),
        ColumnSource(column("of_id"), "generated", expression=copies("id")),
        ColumnSource(column("s", StructType((StructField("x", LONG),))), "input", 1),
        ColumnSource(column("of_s"), "generated", expression=expression(Column(("s", "x"), LONG), "s.x")),
    ]
    rows = batch({"A": pa.array([1, None], pa.int32()), "S": pa.array([{"X": 3}, None])})
    assert ingested(state_of(columns), rows).to_pydict() == {
        "of_a": [1, None],
        "a": [1, None],
        "d": [5, 5],
        "of_d": [5, 5],
        "id": [10, 20],
        "of_id": [10, 20],
        "s": [{"x": 3}, None],
        "of_s": [3, None],
    }


def test_computed_columns_are_checked_like_the_others() -> None:
    made = expression(Cast(Column(("a",), INTEGER), LONG), "a")
    columns = [
        ColumnSource(column("a", INTEGER), "input", 0),
        ColumnSource(column("g", nullable=False), "generated", expression=made),
    ]
    state = state_of(columns, [Check("check", "positive", greater("g", 0))])
    rows = {"a": pa.array([1, -1], pa.int32())}
    with pytest.raises(ConstraintViolationError, match="'positive'"):
        Ingest(state, SESSION).apply(batch(rows))
    with pytest.raises(ConstraintViolationError, match=r"'g'.*NOT NULL"):
        Ingest(state, SESSION).apply(batch({"a": pa.array([None], pa.int32())}))


def test_a_given_generated_column_is_compared_after_conversion() -> None:
    made = expression(Column(("a",), LONG), "a")
    columns = [ColumnSource(column("a"), "input", 0), ColumnSource(column("g"), "generated", 1, made)]
    state = state_of(columns)
    types = {"g": pa.int32()}
    assert ingested(state, batch({"a": [1], "g": [1]}, types)).column("g").to_pylist() == [1]
    with pytest.raises(ConstraintViolationError, match="Generated Column"):
        Ingest(state, SESSION).apply(batch({"a": [1], "g": [2]}, types))


def test_lengths_hold_for_given_default_and_generated_texts() -> None:
    def text(name: str, declared: str) -> StructField:
        return StructField(name, STRING, metadata={CHAR_VARCHAR_TYPE: declared})

    columns = [
        ColumnSource(text("a", "char(3)"), "input", 0),
        ColumnSource(text("d", "char(2)"), "default", expression=expression(Literal("x", STRING))),
        ColumnSource(text("g", "varchar(3)"), "generated", expression=expression(Column(("a",), STRING), "a")),
    ]
    state = state_of(columns)
    rows = batch({"a": ["a", "abc"]}, {"a": pa.string()})
    assert ingested(state, rows).to_pydict() == {"a": ["a", "abc"], "d": ["x", "x"], "g": ["a", "abc"]}
    for text in ("abcd", "a   "):
        with pytest.raises(ConstraintViolationError, match=r"'a' CHAR\(3\)"):
            Ingest(state, SESSION).apply(batch({"a": [text]}, {"a": pa.string()}))


def test_an_empty_text_in_a_partition_column_is_null_before_rows_are_checked() -> None:
    fields = (column("p", STRING), column("q", STRING))
    state = state_of(given(*fields), partition_columns=("p",))
    rows = batch({"p": ["", "x", None], "q": ["", "", "y"]}, {"p": pa.string(), "q": pa.string()})
    assert ingested(state, rows).to_pydict() == {"p": [None, "x", None], "q": ["", "", "y"]}
    strict = state_of(given(column("p", STRING, nullable=False)), partition_columns=("p",))
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        Ingest(strict, SESSION).apply(batch({"p": [""]}, {"p": pa.string()}))


def test_no_bytes_in_a_partition_column_are_null_before_rows_are_checked() -> None:
    rows = batch({"p": [b"", b"x"]}, {"p": pa.binary()})
    state = state_of(given(column("p", BINARY)), partition_columns=("p",))
    assert ingested(state, rows).to_pydict() == {"p": [None, b"x"]}
    strict = state_of(given(column("p", BINARY, nullable=False)), partition_columns=("p",))
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        Ingest(strict, SESSION).apply(rows)


def test_a_not_null_column_is_checked_whatever_the_incoming_type_says() -> None:
    state = state_of(given(column("a", nullable=False)))
    liar = pa.RecordBatch.from_arrays(
        [pa.array([None], pa.int64())], schema=pa.schema([pa.field("a", pa.int64(), False)])
    )
    with pytest.raises(ConstraintViolationError):
        Ingest(state, SESSION).apply(liar)


def test_a_task_that_runs_twice_makes_the_same_rows() -> None:
    columns = [*given(column("a")), ColumnSource(column("id"), "identity", identity=IdentityColumn(1, 3, 7, False))]
    rows = batch({"a": list(range(3000))})
    first, second = (Ingest(state_of(columns), TaskSession(5)) for _ in range(2))
    assert first.apply(rows).equals(second.apply(rows))
    assert first.identity_marks == second.identity_marks


def test_dates_beyond_python_pass() -> None:
    rows = batch(
        {"d": pa.array([3_000_000], pa.int32()).cast(pa.date32()), "t": pa.array([2**62], pa.timestamp("us", "UTC"))}
    )
    state = state_of(given(column("d", DATE), column("t", TIMESTAMP)))
    assert ingested(state, rows).column("t").equals(rows.column("t"))
    assert dt.date.max.toordinal() < 3_000_000 + 719_163
