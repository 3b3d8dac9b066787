"""A table at a path, opened for the commands of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql import SparkSession

from delta_pyds.errors import TableNotFoundError
from delta_pyds.protocol.properties import ISOLATION_LEVELS
from delta_pyds.spark.arguments import choice_argument, flag_argument, number_argument, text_argument
from delta_pyds.spark.registration import register
from delta_pyds.spark.row_changes.handle import DEFAULT_PROCESS_BYTES, Engine, TableHandle
from delta_pyds.spark.same_files import root_for_server
from delta_pyds.spark.table_commands.identifiers import storage_options_of
from delta_pyds.storage.table_path import PathLike

_ENGINES = ("auto", "process", "tasks", "spark")
_ISOLATION_LEVELS = tuple(map(str.lower, ISOLATION_LEVELS))


def open_path(
    spark: SparkSession,
    path: PathLike,
    hadoop_conf: Mapping[str, str] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    engine: Engine = "auto",
    process_bytes: int = DEFAULT_PROCESS_BYTES,
    max_runs: int = 1,
    row_level_concurrency: bool = True,
    isolation_level: str | None = None,
    user_metadata: str | None = None,
) -> TableHandle:
    """The table at a path. The arguments, and what is raised, are those of ``DeltaTable.forPath``."""
    root = root_for_server(spark, path)
    number_argument("process_bytes", process_bytes, least=0)
    number_argument("max_runs", max_runs, least=1)
    handle = TableHandle(
        spark,
        root,
        storage_options=storage_options_of(root, hadoop_conf, storage_options),
        engine=cast(Engine, choice_argument("engine", engine, _ENGINES)),
        process_bytes=process_bytes,
        max_runs=max_runs,
        row_level_concurrency=flag_argument("row_level_concurrency", row_level_concurrency),
        isolation_level=None
        if isolation_level is None
        else choice_argument("isolation_level", isolation_level, _ISOLATION_LEVELS),
        user_metadata=text_argument("user_metadata", user_metadata),
    )
    try:
        handle.open()
    except TableNotFoundError as e:
        # the reference has only this code for it
        raise TableNotFoundError(e.message, code="DELTA_MISSING_DELTA_TABLE", **e.parameters) from None
    register(spark)
    return handle
