"""A Spark Connect server on a free port of this machine: prints the port, and ends with its input.

Argument: the directory of a metastore, where the tables by name shall outlive the server.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.support.metastore import with_metastore


def main() -> None:
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin")
        .config("spark.connect.grpc.binding.address", "127.0.0.1")
        .config("spark.connect.grpc.binding.port", "0")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
    )
    spark = (with_metastore(builder, sys.argv[1]) if len(sys.argv) > 1 else builder).getOrCreate()
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print("port", getattr(service, "MODULE$").localPort(), flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
