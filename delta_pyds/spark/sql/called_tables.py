"""The tables of MERGE, UPDATE and DELETE, and their names in expressions.

Invariants: an alias is the only name of its table, as in Spark. Without one, expressions name the table by its whole
name or the last part of it. Our alias replaces the whole name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame

from delta_pyds.catalog.address import CATALOG_NAME, TABLE_NAME
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.statements.kinds import Delete, Merge, SqlText, TableReference, Update
from delta_pyds.statements.qualified_names import QualifiedTable, by_alias, may_be_qualified


class CalledTables:
    """``table``, ``alias``: the target. ``source``: the source of a merge, under its alias."""

    def __init__(self, context: StatementContext, statement: Delete | Update | Merge) -> None:
        self._context = context
        self._text_of: Callable[[SqlText], str] | None = None
        # the alias of the source with its columns, if it is also the last part of the target's name
        self._others: dict[str, list[str]] = {}
        table = context.target(statement.target)
        target = None if statement.alias is not None else self._target(statement.target, table)
        source = None
        if isinstance(statement, Merge):
            frame, alias = context.source(statement.source), statement.source_alias
            if alias is None:
                source = self._source(statement.source, frame)
                if target is not None and source is not None and target.table.lower() == source.table.lower():
                    # both tables have the same last part, so it is ambiguous
                    target, source = target.under_whole_name(), source.under_whole_name()
                alias = None if source is None else source.alias
            elif target is not None and alias.lower() == target.table.lower() != target.alias.lower():
                self._others[alias.lower()] = [column.lower() for column in frame.columns]
            self.source = frame if alias is None else frame.alias(alias)
        self.alias = statement.alias if target is None else target.alias
        self.table = table if self.alias is None else replace(table, alias=self.alias)
        self._target_alone = [] if target is None else [target]
        self._called = list(self._target_alone)
        # if one table is target and source, its name is ambiguous
        if source is not None and (self.alias or "").lower() != source.alias.lower():
            self._called.append(source)

    @contextmanager
    def expressions(self) -> Iterator[None]:
        """Allow calls of ``text`` while the command runs."""
        with self._context.expressions() as self._text_of:
            yield

    def text(self, piece: SqlText, *, of_source: bool = False) -> str:
        """An expression as Spark can read it over the frames of the tables, with ``of_source`` over the source's alone.

        Raises: UserError (AMBIGUOUS_REFERENCE) for a column of both tables, qualified by a name that both have.
        """
        assert self._text_of is not None
        if of_source and self._others:
            return self._text_of(piece)
        spans = self._context.parsed.tables_in(piece, self._context.names.is_ours) if self._called else ()
        read = {span.table.path for span in spans if isinstance(span.table, TableReference)}
        # a subquery over the same path may use the same name
        return by_alias(
            self._text_of(piece), [called for called in self._called if called.table not in read], others=self._others
        )

    def column(self, name: str) -> str:
        """The column that gets a value."""
        return by_alias(name, self._target_alone, is_target=True)

    def _target(self, reference: TableReference, table: TableHandle) -> QualifiedTable | None:
        in_catalog = reference.storage_options
        if in_catalog is not None:
            parts = (in_catalog[CATALOG_NAME], *in_catalog[TABLE_NAME].split("."))
            return self._named(_of_parts(parts, _columns(table)))
        named = self._context.names.find(reference)
        if named is None:
            return self._at_path(reference, _columns(table))
        return self._named(QualifiedTable.of_schema(named.schema, named.table, _columns(table)))

    def _source(self, reference: object, frame: DataFrame) -> QualifiedTable | None:
        if not isinstance(reference, TableReference):
            return None
        if reference.path is not None:
            return self._at_path(reference, lambda: frame.columns)
        *before, name = reference.parts
        if not before and may_be_qualified(self._context.text, name):
            before = [self._context.spark.catalog.currentDatabase()]
        if len(before) < 2:
            return self._named(QualifiedTable.of_schema("".join(before), name, lambda: frame.columns))
        return self._named(_of_parts(reference.parts, lambda: frame.columns))

    def _named(self, table: QualifiedTable) -> QualifiedTable:
        """The table, under its whole name if the text has it. A subquery may use the last part for something else."""
        if not table.qualifiers[0][0] or not table.is_in(self._context.text):
            return table
        return table.under_whole_name()

    def _at_path(self, reference: TableReference, columns: Callable[[], list[str]]) -> QualifiedTable | None:
        called = QualifiedTable.at_path(reference.path or "", columns)
        return called if called.is_in(self._context.text) else None


def _of_parts(parts: tuple[str, ...], columns: Callable[[], list[str]]) -> QualifiedTable:
    *before, name = parts
    return QualifiedTable(name, tuple((part.lower(),) for part in reversed(before)), name, columns)


def _columns(table: TableHandle) -> Callable[[], list[str]]:
    return lambda: list(table.open().schema.names)
