"""The same source through Spark Connect, in a process of its own: a session is classic or remote, not both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.table_builder import TableBuilder

SCRIPT = """
import sys
from pyspark.sql import SparkSession

path = sys.argv[1]
spark = (
    SparkSession.builder.remote("local[2]")
    .config("spark.connect.grpc.binding.address", "127.0.0.1")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
df = spark.read.format("deltapy").load(path)
assert df.count() == 18, df.count()
assert df.filter("id = 1").count() + df.count() == 19

import delta_pyds
delta_pyds.register(spark)
assert delta_pyds.read(spark, path, where="id >= 15", columns=["id"], version=1).count() == 5

# a local path may be another one on the server, so only a user can say that it is not
auto = delta_pyds.read(spark, path)
assert delta_pyds.explain(auto).engine == "arrow", delta_pyds.explain(auto)
native = delta_pyds.read(spark, path, where="id >= 1", engine="native")
assert delta_pyds.explain(native).engine == "native"
wanted = sorted(r.id for r in auto.filter("id >= 1").collect())
assert sorted(r.id for r in native.collect()) == wanted
assert native.filter("id = 1").count() + native.count() == len(wanted) + 1
assert native.alias("a").join(native.alias("b"), "id").count() == len(wanted)

spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
df = spark.read.format("deltapy").load(path)
assert df.filter("id = 1").count() == 1
assert df.count() == 18
try:
    spark.read.format("deltapy").option("versionAsOf", "77").load(path).collect()
except Exception as e:
    assert "DELTA_VERSION_NOT_FOUND" in str(e), e
else:
    raise AssertionError("version 77 was read")

written = path + "-written"
spark.range(5).write.format("deltapy").mode("append").save(written)
delta_pyds.write(spark.range(5, 8), written, mode="append")
assert sorted(r.id for r in delta_pyds.read(spark, written).collect()) == list(range(8))
try:
    delta_pyds.write(spark.range(1), written)
except Exception as e:
    assert "DELTA_PATH_EXISTS" in str(e), e
else:
    raise AssertionError("a table was created twice")

for _ in range(2):  # the second run finds nothing new
    query = (
        spark.readStream.format("deltapy").option("maxFilesPerTrigger", 1).load(written)
        .writeStream.format("deltapy").option("checkpointLocation", path + "-checkpoint")
        .trigger(availableNow=True).start(path + "-streamed")
    )
    assert query.awaitTermination(120)
    assert sorted(r.id for r in delta_pyds.read(spark, path + "-streamed").collect()) == list(range(8))
print("all is well")
spark.stop()
"""


def test_reading_and_writing_through_spark_connect(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, features=(["deletionVectors"], ["deletionVectors"]))
    table.create()
    (add,) = table.append([{"id": i} for i in range(20)])
    table.delete(add, [0, 5])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(table.path)],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            # the one way to have server and client agree on a free port
            "SPARK_TESTING": "1",
            "PYSPARK_SUBMIT_ARGS": "--driver-memory 1g --driver-java-options -XX:TieredStopAtLevel=1 "
            "--conf spark.ui.enabled=false pyspark-shell",
        },
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all is well" in done.stdout
