"""CREATE and REPLACE TABLE, clones, temporary views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from delta_pyds.errors import SqlSyntaxError
from delta_pyds.statements import pieces
from delta_pyds.statements.columns import column, constraint, properties, table_properties
from delta_pyds.statements.kinds import Clone, ColumnText, Create, TableReference, TemporaryView
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import source_table, table, target_table

Mode = Literal["create", "create_if_not_exists", "replace", "create_or_replace"]


def create_table(reader: StatementReader) -> Create | Clone:
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t ...``, ``REPLACE TABLE t ...``"""
    mode = _mode(reader)
    target = target_table(reader)
    if reader.at("SHALLOW|DEEP", "CLONE") or reader.at("CLONE"):
        return _clone(reader, target, mode)
    found = Create(target, mode)
    if reader.accept("LIKE"):
        like = source_table(reader)
        if not isinstance(like, TableReference) or like.travels:
            reader.fail("LIKE needs a table without a version or time")
        found = replace(found, like=like)
    elif reader.token.is_symbol("("):
        found = _columns_or_query(reader, found)
    found = _with_clauses(reader, found)
    _check_constraints(reader, found)
    if reader.accept("AS") or pieces.at_query(reader):
        if found.columns or found.constraints or found.like is not None:
            reader.fail("CREATE TABLE AS SELECT has the query's columns, and no column list or constraints")
        found = replace(found, query=pieces.query(reader))
    return found


def _columns_or_query(reader: StatementReader, found: Create) -> Create:
    """Parse columns if the text can be columns, as in Spark: a column may have the name from or select."""
    first = reader.index
    try:
        return _with_columns(reader, found)
    except SqlSyntaxError:
        reader.index, reader.late_error = first, None
        if pieces.at_query(reader):
            return found
        raise


def _check_constraints(reader: StatementReader, found: Create) -> None:
    """Raises: SqlSyntaxError for two constraints with one name, even if one is a property."""
    names = [f"delta.constraints.{name.lower()}" for name, _ in found.constraints]
    names += [key.lower() for key in found.properties if key.lower().startswith("delta.constraints.")]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        reader.fail(f"two constraints have the name '{twice.rsplit('.', 1)[-1]}'", reader.tokens[0])


def _mode(reader: StatementReader) -> Mode:
    if reader.accept("REPLACE"):
        reader.expect("TABLE")
        return "replace"
    reader.expect("CREATE")
    if reader.accept("OR", "REPLACE"):
        reader.expect("TABLE")
        return "create_or_replace"
    reader.accept("EXTERNAL")
    reader.expect("TABLE")
    return "create_if_not_exists" if reader.accept("IF", "NOT", "EXISTS") else "create"


def _with_columns(reader: StatementReader, found: Create) -> Create:
    columns: list[ColumnText] = []
    constraints: list[Any] = []

    def one() -> None:
        if reader.at("CONSTRAINT") and not reader.tokens[reader.index + 2].is_symbol(",", ")"):
            reader.take()
            constraints.append(constraint(reader))
        else:
            columns.append(column(reader))

    reader.in_parentheses(one)
    return replace(found, columns=tuple(columns), constraints=tuple(constraints))


def _with_clauses(reader: StatementReader, found: Create) -> Create:
    given: dict[str, Any] = {}
    while (name := reader.token.text.upper()) in _CLAUSES and reader.token.kind == "word":
        field, read = _CLAUSES[name]
        if field in given:
            reader.refuse_at_end(f"{name} is given twice", "DUPLICATE_CLAUSES")
        given[field] = read(reader)
    columns = found.columns
    if "partition_by" in given:
        # a column that PARTITIONED BY defines is a column of the table, as in Hive
        fields = given["partition_by"]
        columns = (*columns, *(field for field in fields if isinstance(field, ColumnText)))
        given["partition_by"] = tuple(f.path[0] if isinstance(f, ColumnText) else f for f in fields)
    return replace(found, columns=columns, **given)


def _partition_by(reader: StatementReader) -> tuple[str | ColumnText, ...]:
    reader.expect("PARTITIONED", "BY")

    def one() -> str | ColumnText:
        if reader.following.is_symbol("("):
            reader.refuse(
                f"partitioning by the transform {reader.token.text}",
                "Add a generated column with this value, and partition by it.",
            )
        if reader.following.is_symbol(",", ")"):
            return reader.identifier()
        if reader.following.is_symbol("."):
            reader.fail("a table is partitioned by columns, not by fields of structs", reader.following)
        return column(reader)

    return reader.in_parentheses(one)


def cluster_by(reader: StatementReader) -> tuple[str, ...]:
    """``CLUSTER BY (a, b.c)``"""
    reader.expect("CLUSTER", "BY")
    return reader.in_parentheses(reader.path_text)


def _provider(reader: StatementReader) -> str:
    reader.expect("USING")
    return ".".join(reader.path())


def _string_after(word: str) -> Any:
    def read(reader: StatementReader) -> str:
        reader.expect(word)
        return reader.string()

    return read


def _properties(reader: StatementReader) -> dict[str, str]:
    reader.expect("TBLPROPERTIES")
    return table_properties(reader)


def _options(reader: StatementReader) -> str:
    """``OPTIONS (path '/data/t')``, which means the same as LOCATION."""
    reader.expect("OPTIONS")
    given = properties(reader)
    if [key.lower() for key in given] != ["path"]:
        reader.refuse("OPTIONS of a Delta table other than path", "Write TBLPROPERTIES for properties of the table.")
    return next(iter(given.values()))


def _buckets(reader: StatementReader) -> None:
    reader.refuse(
        "CLUSTERED BY, which makes buckets,", "Write CLUSTER BY (columns).", code="DELTA_OPERATION_NOT_ALLOWED_DETAIL"
    )


def _stored(reader: StatementReader) -> None:
    reader.fail("a Delta table has no STORED AS")


_CLAUSES: dict[str, tuple[str, Any]] = {
    "USING": ("provider", _provider),
    "PARTITIONED": ("partition_by", _partition_by),
    "CLUSTER": ("cluster_by", cluster_by),
    "LOCATION": ("location", _string_after("LOCATION")),
    "COMMENT": ("comment", _string_after("COMMENT")),
    "TBLPROPERTIES": ("properties", _properties),
    "OPTIONS": ("location", _options),
    "CLUSTERED": ("buckets", _buckets),
    "STORED": ("format", _stored),
}


def _clone(reader: StatementReader, target: TableReference, mode: Mode) -> Clone:
    if reader.accept("DEEP") or not reader.accept("SHALLOW"):
        reader.refuse("a deep clone, which copies the data,", "Write SHALLOW CLONE, or CREATE TABLE ... AS SELECT.")
    reader.expect("CLONE")
    source = source_table(reader)
    if not isinstance(source, TableReference):
        reader.fail("a clone needs a table, not table_changes")
    given = table_properties(reader) if reader.accept("TBLPROPERTIES") else {}
    location = reader.string() if reader.accept("LOCATION") else None
    return Clone(target, mode, source, given, location)


def temporary_view(reader: StatementReader) -> TemporaryView:
    """``CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW v [(columns)] AS query``"""
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    is_global = reader.accept("GLOBAL")
    reader.expect("TEMPORARY|TEMP", "VIEW")
    if reader.at("IF", "NOT", "EXISTS"):
        reader.fail("a temporary view cannot have IF NOT EXISTS")
    name = table(reader)
    columns = reader.in_parentheses(reader.identifier) if reader.token.is_symbol("(") else None
    if reader.accept("COMMENT"):
        reader.string()
    reader.expect("AS")
    return TemporaryView(name, pieces.query(reader), columns, replaces, is_global)
