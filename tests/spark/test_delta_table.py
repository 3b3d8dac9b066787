"""``DeltaTable``: its surface, errors for wrong arguments, history, detail, and frames whose columns mean the table."""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds import exceptions as reference_names
from delta_pyds.errors import DeltaError, OptionError, TableNotFoundError, UnsupportedOperationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Two versions: ten rows in two partitions, and two rows more."""
    where = str(tmp_path / "t")
    rows = spark.range(10).selectExpr("id", "cast(id AS string) AS name", "cast(id % 2 AS int) AS p").coalesce(1)
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    delta_pyds.write(rows, where, partition_by="p", properties=properties)
    delta_pyds.write(rows.limit(2), where, mode="append", user_metadata="two more")
    return where


@pytest.fixture
def table(spark: SparkSession, path: str) -> DeltaTable:
    return DeltaTable.forPath(spark, path)


# --- where a table is


def test_a_path_that_is_no_table_is_an_error_of_both_kinds(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(TableNotFoundError) as found:
        DeltaTable.forPath(spark, f"{tmp_path}/nothing")

    assert isinstance(found.value, AnalysisException)
    assert found.value.getErrorClass() == found.value.code == "DELTA_MISSING_DELTA_TABLE"
    assert str(tmp_path) in str(found.value)
    with pytest.raises(AnalysisException, match="DELTA_MISSING_DELTA_TABLE"):
        DeltaTable.forName(spark, f"delta.`{tmp_path}`")


def test_a_name_may_be_a_path(spark: SparkSession, path: str) -> None:
    for name in (f"delta.`{path}`", f"DeltaPy.`{path}`"):
        assert DeltaTable.forName(spark, name).toDF().count() == 12


def test_a_name_of_the_catalog_is_not_there_or_refused(spark: SparkSession) -> None:
    """As with the reference, a program may make the table where it is not there, and only there."""
    from pyspark.errors import AnalysisException, ParseException

    for name in ("events_of_nobody", "db.events"):
        with pytest.raises(TableNotFoundError, match="create_table") as found:
            DeltaTable.forName(spark, name)
        assert isinstance(found.value, AnalysisException)
    with pytest.raises(ParseException):
        DeltaTable.forName(spark, "no such name")
    spark.range(1).createOrReplaceTempView("events_that_are_known")
    with pytest.raises(UnsupportedOperationError, match="create_table"):
        DeltaTable.forName(spark, "events_that_are_known")


def test_what_is_a_table(spark: SparkSession, path: str, tmp_path: Path) -> None:
    """A directory of a partition is in a table; the log, an empty one, and what is not there are not."""
    os.makedirs(tmp_path / "empty" / "_delta_log")

    found = {name: DeltaTable.isDeltaTable(spark, name) for name in (path, f"{path}/p=0", f"{path}/p=7/deep")}

    assert set(found.values()) == {True}, found
    for name in (str(tmp_path), f"{tmp_path}/empty", f"{path}/_delta_log", f"{tmp_path}/nothing"):
        assert not DeltaTable.isDeltaTable(spark, name), name


def test_settings_of_hadoop(spark: SparkSession, path: str) -> None:
    assert DeltaTable.forPath(spark, path, {"fs.s3a.access.key": "x"}).toDF().count() == 12  # a local path needs none
    with pytest.raises(OptionError) as found:
        DeltaTable.forPath(spark, path, {"spark.x": "1"})
    assert found.value.code == "DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF"


@pytest.mark.parametrize(
    ("path", "conf", "options"),
    [
        ("s3://b/t", {"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}, {"key": "k", "secret": "s"}),
        ("s3://b/t", {"fs.s3a.endpoint": "http://h"}, {"endpoint_url": "http://h"}),
        ("abfss://c@a.dfs/t", {"fs.azure.account.key.a.dfs": "k"}, {"account_name": "a", "account_key": "k"}),
        ("s3://b/t", {"fs.s3a.path.style.access": "true"}, None),
    ],
)
def test_settings_of_hadoop_in_the_words_of_fsspec(
    path: str, conf: dict[str, str], options: dict[str, str] | None
) -> None:
    from delta_pyds.spark.table_commands.identifiers import storage_options_of

    if options is None:
        with pytest.raises(UnsupportedOperationError, match="storage_options"):
            storage_options_of(path, conf, None)
        return
    assert storage_options_of(path, conf, None) == options
    assert storage_options_of(path, conf, {next(iter(options)): "mine"}) == {**options, next(iter(options)): "mine"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"engine": "fast"},
        {"max_runs": 0},
        {"process_bytes": -1},
        {"user_metadata": 1},
        {"isolation_level": "None"},
        {"hadoopConf": 3},
    ],
)
def test_options_that_are_none(spark: SparkSession, path: str, arguments: dict[str, Any]) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(OptionError) as found:
        DeltaTable.forPath(spark, path, **arguments)
    assert isinstance(found.value, IllegalArgumentException)


def test_no_session(path: str) -> None:
    with pytest.raises(AssertionError):
        DeltaTable.forPath(None, path)  # type: ignore[arg-type]


def test_a_copy_of_a_table_is_not_the_table(path: str, tmp_path: Path) -> None:
    """What a server's task and this process compare: a copy with all times that a tool can keep is another file."""
    from delta_pyds.spark.same_files import newest_log_file

    shutil.copytree(path, tmp_path / "copy")
    os.symlink(path, tmp_path / "link")

    assert newest_log_file(path) == newest_log_file(str(tmp_path / "link")) is not None
    assert newest_log_file(str(tmp_path / "copy")) != newest_log_file(path)
    assert newest_log_file(str(tmp_path)) is newest_log_file(f"{path}/nothing") is None


# --- arguments


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda t: t.delete(1), TypeError, "'condition'"),
        (lambda t: t.update(), ValueError, "'set'"),
        (lambda t: t.update({"name": "'x'"}), ValueError, "'set'"),
        (lambda t: t.update(set=[("name", "'x'")]), TypeError, "'set' must be a dict"),
        (lambda t: t.update(set={1: "'x'"}), TypeError, "Keys of dict in 'set' must contain only"),
        (lambda t: t.update(set={"name": 1}), TypeError, "Values of dict in 'set' must contain only"),
        (lambda t: t.update(1, {"name": "'x'"}), TypeError, "'condition'"),
        (lambda t: t.merge(None, "1 = 1"), ValueError, "'source' in merge"),
        (lambda t: t.merge("updates", "1 = 1"), TypeError, "'source' in merge must be DataFrame"),
        (lambda t: t.history("1"), TypeError, "'limit'"),
        (lambda t: t.upgradeTableProtocol("1", 2), ValueError, "readerVersion"),
        (lambda t: t.dropFeatureSupport("x", "yes"), ValueError, "truncateHistory"),
        (lambda t: t.clone("/x", "yes"), ValueError, "isShallow needs to be a boolean but got"),
        (lambda t: t.restoreToTimestamp(1), ValueError, "timestamp needs to be a string but got '<class 'int'>'"),
        (lambda t: t.clone("/x", properties={"a": 1}), ValueError, "properties"),
    ],
)
def test_arguments_that_are_none(
    table: DeltaTable, call: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    """Refused by the call itself, with the class of the reference, and no version comes of it."""
    with pytest.raises(error, match=said):
        call(table)
    assert table.history().count() == 2


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda m: m.whenMatchedUpdate("1 = 1"), ValueError, "whenMatchedUpdate"),
        (lambda m: m.whenMatchedUpdate(1, {"name": "'x'"}), TypeError, "'condition'"),
        (lambda m: m.whenMatchedUpdateAll(1), TypeError, "'condition'"),
        (lambda m: m.whenMatchedDelete(1), TypeError, "'condition'"),
        (lambda m: m.whenNotMatchedInsert("1 = 1"), ValueError, "whenNotMatchedInsert"),
        (lambda m: m.whenNotMatchedInsert(values=1), TypeError, "whenNotMatchedInsert"),
        (lambda m: m.whenNotMatchedInsertAll(1), TypeError, "'condition'"),
        (lambda m: m.whenNotMatchedBySourceUpdate(), ValueError, "BySourceUpdate"),
        (lambda m: m.whenNotMatchedBySourceDelete(1), TypeError, "'condition'"),
    ],
)
def test_arguments_of_a_merge_that_are_none(
    spark: SparkSession, table: DeltaTable, call: Callable[[Any], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call(table.merge(spark.range(1), "1 = 1"))
    for condition, refusal in ((None, ValueError), (1, TypeError)):
        with pytest.raises(refusal, match="'condition'"):
            table.merge(spark.range(1), condition)  # type: ignore[arg-type]


def test_the_surface_is_that_of_the_reference() -> None:
    """Names and order of the arguments that a program may give without their names."""
    merge = delta_pyds.DeltaMergeBuilder
    expected = {
        DeltaTable.forPath: ["sparkSession", "path", "hadoopConf"],
        DeltaTable.forName: ["sparkSession", "tableOrViewName"],
        DeltaTable.isDeltaTable: ["sparkSession", "identifier"],
        DeltaTable.toDF: ["self"],
        DeltaTable.alias: ["self", "aliasName"],
        DeltaTable.delete: ["self", "condition"],
        DeltaTable.update: ["self", "condition", "set"],
        DeltaTable.merge: ["self", "source", "condition"],
        DeltaTable.history: ["self", "limit"],
        DeltaTable.detail: ["self"],
        DeltaTable.vacuum: ["self", "retentionHours"],
        DeltaTable.clone: ["self", "target", "isShallow", "replace", "properties"],
        DeltaTable.cloneAtVersion: ["self", "version", "target", "isShallow", "replace", "properties"],
        DeltaTable.convertToDelta: ["sparkSession", "identifier", "partitionSchema"],
        merge.whenMatchedUpdate: ["self", "condition", "set"],
        merge.whenMatchedUpdateAll: ["self", "condition"],
        merge.whenMatchedDelete: ["self", "condition"],
        merge.whenNotMatchedInsert: ["self", "condition", "values"],
        merge.whenNotMatchedInsertAll: ["self", "condition"],
        merge.whenNotMatchedBySourceUpdate: ["self", "condition", "set"],
        merge.whenNotMatchedBySourceDelete: ["self", "condition"],
        merge.withSchemaEvolution: ["self"],
        merge.execute: ["self"],
    }
    for function, names in expected.items():
        parameters = inspect.signature(function).parameters.values()
        assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == names, function


def test_a_builder_never_changes(spark: SparkSession, table: DeltaTable) -> None:
    first = table.merge(spark.range(1), "1 = 0")
    one, other = first.whenMatchedDelete(), first.withSchemaEvolution().whenNotMatchedInsertAll("id > 3")

    assert [[(c.kind, c.action) for c in builder._clauses] for builder in (first, one, other)] == [
        [],
        [("matched", "delete")],
        [("not_matched", "insert")],
    ]
    assert (one._evolves, other._evolves) == (False, True)


# --- what a table says of itself


def test_history_is_newest_first(table: DeltaTable, path: str) -> None:
    rows = table.history().collect()

    assert [row.version for row in rows] == [1, 0]
    newest = rows[0].asDict(recursive=True)
    commit = json.loads(Path(path, "_delta_log", f"{1:020}.json").read_text().splitlines()[0])["commitInfo"]
    assert newest["operation"] == "WRITE" and newest["userMetadata"] == "two more"
    assert newest["operationMetrics"] == commit["operationMetrics"]
    assert newest["operationParameters"] == commit["operationParameters"]
    assert (newest["readVersion"], newest["isBlindAppend"], newest["isolationLevel"]) == (0, True, "Serializable")
    assert newest["timestamp"].timestamp() == pytest.approx(
        os.stat(f"{path}/_delta_log/{1:020}.json").st_mtime, abs=0.002
    )
    for limit, versions in ((1, [1]), (5, [1, 0]), (0, []), (-1, [])):
        assert [row.version for row in table.history(limit).collect()] == versions


def test_history_of_commits_of_others(table: DeltaTable, path: str) -> None:
    """Without provenance, and with values of other types than our own writer's."""
    told = {
        "timestamp": 5,
        "operation": "X",
        "operationParameters": {"b": True, "n": 1.5, "s": "x", "l": '["a"]', "z": None, "o": {"x": [1]}},
        "readVersion": 7,
        "job": {"jobId": "1", "jobName": "n", "runId": "r", "jobOwnerId": "o", "triggerType": "t"},
        "notebook": {"notebookId": "9"},
        "clusterId": "c",
        "operationMetrics": {"a": 1},
    }
    log = Path(path, "_delta_log")
    (log / f"{2:020}.json").write_text(json.dumps({"txn": {"appId": "a", "version": 1}}) + "\n")
    (log / f"{3:020}.json").write_text(json.dumps({"commitInfo": told}) + "\n")

    newest, silent = (row.asDict(recursive=True) for row in table.history(2).collect())

    assert silent["operationParameters"] == {} and silent["operation"] is silent["operationMetrics"] is None
    assert newest["operationParameters"] == {
        "b": "true", "n": "1.5", "s": "x", "l": '["a"]', "z": None, "o": '{"x":[1]}'
    }  # fmt: skip
    assert newest["operationMetrics"] == {"a": "1"}
    assert newest["job"] == {
        "jobId": "1", "jobName": "n", "jobRunId": None, "runId": "r", "jobOwnerId": "o", "triggerType": "t"
    }  # fmt: skip
    assert newest["notebook"] == {"notebookId": "9"} and newest["clusterId"] == "c"
    assert newest["timestamp"] > silent["timestamp"]


def test_detail(table: DeltaTable, path: str) -> None:
    (row,) = table.detail().collect()

    snapshot = delta_pyds.load_snapshot(path)
    assert (row.format, row.id, row.name, row.description) == ("delta", snapshot.metadata.id, None, None)
    assert row.location == f"file:{path}"
    assert row.createdAt.timestamp() * 1000 == pytest.approx(snapshot.metadata.created_time)
    assert row.createdAt <= row.lastModified
    assert (row.partitionColumns, row.clusteringColumns) == (["p"], [])
    assert (row.numFiles, row.sizeInBytes) == (snapshot.totals.num_files, snapshot.totals.size_bytes)
    assert row.properties == {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    assert (row.minReaderVersion, row.minWriterVersion) == (3, 7)
    assert row.tableFeatures == ["appendOnly", "changeDataFeed", "deletionVectors", "invariants"]


def test_detail_names_clustering_columns_as_users_do(spark: SparkSession, tmp_path: Path) -> None:
    where = str(tmp_path / "c")
    rows = spark.range(3).selectExpr("id", "named_struct('zip', id) AS address")
    delta_pyds.write(rows, where, cluster_by="id,address.zip", properties={"delta.columnMapping.mode": "name"})

    (row,) = DeltaTable.forPath(spark, where).detail().collect()

    assert row.clusteringColumns == ["id", "address.zip"]


# --- frames


def test_a_frame_is_the_table_as_it_is_now(spark: SparkSession, table: DeltaTable, path: str) -> None:
    assert table.toDF().count() == 12
    delta_pyds.write(spark.range(1).selectExpr("id", "'x' AS name", "5 AS p"), path, mode="append")
    assert table.toDF().count() == 13
    assert delta_pyds.explain(table.toDF()).engine == "native"


def test_an_alias_names_the_columns(table: DeltaTable) -> None:
    frame = table.alias("t").toDF()
    assert [row.name for row in frame.filter("t.id = 3").select("t.name").collect()] == ["3"]


def test_columns_of_any_frame_of_a_table_mean_the_table(spark: SparkSession, table: DeltaTable, path: str) -> None:
    """Those of an older frame, of an alias, and beside a frame that was made of the same table."""
    first = table.toDF().id
    delta_pyds.write(spark.range(20, 22).selectExpr("id", "'x' AS name", "5 AS p"), path, mode="append")
    later = table.alias("t").toDF()

    assert later.filter((first >= 20) & (table.toDF().name == "x")).count() == 2
    source = table.toDF().filter("id > 20").withColumnRenamed("name", "other")
    assert [row.other for row in later.join(source.alias("s"), first == source.id).collect()] == ["x"]


def test_a_column_of_another_type_now_is_not_misread(spark: SparkSession) -> None:
    """A Column was resolved with its type; where the table has another by now, Spark refuses it."""
    from pyspark.errors import AnalysisException

    from delta_pyds.spark.row_changes.frame_identity import resolving_columns_of

    held = spark.range(3).selectExpr("id", "cast(id AS int) AS p", "named_struct('x', id) AS s")
    now = resolving_columns_of(spark.range(3).selectExpr("id", "id AS p", "named_struct('x', id) AS s"), [held])

    assert (now.filter(held.id == 1).count(), now.filter(held.s.x == 1).count()) == (1, 1)
    with pytest.raises(AnalysisException):
        now.filter(held.p == 1)


# --- errors


def test_the_names_of_the_reference_are_our_classes() -> None:
    for name in reference_names.__all__:
        assert issubclass(getattr(reference_names, name), delta_pyds.ConflictError), name
    assert reference_names.ConcurrentAppendException is delta_pyds.ConcurrentAppendError
    assert reference_names.DeltaConcurrentModificationException is delta_pyds.ConflictError


def test_an_error_of_both_kinds_travels_as_ours() -> None:
    import pickle

    from delta_pyds.spark.spark_errors import as_spark_error

    error = as_spark_error(delta_pyds.ConcurrentAppendError("it was first", version=3))
    again = pickle.loads(pickle.dumps(error))

    assert type(error) is type(as_spark_error(delta_pyds.ConcurrentAppendError("another")))
    assert type(again) is delta_pyds.ConcurrentAppendError
    assert (str(again), again.parameters) == (str(error), {"version": 3})
    assert isinstance(error, DeltaError) and str(error) == "[DELTA_CONCURRENT_APPEND] it was first"


def test_explain_refuses_a_frame_that_tells_nothing(spark: SparkSession) -> None:
    with pytest.raises(OptionError, match="DeltaTable"):
        delta_pyds.explain(spark.range(1))


# --- commands, as far as they are this class's: what they are told, and what they return


def test_a_command_says_what_it_did_and_where(table: DeltaTable) -> None:
    deleted = table.delete("id < 2")
    updated = table.update("id IN (2, 3)", {"name": "'x'"})
    nothing = table.delete("id = 77")

    assert [frame.collect()[0].asDict() for frame in (deleted, updated, nothing)] == [
        {"num_affected_rows": n} for n in (4, 2, 0)
    ]
    report = delta_pyds.explain(deleted)
    assert (report.version, report.num_deleted_rows, report.place.where_run) == (2, 4, "process")
    assert "version 2: 4 rows deleted" in str(report) and report.place.reason in str(report)
    assert delta_pyds.explain(nothing).version is None
    assert table.history().count() == 4


def test_small_work_needs_no_job_of_spark(spark: SparkSession, table: DeltaTable) -> None:
    context = spark.sparkContext
    context.setJobGroup("small work", "")
    try:
        done = table.delete("id < 2")
        (row,) = done.collect()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    assert row.num_affected_rows == 4
    assert [(f.dataType.simpleString(), f.nullable) for f in done.schema] == [("bigint", True)]
    assert not context.statusTracker().getJobIdsForGroup("small work")


def test_what_was_said_for_the_table_wins(spark: SparkSession, path: str) -> None:
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "by the session")
    try:
        DeltaTable.forPath(spark, path, user_metadata="mine").delete("id = 1")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert DeltaTable.forPath(spark, path).history(1).collect()[0].userMetadata == "mine"


def test_a_place_that_was_asked_for(spark: SparkSession, path: str) -> None:
    for engine in ("process", "tasks", "spark"):
        done = DeltaTable.forPath(spark, path, engine=engine).delete("id = 1 AND p = 1 AND name = '1'")
        assert delta_pyds.explain(done).place.where_run == engine
    small = DeltaTable.forPath(spark, path, process_bytes=0).delete("id = 2")
    assert delta_pyds.explain(small).place.where_run == "tasks"
    with pytest.raises(UnsupportedOperationError):
        DeltaTable.forPath(spark, path, engine="process").delete("reverse(name) = rpad('1', 1, 'x') AND rand() < 2")


def test_a_merge_returns_four_numbers(spark: SparkSession, table: DeltaTable) -> None:
    source = spark.range(8, 12).selectExpr("id", "'new' AS name", "cast(0 AS int) AS p")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")

    done = merge.whenMatchedDelete("s.id = 8").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    assert done.collect()[0].asDict() == {
        "num_affected_rows": 4, "num_updated_rows": 1, "num_deleted_rows": 1, "num_inserted_rows": 2
    }  # fmt: skip
    assert delta_pyds.explain(done).version == 2
    assert {row.id for row in table.toDF().filter("name = 'new'").collect()} == {9, 10, 11}


@pytest.mark.parametrize("engine", ["auto", "spark"])
def test_columns_of_the_table_in_commands(spark: SparkSession, path: str, engine: Any) -> None:
    from pyspark.sql.functions import col, concat, lit

    table = DeltaTable.forPath(spark, path, engine=engine)
    rows = table.toDF()
    table.delete(rows.id == 3)
    table.alias("t").update(rows.id == 4, {"name": concat(rows.name, lit("!"))})
    source = spark.range(5, 6).selectExpr("id", "'merged' AS name")
    table.alias("t").merge(source, rows.id == source.id).whenMatchedUpdate(set={"name": source.name}).execute()
    table.delete(col("id") == 6)

    found = {row.id: row.name for row in table.toDF().filter("id BETWEEN 3 AND 7").collect()}
    assert found == {4: "4!", 5: "merged", 7: "7"}


def test_what_the_session_says(spark: SparkSession, table: DeltaTable, path: str) -> None:
    """User metadata, columns that merges may add, and an application that runs its command once."""
    settings = {
        "spark.databricks.delta.commitInfo.userMetadata": "by the session",
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "7",
    }
    wider = spark.range(20, 21).selectExpr("id", "'x' AS name", "cast(0 AS int) AS p", "id AS more")
    merge = table.merge(wider.alias("s"), "s.id = -1").whenNotMatchedInsertAll()
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        first, again = merge.execute(), table.delete()
        assert "transaction" in str(delta_pyds.explain(again))
        spark.conf.unset("spark.databricks.delta.write.txnVersion")
        with pytest.raises(OptionError) as found:
            table.delete("id = 0")
    finally:
        for key in settings:
            spark.conf.unset(key)

    assert found.value.code == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
    assert [frame.collect()[0].num_affected_rows for frame in (first, again)] == [1, 0]
    assert table.history(1).collect()[0].userMetadata == "by the session"
    assert delta_pyds.load_snapshot(path).transactions["job"].version == 7
    assert table.toDF().count() == 13 and "more" in table.toDF().columns
