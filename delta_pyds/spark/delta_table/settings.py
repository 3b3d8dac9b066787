"""What the session says now of commands: the settings that users of the reference have set already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from delta_pyds.errors import OptionError
from delta_pyds.spark.row_changes.handle import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIME_ZONE = "spark.sql.session.timeZone"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"


def for_one_command(handle: TableHandle) -> TableHandle:
    """The handle with what the session says at this moment; what was given for the table wins.

    Raises: OptionError for the half of a transaction's pair, or a version that is no number.
    """
    spark = handle.spark
    return replace(
        handle,
        time_zone=spark.conf.get(_TIME_ZONE, None) or "UTC",
        user_metadata=handle.user_metadata or spark.conf.get(_USER_METADATA, None) or None,
        txn=_transaction(spark),
    )


def merges_schema(spark: SparkSession) -> bool:
    """Whether every merge of the session may add columns to its table."""
    return (spark.conf.get(_AUTO_MERGE, None) or "false").strip().lower() == "true"


def _transaction(spark: SparkSession) -> tuple[str, int] | None:
    app_id, version = spark.conf.get(_TXN_APP_ID, None), spark.conf.get(_TXN_VERSION, None)
    if not app_id and not version:
        return None
    if not app_id or not version or not (version.isascii() and version.isdecimal()):
        raise OptionError(
            f"the session sets {_TXN_APP_ID} to {app_id!r:.100} and {_TXN_VERSION} to {version!r:.100}: both must be "
            "set, the second to a whole number, or neither.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option=_TXN_VERSION,
        )
    return app_id, int(version)
