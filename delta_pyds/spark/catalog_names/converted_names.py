"""CONVERT of a directory, or of a Parquet table by its name in Spark's session catalog.

Afterwards the name means the Delta table. Invariants: a name is converted only if the Delta table gets exactly the
files and columns that Spark has for it. No data is deleted, because only the entry of an EXTERNAL table is replaced.
That entry is renamed first and dropped last, so a process that dies in between leaves one of the two entries.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, cast
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.types import StructType as SparkStruct

from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.catalog_names.lookup import Foreign, look_up
from delta_pyds.spark.catalog_names.naming import full_name, give_name
from delta_pyds.spark.catalog_names.opening import OpenTable, open_named
from delta_pyds.spark.catalog_names.texts import SESSION_CATALOG, NamedTable
from delta_pyds.spark.plain_calls import plain_calls, plain_sql
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.same_files import root_for_server
from delta_pyds.spark.table_commands import maintenance
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.table.snapshot import load_snapshot

logger = safe_logger(__name__)
# names of Delta tables are accepted, as in the reference: such a table does not change
_PARQUET_NAME = re.compile(r"(?:parquet|delta|deltapy)\.`((?:[^`]|``)+)`", re.IGNORECASE)
# properties that Spark and metastores set themselves
_OF_CATALOGS = (
    "spark.sql.", "transient_", "EXTERNAL", "bucketing_version", "last_modified_", "numFiles", "numPartitions",
    "numRows", "rawDataSize", "totalSize", "COLUMN_STATS_ACCURATE",
)  # fmt: skip


@dataclass(frozen=True)
class ParquetName:
    """``schema``: the columns that Spark has for the name. ``files``: the URLs of the files that it reads.
    ``properties``: those that users set.
    """

    name: tuple[str, str]
    location: str
    schema: spark_types.StructType
    partition_columns: tuple[str, ...]
    files: tuple[str, ...]
    properties: Mapping[str, str]

    @property
    def quoted(self) -> str:
        return quote_name(SESSION_CATALOG, *self.name)

    @property
    def shown(self) -> str:
        return ".".join(self.name)

    def partition_schema(self, given: spark_types.StructType | None) -> spark_types.StructType:
        """Raises: UserError if the given columns are not the catalog's."""
        fields = {field.name.lower(): field for field in self.schema}
        own = SparkStruct([fields[name.lower()] for name in self.partition_columns])
        if given is not None and [(f.name.lower(), f.dataType) for f in given] != [
            (f.name.lower(), f.dataType) for f in own
        ]:
            raise UserError(
                f"in Spark's catalog the table {self.shown} is partitioned by ({', '.join(self.partition_columns)}), "
                "but PARTITIONED BY names other columns. Omit PARTITIONED BY.",
                code="DELTA_CONVERSION_UNSUPPORTED_PARTITION_SCHEMA",
                table=self.shown,
            )
        return own

    def check(self, root: str, paths: Sequence[str], columns: StructType) -> StructType:
        """The columns in the catalog's order, which a star and an INSERT use. The order in the files may differ.

        Raises: UnsupportedOperationError if the new table would have other files or columns.
        """
        base = (root if root.startswith("/") else urlsplit(root).path).rstrip("/")
        read = {unquote(urlsplit(file).path) for file in self.files}
        found = {f"{base}/{path}" for path in paths}
        if read != found:
            odd = min(read ^ found)
            self.refuse(
                f"the files below {root} and the files that Spark reads for the name differ by {len(read ^ found)}, "
                f"such as {odd!r:.300}"
            )
        has, wanted = _columns(to_spark(columns)), _columns(self.schema)
        if has != wanted:
            odd = ", ".join(sorted({name for name, _ in has ^ wanted}))
            self.refuse(f"columns, or their types, differ between the files and Spark's catalog: {odd:.300}")
        places = {field.name.lower(): number for number, field in enumerate(self.schema)}
        return StructType(tuple(sorted(columns, key=lambda field: places[field.name.lower()])))

    def refuse(self, reason: str) -> NoReturn:
        raise UnsupportedOperationError(
            f"the Parquet table {self.shown} cannot be converted by its name: {reason}. Nothing was converted. Convert "
            "its directory as parquet.`/data/events`, and give that table a name by delta_pyds.create_table.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=self.shown,
        )


def convert(
    spark: SparkSession, identifier: str, partition_schema: str | spark_types.StructType | None = None
) -> OpenTable:
    """Write the log of a directory of Parquet files: ``parquet.`/data/events```, or the name of an EXTERNAL table.

    ``partition_schema``: a str is DDL. An existing Delta table does not change.
    Raises: as ``DeltaTable.convertToDelta``.
    """
    schema = partition_schema
    if isinstance(schema, str):
        schema = cast("spark_types.StructType", SparkStruct.fromDDL(schema))
    named = None if _is_path(identifier) else _parquet_name(spark, identifier)
    if isinstance(named, NamedTable):
        return open_named(spark, named)
    path = _parquet_path(identifier) if named is None else named.location
    root = root_for_server(spark, path)
    if named is None:
        maintenance.convert(spark, root, schema)
        return OpenTable(open_path(spark, root))
    converted = maintenance.convert(
        spark,
        root,
        named.partition_schema(schema),
        properties=named.properties,
        check=partial(named.check, root),
        catalog_table=named.quoted,
    )
    if not converted:
        # it may have other rows than the name
        named.refuse(f"{named.location} already has a Delta table")
    return open_named(spark, _take_over(spark, named, root, load_snapshot(root).schema))


def _is_path(identifier: object) -> bool:
    """Whether an identifier cannot be a name in any catalog."""
    return (
        not isinstance(identifier, str) or "`/" in identifier or "://" in identifier or "iceberg." in identifier.lower()
    )


def _parquet_path(identifier: str) -> str:
    """Raises: UnsupportedOperationError for anything but ``parquet.`/path```."""
    match = _PARQUET_NAME.fullmatch(identifier.strip()) if isinstance(identifier, str) else None
    if match is None:
        is_iceberg = isinstance(identifier, str) and identifier.strip().lower().startswith("iceberg.")
        raise UnsupportedOperationError(
            f"{identifier!r:.200} cannot be converted. Only directories of Parquet files can, by their path. Write "
            "parquet.`/data/events`.",
            code="DELTA_MISSING_ICEBERG_CLASS" if is_iceberg else "DELTA_MISSING_PROVIDER_FOR_CONVERT",
            name=str(identifier),
        )
    return match[1].replace("``", "`")


def _columns(schema: spark_types.StructType) -> set[tuple[str, str]]:
    return {(field.name.lower(), field.dataType.simpleString().lower()) for field in schema}


def _parquet_name(spark: SparkSession, identifier: str) -> ParquetName | NamedTable:
    """The table of that name: a Parquet table, or a table that is already Delta.

    Raises: UserError for a name that does not exist, or a table that is not Parquet; UnsupportedOperationError for a
        managed one, whose files Spark would delete with its entry.
    """
    name = full_name(spark, identifier)
    whole = (SESSION_CATALOG, *name)
    found = look_up(spark, whole)
    if isinstance(found, NamedTable):
        return found
    if not isinstance(found, Foreign):
        raise UserError(
            f"the table {'.'.join(name)} does not exist. Name a directory of Parquet files as parquet.`/data/events`.",
            code="TABLE_OR_VIEW_NOT_FOUND",
            table=".".join(name),
        )
    described = _described(spark, whole)
    provider, kind = str(described.get("provider", "")).lower(), str(described.get("type", ""))
    if provider != "parquet":
        is_view = kind == "VIEW"
        what = "a view" if is_view else f"of the format {provider or 'unknown'}"
        raise UnsupportedOperationError(
            f"{'.'.join(name)} is {what}, and only tables of Parquet files can be converted.",
            code="DELTA_OPERATION_NOT_ALLOWED_DETAIL" if is_view else "DELTA_CONVERT_NON_PARQUET_TABLE",
            table=".".join(name),
        )
    if kind != "EXTERNAL":
        raise UnsupportedOperationError(
            f"{'.'.join(name)} is a managed table: Spark would delete its files when its entry is replaced. "
            f"Write its rows to a new table: CREATE TABLE ... USING delta AS SELECT * FROM {'.'.join(name)}.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=".".join(name),
        )
    with plain_calls():
        frame = spark.table(quote_name(*whole))
        files = tuple(frame.inputFiles())
    partitions = tuple(described.get("partition_columns") or ())
    properties = {
        key: value
        for key, value in (described.get("table_properties") or {}).items()
        if not key.startswith(_OF_CATALOGS)
    }
    return ParquetName(name, str(described["location"]), frame.schema, partitions, files, properties)


def _take_over(spark: SparkSession, found: ParquetName, location: str, schema: StructType) -> NamedTable:
    """Replace the Parquet table's entry by the name of the Delta table at the location.

    Raises: as ``give_name``, after the entry has been restored.
    """
    schema_name, name = found.name
    old = f"{name}_parquet_{uuid.uuid4().hex[:12]}"
    _rename(spark, schema_name, name, old)
    try:
        given = give_name(spark, found.name, location, schema)
    except BaseException:
        _rename(spark, schema_name, old, name)
        raise
    whole = (SESSION_CATALOG, schema_name, old)
    if _described(spark, whole).get("type") == "EXTERNAL":
        plain_sql(spark, f"DROP TABLE {quote_name(*whole)}")
    logger.info("%s is the Delta table at %s now.", found.shown, location)
    return given


def _rename(spark: SparkSession, schema: str, old: str, new: str) -> None:
    # Spark accepts no catalog before the new name
    plain_sql(spark, f"ALTER TABLE {quote_name(SESSION_CATALOG, schema, old)} RENAME TO {quote_name(schema, new)}")


def _described(spark: SparkSession, name: tuple[str, ...]) -> dict[str, Any]:
    with plain_calls():
        (row,) = spark.sql(f"DESCRIBE TABLE EXTENDED {quote_name(*name)} AS JSON").collect()
    found: dict[str, Any] = json.loads(row[0])
    return found
