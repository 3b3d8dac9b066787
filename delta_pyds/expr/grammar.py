"""Spark SQL text to syntax, rule for rule as Spark's own grammar has it.

Covers the whole of what an expression over one row can be, less subqueries,
lambdas and windows, which are refused by their names.
"""

from __future__ import annotations

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.literals import number_literal
from delta_pyds.expr.nodes import FALSE, TRUE, Literal
from delta_pyds.expr.syntax import Apply, CaseOf, CastTo, Constant, Name, Syntax
from delta_pyds.expr.token_reader import TokenReader
from delta_pyds.protocol.schema import STRING, VOID

_COMPARISONS = {"==": "=", "!=": "<>"} | {op: op for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")}
# loosest first
_LEVELS: tuple[tuple[str, ...], ...] = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-", "||"), ("*", "/", "%", "DIV"))
_REFUSED_OPERATORS = ("|", "^", "&", "<<", ">>", "~")
_RESERVED = frozenset((
    "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "ESCAPE", "RLIKE", "ILIKE", "REGEXP", "WHEN", "THEN", "ELSE",
    "END", "FROM", "AS", "DIV",
))  # fmt: skip
# each level takes about sixteen Python frames, of the thousand that there are
_MAX_DEPTH = 40


def read_expression(text: str) -> Syntax:
    """The syntax of one Spark SQL expression.

    Raises: ExpressionError: PARSE_SYNTAX_ERROR with the position, or
        DELTA_UNSUPPORTED_EXPRESSION naming a construct that is not supported.
    """
    return _Grammar(text).whole()


class _Grammar(TokenReader):
    """Recursive descent over the tokens; one method per rule of Spark's grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    # booleanExpression

    def whole(self) -> Syntax:
        if self.token.kind == "end":
            self.fail("the expression is empty")
        expr = self.expression()
        if self.token.kind != "end":
            self.fail()
        return expr

    def expression(self) -> Syntax:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.refuse(f"nesting deeper than {_MAX_DEPTH} levels")
        expr = self.conjunction()
        while self.accept("OR"):
            expr = Apply("OR", (expr, self.conjunction()))
        self.depth -= 1
        return expr

    def conjunction(self) -> Syntax:
        expr = self.negation()
        while self.accept("AND"):
            expr = Apply("AND", (expr, self.negation()))
        return expr

    def negation(self) -> Syntax:
        negations = 0
        while self.accept("NOT") or self.accept("!"):
            negations += 1
        expr = self.predicated()
        for _ in range(min(negations, 2 - negations % 2)):
            expr = Apply("NOT", (expr,))
        return expr

    def predicated(self) -> Syntax:
        expr = self.comparison()
        negated = False
        if self.at("NOT"):
            self.take()
            negated = True
            if not self.at("BETWEEN", "IN", "LIKE", "RLIKE", "REGEXP", "ILIKE"):
                self.fail()
        if self.accept("BETWEEN"):
            if self.at("SYMMETRIC", "ASYMMETRIC"):
                self.refuse(f"BETWEEN {self.token.text.upper()}")
            low = self.comparison()
            self.expect("AND")
            high = self.comparison()
            expr = Apply("AND", (Apply(">=", (expr, low)), Apply("<=", (expr, high))))
        elif self.accept("IN"):
            expr = self.in_list(expr)
        elif self.at("LIKE", "ILIKE"):
            expr = self.like(expr)
        elif self.accept("RLIKE") or self.accept("REGEXP"):
            expr = Apply("rlike", (expr, self.comparison()))
        elif self.accept("IS"):
            negated = self.accept("NOT")
            expr = self.tested(expr)
        return Apply("NOT", (expr,)) if negated else expr

    def in_list(self, expr: Syntax) -> Syntax:
        self.expect("(")
        if self.at("SELECT", "WITH"):
            self.refuse("a subquery")
        if self.token.is_symbol(")"):
            self.fail("IN needs at least one value")
        return Apply("IN", (expr, *self.rest_of_list()))

    def like(self, expr: Syntax) -> Syntax:
        word = self.take().text.lower()
        if self.at("ANY", "SOME", "ALL"):
            self.refuse(f"{word.upper()} {self.token.text.upper()}")
        pattern = self.comparison()
        escape = "\\"
        if self.accept("ESCAPE"):
            token = self.take()
            if token.kind != "string" or len(token.value) != 1:
                raise ExpressionError("ESCAPE needs a string of one character.", code="INVALID_ESC")
            escape = token.value
        return Apply(word, (expr, pattern, Constant(Literal(escape, STRING))))

    def tested(self, expr: Syntax) -> Syntax:
        if self.accept("NULL") or self.accept("UNKNOWN"):
            return Apply("IS NULL", (expr,))
        for word, constant in (("TRUE", TRUE), ("FALSE", FALSE)):
            if self.accept(word):
                return Apply("IS", (expr, Constant(constant)))
        if self.accept("DISTINCT"):
            self.expect("FROM")
            return Apply("NOT", (Apply("<=>", (expr, self.comparison())),))
        return self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")

    # valueExpression

    def comparison(self) -> Syntax:
        expr = self.operators(0)
        while self.token.kind == "symbol" and self.token.text in _COMPARISONS:
            op = _COMPARISONS[self.take().text]
            expr = Apply(op, (expr, self.operators(0)))
        return expr

    def operators(self, level: int) -> Syntax:
        if level == len(_LEVELS):
            return self.unary()
        expr = self.operators(level + 1)
        while self.token.is_symbol(*_LEVELS[level]) or self.at(*_LEVELS[level]):
            op = self.token.text.upper()
            if op in _REFUSED_OPERATORS:
                self.refuse(f"the operator {op}")
            self.take()
            expr = Apply(op, (expr, self.operators(level + 1)))
        return expr

    def unary(self) -> Syntax:
        if self.token.is_symbol("-", "+", "~"):
            sign = self.token.text
            if sign == "~":
                self.refuse("the operator ~")
            self.take()
            if sign == "-" and self.token.kind == "number":
                return self.postfixed(Constant(number_literal(self.take(), negative=True)))
            return Apply("negative" if sign == "-" else "positive", (self.unary(),))
        return self.postfixed(self.primary())

    def postfixed(self, expr: Syntax) -> Syntax:
        while True:
            if self.accept("::"):
                expr = CastTo(expr, self.data_type())
            elif self.accept("["):
                index = self.comparison()
                self.expect("]")
                expr = Apply("[]", (expr, index))
            elif self.token.is_symbol(".") and not isinstance(expr, Name):
                self.take()
                expr = Apply(".", (expr, Constant(Literal(self.field_name(), STRING))))
            elif self.at("COLLATE"):
                self.refuse("COLLATE")
            elif self.token.is_symbol("->", "=>", ":", "?"):
                self.refuse(f"the operator {self.token.text}")
            else:
                return expr

    def primary(self) -> Syntax:
        token = self.token
        if token.kind == "number":
            return Constant(number_literal(self.take(), negative=False))
        if token.kind == "string":
            return Constant(self.string())
        if self.accept("("):
            if self.at("SELECT", "WITH"):
                self.refuse("a subquery")
            expr = self.expression()
            if self.token.is_symbol(","):
                self.refuse("a list of values in parentheses")
            self.expect(")")
            # a field of a column in parentheses is a field of an expression
            return Apply("()", (expr,)) if isinstance(expr, Name) else expr
        if token.kind == "name":
            return self.column()
        if token.kind != "word":
            if token.is_symbol(":", "?"):
                self.refuse("a parameter marker")
            self.fail()
        return self.word()

    def word(self) -> Syntax:
        word = self.token.text.upper()
        following = self.following
        if word == "INTERVAL" and not following.is_symbol("(", ".", ")", ","):
            self.take()
            return self.interval()
        if following.kind == "string" and word not in _RESERVED and word != "CASE":
            return self.typed_literal()
        if following.is_symbol("("):
            return self.function()
        constants = {"TRUE": TRUE, "FALSE": FALSE, "NULL": Literal(None, VOID)}
        if word in constants:
            self.take()
            return Constant(constants[word])
        if word == "CASE" and not following.is_symbol(".", ")", ","):
            return self.case()
        if word in _RESERVED:
            self.fail()
        return self.column()

    def column(self) -> Syntax:
        path = [self.take().value]
        while self.accept("."):
            path.append(self.field_name())
            if self.token.is_symbol("("):
                self.refuse(f"the function {'.'.join(path)}")
        return Name(tuple(path))

    def field_name(self) -> str:
        if self.token.kind not in ("word", "name"):
            self.fail("expected the name of a field")
        return self.take().value

    def case(self) -> Syntax:
        self.expect("CASE")
        subject = None if self.at("WHEN") else self.expression()
        branches: list[tuple[Syntax, Syntax]] = []
        while self.accept("WHEN"):
            test = self.expression()
            self.expect("THEN")
            branches.append((test if subject is None else Apply("=", (subject, test)), self.expression()))
        if not branches:
            self.fail("expected WHEN")
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return CaseOf(tuple(branches), otherwise)

    # functions

    def function(self) -> Syntax:
        name = self.take().text.lower()
        self.expect("(")
        if name in ("cast", "try_cast"):
            expr = self.expression()
            self.expect("AS")
            target = self.data_type()
            self.expect(")")
            return CastTo(expr, target, name == "try_cast")
        special = {"extract": self.extract, "position": self.position, "trim": self.trim}.get(name)
        if special is not None:
            return special()
        if self.at("SELECT", "WITH"):
            self.refuse("a subquery")
        if self.at("DISTINCT") and not self.following.is_symbol(",", ")", "."):
            self.refuse(f"{name}(DISTINCT ...)")
        if name in ("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff"):
            return self.dated(name)
        if self.token.is_symbol("*"):
            self.refuse(f"{name}(*)")
        if self.accept(")"):
            return Apply(name, ())
        first = self.expression()
        if name in ("substring", "substr") and self.accept("FROM"):
            args = [first, self.expression()]
            if self.accept("FOR"):
                args.append(self.expression())
            self.expect(")")
            return Apply(name, tuple(args))
        if self.at("PLACING", "AS"):
            self.refuse(f"{name} with {self.token.text.upper()}")
        args = [first, *self.rest_of_list()] if self.accept(",") else [first]
        if len(args) == 1:
            self.expect(")")
        if self.at("OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT"):
            self.refuse(f"{name} with {self.token.text.upper()}")
        return Apply(name, tuple(args))

    def rest_of_list(self) -> tuple[Syntax, ...]:
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        return tuple(args)

    def dated(self, name: str) -> Syntax:
        """Functions that may begin with a unit instead of a value."""
        args = self.rest_of_list()
        if len(args) == 3:
            self.refuse(f"{name} with a unit")
        return Apply(name, args)

    def extract(self) -> Syntax:
        field = self.take()
        if not self.accept("FROM"):
            self.fail("expected FROM")
        source = self.expression()
        self.expect(")")
        return Apply("extract", (Constant(Literal(field.value, STRING)), source))

    def position(self) -> Syntax:
        first = self.operators(0)
        if self.accept("IN"):
            second = self.operators(0)
            self.expect(")")
            return Apply("position", (first, second))
        self.expect(",")
        return Apply("position", (first, *self.rest_of_list()))

    def trim(self) -> Syntax:
        side = "trim"
        words = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
        if self.at(*words) and not self.following.is_symbol(",", ")", "."):
            side = words[self.take().text.upper()]
            if self.accept("FROM"):
                source = self.expression()
                self.expect(")")
                return Apply(side, (source,))
        first = self.expression()
        if self.accept("FROM"):
            source = self.expression()
            self.expect(")")
            return Apply(f"{side} from", (source, first))
        if self.token.is_symbol(","):
            self.refuse("trim of two arguments, other than TRIM(characters FROM text),")
        self.expect(")")
        return Apply(side, (first,))
