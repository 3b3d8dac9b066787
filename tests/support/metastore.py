"""A session over a Hive metastore on derby in a directory: one process at a time has it."""

from __future__ import annotations

from typing import Any

from tests.support.java_options import QUICK_COMPILER


def with_metastore(builder: Any, directory: str) -> Any:
    """The builder of a session, with the metastore and the warehouse that lie in the directory."""
    return (
        builder.config("spark.sql.catalogImplementation", "hive")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={directory}/db;create=true")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={directory} {QUICK_COMPILER} -XX:+UseSerialGC")
    )
