"""A Spark session with the reference in it: what every session that judges or times us has in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.interop.setup_env import JARS
from tests.support.java_options import QUICK_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFERENCE = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
# what a session without the reference has in common with those that have it
WITHOUT_REFERENCE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
# Hundreds of commands on a few rows each: what compiles them costs more than what runs them.
_FEW_ROWS = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    # a vacuum lists directories in as many tasks: by default 10,000
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # a wrong checksum of delta_pyds must end the reference's command, not only be logged
    "spark.databricks.delta.checksum.mismatch.fatal": "true",
}


def reference_session(
    threads: int, scratch: Path, memory: str, classes: Path | None = None, jars: Path = JARS
) -> SparkSession.Builder:
    """With the reference's JARs and reachable from this machine alone; ``classes``: a folder searched before them.

    ``jars``: the folder of the JARs.
    """
    from pyspark.sql import SparkSession

    class_path = [str(classes)] if classes else []
    builder = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.extraClassPath", ":".join([*class_path, f"{jars}/*"]))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
    )
    return builder.config(map=WITHOUT_REFERENCE | _REFERENCE)


def for_few_rows(builder: SparkSession.Builder, java_options: str = "") -> SparkSession.Builder:
    """Quick to start and for small tables; the reference checks each checksum file that it reads."""
    java = f"-Duser.timezone=UTC {QUICK_COMPILER} -XX:+UseSerialGC {java_options}".strip()
    return builder.config(map=_FEW_ROWS).config("spark.driver.extraJavaOptions", java)
