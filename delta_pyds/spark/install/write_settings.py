"""The session's settings for a write, as in the reference: Spark's planner process sees no settings.

Invariant: an option of the write wins over the session.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from delta_pyds.spark.options.values import storage_options
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.same_files import root_for_server
from delta_pyds.spark.settings import PARTITION_OVERWRITE_MODE
from delta_pyds.spark.table_commands.identifiers import is_table
from delta_pyds.spark.table_commands.settings import (
    default_properties,
    for_one_command,
    merges_schema,
    without_transaction,
)


def with_settings(spark: SparkSession, path: str, options: Mapping[str, str], *, overwrite: bool) -> dict[str, str]:
    """The options, completed by the session's settings.

    Raises: OptionError for an incomplete transaction.
    """
    given = {key.lower() for key in options}
    of_session = without_transaction if given & {"txnappid", "txnversion"} else for_one_command
    handle = of_session(TableHandle(spark, path))
    found = dict(options)
    # a replaced definition removes all rows
    replaces = any(k.lower() == "createmode" and v in ("replace", "createOrReplace") for k, v in options.items())
    if handle.user_metadata and "usermetadata" not in given:
        found["userMetadata"] = handle.user_metadata
    if handle.txn is not None:
        found["txnAppId"], found["txnVersion"] = handle.txn[0], str(handle.txn[1])
    if not replaces and "mergeschema" not in given and merges_schema(spark):
        found["mergeSchema"] = "true"
    if overwrite and not replaces and not given & {"replacewhere", "replaceusing", "partitionoverwritemode"}:
        # without this option the write would delete partitions that the session's setting keeps
        mode = (spark.conf.get(PARTITION_OVERWRITE_MODE, None) or "static").strip().lower()
        if mode == "dynamic":
            found["partitionOverwriteMode"] = mode
    return found


def with_defaults(spark: SparkSession, path: str | None, options: Mapping[str, str]) -> dict[str, str]:
    """The options, completed by the session's properties for new tables if this write creates one.

    ``path``: None if the write certainly creates a table.
    """
    defaults = default_properties(spark, options)
    if not defaults:
        return dict(options)
    if path is not None:
        given = {key.lower(): text for key, text in options.items()}
        if is_table(root_for_server(spark, path), storage_options(given)):
            return dict(options)
    return {**options, **defaults}
