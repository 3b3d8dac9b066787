"""Resolves the names of a command once, before an engine is chosen.

    command = resolve_delete(snapshot, "id > 3")
    command = resolve_update(snapshot, "id > 3", {"v": "v + 1"})
    command = resolve_merge(snapshot, "t.id = s.id", clauses, source=("id", "v"), target_alias="t", source_alias="s")

Invariants: names that a command assigns become the target's, in its own spelling, whatever qualifies them. No column or
field is set twice in a clause. Of each kind of clause only the last one may lack a condition, because it takes all rows
that reach it. A command that fails here has read nothing.

Protocol: "Change Metadata", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from delta_pyds.commands.row_changes.plan import check_may_change
from delta_pyds.commands.row_changes.resolved import (
    Assignment,
    ClauseAction,
    E,
    MadeColumns,
    MergeClause,
    Path,
    ResolvedClause,
    ResolvedCommand,
    TableAfter,
)
from delta_pyds.errors import ColumnNotFoundError, DeltaError, OptionError, UserError
from delta_pyds.protocol.schema import DataType, StructType
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.merge_evolution import merged_schema
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_evolution import evolve_metadata
from delta_pyds.table.scan.column_selection import parse_column_list
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import condition_for_the_log
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import ClauseKind

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


def resolve_delete(
    snapshot: Snapshot, condition: E | None, *, alias: str | None = None, shown: Callable[[E], str] = str
) -> ResolvedCommand[E]:
    """Resolve a delete. ``alias``, ``shown``: as for ``resolve_update``. Raises: as ``check_may_change``."""
    check_may_change(snapshot, "DELETE")
    clause: ResolvedClause[E] = ResolvedClause("matched", Action.DELETE)
    parameters = {"predicate": [condition_for_the_log("true" if condition is None else shown(condition))]}
    after = TableAfter(snapshot.configuration)
    return ResolvedCommand("DELETE", snapshot, after, condition, (clause,), alias, parameters=parameters)


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
        column that is not a struct, for a column that is set twice (DELTA_CONFLICT_SET_COLUMN), and for an identity
        column;
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
        f"the update sets '{name}', but the table {snapshot.table_root} has no such column: it has "
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

    ``source``: names of the source's columns. ``evolved_by``: those columns, if the merge may add them to the table;
    None if the table's schema stays.

    Raises: as ``check_may_change`` and ``merged_schema``; UserError with the reference's codes for clauses and
        invalid names; OptionError for a name that cannot be parsed.
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
    """Refuse an invalid list of clauses.

    Raises: UserError with DELTA_MERGE_MISSING_WHEN for an empty list, DELTA_NON_LAST_..._CLAUSE_OMIT_CONDITION for a
        clause without a condition before another one of its kind.
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
    # as in the reference, a name that the target's alias qualifies adds no column to the target
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
        """Refuse a column that is set twice. ``paths``: each path with its text in messages."""
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
