"""The clauses of a merge, resolved: what each does with a row, for all columns of the table as the merge leaves it.

Invariants: the names in ``set`` and ``values`` are the target's, whatever stands before them; conditions and values see
both tables where rows match, the source alone where they are inserted, the target alone where no row of the source
matches. Nothing has been read when this fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it
from pyspark.sql import types as T  # noqa: N812 - the same

from delta_pyds.errors import OptionError, UserError
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.assignment import Assigned, StoreAssignment
from delta_pyds.spark.row_changes.binding import BoundExpression, bind
from delta_pyds.spark.row_changes.merge_clauses import ClauseKind, MergeClause
from delta_pyds.table.scan.column_selection import parse_column_list
from delta_pyds.tasks.changed_rows import Action

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ACTIONS: Mapping[tuple[ClauseKind, str], Action] = {
    ("matched", "update"): Action.UPDATE,
    ("matched", "delete"): Action.DELETE,
    ("not_matched", "insert"): Action.INSERT,
    ("not_matched_by_source", "update"): Action.UPDATE_NOT_MATCHED_BY_SOURCE,
    ("not_matched_by_source", "delete"): Action.DELETE_NOT_MATCHED_BY_SOURCE,
}


# by name of a column or field what it is set to, or what fields of it are
_Tree = dict[str, "BoundExpression | _Tree"]


@dataclass(frozen=True)
class MergeTables:
    """What the user's expressions were written for.

    ``target``: a frame with the columns of the table as it is; its rows do not matter. ``source``: the user's.
    ``before``, ``after``: the table's schema without and with what the merge adds. ``made``: names of columns that are
    made for rows that lack them. ``generated``: of these, the ones that follow from others.
    """

    table: str
    target: DataFrame
    source: DataFrame
    target_alias: str | None
    before: StructType
    after: StructType
    evolves: bool
    assignment: StoreAssignment
    made: frozenset[str] = frozenset()
    generated: frozenset[str] = frozenset()
    identity: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ResolvedClause:
    """``values``: by position in the table's schema after the merge; None is left to whoever writes the row. Empty
    for a delete."""

    kind: ClauseKind
    action: Action
    condition: BoundExpression | None = None
    values: tuple[Column | None, ...] = ()


@dataclass(frozen=True)
class ResolvedMerge:
    """``old``: by position in the schema after the merge, what a row of the target had."""

    on: BoundExpression
    clauses: tuple[ResolvedClause, ...]
    old: tuple[Column, ...]

    def of_kind(self, kind: ClauseKind) -> tuple[ResolvedClause, ...]:
        return tuple(clause for clause in self.clauses if clause.kind == kind)


def assigned_paths(clauses: Sequence[MergeClause], before: StructType, alias: str | None) -> list[tuple[str, ...]]:
    """What the clauses that may add columns assign by name, without the target's ``alias`` before what it has.

    With the alias before it, a name means nothing that the target lacks: so it is in the reference.
    """
    adding = [clause for clause in clauses if clause.kind != "not_matched_by_source"]
    named = [parse_name(name) for clause in adding for name in clause.assignments or ()]
    return [parts[1:] if _is_qualified(parts, alias) and _has(before, parts[1:]) else parts for parts in named]


def _is_qualified(parts: tuple[str, ...], alias: str | None) -> bool:
    return bool(alias) and len(parts) > 1 and parts[0].lower() == str(alias).lower()


def _has(schema: StructType, path: tuple[str, ...]) -> bool:
    found = schema.find(path[0])
    if found is None or len(path) == 1:
        return found is not None
    return isinstance(found.data_type, StructType) and _has(found.data_type, path[1:])


def parse_name(text: str) -> tuple[str, ...]:
    """The parts of a column's name. Raises: OptionError for what is no name."""
    paths = parse_column_list(text, "set")
    if len(paths) != 1:
        raise OptionError(f"{text!r} is not the name of one column: a name with commas or dots goes in backticks.")
    return paths[0]


def resolve_merge(tables: MergeTables, on: Column | str, clauses: Sequence[MergeClause]) -> ResolvedMerge:
    """Raises: UserError with the reference's codes for names, types and assignments that cannot be; what Spark raises
    for expressions that it does not know."""
    return _Resolution(tables).merge(on, clauses)


@dataclass
class _Resolution:
    tables: MergeTables
    _old: list[Column] = field(default_factory=list)

    def merge(self, on: Column | str, clauses: Sequence[MergeClause]) -> ResolvedMerge:
        tables = self.tables
        both = tables.target.crossJoin(tables.source)
        condition = bind(both, [on], what="the search condition", table=tables.table, given=self._names(True, True))[0]
        condition = self._boolean(condition, "the search condition of MERGE")
        self._types = to_spark(tables.after).fields
        self._old = [self._before(i) for i in range(len(self._types))]
        found = tuple(self._clause(clause, both) for clause in clauses)
        return ResolvedMerge(condition, found, tuple(self._old))

    def _clause(self, clause: MergeClause, both: DataFrame) -> ResolvedClause:
        tables = self.tables
        scope, given = {
            "matched": (both, self._names(True, True)),
            "not_matched": (tables.source, self._names(False, True)),
            "not_matched_by_source": (tables.target, self._names(True, False)),
        }[clause.kind]
        what = f"{clause.action.upper()} clause"
        keys = list(clause.assignments or ())
        texts = [] if clause.condition is None else [clause.condition]
        texts += [self._value(clause, key) for key in keys]
        bound = bind(scope, texts, what=what, table=tables.table, given=given)
        condition = None if clause.condition is None else bound.pop(0)
        if condition is not None:
            condition = self._boolean(condition, f"the condition of the {what}")
        action = _ACTIONS[clause.kind, clause.action]
        if clause.action == "delete":
            return ResolvedClause(clause.kind, action, condition)
        if clause.is_star:
            values = self._star(clause, what)
        else:
            values = self._listed(clause, dict(zip(keys, bound, strict=True)), what)
        return ResolvedClause(clause.kind, action, condition, values)

    # --- what a row had

    def _before(self, place: int) -> Column:
        """A column of the target as one of the schema after the merge."""
        after = self._types[place]
        name = after.name
        had = self.tables.before.find(name)
        if had is None:
            return F.lit(None).cast(after.dataType)
        column = self.tables.target[quote_name(name)]
        before = to_spark(StructType((had,))).fields[0].dataType
        widening = StoreAssignment(self.tables.assignment.ansi, fill=True, table=self.tables.table)
        return widening.assign(column, before, after.dataType, name)

    # --- what it gets

    def _star(self, clause: MergeClause, what: str) -> tuple[Column | None, ...]:
        tables = self.tables
        sources: dict[str, T.StructField] = {}
        for given in tables.source.schema.fields:
            if given.name.lower() in sources:
                raise UserError(
                    f"the source of the merge into {tables.table} has more than one column {given.name}: which one * "
                    "means is not known.",
                    code="AMBIGUOUS_REFERENCE",
                )
            sources[given.name.lower()] = given
        values: list[Column | None] = []
        for place, wanted in enumerate(self._types):
            given_field = sources.get(wanted.name.lower())
            if given_field is None:
                values.append(self._missing(clause, place, what))
                continue
            self._check_identity(clause, wanted.name)
            old = self._old[place] if tables.evolves and clause.action == "update" else None
            assignment = StoreAssignment(
                tables.assignment.ansi, tables.assignment.casts_may_wrap, fill=tables.evolves, table=tables.table
            )
            column = tables.source[quote_name(given_field.name)]
            values.append(assignment.assign(column, given_field.dataType, wanted.dataType, wanted.name, old))
        return tuple(values)

    def _missing(self, clause: MergeClause, place: int, what: str) -> Column | None:
        """The value of a column that the source lacks."""
        name = self._types[place].name
        if not self.tables.evolves:
            raise self._unresolved(name, what, self._names(False, True))
        if clause.action == "insert":
            return self._not_given(place)
        return None if name in self.tables.generated else self._old[place]

    def _not_given(self, place: int) -> Column | None:
        wanted = self._types[place]
        return None if wanted.name in self.tables.made else F.lit(None).cast(wanted.dataType)

    def _listed(
        self, clause: MergeClause, values: Mapping[str, BoundExpression], what: str
    ) -> tuple[Column | None, ...]:
        tree: _Tree = {}
        shown: dict[tuple[str, ...], str] = {}
        for key, value in values.items():
            path = self._path(clause, key, what)
            self._check_conflict(path, shown, key)
            node = tree
            for part in path[:-1]:
                inner = node.setdefault(part, {})
                assert isinstance(inner, dict)  # else a conflict was found
                node = inner
            node[path[-1]] = value
        found: list[Column | None] = []
        for place, wanted in enumerate(self._types):
            given = tree.get(wanted.name)
            if given is not None:
                assigned = self._assigned(given, wanted.dataType, wanted.name)
                found.append(assigned.of(self._old[place], wanted.dataType))
            elif clause.action == "insert":
                found.append(self._not_given(place))
            else:
                found.append(None if wanted.name in self.tables.generated else self._old[place])
        return tuple(found)

    def _assigned(self, given: BoundExpression | _Tree, wanted: T.DataType, column: str) -> Assigned:
        if isinstance(given, BoundExpression):
            tables = self.tables
            assignment = StoreAssignment(
                tables.assignment.ansi, tables.assignment.casts_may_wrap, fill=tables.evolves, table=tables.table
            )
            return Assigned(assignment.assign(given.column, given.data_type, wanted, column))
        assert isinstance(wanted, T.StructType)
        types = {f.name: f.dataType for f in wanted.fields}
        return Assigned(fields={n: self._assigned(v, types[n], f"{column}.{n}") for n, v in given.items()})

    def _value(self, clause: MergeClause, key: str) -> Column | str:
        assert clause.assignments is not None
        return clause.assignments[key]

    # --- names

    def _path(self, clause: MergeClause, key: str, what: str) -> tuple[str, ...]:
        """What is assigned, in the table's own spelling."""
        tables = self.tables
        parts = parse_name(key)
        by_source = clause.kind == "not_matched_by_source"
        schema = tables.before if by_source else tables.after
        if _is_qualified(parts, tables.target_alias) and schema.find(parts[1]) is not None:
            parts = parts[1:]
        if len(parts) > 1 and clause.action == "insert" and schema.find(parts[0]) is not None:
            raise UserError(
                f"Nested field is not supported in the INSERT clause of MERGE operation (field = {key}). Give the "
                f"whole column of table {tables.table}.",
                code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                table=tables.table,
            )
        found: list[str] = []
        fields: StructType | None = schema
        for part in parts:
            if fields is None:
                raise UserError(
                    f"Cannot resolve {key} in target columns in {what}: updating nested fields is only supported for "
                    f"structs, and '{'.'.join(found)}' of table {tables.table} is none.",
                    code="DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
                    table=tables.table,
                )
            have = fields.find(part)
            if have is None:
                raise self._unresolved(key, what, self._names(by_source or not tables.evolves, tables.evolves))
            found.append(have.name)
            fields = have.data_type if isinstance(have.data_type, StructType) else None
        self._check_identity(clause, found[0])
        return tuple(found)

    def _check_identity(self, clause: MergeClause, name: str) -> None:
        if clause.action == "update" and name in self.tables.identity:
            raise UserError(
                f"the column {name} of table {self.tables.table} is an identity column, whose values are given once: "
                "it cannot be updated.",
                code="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                table=self.tables.table,
                column=name,
            )

    def _check_conflict(self, path: tuple[str, ...], shown: dict[tuple[str, ...], str], key: str) -> None:
        for other, text in shown.items():
            if path[: len(other)] == other or other[: len(path)] == path:
                raise UserError(
                    f"There is a conflict from these SET columns: [{text}, {key}]. Assign each column of table "
                    f"{self.tables.table} once.",
                    code="DELTA_CONFLICT_SET_COLUMN",
                    table=self.tables.table,
                )
        shown[path] = key

    def _names(self, target: bool, source: bool) -> list[str]:
        """The columns that expressions may use, for messages."""
        tables = self.tables
        prefix = f"{tables.target_alias}." if tables.target_alias else ""
        names = [prefix + name for name in tables.before.names] if target else []
        return names + (list(tables.source.columns) if source else [])

    def _unresolved(self, name: str, what: str, given: Sequence[str]) -> UserError:
        return UserError(
            f"Cannot resolve {name} in {what} given columns {', '.join(given)}. Nothing was changed in "
            f"{self.tables.table}.",
            code="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            table=self.tables.table,
            name=name,
        )

    def _boolean(self, bound: BoundExpression, what: str) -> BoundExpression:
        if isinstance(bound.data_type, T.NullType):
            return replace(bound, column=bound.column.cast("boolean"), data_type=T.BooleanType())
        if not isinstance(bound.data_type, T.BooleanType):
            raise UserError(
                f"{what} into {self.tables.table} is of type {bound.data_type.simpleString().upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
                table=self.tables.table,
            )
        return bound
