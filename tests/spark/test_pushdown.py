"""Filters that Spark pushes: its bug, shown with a toy source, and that no setting makes us return a wrong row."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition
from pyspark.sql.types import StructType

from delta_pyds.spark.versions import VERSIONS_WITH_PUSHDOWN_PER_SCAN
from tests.support.table_builder import TableBuilder

CONF = "spark.sql.python.filterPushdown.enabled"


class ToySource(DataSource):
    """Two partitions, a=1 and a=2; prunes by a pushed ``a = x`` and returns every filter as residual."""

    @classmethod
    def name(cls) -> str:
        return "toy_pruning_source"

    def schema(self) -> str:
        return "a bigint"

    def reader(self, schema: StructType) -> DataSourceReader:
        return ToyReader()


class ToyReader(DataSourceReader):
    def __init__(self) -> None:
        self.values = [1, 2]

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        for item in filters:
            if isinstance(item, EqualTo):
                self.values = [v for v in self.values if v == item.value]
        return iter(filters)

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(v) for v in self.values]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": pa.array([partition.value], pa.int64())})


@pytest.fixture(params=["on", "off"])
def session(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session of its own, with filter pushdown on and off."""
    child = spark.newSession()
    child.conf.set(CONF, "true" if request.param == "on" else "false")
    yield child


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"a": "long", "p": "string"}, partition_columns=["p"])
    built.create()
    for a in (1, 2):
        built.append([{"a": a, "p": f"p{a}"}])
    return built


def pushdown_leaks(spark: SparkSession) -> bool:
    """Whether the partitions of one use of a DataFrame show up in the next one."""
    session = spark.newSession()
    session.conf.set(CONF, "true")
    session.dataSource.register(ToySource)
    df = session.read.format("toy_pruning_source").load()
    assert df.filter("a = 1").count() == 1
    return df.count() != 2


def test_this_spark_is_listed_as_it_behaves(spark: SparkSession) -> None:
    """When a new Spark keeps pushed filters with the scan, add its version to VERSIONS_WITH_PUSHDOWN_PER_SCAN."""
    assert pushdown_leaks(spark) == (pyspark.__version__ not in VERSIONS_WITH_PUSHDOWN_PER_SCAN)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("registered", [True, False])
def test_one_load_serves_many_filters_whatever_the_setting(
    session: SparkSession, table: TableBuilder, registered: bool
) -> None:
    if registered:
        import delta_pyds

        delta_pyds.register(session)
    df = session.read.format("deltapy").load(str(table.path))
    assert df.filter("a = 1").count() == 1
    assert df.count() == 2
    assert sorted(r.a for r in df.filter("a = 1").union(df.filter("a = 2")).collect()) == [1, 2]
    left, right = df.filter("p = 'p1'").alias("l"), df.filter("p = 'p2'").alias("r")
    assert left.crossJoin(right).count() == 1
    df.createOrReplaceTempView("pushed")
    query = "SELECT (SELECT count(*) FROM pushed WHERE a = 2) AS one, (SELECT count(*) FROM pushed) AS both"
    assert tuple(session.sql(query).first()) == (1, 2)


def test_where_needs_no_pushdown_and_survives_it(session: SparkSession, table: TableBuilder) -> None:
    df = session.read.format("deltapy").option("where", "a = 1").load(str(table.path))
    assert df.filter("p = 'p2'").count() == 0
    assert df.count() == 1


def test_a_load_used_once_may_ask_for_pushdown(session: SparkSession, table: TableBuilder) -> None:
    def fresh(condition: str) -> list[int]:
        df = session.read.format("deltapy").option("pushFilters", "true").load(str(table.path))
        return sorted(r.a for r in df.filter(condition).collect())

    assert fresh("a = 1") == [1]
    assert fresh("a > 1 AND p LIKE 'p%'") == [2]
    assert fresh("a IN (1, 2) AND p IS NOT NULL") == [1, 2]
    assert fresh("NOT a = 1") == [2]
    assert fresh("a % 2 = 0") == [2]
    assert fresh("p <=> 'p1'") == [1]


def test_pushed_filters_rule_out_files(spark: SparkSession, table: TableBuilder) -> None:
    """The file that a pushed filter rules out is not even opened: it may be gone."""
    session = spark.newSession()
    session.conf.set(CONF, "true")
    table.data_file(table.active()[0]).unlink()
    pushed = session.read.format("deltapy").option("pushFilters", "true").load(str(table.path))
    assert [r.a for r in pushed.filter("p = 'p2'").collect()] == [2]


def test_decimals_of_more_digits_than_python_keeps_by_default_are_pushed_exactly(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set(CONF, "true")
    value = "1234567890123456789012345678.0123456789"
    built = TableBuilder(tmp_path / "d", {"a": "long", "d": "decimal(38,10)"}, partition_columns=["d"])
    built.create()
    built.commit([built.write_file([{"a": 1}], {"d": Decimal(value)})])
    pushed = session.read.format("deltapy").option("pushFilters", "true").load(str(built.path))
    assert pushed.filter(f"d = {value}").count() == 1
