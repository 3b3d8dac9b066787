"""ALTER TABLE in its forms."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from delta_pyds.statements import kinds, maintenance, pieces
from delta_pyds.statements.columns import (
    at_option,
    check_reserved,
    column,
    constraint,
    position,
    property_key,
    table_properties,
)
from delta_pyds.statements.create import cluster_by
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import table, target_table


def alter_table(reader: StatementReader) -> kinds.Statement:
    """Parse ``ALTER TABLE t`` with its change."""
    reader.expect("ALTER", "TABLE")
    return _action(reader, target_table(reader))


def drop_table(reader: StatementReader) -> kinds.DropTable | None:
    """``DROP TABLE|VIEW [IF EXISTS] t [PURGE]``; None for a table by path."""
    reader.expect("DROP", "TABLE|VIEW")
    view = reader.previous.is_word("VIEW")
    if_exists = reader.accept("IF", "EXISTS")
    target = reader.target = table(reader)
    in_backticks = reader.previous.kind == "name"
    is_path = len(target.parts) == 2 and target.parts[0].lower() in ("delta", "deltapy") and in_backticks
    if target.path is not None or is_path:
        return None
    reader.accept("PURGE")
    return kinds.DropTable(target, if_exists, view)


def _action(reader: StatementReader, target: kinds.TableReference) -> kinds.Statement:
    if reader.accept("ADD", "COLUMN|COLUMNS"):
        return _add_columns(reader, target)
    if reader.accept("REPLACE", "COLUMNS"):
        return kinds.ReplaceColumns(target, reader.in_parentheses(lambda: column(reader)))
    if reader.accept("ADD", "CONSTRAINT"):
        return kinds.AddConstraint(target, *constraint(reader))
    if target.path is None and reader.accept("RENAME", "TO"):
        return kinds.RenameTable(target, table(reader))
    if target.path is None and reader.accept("SET", "LOCATION"):
        return kinds.SetLocation(target, reader.string())
    if reader.accept("RENAME", "COLUMN"):
        old = reader.path_text()
        reader.expect("TO")
        return kinds.RenameColumn(target, old, reader.identifier())
    if reader.accept("DROP"):
        return _drop(reader, target)
    if reader.accept("ALTER|CHANGE"):
        changes = reader.previous.is_word("CHANGE")
        if not _is_called_column(reader):
            reader.accept("COLUMN")
        return _alter_columns(reader, target, changes)
    if reader.accept("SET", "TBLPROPERTIES"):
        return kinds.SetProperties(target, table_properties(reader))
    if reader.accept("UNSET", "TBLPROPERTIES"):
        if_exists = reader.accept("IF", "EXISTS")
        start = reader.token
        keys = reader.in_parentheses(lambda: property_key(reader))
        check_reserved(reader, start, keys)
        return kinds.UnsetProperties(target, keys, if_exists)
    if reader.at("CLUSTER", "BY", "NONE|AUTO"):
        if reader.tokens[reader.index + 2].is_word("AUTO"):
            reader.refuse("CLUSTER BY AUTO", "Name the columns.")
        reader.index += 3
        return kinds.ClusterBy(target, ())
    if reader.at("CLUSTER"):
        return kinds.ClusterBy(target, cluster_by(reader))
    return _other(reader)


def _is_called_column(reader: StatementReader) -> bool:
    """Whether the word COLUMN is the name of the column."""
    if reader.at("COLUMN", "SET|DROP", "NOT|DEFAULT") or reader.at("COLUMN", "."):
        return True
    second = reader.tokens[min(reader.index + 2, len(reader.tokens) - 1)]
    if reader.at("COLUMN", "COMMENT"):
        return second.kind == "string"
    third = reader.tokens[min(reader.index + 3, len(reader.tokens) - 1)]
    if reader.at("COLUMN", "SYNC", "IDENTITY"):
        return not third.is_word("IDENTITY")
    return reader.at("COLUMN", "TYPE") and second.kind == "word" and third.kind == "end"


def _other(reader: StatementReader) -> NoReturn:
    if reader.at("RENAME", "TO"):
        reader.refuse("ALTER TABLE ... RENAME TO for a table by path", "Move its directory, or clone it.")
    if reader.at("SET", "LOCATION"):
        reader.refuse(
            "ALTER TABLE ... SET LOCATION for a table by path",
            "Name the other path in your statements.",
            code="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
        )
    if reader.at("RECOVER", "PARTITIONS"):
        maintenance.refuse_for_delta(
            reader, "ALTER TABLE ... RECOVER PARTITIONS", "The log has the partitions of each file."
        )
    reader.fail(
        "expected ADD, RENAME COLUMN, DROP, ALTER COLUMN, CHANGE COLUMN, SET or UNSET TBLPROPERTIES, or CLUSTER BY"
    )


def _add_columns(reader: StatementReader, target: kinds.TableReference) -> kinds.AddColumns:
    def one_column() -> kinds.ColumnText:
        return column(reader, nested=True, placed=True)

    columns = reader.in_parentheses(one_column) if reader.token.is_symbol("(") else reader.list_of(one_column)
    return kinds.AddColumns(target, columns)


def _drop(reader: StatementReader, target: kinds.TableReference) -> kinds.Statement:
    if reader.accept("CONSTRAINT"):
        if_exists = reader.accept("IF", "EXISTS")
        return kinds.DropConstraint(target, reader.identifier(), if_exists)
    if reader.accept("FEATURE"):
        feature = reader.string() if reader.token.kind == "string" else reader.identifier()
        return kinds.DropFeature(target, feature, reader.accept("TRUNCATE", "HISTORY"))
    reader.expect("COLUMN|COLUMNS")
    if_exists = reader.accept("IF", "EXISTS")
    in_list = reader.token.is_symbol("(")
    columns = reader.in_parentheses(reader.path_text) if in_list else reader.list_of(reader.path_text)
    return kinds.DropColumns(target, columns, if_exists)


def _alter_columns(reader: StatementReader, target: kinds.TableReference, changes: bool) -> kinds.Statement:
    """One column, or several with commas between them."""
    found = kinds.AlterColumn(target, reader.path_text())
    if changes and not reader.at("TYPE|COMMENT|FIRST|AFTER|SET|DROP|SYNC"):
        return _hive_change(reader, found, reader.previous.value)
    first = _alter_column(reader, found)
    if isinstance(first, kinds.SyncIdentity) or not reader.token.is_symbol(","):
        return first
    columns = [first]
    while reader.accept(","):
        following = _alter_column(reader, kinds.AlterColumn(target, reader.path_text()))
        if isinstance(following, kinds.SyncIdentity):
            reader.fail("SYNC IDENTITY excludes other changes", reader.previous)
        columns.append(following)
    return kinds.AlterColumns(target, tuple(columns))


def _alter_column(reader: StatementReader, found: kinds.AlterColumn) -> kinds.AlterColumn | kinds.SyncIdentity:
    if reader.accept("TYPE"):
        return replace(found, data_type=pieces.data_type(reader))
    if reader.accept("COMMENT"):
        return replace(found, comment=reader.string())
    if reader.at("FIRST") or reader.at("AFTER"):
        return replace(found, after=position(reader))
    if reader.accept("SET", "DEFAULT"):
        return replace(found, default=pieces.expression(reader, at_option))
    if reader.accept("DROP", "DEFAULT"):
        return replace(found, drop_default=True)
    if reader.at("SET|DROP", "NOT|!", "NULL"):
        nullable = reader.token.is_word("DROP")
        reader.index += 3
        return replace(found, nullable=nullable)
    if not reader.accept("SYNC", "IDENTITY"):
        reader.fail("expected TYPE, COMMENT, SET, DROP, FIRST, AFTER or SYNC IDENTITY")
    return kinds.SyncIdentity(found.target, found.column)


def _hive_change(reader: StatementReader, found: kinds.AlterColumn, name: str) -> kinds.AlterColumn:
    """``CHANGE COLUMN name name type [COMMENT 'c'] [FIRST | AFTER c]``"""
    new = column(reader)
    after = position(reader) if reader.at("FIRST|AFTER") else None
    if new.default is not None or new.generated is not None or new.identity is not None or not new.nullable:
        reader.fail("CHANGE COLUMN needs a name and a type; a comment and a position are optional")
    if new.path[0].lower() != name.lower():
        reader.refuse("another name in CHANGE COLUMN", "Use ALTER TABLE ... RENAME COLUMN old TO new.")
    return replace(found, data_type=new.data_type, comment=new.comment, after=after)
