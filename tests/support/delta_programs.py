"""Programs as people write them for delta-spark, by its public documentation: they name nothing of delta_pyds.

Each gets a session and a directory of its own, and fails where a table is not what the program's writer expects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

Program = Callable[[Any, str], None]


def ids(frame: Any, column: str = "id") -> list[Any]:
    return sorted(row[0] for row in frame.select(column).collect())


def refused(call: Callable[[], Any], *kinds: type[Exception]) -> str:
    """The message of the error that the call must end in, which is of all of these kinds."""
    try:
        call()
    except Exception as e:
        assert all(isinstance(e, kind) for kind in kinds), type(e)
        return str(e)
    raise AssertionError("nothing was refused")


def quickstart(spark: Any, directory: str) -> None:
    from delta.tables import DeltaTable  # type: ignore[import-not-found]
    from pyspark.sql.functions import col, expr

    path = f"{directory}/delta-table"
    spark.range(0, 5).write.format("delta").save(path)
    assert ids(spark.read.format("delta").load(path)) == [0, 1, 2, 3, 4]

    spark.range(5, 10).write.format("delta").mode("overwrite").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update(condition=expr("id % 2 == 0"), set={"id": expr("id + 100")})
    assert ids(table.toDF()) == [5, 7, 9, 106, 108]
    table.delete(condition=expr("id % 2 == 0"))
    new_data = spark.range(0, 20)
    (
        table.alias("oldData")
        .merge(new_data.alias("newData"), "oldData.id = newData.id")
        .whenMatchedUpdate(set={"id": col("newData.id")})
        .whenNotMatchedInsert(values={"id": col("newData.id")})
        .execute()
    )
    assert ids(DeltaTable.forPath(spark, path).toDF()) == list(range(20))

    assert ids(spark.read.format("delta").option("versionAsOf", 0).load(path)) == [0, 1, 2, 3, 4]
    when = table.history().filter("version = 1").select("timestamp").collect()[0][0]
    assert spark.read.format("delta").option("timestampAsOf", str(when)).load(path).count() == 5


def modes_and_partitions(spark: Any, directory: str) -> None:
    from delta.tables import DeltaTable
    from pyspark.errors import AnalysisException

    path = f"{directory}/events"
    rows = spark.createDataFrame([(1, "a", "2026-01-01"), (2, "b", "2026-01-02")], "id INT, name STRING, day STRING")
    rows.write.partitionBy("day").format("delta").save(path)
    assert "DELTA_PATH_EXISTS" in refused(lambda: rows.write.format("delta").save(path), AnalysisException)
    rows.write.format("delta").mode("ignore").save(path)
    assert ids(spark.read.format("delta").load(path)) == [1, 2]
    rows.write.save(path, format="delta", mode="append", partitionBy=["day"])
    rows.write.option("path", path).format("delta").mode("Append").save()
    assert ids(spark.read.load(path, format="delta")) == [1, 1, 1, 2, 2, 2]
    assert DeltaTable.forPath(spark, path).detail().collect()[0].partitionColumns == ["day"]

    assert ids(spark.read.format("delta").load(f"{path}/day=2026-01-02")) == [2, 2, 2]
    no_partition = refused(lambda: spark.read.format("delta").load(f"{path}/id=2").collect(), AnalysisException)
    assert "DELTA_NON_PARTITION_COLUMN_SPECIFIED" in no_partition

    one_day = rows.filter("id = 2")
    one_day.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2026-01-02'").save(path)
    assert ids(spark.read.format("delta").load(path)) == [1, 1, 1, 2]
    outside = rows.write.format("delta").mode("overwrite").option("replaceWhere", "day = '2026-01-02'")
    refused(lambda: outside.save(path), Exception)

    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        rows.filter("id = 1").write.format("delta").mode("overwrite").save(path)
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert ids(spark.read.format("delta").load(path)) == [1, 2]
    rows.filter("id = 1").write.format("delta").mode("overwrite").save(path)
    assert ids(spark.read.format("delta").load(path)) == [1]


def schemas(spark: Any, directory: str) -> None:
    from pyspark.errors import AnalysisException

    path = f"{directory}/people"
    spark.sql("SELECT 1 AS id, 'Ann' AS name").write.format("delta").save(path)
    wider = spark.sql("SELECT 2 AS id, 'Bob' AS name, 'Bern' AS city")
    refused(lambda: wider.write.format("delta").mode("append").save(path), AnalysisException)
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    found = {row.id: row.city for row in spark.read.format("delta").load(path).collect()}
    assert found == {1: None, 2: "Bern"}

    other = spark.sql("SELECT 'x' AS id, CAST(1 AS DOUBLE) AS score")
    refused(lambda: other.write.format("delta").mode("overwrite").save(path), AnalysisException)
    other.write.format("delta").mode("overwrite").option("overwriteSchema", True).save(path)
    assert spark.read.format("delta").load(path).dtypes == [("id", "string"), ("score", "double")]
    missing = refused(lambda: spark.read.format("delta").load(f"{directory}/nothing"), AnalysisException)
    assert "PATH_NOT_FOUND" in missing and "Path does not exist" in missing, missing


def streams(spark: Any, directory: str) -> None:
    from delta.tables import DeltaTable

    events, copied, latest = (f"{directory}/{name}" for name in ("events", "copied", "latest"))
    first = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, kind STRING")
    first.write.format("delta").save(events)
    stream = spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(events)
    writer = stream.writeStream.format("delta").partitionBy("kind").outputMode("append")
    query = writer.option("checkpointLocation", f"{directory}/c1").trigger(availableNow=True).start(copied)
    query.awaitTermination()
    assert ids(spark.read.format("delta").load(copied)) == [1, 2]
    assert DeltaTable.forPath(spark, copied).detail().collect()[0].partitionColumns == ["kind"]

    first.limit(0).write.format("delta").save(latest)

    def upsert(batch: Any, _: int) -> None:
        table = DeltaTable.forPath(batch.sparkSession, latest)
        merge = table.alias("t").merge(batch.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    writer = spark.readStream.format("delta").load(events).writeStream.format("delta").foreachBatch(upsert)
    writer = writer.outputMode("update")
    writer.option("checkpointLocation", f"{directory}/c2").trigger(availableNow=True).start().awaitTermination()
    assert ids(spark.read.format("delta").load(latest)) == [1, 2]


def write_to(spark: Any, directory: str) -> None:
    from pyspark.sql.functions import col

    name = f"delta.`{directory}/v2`"
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id INT, kind STRING")
    rows.writeTo(name).using("delta").partitionedBy(col("kind")).create()
    rows.writeTo(name).append()
    rows.filter("id = 1").writeTo(name).overwritePartitions()
    assert ids(spark.table(name)) == [1, 2, 2]
    rows.limit(0).writeTo(name).overwrite(col("kind") == "b")
    assert ids(spark.read.table(name)) == [1]
    rows.write.mode("append").format("delta").saveAsTable(name)
    assert ids(spark.read.table(name)) == [1, 1, 2]


def merge_into(spark: Any, directory: str) -> None:
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql.functions import col, expr, lit

    path = f"{directory}/merged"
    name = f"delta.`{path}`"
    spark.sql("SELECT id, CAST(id AS STRING) AS s FROM range(4)").write.format("delta").save(path)

    def found() -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())

    source = spark.createDataFrame([(1, "x"), (9, "y")], "id BIGINT, s STRING")
    writer = source.alias("s").mergeInto(name, expr(f"s.id = {name}.id AND s.s <> '{name}.s'"))
    assert writer.whenMatched().updateAll().whenNotMatched().insertAll().merge() is None
    assert found() == [(0, "0"), (1, "x"), (2, "2"), (3, "3"), (9, "y")]

    matched = source.mergeInto(name, source.id == col(f"`{path}`.id")).whenMatched(source.id == 9).delete()
    matched.whenMatched().update({f"`{path}`.s": source.s, f"{name}.id": col(f"spark_catalog.{name}.id") + 10}).merge()
    assert found() == [(0, "0"), (2, "2"), (3, "3"), (11, "x")]

    other = source.toDF("k", "v").withColumn("more", lit(1))
    rows = other.mergeInto(name, expr("k = id")).whenNotMatched(col("v") == "x").insert({"id": "k", "s": col("v")})
    rows = rows.whenNotMatchedBySource(expr("id > 9")).delete()
    rows.whenNotMatchedBySource(expr("id > 2")).update({"s": lit("gone")}).merge()
    assert found() == [(0, "0"), (1, "x"), (2, "2"), (3, "gone")]

    wider = other.toDF("id", "s", "more").alias("s")
    on = expr(f"s.id = `{path}`.id")
    wider.mergeInto(name, on).whenMatched().update({}).whenNotMatched().insert({}).merge()
    assert found() == [(0, "0"), (1, "x"), (2, "2"), (3, "gone"), (9, "y")]
    wider.mergeInto(name, on).withSchemaEvolution().whenMatched().updateAll().merge()
    assert found() == [(0, "0", None), (1, "x", 1), (2, "2", None), (3, "gone", None), (9, "y", 1)]

    assert "NO_MERGE_ACTION" in refused(lambda: wider.mergeInto(name, on).merge(), PySparkException)
    refused(lambda: wider.mergeInto(name, on).whenNotMatchedBySource().updateAll().merge(), Exception)
    twice = wider.mergeInto(name, on).whenMatched().delete().whenMatched().updateAll()
    refused(twice.merge, AnalysisException)
    ambiguous = wider.mergeInto(name, expr("id = id")).whenMatched().updateAll()
    assert "AMBIGUOUS_REFERENCE" in refused(ambiguous.merge, AnalysisException)
    nowhere = source.mergeInto(f"delta.`{path}-nothing`", expr("true")).whenMatched().delete()
    refused(nowhere.merge, AnalysisException)


def replace_using(spark: Any, directory: str) -> None:
    from delta.tables import DeltaTable
    from pyspark.errors import AnalysisException

    path = f"{directory}/replaced"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, s STRING, p INT) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO {name} VALUES (0, 'a', 0), (1, 'b', 0), (1, 'bb', 1), (2, 'c', 1), (NULL, 'n', 0)")

    def write(rows: Any, using: str) -> None:
        rows.write.format("delta").mode("overwrite").option("replaceUsing", using).save(path)

    def found() -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in spark.read.format("delta").load(path).collect()), key=repr)

    # of rows that come from Python the reference finds no files
    rows = spark.sql("SELECT * FROM VALUES (1L, 'x', 5), (1L, 'y', 0), (NULL, 'z', 5) AS t(id, s, p)")
    write(rows, "ID")
    kept = [(0, "a", 0), (2, "c", 1), (None, "n", 0)]
    assert found() == sorted([(1, "x", 5), (1, "y", 0), (None, "z", 5), *kept], key=repr), found()
    last = DeltaTable.forPath(spark, path).history(1).collect()[0]
    assert last.operation == "WRITE" and last.operationParameters["replaceUsingCols"] == "(ID)", last
    assert last.operationMetrics["numDeletedRows"] == "2", last.operationMetrics
    changes = spark.read.format("delta").option("readChangeFeed", True).option("startingVersion", 2).load(path)
    kinds = sorted(f"{row.s} {row._change_type}" for row in changes.collect())
    assert kinds == ["b delete", "bb delete", "x insert", "y insert", "z insert"], kinds

    write(rows.filter("s = 'y'"), "id, p")
    assert found() == sorted([(1, "x", 5), (1, "y", 0), (None, "z", 5), *kept], key=repr), found()
    write(spark.sql("SELECT 7L AS id, 'only' AS s, 5 AS p"), "p")
    assert found() == sorted([(1, "y", 0), (7, "only", 5), *kept], key=repr), found()
    version = DeltaTable.forPath(spark, path).history(1).collect()[0].version
    write(rows.limit(0), "id")
    assert DeltaTable.forPath(spark, path).history(1).collect()[0].version == version
    code = "UNRESOLVED_INSERT_REPLACE_USING_COLUMN"
    assert code in refused(lambda: write(rows, "nothing"), AnalysisException)
    assert code in refused(lambda: write(rows.drop("id"), "id"), AnalysisException)
    both = rows.write.format("delta").mode("overwrite").option("replaceUsing", "id").option("replaceWhere", "id = 1")
    refused(lambda: both.save(path), Exception)


def by_name(spark: Any, directory: str) -> None:
    schema = "program_by_name"
    spark.sql(f"CREATE SCHEMA {schema}")
    try:
        _by_name(spark, directory, schema)
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def _by_name(spark: Any, directory: str, schema: str) -> None:
    from delta.tables import DeltaTable
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col, expr, lit

    people, events = f"{schema}.people", f"{schema}.events"
    spark.sql(f"CREATE TABLE {people} (id INT, name STRING, city STRING) USING DELTA PARTITIONED BY (city)")
    spark.sql(f"INSERT INTO {people} VALUES (1, 'Ann', 'Bern'), (2, 'Bob', 'Rome')")
    for table, query in ((people, "SELECT * FROM x"), (f"delta.`{directory}/inserted`", "SELECT id, name FROM x")):
        if table != people:
            spark.sql(f"CREATE TABLE {table} (id INT, name STRING) USING delta")
        spark.sql(f"WITH x AS (SELECT 8 AS id, 'Eve' AS name, 'Oslo' AS city) INSERT INTO {table} {query}")
        assert 8 in ids(spark.table(table))
    spark.sql(f"DELETE FROM {people} WHERE id = 8")
    spark.sql(f"UPDATE {people} SET name = 'Bobby' WHERE name = 'Bob'")
    more = spark.createDataFrame([(2, "Rob", "Rome"), (3, "Cat", "Oslo")], "id INT, name STRING, city STRING")
    more.createOrReplaceTempView("more_people")
    spark.sql(
        f"MERGE INTO {people} AS p USING more_people AS m ON p.id = m.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    spark.catalog.dropTempView("more_people")
    assert ids(spark.table(people)) == ids(spark.read.table(people)) == [1, 2, 3]
    assert ids(spark.sql(f"SELECT people.name FROM {people} WHERE people.city = 'Rome'"), "name") == ["Rob"]
    assert ids(spark.sql(f"SELECT id FROM {people} VERSION AS OF 1")) == [1, 2]
    assert spark.catalog.tableExists(people)
    assert "people" in [row.tableName for row in spark.sql(f"SHOW TABLES IN {schema}").collect()]
    partitions = [one.name for one in spark.catalog.listColumns(people) if one.isPartition]
    assert partitions == ["city"]
    refused(lambda: spark.sql(f"CREATE TABLE {people} (id INT) USING delta"), AnalysisException)
    for query in ("(other INT) USING delta LOCATION '{}'", "USING delta LOCATION '{}' AS SELECT 1 AS other"):
        spark.sql(f"CREATE TABLE IF NOT EXISTS {people} {query.format(f'{directory}/elsewhere')}")
    there = DeltaTable.createIfNotExists(spark).tableName(people).location(f"{directory}/elsewhere")
    assert there.addColumn("other", "INT").execute().toDF().columns == ["id", "name", "city"]
    assert not DeltaTable.isDeltaTable(spark, f"{directory}/elsewhere")

    table = DeltaTable.forName(spark, people)
    table.delete(f"{people}.id = 1 AND people.name <> 'x' AND spark_catalog.{people}.city IS NOT NULL")
    assert "UNRESOLVED_COLUMN" in refused(lambda: table.delete("nowhere.people.id = 2"), AnalysisException)
    table.alias("p").merge(more.alias("m"), "p.id = m.id").whenMatchedUpdate(set={"name": lit("M")}).execute()
    assert ids(table.toDF(), "name") == ["M", "M"]
    assert table.history(1).collect()[0].operation == "MERGE"
    spark.sql(f"ALTER TABLE {people} ADD COLUMNS (age INT)")
    assert spark.table(people).columns == ["id", "name", "city", "age"]
    spark.sql(f"OPTIMIZE {people}")
    spark.sql(f"DESCRIBE HISTORY {people}").collect()
    assert spark.sql(f"DESCRIBE DETAIL {people}").collect()[0].partitionColumns == ["city"]

    days = spark.range(4).withColumn("day", (col("id") % 2).cast("int"))
    days.write.format("delta").partitionBy("day").saveAsTable(events)
    refused(lambda: days.write.format("delta").saveAsTable(events), AnalysisException)
    days.write.format("delta").mode("ignore").saveAsTable(events)
    days.write.format("delta").mode("append").saveAsTable(events)
    assert spark.table(events).count() == 8
    days.limit(0).write.format("delta").mode("overwrite").saveAsTable(events)
    days.write.insertInto(events)
    days.write.insertInto(events, overwrite=True)
    days.writeTo(events).append()
    days.filter("id = 0").writeTo(events).overwrite(col("id") == 0)
    assert spark.table(events).count() == 7
    days.writeTo(events).using("delta").createOrReplace()
    assert spark.table(events).count() == 4
    place = f"{directory}/external"
    days.write.format("delta").option("path", place).saveAsTable(f"{schema}.external")
    assert ids(spark.read.format("delta").load(place)) == [0, 1, 2, 3]
    spark.sql(f"CREATE TABLE {schema}.again USING delta LOCATION '{place}'")
    spark.sql(f"INSERT INTO {schema}.again VALUES (9, 1)")
    assert spark.table(f"{schema}.external").count() == 5
    merged = spark.table(events).mergeInto(f"{schema}.again", expr(f"events.id = {schema}.again.id + 100"))
    merged.whenNotMatchedBySource().delete().merge()
    assert spark.table(f"{schema}.again").count() == 0

    query = spark.readStream.table(events).writeStream.option("checkpointLocation", f"{directory}/checkpoint")
    query.format("delta").trigger(availableNow=True).toTable(f"{schema}.copied").awaitTermination()
    assert ids(spark.table(f"{schema}.copied")) == [0, 1, 2, 3]
    spark.sql(f"ALTER TABLE {schema}.copied RENAME TO {schema}.moved")
    assert ids(spark.table(f"{schema}.moved")) == [0, 1, 2, 3]
    spark.sql(f"CREATE TABLE {schema}.selected USING delta AS SELECT * FROM {schema}.moved WHERE id > 1")
    assert ids(spark.table(f"{schema}.selected")) == [2, 3]
    for name in ("selected", "moved", "again", "external", "events", "people"):
        spark.sql(f"DROP TABLE {schema}.{name}")
    left = spark.sql(f"SHOW TABLES IN {schema}").collect()  # and all temporary views of the session
    assert [row.tableName for row in left if not row.isTemporary] == []
    assert ids(spark.read.format("delta").load(place)) == []


def temporary_views(spark: Any, directory: str) -> None:
    """A view shows the table as it is, and a change of rows may call the table by the view's name."""
    from delta.tables import DeltaTable

    path = f"{directory}/viewed"
    name = f"delta.`{path}`"
    schema = "id INT, s STRING"

    def append(*rows: tuple[Any, ...], columns: str = schema) -> None:
        writer = spark.createDataFrame(list(rows), columns).write.format("delta").mode("append")
        writer.option("mergeSchema", True).save(path)

    append((1, "a"), (2, "b"))
    spark.read.format("delta").load(path).createOrReplaceTempView("program_view")
    spark.sql(f"CREATE TEMP VIEW program_later AS SELECT s, id FROM {name} WHERE id > 1")
    spark.read.format("delta").option("versionAsOf", 0).load(path).createOrReplaceTempView("program_old")
    try:
        append((3, "c"))
        assert ids(spark.sql("SELECT * FROM PROGRAM_VIEW")) == ids(spark.table("program_view")) == [1, 2, 3]
        spark.sql("UPDATE program_view SET s = 'z' WHERE program_view.id = 1")
        source = "(SELECT 9 AS id, 'n' AS s) x"
        merge = f"USING {source} ON program_view.id = x.id WHEN NOT MATCHED THEN INSERT *"
        assert spark.sql(f"MERGE INTO program_view {merge}").collect()[0].num_inserted_rows == 1
        spark.sql("INSERT INTO program_view SELECT id + 100, s FROM program_view WHERE id = 9")
        assert sorted(map(tuple, spark.table("program_view").collect()))[0] == (1, "z")
        assert ids(spark.sql("SELECT id FROM program_later")) == [2, 3, 9, 109]
        spark.sql("DELETE FROM program_view WHERE id > 3")
        append((4, "d", 5), columns=f"{schema}, more INT")
        assert spark.table("program_view").columns == ["id", "s"]
        assert ids(spark.table("program_later")) == [2, 3, 4] and ids(spark.table("program_old")) == [1, 2]
        assert ids(spark.read.format("delta").load(path)) == ids(spark.read.table("program_view")) == [1, 2, 3, 4]

        # a view of something else under the same name
        spark.range(2).createOrReplaceTempView("program_view")
        spark.sql("CREATE OR REPLACE TEMP VIEW program_later AS SELECT 7 AS id")
        DeltaTable.forPath(spark, path).delete("id = 1")
        assert ids(spark.table("program_view")) == [0, 1] and ids(spark.table("program_later")) == [7]
        DeltaTable.forPath(spark, path).toDF().createOrReplaceTempView("program_view")
        spark.sql("DELETE FROM program_view WHERE id = 2")
        assert ids(spark.sql("SELECT id FROM program_view")) == [3, 4]
    finally:
        for view in ("program_view", "program_later", "program_old"):
            spark.catalog.dropTempView(view)


def settings(spark: Any, directory: str) -> None:
    """Programs keep what a setting was, and set it back."""
    from pyspark.errors import AnalysisException, PySparkException

    name = f"delta.`{directory}/settings`"
    spark.sql(f"CREATE TABLE {name} (id INT) USING delta")
    drop = f"ALTER TABLE {name} DROP CONSTRAINT nothing"
    assert "DELTA_CONSTRAINT_DOES_NOT_EXIST" in refused(lambda: spark.sql(drop), AnalysisException)
    setting = "spark.databricks.delta.constraints.assumesDropIfExists.enabled"
    before = spark.conf.get(setting)
    try:
        spark.conf.set(setting, True)
        assert (before, spark.conf.get(setting)) == ("false", "true")
        spark.sql(drop)
    finally:
        spark.conf.set(setting, before)
    assert spark.conf.get("spark.databricks.delta.optimizeWrite.enabled") is None
    assert spark.conf.get("spark.databricks.delta.optimize.maxFileSize", "7") == "7"
    refused(lambda: spark.conf.get("spark.databricks.delta.nothing"), PySparkException)


def ids_of_rows(spark: Any, directory: str) -> None:
    from delta.tables import DeltaTable
    from pyspark.sql.functions import col

    name = f"delta.`{directory}/tracked`"
    spark.sql(f"CREATE TABLE {name} (a INT) USING delta TBLPROPERTIES (delta.enableRowTracking = true)")
    spark.sql(f"INSERT INTO {name} VALUES (5), (6)")
    DeltaTable.forName(spark, name).update("a = 6", {"a": "7"})
    rows = spark.read.table(name).select(
        "_metadata.row_id", "_metadata.row_commit_version", "*", (col("a") + 1).alias("b")
    )
    assert rows.columns == ["row_id", "row_commit_version", "a", "b"], rows.columns
    assert sorted(map(tuple, rows.collect())) == [(0, 1, 5, 6), (1, 2, 7, 8)], rows.collect()
    assert spark.table(name).select("a").columns == ["a"]


def whole_names(spark: Any, directory: str) -> None:
    """Columns called by the whole name of their table."""
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import col

    one, two, path = "program_one", "program_two", f"delta.`{directory}/whole`"
    for schema in (one, two):
        spark.sql(f"CREATE SCHEMA {schema}")
    try:
        make = "USING delta AS SELECT id, CAST(id AS STRING) AS s, named_struct('n', id) AS t FROM range"
        for table, rows in ((f"{one}.t", 4), (f"{two}.t", 3), (f"{two}.u", 2), (path, 2)):
            spark.sql(f"CREATE TABLE {table} {make}({rows})")

        def found(table: str) -> list[tuple[Any, ...]]:
            return sorted(tuple(row) for row in spark.sql(f"SELECT id, s, t.n FROM {table}").collect())

        spark.sql(f"UPDATE {one}.t SET {one}.t.s = concat(spark_catalog.{one}.t.s, '!') WHERE {one}.t.t.n = 1")
        spark.sql(f"DELETE FROM {one}.t WHERE {one}.t.id = 3")
        assert found(f"{one}.t") == [(0, "0", 0), (1, "1!", 1), (2, "2", 2)]
        spark.sql(f"DELETE FROM {one}.t WHERE t.id = {one}.t.t.n AND {one}.t.id > 1")
        spark.sql(f"DELETE FROM {path} WHERE {path}.id = 0 AND spark_catalog.{path}.s = '0'")
        spark.sql(f"UPDATE {path} SET {path}.s = upper({path}.s) || 'x', t = named_struct('n', {path}.t.n + 1)")
        assert found(path) == [(1, "1x", 2)]
        spark.sql(
            f"MERGE INTO {one}.t USING {two}.t ON {one}.t.id = spark_catalog.{two}.t.id "
            f"WHEN MATCHED AND {one}.t.id = 1 THEN UPDATE SET {one}.t.s = {two}.t.s, t.n = {two}.t.t.n + 5 "
            f"WHEN NOT MATCHED THEN INSERT ({one}.t.id, s) VALUES ({two}.t.id, {two}.t.s)"
        )
        assert found(f"{one}.t") == [(0, "0", 0), (1, "1", 6), (2, "2", None)]
        message = refused(
            lambda: spark.sql(f"MERGE INTO {one}.t USING {two}.t ON t.id = {two}.t.id WHEN MATCHED THEN DELETE"),
            AnalysisException,
        )
        assert "t" in message
        spark.sql(
            f"MERGE INTO {path} USING {two}.u ON {path}.id = {two}.u.id WHEN MATCHED THEN UPDATE SET * "
            f"WHEN NOT MATCHED AND {two}.u.id < 5 THEN INSERT *"
        )
        assert found(path) == [(0, "0", 0), (1, "1", 1)]
        spark.sql(f"MERGE INTO {two}.u USING {path} ON u.id = {path}.id WHEN MATCHED AND {path}.id = 1 THEN DELETE")
        assert found(f"{two}.u") == [(0, "0", 0)]
        for wrong in (f"{one}.t.nothing = 1", f"{two}.t.id = 1", f"other.{one}.t.id = 1"):
            refused(lambda text=wrong: spark.sql(f"DELETE FROM {one}.t WHERE {text}"), AnalysisException)
        refused(lambda: spark.sql(f"DELETE FROM {one}.t AS a WHERE {one}.t.id = 1"), AnalysisException)
        source = spark.createDataFrame([(2, "z"), (8, "n")], "k BIGINT, v STRING")
        writer = source.mergeInto(f"{one}.t", col(f"{one}.t.id") == col("k"))
        writer = writer.whenMatched(col(f"spark_catalog.{one}.t.s") == "2").update({f"{one}.t.s": source.v})
        writer.whenNotMatched().insert({"id": source.k, f"{one}.t.s": source.v}).merge()
        assert found(f"{one}.t") == [(0, "0", 0), (1, "1", 6), (2, "z", None), (8, "n", None)]
    finally:
        for schema in (one, two):
            spark.sql(f"DROP SCHEMA {schema} CASCADE")


def what_is_said(spark: Any, directory: str) -> None:
    """Programs ask the words of an error what happened."""
    from delta.tables import DeltaTable
    from pyspark.errors import AnalysisException

    path = f"{directory}/said"

    def exists() -> bool:
        try:
            spark.read.load(path=path, format="delta")
        except AnalysisException as error:
            if "is not a Delta table" in str(error) or "Path does not exist" in str(error):
                return False
            raise
        return True

    assert not exists()
    spark.range(3).selectExpr("id", "id AS p").write.format("delta").partitionBy("p").save(path)
    assert exists()
    table = DeltaTable.forPath(spark, path)
    table.generate("SYMLINK_FORMAT_MANIFEST")
    for call, words in (
        (lambda: DeltaTable.forPath(spark, f"{directory}/nothing"), "is not a Delta table"),
        (lambda: table.optimize().where("id = 1").executeCompaction(), "references non-partition column 'id'"),
        (lambda: table.optimize().executeZOrderBy("p"), "Z-Ordering can only be performed on data columns"),
        (lambda: table.restoreToTimestamp("05/04/1999"), "cannot be converted to a valid timestamp"),
        (lambda: table.restoreToTimestamp(1), "timestamp needs to be a string but got '<class 'int'>'"),
        (lambda: table.update(set={"id": 1}), "Values of dict in"),
        (lambda: table.merge(1, "true"), "must be DataFrame"),
    ):
        said = refused(call, Exception)
        assert words in said, said
    # after SET LOCATION, the first directory stays, so no other run can use the name
    name = f"said_{uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} (a INT) USING delta")
    try:
        again = DeltaTable.create(spark).tableName(name).addColumn("a", "INT")
        assert "already exists" in refused(again.execute, AnalysisException)
        spark.range(2).selectExpr("CAST(id AS INT) AS a").write.format("delta").save(f"{directory}/elsewhere")
        spark.sql(f"ALTER TABLE {name} SET LOCATION '{directory}/elsewhere'")
        assert ids(spark.table(name), "a") == [0, 1]
    finally:
        spark.sql(f"DROP TABLE {name}")


def what_tables_there_are(spark: Any, directory: str) -> None:
    """As tools of models look for their tables: in Spark's words about them."""
    schema = "program_listed"
    spark.sql(f"CREATE SCHEMA {schema}")
    try:
        made = f"CREATE TABLE {schema}.orders (id INT COMMENT 'key', day STRING) USING delta PARTITIONED BY (day)"
        spark.sql(f"{made} COMMENT 'words'")
        spark.sql(f"CREATE TABLE {schema}.placed USING delta LOCATION '{directory}/placed' AS SELECT 1 AS id")
        spark.sql(f"CREATE TABLE {schema}.files USING parquet AS SELECT 1 AS id")
        spark.sql(f"CREATE VIEW {schema}.shown AS SELECT id FROM {schema}.orders")

        def listed(statement: str) -> dict[str, Any]:
            return {row[1]: row for row in spark.sql(statement).collect() if not row.isTemporary}

        assert sorted(listed(f"SHOW TABLES IN {schema}")) == ["files", "orders", "placed", "shown"]
        assert sorted(listed(f"SHOW TABLES FROM spark_catalog.{schema} LIKE 'o*|*d'")) == ["orders", "placed"]
        assert sorted(listed(f"SHOW VIEWS IN {schema}")) == ["shown"]
        every = listed(f"show table extended in {schema} like '*'")
        assert sorted(every) == ["files", "orders", "placed", "shown"]
        said = {name: row.information.splitlines() for name, row in every.items()}
        kinds = {"orders": "MANAGED", "placed": "EXTERNAL", "files": "MANAGED", "shown": "VIEW"}
        for name, kind in kinds.items():
            assert f"Type: {kind}" in said[name] and f"Database: {schema}" in said[name], said[name]
            assert ("Provider: delta" in said[name]) == (name in ("orders", "placed")), said[name]
            assert any(line.startswith("View Text") for line in said[name]) == (name == "shown"), said[name]

        def described(name: str) -> dict[str, str]:
            rows = [tuple(row)[:2] for row in spark.sql(f"DESCRIBE TABLE EXTENDED {schema}.{name}").collect()]
            return dict(rows[rows.index(("# Detailed Table Information", "")) :])

        orders, placed = described("orders"), described("placed")
        wanted = {"Namespace": schema, "Database": schema, "Table": "orders", "Type": "MANAGED", "Comment": "words"}
        assert {name: orders.get(name) for name in wanted} == wanted, orders
        assert orders["Provider"] == "delta" and orders["Is_managed_location"] == "true", orders
        assert placed["Type"] == "EXTERNAL" and "Is_managed_location" not in placed, placed
        assert placed["Location"].endswith(f"{directory}/placed") and placed["Table"] == "placed", placed

        # answers without rows
        assert spark.sql(f"SHOW PARTITIONS {schema}.orders").collect() == []
        unneeded = spark.sql(f"VACUUM {schema}.orders DRY RUN")
        assert (unneeded.dtypes, unneeded.collect()) == ([("path", "string")], [])
        spark.sql(f"DROP VIEW {schema}.shown")
        assert listed(f"SHOW VIEWS IN {schema}") == {}
    finally:
        spark.sql(f"DROP SCHEMA {schema} CASCADE")
    assert ids(spark.read.format("delta").load(f"{directory}/placed")) == [1]


PROGRAMS: Iterable[Program] = (
    quickstart,
    modes_and_partitions,
    schemas,
    streams,
    write_to,
    merge_into,
    replace_using,
    by_name,
    whole_names,
    what_is_said,
    what_tables_there_are,
    temporary_views,
    settings,
    ids_of_rows,
)
