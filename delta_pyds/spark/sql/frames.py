"""The tables that a query names, as DataFrames.

Invariant: one statement reads a table at one version, even if it names it several times, and under several names. A
command changes the table at this version. Nothing remains in the session's catalog. The conditions of the statement
rule out files of a table, so occurrences with different conditions are different frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import ExpressionError, OptionError, SqlSyntaxError, UnsupportedOperationError, UserError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.spark import versions
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.arguments import json_argument
from delta_pyds.spark.changes_api import read_changes, stream_changes
from delta_pyds.spark.loading import load
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.options.values import format_text
from delta_pyds.spark.other_engines import require_streams
from delta_pyds.spark.registration import register
from delta_pyds.spark.settings import TIME_ZONE
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.spark.source.error_transport import errors_as_they_were
from delta_pyds.spark.sql import cached_rows
from delta_pyds.spark.sql.cached_rows import CachedRows
from delta_pyds.spark.sql.file_metadata import read_with_metadata, read_with_row_ids
from delta_pyds.spark.sql.file_pruning import StatementPruning
from delta_pyds.spark.table_commands.identifiers import path_if_in_name
from delta_pyds.statements.file_metadata import WITHOUT_IT
from delta_pyds.statements.kinds import (
    ChangesClause,
    RowConditions,
    SqlText,
    TableChanges,
    TableReference,
    TableSpan,
)
from delta_pyds.statements.spark_statements import name_of
from delta_pyds.storage.resolve import has_scheme
from delta_pyds.storage.table_path import absolute_table_path, without_links
from delta_pyds.table.scan.read_report import QueryReport, ReadReport, remember, report_of, reports
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.time_travel import instant_text

Metadata = Literal["files", "rows"] | None
# the text before a table that must not get an alias: TABLE t, f(TABLE (t))
_TABLE_WORD = re.compile(r"\bTABLE[\s(]*\Z", re.IGNORECASE)
# the word after a table is its alias, unless it is one of these
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(`|\"|\w*)", re.DOTALL)
_NO_ALIAS = frozenset((
    "ANTI", "CLUSTER", "CROSS", "DISTRIBUTE", "EXCEPT", "FULL", "GROUP", "HAVING", "INNER", "INTERSECT", "JOIN",
    "LATERAL", "LEFT", "LIMIT", "MINUS", "NATURAL", "OFFSET", "ON", "ORDER", "PIVOT", "RIGHT", "SELECT", "SEMI", "SET",
    "SORT", "UNION", "UNPIVOT", "USING", "WHEN", "WHERE", "WINDOW",
))  # fmt: skip
_WHOLE = re.compile(r"-?\d{1,18}")


@contextmanager
def as_views(frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Create temporary views of the frames, for the questions that a command asks Spark while it runs."""
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name, frame in frames.items():
            frame.sparkSession.catalog.dropTempView(name)


@dataclass
class _Table:
    """A table that the statement reads. ``frames``: by the predicate that rules out files.

    ``whole``: whether no files are ruled out, because rows of the whole table are cached, or because the table may be
    another one on the server. ``snapshot``, ``time_zone``: those of the first frame; the snapshot is None if it is
    unknown.
    """

    frames: dict[str | None, DataFrame] = field(default_factory=dict)
    whole: bool = False
    snapshot: Snapshot | None = None
    time_zone: str = ""


class Frames:
    """The tables of one statement. ``given``: the user's frames by their names in the text. Their
    temporary views are dropped before a query runs. ``by_path``: returns a table by name as one by path. ``metadata``:
    the tables also have the column ``_metadata``, of files or of row ids.
    """

    def __init__(
        self,
        spark: SparkSession,
        given: Mapping[str, DataFrame] | None,
        by_path: Callable[[TableReference], TableReference],
        *,
        metadata: Metadata = None,
    ) -> None:
        self._spark = spark
        self._by_path = by_path
        self._metadata = metadata
        # for each table read, whether it has its own column ``_metadata``, which stars show
        self._own_metadata: set[bool] = set()
        self._given = given or {}
        self._pruning = StatementPruning(spark)
        self._read: dict[Any, DataFrame] = {}
        self._tables: dict[Any, _Table] = {}
        # by the table's root, and by the version and time of the reference
        self._versions: dict[tuple[str, int | None, str | None], int] = {}
        # by the identity of the frame, which is kept above
        self._reports: dict[int, ReadReport] = {}

    def pin(self, snapshot: Snapshot) -> None:
        """Let the statement read this version of the table. Nothing must have been read yet."""
        self._versions[self._in_any_spelling(snapshot.table_root), None, None] = snapshot.version

    @property
    def has_frames_of_user(self) -> bool:
        return bool(self._given)

    def of(self, table: TableReference | TableChanges, conditions: RowConditions | None = None) -> DataFrame:
        """The rows of the table. Those that break one of the conditions may be missing.

        Raises: UserError for an invalid time; as ``read``.
        """
        if isinstance(table, TableReference):
            table = self._by_path(table)
            if table.is_one_version:
                return self._rows(table, conditions)
        key = _key(table)
        if key not in self._read:
            self._read[key] = _only_read(
                self._changes(table) if isinstance(table, TableChanges) else self._changes_or_stream(table)
            )
        return self._read[key]

    def run(self, text: str, spans: Sequence[TableSpan], args: Any = None, *, stars: Sequence[int] = ()) -> DataFrame:
        """Spark's answer to a text in which the spans are our tables. ``stars``: the ends of the stars that leave
        ``_metadata`` out.
        """
        frames = {name: frame for name, frame in self._given.items() if name in text}
        if not spans and not frames:
            return self._spark.sql(text, args)
        given = tuple(frames)
        read: dict[int, DataFrame] = {}
        pieces: list[str] = []
        done = 0
        for span in spans:
            self.of(span.table, span.conditions)
        left = list(stars) if spans and self._own_metadata != {True} else []
        if left and True in self._own_metadata:
            raise UnsupportedOperationError(
                "this query has the column _metadata and a star, and one of the tables has its own column _metadata. "
                "So it is unclear which of the two the star excludes. Name the columns instead.",
                feature="_metadata",
            )

        def plain(first: int, last: int) -> str:
            found = ""
            while left and left[0] <= last:
                found, first = f"{found}{_doubled(text[first : left[0]])}{WITHOUT_IT}", left.pop(0)
            return found + _doubled(text[first:last])

        for number, span in enumerate(spans):
            name = f"table_{number}"
            frames[name] = self.of(span.table, span.conditions)
            read[id(frames[name])] = frames[name]
            before = text[done : span.start]
            pieces.append(plain(done, span.start))
            done = span.end
            shown = _doubled(placeholder("\0", span.table, before, text[done:]))
            pieces.append(shown.replace("\0", f"{{{name}}}"))
        whole = "".join([*pieces, plain(done, len(text))])
        for name in given:
            whole = whole.replace(name, f"{{{name}}}")
        answer = self._spark.sql(whole, args, **frames)
        remember(answer, QueryReport(tuple(self._reports[one] for one in read if one in self._reports)))
        return answer

    def time(self, text: SqlText) -> str:
        """The time of an expression without columns: an instant, or the text of a literal.

        A wall-clock time is ambiguous in the hour when clocks are set back.
        """
        literal = _literal(text.text)
        if literal is not None:
            return literal
        found = self._value(f"unix_micros(CAST({text.text} AS TIMESTAMP))")
        try:
            return instant_text(found)
        except (TypeError, OptionError):
            raise UserError(
                f"the expression {text.text!r:.200} is not a time, so it does not select a version.",
                code="DELTA_TIMESTAMP_INVALID",
                expression=text.text,
            ) from None

    def text(self, constant: SqlText) -> str | None:
        """A constant as Spark converts it to text; None for null."""
        found = self._value(f"CAST({constant.text} AS STRING)")
        return None if found is None else str(found)

    def _rows(self, table: TableReference, conditions: RowConditions | None) -> DataFrame:
        assert table.path is not None
        known = self._tables.setdefault(_key(table), _Table())
        time = None if table.timestamp is None else table.timestamp.text
        at = self._in_any_spelling(self._root(table)), table.version, time
        if not known.frames:
            kept = self._cached_rows(table, self._versions.get(at))
            if kept is not None:
                self._versions[at] = kept.version
                known.frames[None] = _only_read(kept.frame)
            known.whole = kept is not None or self._is_elsewhere(table) or self._caches_rows_of_user(table)
        pruning = None if known.whole else self._pruning.by(conditions)
        if pruning is not None and known.snapshot is not None:
            pruning.predicates(known.snapshot, known.time_zone)
        predicate = None if pruning is None else pruning.text
        if predicate in known.frames:
            return known.frames[predicate]
        timestamp = None if table.timestamp is None else self.time(table.timestamp)
        options = ReadOptions(
            "", version=table.version, timestamp=timestamp, storage_options=table.storage_options or {}
        )
        pinned = self._versions.get(at)
        if self._metadata is None:
            found = load(self._spark, table.path, options, pruning=pruning, pinned_version=pinned)
        else:
            reads = read_with_metadata if self._metadata == "files" else read_with_row_ids
            found, is_own = reads(self._spark, table.path, options, pruning=pruning, pinned_version=pinned)
            self._own_metadata.add(is_own)
        if pruning is not None:
            known.snapshot, known.time_zone, predicate = pruning.snapshot, pruning.time_zone, pruning.text
        frame = known.frames[predicate] = _only_read(found)
        report = self._reports[id(frame)] = report_of(found)
        if report.version is not None and not self._is_elsewhere(table):
            self._versions.setdefault(at, report.version)
        return frame

    def _cached_rows(self, table: TableReference, version: int | None) -> CachedRows | None:
        """The rows of the table that CACHE TABLE caches. ``version``: the only one that may be read, if it is given."""
        if table.travels or table.storage_options or self._metadata or not cached_rows.any_cached(self._spark):
            return None
        return cached_rows.cached_rows(self._spark, self._root(table), version)

    def _is_elsewhere(self, table: TableReference) -> bool:
        """Whether the table may be another one on the server of Spark Connect than here."""
        return is_remote(self._spark) and not has_scheme(table.path or "")

    def _caches_rows_of_user(self, table: TableReference) -> bool:
        """Whether the user caches a DataFrame of the table: Spark uses its rows only for the same files."""
        if is_remote(self._spark):
            return False  # each question is a request
        root = self._root(table)
        return any(report.path == root and frame.is_cached for frame, report in reports())

    def _in_any_spelling(self, root: str) -> str:
        # this process does not see the links of the server
        return root if is_remote(self._spark) else without_links(root)

    def _root(self, table: TableReference) -> str:
        return absolute_table_path(table.path or "", remote=is_remote(self._spark))

    def _changes_or_stream(self, table: TableReference) -> DataFrame:
        clause, path = table.changes, table.path or ""
        if self._metadata is not None:
            named = f"STREAM {table.text:.200}" if table.stream is not None else f"{table.text:.200} CHANGES"
            raise UnsupportedOperationError(
                f"the column _metadata of {named} is not supported: read the table itself, or omit the column.",
                feature="_metadata",
            )
        stored = json_argument("storage_options", table.storage_options)
        options = dict(table.stream or ()) if stored is None else {**dict(table.stream or ()), "storageOptions": stored}
        if clause is not None:
            options |= self._options_of(clause)
            return (read_changes if table.stream is None else stream_changes)(self._spark, path, options)
        register(self._spark)
        require_streams(self._spark)
        return self._loaded(self._spark.readStream, options, path)

    def _options_of(self, clause: ChangesClause) -> dict[str, str]:
        """The clause as options of ``spark.read.changes``. Raises: SqlSyntaxError if this Spark has no such clause."""
        if not versions.has_changes():
            raise SqlSyntaxError(
                "this version of Spark has no clause CHANGES. Read the changes by table_changes('table', 1, 3), or by "
                "delta_pyds.changes.",
            )
        options = dict(clause.options)
        kind = "Version" if clause.by_version else "Timestamp"
        for end, bound in zip(("starting", "ending"), clause.bounds, strict=False):
            options[f"{end}{kind}"] = bound.value if isinstance(bound.value, str) else self.time(bound.value)
            options[f"{end}BoundInclusive"] = format_text(bound.inclusive)
        return options

    def _changes(self, table: TableChanges) -> DataFrame:
        options = {"readChangeFeed": "true", _TIME_ZONE_OPTION: self._spark.conf.get(TIME_ZONE) or "UTC"}
        for name, bound in zip(("starting", "ending"), table.bounds, strict=False):
            kind, value = self._bound(bound)
            options[f"{name}{kind}"] = value
        register(self._spark)
        path, storage_options = self._path_of_changes(table)
        stored = json_argument("storage_options", storage_options)
        if stored is not None:
            options["storageOptions"] = stored
        return self._loaded(self._spark.read, options, path)

    def _loaded(self, reader: Any, options: Mapping[str, str], path: str) -> DataFrame:
        with errors_as_they_were():
            frame: DataFrame = reader.format(DeltaDataSource.name()).options(**options).load(path)
            _ = frame.schema  # on Spark Connect the server reports errors only on this request
        return frame

    def _path_of_changes(self, table: TableChanges) -> tuple[str, Mapping[str, Any] | None]:
        """The path of the table and its storage options. Raises: as ``by_path``; SqlSyntaxError for an invalid name."""
        path = table.name if table.by_path else path_if_in_name(table.name)
        if path is None and "/" in table.name and "`" not in table.name:
            return table.name, None
        parts = name_of(table.name) if path is None else None
        if path is None and parts is None:
            raise SqlSyntaxError(
                f"table_changes takes the name or the path of a table, but {table.name!r:.200} is neither."
            )
        if path is not None:
            return path, None
        found = self._by_path(TableReference(parts or (), table.name))
        return found.path or "", found.storage_options

    def _bound(self, text: SqlText) -> tuple[str, str]:
        if _WHOLE.fullmatch(text.text):
            return "Version", text.text
        literal = _literal(text.text)
        if literal is not None:
            return "Timestamp", literal
        found = self._value(text.text)
        return ("Version", str(found)) if isinstance(found, int) else ("Timestamp", self.time(text))

    def _value(self, expression: str) -> Any:
        return self._spark.sql(f"SELECT {expression} AS value").collect()[0][0]


_TIME_ZONE_OPTION = "timeZone"


def _key(table: TableReference | TableChanges) -> Any:
    if isinstance(table, TableChanges):
        return table.name, tuple(bound.text for bound in table.bounds)
    return (
        table.path,
        table.storage_options is None,
        table.version,
        None if table.timestamp is None else table.timestamp.text,
        table.stream,
        _changes_key(table.changes),
    )


def _changes_key(clause: ChangesClause | None) -> Any:
    if clause is None:
        return None
    bounds = ((b.value if isinstance(b.value, str) else b.value.text, b.inclusive) for b in clause.bounds)
    return clause.by_version, tuple(bounds), clause.options


def _only_read(frame: DataFrame) -> DataFrame:
    """The rows of a table for a query.

    Nothing can be inserted into a filtered table; Spark would write files into one that reads files. The plan also
    differs from a user's own: when a statement's view is dropped, Spark drops the cached rows of its plan.
    """
    return frame.filter("true")


def placeholder(text: str, table: TableReference | TableChanges, before: str, rest: str) -> str:
    """``text`` instead of a table, with the table's name as alias if no other alias follows."""
    if isinstance(table, TableChanges) or table.path is not None or _TABLE_WORD.search(before):
        return text
    following = _FIRST_WORD.match(rest)
    word = (following[1] or "").upper() if following is not None else ""
    if word and word not in _NO_ALIAS:
        return text
    return f"{text} AS {quote_name(table.parts[-1])}"


def _literal(text: str) -> str | None:
    """The value of a text that is one string literal."""
    try:
        first, *others = tokenize(text)
    except ExpressionError:
        return None
    return first.value if first.kind == "string" and len(others) == 1 else None


def _doubled(text: str) -> str:
    """The text with doubled braces, because PySpark formats it."""
    return text.replace("{", "{{").replace("}", "}}")
