"""DESCRIBE and SHOW: answers of a few rows, with the reference's columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.catalog.address import CATALOG_NAME, TABLE_NAME
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructField
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names.locations import refresh_entry
from delta_pyds.spark.catalog_names.texts import NamedTable
from delta_pyds.spark.incoming import frame_of_table
from delta_pyds.spark.log_rows import from_log
from delta_pyds.spark.row_changes.stored_values import spark_field
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.arguments import sql_literal
from delta_pyds.statements.kinds import (
    Describe,
    Explain,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    TableReference,
)
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.definition.schema_paths import unresolved_column
from delta_pyds.table.snapshot import Snapshot

_DESCRIBED = ("col_name", "data_type", "comment")


def explain(context: StatementContext, statement: Explain) -> DataFrame:
    """Returns: ``plan``, with the version. The command does not run, and its names are not looked up."""
    context.table(statement.target)
    snapshot = context.snapshot(statement.target)
    plan = (
        f"== Physical Plan ==\nExecute {statement.verb} by delta_pyds\n"
        f"   +- Delta[version={snapshot.version}, {snapshot.table_root}]: {statement.command}\n\n"
    )
    return _text_rows(context, ("plan",), [(plan,)])


def describe(context: StatementContext, statement: Describe) -> DataFrame:
    """Returns: ``col_name``, ``data_type`` and ``comment``; the partition columns; with EXTENDED the table's
    properties. For one column ``info_name`` and ``info_value``.

    Raises: ColumnNotFoundError; UnsupportedOperationError for a field of a struct, and for JSON of a table by path, as
        in the reference.
    """
    if statement.as_json:
        return _as_json(context, statement)
    context.table(statement.target)
    snapshot = context.snapshot(statement.target)
    if statement.column is not None:
        name, data_type, comment = _described(_one_column(snapshot, statement.column))
        found = (name, data_type, "NULL" if comment is None else comment)
        return _text_rows(context, ("info_name", "info_value"), zip(_DESCRIBED, found, strict=True))
    partitioned = [snapshot.schema.find(name) for name in snapshot.configuration.partition_columns]
    rows: list[tuple[str | None, ...]] = [_described(field) for field in snapshot.schema]
    if partitioned:
        rows += [("# Partition Information", "", ""), ("# col_name", *_DESCRIBED[1:])]
        rows += [_described(field) for field in partitioned if field is not None]
    if statement.extended:
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        named = context.names.find(statement.target)
        rows += [(name, value, "") for name, value in _information(snapshot, statement.target, named).items()]
    return _text_rows(context, _DESCRIBED, rows)


def _as_json(context: StatementContext, statement: Describe) -> DataFrame:
    """Returns: ``json_metadata``: Spark's description of the name, completed by the table's own."""
    named = context.names.find(statement.target)
    if named is None:
        raise UnsupportedOperationError(
            f"DESCRIBE ... AS JSON does not support {statement.target.text!r:.200}, a table by path. Name the table by "
            "delta_pyds.create_table, or omit AS JSON.",
            code="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        )
    refresh_entry(context.spark, named)
    (row,) = context.spark.sql(f"DESCRIBE TABLE EXTENDED {named.quoted} AS JSON").collect()
    snapshot = context.snapshot(statement.target)
    described = {key: value for key, value in json.loads(row[0]).items() if not key.startswith("view_")}
    for column in described["columns"]:
        field = snapshot.schema.find(column["name"])
        column["nullable"] = field is None or field.nullable
    found = {
        **described,
        **({"comment": snapshot.metadata.description} if snapshot.metadata.description else {}),
        "type": "MANAGED" if named.managed else "EXTERNAL",
        "provider": "delta",
        "location": hadoop_path(snapshot.table_root),
        "partition_columns": list(snapshot.configuration.partition_columns),
        "table_properties": _properties(snapshot),
    }
    return _text_rows(context, ("json_metadata",), [(json.dumps(found, ensure_ascii=False),)])


def _one_column(snapshot: Snapshot, names: tuple[str, ...]) -> StructField:
    if len(names) > 1:
        raise UnsupportedOperationError(
            f"DESCRIBE does not support {'.'.join(names)!r:.200}, a field of a struct. Describe the whole column.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            column=".".join(names),
        )
    found = snapshot.schema.find(names[0])
    if found is None:
        raise unresolved_column(names[0], snapshot.schema, snapshot.table_root)
    return found


def _described(field: StructField) -> tuple[str | None, ...]:
    comment = field.metadata.get("comment")
    return field.name, spark_field(field).dataType.simpleString(), None if comment is None else str(comment)


def _information(snapshot: Snapshot, table: TableReference, named: NamedTable | None) -> dict[str, str]:
    """The reference's entries for a table by path, by a name in Spark's catalog, or of another catalog."""
    root = snapshot.table_root
    catalog, database, name = "spark_catalog", "delta", root
    if named is not None:
        database, name = named.schema, named.table
    elif table.storage_options is not None:
        *schema, name = str(table.storage_options[TABLE_NAME]).split(".")
        catalog, database = str(table.storage_options[CATALOG_NAME]), ".".join(schema)
    managed = named is None or named.managed
    described = {"Comment": snapshot.metadata.description} if snapshot.metadata.description else {}
    properties = ",".join(f"{key}={value}" for key, value in sorted(_properties(snapshot).items()))
    return {
        "Catalog": catalog,
        "Namespace": database,
        "Database": database,
        "Table": name,
        "Type": "MANAGED" if managed else "EXTERNAL",
        **described,
        # in the format of Spark's catalog
        "Location": root if named is None else hadoop_path(root),
        "Provider": "delta",
        **({"Is_managed_location": "true"} if named is not None and managed else {}),
        "Table Properties": f"[{properties}]",
    }


def _text_rows(context: StatementContext, names: Sequence[str], rows: Iterable[Sequence[str | None]]) -> DataFrame:
    """A DataFrame of the rows in this order, in one partition."""
    found = list(rows)
    literals = [[sql_literal(value) for value in row] for row in found]
    if found and not is_remote(context.spark) and all(text is not None for row in literals for text in row):
        # this takes one call of the JVM; a DataFrame from Arrow takes 39
        values = ", ".join(f"({', '.join(cast('list[str]', row))})" for row in literals)
        columns = ", ".join(f"CAST(col{n} AS STRING) AS {name}" for n, name in enumerate(names, 1))
        return from_log(context.spark.sql(f"SELECT {columns} FROM VALUES {values}").coalesce(1))
    table = [pa.array([row[n] for row in found], pa.string()) for n in range(len(names))]
    return from_log(frame_of_table(context.spark, pa.table(table, names=list(names))).coalesce(1))


def show_columns(context: StatementContext, statement: ShowColumns) -> DataFrame:
    """Returns: ``col_name``."""
    context.table(statement.target)
    names = list(context.snapshot(statement.target).schema.names)
    return _text_rows(context, ("col_name",), [(name,) for name in names])


def show_partitions(context: StatementContext, statement: ShowPartitions) -> DataFrame:
    """Returns: the partition columns, with a row for each partition that has rows.

    Raises: UserError for a table without partitions, and for another column in PARTITION.
    """
    context.table(statement.target)
    snapshot = context.snapshot(statement.target)
    partitioned = {name.lower(): name for name in snapshot.configuration.partition_columns}
    if not partitioned:
        raise UserError(
            f"the table {snapshot.table_root} is not partitioned, so it has no partitions to show.",
            code="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE",
            table=snapshot.table_root,
        )
    rows = context.frames.of(statement.target)
    for name, value in statement.partition:
        if name.lower() not in partitioned:
            raise UserError(
                f"the column '{name}' in PARTITION is not a partition column of the table {snapshot.table_root}: "
                f"{', '.join(partitioned.values())}.",
                code="DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN",
                column=name,
            )
        rows = rows.where(F.col(quote_name(name)).eqNullSafe(F.lit(context.frames.text(value))))
    return rows.select(*(quote_name(name) for name in partitioned.values())).distinct()


def show_create(context: StatementContext, statement: ShowCreate) -> DataFrame:
    """Raises: UnsupportedOperationError, as the reference. Spark would show its own view of the name."""
    root = context.snapshot(statement.target).table_root
    raise UnsupportedOperationError(
        f"SHOW CREATE TABLE does not support {statement.target.text!r:.200}, as in the reference. DESCRIBE "
        "EXTENDED shows its columns and location, SHOW TBLPROPERTIES its properties. CREATE TABLE ... LIKE copies it.",
        code="DELTA_OPERATION_NOT_ALLOWED",
        table=root,
    )


def show_properties(context: StatementContext, statement: ShowProperties) -> DataFrame:
    """Returns: ``key`` and ``value``, ordered by key, with the protocol's versions and features."""
    context.table(statement.target)
    found = _properties(context.snapshot(statement.target))
    if statement.key is not None:
        table = statement.target
        name = table.text if len(table.parts) > 2 or table.storage_options else f"spark_catalog.{table.text}"
        missing = f"Table {name} does not have property: {statement.key}"
        found = {statement.key: found.get(statement.key, missing)}
    return _text_rows(context, ("key", "value"), sorted(found.items()))


def _properties(snapshot: Snapshot) -> dict[str, str]:
    protocol = snapshot.protocol
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    clustered = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    return {
        **({"clusteringColumns": json.dumps(clustered, separators=(",", ":"))} if clustered else {}),
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        **{f"delta.feature.{name}": "supported" for name in features},
        **{key: value for key, value in (snapshot.metadata.configuration or {}).items() if value is not None},
    }
