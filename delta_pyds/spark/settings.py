"""The keys of Spark's settings and of the reference's, each spelled once.

The modules that read a setting say what it means, and its default: ``table_commands.settings`` for commands,
``row_changes.expressions`` and ``native.eligibility`` for the settings that expressions and reads rely on.
"""

from __future__ import annotations

# --- of Spark

SPARK_PREFIX = "spark."
ADAPTIVE_PREFIX = "spark.sql.adaptive."
ADAPTIVE = f"{ADAPTIVE_PREFIX}enabled"
ANSI = "spark.sql.ansi.enabled"
BROADCAST_THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
CASE_SENSITIVE = "spark.sql.caseSensitive"
CATALOG_PREFIX = "spark.sql.catalog."
CONCAT_BINARY_AS_STRING = "spark.sql.function.concatBinaryAsString"
DECIMAL_PRECISION_LOSS = "spark.sql.decimalOperations.allowPrecisionLoss"
DEFAULT_FORMAT = "spark.sql.sources.default"
DEFAULT_PARALLELISM = "spark.default.parallelism"
DOUBLE_QUOTED_IDENTIFIERS = "spark.sql.ansi.doubleQuotedIdentifiers"
ELT_OUTPUT_AS_STRING = "spark.sql.function.eltOutputAsString"
ESCAPED_STRING_LITERALS = "spark.sql.parser.escapedStringLiterals"
EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
EXTENSIONS = "spark.sql.extensions"
FUNCTION_ORDER = "spark.sql.functionResolution.sessionOrder"
IGNORE_INVALID_PARTITION_PATHS = "spark.sql.files.ignoreInvalidPartitionPaths"
IGNORE_MISSING_FILES = "spark.sql.files.ignoreMissingFiles"
IGNORE_SINK_LOG = "spark.sql.streaming.fileStreamSink.ignoreMetadata"
JARS_PACKAGES = "spark.jars.packages"
JOB_DESCRIPTION = "spark.job.description"
LEAF_PARALLELISM = "spark.sql.leafNodeDefaultParallelism"
LEGACY_PREFIX = "spark.sql.legacy."
METADATA_ONLY = "spark.sql.optimizer.metadataOnly"
PARQUET_BINARY_AS_STRING = "spark.sql.parquet.binaryAsString"
PARQUET_INFER_TIMESTAMP_NTZ = "spark.sql.parquet.inferTimestampNTZ.enabled"
PARQUET_INT96_AS_TIMESTAMP = "spark.sql.parquet.int96AsTimestamp"
PARQUET_INT96_CONVERSION = "spark.sql.parquet.int96TimestampConversion"
PARQUET_NANOS_AS_LONG = f"{LEGACY_PREFIX}parquet.nanosAsLong"
PARQUET_NULL_STRUCT = f"{LEGACY_PREFIX}parquet.returnNullStructIfAllFieldsMissing"
PARTITION_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
QUOTED_REGEX_COLUMN_NAMES = "spark.sql.parser.quotedRegexColumnNames"
SHUFFLE_PREFIX = "spark.sql.shuffle."
SPARK_CATALOG = f"{CATALOG_PREFIX}spark_catalog"
SQL_PATH = "spark.sql.path.enabled"
STORE_ASSIGNMENT_POLICY = "spark.sql.storeAssignmentPolicy"
TIME_ZONE = "spark.sql.session.timeZone"
TIMESTAMP_TYPE = "spark.sql.timestampType"
V1_SOURCES = "spark.sql.sources.useV1SourceList"
VALIDATE_PARTITION_COLUMNS = "spark.sql.sources.validatePartitionColumns"

# --- of the reference

DELTA_PREFIX = "spark.databricks.delta."
ALTER_LOCATION_BYPASS = f"{DELTA_PREFIX}alterLocation.bypassSchemaCheck"
AUTO_COMPACT_PREFIX = f"{DELTA_PREFIX}autoCompact."
AUTO_MERGE = f"{DELTA_PREFIX}schema.autoMerge.enabled"
DROP_CONSTRAINT_IF_EXISTS = f"{DELTA_PREFIX}constraints.assumesDropIfExists.enabled"
DYNAMIC_OVERWRITE = f"{DELTA_PREFIX}dynamicPartitionOverwrite.enabled"
OPTIMIZE_PREFIX = f"{DELTA_PREFIX}optimize."
OPTIMIZE_WRITE = f"{DELTA_PREFIX}optimizeWrite.enabled"
PROPERTY_DEFAULTS_PREFIX = f"{DELTA_PREFIX}properties.defaults."
RETENTION_CHECK = f"{DELTA_PREFIX}retentionDurationCheck.enabled"
TXN_APP_ID = f"{DELTA_PREFIX}write.txnAppId"
TXN_AUTO_RESET = f"{DELTA_PREFIX}write.txnVersion.autoReset.enabled"
TXN_VERSION = f"{DELTA_PREFIX}write.txnVersion"
USER_METADATA = f"{DELTA_PREFIX}commitInfo.userMetadata"
VACUUM_LITE = f"{DELTA_PREFIX}vacuum.lite.enabled"
VACUUM_LOGGING = f"{DELTA_PREFIX}vacuum.logging.enabled"

# --- of Comet, an accelerator

COMET_PREFIX = "spark.comet."
COMET = f"{COMET_PREFIX}enabled"
COMET_CONVERT_PARQUET = f"{COMET_PREFIX}convert.parquet.enabled"
COMET_EXEC = f"{COMET_PREFIX}exec.enabled"
COMET_LOCAL_TABLES = f"{COMET_PREFIX}exec.localTableScan.enabled"
COMET_SCAN = f"{COMET_PREFIX}scan.enabled"
