"""What a user sees of one error: one exception with one sentence, one record in the log, nothing of our own frames."""

from __future__ import annotations

import logging
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import ColumnNotFoundError, DeltaError, UserError
from delta_pyds.spark.spark_errors import one_record_of_an_error

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
INSIDE = ("_deltapy_", "+- ", "'Filter", "'Project", "JVM stacktrace", "During handling", "direct cause", "py4j")


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        raised = record.exc_info[1] if record.exc_info else ""
        self.texts.append(f"{record.getMessage()}\n{raised}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """PySpark's log of errors, with what it says of the exception."""
    records = Records()
    for name in LOGGERS:
        PySparkLogger.getLogger(name).addHandler(records)
    yield records.texts
    for name in LOGGERS:
        PySparkLogger.getLogger(name).removeHandler(records)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "people")
    delta_pyds.write(spark.createDataFrame([(1, "Ada"), (2, "Bo")], "id INT, name STRING"), path, mode="append")
    yield path
    delta_pyds.uninstall()


CONDITIONS: dict[str, Callable[[], Column | str]] = {
    "text": lambda: "nam = 'Ada'",
    "foreign text": lambda: "soundex(nam) = 'A300' AND id = 1",
    "column": lambda: F.col("nam") == "Ada",
    "foreign column": lambda: F.soundex("nam") == "A300",
}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("engine", ["auto", "spark"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_column_that_is_not_there(
    spark: SparkSession, path: str, logged: list[str], engine: str, condition: str
) -> None:
    given, table = CONDITIONS[condition](), DeltaTable.forPath(spark, path, engine=engine)  # type: ignore[arg-type]
    commands: tuple[Callable[[], object], ...] = (
        lambda: table.delete(given),
        lambda: table.update(given, {"name": F.lit("x")}),
        lambda: table.update("id = 1", {"name": F.expr(given) if isinstance(given, str) else given}),
    )
    for command in commands:
        logged.clear()
        with pytest.raises(ColumnNotFoundError, match=r"`nam` cannot be resolved.*`name`, `id`\]") as found:
            command()
        assert isinstance(found.value, AnalysisException)
        [record] = logged
        for shown in (record, "".join(traceback.format_exception(found.value)), str(found.value.parameters)):
            assert not [word for word in INSIDE if word in shown], shown


def test_a_column_of_another_frame(spark: SparkSession, path: str) -> None:
    other = spark.createDataFrame([(1,)], "id INT")
    with pytest.raises(UserError, match='"id" missing from "id", "name" in') as found:
        DeltaTable.forPath(spark, path).delete(other["id"] == 1)
    shown = "".join(traceback.format_exception(found.value))
    assert not [word for word in INSIDE if word in shown], shown


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM deltapy.`<T>` WHERE nam = 'Ada'",
        "UPDATE deltapy.`<T>` SET name = soundex(nam) WHERE id = 1",
        "MERGE INTO deltapy.`<T>` t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED AND t.nam = '' THEN DELETE",
        "SELECT nam FROM deltapy.`<T>`",
    ],
)
def test_a_statement_logs_as_often_as_spark(
    spark: SparkSession, path: str, logged: list[str], text: str, installed: bool
) -> None:
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nam FROM range(3)")
    as_spark = len(logged)
    logged.clear()
    if installed:
        delta_pyds.install(spark)
    run = spark.sql if installed else lambda text: delta_pyds.sql(spark, text)
    with pytest.raises(AnalysisException, match="nam") as found:
        run(text.replace("<T>", path))
    assert len(logged) == as_spark == 1 and "_deltapy_" not in logged[0]
    shown = "".join(traceback.format_exception(found.value))
    assert "direct cause" not in shown and "During handling" not in shown and "_deltapy_" not in shown


def test_what_is_tried_again_and_succeeds_logs_nothing(spark: SparkSession, logged: list[str]) -> None:
    with one_record_of_an_error():
        with pytest.raises(AnalysisException):
            spark.range(1).filter("nope = 1")
        with one_record_of_an_error(), pytest.raises(AnalysisException):
            spark.range(1).filter("nope = 2")
    assert not logged
    with pytest.raises(ValueError, match="another"), one_record_of_an_error():
        with pytest.raises(AnalysisException):
            spark.range(1).filter("nope = 1")
        raise ValueError("another")
    assert not logged
    with pytest.raises(AnalysisException), one_record_of_an_error():
        spark.range(1).filter("nope = 1")
    assert len(logged) == 1 and "'Filter" in logged[0]  # Spark's own record, of a plan of the user's


@pytest.mark.parametrize("form", ["delta", "deltapy"])
def test_an_error_of_the_format_comes_alone(spark: SparkSession, path: str, form: str) -> None:
    delta_pyds.install(spark, delta=True)
    reader = spark.read.format(form)
    feed = {"readChangeFeed": "true", "startingVersion": "0", "computeChanges": "never"}
    failing: list[tuple[str, Callable[[], object]]] = [
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).collect()),
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).count()),
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).show()),
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).toPandas()),
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).toArrow()),
        ("DELTA_MISSING_CHANGE_DATA", lambda: reader.options(**feed).load(path).first()),
        ("DELTA_VERSION_NOT_FOUND", lambda: spark.read.format(form).option("versionAsOf", 9).load(path)),
        ("PATH_NOT_FOUND", lambda: spark.read.format(form).load(f"{path}/none")),
    ]
    for code, run in failing:
        with pytest.raises(DeltaError) as found, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run()
        assert not [one for one in warned if "Traceback" in str(one.message)]
        assert found.value.code == code and isinstance(found.value, AnalysisException)
        shown = "".join(traceback.format_exception(found.value))
        assert shown.count("Traceback (most recent call last)") == 1, shown
        assert not [word for word in INSIDE if word in shown], shown
    delta_pyds.uninstall()
    with pytest.raises(AnalysisException, match="Traceback"):
        spark.read.format("deltapy").options(**feed).load(path).collect()


def test_a_column_of_a_commands_own_query_is_no_column_of_the_table(spark: SparkSession, path: str) -> None:
    """It would delete rows by their place in a file."""
    table = DeltaTable.forPath(spark, path)
    inside: tuple[Column | str, ...] = (
        "_deltapy_position < 3",
        "soundex(name) = 'A300' OR `_DELTAPY_POSITION` = 0",
        F.col("_deltapy_position") < 3,
    )
    commands: list[Callable[[], object]] = []
    for condition in inside:
        commands.append(lambda condition=condition: table.delete(condition))
        commands.append(lambda condition=condition: table.update(condition, {"name": F.lit("x")}))
    commands.append(lambda: table.update("id = 1", {"id": "_deltapy_position"}))
    merge = table.alias("t").merge(spark.range(3).alias("s"), "t._deltapy_position = s.id")
    commands.append(lambda: merge.whenMatchedDelete().execute())
    for command in commands:
        with pytest.raises(DeltaError, match=r"(?i)_deltapy_position"):
            command()
    assert delta_pyds.load_snapshot(path).version == 0
    table.delete("name = '_deltapy_position' AND soundex(name) = 'x'")
