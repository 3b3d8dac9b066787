"""Settings of a session that change how Spark plans, reads or compares. No read may depend on them by accident."""

from __future__ import annotations

from pyspark.sql import SparkSession

SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "no adaptive execution": {"spark.sql.adaptive.enabled": "false"},
    "rows instead of vectors": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.recordLevelFilter.enabled": "true",
    },
    "no filters in the reader": {"spark.sql.parquet.filterPushdown": "false"},
    "no generated code": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "no ANSI": {"spark.sql.ansi.enabled": "false"},
    "legacy time parser": {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "legacy texts": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    },
    "legacy comparisons": {
        "spark.sql.legacy.nullInEmptyListBehavior": "true",
        "spark.sql.legacy.literal.pickMinimumPrecision": "false",
    },
    "legacy parser": {
        "spark.sql.legacy.bangEqualsNot": "true",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.legacy.setopsPrecedence.enabled": "true",
    },
    "legacy assignments": {"spark.sql.ansi.enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"},
    "case sensitive": {"spark.sql.caseSensitive": "true"},
    "timestamps without zone": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "another zone": {"spark.sql.session.timeZone": "America/Los_Angeles"},
    "ANSI words": {
        "spark.sql.ansi.relationPrecedence": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
    },
    "no padding": {"spark.sql.readSideCharPadding": "false", "spark.sql.legacy.charVarcharAsString": "true"},
    "cases of the JVM": {"spark.sql.icu.caseMappings.enabled": "false"},
    "no pushed predicates": {
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates"
    },
    "Parquet of version 2": {"spark.sql.sources.useV1SourceList": ""},
}
# those under which Spark's own Parquet reader does not read a table's rows for certain
WITHOUT_NATIVE = frozenset(("case sensitive", "Parquet of version 2"))


def session_with(spark: SparkSession, name: str) -> SparkSession:
    """A new session of the same application, with settings of that name."""
    session = spark.newSession()
    for key in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions"):
        session.conf.set(key, str(spark.conf.get(key)))
    for key, value in SETTINGS[name].items():
        session.conf.set(key, value)
    return session
