"""A command with its names resolved: made once, before an engine is chosen, and taken by both engines.

    command = resolve_merge(snapshot, "t.id = s.id", clauses, source=("id", "v"), target_alias="t", source_alias="s")
    command = resolve_update(snapshot, "id > 3", {"v": "v + 1"})

Invariants: the names in ``set`` and ``values`` are the target's, in its own spelling, whatever qualifies them. No
column or field is set twice in a clause. Of each kind only the last clause may lack a condition, for it takes all rows
that reach it. Nothing has been read when this fails.

Expressions stay as the user gave them, SQL text or a Column of Spark: Spark's analyzer resolves those. Where our
evaluator supports all of them, ``rules`` has them bound.

Protocol: "Change Metadata", "Generated Columns", "Default Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from delta_pyds.commands.row_changes.plan import CommandKind, check_may_change
from delta_pyds.errors import ColumnNotFoundError, DeltaError, OptionError, UserError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    DataType,
    StructType,
)
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.merge_evolution import merged_schema
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_evolution import evolve_metadata
from delta_pyds.table.scan.column_selection import parse_column_list
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import condition_for_the_log
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import ClauseKind, MergeRules

# an expression as the user gave it: SQL text, or a Column of Spark
E = TypeVar("E")
F = TypeVar("F")
ClauseAction = Literal["update", "delete", "insert"]
Path = tuple[str, ...]

_ACTIONS: Mapping[tuple[ClauseKind, ClauseAction], Action] = {
    ("matched", "update"): Action.UPDATE,
    ("matched", "delete"): Action.DELETE,
    ("not_matched", "insert"): Action.INSERT,
    ("not_matched_by_source", "update"): Action.UPDATE_NOT_MATCHED_BY_SOURCE,
    ("not_matched_by_source", "delete"): Action.DELETE_NOT_MATCHED_BY_SOURCE,
}
_WORDS: Mapping[ClauseKind, str] = {
    "matched": "MATCHED",
    "not_matched": "NOT MATCHED",
    "not_matched_by_source": "NOT MATCHED BY SOURCE",
}


@dataclass(frozen=True)
class MergeClause(Generic[E]):
    """A clause as the user gave it: the change to the rows of one kind that satisfy a condition.

    ``condition``: None takes every row of the kind. ``assignments``: by (nested) column name of the table, the new
    value; None is ``*``, all columns. A delete has none.
    """

    kind: ClauseKind
    action: ClauseAction
    condition: E | None = None
    assignments: Mapping[str, E] | None = None

    @property
    def is_star(self) -> bool:
        """Whether all columns are assigned from the source's columns of the same names."""
        return self.action != "delete" and self.assignments is None


@dataclass(frozen=True)
class Assignment(Generic[E]):
    """``path``: names from the top, in the table's spelling. ``data_type``: of the column or field that is set."""

    path: Path
    data_type: DataType
    value: E


@dataclass(frozen=True)
class ResolvedClause(Generic[E]):
    """A clause whose names are the table's.

    ``star``: for ``*``, by position in the schema after the command, the source's column; None where it has none.
    """

    kind: ClauseKind
    action: Action
    condition: E | None = None
    assignments: tuple[Assignment[E], ...] = ()
    star: tuple[str | None, ...] | None = None

    @property
    def updates(self) -> bool:
        return self.action in (Action.UPDATE, Action.UPDATE_NOT_MATCHED_BY_SOURCE)

    @property
    def deletes(self) -> bool:
        return self.action in (Action.DELETE, Action.DELETE_NOT_MATCHED_BY_SOURCE)

    @property
    def title(self) -> str:
        """For messages."""
        return f"{'UPDATE' if self.updates else 'DELETE' if self.deletes else 'INSERT'} clause"

    def expressions(self) -> Iterator[E]:
        if self.condition is not None:
            yield self.condition
        yield from (one.value for one in self.assignments)

    def with_expressions(self, change: Callable[[E], F]) -> ResolvedClause[F]:
        condition = None if self.condition is None else change(self.condition)
        values = tuple(Assignment(one.path, one.data_type, change(one.value)) for one in self.assignments)
        return ResolvedClause(self.kind, self.action, condition, values, self.star)


@dataclass(frozen=True)
class TableAfter:
    """The table as the command leaves it. ``metadata``, ``protocol``: what the commit changes of it, else None."""

    configuration: TableConfiguration
    metadata: Metadata | None = None
    protocol: Protocol | None = None


@dataclass(frozen=True)
class ResolvedCommand(Generic[E]):
    """``condition``: which rows of a merge match; else which rows change, None for all.

    ``source``: the columns of a merge's source; None for types that only Spark has. ``parameters``:
    ``commitInfo.operationParameters``. ``rules``: the expressions of a merge, bound for our evaluator; None where Spark
    has to evaluate them, and ``refusal`` says why.
    """

    kind: CommandKind
    snapshot: Snapshot
    after: TableAfter
    condition: E | None
    clauses: tuple[ResolvedClause[E], ...]
    target_alias: str | None = None
    source_alias: str | None = None
    evolves: bool = False
    source: StructType | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rules: MergeRules | None = None
    refusal: str = ""

    @property
    def schema(self) -> StructType:
        return self.after.configuration.schema

    @property
    def one_match(self) -> bool:
        """Whether several rows of the source on one row of the table are an error.

        They are not where matched rows stay as they are, and where all matched rows are deleted. Reference: MERGE.
        """
        if all(clause.kind == "not_matched" for clause in self.clauses):
            return False
        matched = [clause for clause in self.clauses if clause.kind == "matched"]
        return not (len(matched) == 1 and matched[0].deletes and matched[0].condition is None)

    def expressions(self) -> Iterator[E]:
        """All conditions and values."""
        if self.condition is not None:
            yield self.condition
        for clause in self.clauses:
            yield from clause.expressions()

    def with_expressions(self, change: Callable[[E], F]) -> ResolvedCommand[F]:
        """The same command with each condition and value changed."""
        command: Any = self
        return replace(
            command,
            condition=None if self.condition is None else change(self.condition),
            clauses=tuple(clause.with_expressions(change) for clause in self.clauses),
        )


@dataclass(frozen=True)
class MadeColumns:
    """Names of columns whose values are made for rows that lack them."""

    default: frozenset[str]
    generated: frozenset[str]
    identity: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.default | self.generated | self.identity

    @staticmethod
    def of(configuration: TableConfiguration) -> MadeColumns:
        def names(key: str, feature: str) -> frozenset[str]:
            if not configuration.supports(feature):
                return frozenset()
            return frozenset(f.name for f in configuration.schema if key in f.metadata)

        return MadeColumns(
            names(CURRENT_DEFAULT, Feature.ALLOW_COLUMN_DEFAULTS),
            names(GENERATION_EXPRESSION, Feature.GENERATED_COLUMNS),
            names(IDENTITY_START, Feature.IDENTITY_COLUMNS),
        )


def resolve_update(
    snapshot: Snapshot,
    condition: E | None,
    assignments: Mapping[str, E],
    *,
    alias: str | None = None,
    shown: Callable[[E], str] = str,
) -> ResolvedCommand[E]:
    """Resolve an update.

    ``alias``: a qualifier for the table's columns. ``shown``: an expression as history shows it.

    Raises: as ``check_may_change``; ColumnNotFoundError for an unknown name; UserError for a field of a
        column that is not a struct, for what is set twice (DELTA_CONFLICT_SET_COLUMN) and for an identity column;
        OptionError for an invalid name.
    """
    check_may_change(snapshot, "UPDATE")
    names = _TargetNames(snapshot.configuration, alias)
    found = []
    for name, value in assignments.items():
        path, data_type = names.resolve(name, snapshot.schema, partial(_not_found, snapshot, name))
        names.check_not_identity(path[0])
        found.append(Assignment(path, data_type, value))
    names.check_set_once([(one.path, ".".join(one.path)) for one in found])
    clause = ResolvedClause("matched", Action.UPDATE, None, tuple(found))
    parameters = {"predicate": [] if condition is None else [condition_for_the_log(shown(condition))]}
    after = TableAfter(snapshot.configuration)
    return ResolvedCommand("UPDATE", snapshot, after, condition, (clause,), alias, parameters=parameters)


def _not_found(snapshot: Snapshot, name: str) -> DeltaError:
    return ColumnNotFoundError(
        f"the update sets '{name}', and the table {snapshot.table_root} has no such column: it has "
        f"{', '.join(snapshot.schema.names)}.",
        code="UNRESOLVED_COLUMN.WITH_SUGGESTION",
        column=name,
    )


def resolve_merge(
    snapshot: Snapshot,
    condition: E,
    clauses: Sequence[MergeClause[E]],
    *,
    source: Sequence[str],
    target_alias: str | None = None,
    source_alias: str | None = None,
    evolved_by: StructType | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> ResolvedCommand[E]:
    """Resolve a merge.

    ``source``: names of the source's columns. ``evolved_by``: those columns, where the merge may add them to the table;
    None where the table's schema stays.

    Raises: as ``check_may_change`` and ``merged_schema``; UserError with the reference's codes for clauses and
        names that cannot be; OptionError for an invalid name.
    """
    _check_clauses(clauses)
    check_may_change(snapshot, "MERGE" if all(c.kind == "not_matched" for c in clauses) else "UPDATE")
    after = TableAfter(snapshot.configuration)
    if evolved_by is not None:
        after = _evolved(snapshot, evolved_by, clauses, target_alias)
    names = _MergeNames(snapshot, after.configuration, source, target_alias, evolves=evolved_by is not None)
    return ResolvedCommand(
        "MERGE",
        snapshot,
        after,
        condition,
        tuple(names.clause(clause) for clause in clauses),
        target_alias,
        source_alias,
        evolves=evolved_by is not None,
        parameters=parameters or {},
    )


def _check_clauses(clauses: Sequence[MergeClause[E]]) -> None:
    """Refuse an invalid list.

    Raises: UserError with DELTA_MERGE_MISSING_WHEN for none, DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION and its like
        for a clause without a condition before another one of its kind.
    """
    if not clauses:
        raise UserError(
            "a merge needs at least one clause: say with whenMatchedUpdate, whenNotMatchedInsert or another one which "
            "rows change, and how.",
            code="DELTA_MERGE_MISSING_WHEN",
        )
    for kind, words in _WORDS.items():
        of_kind = [clause for clause in clauses if clause.kind == kind]
        for clause in of_kind:
            if (kind, clause.action) not in _ACTIONS or (kind == "not_matched_by_source" and clause.is_star):
                raise UserError(f"WHEN {words} {clause.action.upper()} is an invalid clause of a merge.")
        if any(clause.condition is None for clause in of_kind[:-1]):
            raise UserError(
                f"of the WHEN {words} clauses of a merge only the last one may lack a condition: those after it "
                "would never see a row. Give the others a condition.",
                code=f"DELTA_NON_LAST_{words.replace(' ', '_')}_CLAUSE_OMIT_CONDITION",
            )


def _evolved(
    snapshot: Snapshot, source: StructType, clauses: Sequence[MergeClause[E]], alias: str | None
) -> TableAfter:
    configuration = snapshot.configuration
    adding = [clause for clause in clauses if clause.kind != "not_matched_by_source"]
    named = [_parsed(name) for clause in adding for name in clause.assignments or ()]
    # with the alias before it, a name means nothing that the target lacks: so it is in the reference
    assigned = [p[1:] if _is_qualified(p, alias) and _has(configuration.schema, p[1:]) else p for p in named]
    star = any(clause.is_star for clause in adding)
    schema = merged_schema(configuration, source, star=star, assigned=assigned)
    if schema == configuration.schema:
        return TableAfter(configuration)
    metadata = evolve_metadata(configuration, schema)
    protocol = upgrade_protocol(snapshot.protocol, metadata, domains=tuple(snapshot.domain_metadata.values()))
    changed = load_configuration(
        snapshot.table_root, snapshot.version, protocol, metadata, by_catalog=configuration.by_catalog
    )
    return TableAfter(changed, metadata, None if protocol == snapshot.protocol else protocol)


def _has(schema: StructType, path: Path) -> bool:
    found = schema.find(path[0])
    if found is None or len(path) == 1:
        return found is not None
    return isinstance(found.data_type, StructType) and _has(found.data_type, path[1:])


class _TargetNames:
    """Names of the target's columns, as a user writes them."""

    def __init__(self, configuration: TableConfiguration, alias: str | None) -> None:
        self._table = configuration.table_root
        self._alias = alias
        self._identity = MadeColumns.of(configuration).identity

    def parts(self, name: str, schema: StructType) -> Path:
        """The parts of a name without the alias before a column. Raises: OptionError."""
        parts = _parsed(name)
        return parts[1:] if _is_qualified(parts, self._alias) and schema.find(parts[1]) is not None else parts

    def resolve(self, name: str, schema: StructType, not_found: Callable[[], DeltaError]) -> tuple[Path, DataType]:
        """The column or field of that name, in the table's spelling, and its type."""
        path: list[str] = []
        inside: DataType = schema
        for part in self.parts(name, schema):
            if not isinstance(inside, StructType):
                raise UserError(
                    f"cannot set '{name}': only structs have fields that can be updated, and the column "
                    f"'{'.'.join(path)}' of table {self._table} is of another type. Set the whole column.",
                    code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
                    table=self._table,
                    column=".".join(path),
                )
            found = inside.find(part)
            if found is None:
                raise not_found()
            path.append(found.name)
            inside = found.data_type
        return tuple(path), inside

    def check_not_identity(self, name: str) -> None:
        if name in self._identity:
            raise UserError(
                f"the column '{name}' of table {self._table} is an identity column, whose values cannot be updated.",
                code="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                table=self._table,
                column=name,
            )

    def check_set_once(self, paths: Sequence[tuple[Path, str]]) -> None:
        """``paths``: each with the text that messages show."""
        for n, (path, shown) in enumerate(paths):
            for other, text in paths[:n]:
                shorter = min(len(path), len(other))
                if path[:shorter] == other[:shorter]:
                    raise UserError(
                        f"There is a conflict from these SET columns: [{text}, {shown}]. Set each column of table "
                        f"{self._table} once.",
                        code="DELTA_CONFLICT_SET_COLUMN",
                        table=self._table,
                    )


class _MergeNames:
    """Names in the clauses of one merge."""

    def __init__(
        self,
        snapshot: Snapshot,
        after: TableConfiguration,
        source: Sequence[str],
        alias: str | None,
        *,
        evolves: bool,
    ) -> None:
        self._table = snapshot.table_root
        self._before, self._after = snapshot.schema, after.schema
        self._source = source
        self._alias = alias
        self._evolves = evolves
        self._names = _TargetNames(after, alias)

    def clause(self, given: MergeClause[E]) -> ResolvedClause[E]:
        clause: ResolvedClause[E] = ResolvedClause(given.kind, _ACTIONS[given.kind, given.action], given.condition)
        if given.is_star:
            return replace(clause, star=self._star(clause))
        found = [(self._assigned(clause, name, value), name) for name, value in (given.assignments or {}).items()]
        self._names.check_set_once([(one.path, name) for one, name in found])
        return replace(clause, assignments=tuple(one for one, _ in found))

    def _star(self, clause: ResolvedClause[E]) -> tuple[str | None, ...]:
        columns: dict[str, str] = {}
        for name in self._source:
            if name.lower() in columns:
                raise UserError(
                    f"the source of the merge into {self._table} has more than one column {name}: which one * means "
                    "is ambiguous.",
                    code="AMBIGUOUS_REFERENCE",
                )
            columns[name.lower()] = name
        found: list[str | None] = []
        for wanted in self._after:
            column = columns.get(wanted.name.lower())
            if column is None and not self._evolves:
                raise self._unresolved(wanted.name, clause, target=False, source=True)
            if column is not None and clause.updates:
                self._names.check_not_identity(wanted.name)
            found.append(column)
        return tuple(found)

    def _assigned(self, clause: ResolvedClause[E], name: str, value: E) -> Assignment[E]:
        by_source = clause.kind == "not_matched_by_source"
        schema = self._before if by_source else self._after
        parts = self._names.parts(name, schema)
        if len(parts) > 1 and clause.action == Action.INSERT and schema.find(parts[0]) is not None:
            raise UserError(
                f"Nested field is not supported in the INSERT clause of MERGE operation (field = {name}). Give the "
                f"whole column of table {self._table}.",
                code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                table=self._table,
            )
        target, source = by_source or not self._evolves, self._evolves
        path, data_type = self._names.resolve(
            name, schema, lambda: self._unresolved(name, clause, target=target, source=source)
        )
        if clause.updates:
            self._names.check_not_identity(path[0])
        return Assignment(path, data_type, value)

    def _unresolved(self, name: str, clause: ResolvedClause[E], *, target: bool, source: bool) -> UserError:
        given = columns_in_messages(
            self._before if target else StructType(()), self._alias, self._source if source else ()
        )
        return UserError(
            f"Cannot resolve {name} in {clause.title} given columns {', '.join(given)}. Nothing was changed in "
            f"{self._table}.",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            table=self._table,
            name=name,
        )


def columns_in_messages(target: StructType, alias: str | None, source: Sequence[str]) -> list[str]:
    """The columns that an expression of a merge may use, for messages."""
    prefix = f"{alias}." if alias else ""
    return [*(prefix + name for name in target.names), *source]


def _parsed(text: str) -> Path:
    """The parts of a column's name. Raises: OptionError for an invalid name."""
    try:
        paths = parse_column_list(text, "set")
    except OptionError:
        paths = ()
    if len(paths) != 1:
        raise OptionError(
            f"{text!r} is not the name of one column: a name with dots, commas or the like goes in backticks.",
            option="set",
        )
    return paths[0]


def _is_qualified(parts: Path, alias: str | None) -> bool:
    return bool(alias) and len(parts) > 1 and parts[0].lower() == str(alias).lower()
