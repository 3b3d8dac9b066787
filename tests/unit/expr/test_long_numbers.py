"""Numbers of more digits than Python converts: refused as what they are, and never by a bare ValueError."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_pyds import verify
from delta_pyds.columnar.evaluate import matches
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parse import parse_expression, parse_predicate
from delta_pyds.protocol.schema import DATE, LONG, STRING, StructField, StructType
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import write_rows

SCHEMA = StructType((StructField("a", LONG), StructField("s", STRING), StructField("d", DATE)))
DIGITS = "9" * 5_000


@pytest.mark.parametrize(
    "text",
    [
        f"a = {DIGITS}", f"a = -{DIGITS}", f"a = {DIGITS}L", f"a = {DIGITS}Y", f"a = {DIGITS}.5", f"a = 1e{DIGITS}",
        f"a = {DIGITS}D", f"a = {DIGITS}F", f"a = {DIGITS}BD", f"a IN (1, {DIGITS})", f"a IN ({DIGITS},{DIGITS})",
        f"CAST(a AS DECIMAL({DIGITS}, 2)) = 1", f"d + INTERVAL {DIGITS} DAYS = d", f"d + INTERVAL '{DIGITS}' DAY = d",
        f"d = DATE'{DIGITS}-01-01'", f"s LIKE SUBSTRING(s, {DIGITS}, 1)", f"s RLIKE 'a{{{DIGITS}}}'",
    ],
)  # fmt: skip
def test_a_number_of_five_thousand_digits_is_refused(text: str) -> None:
    """In a predicate, and in constraints, defaults and generated columns."""
    with pytest.raises(ExpressionError):
        parse_predicate(text, SCHEMA, time_zone="UTC")
    with pytest.raises(ExpressionError):
        parse_expression(text, SCHEMA, time_zone="UTC", ansi=True)


@pytest.mark.parametrize(
    "text", [f"a = CAST('{DIGITS}' AS BIGINT)", f"a = CAST('{DIGITS}' AS DECIMAL(38, 0))", f"a = '{DIGITS}'"]
)
def test_a_text_of_five_thousand_digits_is_no_number(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_predicate(text, SCHEMA, time_zone="UTC")
    bound = parse_expression(text, SCHEMA, time_zone="UTC", ansi=True).expr
    with pytest.raises(ExpressionError):
        matches(bound, pa.RecordBatch.from_arrays([pa.array([1])], names=["a"]), 1)


@pytest.mark.parametrize(
    ("metadata", "properties", "feature"),
    [
        ({"delta.generationExpression": DIGITS}, {}, "generatedColumns"),
        ({"CURRENT_DEFAULT": DIGITS}, {}, "allowColumnDefaults"),
        ({}, {"delta.constraints.small": f"id < {DIGITS}"}, "checkConstraints"),
    ],
)
def test_a_table_whose_rules_hold_such_a_number_is_verified_and_not_written(
    tmp_path: Path, metadata: dict[str, str], properties: dict[str, str], feature: str
) -> None:
    names = (("id", {}), ("n", metadata))
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": more} for name, more in names]
    table = TableBuilder(
        tmp_path, {"type": "struct", "fields": fields}, properties=properties, features=([], [feature])
    )
    table.create()
    table.append([{"id": 1, "n": 1}])
    verify(str(tmp_path)).raise_for_errors()
    with pytest.raises(ExpressionError, match="nothing can be written"):
        write_rows(tmp_path, {"id": "long"}, [{"id": 2}])
