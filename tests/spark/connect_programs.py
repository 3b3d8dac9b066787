"""``delta_pyds.install`` on Spark Connect, from whatever Python runs it. Arguments: a server and a directory.

Programs for delta-spark run after one line; what is not ours is Spark's own; all is taken back.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import delta_pyds

# as a program does it at its top: before there is a session
delta_pyds.install(delta=True)

import delta.tables  # type: ignore[import-not-found]  # noqa: E402
from pyspark.errors import PySparkException  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from delta_pyds.errors import DeltaError, UnsupportedOperationError  # noqa: E402
from tests.support.delta_programs import PROGRAMS, ids, refused  # noqa: E402


def main(server: str, directory: str, which: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    for number, program in enumerate(PROGRAMS):
        own = Path(directory, f"{which}-{program.__name__}")
        own.mkdir()
        # by paths with a scheme, which is the same on the server, and by such as programs have
        program(spark, f"file://{own}" if number % 2 else str(own))
    own = Path(directory, which)
    own.mkdir()
    statements(spark, f"{own}/s")
    batches(spark, f"file://{own}")
    modes_of_session(spark, f"{own}/d")
    untouched(spark, f"file://{own}/p", f"{own}/u")
    print("all is well", flush=True)
    spark.stop()


def statements(spark: Any, path: str) -> None:
    """``spark.sql``, with frames that are lazy and views that nobody made."""
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} USING delta AS SELECT id, 'a' AS s FROM range(3)")
    more = spark.createDataFrame([(2, "b"), (7, "c")], "id BIGINT, s STRING")
    merged = spark.sql(
        f"MERGE INTO {table} t USING {{more}} m ON t.id = m.id AND EXISTS (SELECT 1 FROM {{more}} x WHERE x.id = t.id) "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        more=more,
    )
    assert tuple(merged.collect()[0]) == (2, 1, 0, 1), merged.collect()
    both = spark.sql(
        f"SELECT t.s FROM {table} t JOIN {{more}} m ON t.id = m.id WHERE m.id > :least", {"least": 2}, more=more
    )
    assert [row.s for row in both.collect()] == ["c"]
    assert spark.sql("SELECT s FROM {more} WHERE s <> {text} AND 'delta.`/x`' <> s", more=more, text="c").collect() == [
        ("b",)
    ]
    assert not [view for view in spark.catalog.listTables() if view.isTemporary], spark.catalog.listTables()
    found = spark.read.format("deltapy").option("where", "id > 1").load(f"file://{path}")
    assert delta_pyds.explain(found).engine == "native" and ids(found) == [2, 7]
    assert ids(spark.table(f"deltapy.`{path}`")) == ids(spark.read.table(table)) == [0, 1, 2, 7]
    assert spark.read.option("versionAsOf", 0).table(table).count() == 3
    delta_pyds.register_functions(spark)
    history = spark.sql(f"SELECT * FROM delta_history('{path}')")
    assert history.collect() == spark.sql(f"DESCRIBE HISTORY {table}").collect(), history.collect()


def batches(spark: Any, directory: str) -> None:
    """The function of a batch runs on the server, and finds there what is installed here."""
    events, copied = f"{directory}/events", f"{directory}/copied"
    spark.range(4).write.format("delta").save(events)

    def copy(batch: Any, _: int) -> None:
        batch.write.format("delta").mode("append").save(copied)
        delta.tables.DeltaTable.forPath(batch.sparkSession, copied).delete("id = 0")

    writer = spark.readStream.table(f"delta.`{events}`").writeStream.foreachBatch(copy)
    writer = writer.option("checkpointLocation", f"{directory}/c1").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    assert query.exception() is None
    assert ids(spark.read.format("delta").load(copied)) == [1, 2, 3]
    writer = spark.readStream.format("delta").load(events).writeStream.option("checkpointLocation", f"{directory}/c2")
    writer.trigger(availableNow=True).toTable(f"delta.`{directory}/streamed`").awaitTermination()
    assert ids(spark.table(f"delta.`{directory}/streamed`")) == [0, 1, 2, 3]


def modes_of_session(spark: Any, path: str) -> None:
    name = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    spark.conf.set(name, "true")
    try:
        spark.range(2).write.format("delta").save(path)
        spark.range(2).write.format("delta").mode("append").save(path)
    finally:
        spark.conf.unset(name)
    table = delta.tables.DeltaTable.forPath(spark, path)
    assert table.detail().collect()[0].properties["delta.enableDeletionVectors"] == "true"
    assert "no buckets" in refused(
        lambda: spark.range(1).write.format("delta").bucketBy(2, "id").mode("append").save(path),
        UnsupportedOperationError,
    )
    assert "absolute" in refused(lambda: spark.range(1).write.format("delta").save("somewhere"), DeltaError)


def untouched(spark: Any, parquet: str, path: str) -> None:
    delta_pyds.uninstall()
    classes = [type(spark), type(spark.read), type(spark.range(1)), type(spark.range(1).write)]
    before = [dict(vars(owner)) for owner in classes]
    installed = delta_pyds.install(spark, delta=True)
    assert all(dict(vars(owner)) != known for owner, known in zip(classes, before, strict=True))
    assert installed == delta_pyds.install(spark, delta=True) and installed.formats == ("deltapy", "delta"), installed
    assert "connect.session.SparkSession" in repr(installed) and installed.modules, installed
    frame = spark.range(3).coalesce(1)
    frame.write.partitionBy().mode("overwrite").parquet(parquet)
    frame.write.format("parquet").mode("append").option("compression", "none").save(parquet)
    assert spark.read.load(parquet).count() == spark.read.format("parquet").load(parquet).count() == 6
    frame.writeTo("taken").using("parquet").create()
    assert ids(spark.table("taken")) == ids(spark.sql("SELECT * FROM taken")) == [0, 1, 2]
    spark.sql("DROP TABLE taken")
    assert "PARSE_SYNTAX_ERROR" in refused(lambda: spark.sql("SELEC 1"), PySparkException)

    delta_pyds.uninstall()

    assert [dict(vars(owner)) for owner in classes] == before
    assert "DATA_SOURCE_NOT_FOUND" in refused(lambda: spark.read.format("delta").load(path).schema, PySparkException)
    assert "delta.tables" not in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
