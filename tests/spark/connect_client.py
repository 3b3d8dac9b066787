"""Reads, writes and streams through Spark Connect, from whatever Python runs it. Arguments: a server and a table.

The table has the 18 rows 1 to 4 and 6 to 19 of a column ``id``.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import tempfile
import traceback
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import grpc
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import call_function, col, expr, udf, when
from pyspark.sql.functions import max as max_

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import (
    ConstraintViolationError,
    ExpressionError,
    OptionError,
    TableNotFoundError,
    TimeTravelError,
    UserError,
)
from delta_pyds.spark.job_description import described
from delta_pyds.spark.native import relations
from delta_pyds.spark.row_changes.target_frame import target_frame
from delta_pyds.spark.row_sources import depends_on_table
from delta_pyds.spark.task_runner import session_parallelism
from delta_pyds.spark.versions import calls_built_in_functions_first
from tests.spark.connect_changes import applied, read_changes
from tests.spark.connect_names import Questions
from tests.support.table_writes import write_rows

# The number of files of the table at the path with "-many": two rows in each, in the partitions "p 0" and "p 1". Files
# 0 and 1 have deletion vectors.
FILES = 40
# If Python collects a session, the client of Spark 4.0 closes the threads of all sessions, in the middle of a query.
SESSIONS: list[Any] = []


def main(server: str, path: str, wanted_client: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
    found = "whole" if importlib.util.find_spec("py4j") else "thin"
    assert found == wanted_client, found
    read(spark, path)
    sources_of_rows(spark, path)
    filters_pushed(spark, path)
    servers_are_tried(server, path)
    read_by_index(server, path + "-many")
    written = path + "-written"
    write(spark, written)
    errors(spark, path, written)
    tables(spark, path, written)
    changes(spark, path + "-changed")
    read_changes(spark, path + "-told")
    applied(spark, path + "-applied")
    definitions(spark, path + "-defined")
    names_of_jobs(spark)
    statements(spark, f"delta.`file://{path}-stated`", f"delta.`{path}`")
    stream(spark, written, path)
    managed(spark, f"prod.main.{wanted_client}.t")
    for other in SESSIONS:
        other.stop()
    spark.stop()
    print("all is well", flush=True)


def read(spark: Any, path: str) -> None:
    df = spark.read.format("deltapy").load(path)
    assert df.count() == 18, df.count()
    assert df.filter("id = 1").count() + df.count() == 19
    delta_pyds.register(spark)
    assert delta_pyds.read(spark, path, where="id >= 15", columns=["id"], version=1).count() == 5
    # a local path may be another one on the server, so only a user can say that it is not
    auto = delta_pyds.read(spark, path)
    assert delta_pyds.explain(auto).engine == "arrow", delta_pyds.explain(auto)
    vouched = delta_pyds.read(spark, "file://" + path)
    assert delta_pyds.explain(vouched).engine == "native", delta_pyds.explain(vouched)
    native = delta_pyds.read(spark, path, where="id >= 1", engine="native")
    assert delta_pyds.explain(native).engine == "native"
    wanted = sorted(r.id for r in auto.filter("id >= 1").collect())
    assert sorted(r.id for r in native.collect()) == wanted
    assert sorted(r.id for r in vouched.collect()) == sorted(r.id for r in auto.collect())
    assert native.filter("id = 1").count() + native.count() == len(wanted) + 1
    assert native.alias("a").join(native.alias("b"), "id").count() == len(wanted)


def read_by_index(server: str, path: str) -> None:
    """Many files are given to the server as an index: once for equal files, with few requests, and nothing is left."""
    spark = SparkSession.builder.remote(server).create()
    SESSIONS.append(spark)
    questions = Questions(spark)
    delta_pyds.read(spark, "file://" + path).count()

    def requests(**given: Any) -> tuple[Any, list[str]]:
        frames = []
        asked = questions.of(lambda: frames.append(delta_pyds.read(spark, "file://" + path, **given)))
        assert delta_pyds.explain(frames[0]).engine == "native", delta_pyds.explain(frames[0])
        return frames[0], asked

    # the settings of the session, and those that PySpark asks for to send the deletion vectors
    frame, again = requests()
    assert again == ["Config"] * 2, again
    one_part, asked = requests(where="id >= 10", columns=["p", "id"])
    assert asked.count("Config") == 1 and len(asked) <= 7, asked
    assert requests(where="id >= 10", columns=["p", "id"])[1] == ["Config"]
    wanted = {i: f"p {i % 2}" for i in range(FILES * 2) if i not in (0, 3)}
    assert {row.id: row.p for row in frame.collect()} == wanted
    assert frame.columns == ["id", "p"]
    assert {row.id: row.p for row in one_part.collect()} == {i: p for i, p in wanted.items() if i >= 10}
    assert frame.alias("a").join(frame.alias("b"), "id").count() == len(wanted)
    assert frame.filter("p = 'p 1' and id > 5").count() == sum(i > 5 and i % 2 for i in wanted)
    by_path = f"delta.`file://{path}`"
    found = delta_pyds.sql(spark, f"SELECT count(DISTINCT _metadata.file_name) AS n, count(*) AS m FROM {by_path}")
    assert found.first() == (FILES, len(wanted)), found.first()
    # the conditions of a statement rule out files before the server gets the index
    found = delta_pyds.sql(spark, f"SELECT a.id FROM {by_path} a JOIN {by_path} b ON a.id = b.id AND b.p = 'p 1' "
                           "WHERE a.id >= 75")  # fmt: skip
    assert [read.num_files for read in delta_pyds.explain(found).reads] == [3, FILES // 2], delta_pyds.explain(found)
    assert sorted(row.id for row in found.collect()) == [75, 77, 79], found.collect()
    assert not any(name.startswith("deltapy-index-") for name in os.listdir(tempfile.gettempdir()))

    # a view is dropped, or has another index, when nobody reads it
    def views() -> int:
        return sum(table.name.startswith("_deltapy_files_") for table in spark.catalog.listTables())

    derived = frame.select("id")
    del frame, one_part, found
    relations._relations.pop(spark)
    gc.collect()
    assert derived.count() == len(wanted)
    held = views()
    frame, _ = requests(where="id >= 6")
    assert views() < held, (views(), held)
    assert derived.count() == len(wanted)
    assert frame.count() == sum(i >= 6 for i in wanted)
    spark.stop()


class Calls(grpc.UnaryStreamClientInterceptor):
    """Counts the queries of a session. ``taken_for``: of paths that the server then sees instead of others."""

    def __init__(self, *taken_for: tuple[bytes, bytes]) -> None:
        self.queries = 0
        self._taken_for = taken_for

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        self.queries += client_call_details.method.endswith("/ExecutePlan")
        message = request.SerializeToString()
        for path, other in self._taken_for:
            assert len(path) == len(other)
            message = message.replace(path, other)
        return continuation(client_call_details, type(request).FromString(message))


def session_with(server: str, calls: Calls) -> Any:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    builder = DefaultChannelBuilder(server)
    builder.add_interceptor(calls)
    SESSIONS.append(ConnectSession.builder.channelBuilder(builder).create())
    return SESSIONS[-1]


def servers_are_tried(server: str, path: str) -> None:
    """A server proves once for a session that it reads Parquet files as Spark does, or it is not asked for rows."""
    calls = Calls()
    spark = session_with(server, calls)
    before = calls.queries
    first = delta_pyds.read(spark, "file://" + path)
    registered_and_proved = calls.queries - before
    second = delta_pyds.read(spark, "file://" + path, version=1)
    assert delta_pyds.explain(first).engine == delta_pyds.explain(second).engine == "native"
    assert (registered_and_proved, calls.queries - before) == (2, 2), (registered_and_proved, calls.queries - before)

    # a path of Spark's reader means nothing there, as file:/ means nothing to Sail
    nothing = path[:-1] + "~"
    for name in os.listdir(path):
        os.makedirs(os.path.join(nothing, name))
    spark = session_with(server, Calls((f"file:{path}/".encode(), f"file:{nothing}/".encode())))
    frame = delta_pyds.read(spark, "file://" + path)
    assert frame.count() == 18, frame.count()
    assert "rows 0, not 20" in delta_pyds.explain(frame).reasons[0], delta_pyds.explain(frame)
    target = target_frame(spark, delta_pyds.load_snapshot(path))
    assert (target.engine, target.frame.count()) == ("arrow", 18), target.reasons


def managed(spark: Any, name: str) -> None:
    """A table of a catalog, by the name that SQL has for both."""
    delta_pyds.sql(spark, f"CREATE TABLE {name} AS SELECT id, 'a' AS s FROM range(3)")
    delta_pyds.sql(spark, f"UPDATE {name} SET s = 'b' WHERE id = 1")
    found = delta_pyds.sql(spark, f"SELECT a.s FROM {name} a JOIN {name} VERSION AS OF 0 o USING (id) WHERE a.s <> o.s")
    assert found.collect() == [("b",)], found.collect()
    delta_pyds.install(spark)
    try:
        assert spark.sql(f"SELECT count(*) AS n FROM {name}").collect() == [(3,)]
        assert [row.version for row in spark.sql(f"DESCRIBE HISTORY {name}").collect()] == [1, 0]
    finally:
        delta_pyds.uninstall()


def names_of_jobs(spark: Any) -> None:
    spark.addTag("mine")
    with described(spark, "one, two"):
        assert spark.getTags() == {"mine", "delta_pyds: one; two"}, spark.getTags()
        assert spark.range(1).toArrow().num_rows == 1
    assert spark.getTags() == {"mine"}, spark.getTags()
    spark.removeTag("mine")


def changes(spark: Any, path: str) -> None:
    """Rows that only Spark can find, and values that only Spark can compute; then what our evaluator knows."""
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    rows = spark.range(20).selectExpr("id", "named_struct('x', id) AS n", "CAST(id % 2 AS STRING) AS p")
    delta_pyds.write(rows, path, properties=properties, partition_by="p")
    spark.range(3, 5).createOrReplaceTempView("few")
    table = DeltaTable.forPath(spark, "file://" + path).alias("t")
    odd = udf(lambda i: i % 2 == 1, "boolean")
    table.update("t.id IN (SELECT id FROM few)", {"n.x": "hash(t.id)", "t.p": "'new'"})
    table.update((col("t.id") > 15) & odd("id"), {"n": expr("named_struct('x', -1)")})
    table.delete(odd("id") & (col("id") < 5))
    table.delete(expr("t.id = 19 AND hash(id) IS NOT NULL"))
    table.delete(col("id") == 18)
    found = {r.id: (r.n.x, r.p) for r in delta_pyds.read(spark, "file://" + path).collect()}
    assert set(found) == {*range(20)} - {1, 3, 18, 19}, found
    assert found[17] == (-1, "1") and found[4][1] == "new" and found[16] == (16, "0"), found
    delta_pyds.verify(path).raise_for_errors()


def statements(spark: Any, table: str, other: str) -> None:
    """SQL: commands over tables by path, and queries of Spark that name them."""
    run = partial(delta_pyds.sql, spark)
    run(f"CREATE TABLE {table} (id BIGINT, name STRING) USING delta")
    run(f"INSERT INTO {table} SELECT id, CAST(id AS STRING) FROM {other} WHERE id < :most", {"most": 5})
    run(f"DELETE FROM {table} t WHERE EXISTS (SELECT 1 FROM {other} o WHERE o.id = t.id AND o.id = ?)", [1])
    merged = run(
        f"MERGE INTO {table} t USING (SELECT id FROM {other} WHERE id IN (2, 9)) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = 'two' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert tuple(merged.collect()[0]) == (2, 1, 0, 1), merged.collect()
    found = run(
        f"SELECT t.id, t.name FROM {table} t JOIN {other} VERSION AS OF ? o ON t.id = o.id WHERE t.id > ?", [1, 1]
    )
    assert {r.id: r.name for r in found.collect()} == {2: "two", 3: "3", 4: "4", 9: None}, found.collect()
    assert run(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0].operation == "MERGE"
    run(f"CREATE OR REPLACE TEMPORARY VIEW stated AS SELECT * FROM {table}")
    assert spark.table("stated").count() == 4


def definitions(spark: Any, path: str) -> None:
    """A table created and altered: types as SQL has them, and expressions that only the server can try."""
    builder = DeltaTable.create(spark).location("file://" + path).addColumn("a", "struct<x: int, y: varchar(2)>")
    table = builder.addColumn("g", "INT", generatedAlwaysAs="a.x + 1").execute()
    delta_pyds.write(spark.sql("SELECT named_struct('x', 1, 'y', 'z') AS a"), "file://" + path, mode="append")
    table.addColumn("a.z", "decimal(9, 2)")
    table.addConstraint("small", "g < 9")
    for broken in ("g > 9", "rand() > 0"):
        try:
            table.addConstraint("broken", broken)
        except UserError:
            continue
        raise AssertionError(broken)
    table.setProperties({"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"})
    table.renameColumn("a.y", "w")
    table.alterColumn("g", nullable=False)
    [row] = table.toDF().collect()
    assert (row.a.asDict(), row.g) == ({"x": 1, "w": "z", "z": None}, 2), row
    table.setProperties({"delta.columnMapping.mode": "none"})
    assert table.toDF().columns == ["a", "g"]
    delta_pyds.verify(path).raise_for_errors()
    functions_of_the_session(spark, table, path)


def functions_of_the_session(spark: Any, table: DeltaTable, path: str) -> None:
    """A rule that calls Spark's function, never the session's of the same name."""
    table.addConstraint("sound", "soundex(a.w) = 'Z000'")
    row = spark.sql("SELECT named_struct('x', 2, 'w', 'z') AS a")
    delta_pyds.write(row, "file://" + path, mode="append", merge_schema=True)
    spark.udf.register("soundex", lambda text: f"{text}mine", "string")
    try:
        delta_pyds.write(row, "file://" + path, mode="append", merge_schema=True)
    except ExpressionError as e:
        assert not calls_built_in_functions_first(spark) and "soundex" in str(e), e
    else:
        assert calls_built_in_functions_first(spark)
    delta_pyds.verify(path).raise_for_errors()


def tables(spark: Any, path: str, written: str) -> None:
    """``DeltaTable`` over a path without a scheme: that it is the server's, too, is proved and not believed."""
    assert DeltaTable.isDeltaTable(spark, path) and not DeltaTable.isDeltaTable(spark, path + "-nothing")
    delta_pyds.write(spark.range(10).selectExpr("id", "id % 2 AS p"), written + "-table")
    table = DeltaTable.forPath(spark, written + "-table")
    assert table.detail().collect()[0].partitionColumns == []
    assert [row.version for row in table.history().collect()] == [0]
    first = table.toDF()
    assert delta_pyds.explain(first).engine == "native"
    aliased = table.alias("t")
    of_alias = aliased.toDF()
    assert aliased.toDF().filter((first.id > 7) & (of_alias["t.p"] == 0) & (col("t.id") == of_alias.id)).count() == 1
    commands(spark, table, aliased)
    try:
        DeltaTable.forPath(spark, path + "-nothing")
    except TableNotFoundError as e:
        assert e.code == "DELTA_MISSING_DELTA_TABLE", e
    else:
        raise AssertionError("a table that is not there was opened")


def commands(spark: Any, table: DeltaTable, aliased: DeltaTable) -> None:
    """The rows 0 to 9 with ``p``: by Columns of the frames of the table and of its alias, and by texts."""
    first, of_alias, of_other = table.toDF(), aliased.toDF(), table.alias("x").toDF()
    assert aliased.delete(of_alias.id == 0).collect()[0].num_affected_rows == 1
    assert table.delete((first.id == 1) & (of_alias.id == 1) & (of_other.id == 1)).collect()[0].num_affected_rows == 1
    assert aliased.update(col("t.id") == 2, {"p": first.p + of_alias.p + 10}).collect()[0].num_affected_rows == 1
    source = spark.range(9, 12).selectExpr("id", "id AS p")
    merge = aliased.merge(source.alias("s"), col("t.id") == col("s.id"))
    merged = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll("s.id < 11").execute()
    assert tuple(merged.collect()[0]) == (2, 1, 0, 1), merged.collect()
    assert delta_pyds.explain(merged).place.where_run == "process", delta_pyds.explain(merged)
    merge = aliased.merge(source, (first.id == source.id) & (of_alias.id > 9))
    merged = merge.whenMatchedUpdate(of_other.p == source.p, {"p": of_alias.p + source.p}).execute()
    assert tuple(merged.collect()[0]) == (1, 1, 0, 0), merged.collect()
    assert delta_pyds.explain(merged).place.where_run == "spark", delta_pyds.explain(merged)
    rows = sorted(tuple(row) for row in table.toDF().collect())
    assert rows == [(2, 10), (3, 1), (4, 0), (5, 1), (6, 0), (7, 1), (8, 0), (9, 9), (10, 20)], rows
    delta_pyds.verify(table.detail().collect()[0].location).raise_for_errors()


def sources_of_rows(spark: SparkSession, path: str) -> None:
    """An overwrite of a table by its own rows is another thing than one by other rows."""
    own = spark.read.format("deltapy").load(path)
    others = spark.range(3).union(spark.createDataFrame([(1,)], "id long"))
    read = spark.read.format("deltapy")
    other = os.path.realpath(tempfile.mkdtemp())
    for rows in (others, others.union(spark.read.parquet(f"file:{other}")), read.load(f"file://{other}")):
        assert depends_on_table(rows, path) is False
    assert depends_on_table(read.load("s3://a/t2"), "s3://a/t") is False
    assert depends_on_table(read.load("s3://a/*"), "s3://a/t") is None
    assert depends_on_table(spark.sql("SELECT 1 AS id"), path) is None
    for rows in (own, delta_pyds.read(spark, path), spark.range(3).union(own)):
        assert depends_on_table(rows, path)
    assert depends_on_table(spark.range(3).filter(col("id").isin(own.select("id"))), path)
    # the text of an expression may have a query, and so may a function of the session
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION of_session() RETURNS BIGINT RETURN (SELECT max(id) FROM range(3))")
    for rows in (
        *map(others.where, ("id IN (SELECT id FROM v)", "id IN (TABLE v)", "id > (FROM v |> AGGREGATE max(id))")),
        *map(others.selectExpr, ("(SELECT max(id) FROM v)", "(TABLE v)", "of_session()", "session.max(id)")),
        others.select(call_function("of_session")),
    ):
        assert depends_on_table(rows, path) is None, rows
    plain = others.where("id > 1 AND exp(id) < 9").selectExpr("sum(id) OVER (ORDER BY id) AS id", "CAST(id AS INT) p")
    aggregated = plain.groupBy((col("p") % 2).alias("p")).agg(
        max_(when(col("id").isin(1), 1)), call_function("sum", "id")
    )
    for rows in (plain, aggregated):
        assert depends_on_table(rows, path) is False, rows
    # the client of Spark 4.3 compresses large plans
    compressing = {"_plan_compression_threshold": 100, "_plan_compression_algorithm": "ZSTD"}
    with mock.patch.multiple(spark.client, create=True, **compressing):
        assert depends_on_table(own.where(~col("id").isin(*range(1000))), path)
    # the server may have links that this process does not see
    for place in (other, "/elsewhere", "file:///elsewhere"):
        assert depends_on_table(read.load(place), path) is None
    assert depends_on_table(read.load(f"file://{other}"), path, sure_of_files=False) is None
    for version in ("", "@v0"):
        assert depends_on_table(read.load(f"file://{path}{version}"), path)
    os.symlink(path, f"{other}/link")
    assert depends_on_table(read.load(f"file://{other}/link"), path)
    # no file is left, or the log has the answer
    table = DeltaTable.forPath(spark, f"file://{path}")
    no_file = delta_pyds.read(spark, f"file://{path}", where="id = 99")
    assert delta_pyds.explain(no_file).num_files == 0 and no_file.select(no_file["id"]).collect() == []
    assert depends_on_table(no_file, path)
    for rows in (table.history(), table.detail(), delta_pyds.sql(spark, f"DESCRIBE delta.`{path}`")):
        assert depends_on_table(rows, path) is None
    # the server has an index of so many files, and a view of it
    indexed = Path(tempfile.mkdtemp()) / "t"
    for ids in (range(1), range(relations.FEW_LISTED_FILES)):
        write_rows(indexed, {"id": "long"}, [[{"id": n}] for n in ids])
    rows = delta_pyds.read(spark, f"file://{indexed}")
    assert delta_pyds.explain(rows).engine == "native"
    assert depends_on_table(rows.where("id > 1"), str(indexed)) and depends_on_table(rows, other) is False
    assert depends_on_table(delta_pyds.read(spark, f"file://{indexed}", version=0), str(indexed)) is False
    assert depends_on_table(read.option("versionAsOf", 0).load(str(indexed)), str(indexed)) is False


def filters_pushed(spark: Any, path: str) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    df = spark.read.format("deltapy").load(path)
    assert df.filter("id = 1").count() == 1
    assert df.count() == 18
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def write(spark: Any, written: str) -> None:
    spark.range(5).coalesce(1).write.format("deltapy").mode("append").save(written)
    result = delta_pyds.write(spark.range(5, 7).coalesce(1), written, mode="append")
    assert (result.version, result.files, result.rows) == (1, 1, 2), result
    assert delta_pyds.write(pa.table({"id": [7]}), written, mode="append", spark=spark).version == 2
    assert delta_pyds.write(pa.table({"id": [7]}), written, mode="ignore").version is None  # the active session
    assert sorted(r.id for r in delta_pyds.read(spark, written).collect()) == list(range(8))
    empty = pa.table({"id": pa.array([], pa.int64()), "at": pa.array([], pa.timestamp("us"))})
    assert delta_pyds.write(empty, written + "-empty", spark=spark).rows == 0
    assert delta_pyds.read(spark, written + "-empty").dtypes == [("id", "bigint"), ("at", "timestamp")]
    # with a scheme the tasks and the commit are the client's
    replaced = delta_pyds.write(
        spark.range(2, 4), "file://" + written, mode="overwrite", replace_where="id IN (2, 3)", spark=spark
    )
    assert (replaced.version, replaced.rows) == (3, 2), replaced
    assert sorted(r.id for r in delta_pyds.read(spark, written).collect()) == list(range(8))
    # what only Spark knows: the server computes it, the client commits
    rules = {"delta.constraints.odd": "forall(array(id), x -> x < 3)"}
    for scheme in ("", "file://"):
        ruled = f"{scheme}{written}-ruled"
        delta_pyds.write(spark.range(1), ruled, mode="append", properties=rules if not scheme else None)
        try:
            delta_pyds.write(spark.range(3, 4), ruled, mode="append")
        except ConstraintViolationError as e:
            assert e.message.endswith(" - id : 3") and "CHECK constraint 'odd'" in e.message, e
        else:
            raise AssertionError("a row was written that breaks a rule")
    even = "forall(array(id), x -> x = 0)"
    assert delta_pyds.write(spark.range(1), ruled, mode="overwrite", replace_where=even).rows == 1
    assert delta_pyds.read(spark, written + "-ruled").count() == 1
    assert session_parallelism(spark) == 8  # nothing is set
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "3")
    assert session_parallelism(spark) == 3
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")


def errors(spark: Any, path: str, written: str) -> None:
    try:
        spark.read.format("deltapy").option("versionAsOf", "77").load(path).collect()
    except Exception as e:
        error = delta_pyds.error_of(e)
        assert type(error) is TimeTravelError and error.parameters["version"] == 77, e
        assert "DELTA_VERSION_NOT_FOUND" in str(e), e
    else:
        raise AssertionError("version 77 was read")
    ids = {"delta.constraints.c": "id < 2"}
    raised: list[tuple[type[Exception], Any]] = [
        (TimeTravelError, lambda: delta_pyds.read(spark, path, version=77)),
        (OptionError, lambda: delta_pyds.read(spark, "somewhere")),
        (UserError, lambda: delta_pyds.write(spark.range(1), written)),
        (ConstraintViolationError, lambda: delta_pyds.write(spark.range(3), path + "-checked", properties=ids)),
    ]
    for kind, call in raised:
        try:
            call()
        except Exception as e:
            assert type(e) is kind, (kind, e)
        else:
            raise AssertionError(f"no {kind.__name__} was raised")


def stream(spark: Any, written: str, path: str) -> None:
    for _ in range(2):  # the second run finds nothing new
        query = (
            spark.readStream.format("deltapy").option("maxFilesPerTrigger", 1).load(written)
            .writeStream.format("deltapy").option("checkpointLocation", path + "-checkpoint")
            .trigger(availableNow=True).start(path + "-streamed")
        )  # fmt: skip
        query.awaitTermination()
        assert query.exception() is None
        assert sorted(r.id for r in delta_pyds.read(spark, path + "-streamed").collect()) == list(range(8))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        # a session that is open at the exit of Python may wait for its channel without an end
        os._exit(1)
