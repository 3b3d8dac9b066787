"""The texts of a merge as bound expressions, or a refusal: then Spark has to compute them.

Invariant: what is bound here means on every row what it means to Spark. A text with a function, a subquery or a type
that our evaluator does not know exactly is refused by an ExpressionError that says so.

Protocol: "Generated Columns", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from delta_pyds.errors import ColumnNotFoundError, ExpressionError
from delta_pyds.expr.binder.two_tables import Side, SidedBinder
from delta_pyds.expr.functions.session_context import SessionContext
from delta_pyds.expr.logic import require_boolean
from delta_pyds.expr.nodes import (
    NULL,
    TRUE,
    Call,
    Column,
    Comparison,
    Expr,
    Literal,
    conjuncts,
    references,
    require_moderate_depth,
    type_of,
    with_columns,
)
from delta_pyds.expr.parser.grammar import read_expression
from delta_pyds.expr.parser.syntax import Name
from delta_pyds.protocol.schema import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    DataType,
    StructField,
    StructType,
    display,
    nullable_throughout,
)
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import SOURCE, TARGET, Clause, JoinCondition, JoinKey, MergeRules

_ACTIONS = {
    ("matched", "update"): Action.UPDATE,
    ("matched", "delete"): Action.DELETE,
    ("not_matched", "insert"): Action.INSERT,
    ("not_matched_by_source", "update"): Action.UPDATE_NOT_MATCHED_BY_SOURCE,
    ("not_matched_by_source", "delete"): Action.DELETE_NOT_MATCHED_BY_SOURCE,
}


@dataclass(frozen=True)
class MergeClauseText:
    """A clause as SQL text. ``assignments``: None is ``*``, all columns; a delete has none."""

    kind: OneOf["matched", "not_matched", "not_matched_by_source"]
    action: OneOf["update", "delete", "insert"]
    condition: str | None = None
    assignments: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MergeTables:
    """The two tables of a merge, as its texts see them. ``aliases``: None where texts cannot name a table.

    ``supports``: whether the target's protocol has a feature, as ``plan_ingest`` takes it.
    """

    target: StructType
    source: StructType
    supports: Callable[[str], bool]
    target_alias: str | None = None
    source_alias: str | None = None


def bind_merge(
    condition: str,
    clauses: Sequence[MergeClauseText],
    tables: MergeTables,
    *,
    time_zone: str,
    ansi: bool,
    now_micros: int,
) -> MergeRules:
    """Bind all texts of a merge whose clauses are in order.

    Raises: ExpressionError and ColumnNotFoundError for what only Spark can evaluate, or refuse in its own words.
    """
    _refuse_equal_names(tables.source)
    binder = _MergeBinder(tables, SessionContext(time_zone=time_zone, ansi=ansi, now_micros=now_micros))
    on = binder.join_condition(condition)
    bound: dict[str, tuple[Clause, ...]] = {
        kind: tuple(binder.clause(clause) for clause in clauses if clause.kind == kind)
        for kind in ("matched", "not_matched", "not_matched_by_source")
    }
    return MergeRules(
        on,
        bound["matched"],
        bound["not_matched"],
        bound["not_matched_by_source"],
        one_match=counts_matches(clauses),
    )


def bind_join_condition(
    condition: str, tables: MergeTables, *, time_zone: str, ansi: bool, now_micros: int
) -> JoinCondition:
    """Bind the condition of a merge that Spark evaluates, for what it says of files.

    Raises: as ``bind_merge``; ExpressionError for a condition that asks for the time, which is another one for Spark.
    """
    context = SessionContext(time_zone=time_zone, ansi=ansi, now_micros=now_micros)
    on = _MergeBinder(tables, context).join_condition(condition)
    if context.clock_read:
        raise ExpressionError(f"the condition {condition} depends on the time.", construct="MERGE ON")
    return on


def counts_matches(clauses: Sequence[MergeClauseText]) -> bool:
    """Whether several rows of the source on one row of the table are an error.

    They are not where matched rows stay as they are, and where all matched rows are deleted. Reference: MERGE.
    """
    if all(clause.kind == "not_matched" for clause in clauses):
        return False
    matched = [clause for clause in clauses if clause.kind == "matched"]
    return not (len(matched) == 1 and matched[0].action == "delete" and matched[0].condition is None)


class _MergeBinder:
    def __init__(self, tables: MergeTables, context: SessionContext) -> None:
        self._tables = tables
        self._context = context
        # what is stored is cast by ANSI rules, whatever the session's mode, where its store assignment policy is ANSI
        self._storing = SessionContext(time_zone=context.zone.name, ansi=True, now_micros=context.now_micros)
        target = Side(TARGET, tables.target, tables.target_alias)
        source = Side(SOURCE, tables.source, tables.source_alias)
        self._sides = {
            "matched": (target, source),
            "not_matched": (source,),
            "not_matched_by_source": (target,),
        }

    # which rows meet

    def join_condition(self, text: str) -> JoinCondition:
        keys: list[JoinKey] = []
        alone: dict[str, list[Expr]] = {TARGET: [], SOURCE: [], "": []}
        for part in conjuncts(self._condition(text, "matched")):
            key = _key(part)
            if key is not None:
                keys.append(key)
            elif part != TRUE:
                sides = {path[0] for path in references(part)}
                alone[sides.pop() if len(sides) == 1 else ""].append(part)
        if not keys:
            raise ExpressionError(
                f"the condition {text} has no equality between a column of the table and one of the source.",
                construct="MERGE ON",
            )
        return JoinCondition(tuple(keys), *(tuple(alone[side]) for side in (TARGET, SOURCE, "")))

    def _condition(self, text: str, kind: str) -> Expr:
        expr = self._bound(text, kind)
        require_boolean(expr)
        return NULL if isinstance(expr, Literal) and expr.value is None else expr

    def _bound(self, text: str, kind: str) -> Expr:
        expr = SidedBinder(self._sides[kind], self._context).bind(read_expression(text))
        require_moderate_depth(expr)
        return expr

    # what becomes of them

    def clause(self, clause: MergeClauseText) -> Clause:
        action = _ACTIONS[clause.kind, clause.action]
        condition = None if clause.condition is None else self._condition(clause.condition, clause.kind)
        if clause.action == "delete":
            return Clause(action, condition)
        given = self._given(clause)
        values: dict[str, Expr | None] = dict(given)
        for field in self._tables.target:
            if field.name not in values and not self._generation(field):
                values[field.name] = _column(field) if clause.action == "update" else self._absent(field)
        for field in self._tables.target:
            if field.name not in values:
                values[field.name] = self._generated(field, values, given, clause)
        for value in values.values():
            if value is not None:
                require_moderate_depth(value)
        return Clause(action, condition, tuple(values[field.name] for field in self._tables.target))

    def _given(self, clause: MergeClauseText) -> dict[str, Expr]:
        target, source = self._tables.target, self._tables.source
        if clause.assignments is None:
            found: dict[str, Expr] = {}
            for field in target:
                column = source.find(field.name)
                if column is None:
                    raise ColumnNotFoundError(
                        f"the source has no column '{field.name}', which {clause.action} * takes from it.",
                        column=field.name,
                    )
                found[field.name] = self._stored(Column((SOURCE, column.name), column.data_type), field)
        else:
            found = {}
            for key, text in clause.assignments.items():
                field = self._assigned_field(key)
                if field.name in found:
                    raise ExpressionError(f"the column '{field.name}' is assigned twice.", construct="MERGE SET")
                found[field.name] = self._stored(self._bound(text, clause.kind), field)
        for field in target:
            if IDENTITY_START in field.metadata and field.name in found:
                raise ExpressionError(f"'{field.name}' is an identity column, and is assigned.", construct="IDENTITY")
        return found

    def _assigned_field(self, key: str) -> StructField:
        name = read_expression(key)
        path = name.path if isinstance(name, Name) else ()
        alias, target = self._tables.target_alias, self._tables.target
        if len(path) == 2 and alias is not None and path[0].lower() == alias.lower() and target.find(path[1]):
            path = path[1:]
        field = target.find(path[0]) if len(path) == 1 else None
        if field is None:
            raise ExpressionError(f"'{key}' is no column of the table, or a field of one.", construct="MERGE SET")
        return field

    def _stored(self, expr: Expr, field: StructField) -> Expr:
        """The value as the column's type, by ANSI rules, as the reference casts it; parts of columns are Spark's."""
        source, wanted = type_of(expr), field.data_type
        if nullable_throughout(source) == nullable_throughout(wanted):
            return expr
        if isinstance(expr, Literal) and expr.value is None:
            return Literal(None, wanted)
        return self._storing.store(expr, wanted, field.name)

    # columns that are made

    def _generation(self, field: StructField) -> str | None:
        from delta_pyds.protocol.features import Feature

        text = field.metadata.get(GENERATION_EXPRESSION)
        return str(text) if text is not None and self._tables.supports(Feature.GENERATED_COLUMNS) else None

    def _absent(self, field: StructField) -> Expr | None:
        """The value of an inserted row for a column that the clause does not name."""
        from delta_pyds.protocol.features import Feature

        if IDENTITY_START in field.metadata and self._tables.supports(Feature.IDENTITY_COLUMNS):
            return None
        default = field.metadata.get(CURRENT_DEFAULT)
        if default is None or not self._tables.supports(Feature.ALLOW_COLUMN_DEFAULTS):
            return Literal(None, field.data_type)
        expr = SidedBinder((), self._context).bind(read_expression(str(default)))
        return self._stored(expr, field)

    def _generated(
        self,
        field: StructField,
        values: Mapping[str, Expr | None],
        given: Mapping[str, Expr],
        clause: MergeClauseText,
    ) -> Expr | None:
        """A generated column over the values that the clause gives to others; as it was where none of them changes."""
        own = Side("", self._tables.target)
        expr = SidedBinder((own,), self._context).bind(read_expression(self._generation(field) or ""))
        if clause.action == "update" and not any(path[1] in given for path in references(expr)):
            return _column(field)

        def value_of(column: Column) -> Expr:
            value = values.get(column.path[1])
            if value is None:
                raise ExpressionError(f"'{field.name}' is generated from a generated or identity column.")
            for depth, name in enumerate(column.path[2:], 3):
                if isinstance(value, Column):
                    value = Column((*value.path, name), column.data_type, column.collated)
                    continue
                inner = column.data_type if depth == len(column.path) else _field_type(type_of(value), name)
                value = Call(".", (value,), inner, options=(name,))
            return value

        return self._stored(with_columns(expr, value_of), field)


def _key(part: Expr) -> JoinKey | None:
    """The conjunct as a key, where it is an equality between both sides."""
    if isinstance(part, Comparison) and part.op == "=":
        left, right, null_safe = part.left, part.right, False
    elif isinstance(part, Call) and part.function == "<=>":
        (left, right), null_safe = part.args, True
    else:
        return None
    sides = [{path[0] for path in references(side)} for side in (left, right)]
    if sides == [{TARGET}, {SOURCE}]:
        return JoinKey(left, right, null_safe)
    if sides == [{SOURCE}, {TARGET}]:
        return JoinKey(right, left, null_safe)
    return None


def _column(field: StructField) -> Column:
    return Column((TARGET, field.name), field.data_type)


def _field_type(data_type: DataType, name: str) -> DataType:
    field = data_type.find(name) if isinstance(data_type, StructType) else None
    if field is None:
        raise ExpressionError(f"there is no field '{name}' in {display(data_type)}.")
    return field.data_type


def _refuse_equal_names(source: StructType) -> None:
    seen: set[str] = set()
    for name in source.names:
        if name.lower() in seen:
            raise ExpressionError(f"the source has more than one column '{name}'.", code="AMBIGUOUS_REFERENCE")
        seen.add(name.lower())
