"""``register``, ``read`` and ``write`` with a session in hand: threads, errors, results, rows that are not Spark's."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    FileNotFoundInStorageError,
    OptionError,
    TableNotFoundError,
    TimeTravelError,
    UserError,
    WorkerPythonError,
)
from delta_pyds.spark.worker_python import check_worker_python
from tests.support.commits import info
from tests.support.limits import ONLY_A_HANG_S
from tests.support.table_writes import read_sorted, write_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)


def test_writers_in_a_pool_of_threads_and_what_each_of_them_did(spark: SparkSession, tmp_path: Path) -> None:
    """A thread of its own has no active session in the JVM, in which Spark looks for a source."""
    delta_pyds.register(spark)
    delta_pyds.write(spark.range(0), tmp_path)

    def by_function(number: int) -> delta_pyds.WriteResult:
        return delta_pyds.write(spark.range(number + 1).coalesce(1), tmp_path, mode="append")

    def by_format(number: int) -> None:
        spark.range(number + 1).coalesce(1).write.format("deltapy").mode("append").save(str(tmp_path))

    def read(_: int) -> int:
        return spark.read.format("deltapy").load(str(tmp_path)).count()

    with ThreadPoolExecutor(6) as pool:  # as many threads as calls: each begins without a session
        plain = [pool.submit(by_format, n) for n in range(2)]
        results = [f.result() for f in [pool.submit(by_function, n) for n in range(3)]]
        counted = pool.submit(read, 0).result()
        assert [f.result() for f in plain] == [None, None]
    assert 0 <= counted <= 9 and sum(n + 1 for n in (0, 1, 0, 1, 2)) == len(read_sorted(tmp_path, "id"))
    for number, result in enumerate(results):
        assert result.version is not None
        told = info(tmp_path, result.version)["operationMetrics"]
        assert (result.rows, str(result.files)) == (number + 1, told["numFiles"])
        assert str(result.bytes) == told["numOutputBytes"] and str(result.rows) == told["numOutputRows"]
        read_version = info(tmp_path, result.version)["readVersion"]
        assert result.concurrent_versions == tuple(range(read_version + 1, result.version))
    assert len({r.version for r in results}) == 3


def test_what_other_writers_committed_meanwhile_is_told(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path)
    delta_pyds.write(spark.range(2), target)

    def and_another_writer(batches: Any) -> Any:
        for _ in range(2):
            write_rows(target, {"id": "long"}, [{"id": 77}])
        yield from batches

    rows = spark.range(3).coalesce(1).mapInArrow(and_another_writer, "id long")
    result = delta_pyds.write(rows, target, mode="append")
    assert (result.version, result.files, result.rows, result.concurrent_versions) == (3, 1, 3, (1, 2))
    with pytest.raises(delta_pyds.ConcurrentAppendError) as error:
        delta_pyds.write(rows, target, mode="overwrite", options={"readsTable": "true"})
    assert error.value.code.startswith("DELTA_CONCURRENT_APPEND") and error.value.parameters["version"] == 4
    with pytest.raises(PySparkException) as plain:
        rows.write.format("deltapy").mode("overwrite").save(target)
    same = delta_pyds.error_of(plain.value)
    assert isinstance(same, delta_pyds.ConflictError) and type(same) is type(error.value)
    assert same.code == error.value.code


def test_a_write_with_nothing_to_do_says_so(spark: SparkSession, tmp_path: Path) -> None:
    assert delta_pyds.write(spark.range(1), tmp_path, txn=("job", 1)).version == 0
    again = delta_pyds.write(spark.range(1), tmp_path, mode="append", txn=("job", 1))
    assert again.version is None and "version 1 of the application 'job'" in again.reason
    assert "createMode is ignore" in delta_pyds.write(spark.range(1), tmp_path, mode="ignore").reason
    assert "no rows to write" in delta_pyds.write(spark.range(0), tmp_path, mode="append").reason


def test_each_batch_of_a_stream_may_be_written_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    for n in range(2):
        delta_pyds.write(spark.range(n, n + 1), tmp_path / "source", mode="append")
    results = []

    def by_hand(batch: DataFrame, number: int) -> None:
        results.append(delta_pyds.write(batch, tmp_path / "function", mode="append", txn=("stream", number)))
        batch.write.format("deltapy").mode("append").save(str(tmp_path / "format"))

    query = (
        spark.readStream.format("deltapy").option("maxFilesPerTrigger", 1).load(str(tmp_path / "source"))
        .writeStream.foreachBatch(by_hand).option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(ONLY_A_HANG_S)
    assert [r.version for r in results] == list(range(len(results))) and sum(r.rows for r in results) == 2
    assert read_sorted(tmp_path / "function", "id") == read_sorted(tmp_path / "format", "id") == [0, 1]


def test_read_and_write_raise_the_error_itself(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(2), tmp_path)
    with pytest.raises(TimeTravelError) as error:
        delta_pyds.read(spark, tmp_path, version=7)
    assert error.value.code == "DELTA_VERSION_NOT_FOUND"
    assert error.value.parameters == {"table": str(tmp_path), "version": 7, "earliest": 0, "latest": 0}
    assert error.value.__cause__ is None and error.value.__suppress_context__
    with pytest.raises(ColumnNotFoundError):
        delta_pyds.read(spark, tmp_path, where="nope = 1", engine="arrow")
    with pytest.raises(TableNotFoundError):
        delta_pyds.read(spark, tmp_path / "nowhere")
    with pytest.raises(UserError) as error:
        delta_pyds.write(spark.range(1), tmp_path)
    assert error.value.code == "DELTA_PATH_EXISTS"
    with pytest.raises(ConstraintViolationError) as error:
        delta_pyds.write(spark.range(3), tmp_path / "n", properties={"delta.constraints.c": "id < 2"})
    assert error.value.code == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    # what goes wrong in making the rows is not ours
    with pytest.raises(PySparkException, match="DIVIDE_BY_ZERO"):
        delta_pyds.write(spark.range(1).selectExpr("1 / id AS x"), tmp_path / "z")


def test_the_error_of_a_later_action_and_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    delta_pyds.write(spark.range(2).coalesce(1), tmp_path / "t")
    frame = delta_pyds.read(spark, tmp_path / "t", engine="arrow")
    (file,) = (tmp_path / "t").glob("*.parquet")
    file.unlink()
    with pytest.raises(PySparkException) as error:
        frame.collect()
    found = delta_pyds.error_of(error.value)
    assert isinstance(found, FileNotFoundInStorageError) and file.name in found.message
    query = (
        spark.readStream.format("deltapy").load(str(tmp_path / "t"))
        .writeStream.format("deltapy").options(checkpointLocation=str(tmp_path / "c"), mergeSchema="perhaps")
        .trigger(availableNow=True).start(str(tmp_path / "s"))
    )  # fmt: skip
    with pytest.raises(PySparkException) as error:
        query.awaitTermination(ONLY_A_HANG_S)
    assert isinstance(delta_pyds.error_of(error.value), OptionError)
    assert isinstance(delta_pyds.error_of(query.exception()), OptionError)


def test_rows_of_pandas_and_arrow(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2]})
    delta_pyds.write(table, tmp_path)
    delta_pyds.write(table.to_batches()[0], tmp_path, mode="append", spark=spark)
    delta_pyds.write(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), tmp_path, mode="append")
    assert delta_pyds.write(pd.DataFrame({"id": [3]}), tmp_path, mode="append").rows == 1
    assert read_sorted(tmp_path, "id") == [1, 1, 1, 2, 2, 2, 3]
    # by itself Spark makes null of a value that is not a BIGINT, and finds no types where there are no rows
    unsigned = pd.DataFrame({"id": pd.array([2**64 - 1, None], "UInt64")})
    delta_pyds.write(unsigned.head(0), tmp_path / "unsigned")
    assert delta_pyds.write(unsigned, tmp_path / "unsigned", mode="append").rows == 2
    assert read_sorted(tmp_path / "unsigned", "id") == [2**64 - 1, None]


def test_the_statements_that_the_error_names_work(spark: SparkSession, tmp_path: Path) -> None:
    """Spark makes a catalog table, and then gives a Python source neither its location nor its options."""
    path = tmp_path / "t"
    delta_pyds.write(spark.range(3), path)
    spark.sql(f"CREATE TABLE doors_a USING deltapy LOCATION '{path}'")
    spark.range(1).write.format("deltapy").mode("append").option("path", str(path)).saveAsTable("doors_b")
    try:
        for statement in ("SELECT * FROM doors_a", "SELECT * FROM doors_b", "INSERT INTO doors_a VALUES (9)"):
            with pytest.raises(PySparkException) as error:
                spark.sql(statement).collect()
            found = delta_pyds.error_of(error.value)
            assert isinstance(found, OptionError)
            assert f"{statement[:6]}" in found.message and "t WITH (path = '/path/of/table')" in found.message
            assert "delta_pyds.create_table(spark, 'name', '/path/of/table')" in found.message
            assert "delta_pyds.sql(spark, 'SELECT * FROM delta.`/path/of/table`')" in found.message
        spark.sql(f"INSERT INTO doors_a WITH (path = '{path}') VALUES (9)")
        spark.sql(f"CREATE VIEW doors_v AS SELECT * FROM doors_b WITH (path = '{path}')")
        spark.sql(f"CREATE TEMPORARY VIEW doors_t USING deltapy OPTIONS (path '{path}')")
        wanted = [0, 0, 1, 2, 9]
        delta_pyds.create_table(spark, "doors_named", str(path))
        named = delta_pyds.sql(spark, f"SELECT id FROM delta.`{path}`")
        assert sorted(r.id for r in named.collect()) == wanted
        for source in (f"doors_a WITH (path = '{path}')", "doors_v", "doors_t", "doors_named"):
            assert sorted(r.id for r in spark.sql(f"SELECT id FROM {source}").collect()) == wanted
    finally:
        delta_pyds.drop_table(spark, "doors_named")
        spark.sql("DROP VIEW IF EXISTS doors_v")
        spark.catalog.dropTempView("doors_t")
        for name in ("doors_a", "doors_b"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_python_without_the_package_is_named_before_spark_runs_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)  # Python looks in the working directory too, and Spark's workers do
    monkeypatch.setattr(spark.sparkContext, "pythonExec", bare)
    for call in (delta_pyds.register, lambda s: delta_pyds.read(s, tmp_path)):
        with pytest.raises(WorkerPythonError) as error:
            call(spark.newSession())
        assert bare in error.value.message and "has no delta_pyds, pyarrow" in error.value.message
        assert f"PYSPARK_PYTHON={sys.executable}" in error.value.message
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(tmp_path / "none" / "python"))
    with pytest.raises(WorkerPythonError, match="no such program"):
        check_worker_python(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    check_worker_python(spark)


INTERRUPTED = """
import signal, sys, delta_pyds
from pyspark.sql import SparkSession
# who runs the tests may block it for its children
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
path = sys.argv[1]
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
delta_pyds.write(spark.range(1), path)
try:
    print("running", flush=True)
    sys.stdin.readline()  # an interrupt here would find no call to Spark to break off
    spark.range(1).selectExpr("java_method('java.lang.Thread', 'sleep', 120000L)").collect()
except KeyboardInterrupt:
    spark.range(1).write.format("deltapy").mode("append").save(path)
    assert delta_pyds.write(spark.range(1), path, mode="append").version == 2
    assert delta_pyds.read(spark, path).count() == 3
    print("all is well", flush=True)
"""


def test_writes_go_on_after_an_interrupt(tmp_path: Path) -> None:
    """Ctrl-C gives up the connection to the JVM's thread, and the next one has no active session."""
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "t")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert child.stdin is not None and child.stdout is not None
    try:
        assert child.stdout.readline() == "running\n"
        child.stdin.write("go\n")
        child.stdin.flush()
        time.sleep(3)  # until the call waits for Spark
        child.send_signal(signal.SIGINT)
        out, _ = child.communicate(timeout=ONLY_A_HANG_S)
    finally:
        child.kill()
    assert "all is well" in out
