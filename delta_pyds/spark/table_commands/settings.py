"""The session's current settings for commands: those that users of the reference have set already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.errors import OptionError
from delta_pyds.protocol.properties import parse_size_bytes
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.settings import (
    AUTO_MERGE,
    OPTIMIZE_PREFIX,
    PROPERTY_DEFAULTS_PREFIX,
    TIME_ZONE,
    TXN_APP_ID,
    TXN_AUTO_RESET,
    TXN_VERSION,
    USER_METADATA,
)

# fields of ``Sizes`` to settings of the reference
_SIZES = {
    "min_file_bytes": "minFileSize",
    "max_file_bytes": "maxFileSize",
    "min_cube_bytes": "clustering.mergeStrategy.minCubeSize.threshold",
    "target_cube_bytes": "clustering.mergeStrategy.minCubeSize.targetCubeSize",
}


def for_one_command(handle: TableHandle) -> TableHandle:
    """The handle with the session's current settings. Arguments given for the table win.

    A session that resets the version of its transaction (``write.txnVersion.autoReset.enabled``) has none afterwards.

    Raises: OptionError for an incomplete transaction, or a version that is not a number.
    """
    return replace(without_transaction(handle), txn=handle.txn or _transaction(handle.spark))


def without_transaction(handle: TableHandle) -> TableHandle:
    """``for_one_command`` without the session's transaction, for commands that write no rows of an application."""
    spark = handle.spark
    return replace(
        handle,
        time_zone=spark.conf.get(TIME_ZONE, None) or "UTC",
        user_metadata=handle.user_metadata or user_metadata(spark),
        txn=None,
    )


def user_metadata(spark: SparkSession) -> str | None:
    """The session's metadata for every commit."""
    return spark.conf.get(USER_METADATA, None) or None


def default_properties(spark: SparkSession, given: Iterable[str] = ()) -> dict[str, str]:
    """The properties that the session gives new tables, without those in ``given``."""
    lowered = {name.lower() for name in given}
    found = {
        f"delta.{key.removeprefix(PROPERTY_DEFAULTS_PREFIX)}": text
        for key, text in spark.conf.getAll.items()
        if key.startswith(PROPERTY_DEFAULTS_PREFIX)
    }
    return {name: text for name, text in found.items() if name.lower() not in lowered}


def merges_schema(spark: SparkSession) -> bool:
    """Whether every merge of the session may add columns to its table."""
    return (spark.conf.get(AUTO_MERGE, None) or "false").strip().lower() == "true"


def layout_sizes(spark: SparkSession) -> Sizes:
    """Sizes of files and cubes by the reference's settings. Raises: OptionError for an invalid value."""
    given: dict[str, Any] = {}
    for field, name in _SIZES.items():
        text = spark.conf.get(f"{OPTIMIZE_PREFIX}{name}", None)
        if text is not None:
            given[field] = _bytes(f"{OPTIMIZE_PREFIX}{name}", text)
    ratio = spark.conf.get(f"{OPTIMIZE_PREFIX}maxDeletedRowsRatio", None)
    if ratio is not None:
        given["max_deleted_ratio"] = _ratio(f"{OPTIMIZE_PREFIX}maxDeletedRowsRatio", ratio)
    return replace(Sizes(), **given)


def _bytes(name: str, text: str) -> int:
    try:
        return parse_size_bytes(text)
    except ValueError:
        message = f"the session sets {name} to {text!r:.100}, but must set a size such as 1g or 1048576."
        raise OptionError(message, option=name) from None


def _ratio(name: str, text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise OptionError(f"the session sets {name} to {text!r:.100}, but must set a number from 0 to 1.", option=name)
    return ratio


def _transaction(spark: SparkSession) -> tuple[str, int] | None:
    app_id, version = spark.conf.get(TXN_APP_ID, None), spark.conf.get(TXN_VERSION, None)
    if not app_id and not version:
        return None
    if not app_id or not version or not (version.isascii() and version.isdecimal()):
        raise OptionError(
            f"the session sets {TXN_APP_ID} to {app_id!r:.100} and {TXN_VERSION} to {version!r:.100}: both must be "
            "set, the second to a whole number, or neither.",
            code="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            option=TXN_VERSION,
        )
    if (spark.conf.get(TXN_AUTO_RESET, None) or "").strip().lower() == "true":
        # else the session's next command would be taken for this one again, and do nothing
        spark.conf.unset(TXN_VERSION)
    return app_id, int(version)
