"""Predicates from syntax: ``expr.binder.build`` binds total expressions; others are refused by name."""

from __future__ import annotations

import re
from typing import NoReturn

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.binder.build import Builder, bind_column, remainder
from delta_pyds.expr.functions.patterns import like, text_match
from delta_pyds.expr.logic import and_, is_null, not_, or_, require_boolean
from delta_pyds.expr.nodes import NULL, Expr, Literal, require_moderate_depth, to_sql, type_of
from delta_pyds.expr.parser.grammar import PREDICATE
from delta_pyds.expr.parser.lexer import shortened
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
from delta_pyds.expr.parser.token_reader import not_supported
from delta_pyds.protocol.schema import STRING, StructType, display

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))
_TEXT_FUNCTIONS = frozenset(("startswith", "endswith", "contains"))
_BOUND = _COMPARISONS | {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "IS NULL", "<=>", "%", "()"}
# the names of operators in refusals
_REFUSED = {
    **{op: f"the operator {op}" for op in ("+", "-", "*", "/", "||")},
    "DIV": "DIV", "RLIKE": "RLIKE", "ILIKE": "ILIKE", "[]": "the operator [", ".": "a field of an expression",
}  # fmt: skip
# words that begin a construct, unless a column has the same name
_CONSTRUCTS = frozenset(("CASE", "EXISTS", "SELECT", "WITH", "INTERVAL", "EXTRACT", "TIME"))
_NAMELESS = frozenset(("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_USER", "USER", "SESSION_USER", "CURRENT_TIME"))
# the depth of a chain is checked after this many links; the stack holds the bound parts in between
_CHECKED_EVERY = 100
_WORD = re.compile(r"\w*")


class PredicateBinder:
    """Binds the syntax of ``text`` to the columns of a schema.

    Binds in the order of the text, so the error names the first problem. Chains nest to the left and may be long, so
    they are walked without recursion.
    """

    def __init__(self, text: str, schema: StructType, builder: Builder) -> None:
        self.text = text
        self.schema = schema
        self.builder = builder
        self._columns: dict[tuple[str, ...], Expr] = {}

    def whole(self, syntax: Syntax) -> Expr:
        """Bind the whole predicate. Raises: ExpressionError, also for an expression that is not a BOOLEAN."""
        expr = self.bind(syntax)
        if isinstance(expr, Literal) and expr.value is None:
            return NULL
        if display(type_of(expr)) != "boolean":
            raise ExpressionError(
                f"the predicate '{shortened(self.text)}' is of type {display(type_of(expr)).upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
            )
        return expr

    def bind(self, syntax: Syntax) -> Expr:
        outer: list[Apply | CastTo] = []
        while isinstance(syntax, (Apply, CastTo)):
            outer.append(syntax)
            if isinstance(syntax, CastTo):
                if syntax.trying:
                    self._refuse("TRY_CAST", syntax.position)
                syntax = syntax.child
            else:
                self._require_prefix(syntax)
                syntax = syntax.args[0]
        expr = self._leaf(syntax)
        while outer:
            node = outer.pop()
            if len(outer) % _CHECKED_EVERY == 1:
                require_moderate_depth(expr)
            expr = self.builder.cast(expr, node.data_type) if isinstance(node, CastTo) else self._apply(node, expr)
        return expr

    def _refuse(self, what: str, position: int) -> NoReturn:
        raise not_supported(what, PREDICATE, position, self.text)

    def _require_prefix(self, syntax: Apply) -> None:
        """Refuse functions and signs, which precede their arguments."""
        name, count = syntax.function, len(syntax.args)
        if name in _BOUND or (name in _REFUSED and count > 1):
            return
        if name in _REFUSED:
            self._refuse(f"{name} before anything but a number", syntax.position)
        if name not in _TEXT_FUNCTIONS and name != "mod":
            written = _WORD.match(self.text, syntax.position)
            self._refuse(f"the function {written[0].lower() if written else name}", syntax.position)
        if count != 2:
            raise ExpressionError(
                f"the function {name} takes 2 arguments, not {count}.",
                code="WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                construct=name,
            )

    def _leaf(self, syntax: Syntax) -> Expr:
        if isinstance(syntax, Constant):
            return syntax.literal
        if isinstance(syntax, Name):
            return self._name(syntax)
        if isinstance(syntax, TypedText):
            return self.builder.cast(Literal(syntax.text, STRING), syntax.data_type)
        assert isinstance(syntax, (CaseOf, Interval))
        return self._refuse("CASE" if isinstance(syntax, CaseOf) else "INTERVAL", syntax.position)

    def _name(self, syntax: Name) -> Expr:
        # a column has one expression in the whole text, with and without backticks
        if syntax.path not in self._columns:
            self._columns[syntax.path] = self._resolved(syntax)
        return self._columns[syntax.path]

    def _resolved(self, syntax: Name) -> Expr:
        name = syntax.path[0]
        word = name.upper()
        special = word in _NAMELESS or word in _CONSTRUCTS
        if special and not self.text.startswith("`", syntax.position) and self.schema.find(name) is None:
            self._refuse(f"the function {word.lower()}" if word in _NAMELESS else word, syntax.position)
        return bind_column(syntax.path, self.schema)

    def _apply(self, syntax: Apply, first: Expr) -> Expr:
        name, position = syntax.function, syntax.position
        if name in _REFUSED:
            self._refuse(_REFUSED[name], position)
        if name == "IN" and isinstance(syntax.args[1], ConstantList):
            return self.builder.is_in(first, (), [arg for arg in syntax.args[1:] if isinstance(arg, ConstantList)])
        args = [first]
        for arg in syntax.args[1:]:
            # a comprehension would add a stack frame for each level
            args.append(arg.literal if isinstance(arg, Constant) else self.bind(arg))
        if name in _COMPARISONS:
            return self.builder.compare(name, first, args[1])
        if name == "AND":
            return and_(args)
        if name == "OR":
            return or_(args)
        if name == "NOT":
            return not_(first)
        if name == "IS NULL":
            return is_null(first)
        if name in ("<=>", "IS"):
            if name == "IS":
                require_boolean(first)
            return self.builder.null_safe_equal(first, args[1])
        if name == "IN":
            return self._in(first, args[1:], position)
        if name == "BETWEEN":
            return self.builder.between(first, args[1], args[2])
        if name == "LIKE":
            assert isinstance(args[2], Literal)
            return like(first, args[1], str(args[2].value))
        if name in ("%", "mod"):
            return remainder(first, args[1])
        return first if name == "()" else text_match(name, first, args[1])

    def _in(self, expr: Expr, values: list[Expr], position: int) -> Expr:
        for value in values:
            if not isinstance(value, Literal):
                self._refuse(f"IN with '{to_sql(value)}', which is not a literal,", position)
        return self.builder.is_in(expr, values)
