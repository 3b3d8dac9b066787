"""Spark SQL text to syntax, following Spark's grammar rule by rule.

Covers all expressions over one row except subqueries, lambdas and windows,
which are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.nodes import FALSE, TRUE, Literal
from delta_pyds.expr.parser.literals import list_literals, number_literal
from delta_pyds.expr.parser.syntax import Apply, CaseOf, CastTo, Constant, Name, Syntax
from delta_pyds.expr.parser.token_reader import Purpose, TokenReader
from delta_pyds.protocol.schema import STRING, VOID

_COMPARISONS = {"==": "=", "!=": "<>", "!<": ">=", "!>": "<="} | {
    op: op for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")
}
# the precedence of each operator
_LEVELS = {"|": 0, "^": 1, "&": 2, "<<": 3, ">>": 3, ">>>": 3, "+": 4, "-": 4, "||": 4}
_LEVELS |= dict.fromkeys(("*", "/", "%", "DIV"), 5)
_TIGHTEST = 5
_REFUSED_OPERATORS = ("|", "^", "&", "<<", ">>", ">>>")
_RESERVED = frozenset(("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "ESCAPE", "RLIKE", "ILIKE", "REGEXP"))
_NEGATED = ("BETWEEN", "IN", "LIKE", "RLIKE", "REGEXP", "ILIKE")
# after a column, these words continue an expression
_GOING_ON = frozenset(("AND", "OR", "IS", *_NEGATED, "DIV", "COLLATE", "ESCAPE", "AS", "FROM", "THEN", "ELSE", "END"))
# symbols that end a value, or join it to another
_AFTER_A_VALUE = frozenset((")", ",", "+", "*", "%", "/", *_COMPARISONS))
_PLAIN = (Name, Constant)
# operators and functions whose bound tree repeats an argument
_REPEATING = {"BETWEEN": 1, "IN": 1, "<=>": 2, "IS": 2, "nullif": 1, "nullifzero": 1, "equal_null": 1}
# parsing a level takes about ten of Python's thousand frames, and binding it may take thirty
EXPRESSION = Purpose("an", "expression", max_depth=40)
PREDICATE = Purpose("a", "predicate", max_depth=64)


def read_expression(text: str, purpose: Purpose = EXPRESSION) -> Syntax:
    """The syntax of one Spark SQL expression.

    Raises: ExpressionError: PARSE_SYNTAX_ERROR with the position, or
        DELTA_UNSUPPORTED_EXPRESSION naming a construct that is not supported.
    """
    grammar = _Grammar(text, purpose)
    syntax = grammar.whole()
    _require_moderate_size(syntax, grammar)
    return syntax


class _Grammar(TokenReader):
    """Recursive descent over the tokens; one method per rule of Spark's grammar."""

    def __init__(self, text: str, purpose: Purpose) -> None:
        super().__init__(text, purpose)
        self.depth = 0

    def go_deeper(self) -> None:
        self.depth += 1
        if self.depth > self.purpose.max_depth:
            self.refuse(f"nesting deeper than {self.purpose.max_depth} levels")

    def before_value(self, *words: str) -> bool:
        """Whether one of the words is next, and is not a column: the words are not reserved, so a value must follow."""
        if not self.at(*words):
            return False
        following = self.following
        if following.kind == "word":
            if following.is_word("NOT"):
                return not self.tokens[self.index + 2].is_word(*_NEGATED)
            return following.text.upper() not in _GOING_ON
        return following.kind in ("number", "string", "name") or following.is_symbol("(", "-", "+", "~", "!", "?", ":")

    # booleanExpression

    def whole(self) -> Syntax:
        if self.token.kind == "end":
            self.fail(f"the {self.purpose.noun} is empty")
        expr = self.expression()
        if self.token.kind != "end":
            self.fail()
        return expr

    def expression(self) -> Syntax:
        self.go_deeper()
        position = self.token.start
        parts = [self.conjunction()]
        while self.accept("OR"):
            parts.append(self.conjunction())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Apply("OR", tuple(parts), position)

    def conjunction(self) -> Syntax:
        position = self.token.start
        parts = [self.negation()]
        while self.accept("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Apply("AND", tuple(parts), position)

    def negation(self) -> Syntax:
        negations = 0
        position = self.token.start
        while self.accept("NOT") or self.accept("!"):
            negations += 1
        expr = self.predicated()
        for _ in range(min(negations, 2 - negations % 2)):
            expr = Apply("NOT", (expr,), position)
        return expr

    def predicated(self) -> Syntax:
        expr = self.comparison()
        if self.token.kind != "word":
            return expr
        negated = self.accept("NOT")
        if negated and not self.at(*_NEGATED):
            self.fail()
        position = self.token.start
        if self.accept("BETWEEN"):
            if self.before_value("SYMMETRIC", "ASYMMETRIC"):
                self.refuse(f"BETWEEN {self.token.text.upper()}")
            low = self.comparison()
            self.expect("AND")
            expr = Apply("BETWEEN", (expr, low, self.comparison()), position)
        elif self.accept("IN"):
            expr = self.in_list(expr, position)
        elif self.at("LIKE", "ILIKE"):
            expr = self.like(expr, position)
        elif self.accept("RLIKE") or self.accept("REGEXP"):
            expr = Apply("RLIKE", (expr, self.comparison()), position)
        elif self.accept("IS"):
            negated = self.accept("NOT")
            expr = self.tested(expr, position)
        return Apply("NOT", (expr,), position) if negated else expr

    def in_list(self, expr: Syntax, position: int) -> Syntax:
        if self.token.kind == "list":
            return Apply("IN", (expr, *list_literals(self.take())), position)
        self.expect("(")
        if self.at("SELECT", "WITH"):
            self.refuse("a subquery")
        if self.token.is_symbol(")"):
            self.fail("IN needs at least one value")
        return Apply("IN", (expr, *self.rest_of_list()), position)

    def like(self, expr: Syntax, position: int) -> Syntax:
        word = self.take().text.upper()
        if self.at("ANY", "SOME", "ALL"):
            self.refuse(f"{word} {self.token.text.upper()}")
        pattern = self.comparison()
        escape = "\\"
        if self.accept("ESCAPE"):
            token = self.take()
            if token.kind != "string" or len(token.value) != 1:
                raise ExpressionError("ESCAPE needs a string of one character.", code="INVALID_ESC")
            escape = token.value
        return Apply(word, (expr, pattern, Constant(Literal(escape, STRING))), position)

    def tested(self, expr: Syntax, position: int) -> Syntax:
        if self.accept("NULL") or self.accept("UNKNOWN"):
            return Apply("IS NULL", (expr,), position)
        for word, constant in (("TRUE", TRUE), ("FALSE", FALSE)):
            if self.accept(word):
                return Apply("IS", (expr, Constant(constant)), position)
        if self.accept("DISTINCT"):
            self.expect("FROM")
            return Apply("NOT", (Apply("<=>", (expr, self.comparison()), position),), position)
        return self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")

    # valueExpression

    def comparison(self) -> Syntax:
        expr = self.operators(0)
        while self.token.kind == "symbol" and self.token.text in _COMPARISONS:
            token = self.take()
            expr = Apply(_COMPARISONS[token.text], (expr, self.operators(0)), token.start)
        return expr

    def operators(self, loosest: int) -> Syntax:
        expr = self.unary()
        while True:
            op = self.token.text.upper()
            level = _LEVELS.get(op, -1)
            if level < loosest:
                return expr
            if op in _REFUSED_OPERATORS:
                self.refuse(f"the operator {op}")
            position = self.take().start
            right = self.unary() if level == _TIGHTEST else self.operators(level + 1)
            parts = [expr, right]
            while op == "||" and self.accept("||"):
                parts.append(self.operators(level + 1))
            expr = Apply(op, tuple(parts), position)

    def unary(self) -> Syntax:
        if self.token.is_symbol("-", "+", "~"):
            return self.signed()
        return self.postfixed(self.primary())

    def signed(self) -> Syntax:
        if self.token.is_symbol("~"):
            self.refuse("the operator ~")
        sign = self.take()
        if self.token.kind == "number":
            number = Constant(number_literal(self.take(), negative=sign.text == "-"))
            expr = self.postfixed(number)
            # a minus is part of the number that is cast; a plus is not
            return expr if sign.text == "-" or expr is number else Apply("+", (expr,), sign.start)
        self.go_deeper()
        expr = self.unary()
        self.depth -= 1
        return Apply(sign.text, (expr,), sign.start)

    def inner_value(self) -> Syntax:
        self.go_deeper()
        expr = self.comparison()
        self.depth -= 1
        return expr

    def postfixed(self, expr: Syntax) -> Syntax:
        while True:
            token = self.token
            if token.kind == "word" and not token.is_word("COLLATE"):
                return expr
            if token.kind == "symbol" and token.text in _AFTER_A_VALUE:
                return expr
            position = token.start
            if self.accept("::"):
                expr = CastTo(expr, self.data_type(), position)
            elif self.accept("["):
                index = self.inner_value()
                self.expect("]")
                expr = Apply("[]", (expr, index), position)
            elif self.token.is_symbol(".") and not isinstance(expr, Name):
                self.take()
                expr = Apply(".", (expr, Constant(Literal(self.field_name(), STRING))), position)
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
            return Apply("()", (expr,), token.start) if isinstance(expr, Name) else expr
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
        if word == "INTERVAL" and (following.kind in ("number", "string") or following.is_symbol("-", "+")):
            return self.interval()
        if self.before_value("CASE"):
            return self.case()
        if following.kind == "string" and word not in _RESERVED:
            return self.typed_literal()
        if following.is_symbol("("):
            return self.function()
        constants = {"TRUE": TRUE, "FALSE": FALSE, "NULL": Literal(None, VOID)}
        if word in constants:
            self.take()
            return Constant(constants[word])
        if word in _RESERVED:
            self.fail()
        return self.column()

    def column(self) -> Syntax:
        token = self.take()
        path = [token.value]
        while self.accept("."):
            path.append(self.field_name())
            if self.token.is_symbol("("):
                self.refuse(f"the function {'.'.join(path)}")
        return Name(tuple(path), token.start)

    def field_name(self) -> str:
        if not self.token.is_name:
            self.fail("expected the name of a field")
        return self.take().value

    def case(self) -> Syntax:
        position = self.take().start
        subject = None if self.at("WHEN") else self.expression()
        branches: list[tuple[Syntax, Syntax]] = []
        while self.accept("WHEN"):
            test = self.expression()
            self.expect("THEN")
            if subject is not None:
                test = Apply("=", (subject, test), position)
            branches.append((test, self.expression()))
        if not branches:
            self.fail("expected WHEN")
        otherwise = self.expression() if self.accept("ELSE") else None
        self.expect("END")
        return CaseOf(tuple(branches), otherwise, position)

    # functions

    def function(self) -> Syntax:
        start = self.token.start
        name = self.take().text.lower()
        self.expect("(")
        if name in ("cast", "try_cast"):
            expr = self.expression()
            self.expect("AS")
            target = self.data_type()
            self.expect(")")
            return CastTo(expr, target, start, name == "try_cast")
        special = {"extract": self.extract, "position": self.position, "trim": self.trim}.get(name)
        if special is not None:
            return special(start)
        if self.before_value("SELECT", "WITH"):
            self.refuse("EXISTS" if name == "exists" else "a subquery")
        if self.before_value("DISTINCT"):
            self.refuse(f"{name}(DISTINCT ...)")
        if name in ("timestampadd", "timestampdiff", "dateadd", "date_add", "datediff", "date_diff"):
            return self.dated(name, start)
        if self.token.is_symbol("*"):
            self.refuse(f"{name}(*)")
        if self.accept(")"):
            return Apply(name, (), start)
        args = [self.expression()]
        if name in ("substring", "substr") and self.accept("FROM"):
            args.append(self.expression())
            if self.accept("FOR"):
                args.append(self.expression())
            self.expect(")")
            return Apply(name, tuple(args), start)
        if self.at("PLACING", "AS"):
            self.refuse(f"{name} with {self.token.text.upper()}")
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        if self.at("OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT"):
            self.refuse(f"{name} with {self.token.text.upper()}")
        return Apply(name, tuple(args), start)

    def rest_of_list(self) -> tuple[Syntax, ...]:
        args = [self.expression()]
        while self.accept(","):
            args.append(self.expression())
        self.expect(")")
        return tuple(args)

    def dated(self, name: str, start: int) -> Syntax:
        """Parse functions that may have a unit as the first argument."""
        args = self.rest_of_list()
        if len(args) == 3:
            self.refuse(f"{name} with a unit")
        return Apply(name, args, start)

    def extract(self, start: int) -> Syntax:
        if self.token.kind == "end":
            self.fail("expected a field")
        field = self.take()
        if not self.accept("FROM"):
            self.fail("expected FROM")
        source = self.expression()
        self.expect(")")
        return Apply("extract", (Constant(Literal(field.value, STRING)), source), start)

    def position(self, start: int) -> Syntax:
        first = self.inner_value()
        if self.accept("IN"):
            second = self.inner_value()
            self.expect(")")
            return Apply("position", (first, second), start)
        self.expect(",")
        return Apply("position", (first, *self.rest_of_list()), start)

    def trim(self, start: int) -> Syntax:
        side = "trim"
        words = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
        if self.at(*words) and not self.following.is_symbol(",", ")", "."):
            side = words[self.take().text.upper()]
            if self.accept("FROM"):
                source = self.expression()
                self.expect(")")
                return Apply(side, (source,), start)
        first = self.expression()
        if self.accept("FROM"):
            source = self.expression()
            self.expect(")")
            return Apply(f"{side} from", (source, first), start)
        if self.token.is_symbol(","):
            self.refuse("trim of two arguments, other than TRIM(characters FROM text),")
        self.expect(")")
        return Apply(side, (first,), start)


def _require_moderate_size(syntax: Syntax, grammar: TokenReader) -> None:
    """Refuse an expression that grows with each level. For example, each ``nullif`` binds a nested ``nullif`` twice."""
    left = 4 * len(grammar.tokens) + 10_000
    pending: list[Syntax] = [syntax]
    while pending and left > 0:
        node = pending.pop()
        left -= 1
        inner: Iterable[Syntax] = ()
        if isinstance(node, Apply):
            inner = node.args
            if node.function in _REPEATING:
                pending.extend(arg for arg in node.args[:2] * _REPEATING[node.function] if not isinstance(arg, _PLAIN))
        elif isinstance(node, CastTo):
            inner = (node.child,)
        elif isinstance(node, CaseOf):
            inner = [part for branch in node.branches for part in branch]
            pending.extend(part for part in (node.otherwise,) if part is not None)
        pending.extend(part for part in inner if not isinstance(part, _PLAIN))
    if left <= 0:
        grammar.index = 0
        grammar.refuse("nesting of CASE, BETWEEN, IS, <=> or NULLIF that repeats the inner parts too often")
