"""A value for each kind of statement.

Names are as written, without backticks. ``SqlText`` is the user's own text, for Spark to parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from delta_pyds.redaction import Concealing
from delta_pyds.statements.scopes import Role


@dataclass(frozen=True)
class SqlText:
    """A piece of the statement. ``position``: its start in the user's text. ``first``, ``last``: its tokens."""

    text: str
    position: int
    first: int = field(default=0, compare=False, repr=False)
    last: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True)
class ChangesBound:
    """One end of CHANGES FROM ... TO ...: the number of a version, or the expression of a time."""

    value: str | SqlText
    inclusive: bool


@dataclass(frozen=True)
class ChangesClause:
    """``CHANGES FROM VERSION 1 EXCLUSIVE TO VERSION 3 WITH (option = value, ...)``

    ``bounds``: the first and, if given, the last. A stream may have none, and no last one. ``options``: those of a
    batch; a stream has its own.
    """

    by_version: bool
    bounds: tuple[ChangesBound, ...]
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False)
class TableReference(Concealing):
    """A table as a statement names it, with the version or time to read.

    ``storage_options``: the address of a table in a catalog, after its location was found. ``stream``: the options of
    STREAM t; None for a table that is not read as a stream. ``changes``: the clause CHANGES; None if rows are read.
    """

    parts: tuple[str, ...]
    text: str
    position: int = 0
    version: int | None = None
    timestamp: SqlText | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, compare=False)
    stream: tuple[tuple[str, str], ...] | None = None
    changes: ChangesClause | None = None

    @property
    def path(self) -> str | None:
        """The path of ``delta.`/data/events``` and ``deltapy.`/data/events```; None for a name of a catalog."""
        *catalog, first, path = ("", *self.parts)
        # the session's own catalog may come first
        is_path = [part.lower() for part in catalog] in ([""], ["", "spark_catalog"]) and "/" in path
        return path if is_path and first.lower() in ("delta", "deltapy") else None

    @property
    def travels(self) -> bool:
        """Whether it is read at a version, at a time, as a stream or as changes, instead of in its current state."""
        return self.version is not None or self.timestamp is not None or not self.is_one_version

    @property
    def is_one_version(self) -> bool:
        """Whether its rows are read at one version, instead of as a stream or as changes."""
        return self.stream is None and self.changes is None


@dataclass(frozen=True)
class TableChanges:
    """``table_changes(...)``. ``bounds``: the first version or time and, if given, the last one."""

    name: str
    by_path: bool
    bounds: tuple[SqlText, ...]


@dataclass(frozen=True)
class RowConditions:
    """Texts of WHERE and ON: a row for which one is not true changes no result.

    ``alias``: the table's name in them; None without one. ``names``: those of all relations of its FROM list, in lower
    case. ``merged``: the columns of USING in lower case, which mean a column of both sides; None after a NATURAL join,
    where any column may.
    """

    texts: tuple[str, ...]
    alias: str | None
    names: frozenset[str]
    merged: frozenset[str] | None = frozenset()


@dataclass(frozen=True)
class TableSpan:
    """A table in a position where Spark expects one, with its role there.

    ``start``, ``end``: positions in the user's text. ``first``, ``last``: its tokens. ``conditions``: on its rows.
    """

    table: TableReference | TableChanges
    start: int
    end: int
    first: int = field(default=0, compare=False, repr=False)
    last: int = field(default=0, compare=False, repr=False)
    role: Role = field(default="other", compare=False, repr=False)
    conditions: RowConditions | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Statement:
    """``target``: the table of the statement."""

    target: TableReference


@dataclass(frozen=True)
class Aggregate:
    """``column``: None for count(*)."""

    kind: str
    column: str | None


@dataclass(frozen=True)
class PassThrough:
    """Spark's own statement. ``verb``: its first words. ``tables``: those that it reads.

    ``changed``: tables by name whose entry in the catalog it changes, or expressions that name them. ``immediate``:
    expressions whose values it runs as statements (EXECUTE IMMEDIATE). ``aggregates``: the aggregates, if the query has
    nothing else and one table. ``changed_views``: views that it changes or replaces. ``named``: names without a version
    that it only reads.
    """

    verb: str
    tables: tuple[TableSpan, ...]
    changed: tuple[TableReference | SqlText, ...] = ()
    immediate: tuple[SqlText, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    changed_views: tuple[TableReference, ...] = ()
    named: tuple[TableSpan, ...] = ()


@dataclass(frozen=True)
class TemporaryView:
    """CREATE TEMPORARY VIEW over a query."""

    name: TableReference
    query: SqlText
    columns: tuple[str, ...] | None
    replace: bool
    is_global: bool


@dataclass(frozen=True)
class CachedView:
    """CACHE TABLE with a query. ``options``: as written, with the keyword."""

    name: TableReference
    query: SqlText
    lazy: bool
    options: str


@dataclass(frozen=True)
class Delete(Statement):
    alias: str | None
    condition: SqlText | None


@dataclass(frozen=True)
class Assignment:
    """``column``: names as written, with their backticks."""

    column: str
    value: SqlText


@dataclass(frozen=True)
class Update(Statement):
    alias: str | None
    assignments: tuple[Assignment, ...]
    condition: SqlText | None


@dataclass(frozen=True)
class Truncate(Statement):
    pass


@dataclass(frozen=True)
class MergeClauseText:
    """``assignments``: None for ``*``, and for a delete."""

    kind: Literal["matched", "not_matched", "not_matched_by_source"]
    action: Literal["update", "delete", "insert"]
    condition: SqlText | None
    assignments: tuple[Assignment, ...] | None


@dataclass(frozen=True)
class Merge(Statement):
    """``source``: a table, or a query."""

    alias: str | None
    source: TableReference | TableChanges | SqlText
    source_alias: str | None
    condition: SqlText
    clauses: tuple[MergeClauseText, ...]
    evolves: bool


@dataclass(frozen=True)
class Insert(Statement):
    """``columns``: the list after the table's name. ``partition``: names to literals, None for those in the query."""

    query: SqlText
    overwrite: bool
    by_name: bool = False
    columns: tuple[str, ...] | None = None
    partition: tuple[tuple[str, SqlText | None], ...] | None = None
    replace_where: SqlText | None = None
    replace_using: tuple[str, ...] | None = None
    evolves: bool = False


@dataclass(frozen=True)
class Identity:
    always: bool
    start: int = 1
    step: int = 1


@dataclass(frozen=True)
class ColumnText:
    """The definition of a column. ``path``: more than one name for a field of a struct. ``after``: empty for FIRST."""

    path: tuple[str, ...]
    data_type: str
    nullable: bool = True
    comment: str | None = None
    default: SqlText | None = None
    generated: SqlText | None = None
    identity: Identity | None = None
    after: str | None = None


@dataclass(frozen=True)
class Create(Statement):
    """CREATE and REPLACE TABLE. ``like``: the table to copy the definition from. ``query``: that of AS SELECT."""

    mode: Literal["create", "create_if_not_exists", "replace", "create_or_replace"]
    provider: str | None = None
    columns: tuple[ColumnText, ...] = ()
    constraints: tuple[tuple[str, SqlText], ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    like: TableReference | None = None
    query: SqlText | None = None


@dataclass(frozen=True)
class Clone(Statement):
    mode: Literal["create", "create_if_not_exists", "replace", "create_or_replace"]
    source: TableReference
    properties: Mapping[str, str]
    location: str | None


@dataclass(frozen=True)
class DropTable(Statement):
    """``DROP TABLE`` of a name, or ``DROP VIEW``."""

    if_exists: bool
    view: bool = False


@dataclass(frozen=True)
class RenameTable(Statement):
    new_name: TableReference


@dataclass(frozen=True)
class SetLocation(Statement):
    location: str


@dataclass(frozen=True)
class AddColumns(Statement):
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True)
class ReplaceColumns(Statement):
    columns: tuple[ColumnText, ...]


@dataclass(frozen=True)
class RenameColumn(Statement):
    column: str
    new_name: str


@dataclass(frozen=True)
class DropColumns(Statement):
    columns: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True)
class AlterColumn(Statement):
    """``nullable``: None leaves it as it is. ``after``: as in ``ColumnText``."""

    column: str
    data_type: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    default: SqlText | None = None
    drop_default: bool = False
    after: str | None = None


@dataclass(frozen=True)
class AlterColumns(Statement):
    """Several columns in one statement, each once."""

    columns: tuple[AlterColumn, ...]


@dataclass(frozen=True)
class SyncIdentity(Statement):
    column: str


@dataclass(frozen=True)
class SetProperties(Statement):
    properties: Mapping[str, str]


@dataclass(frozen=True)
class UnsetProperties(Statement):
    keys: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True)
class AddConstraint(Statement):
    name: str
    condition: SqlText


@dataclass(frozen=True)
class DropConstraint(Statement):
    name: str
    if_exists: bool


@dataclass(frozen=True)
class ClusterBy(Statement):
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DropFeature(Statement):
    feature: str
    truncate_history: bool


@dataclass(frozen=True)
class Optimize(Statement):
    condition: SqlText | None
    zorder_by: tuple[str, ...]
    full: bool


@dataclass(frozen=True)
class Purge(Statement):
    """REORG TABLE ... APPLY (PURGE)."""

    condition: SqlText | None


@dataclass(frozen=True)
class Vacuum(Statement):
    """``inventory``: a table, or a query."""

    retention_hours: float | None = None
    lite: bool | None = None
    dry_run: bool = False
    inventory: TableReference | TableChanges | SqlText | None = None


@dataclass(frozen=True)
class Restore(Statement):
    """RESTORE to the version or the time in the reference to the table."""


@dataclass(frozen=True)
class Convert(Statement):
    """``partition_schema``: columns and types as text. The target is the directory, as ``parquet.`/data```."""

    partition_schema: str | None
    statistics: bool


@dataclass(frozen=True)
class Generate(Statement):
    mode: str


@dataclass(frozen=True)
class CacheTable(Statement):
    """CACHE TABLE without a query, or UNCACHE TABLE. ``level``: as written in the options."""

    keeps: bool
    lazy: bool = False
    level: str | None = None


@dataclass(frozen=True)
class Refresh(Statement):
    """REFRESH TABLE."""


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN of a command. ``verb``: its first word. ``command``: its text."""

    verb: str
    command: str


@dataclass(frozen=True)
class DescribeHistory(Statement):
    limit: int | None


@dataclass(frozen=True)
class DescribeDetail(Statement):
    pass


@dataclass(frozen=True)
class Describe(Statement):
    """``column``: the path of the requested column. ``extended``: EXTENDED and FORMATTED."""

    column: tuple[str, ...] | None
    extended: bool
    as_json: bool = False


@dataclass(frozen=True)
class ShowProperties(Statement):
    key: str | None


@dataclass(frozen=True)
class ShowColumns(Statement):
    pass


@dataclass(frozen=True)
class ShowPartitions(Statement):
    """``partition``: names to literals."""

    partition: tuple[tuple[str, SqlText], ...]


@dataclass(frozen=True)
class ShowCreate(Statement):
    pass
