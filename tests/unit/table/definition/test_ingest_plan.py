from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.write.ingest import Ingest
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import ColumnNotFoundError, ConstraintViolationError, DeltaError, ProtocolError, UserError
from delta_pyds.protocol.schema import (
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from delta_pyds.table.definition.ingest_plan import IngestPlan, plan_ingest
from delta_pyds.tasks.write_state import IdentityColumn, WriteState

TABLE = "/tables/people"


def f(name: str, kind: DataType = LONG, nullable: bool = True, **metadata: Any) -> StructField:
    return StructField(name, kind, nullable, {k.replace("__", "."): v for k, v in metadata.items()})


def plan(
    table: list[StructField],
    incoming: list[StructField] | None = None,
    *,
    without: tuple[str, ...] = (),
    **more: Any,
) -> IngestPlan:
    options: dict[str, Any] = {"configuration": {}, "time_zone": "UTC", **more}
    return plan_ingest(
        StructType(tuple(table)),
        incoming=StructType(tuple(table if incoming is None else incoming)),
        supports=lambda feature: feature not in without,
        table=TABLE,
        **options,
    )


def rows(table: list[StructField], planned: IngestPlan, columns: dict[str, Any], **session: Any) -> dict[str, Any]:
    """The plan's view of incoming columns."""
    state = WriteState(TABLE, {}, StructType(tuple(table)), planned.columns, checks=planned.checks)
    arrays = [v if isinstance(v, pa.Array) else pa.array(v, pa.int64()) for v in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    return dict(Ingest(pickle.loads(pickle.dumps(state)), TaskSession(0, **session)).apply(batch).to_pydict())


def refusal(code: str, *args: Any, **more: Any) -> str:
    with pytest.raises(DeltaError) as e:
        plan(*args, **more)
    assert e.value.code == code, str(e.value)
    return e.value.message


# --- columns


def test_columns_are_found_whatever_their_case_and_place() -> None:
    planned = plan([f("Id"), f("Name", STRING), f("x")], [f("NAME", STRING), f("id")])
    assert [(c.field.name, c.source, c.input) for c in planned.columns] == [
        ("Id", "input", 1),
        ("Name", "input", 0),
        ("x", "null", None),
    ]
    assert not planned.uses_time_zone


def test_a_column_that_the_table_lacks_is_refused_unless_it_can_only_be_null() -> None:
    message = refusal("DELTA_METADATA_MISMATCH", [f("a")], [f("a"), f("b")])
    assert "'b'" in message
    assert TABLE in message
    assert len(plan([f("a")], [f("a"), f("b", VOID)]).columns) == 1


def test_one_column_cannot_come_twice() -> None:
    assert "'a' and 'A'" in refusal("DELTA_DUPLICATE_COLUMNS_FOUND", [f("a")], [f("a"), f("A")])


def test_a_missing_not_null_column_is_refused_unless_something_fills_it() -> None:
    assert "'b'" in refusal("DELTA_MISSING_NOT_NULL_COLUMN_VALUE", [f("a"), f("b", nullable=False)], [f("a")])
    filled = f("b", nullable=False, CURRENT_DEFAULT="1")
    assert plan([f("a"), filled], [f("a")]).columns[1].source == "default"
    assert plan([f("a"), f("v", VOID, False)], [f("a")]).columns[1].source == "null"


def test_a_char_type_that_cannot_be_read_is_refused_before_a_task_starts() -> None:
    with pytest.raises(ProtocolError, match="declared type"):
        plan([StructField("a", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(x)"})])


# --- defaults


def test_a_default_fills_a_missing_column_and_no_null() -> None:
    table = [f("a"), f("b", INTEGER, CURRENT_DEFAULT="40 + 2"), f("c", STRING, CURRENT_DEFAULT="'it''s'")]
    assert rows(table, plan(table, [f("a")]), {"a": [1]})["b"] == [42]
    given = plan(table, [f("a"), f("b", INTEGER)])
    assert rows(table, given, {"a": [1], "b": pa.array([None], pa.int32())})["b"] == [None]


def test_a_default_is_cast_to_its_column() -> None:
    table = [f("a"), f("d", DecimalType(10, 2), CURRENT_DEFAULT="7"), f("s", STRING, CURRENT_DEFAULT="NULL")]
    result = rows(table, plan(table, [f("a")]), {"a": [1]})
    assert [str(v) for v in result["d"]] == ["7.00"]
    assert result["s"] == [None]


def test_a_default_that_cannot_be_evaluated_stops_only_writes_that_need_it() -> None:
    table = [f("a"), f("b", CURRENT_DEFAULT="no_such_function(1)")]
    message = refusal("DELTA_UNSUPPORTED_EXPRESSION", table, [f("a")])
    for part in ("'b'", TABLE, "no_such_function", "nothing can be written"):
        assert part in message
    assert plan(table).columns[1].source == "input"


def test_a_default_uses_no_column() -> None:
    refusal("DELTA_COLUMN_NOT_FOUND", [f("a"), f("b", CURRENT_DEFAULT="a + 1")], [f("a")])


def test_without_the_feature_a_default_means_nothing() -> None:
    planned = plan([f("a"), f("b", CURRENT_DEFAULT="1")], [f("a")], without=("allowColumnDefaults",))
    assert planned.columns[1].source == "null"


# --- generated columns


def generated(expression: str, kind: DataType = LONG) -> StructField:
    return f("g", kind, delta__generationExpression=expression)


def test_a_generated_column_is_computed_or_checked() -> None:
    table = [f("a"), generated("a + 1")]
    assert rows(table, plan(table, [f("a")]), {"a": [1, None]}) == {"a": [1, None], "g": [2, None]}
    both = plan(table)
    assert (both.columns[1].source, both.columns[1].input) == ("generated", 1)
    assert rows(table, both, {"a": [1, None], "g": [2, None]})["g"] == [2, None]
    with pytest.raises(ConstraintViolationError, match=r"Generated Column \(g <=> a \+ 1\)"):
        rows(table, both, {"a": [1], "g": [3]})


def test_a_generated_column_is_cast_where_its_expression_has_another_type() -> None:
    table = [f("t", TIMESTAMP), generated("CAST(t AS DATE)", DATE)]
    assert plan(table, table[:1]).uses_time_zone
    narrow = [f("a"), generated("a + 1", INTEGER)]
    planned = plan(narrow, narrow[:1])
    assert planned.columns[1].expression is not None
    assert planned.columns[1].expression.sql == "a + 1"
    assert rows(narrow, planned, {"a": [1]})["g"] == [2]
    with pytest.raises(DeltaError, match=r"'g' of table .*, a \+ 1, cannot be computed"):
        rows(narrow, planned, {"a": [2**40]}, ansi=True)


def test_ansi_decides_in_the_task() -> None:
    table = [f("a"), generated("a + 1")]
    planned = plan(table, table[:1])
    assert rows(table, planned, {"a": [2**63 - 1]}, ansi=False)["g"] == [-(2**63)]
    with pytest.raises(DeltaError) as e:
        rows(table, planned, {"a": [2**63 - 1]}, ansi=True)
    assert e.value.code == "ARITHMETIC_OVERFLOW"
    assert f"'g' of table {TABLE}" in str(e.value)


def test_usual_generated_columns_and_constraints_hold_together() -> None:
    table = [
        f("t", TIMESTAMP),
        f("day", DATE, False, delta__generationExpression="CAST(t AS DATE)"),
        f("year", INTEGER, delta__generationExpression="YEAR(t)"),
        f("kind", STRING),
        f("short", STRING, delta__generationExpression="SUBSTRING(kind, 1, 2)"),
    ]
    properties = {
        "delta.constraints.recent": "day >= '2024-01-01'",
        "delta.constraints.known": "lower(kind) IN ('click', 'view') AND length(short) = 2",
    }
    planned = plan(table, [table[0], table[3]], configuration=properties, time_zone="Asia/Tokyo")
    assert planned.uses_time_zone
    evening = dt.datetime(2023, 12, 31, 15, 0, tzinfo=dt.timezone.utc)
    instants = pa.array([evening], pa.timestamp("us", "Asia/Tokyo"))
    result = rows(table, planned, {"t": instants, "kind": pa.array(["View"])})
    assert result["day"] == [dt.date(2024, 1, 1)]
    assert result["year"] == [2024]
    assert result["short"] == ["Vi"]
    with pytest.raises(ConstraintViolationError, match=r"(?s)'known'.*kind : other"):
        rows(table, planned, {"t": instants, "kind": pa.array(["other"])})
    before = pa.array([evening - dt.timedelta(microseconds=1)], pa.timestamp("us", "Asia/Tokyo"))
    with pytest.raises(ConstraintViolationError, match=r"(?s)'recent'.*day : 2023-12-31"):
        rows(table, planned, {"t": before, "kind": pa.array(["View"])})


def test_all_expressions_of_a_write_know_one_moment() -> None:
    table = [f("a"), *(f(n, TIMESTAMP, CURRENT_DEFAULT="current_timestamp()") for n in ("b", "c"))]
    result = rows(table, plan(table, table[:1]), {"a": [1, 2]})
    assert len({*result["b"], *result["c"]}) == 1


def test_a_generated_column_cannot_use_another() -> None:
    other = f("h", delta__generationExpression="g + 1")
    message = refusal("DELTA_INVALID_GENERATED_COLUMN_REFERENCES", [f("a"), generated("a + 1"), other], [f("a")])
    assert "'h'" in message
    assert "'g'" in message


def test_an_unsupported_generation_stops_every_write() -> None:
    for incoming in ([f("a")], [f("a"), f("g")]):
        message = refusal("DELTA_UNSUPPORTED_EXPRESSION", [f("a"), generated("no_such_function(a)")], incoming)
        for part in ("'g'", TABLE, "no_such_function"):
            assert part in message


def test_given_values_of_a_type_that_is_not_compared_are_refused() -> None:
    kind = ArrayType(LONG)
    table = [f("a", kind), generated("a", kind)]
    assert "leave the column out" in refusal("DELTA_UNSUPPORTED_EXPRESSION", table)
    array = pa.array([[1], None], pa.list_(pa.int64()))
    assert rows(table, plan(table, table[:1]), {"a": array})["g"] == [[1], None]


def test_without_the_feature_generation_means_nothing() -> None:
    planned = plan([f("a"), generated("a + 1")], without=("generatedColumns",))
    assert planned.columns[1].source == "input"


# --- identity columns


def identity(explicit: Any = False, kind: DataType = LONG, **more: Any) -> StructField:
    metadata = {"delta__identity__start": 1, "delta__identity__step": 2, **more}
    return f("id", kind, delta__identity__allowExplicitInsert=explicit, **metadata)


def test_an_identity_column_that_does_not_come_is_numbered() -> None:
    table = [f("a"), identity(delta__identity__highWaterMark=5)]
    planned = plan(table, [f("a")])
    assert planned.columns[1].source == "identity"
    assert planned.columns[1].identity == IdentityColumn(1, 2, 5, False)
    assert rows(table, planned, {"a": [0, 0]})["id"] == [7, 9]
    assert rows(table, plan([f("a"), identity()], [f("a")]), {"a": [0, 0]})["id"] == [1, 3]


def test_values_for_an_identity_column_are_kept_where_it_takes_them() -> None:
    message = refusal("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", [f("a"), identity()])
    assert "'id'" in message
    assert TABLE in message
    table = [f("a"), identity(True)]
    planned = plan(table)
    assert rows(table, planned, {"a": [1, 2], "id": [7, None]})["id"] == [7, None]


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (identity(delta__identity__step=0), "step 0"),
        (identity(kind=INTEGER), "not BIGINT"),
        (identity("perhaps"), "'perhaps'"),
        (identity(delta__identity__start="one"), "'one'"),
        (identity(delta__identity__start=2**63), "not a BIGINT"),
        (identity(delta__identity__start=1.5), "1.5"),
        (f("id", delta__identity__start=1), "delta.identity.step"),
    ],
)
def test_identity_metadata_that_makes_no_sense_is_refused(field: StructField, problem: str) -> None:
    assert problem in refusal("DELTA_INVALID_SCHEMA", [f("a"), field], [f("a")])


def test_without_the_feature_identity_means_nothing() -> None:
    assert plan([f("a"), identity()], without=("identityColumns",)).columns[1].source == "input"


# --- what rows have to keep


def test_constraints_invariants_and_replace_where_are_checked_in_this_order() -> None:
    inner = StructType((f("y", delta__invariants='{"expression":{"expression":"s.y < 9"}}'),))
    table = [f("x", delta__invariants='{"expression":{"expression":"x > 3"}}'), f("s", inner)]
    properties = {"delta.constraints.b": "x < 100", "delta.constraints.a": "x <> 50", "delta.appendOnly": "false"}
    planned = plan(table, configuration=properties, replace_where="x BETWEEN 10 AND 90")
    assert [(c.kind, c.name, c.expression.sql) for c in planned.checks] == [
        ("check", "a", "x <> 50"),
        ("check", "b", "x < 100"),
        ("invariant", "x", "x > 3"),
        ("invariant", "s.y", "s.y < 9"),
        ("replace_where", "replaceWhere", "x BETWEEN 10 AND 90"),
    ]
    structs = pa.array([{"y": 1}], pa.struct([("y", pa.int64())]))
    assert rows(table, planned, {"x": [20], "s": structs})["x"] == [20]
    for x, code in ((50, "CONSTRAINT"), (101, "CONSTRAINT"), (2, "CONSTRAINT"), (5, "REPLACE_WHERE")):
        with pytest.raises(ConstraintViolationError, match=code):
            rows(table, planned, {"x": [x], "s": structs})
    with pytest.raises(ConstraintViolationError, match=r"'s\.y'"):
        rows(table, planned, {"x": [20], "s": pa.array([None], structs.type)})


def test_a_constraint_on_a_missing_column_sees_null() -> None:
    table = [f("a"), f("b")]
    planned = plan(table, [f("a")], configuration={"delta.constraints.c": "b > 0"})
    with pytest.raises(ConstraintViolationError, match="b : null"):
        rows(table, planned, {"a": [1]})


def test_constraints_use_names_whatever_their_case() -> None:
    table = [f("Amount")]
    planned = plan(table, configuration={"Delta.Constraints.c": "amount > 0"})
    assert planned.checks[0].name == "c"
    with pytest.raises(ConstraintViolationError, match="Amount : -1"):
        rows(table, planned, {"AMOUNT": [-1]})


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ({"configuration": {"delta.constraints.odd": "no_such_function(a)"}}, "the CHECK constraint 'odd'"),
        ({"replace_where": "no_such_function(a)"}, "replaceWhere"),
    ],
)
def test_a_condition_that_cannot_be_evaluated_stops_the_write(where: dict[str, Any], what: str) -> None:
    message = refusal("DELTA_UNSUPPORTED_EXPRESSION", [f("a")], **where)
    assert what in message
    assert "no_such_function" in message


def test_a_condition_on_a_column_that_is_not_there_stops_the_write() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"constraint 'odd' of table .*'b'"):
        plan([f("a")], configuration={"delta.constraints.odd": "b > 0"})


def test_a_condition_is_boolean() -> None:
    assert "BIGINT" in refusal(
        "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", [f("a")], configuration={"delta.constraints.c": "a + 1"}
    )
    never = plan([f("a")], configuration={"delta.constraints.c": "NULL"})
    with pytest.raises(ConstraintViolationError):
        rows([f("a")], never, {"a": [1]})


@pytest.mark.parametrize("value", ["x > 3", '{"expression": "x > 3"}', '{"expression": {"expression": 3}}', "null"])
def test_an_invariant_that_cannot_be_read_stops_the_write(value: str) -> None:
    assert "'x'" in refusal("DELTA_UNRECOGNIZED_INVARIANT", [f("x", delta__invariants=value)])


def test_the_time_zone_counts_where_a_condition_needs_it() -> None:
    table = [f("t", TIMESTAMP), f("d", DOUBLE)]
    zoned = plan(table, configuration={"delta.constraints.c": "t > '2024-01-01 00:00:00'"}, time_zone="Asia/Tokyo")
    assert zoned.uses_time_zone
    assert not plan(table, configuration={"delta.constraints.c": "d > 0"}).uses_time_zone


def test_a_plan_crosses_to_other_processes() -> None:
    table = [f("a"), generated("a + 1"), f("d", CURRENT_DEFAULT="1")]
    planned = plan(table, [f("a")], configuration={"delta.constraints.c": "a > 0 AND g < 9"})
    assert pickle.loads(pickle.dumps(planned)) == planned


def test_errors_are_users_errors() -> None:
    with pytest.raises(UserError):
        plan([f("a")], [f("b")])
