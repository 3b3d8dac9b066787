"""Tables with Spark's hidden column ``_metadata`` as one of their columns, for queries that name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.arguments import json_argument, option_texts
from delta_pyds.spark.native.read import read_natively
from delta_pyds.spark.session import read, register
from delta_pyds.statements.file_metadata import COLUMN
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import absolute_table_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIME_ZONE = "spark.sql.session.timeZone"


def read_with_metadata(
    spark: SparkSession,
    path: str,
    version: int | None,
    timestamp: str | None,
    storage_options: Mapping[str, Any] | None = None,
) -> tuple[DataFrame, bool]:
    """As ``read``, with the column, unless the table has one of this name; and whether it has one.

    Raises: UnsupportedOperationError where Spark's own Parquet reader cannot read the table; what ``read`` raises.
    """
    plain = read(spark, path, version=version, timestamp=timestamp, storage_options=storage_options)
    if COLUMN in map(str.lower, plain.columns):
        return plain, True
    register(spark)
    options: dict[str, Any] = {
        "versionAsOf": version,
        "timestampAsOf": timestamp,
        "timeZone": spark.conf.get(_TIME_ZONE),
    }
    options["storageOptions"] = json_argument("storage_options", storage_options)
    given = option_texts("options", {name: value for name, value in options.items() if value is not None})
    root = absolute_table_path(path, remote=is_remote(spark))
    attempt = read_natively(spark, root, given, insist=False, sure_of_files=has_scheme(path), with_metadata=True)
    if attempt.frame is None:
        raise UnsupportedOperationError(
            f"the column _metadata comes from Spark's own Parquet reader. {attempt.report}. Leave the column out.",
            feature=COLUMN,
            table=root,
        )
    return attempt.frame, False
