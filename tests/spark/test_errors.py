"""Bad input: each a sentence with the reference's code, naming the table, the version and the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.errors import ColumnNotFoundError, DeltaError, OptionError
from tests.support.table_builder import TableBuilder

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(4)


def failure(spark: SparkSession, path: Any, schema: str | None = None, **options: Any) -> str:
    reader = spark.read.format("deltapy").options(**options)
    if schema:
        reader = reader.schema(schema)
    with pytest.raises(PySparkException) as error:
        reader.load(str(path)).collect()
    return str(error.value)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "numbers", {"id": "long", "p": "string"}, partition_columns=["p"])
    built.create()
    for i in range(3):
        built.append([{"id": i, "p": "a"}, {"id": 10 + i, "p": "a"}])
    return built


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        ({"versionAsOf": 99}, "DELTA_VERSION_NOT_FOUND", "99"),
        ({"versionAsOf": "one"}, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "one"),
        ({"timestampAsOf": "1999-01-01"}, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", "1999"),
        ({"timestampAsOf": "2999-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT", "2999"),
        ({"timestampAsOf": "soon"}, "DELTA_TIMESTAMP_INVALID", "soon"),
        ({"timestampAsOf": "2024-01-01", "versionAsOf": 1}, "DELTA_ONEOF_IN_TIMETRAVEL", "versionAsOf"),
        ({"columns": "id,nope"}, "DELTA_COLUMN_NOT_FOUND", "nope"),
        ({"where": "nope = 1"}, "DELTA_COLUMN_NOT_FOUND", "nope"),
        ({"where": "id = "}, "PARSE_SYNTAX_ERROR", "id = "),
        ({"where": "soundex(p) = 'x'"}, "DELTA_UNSUPPORTED_EXPRESSION", "soundex"),
        ({"rowPosition": "maybe"}, "DELTA_ILLEGAL_OPTION", "rowPosition"),
        ({"maxPartitionBytes": "lots"}, "DELTA_ILLEGAL_OPTION", "maxPartitionBytes"),
        ({"timeZone": "Mars/Olympus"}, "DELTA_ILLEGAL_OPTION", "Mars/Olympus"),
        ({"rowIds": "true"}, "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS", "row tracking"),
        (
            {"readChangeFeed": "true", "startingVersion": 0, "computeChanges": "never"},
            "DELTA_MISSING_CHANGE_DATA",
            "enableChangeDataFeed",
        ),
        ({"readChangeFeed": "true", "startingVersion": 0, "computeChanges": "some"}, "DELTA_ILLEGAL_OPTION", "rowIds"),
    ],
)
def test_an_impossible_option_is_named(
    spark: SparkSession, table: TableBuilder, options: dict[str, Any], code: str, named: str
) -> None:
    message = failure(spark, table.path, **options)
    assert f"[{code}]" in message
    assert named in message


def test_a_path_with_a_version_and_an_option_contradict_each_other(spark: SparkSession, table: TableBuilder) -> None:
    message = failure(spark, f"{table.path}@v1", versionAsOf=1)
    assert "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS" in message


def test_a_schema_and_columns_contradict_each_other(spark: SparkSession, table: TableBuilder) -> None:
    assert "[DELTA_ILLEGAL_OPTION]" in failure(spark, table.path, schema="id bigint", columns="id")


def test_a_schema_of_another_type_shows_both(spark: SparkSession, table: TableBuilder) -> None:
    message = failure(spark, table.path, schema="id string")
    assert "[DELTA_READ_SCHEMA_CONFLICT]" in message
    assert "is string, but it is bigint" in message


def test_a_table_that_was_altered_in_sparks_catalog_alone_says_so(spark: SparkSession, table: TableBuilder) -> None:
    """Spark lets it succeed without a word."""
    spark.sql("CREATE TABLE altered (id BIGINT) USING deltapy")
    query = f"SELECT * FROM altered WITH (path = '{table.path}')"
    try:
        with pytest.raises(PySparkException) as raised:
            spark.sql("SELECT * FROM altered").collect()
        for named in ("WITH (path = '", "delta_pyds.create_table(", "delta_pyds.sql("):
            assert named in str(raised.value)
        assert "id" in spark.sql(query).columns
        spark.sql("ALTER TABLE altered ADD COLUMN more STRING")
        with pytest.raises(PySparkException) as raised:
            spark.sql(query).collect()
    finally:
        spark.sql("DROP TABLE altered")
    found = delta_pyds.error_of(raised.value)
    assert isinstance(found, ColumnNotFoundError) and found.parameters["column"] == "more"
    assert "ALTER TABLE by plain spark.sql changes the catalog alone" in found.message
    assert f"delta_pyds.sql(spark, 'ALTER TABLE delta.`{table.path}` ...')" in found.message


def test_what_is_no_table_is_told_so(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow" / "_delta_log").mkdir(parents=True)
    assert "DELTA_PATH_DOES_NOT_EXIST" in failure(spark, tmp_path / "nowhere")
    assert "DELTA_MISSING_DELTA_TABLE" in failure(spark, tmp_path / "empty")
    assert "DELTA_MISSING_DELTA_TABLE" in failure(spark, tmp_path / "hollow")


def test_no_path_and_several_paths_are_refused(spark: SparkSession, table: TableBuilder) -> None:
    with pytest.raises(PySparkException, match="path"):
        spark.read.format("deltapy").load()
    with pytest.raises(PySparkException, match="one table at a time"):
        spark.read.format("deltapy").load([str(table.path), str(table.path)])


def test_a_gap_in_the_log_names_the_missing_version(spark: SparkSession, table: TableBuilder) -> None:
    table.commit_file(1).unlink()
    message = failure(spark, table.path)
    assert "DELTA_VERSIONS_NOT_CONTIGUOUS" in message
    assert str(table.path) in message and "version 1" in message


def test_a_corrupt_commit_names_file_and_line(spark: SparkSession, table: TableBuilder) -> None:
    with table.commit_file(2).open("a") as f:
        f.write('{"add": {"path": \n')
    message = failure(spark, table.path)
    assert table.commit_file(2).name in message and "line" in message


def test_a_missing_data_file_is_named_with_its_table(spark: SparkSession, table: TableBuilder) -> None:
    file = table.data_file(table.active()[0])
    file.unlink()
    message = failure(spark, table.path)
    assert "DELTA_FILE_NOT_FOUND_DETAILED" in message
    assert file.name in message and str(table.path) in message


def test_a_damaged_data_file_is_named(spark: SparkSession, table: TableBuilder) -> None:
    file = table.data_file(table.active()[0])
    table.truncate(file, 40)
    message = failure(spark, table.path)
    assert "FAILED_READ_FILE" in message and file.name in message


def test_a_damaged_checkpoint_is_named_when_there_is_no_way_around_it(spark: SparkSession, table: TableBuilder) -> None:
    (file,) = table.checkpoint()
    table.truncate(file, 100)
    assert spark.read.format("deltapy").load(str(table.path)).count() == 6  # the commits are still there
    table.cleanup_log(table.version)
    message = failure(spark, table.path)
    assert file.name in message or "DELTA_TRUNCATED_TRANSACTION_LOG" in message


@pytest.mark.parametrize("storage", ["u", "i", "p"])
def test_a_damaged_deletion_vector_is_never_applied(spark: SparkSession, tmp_path: Path, storage: str) -> None:
    table = TableBuilder(tmp_path / storage, {"id": "long"}, features=(["deletionVectors"], ["deletionVectors"]))
    table.create()
    (add,) = table.append([{"id": i} for i in range(10)])
    marked = table.delete(add, [1, 2], storage)
    assert spark.read.format("deltapy").load(str(table.path)).count() == 8
    if storage == "i":
        vector = {**marked["add"]["deletionVector"], "cardinality": 3}
        table.commit([table.remove(marked), {"add": {**marked["add"], "deletionVector": vector}}])
    else:
        table.flip_byte(table.vector_file(marked), -6)
    assert "DELTA_DELETION_VECTOR" in failure(spark, table.path)


def test_an_unknown_feature_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, features=(["fancyReads"], ["fancyReads"]))
    table.create()
    message = failure(spark, table.path)
    assert "DELTA_UNSUPPORTED_FEATURES_FOR_READ" in message and "fancyReads" in message


def test_a_catalog_managed_table_needs_its_catalog(spark: SparkSession, tmp_path: Path) -> None:
    features = ["catalogManaged"]
    table = TableBuilder(tmp_path / "t", {"id": "long"}, features=(features, [*features, "inCommitTimestamp"]))
    table.create()
    message = failure(spark, table.path)
    assert "DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED" in message and "catalog" in message


def test_allowed_roots_hold_in_both_engines_and_in_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    origin = TableBuilder(tmp_path / "origin", {"id": "long"})
    origin.create()
    [add] = origin.append([{"id": 7}])
    clone = TableBuilder(tmp_path / "clone", {"id": "long"})
    clone.create([{"add": {**add["add"], "path": f"file://{tmp_path}/origin/{add['add']['path']}"}}])
    refusal = "not below the table or a directory that allowed_roots allows"
    assert refusal in failure(spark, clone.path, allowedRoots="[]")
    frame = spark.read.format("deltapy").option("allowedRoots", f"{tmp_path}/origin").load(str(clone.path))
    assert [row.id for row in frame.collect()] == [7]
    with pytest.raises(DeltaError, match=refusal):
        delta_pyds.read(spark, str(clone.path), engine="native", storage_options={"allowed_roots": []})
    allowed = delta_pyds.read(
        spark, str(clone.path), engine="native", storage_options={"allowed_roots": [str(tmp_path)]}
    )
    assert [row.id for row in allowed.collect()] == [7]


def test_no_secret_of_a_path_or_an_option_reaches_spark(spark: SparkSession) -> None:
    for options in ({"path": "s3://user:s3cr3t@bucket/t"},
                    {"path": "nope://u:s3cr3t@host/t", "storageOptions": '{"secret": "s3cr3t"}'},
                    {"path": "nope://host/t?sig=s3cr3t", "storageOptions": '{"secret": "s3cr3t"}'}):  # fmt: skip
        with pytest.raises(PySparkException) as error:
            spark.read.format("deltapy").options(**options).load().collect()
        assert "s3cr3t" not in str(error.value).split("JVM stacktrace")[0]


def test_a_table_that_plain_spark_made_by_location_says_first_what_to_run(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    delta_pyds.register(spark)
    spark.sql(f"CREATE TABLE by_location USING deltapy LOCATION '{table.path}'")
    try:
        with pytest.raises(PySparkException) as raised:
            spark.sql("SELECT * FROM by_location").collect()
    finally:
        spark.sql("DROP TABLE by_location")
    first = str(raised.value).strip().splitlines()[0]
    assert "delta_pyds.create_table(spark, 'name', '/path/of/table')" in first, raised.value
    assert "Traceback" not in first
    assert isinstance(delta_pyds.error_of(raised.value), OptionError)
