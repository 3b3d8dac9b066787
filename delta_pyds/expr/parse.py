"""Spark SQL text to a bound predicate.

The grammar is that of Spark's own parser, rule for rule, as far as a predicate
goes: ``a = 1 IS NULL`` groups as ``(a = 1) IS NULL``, ``a IS NULL = true`` is
a syntax error, ``'it''s'`` holds one quote. What the grammar has and this
parser does not evaluate is refused by its name.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NoReturn

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.binding import Binder
from delta_pyds.expr.build import Builder, bind_column, remainder
from delta_pyds.expr.grammar import read_expression
from delta_pyds.expr.lexer import Token, syntax_error, tokenize
from delta_pyds.expr.literals import number_literal
from delta_pyds.expr.logic import and_, as_filter, is_null, not_, or_, require_boolean
from delta_pyds.expr.nodes import FALSE, NULL, TRUE, Expr, Literal, Predicate, to_sql, type_of
from delta_pyds.expr.patterns import like, text_match
from delta_pyds.expr.scope import Scope
from delta_pyds.expr.type_names import TYPE_NAMES
from delta_pyds.protocol.schema import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    DecimalType,
    StructType,
    display,
)

_COMPARISONS = {"=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_TYPED = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ, "X": BINARY}
_TEXT_FUNCTIONS = ("STARTSWITH", "ENDSWITH", "CONTAINS")
# words that begin a construct of their own, where a column of that name needs backticks
_CONSTRUCTS = frozenset(("CASE", "EXISTS", "SELECT", "WITH", "INTERVAL", "EXTRACT", "TIME"))
_NAMELESS = frozenset(("CURRENT_DATE", "CURRENT_TIMESTAMP", "CURRENT_USER", "USER", "SESSION_USER", "CURRENT_TIME"))
_RESERVED = frozenset(("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "ESCAPE", "RLIKE", "ILIKE", "REGEXP"))
# each level takes about eight Python frames, of the thousand that there are
_MAX_DEPTH = 64


def parse_predicate(text: str, schema: StructType, *, time_zone: str) -> Predicate:
    """Parse and bind a Spark SQL predicate.

    Names resolve against ``schema`` whatever their case; ``a.b`` is a nested
    field, a name with dots goes in backticks. ``time_zone`` is the session's,
    for timestamps written without one.

    Raises: ExpressionError (PARSE_SYNTAX_ERROR with the position,
        CAST_INVALID_INPUT, DATATYPE_MISMATCH, or DELTA_UNSUPPORTED_EXPRESSION
        naming what cannot be evaluated exactly), ColumnNotFoundError.
    """
    parser = _Parser(text, schema, Builder(time_zone))
    return Predicate(as_filter(parser.whole()), parser.builder.zone.used)


@dataclass(frozen=True)
class Bound:
    """A bound expression of any type.

    ``uses_time_zone``: the session's time zone takes part in its meaning. ``deterministic``: it does not read
    the clock; if it does, the time was fixed when it was bound.
    """

    expr: Expr
    uses_time_zone: bool = False
    deterministic: bool = True


def parse_expression(
    text: str, schema: StructType, *, time_zone: str, ansi: bool, now_micros: int | None = None
) -> Bound:
    """Parse and bind a Spark SQL expression of any type, as constraints, defaults and generated columns have them.

    ``ansi``: the session's ``spark.sql.ansi.enabled``. ``now_micros``: the time that ``current_timestamp()``
    gives, in microseconds since 1970; that of the call by default.

    Raises: ExpressionError (PARSE_SYNTAX_ERROR with the position, DATATYPE_MISMATCH, or
        DELTA_UNSUPPORTED_EXPRESSION naming a function that is not supported), ColumnNotFoundError.
    """
    now = time.time_ns() // 1000 if now_micros is None else now_micros
    scope = Scope(time_zone=time_zone, ansi=ansi, now_micros=now)
    expr = Binder(schema, scope).bind(read_expression(text))
    return Bound(expr, scope.zone.used, not scope.clock_read)


class _Parser:
    """Recursive descent over the tokens; one method per rule of Spark's grammar."""

    def __init__(self, text: str, schema: StructType, builder: Builder) -> None:
        self.text = text
        self.schema = schema
        self.builder = builder
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0

    # tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def take(self) -> Token:
        token = self.token
        self.index += 1
        return token

    def at(self, *words: str) -> bool:
        return self.token.is_word(*words)

    def accept(self, word: str) -> bool:
        if self.token.is_word(word) or self.token.is_symbol(word):
            self.index += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word}")

    def fail(self, reason: str = "") -> NoReturn:
        near = "end of the text" if self.token.kind == "end" else f"'{self.token.text}'"
        raise syntax_error(self.text, self.token.start, f"near {near}" + (f": {reason}" if reason else ""))

    def refuse(self, what: str) -> NoReturn:
        raise ExpressionError(
            f"{what} is not supported in a predicate, at position {self.token.start} of: {self.text}", construct=what
        )

    # booleanExpression

    def whole(self) -> Expr:
        if self.token.kind == "end":
            self.fail("the predicate is empty")
        expr = self.disjunction()
        if self.token.kind != "end":
            self.fail()
        if isinstance(expr, Literal) and expr.value is None:
            return NULL
        if display(type_of(expr)) != "boolean":
            raise ExpressionError(
                f"the predicate '{self.text}' is of type {display(type_of(expr)).upper()}, not BOOLEAN.",
                code="DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
            )
        return expr

    def disjunction(self) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.refuse(f"nesting deeper than {_MAX_DEPTH} levels")
        parts = [self.conjunction()]
        while self.accept("OR"):
            parts.append(self.conjunction())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else or_(parts)

    def conjunction(self) -> Expr:
        parts = [self.negation()]
        while self.accept("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else and_(parts)

    def negation(self) -> Expr:
        negations = 0
        while self.accept("NOT") or self.accept("!"):
            negations += 1
        expr = self.predicated()
        for _ in range(min(negations, 2 - negations % 2)):
            expr = not_(expr)
        return expr

    def predicated(self) -> Expr:
        expr = self.comparison()
        negated = False
        if self.at("NOT"):
            negated = True
            self.take()
            if not self.at("BETWEEN", "IN", "LIKE", "RLIKE", "REGEXP", "ILIKE"):
                self.fail()
        if self.accept("BETWEEN"):
            low = self.comparison()
            self.expect("AND")
            expr = self.builder.between(expr, low, self.comparison())
        elif self.accept("IN"):
            expr = self.in_list(expr)
        elif self.accept("LIKE"):
            expr = self.like(expr)
        elif self.at("RLIKE", "REGEXP", "ILIKE"):
            self.refuse(self.token.text.upper())
        elif self.accept("IS"):
            negated = self.accept("NOT")
            expr = self.tested(expr)
        return not_(expr) if negated else expr

    def in_list(self, expr: Expr) -> Expr:
        self.expect("(")
        if self.at("SELECT", "WITH"):
            self.refuse("a subquery")
        if self.token.is_symbol(")"):
            self.fail("IN needs at least one value")
        values = [self.disjunction()]
        while self.accept(","):
            values.append(self.disjunction())
        self.expect(")")
        for value in values:
            if not isinstance(value, Literal):
                self.refuse(f"IN with '{to_sql(value)}', which is no literal,")
        return self.builder.is_in(expr, values)

    def like(self, expr: Expr) -> Expr:
        if self.at("ANY", "SOME", "ALL"):
            self.refuse(f"LIKE {self.token.text.upper()}")
        pattern = self.comparison()
        escape = "\\"
        if self.accept("ESCAPE"):
            token = self.take()
            if token.kind != "string" or len(str(token.value)) != 1:
                raise ExpressionError("ESCAPE needs a string of one character.", code="INVALID_ESC")
            escape = str(token.value)
        return like(expr, pattern, escape)

    def tested(self, expr: Expr) -> Expr:
        if self.accept("NULL") or self.accept("UNKNOWN"):
            return is_null(expr)
        for word, constant in (("TRUE", TRUE), ("FALSE", FALSE)):
            if self.accept(word):
                require_boolean(expr)
                return self.builder.null_safe_equal(expr, constant)
        if self.accept("DISTINCT"):
            self.expect("FROM")
            return not_(self.builder.null_safe_equal(expr, self.comparison()))
        return self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")

    # valueExpression

    def comparison(self) -> Expr:
        expr = self.arithmetic()
        while self.token.kind == "symbol" and self.token.text in _COMPARISONS:
            op = _COMPARISONS[self.take().text]
            right = self.arithmetic()
            expr = self.builder.null_safe_equal(expr, right) if op == "<=>" else self.builder.compare(op, expr, right)
        return expr

    def arithmetic(self) -> Expr:
        expr = self.unary()
        while self.accept("%"):
            expr = remainder(expr, self.unary())
        if self.token.is_symbol("+", "-", "*", "/", "||", "&", "|", "^", "<<", ">>", "[", "->"):
            self.refuse(f"the operator {self.token.text}")
        if self.at("DIV", "COLLATE"):
            self.refuse(self.token.text.upper())
        return expr

    def unary(self) -> Expr:
        if self.token.is_symbol("-", "+"):
            sign = self.take().text
            if self.token.kind == "number":
                return number_literal(self.take(), negative=sign == "-")
            self.refuse(f"{sign} before anything but a number")
        if self.token.is_symbol("~"):
            self.refuse("the operator ~")
        expr = self.primary()
        while self.accept("::"):
            expr = self.builder.cast(expr, self.data_type())
        return expr

    def primary(self) -> Expr:
        token = self.token
        if token.kind == "number":
            return number_literal(self.take(), negative=False)
        if token.kind == "string":
            return self.string()
        if self.accept("("):
            if self.at("SELECT", "WITH"):
                self.refuse("a subquery")
            expr = self.disjunction()
            if self.token.is_symbol(","):
                self.refuse("a list of values in parentheses")
            self.expect(")")
            if self.token.is_symbol("."):
                self.refuse("a field of an expression")
            return expr
        if token.kind == "name":
            return self.column()
        if token.kind != "word":
            if token.is_symbol(":", "?"):
                self.refuse("a parameter marker")
            self.fail()
        return self.word()

    def word(self) -> Expr:
        token = self.token
        word = token.text.upper()
        following = self.tokens[self.index + 1]
        if following.kind == "string":
            return self.typed_literal()
        if following.is_symbol("("):
            return self.function()
        constants = {"TRUE": TRUE, "FALSE": FALSE, "NULL": Literal(None, VOID)}
        if word in constants:
            self.take()
            return constants[word]
        if word in _NAMELESS and self.schema.find(token.text) is None:
            self.refuse(f"the function {word.lower()}")
        if word in _CONSTRUCTS and self.schema.find(token.text) is None:
            self.refuse(word)
        if word in _RESERVED:
            self.fail()
        return self.column()

    def column(self) -> Expr:
        path = [str(self.take().value)]
        while self.accept("."):
            if self.token.kind not in ("word", "name"):
                self.fail("expected the name of a field")
            path.append(str(self.take().value))
            if self.token.is_symbol("("):
                self.refuse(f"the function {'.'.join(path)}")
        return bind_column(path, self.schema)

    def function(self) -> Expr:
        name = self.token.text
        word = name.upper()
        if word in ("CAST", "TRY_CAST"):
            return self.cast()
        if word not in _TEXT_FUNCTIONS and word != "MOD":
            self.refuse("EXISTS" if word == "EXISTS" else f"the function {name.lower()}")
        self.take()
        self.expect("(")
        first = self.disjunction()
        self.expect(",")
        second = self.disjunction()
        self.expect(")")
        return remainder(first, second) if word == "MOD" else text_match(name.lower(), first, second)

    def cast(self) -> Expr:
        trying = self.take().text.upper() == "TRY_CAST"
        self.expect("(")
        expr = self.disjunction()
        self.expect("AS")
        target = self.data_type()
        self.expect(")")
        if trying:
            self.refuse("TRY_CAST")
        return self.builder.cast(expr, target)

    def data_type(self) -> DataType:
        token = self.take()
        word = token.text.upper()
        if token.kind != "word" or word not in TYPE_NAMES:
            self.index -= 1
            self.refuse(f"a cast to {token.text or 'nothing'}")
        found = TYPE_NAMES[word]
        if isinstance(found, DecimalType) and self.accept("("):
            precision = self.size()
            scale = self.size() if self.accept(",") else 0
            self.expect(")")
            return DecimalType(precision, scale)
        if self.token.is_symbol("("):
            self.refuse(f"a cast to {word} with a size")
        return found

    def size(self) -> int:
        token = self.take()
        if token.kind != "number" or not token.text.isdigit() or int(token.text) > 38:
            self.index -= 1
            self.fail("expected a number up to 38")
        return int(token.text)

    # literals

    def string(self) -> Literal:
        text = str(self.take().value)
        while self.token.kind == "string":
            text += str(self.take().value)
        return Literal(text, STRING)

    def typed_literal(self) -> Expr:
        token = self.take()
        data_type = _TYPED.get(token.text.upper())
        if data_type is None:
            self.refuse(f"a literal of type {token.text.upper()}")
        text = self.string()
        if data_type != BINARY:
            return self.builder.cast(text, data_type)
        digits = str(text.value)
        try:
            return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY)
        except ValueError:
            raise syntax_error(self.text, token.start, f"near '{digits}': not a hexadecimal number") from None
