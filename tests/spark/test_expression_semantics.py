"""The same expression has the same value, or the same lack of one, here and in Spark itself."""

from __future__ import annotations

import contextlib
import math
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.evaluate import evaluate
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import type_of
from delta_pyds.expr.parse import parse_expression
from tests.support.expressions import FAMILIES, ROWS, SCHEMA, table
from tests.support.sampling import sampled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table()


@pytest.fixture(scope="module")
def frame(spark: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("expressions") / "rows.parquet"
    pq.write_table(rows.append_column("row", pa.array(range(ROWS), pa.int32())), path)
    return spark.read.parquet(str(path)).repartition(1).sortWithinPartitions("row").cache()


@contextlib.contextmanager
def _session(spark: SparkSession, time_zone: str, ansi: bool) -> Iterator[None]:
    settings = {
        "spark.sql.session.timeZone": time_zone, "spark.sql.ansi.enabled": str(ansi).lower(),
        # compiling a thousand expressions takes far longer than interpreting them
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.subexpressionElimination.enabled": "false",
    }  # fmt: skip
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _plain(array: pa.Array) -> list[Any]:
    """Values that can be compared: counts for dates and timestamps, bits for doubles."""
    kind = array.type
    if pa.types.is_date32(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_floating(kind):
        return [v if v is None else "NaN" if math.isnan(v) else struct.pack(">d", v) for v in array.to_pylist()]
    if pa.types.is_string(kind):
        return list(array.cast(pa.binary()).to_pylist())
    if pa.types.is_list(kind) and pa.types.is_date32(kind.value_type):
        return list(array.cast(pa.list_(pa.int32())).to_pylist())
    return list(array.to_pylist())


def _type_name(kind: pa.DataType) -> str:
    """The type without the zone's name, which is the session's in Spark, and without what is nullable."""
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}, {kind.tz is not None}]"
    if pa.types.is_map(kind):
        return f"map<{_type_name(kind.key_type)},{_type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ",".join(f"{f.name}:{_type_name(f.type)}" for f in kind) + ">"
    return str(kind)


class _Ours:
    """Our evaluation of an expression: its values, and the rows where it is an error."""

    def __init__(self, text: str, table: pa.Table, time_zone: str, ansi: bool) -> None:
        self.expr = parse_expression(text, SCHEMA, time_zone=time_zone, ansi=ansi).expr
        batch = table.combine_chunks().to_batches()[0]
        self.failed: dict[int, str] = {}
        try:
            self.array = evaluate(self.expr, batch, batch.num_rows)
        except ExpressionError:
            kind = arrow_type(type_of(self.expr))
            parts = []
            for row in range(batch.num_rows):
                try:
                    parts.append(evaluate(self.expr, batch.slice(row, 1), 1))
                except ExpressionError as e:
                    self.failed[row] = e.code or ""
                    parts.append(pa.nulls(1, kind))
            self.array = pa.concat_arrays(parts)


class _Interpreter:
    """Evaluates expressions on single rows within Spark's JVM, so that one failure does not hide another."""

    def __init__(self, spark: SparkSession, frame: DataFrame, texts: list[str]) -> None:
        jvm: Any = spark.sparkContext._jvm
        wanted = frame.selectExpr("row", *(f"{text} AS e{n}" for n, text in enumerate(texts)))
        project = wanted._jdf.queryExecution().optimizedPlan()
        while project.getClass().getSimpleName() != "Project":
            project = project.child()
        package = jvm.org.apache.spark.sql.catalyst.expressions
        attributes = package.package.AttributeSeq(project.child().output())
        self.bound = {
            text: package.BindReferences.bindReference(project.projectList().apply(n + 1), attributes, False)
            for n, text in enumerate(texts)
        }
        self.rows = frame._jdf.queryExecution().executedPlan().executeCollect()

    def fails(self, text: str, row: int) -> bool:
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        try:
            self.bound[text].eval(self.rows[row])
        except (Py4JJavaError, PySparkException):
            return True
        return False


# constants that Spark already fails to fold
FAILING_WITHOUT_ROWS = frozenset(("cast('abc' AS int)",))
RUNS = [
    *((family, "UTC", ansi) for family in FAMILIES for ansi in (True, False)),
    *(
        ("dates", zone, ansi)
        for zone, ansi in (("America/New_York", True), ("America/New_York", False), ("Asia/Kolkata", True))
    ),
]


@pytest.mark.parametrize(("family", "time_zone", "ansi"), RUNS)
def test_an_expression_has_the_values_that_spark_gives_it(
    spark: SparkSession, frame: DataFrame, rows: pa.Table, family: str, time_zone: str, ansi: bool
) -> None:
    ours = {text: _Ours(text, rows, time_zone, ansi) for text in sampled(FAMILIES[family], one_in=3)}
    wrong: list[tuple[Any, ...]] = []
    with _session(spark, time_zone, ansi):
        for start in range(0, len(ours), 300):
            some = list(ours)[start : start + 300]
            wanted = [f"{_spared(text, ours[text])} AS e{n}" for n, text in enumerate(some)]
            table = frame.selectExpr(*wanted).toArrow()
            for n, text in enumerate(some):
                theirs, mine = table.column(n).combine_chunks(), ours[text].array
                if _type_name(theirs.type) != _type_name(mine.type):
                    wrong.append((text, "here", str(mine.type), "Spark", str(theirs.type)))
                    continue
                a, b = _plain(mine), _plain(theirs)
                wrong += [(text, row, "here", a[row], "Spark", b[row]) for row in range(ROWS) if a[row] != b[row]][:2]
        failing = [text for text in ours if ours[text].failed]
        judge = _Interpreter(spark, frame, [text for text in failing if text not in FAILING_WITHOUT_ROWS])
        for text in judge.bound:
            rows_failed = list(ours[text].failed)
            for row in dict.fromkeys((rows_failed[0], rows_failed[-1])):
                if ours[text].failed[row] != "DELTA_UNSUPPORTED_EXPRESSION" and not judge.fails(text, row):
                    wrong.append((text, row, "here", ours[text].failed[row], "Spark has a value"))
    assert not wrong, "\n".join(map(repr, wrong))


def _spared(text: str, ours: _Ours) -> str:
    """The expression, not evaluated for rows that are errors here."""
    if not ours.failed:
        return f"({text})"
    return f"CASE WHEN row IN ({','.join(map(str, ours.failed))}) THEN NULL ELSE ({text}) END"
