"""The public names of delta-spark 4.4: methods of ``delta.tables``, and options of ``DeltaOptions``.

``tests/interop/test_delta_tables_api.py`` holds the methods against the package that is installed there.
"""

from __future__ import annotations

METHODS: dict[str, set[str]] = {
    "DeltaTable": {
        "toDF", "alias", "generate", "delete", "update", "merge", "vacuum", "history", "detail", "convertToDelta",
        "forPath", "forName", "create", "createIfNotExists", "replace", "createOrReplace", "isDeltaTable",
        "upgradeTableProtocol", "addFeatureSupport", "dropFeatureSupport", "restoreToVersion", "restoreToTimestamp",
        "optimize", "clone", "cloneAtVersion", "cloneAtTimestamp",
    },
    "DeltaMergeBuilder": {
        "whenMatchedUpdate", "whenMatchedUpdateAll", "whenMatchedDelete", "whenNotMatchedInsert",
        "whenNotMatchedInsertAll", "whenNotMatchedBySourceUpdate", "whenNotMatchedBySourceDelete",
        "withSchemaEvolution", "execute",
    },
    "DeltaTableBuilder": {
        "tableName", "location", "comment", "addColumn", "addColumns", "partitionedBy", "clusterBy", "property",
        "execute",
    },
    "DeltaOptimizeBuilder": {"where", "executeCompaction", "executeZOrderBy"},
}  # fmt: skip

OPTIONS = {
    "allowSourceColumnDrop", "allowSourceColumnRename", "allowSourceColumnTypeChange", "compression", "dataChange",
    "endingTimestamp", "endingVersion", "excludeRegex", "failOnDataLoss", "ignoreChanges", "ignoreDeletes",
    "ignoreFileDeletion", "maxBytesPerTrigger", "maxFilesPerTrigger", "maxRecordsPerFile", "mergeSchema",
    "optimizeWrite", "overwriteSchema", "partitionOverwriteMode", "readChangeData", "readChangeFeed", "replaceOn",
    "replaceUsing", "replaceWhere", "schemaLocation", "schemaTrackingLocation", "skipChangeCommits",
    "startingTimestamp", "startingVersion", "streamingSourceTrackingId", "targetAlias", "timestampAsOf", "txnAppId",
    "txnVersion", "useNullIntolerantEqualityWithDPO", "userMetadata", "versionAsOf", "writePartitionColumns",
}  # fmt: skip
