"""One statement in its session: its tables, its queries, its expressions."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.catalog.opening import table_storage
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.catalog_names import tracked_views
from delta_pyds.spark.catalog_names.opening import open_named
from delta_pyds.spark.catalog_names.statement_names import Names, by_view
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.same_files import root_for_server
from delta_pyds.spark.sql.frames import Frames, Metadata, placeholder
from delta_pyds.spark.table_commands.opening import open_path
from delta_pyds.spark.table_commands.settings import for_one_command
from delta_pyds.statements.kinds import SqlText, TableChanges, TableReference, TableSpan
from delta_pyds.statements.parse import QUERY_ALONE, ParsedStatement
from delta_pyds.storage.table_path import absolute_table_path
from delta_pyds.table.snapshot import Snapshot, open_snapshot


class StatementContext:
    """The state of one running statement. ``args``: the user's, for Spark. ``frames``: see ``Frames``."""

    def __init__(
        self,
        spark: SparkSession,
        text: str,
        parsed: ParsedStatement,
        args: Any,
        frames: Mapping[str, DataFrame] | None = None,
    ) -> None:
        self.spark = spark
        self.text = text
        self.parsed = parsed
        parsed.statement = by_view(spark, parsed.statement)
        self.args = args
        self.names = Names(spark)
        metadata: Metadata = "rows" if parsed.asks_for_row_ids else "files" if parsed.asks_for_files else None
        self.frames = Frames(spark, frames, self.names.by_path, metadata=metadata)

    def table(self, reference: TableReference) -> TableHandle:
        """The table, opened for a command. Raises: as ``open_named`` and ``open_path``."""
        named = self.names.find(reference)
        if named is not None:
            return open_named(self.spark, named).handle
        found = self.names.by_path(reference)
        return open_path(self.spark, found.path or "", storage_options=found.storage_options)

    def target(self, reference: TableReference) -> TableHandle:
        """The table that the statement changes, at the version that the statement reads.

        It is opened before anything is read. So a view that Spark resolves shows this version or a later one, and the
        commit sees the changes between the two.
        """
        handle = self.table(reference)
        snapshot = handle.open()
        self.pin(snapshot)
        return replace(handle, pinned=snapshot)

    def pin(self, snapshot: Snapshot) -> None:
        """Let the statement read this version of the table. Nothing must have been read yet."""
        self.frames.pin(snapshot)
        tracked_views.refresh_older(self.spark, self.text, snapshot)

    def snapshot(self, reference: TableReference) -> Snapshot:
        """The table as it is now, or at the version that the reference names.

        Raises: TableNotFoundError; UnsupportedOperationError on Spark Connect for a path without a scheme that is not
            the same on the server.
        """
        found = self.names.by_path(reference)
        root = root_for_server(self.spark, found.path or "")
        return open_snapshot(table_storage(root, found.storage_options), root, reference.version)

    def root(self, reference: TableReference) -> str:
        """The table's root. Raises: TableNotFoundError."""
        return absolute_table_path(self.names.by_path(reference).path or "", remote=is_remote(self.spark))

    def command(self, path: str) -> TableHandle:
        """A handle with the session's settings for one command."""
        return for_one_command(TableHandle(self.spark, path))

    def query(self, piece: SqlText, replaced: Sequence[tuple[int, int, str]] = (), *, stays: bool = True) -> DataFrame:
        """The rows of a query of the statement. Other text is a syntax error, and does not run.

        ``replaced``: start and end of pieces of its text and their new texts, in order, outside of table names.
        ``stays``: whether our tables' names are resolved now. Otherwise Spark resolves them when the rows are read.
        """
        self.names.refresh_entries(self.parsed.names_in(piece))
        before, after = QUERY_ALONE
        text = piece.text
        if stays:
            spans = self.parsed.reads_in(piece, self.names.is_ours, self.names.is_read)
        else:
            spans = self.parsed.tables_in(piece, self.names.is_ours)
        for start, end, value in reversed(replaced):
            text = text[:start] + value + text[end:]
            longer = len(value) - (end - start)
            spans = tuple(_moved(span, longer) if span.start >= end else span for span in spans)
        stars = self.parsed.stars_in(piece) if spans and self.parsed.asks_for_files else ()
        if stars and replaced:
            raise UnsupportedOperationError("a star beside _metadata and DEFAULT is not supported: name the columns.")
        return self.frames.run(
            f"{before}{text}{after}",
            [_moved(span, len(before)) for span in spans],
            stars=[star + len(before) for star in stars],
        )

    def source(self, source: TableReference | TableChanges | SqlText) -> DataFrame:
        """The source rows of a statement: of a query, of a table by path, of any table or view by name."""
        if isinstance(source, SqlText):
            return self.query(source)
        if isinstance(source, TableReference) and source.path is None:
            if self.names.in_catalog(source) is not None:
                return self.frames.of(source).alias(source.parts[-1])
            self.names.refresh_entries((source,))
            # an alias cannot be qualified by a schema
            plain = self.names.is_read(source) and not self.parsed.calls_columns_by_schema(source)
            if source.travels or plain:
                return self.frames.of(source).alias(source.parts[-1])
            return self.spark.table(source.text)
        return self.frames.of(source)

    @contextmanager
    def expressions(self) -> Iterator[Callable[[SqlText], str]]:
        """Yield a function for the text of an expression, in which views replace tables while the command runs."""
        views: dict[int, str] = {}

        def text_of(piece: SqlText) -> str:
            text = self.parsed.expression(piece)
            spans = self.parsed.reads_in(piece, self.names.is_ours, self.names.is_read)
            shift = text.find(piece.text)
            for span in reversed(spans):
                frame = self.frames.of(span.table, span.conditions)
                if id(frame) not in views:
                    views[id(frame)] = f"_deltapy_{uuid.uuid4().hex}"
                    frame.createOrReplaceTempView(views[id(frame)])
                before, rest = text[: shift + span.start], text[shift + span.end :]
                text = before + placeholder(views[id(frame)], span.table, before, rest) + rest
            return text

        try:
            yield text_of
        finally:
            for view in views.values():
                self.spark.catalog.dropTempView(view)


def _moved(span: TableSpan, by: int) -> TableSpan:
    return replace(span, start=span.start + by, end=span.end + by)
