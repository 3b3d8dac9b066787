"""DESCRIBE and SHOW."""

from __future__ import annotations

from delta_pyds.statements.columns import property_key
from delta_pyds.statements.insert import partition_values
from delta_pyds.statements.kinds import (
    Describe,
    DescribeDetail,
    DescribeHistory,
    ShowColumns,
    ShowCreate,
    ShowPartitions,
    ShowProperties,
    SqlText,
)
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import table_or_path, target_table

# Spark's own DESCRIBE has these words
_OTHERS = ("FUNCTION", "DATABASE", "SCHEMA", "NAMESPACE", "CATALOG", "PROCEDURE", "QUERY", "SELECT", "WITH", "VALUES")


def history(reader: StatementReader) -> DescribeHistory:
    """``DESCRIBE HISTORY t [LIMIT n]``"""
    reader.index += 2
    target = table_or_path(reader)
    return DescribeHistory(target, reader.whole_number() if reader.accept("LIMIT") else None)


def detail(reader: StatementReader) -> DescribeDetail:
    """``DESCRIBE DETAIL t``"""
    reader.index += 2
    return DescribeDetail(table_or_path(reader))


def describe(reader: StatementReader) -> Describe:
    """``DESCRIBE [TABLE] [EXTENDED | FORMATTED] t [column | AS JSON]``"""
    reader.expect("DESC|DESCRIBE")
    if reader.token.is_word(*_OTHERS):
        reader.fail("expected a table")
    reader.accept("TABLE")
    extended = reader.accept("EXTENDED|FORMATTED")
    target = target_table(reader)
    if reader.at("AS", "JSON") and not extended:
        reader.refuse_at_end("AS JSON needs EXTENDED or FORMATTED", "DESCRIBE_JSON_NOT_EXTENDED")
    as_json = reader.accept("AS", "JSON")
    column = reader.path() if not as_json and reader.token.is_name else None
    return Describe(target, column, extended, as_json)


def show_properties(reader: StatementReader) -> ShowProperties:
    """``SHOW TBLPROPERTIES t [(key)]``"""
    reader.expect("SHOW", "TBLPROPERTIES")
    target = target_table(reader)
    key = None
    if reader.accept("("):
        key = reader.string() if reader.token.kind == "string" else property_key(reader)
        reader.expect(")")
    return ShowProperties(target, key)


def show_columns(reader: StatementReader) -> ShowColumns:
    """``SHOW COLUMNS IN t``"""
    reader.expect("SHOW", "COLUMNS", "IN|FROM")
    return ShowColumns(target_table(reader))


def show_partitions(reader: StatementReader) -> ShowPartitions:
    """``SHOW PARTITIONS t [PARTITION (column = literal, ...)]``"""
    reader.expect("SHOW", "PARTITIONS")
    target = target_table(reader)
    found: list[tuple[str, SqlText]] = []
    if reader.accept("PARTITION"):
        for name, value in partition_values(reader):
            if value is None:
                reader.fail(f"the column '{name}' has no value", reader.previous)
            found.append((name, value))
    return ShowPartitions(target, tuple(found))


def show_create(reader: StatementReader) -> ShowCreate:
    """``SHOW CREATE TABLE t [AS SERDE]``"""
    reader.expect("SHOW", "CREATE", "TABLE")
    target = target_table(reader)
    reader.accept("AS", "SERDE")
    return ShowCreate(target)
