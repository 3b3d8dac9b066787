"""The texts of a resolved merge as bound expressions, or a refusal: then Spark must compute them.

Invariant: a bound expression has on every row the value that Spark gives it. A text with a function, a subquery or a
type that our evaluator does not support exactly is refused by an ExpressionError.

Protocol: "Generated Columns", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MadeColumns, ResolvedClause, ResolvedCommand
from delta_pyds.errors import ExpressionError
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
from delta_pyds.tasks.merge import SOURCE, TARGET, Clause, JoinCondition, JoinKey, MergeRules


def bind_merge(command: ResolvedCommand[str], source: StructType, options: CommandOptions) -> MergeRules:
    """Bind all texts of a merge: the ``rules`` of a command. ``source``: the columns of its source.

    Raises: ExpressionError and ColumnNotFoundError for expressions that only Spark can evaluate.
    """
    _refuse_equal_names(source)
    binder = _MergeBinder(command, source, options)
    assert command.condition is not None
    on = binder.join_condition(command.condition)
    clauses = [binder.clause(clause) for clause in command.clauses]
    return MergeRules(
        on,
        tuple(clause for clause in clauses if clause.kind == "matched"),
        tuple(clause for clause in clauses if clause.kind == "not_matched"),
        tuple(clause for clause in clauses if clause.kind == "not_matched_by_source"),
        one_match=command.one_match,
    )


def bind_join_condition(
    command: ResolvedCommand[Any], text: str, source: StructType, options: CommandOptions
) -> JoinCondition:
    """Bind the condition of a merge that Spark evaluates, to skip files by it.

    ``text``: the condition; it qualifies columns by the aliases of ``command``.
    Raises: as ``bind_merge``; ExpressionError for a condition that depends on the time: Spark's time differs.
    """
    on = _MergeBinder(command, source, options).join_condition(text)
    if on.asks_for_time:
        raise ExpressionError(f"the condition {text} depends on the time.", construct="MERGE ON")
    return on


class _MergeBinder:
    def __init__(self, command: ResolvedCommand[Any], source: StructType, options: CommandOptions) -> None:
        self._context = SessionContext(time_zone=options.time_zone, ansi=options.ansi, now_micros=options.now_micros)
        # stored values are cast by ANSI rules in every mode of the session, if its store assignment policy is ANSI
        self._storing = SessionContext(time_zone=options.time_zone, ansi=True, now_micros=options.now_micros)
        # expressions see the schema before the merge
        self._target, self._source = command.snapshot.schema, source
        self._made = MadeColumns.of(command.snapshot.configuration)
        target_side = Side(TARGET, self._target, command.target_alias)
        source_side = Side(SOURCE, source, command.source_alias)
        self._sides = {
            "matched": (target_side, source_side),
            "not_matched": (source_side,),
            "not_matched_by_source": (target_side,),
        }

    # --- the matching rows

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
        target, source, both = (tuple(alone[side]) for side in (TARGET, SOURCE, ""))
        return JoinCondition(tuple(keys), target, source, both, self._context.clock_read)

    def _condition(self, text: str, kind: str) -> Expr:
        expr = self._bound(text, kind)
        require_boolean(expr)
        return NULL if isinstance(expr, Literal) and expr.value is None else expr

    def _bound(self, text: str, kind: str) -> Expr:
        expr = SidedBinder(self._sides[kind], self._context).bind(read_expression(text))
        require_moderate_depth(expr)
        return expr

    # --- their changes

    def clause(self, clause: ResolvedClause[str]) -> Clause[Expr]:
        condition = None if clause.condition is None else self._condition(clause.condition, clause.kind)
        if clause.deletes:
            return Clause(clause.action, condition)
        given = self._given(clause)
        values: dict[str, Expr | None] = dict(given)
        for field in self._target:
            if field.name not in values and field.name not in self._made.generated:
                values[field.name] = _column(field) if clause.updates else self._absent(field)
        for field in self._target:
            if field.name not in values:
                values[field.name] = self._generated(field, values, given, clause)
        for value in values.values():
            if value is not None:
                require_moderate_depth(value)
        return Clause(clause.action, condition, tuple(values[field.name] for field in self._target))

    def _given(self, clause: ResolvedClause[str]) -> dict[str, Expr]:
        """The values of the columns that the clause assigns."""
        found: dict[str, Expr] = {}
        for field, name in zip(self._target, clause.star or (), strict=False):
            if name is not None:
                column = Column((SOURCE, name), _field(self._source, name).data_type)
                found[field.name] = self._stored(column, field)
        for one in clause.assignments:
            if len(one.path) > 1:
                raise ExpressionError(
                    f"an assignment to '{'.'.join(one.path)}', a field inside a column, is left to Spark.",
                    construct="MERGE SET",
                )
            field = _field(self._target, one.path[0])
            found[field.name] = self._stored(self._bound(one.value, clause.kind), field)
        for field in self._target:
            if IDENTITY_START in field.metadata and field.name in found:
                raise ExpressionError(
                    f"'{field.name}' is an identity column, but a clause assigns it.", construct="IDENTITY"
                )
        return found

    def _stored(self, expr: Expr, field: StructField) -> Expr:
        """The value, cast to the column's type by ANSI rules as in the reference; Spark assigns to nested fields."""
        source, wanted = type_of(expr), field.data_type
        if nullable_throughout(source) == nullable_throughout(wanted):
            return expr
        if isinstance(expr, Literal) and expr.value is None:
            return Literal(None, wanted)
        return self._storing.store(expr, wanted, field.name)

    # --- computed columns

    def _absent(self, field: StructField) -> Expr | None:
        """The value of an inserted row for a column that the clause does not name."""
        if field.name in self._made.identity:
            return None
        if field.name not in self._made.default:
            return Literal(None, field.data_type)
        text = str(field.metadata[CURRENT_DEFAULT])
        return self._stored(SidedBinder((), self._context).bind(read_expression(text)), field)

    def _generated(
        self,
        field: StructField,
        values: Mapping[str, Expr | None],
        given: Mapping[str, Expr],
        clause: ResolvedClause[str],
    ) -> Expr | None:
        """A generated column over the clause's new values; unchanged if no column that it depends on changes."""
        own = Side("", self._target)
        text = str(field.metadata[GENERATION_EXPRESSION])
        expr = SidedBinder((own,), self._context).bind(read_expression(text))
        if clause.updates and not any(path[1] in given for path in references(expr)):
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
    """The conjunct as a key, if it is an equality between both sides."""
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


def _field(schema: StructType, name: str) -> StructField:
    found = schema.find(name)
    assert found is not None  # names are resolved
    return found


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
