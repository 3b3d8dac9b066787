"""INSERT in its forms.

Invariant: one statement is one version. Values are assigned to columns by Spark's store assignment, so a value that
does not fit is an error. A column that the list leaves out gets its default, or the value that the table computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as spark_types

from delta_pyds.errors import ColumnNotFoundError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START, StructField
from delta_pyds.spark.row_changes.assignment import Matching, StoreAssignment, is_same_by_name
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.stored_values import spark_field
from delta_pyds.spark.session import write
from delta_pyds.spark.settings import PARTITION_OVERWRITE_MODE
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.sql.default_values import defaults_of
from delta_pyds.spark.sql.target_reads import reads_target
from delta_pyds.spark.table_commands.settings import merges_schema
from delta_pyds.statements.arguments import sql_literal
from delta_pyds.statements.kinds import Insert, SqlText
from delta_pyds.table.definition.schema_paths import unresolved_column
from delta_pyds.table.snapshot import Snapshot


def insert(context: StatementContext, statement: Insert) -> None:
    """Raises: UserError (DELTA_INSERT_COLUMN_ARITY_MISMATCH, DELTA_METADATA_MISMATCH); as ``write``."""
    table = context.target(statement.target)  # on Spark Connect this proves that the server sees the same path
    snapshot = table.open()
    static = {} if statement.partition is None else _static(context, snapshot, statement.partition)
    wanted = None if statement.by_name else _by_position(snapshot, statement, static)
    rows = found = _rows(context, snapshot, statement.query, wanted)
    evolves = statement.evolves or merges_schema(context.spark)
    if wanted is not None and evolves and statement.columns is None:
        # further columns of the query are new columns, under their own names
        wanted += rows.columns[len(wanted) :]
    given = list(rows.columns) if wanted is None else _fitting(snapshot, rows, wanted)
    if wanted is not None:
        _check_positions(statement, rows, wanted)
    _check_given(statement, given)
    in_list = statement.columns is not None
    by_position = not statement.by_name
    rows = _assigned(context, snapshot, rows, given, static, by_position=by_position, in_list=in_list, evolves=evolves)
    handle = context.command(snapshot.table_root)
    arguments: dict[str, Any] = {"user_metadata": handle.user_metadata, "txn": handle.txn}
    if evolves:
        arguments["merge_schema"] = True
    if statement.replace_where is not None:
        arguments |= {"mode": "overwrite", "replace_where": context.parsed.expression(statement.replace_where)}
    elif statement.replace_using is not None:
        names = ",".join(quote_name(name) for name in statement.replace_using)
        arguments |= {"mode": "overwrite", "options": {"replaceUsing": names}}
    elif statement.overwrite:
        arguments |= {"mode": "overwrite", **_overwritten(context, snapshot, static)}
    else:
        arguments["mode"] = "append"
    if reads_target(context, statement.query, found, snapshot.table_root):
        arguments["options"] = {**arguments.get("options", {}), "readVersion": snapshot.version}
    path = statement.target.path or ""
    write(rows, _shared(table, path), storage_options=statement.target.storage_options, **arguments)
    if evolves:
        table.update_catalog()


def _rows(context: StatementContext, snapshot: Snapshot, query: SqlText, wanted: list[str] | None) -> DataFrame:
    defaults = defaults_of(context.spark, snapshot, query, wanted)
    if defaults.may_be_columns:
        try:
            found = context.query(query)
            _ = found.schema  # on Spark Connect the server analyses the query only on this request
            return found
        except PySparkException as error:
            if not (error.getCondition() or "").startswith("UNRESOLVED_COLUMN"):
                raise
    return context.query(query, defaults.pieces)


def _shared(table: TableHandle, path: str) -> str:
    """The path; on Spark Connect with a scheme, because an open table proves that the server has the same files."""
    return path if "://" in path or not table.remote else f"file://{table.path}"


def _static(
    context: StatementContext, snapshot: Snapshot, partition: tuple[tuple[str, SqlText | None], ...]
) -> dict[str, str | None]:
    """Partition columns, as the table spells them, with their values, which Spark has cast to text.

    Raises: UserError for a column that is not a partition column.
    """
    partitioned = {name.lower(): name for name in snapshot.configuration.partition_columns}
    found: dict[str, str | None] = {}
    for name, value in partition:
        if name.lower() not in partitioned:
            raise UserError(
                f"the column '{name}' in PARTITION is not a partition column of the table {snapshot.table_root}.",
                code="NON_PARTITION_COLUMN",
                column=name,
            )
        if value is not None:
            found[partitioned[name.lower()]] = context.frames.text(value)
    return found


def _by_position(snapshot: Snapshot, statement: Insert, static: dict[str, str | None]) -> list[str]:
    """The table's column for each column of the query, in the query's order."""
    if statement.columns is None:
        return [name for name in snapshot.schema.names if name not in static]
    wanted = [_column(snapshot, name).name for name in statement.columns]
    twice = {name for name in wanted if wanted.count(name) > 1 or name in static}
    if twice:
        raise UserError(f"the column '{min(twice)}' gets two values.", code="COLUMN_ALREADY_EXISTS", column=min(twice))
    return wanted


def _fitting(snapshot: Snapshot, rows: DataFrame, wanted: list[str]) -> list[str]:
    """Raises: UserError for a query with another number of columns."""
    if len(wanted) != len(rows.columns):
        too_few = len(rows.columns) < len(wanted)
        raise UserError(
            f"the query has {len(rows.columns)} columns ({', '.join(rows.columns)}), but {len(wanted)} of table "
            f"{snapshot.table_root} are written ({', '.join(wanted)}).",
            code="DELTA_INSERT_COLUMN_ARITY_MISMATCH" if too_few else "DELTA_METADATA_MISMATCH",
            table=snapshot.table_root,
        )
    return wanted


def _check_positions(statement: Insert, rows: DataFrame, wanted: list[str]) -> None:
    """Raises: UserError for a column of REPLACE USING that the query has at another position."""
    own = [name.lower() for name in wanted]
    given = [name.lower() for name in rows.columns]
    for name in statement.replace_using or ():
        known = name.lower()
        if known in own and known in given and given.index(known) != own.index(known):
            raise UserError(
                f"the column '{name}' of REPLACE USING is column {own.index(known) + 1} of the table, but column "
                f"{given.index(known) + 1} of the query. Columns are matched by position. Use BY NAME, or give them in "
                "the table's order.",
                code="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
                column=name,
            )


def _check_given(statement: Insert, given: Sequence[str]) -> None:
    """Raises: ColumnNotFoundError for a column of REPLACE USING that the rows lack: a null matches no row."""
    known = {name.lower() for name in given}
    for name in statement.replace_using or ():
        if name.lower() not in known:
            raise ColumnNotFoundError(
                f"the rows lack the column '{name}' of REPLACE USING. They have {', '.join(given)}.",
                code="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                column=name,
            )


def _column(snapshot: Snapshot, name: str) -> StructField:
    found = snapshot.schema.find(name)
    if found is None:
        raise unresolved_column(name, snapshot.schema, snapshot.table_root)
    return found


def _assigned(
    context: StatementContext,
    snapshot: Snapshot,
    rows: DataFrame,
    given: list[str],
    static: dict[str, str | None],
    *,
    by_position: bool,
    in_list: bool,
    evolves: bool,
) -> DataFrame:
    """The rows with the table's names and types."""
    policy = replace(
        StoreAssignment.of(context.spark, fill=not by_position and not evolves, table=snapshot.table_root),
        fields=_matching(snapshot, rows, given, in_list=in_list) if by_position else "by name",
        evolves=evolves,
    )
    # new names, because two columns of a query may have the same name
    numbered = rows.toDF(*(f"c{number}" for number in range(len(given))))
    types = [field.dataType for field in rows.schema.fields]
    columns: list[Column] = []
    for number, name in enumerate(given):
        field = snapshot.schema.find(name)
        value = F.col(f"c{number}")
        columns.append(
            value.alias(name) if field is None else _value(policy, value, types[number], field).alias(field.name)
        )
    # a write needs all partition columns
    for name in snapshot.configuration.partition_columns:
        if name not in static and name.lower() not in {column.lower() for column in given}:
            columns += _left_out(_column(snapshot, name))
    for name, text in static.items():
        value = F.lit(text).cast(spark_types.StringType())
        columns.append(_value(policy, value, spark_types.StringType(), _column(snapshot, name)).alias(name))
    return numbered.select(*columns)


def _matching(snapshot: Snapshot, rows: DataFrame, given: Sequence[str], *, in_list: bool) -> Matching:
    """The matching of nested fields where columns are matched by position.

    As in the reference, fields are matched by name if no value must be cast and the query's columns have the table's
    names. With a list of columns this applies only to fields in arrays and maps.
    """
    fields = zip(given, rows.schema.fields, strict=True)
    known = [(field, source) for name, source in fields if (field := snapshot.schema.find(name)) is not None]
    if not all(is_same_by_name(source.dataType, spark_field(field).dataType) for field, source in known):
        return "by position"
    if in_list:
        return "by position outside of arrays and maps"
    return "by name" if all(field.name == source.name for field, source in known) else "by position"


def _left_out(field: StructField) -> list[Column]:
    """A null for the column, unless the table computes its value."""
    made = {CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START} & field.metadata.keys()
    return [] if made else [F.lit(None).cast(spark_field(field).dataType).alias(field.name)]


def _value(policy: StoreAssignment, value: Column, source: spark_types.DataType, field: StructField) -> Column:
    wanted = spark_field(field).dataType
    if isinstance(wanted, spark_types.StringType) and isinstance(source, spark_types.StringType):
        return value.cast(wanted) if wanted != source else value
    return policy.assign(value, source, wanted, field.name)


def _overwritten(context: StatementContext, snapshot: Snapshot, static: dict[str, str | None]) -> dict[str, Any]:
    """The rows that INSERT OVERWRITE replaces: all, or those of the named or of the written partitions."""
    partitioned = snapshot.configuration.partition_columns
    dynamic = (context.spark.conf.get(PARTITION_OVERWRITE_MODE, None) or "static").lower() == "dynamic"
    if dynamic and partitioned and len(static) < len(partitioned):
        return {"partition_overwrite": "dynamic"}
    if not static:
        return {"partition_overwrite": "static"}
    conditions = [_is_value(_column(snapshot, name), text) for name, text in static.items()]
    return {"replace_where": " AND ".join(conditions)}


def _is_value(field: StructField, text: str | None) -> str:
    """The condition for the rows of a partition. An empty text is stored as null."""
    name = quote_name(field.name)
    wanted = spark_field(field).dataType
    is_text = isinstance(wanted, spark_types.StringType)
    if text is None or (is_text and not text):
        return f"{name} IS NULL"
    return (
        f"{name} = {sql_literal(text)}" if is_text else f"{name} = CAST({sql_literal(text)} AS {wanted.simpleString()})"
    )
