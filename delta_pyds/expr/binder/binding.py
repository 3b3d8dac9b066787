"""Syntax to bound trees of general expressions: names resolved, types determined, casts explicit.

The meaning is that of a Spark session with or without ANSI rules. A construct
that cannot be evaluated exactly as Spark does is refused here by its name,
before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.binder.build import bind_column
from delta_pyds.expr.coercion import branch_type, comparison_type, require_operands
from delta_pyds.expr.functions.arithmetic import NUMERIC_FUNCTIONS, OPERATORS
from delta_pyds.expr.functions.containers import CONTAINER_FUNCTIONS
from delta_pyds.expr.functions.dates import DATE_FUNCTIONS, add_interval
from delta_pyds.expr.functions.session_context import Rule, SessionContext, expect_count
from delta_pyds.expr.functions.text import TEXT_FUNCTIONS
from delta_pyds.expr.logic import fold_equalities, refuse_collation, require_boolean
from delta_pyds.expr.nodes import (
    FALSE,
    NULL,
    TRUE,
    And,
    Case,
    Coalesce,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    LiteralValue,
    Not,
    Or,
    may_fail,
    type_of,
)
from delta_pyds.expr.parser.syntax import (
    Apply,
    CaseOf,
    CastTo,
    Constant,
    ConstantList,
    Interval,
    Name,
    Syntax,
    TypedText,
)
from delta_pyds.expr.types import is_integral
from delta_pyds.protocol.schema import BOOLEAN, INTEGER, STRING, VOID, StructType, display

# binding a level takes four of Python's thousand frames; pickling and evaluating the tree need frames too
_MAX_DEPTH = 180
_ZERO = Literal(0, INTEGER)
# by their names in lower case
_FUNCTIONS: dict[str, Rule] = {**NUMERIC_FUNCTIONS, **TEXT_FUNCTIONS, **DATE_FUNCTIONS, **CONTAINER_FUNCTIONS}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
# operators that are also functions
_FUNCTION_OF = {"LIKE": "like", "ILIKE": "ilike", "RLIKE": "rlike"}
# how many arguments the functions take that are bound here
_COUNTS = {
    "isnull": 1, "isnotnull": 1, "if": 3, "nvl": 2, "ifnull": 2, "nvl2": 3, "nullif": 2, "equal_null": 2,
    "nullifzero": 1, "zeroifnull": 1,
}  # fmt: skip
_SIGNS = {"-": "negative", "+": "positive"}


class Binder:
    """Binds syntax to the columns of a schema within a session."""

    def __init__(self, schema: StructType, context: SessionContext) -> None:
        self.schema = schema
        self.context = context
        self._depth = 0

    def bind(self, syntax: Syntax) -> Expr:
        if isinstance(syntax, (Name, Constant)):
            return syntax.literal if isinstance(syntax, Constant) else self._name(syntax)
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ExpressionError(
                f"nesting deeper than {_MAX_DEPTH} levels is not supported, and this depth is reached at position "
                f"{getattr(syntax, 'position', 0)} of the expression. Chains of AND, OR and || may be of any length; "
                "split a chain of other operators with parentheses, or compute a part in a separate column.",
                construct="nesting",
            )
        expr = self._bind(syntax)
        self._depth -= 1
        return expr

    def _bind(self, syntax: Syntax) -> Expr:
        if isinstance(syntax, TypedText):
            return self._typed_text(syntax)
        if isinstance(syntax, CastTo):
            return self.context.cast(self.bind(syntax.child), syntax.data_type, trying=syntax.trying)
        if isinstance(syntax, CaseOf):
            return self._case(syntax)
        if isinstance(syntax, Interval):
            raise ExpressionError(
                f"the interval {syntax.text} is supported only if it is added to or subtracted from a date or a "
                "timestamp.",
                construct="INTERVAL",
            )
        assert isinstance(syntax, Apply)
        return self._apply(syntax)

    def _name(self, syntax: Name) -> Expr:
        bare = len(syntax.path) == 1 and self.schema.find(syntax.path[0]) is None
        if bare and syntax.path[0].lower() in ("current_date", "current_timestamp", "localtimestamp"):
            return _FUNCTIONS[syntax.path[0].lower()](self.context, syntax.path[0].lower(), ())
        if bare and syntax.path[0].lower() in ("current_user", "user", "session_user", "current_time"):
            raise _unknown(syntax.path[0].lower())
        return bind_column(syntax.path, self.schema)

    def _typed_text(self, syntax: TypedText) -> Expr:
        found = self.context.cast(Literal(syntax.text, STRING), syntax.data_type)
        if not isinstance(found, Literal):
            raise ExpressionError(
                f"the text '{syntax.text}' is not a supported form of {display(syntax.data_type).upper()}.",
                code="INVALID_TYPED_LITERAL",
            )
        return found

    def _case(self, syntax: CaseOf) -> Expr:
        tests = [self._boolean(self.bind(test)) for test, _ in syntax.branches]
        values = [self.bind(value) for _, value in syntax.branches]
        otherwise = Literal(None, type_of(values[0])) if syntax.otherwise is None else self.bind(syntax.otherwise)
        return self._branches(tests, values, otherwise, "CASE")

    def _branches(self, tests: list[Expr], values: list[Expr], otherwise: Expr, what: str) -> Expr:
        choices = values if isinstance(otherwise, Literal) and otherwise.value is None else [*values, otherwise]
        target = branch_type(choices, ansi=self.context.ansi, what=what)
        cast = [self.context.cast(value, target) for value in values]
        if isinstance(otherwise, Literal) and otherwise.value is None:
            otherwise = Literal(None, target)
        return Case(tuple(zip(tests, cast, strict=True)), self.context.cast(otherwise, target), target)

    def _boolean(self, expr: Expr) -> Expr:
        require_boolean(expr)
        return NULL if isinstance(expr, Literal) and expr.value is None else expr

    # functions and operators

    def _apply(self, syntax: Apply) -> Expr:
        name = syntax.function
        if name in ("+", "-") and any(isinstance(arg, Interval) for arg in syntax.args):
            return self._interval(name, syntax.args)
        if name == "IN" and isinstance(syntax.args[1], ConstantList):
            return self._in_lists(
                self.bind(syntax.args[0]), [a for a in syntax.args[1:] if isinstance(a, ConstantList)]
            )
        args = tuple([self.bind(arg) for arg in syntax.args])
        if name in ("AND", "OR"):
            return self._logic(And if name == "AND" else Or, [self._boolean(arg) for arg in args])
        if name == "NOT":
            return Not(self._boolean(args[0]))
        if name in _COMPARISONS:
            return self._compare(name, *args)
        if name in ("<=>", "IS"):
            if name == "IS":
                self._boolean(args[0])
            return self._same(*args)
        if name == "BETWEEN":
            return And((self._compare(">=", args[0], args[1]), self._compare("<=", args[0], args[2])))
        name = _SIGNS.get(name, name) if len(args) == 1 else _FUNCTION_OF.get(name, name)
        if name in _COUNTS:
            expect_count(name, args, _COUNTS[name])
        bound: dict[str, Callable[..., Expr]] = {
            "IS NULL": self._is_null, "isnull": self._is_null, "isnotnull": self._is_not_null,
            "IN": self._in, "()": lambda value: value, "equal_null": self._same,
            "if": lambda test, one, other: self._branches([self._boolean(test)], [one], other, "IF"),
            "nvl2": lambda test, one, other: self._branches([self._is_not_null(test)], [one], other, "NVL2"),
            "nullif": self._nullif, "nullifzero": lambda value: self._nullif(value, _ZERO),
            "coalesce": partial(self._coalesce, "COALESCE"), "ifnull": partial(self._coalesce, "IFNULL"),
            "nvl": partial(self._coalesce, "NVL"), "zeroifnull": lambda value: self._coalesce("NVL", value, _ZERO),
        }  # fmt: skip
        if name in bound:
            return bound[name](*args)
        rule = OPERATORS.get(name) or _FUNCTIONS.get(name)
        if rule is None:
            raise _unknown(name)
        return rule(self.context, name, args)

    def _logic(self, kind: type[And] | type[Or], sides: list[Expr]) -> Expr:
        # if a part may fail, the order of the parts matters
        if len(sides) > 2 and not any(may_fail(side) for side in sides):
            sides = fold_equalities(sides, kind)
        return kind(tuple(sides)) if len(sides) > 1 else sides[0]

    def _interval(self, op: str, args: tuple[Syntax, ...]) -> Expr:
        left, right = args
        if isinstance(left, Interval):
            if op == "-" or isinstance(right, Interval):
                raise ExpressionError("arithmetic between intervals is not supported.", construct="INTERVAL")
            left, right = right, left
        assert isinstance(right, Interval)
        return add_interval(self.context, self.bind(left), right, -1 if op == "-" else 1)

    def _compare(self, op: str, left: Expr, right: Expr) -> Expr:
        _refuse_collations(left, right)
        target = comparison_type(left, right, ansi=self.context.ansi)
        if target == VOID:
            return NULL
        return Comparison(op, self.context.cast(left, target), self.context.cast(right, target))

    def _same(self, left: Expr, right: Expr) -> Expr:
        equal = self._compare("=", left, right)
        if not isinstance(equal, Comparison):
            return TRUE
        return self.context.call("<=>", (equal.left, equal.right), BOOLEAN)

    def _is_null(self, value: Expr) -> Expr:
        if isinstance(value, Literal):
            return TRUE if value.value is None else FALSE
        return IsNull(value)

    def _is_not_null(self, value: Expr) -> Expr:
        return Not(self._is_null(value))

    def _in(self, *args: Expr) -> Expr:
        _refuse_collations(*args)
        require_operands("IN", *args)
        # Spark casts all to one type first; pairs may have other types
        target = branch_type(args, ansi=self.context.ansi, what="IN")
        cast = [self.context.cast(arg, target) for arg in args]
        return self.context.call("in", cast, BOOLEAN)

    def _in_lists(self, child: Expr, lists: list[ConstantList]) -> Expr:
        """``IN`` over plain constants, possibly many."""
        _refuse_collations(child)
        require_operands("IN", child)
        samples = [Literal(many.values[0], many.data_type) for many in lists]
        target = branch_type([child, *samples], ansi=self.context.ansi, what="IN")
        values: dict[LiteralValue, None] = {}
        for many in lists:
            if many.data_type == target or (is_integral(many.data_type) and is_integral(target)):
                values.update(dict.fromkeys(many.values))
                continue
            for literal in many.literals:
                constant = self.context.cast(literal, target)
                if not isinstance(constant, Literal) or constant.value is None or constant.value != constant.value:
                    constants = [literal for each in lists for literal in each.literals]
                    return self._in(child, *constants)
                values[constant.value] = None
        return In(self.context.cast(child, target), tuple(values))

    def _coalesce(self, name: str, *args: Expr) -> Expr:
        if not args:
            expect_count(name.lower(), args, 1)
        target = branch_type(args, ansi=self.context.ansi, what=name)
        cast = tuple(self.context.cast(arg, target) for arg in args)
        return Coalesce(cast, target)

    def _nullif(self, value: Expr, other: Expr) -> Expr:
        null = Literal(None, type_of(value))
        return Case(((self._compare("=", value, other), null),), value, type_of(value))


def _refuse_collations(*args: Expr) -> None:
    for arg in args:
        refuse_collation(arg)


def _unknown(name: str) -> ExpressionError:
    return ExpressionError(
        f"the function {name} is not supported in constraints, defaults and generated columns.", construct=name
    )
