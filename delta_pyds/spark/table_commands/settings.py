"""The session's current settings for commands: those that users of the reference have set already."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.errors import OptionError
from delta_pyds.spark.row_changes.handle import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIME_ZONE = "spark.sql.session.timeZone"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
_TXN_APP_ID = "spark.databricks.delta.write.txnAppId"
_OPTIMIZE = "spark.databricks.delta.optimize."
# fields of ``Sizes`` to settings of the reference
_SIZES = {
    "min_file_bytes": "minFileSize",
    "max_file_bytes": "maxFileSize",
    "min_cube_bytes": "clustering.mergeStrategy.minCubeSize.threshold",
    "target_cube_bytes": "clustering.mergeStrategy.minCubeSize.targetCubeSize",
}
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_BYTES = re.compile(r"(\d{1,18})\s*([a-z]*)")
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_DEFAULTS = "spark.databricks.delta.properties.defaults."


def for_one_command(handle: TableHandle) -> TableHandle:
    """The handle with the session's current settings. Arguments given for the table win.

    Raises: OptionError for an incomplete transaction, or a version that is not a number.
    """
    spark = handle.spark
    return replace(
        handle,
        time_zone=spark.conf.get(_TIME_ZONE, None) or "UTC",
        user_metadata=handle.user_metadata or user_metadata(spark),
        txn=_transaction(spark),
    )


def without_transaction(handle: TableHandle) -> TableHandle:
    """``for_one_command`` without the session's transaction, for commands that write no rows of an application."""
    return replace(for_one_command(handle), txn=None)


def user_metadata(spark: SparkSession) -> str | None:
    """The session's metadata for every commit."""
    return spark.conf.get(_USER_METADATA, None) or None


def default_properties(spark: SparkSession, said: Iterable[str] = ()) -> dict[str, str]:
    """The properties that the session gives new tables, without those in ``said``."""
    given = {name.lower() for name in said}
    found = {
        f"delta.{key.removeprefix(_DEFAULTS)}": text
        for key, text in spark.conf.getAll.items()
        if key.startswith(_DEFAULTS)
    }
    return {name: text for name, text in found.items() if name.lower() not in given}


def merges_schema(spark: SparkSession) -> bool:
    """Whether every merge of the session may add columns to its table."""
    return (spark.conf.get(_AUTO_MERGE, None) or "false").strip().lower() == "true"


def layout_sizes(spark: SparkSession) -> Sizes:
    """Sizes of files and cubes by the reference's settings. Raises: OptionError for an invalid value."""
    given: dict[str, Any] = {}
    for field, name in _SIZES.items():
        text = spark.conf.get(f"{_OPTIMIZE}{name}", None)
        if text is not None:
            given[field] = _bytes(f"{_OPTIMIZE}{name}", text)
    ratio = spark.conf.get(f"{_OPTIMIZE}maxDeletedRowsRatio", None)
    if ratio is not None:
        given["max_deleted_ratio"] = _ratio(f"{_OPTIMIZE}maxDeletedRowsRatio", ratio)
    return replace(Sizes(), **given)


def _bytes(name: str, text: str) -> int:
    match = _BYTES.fullmatch(text.strip().lower())
    size = 0 if match is None or match[2] not in _UNITS else int(match[1]) * _UNITS[match[2]]
    if size <= 0:
        message = f"the session sets {name} to {text!r:.100}, which is no size such as 1g or 1048576."
        raise OptionError(message, option=name)
    return size


def _ratio(name: str, text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise OptionError(f"the session sets {name} to {text!r:.100}, but must set a number from 0 to 1.", option=name)
    return ratio


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
