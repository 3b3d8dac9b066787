"""``spark.conf.get`` of the reference's settings: without the JAR Spark does not know their defaults.

Invariant: a value that was set comes first, then the caller's default, then the reference's.
"""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException

from delta_pyds.spark.install.patches import Method, Replacement
from delta_pyds.spark.settings import DELTA_PREFIX

# the reference's defaults of the settings that its documentation and its errors name; None: no default
_DEFAULTS: dict[str, str | None] = {
    "alterLocation.bypassSchemaCheck": "false",
    "autoCompact.enabled": None,
    "autoCompact.maxFileSize": "134217728",
    "autoCompact.minFileSize": None,
    "autoCompact.minNumFiles": "50",
    "commitInfo.userMetadata": None,
    "constraints.assumesDropIfExists.enabled": "false",
    "convert.metadataCheck.enabled": "true",
    "dynamicPartitionOverwrite.enabled": "true",
    "history.metricsEnabled": "true",
    "merge.materializeSource": "auto",
    "merge.optimizeInsertOnlyMerge.enabled": "true",
    "merge.repartitionBeforeWrite.enabled": "true",
    "optimize.maxFileSize": "1073741824",
    "optimize.maxThreads": "15",
    "optimize.minFileSize": "1073741824",
    "optimize.repartition.enabled": "false",
    "optimizeWrite.binSize": "536870912b",
    "optimizeWrite.enabled": None,
    "optimizeWrite.maxShufflePartitions": "2000",
    "optimizeWrite.numShuffleBlocks": "50000000",
    "properties.defaults.minReaderVersion": "1",
    "properties.defaults.minWriterVersion": "2",
    "replaceWhere.constraintCheck.enabled": "true",
    "replaceWhere.dataColumns.enabled": "true",
    "retentionDurationCheck.enabled": "true",
    "schema.autoMerge.enabled": "false",
    "snapshotPartitions": None,
    "stalenessLimit": "0ms",
    "stats.collect": "true",
    "streaming.schemaTracking.enabled": "true",
    "vacuum.lite.enabled": "false",
    "vacuum.logging.enabled": None,
    "vacuum.parallelDelete.enabled": "false",
    "vacuum.parallelDelete.parallelism": None,
    "write.txnAppId": None,
    "write.txnVersion": None,
    "write.txnVersion.autoReset.enabled": "false",
}


def _get(original: Method, /, self: Any, key: str, *default: Any, **named: Any) -> Any:
    try:
        return original(self, key, *default, **named)
    except PySparkException as error:
        name = key.removeprefix(DELTA_PREFIX) if isinstance(key, str) and key.startswith(DELTA_PREFIX) else ""
        if name not in _DEFAULTS or "SQL_CONF_NOT_FOUND" not in str(error):
            raise
        return _DEFAULTS[name]


SETTINGS: dict[str, Replacement] = {"get": _get}
