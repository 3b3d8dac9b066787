"""A program on a cluster whose Python got the package from the user: its work, and where that Python found it.

Arguments: a directory that all see, and the zip to send to a server of Spark Connect; nothing more for a program of
``spark-submit``. Prints JSON. It imports nothing of the tests, which executors do not have.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import delta_pyds
from delta_pyds import DeltaTable


def main(directory: str, shipped: str = "") -> None:
    spark = SparkSession.builder.appName("shipped").getOrCreate()
    if shipped:
        spark.addArtifact(shipped, pyfile=True)
    try:
        work(spark, f"file://{directory}/t", f"file://{directory}/copy", f"{directory}/checkpoint")
        print(json.dumps({"places": places(spark)}), flush=True)
    except delta_pyds.DeltaError as error:
        print(json.dumps({"error": type(error).__name__, "message": error.message}), flush=True)
    finally:
        spark.stop()


def places(spark: Any) -> list[str]:
    """The files of the package that tasks import."""

    def where(_: int) -> str:
        import delta_pyds

        return delta_pyds.__file__

    found = spark.range(4, numPartitions=4).select(udf(where, "string")("id").alias("place")).collect()
    return sorted({row.place for row in found})


def work(spark: Any, path: str, copy: str, checkpoint: str) -> None:
    """The work for a table of executors and of the driver's own Python processes."""
    rows = spark.range(1000, numPartitions=2).selectExpr("id", "id % 2 AS p", "CAST(id AS STRING) AS v")
    given = {"delta.enableDeletionVectors": "true", "delta.autoOptimize.autoCompact": "true"}
    assert delta_pyds.write(rows, path, partition_by="p", properties=given).rows == 1000
    rows.selectExpr("id + 1000 AS id", "p", "v").write.format("deltapy").mode("append").save(path)
    for engine in ("native", "arrow"):
        frame = delta_pyds.read(spark, path, engine=engine, where="id < 1500")
        assert frame.filter("p = 1").count() == 750, engine
    assert spark.read.format("deltapy").option("where", "id >= 1500").load(path).count() == 500
    table = DeltaTable.forPath(spark, path, engine="spark").alias("t")
    table.delete("hash(id) = hash(1999L)")
    DeltaTable.forPath(spark, path, engine="tasks").update("id = 0", {"v": "'zero'"})
    source = spark.range(1998, 2002).alias("s")
    merge = table.merge(source, "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id", "p": "0", "v": "hash(s.id)"})
    assert merge.execute().collect()[0].num_inserted_rows == 3
    query = (
        spark.readStream.format("deltapy")
        .load(path)
        .writeStream.format("deltapy")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(copy)
    )
    assert query.awaitTermination(600)
    DeltaTable.forPath(spark, copy, engine="tasks").optimize().executeCompaction()
    assert delta_pyds.sql(spark, f"SELECT count(*) FROM delta.`{copy}`").collect()[0][0] == 2002
    delta_pyds.verify(copy).raise_for_errors()
    delta_pyds.verify(path).raise_for_errors()


if __name__ == "__main__":
    main(*sys.argv[1:])
