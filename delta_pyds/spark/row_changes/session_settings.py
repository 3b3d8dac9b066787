"""The settings of a session under which a command began: its query is not repeated under others.

Another thread may change them while the command runs. Each look at them is one call of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.settings import (
    ADAPTIVE_PREFIX,
    BROADCAST_THRESHOLD,
    CATALOG_PREFIX,
    DELTA_PREFIX,
    PARTITION_OVERWRITE_MODE,
    SHUFFLE_PREFIX,
    SPARK_PREFIX,
)
from delta_pyds.table.transaction.mend import NotRepeatableError

logger = safe_logger(__name__)
# No expression has another value under other settings of these. Functions of catalogs are never repeated.
_WITHOUT_MEANING = (
    ADAPTIVE_PREFIX,
    BROADCAST_THRESHOLD,
    CATALOG_PREFIX,
    DELTA_PREFIX,
    PARTITION_OVERWRITE_MODE,
    SHUFFLE_PREFIX,
)


class SessionSettings:
    """The settings of a session that may change the meaning of an expression, as they are now."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._before = _settings(spark)

    def require_same(self) -> None:
        """Raises: NotRepeatableError if one of them has another value now."""
        now = _settings(self._spark)
        # in the JVM: its settings are not copied to this process if they are the same
        if now == self._before:
            return
        changed = dict(_meaningful(self._before).items() ^ _meaningful(now).items())
        if changed:
            logger.info("The command cannot decide again on some rows: %s changed.", ", ".join(sorted(changed)))
            raise NotRepeatableError


def _settings(spark: Any) -> Mapping[str, str]:
    """All settings of the session that have been set. On a classic session, they are in the JVM."""
    settings: Mapping[str, str] = spark.conf.getAll if is_remote(spark) else spark.conf._jconf.getAllAsJava()
    return settings


def _meaningful(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in dict(settings).items()
        if name.startswith(SPARK_PREFIX) and not name.startswith(_WITHOUT_MEANING)
    }
