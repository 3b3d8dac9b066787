"""OPTIMIZE, VACUUM, REORG, RESTORE, CONVERT, GENERATE; ANALYZE and MSCK, which a Delta table does not need."""

from __future__ import annotations

from typing import Any, NoReturn

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.statements import pieces
from delta_pyds.statements.kinds import Convert, Generate, Optimize, Purge, Restore, Vacuum
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import source_table, table, table_or_path, target_table, time_travel


def optimize(reader: StatementReader) -> Optimize:
    """``OPTIMIZE t [FULL] [WHERE condition] [ZORDER BY (columns)]``"""
    reader.expect("OPTIMIZE")
    target = table_or_path(reader)
    full = reader.accept("FULL")
    condition = pieces.expression(reader, lambda r: r.at("ZORDER", "BY")) if reader.accept("WHERE") else None
    columns: tuple[str, ...] = ()
    if reader.accept("ZORDER"):
        reader.expect("BY")
        in_list = reader.token.is_symbol("(")
        columns = reader.in_parentheses(reader.path_text) if in_list else reader.list_of(reader.path_text)
    return Optimize(target, condition, columns, full)


def reorg(reader: StatementReader) -> Purge:
    """``REORG TABLE t [WHERE condition] APPLY (PURGE)``"""
    reader.expect("REORG", "TABLE")
    target = target_table(reader)
    condition = pieces.expression(reader, lambda r: r.at("APPLY", "(")) if reader.accept("WHERE") else None
    reader.expect("APPLY", "(")
    if reader.at("UPGRADE"):
        reader.refuse("REORG TABLE ... APPLY (UPGRADE UNIFORM ...)", "Only APPLY (PURGE) is.")
    reader.expect("PURGE", ")")
    return Purge(target, condition)


def vacuum(reader: StatementReader) -> Vacuum:
    """``VACUUM t [LITE | FULL] [USING INVENTORY table | (query)] [RETAIN n HOURS] [DRY RUN]``, in any order"""
    reader.expect("VACUUM")
    target = table_or_path(reader)
    given: dict[str, Any] = {}
    while reader.token.kind == "word":
        name, value = _vacuum_option(reader)
        if name in given:
            reader.fail("this option is given twice", reader.previous)
        given[name] = value
    return Vacuum(target, **given)


def _vacuum_option(reader: StatementReader) -> tuple[str, Any]:
    if reader.accept("LITE|FULL"):
        return "lite", reader.previous.is_word("LITE")
    if reader.accept("RETAIN"):
        hours = reader.number()
        reader.expect("HOURS")
        return "retention_hours", hours
    if reader.accept("DRY", "RUN"):
        return "dry_run", True
    reader.expect("USING", "INVENTORY")
    if not reader.accept("("):
        return "inventory", source_table(reader)
    query = pieces.query(reader)
    reader.expect(")")
    return "inventory", query


def restore(reader: StatementReader) -> Restore:
    """``RESTORE [TABLE] t [TO] VERSION AS OF n | TIMESTAMP AS OF 'time'``"""
    reader.expect("RESTORE")
    if reader.at("TABLE") and not reader.following.is_symbol("."):
        reader.take()
    found = reader.target = table(reader)
    reader.accept("TO")
    found = time_travel(reader, found)
    if not found.travels:
        reader.fail("expected VERSION AS OF or TIMESTAMP AS OF")
    return Restore(found)


def convert(reader: StatementReader) -> Convert:
    """``CONVERT TO DELTA parquet.`/path` [NO STATISTICS] [PARTITIONED BY (column type, ...)]``"""
    reader.expect("CONVERT", "TO", "DELTA")
    target = target_table(reader)
    statistics = not reader.accept("NO", "STATISTICS")
    schema = None
    if reader.accept("PARTITIONED"):
        reader.expect("BY", "(")
        first = reader.index
        reader.list_of(lambda: _typed(reader))
        schema = reader.piece(first, reader.index).text
        reader.expect(")")
    return Convert(target, schema, statistics)


def _typed(reader: StatementReader) -> None:
    reader.identifier()
    pieces.data_type(reader)
    if reader.accept("NOT"):
        reader.expect("NULL")
    if reader.accept("COMMENT"):
        reader.string()


def generate(reader: StatementReader) -> Generate:
    """``GENERATE symlink_format_manifest FOR TABLE t``"""
    reader.expect("GENERATE")
    mode = reader.identifier()
    reader.expect("FOR", "TABLE")
    return Generate(target_table(reader), mode)


def analyze(reader: StatementReader) -> NoReturn:
    """``ANALYZE TABLE t ...``. Raises: UnsupportedOperationError."""
    reader.expect("ANALYZE", "TABLE")
    refuse_for_delta(reader, "ANALYZE TABLE", "The log has statistics of each file, and every write adds its own.")


def repair(reader: StatementReader) -> NoReturn:
    """``MSCK [REPAIR] TABLE t ...``. Raises: UnsupportedOperationError."""
    reader.expect("MSCK")
    reader.accept("REPAIR")
    reader.expect("TABLE")
    refuse_for_delta(reader, "MSCK REPAIR TABLE", "The log has the partitions of each file.")


def refuse_for_delta(reader: StatementReader, statement: str, reason: str) -> NoReturn:
    """Raises: UnsupportedOperationError with the code of the reference."""
    target = reader.target or target_table(reader)
    raise UnsupportedOperationError(
        f"{statement} does not apply to {target.text!r:.200}, a Delta table. {reason} Leave the statement out.",
        code="NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        table=target.text,
    )
