"""Timestamps without a zone: the option, the assumption, and the check that the assumption was right."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.spark.planning.time_zone import assumed_time_zone
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)

NEW_YORK = "America/New_York"
UTC = dt.timezone.utc


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"id": "long", "ts": "timestamp"})
    built.create()
    built.append([{"id": h, "ts": dt.datetime(2024, 3, 1, h, tzinfo=UTC)} for h in range(24)])
    return built


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", NEW_YORK)
    yield session


def ids(session: SparkSession, table: TableBuilder, **options: str) -> list[int]:
    df = session.read.format("deltapy").options(**options).load(str(table.path))
    return sorted(r.id for r in df.collect())


def test_the_option_says_what_a_timestamp_without_a_zone_means(new_york: SparkSession, table: TableBuilder) -> None:
    where = "ts >= '2024-03-01 10:00:00'"
    assert ids(new_york, table, where=where, timeZone=NEW_YORK) == list(range(15, 24))
    assert ids(new_york, table, where="ts >= '2024-03-01T15:00:00Z'") == list(range(15, 24))


def test_read_takes_the_sessions_time_zone(new_york: SparkSession, table: TableBuilder) -> None:
    df = delta_pyds.read(new_york, str(table.path), where="ts >= '2024-03-01 10:00:00'")
    assert df.count() == 9
    filtered = new_york.read.format("deltapy").load(str(table.path)).filter("ts >= '2024-03-01 10:00:00'")
    assert_df_equality(filtered, df, ignore_row_order=True, ignore_nullable=True)


def test_an_assumed_zone_that_is_not_the_sessions_is_refused(new_york: SparkSession, table: TableBuilder) -> None:
    assert assumed_time_zone() != NEW_YORK
    with pytest.raises(PySparkException, match='"timeZone", "America/New_York"'):
        ids(new_york, table, where="ts >= '2024-03-01 10:00:00'")
    with pytest.raises(PySparkException, match="timeZone"):
        ids(new_york, table, where="ts >= '2999-03-01 10:00:00'")  # nothing to read, and still not believed


def test_an_assumed_zone_for_time_travel_is_checked_too(new_york: SparkSession, table: TableBuilder) -> None:
    table.set_mtime(0, 1_700_000_000_000)
    table.set_mtime(1, 1_700_003_600_000)
    with pytest.raises(PySparkException, match="timeZone"):
        ids(new_york, table, timestampAsOf="2023-11-14 22:50:00")
    assert ids(new_york, table, timestampAsOf="2023-11-14 17:50:00", timeZone=NEW_YORK) == []
    assert ids(new_york, table, timestampAsOf="2023-11-14T22:50:00Z") == []


def test_a_predicate_that_needs_no_zone_needs_no_option(new_york: SparkSession, table: TableBuilder) -> None:
    assert ids(new_york, table, where="id < 3") == [0, 1, 2]


def test_partition_timestamps_without_a_zone_are_the_sessions(new_york: SparkSession, tmp_path: Path) -> None:
    built = TableBuilder(tmp_path / "p", {"id": "long", "p": "timestamp"}, partition_columns=["p"])
    built.create()
    built.append([{"id": 1}], partition_values={"p": "2024-03-01 10:00:00"})
    df = new_york.read.format("deltapy").option("timeZone", NEW_YORK).load(str(built.path))
    assert df.selectExpr("unix_timestamp(p)").first()[0] == 1709305200
    assert df.filter("p = '2024-03-01 10:00:00'").count() == 1


SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
where = "ts >= timestamp'2024-03-01 10:00:00'"
filtered = spark.read.format("deltapy").load(sys.argv[1]).filter(where).count()
pruned = spark.read.format("deltapy").option("where", where).load(sys.argv[1]).count()
print("counts", filtered, pruned)
spark.stop()
"""


@pytest.mark.one_program_in(4)
def test_the_zone_of_sparks_jvm_is_taken_and_not_the_machines(table: TableBuilder, tmp_path: Path) -> None:
    arguments = "--driver-java-options -Duser.timezone=Asia/Tokyo --conf spark.ui.enabled=false --driver-memory 1g"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(table.path)],
        capture_output=True,
        text=True,
        timeout=ONLY_A_HANG_S,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"{arguments} pyspark-shell",
        },
    )
    # 10:00 in Tokyo is 01:00 UTC: the rows of 01:00 to 23:00
    assert "counts 23 23" in done.stdout, done.stdout + done.stderr[-3000:]
