"""The ends of expressions, types and queries, and their exact text.

Invariant: this module interprets only parentheses, CASE and the words that end a piece. So every expression of Spark,
including later versions, ends where it ends for Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.arguments import ends_value
from delta_pyds.statements.kinds import SqlText
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.scopes import is_update

_OPEN, _CLOSE = ("(", "["), (")", "]")
# before these symbols, CASE is a column and begins no expression
_NOT_AFTER_CASE = frozenset(
    ["=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", ",", ")", ".", "+", "/", "*", "%", "||"]
)
_BINARY = ("+", "-", "*", "/", "%", "||", "&", "|", "^", "<<", ">>", ">>>", "DIV")
_UNITS = tuple(
    f"{unit}{plural}"
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND")
    for plural in ("", "S")
)
# no expression ends with these words, and after them the next begins
_BETWEEN_VALUES = (
    "AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE", "BETWEEN", "DIV", "THEN", "ELSE",
    "WHEN", "FROM", "DISTINCT",
)  # fmt: skip
_BEGINS = ("(", "-", "+", "?", ":")
_NO_FUNCTION = ("NULL", "TRUE", "FALSE", "UNKNOWN", "END", "AS")
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")

Ends = Callable[[StatementReader], bool]


def expression(reader: StatementReader, ends: Ends = lambda _: False) -> SqlText:
    """An expression up to a comma, a closing parenthesis or a semicolon, or up to a token for which ``ends`` is true.

    Raises: SqlSyntaxError for a missing expression, and for unbalanced parentheses.
    """
    first = reader.index
    opened: list[Token] = []
    cases = 0
    while reader.token.kind != "end":
        token = reader.token
        if not opened and _is_end(reader, cases, ends):
            break
        if token.kind == "symbol":
            if token.text in _OPEN:
                opened.append(token)
            elif token.text in _CLOSE:
                if not opened or _OPEN.index(opened.pop().text) != _CLOSE.index(token.text):
                    reader.fail("the parentheses are not balanced")
            elif token.text == "::":
                reader.take()
                data_type(reader)
                continue
        elif not opened and token.kind == "word" and not reader.previous.is_symbol("."):
            word = token.text.upper()
            if word == "CASE" and reader.following.text not in _NOT_AFTER_CASE:
                cases += 1
            elif word == "END" and cases:
                cases -= 1
        reader.take()
    if opened:
        reader.fail("a parenthesis is not closed", opened[-1])
    if cases:
        # the expression may have consumed the words that end it
        reader.fail("CASE has no END; write a column with the name case in backticks")
    if reader.index == first:
        reader.fail("an expression is missing")
    return reader.piece(first, reader.index)


def _is_end(reader: StatementReader, cases: int, ends: Ends) -> bool:
    token = reader.token
    if token.kind == "symbol" and token.text in (",", ")", ";"):
        return True
    return cases == 0 and not reader.previous.is_symbol(".") and ends(reader)


def may_be_named(reader: StatementReader, first: int, last: int) -> bool:
    """Whether Spark might parse the end of an expression as an alias: ``a b``, ``a AS b``, ``1 (b, c)``."""
    tokens = reader.tokens
    final = tokens[last - 1]
    has_cast = any(token.is_symbol("::") for token in tokens[first:last])
    if final.is_name:
        return last - first > 1 and _may_end_value(tokens[last - 2], has_cast)
    if not final.is_symbol(")"):
        return False
    begin = reader.scopes.opening(last - 1)
    if begin is None or begin <= first:
        return False
    before = tokens[begin - 1]
    return before.is_word(*_NO_FUNCTION) or (not before.is_name and _may_end_value(before, has_cast))


def _may_end_value(token: Token, has_cast: bool) -> bool:
    """``has_cast``: a value may end with a type."""
    if token.kind == "symbol":
        return token.text in (")", "]", "?") or (has_cast and token.text in (">", ">>", ">>>", "<>"))
    return not token.is_word(*_BETWEEN_VALUES)


def at_word(*words: str) -> Ends:
    """Ends at any of these words."""
    return lambda reader: reader.token.is_word(*words)


def value_expression(reader: StatementReader) -> SqlText:
    """An expression without comparisons, such as the time of TIMESTAMP AS OF: an alias may come next."""
    first = reader.index
    _operand(reader)
    while reader.token.text.upper() in _BINARY and reader.token.kind in ("symbol", "word"):
        reader.take()
        _operand(reader)
    return reader.piece(first, reader.index)


def _operand(reader: StatementReader) -> None:
    while reader.accept("+|-|~"):
        pass
    token = reader.token
    if token.is_symbol("("):
        _balanced(reader)
    elif token.is_word("INTERVAL") and reader.following.kind in ("string", "number", "symbol"):
        reader.take()
        _interval(reader)
    elif token.kind == "word" and reader.following.kind == "string":
        reader.take()
        reader.string()
    elif token.kind == "string":
        reader.string()
    elif token.is_word("CASE"):
        reader.fail("write an expression with CASE in parentheses here")
    elif token.is_name:
        reader.identifier()
        while reader.accept("."):
            reader.identifier()
        if reader.token.is_symbol("("):
            _balanced(reader)
    elif token.kind == "number":
        reader.take()
    elif token.is_symbol(":") and reader.following.kind == "word":
        reader.fail("this argument has no value, or a value that commands do not support")
    else:
        reader.fail("an expression is missing")
    while reader.token.is_symbol("[", "::"):
        if reader.token.is_symbol("["):
            _balanced(reader)
        else:
            reader.take()
            data_type(reader)


def _interval(reader: StatementReader) -> None:
    while True:
        reader.accept("+|-")
        if reader.token.kind not in ("string", "number"):
            break
        # a string may hold its unit
        if reader.take().kind == "number" or reader.token.is_word(*_UNITS):
            reader.identifier()
    # TO may also begin the end of a range of changes
    if reader.token.is_word("TO") and reader.following.is_word(*_UNITS):
        reader.take()
        reader.take()


def _balanced(reader: StatementReader) -> None:
    opened: list[Token] = []
    while True:
        token = reader.token
        if token.kind == "end":
            reader.fail("a parenthesis is not closed", opened[-1])
        if token.is_symbol(*_OPEN):
            opened.append(token)
        elif token.is_symbol(*_CLOSE) and _OPEN.index(opened.pop().text) != _CLOSE.index(token.text):
            reader.fail("the parentheses are not balanced")
        reader.take()
        if not opened:
            return


def data_type(reader: StatementReader) -> str:
    """The text of a type."""
    first = reader.index
    reader.identifier()
    text = reader.previous.text.upper()
    if reader.token.is_symbol("<>"):
        reader.take()
    elif reader.token.is_symbol("<"):
        _in_angles(reader)
    elif reader.token.is_symbol("("):
        _balanced(reader)
    elif text == "INTERVAL":
        reader.accept("YEAR|MONTH|DAY|HOUR|MINUTE|SECOND")
        if reader.accept("TO"):
            reader.identifier()
    elif text == "DOUBLE":
        reader.accept("PRECISION")
    elif text == "TIMESTAMP" and reader.accept("WITHOUT|WITH"):
        reader.accept("LOCAL")
        reader.expect("TIME", "ZONE")
    if reader.accept("COLLATE"):
        reader.path()
    return reader.piece(first, reader.index).text


def _in_angles(reader: StatementReader) -> None:
    depth = 0
    start = reader.token
    while True:
        token = reader.token
        if token.kind == "end" or token.is_symbol(";"):
            reader.fail("the brackets of a type are not closed", start)
        if token.is_symbol("("):
            _balanced(reader)
            continue
        if token.is_symbol("<"):
            depth += 1
        elif token.is_symbol(">", ">>", ">>>"):
            depth -= len(token.text)
        reader.take()
        if depth == 0:
            return
        if depth < 0:
            reader.fail("the brackets of a type are not balanced", token)


def query(reader: StatementReader) -> SqlText:
    """The rest of the statement as a query."""
    if not at_query(reader):
        reader.fail("expected a query")
    first = reader.index
    opened: list[Token] = []
    after_with = True
    while reader.token.kind != "end":
        token = reader.token
        if not opened and token.is_symbol(")", ";"):
            break
        if not opened and at_command(reader, after_with):
            reader.fail("expected a query, but this is a command")
        after_with = after_with and (bool(opened) or token.is_word("WITH") or not token.is_word(*_QUERY_WORDS))
        if token.is_symbol(*_OPEN):
            opened.append(token)
        elif token.is_symbol(*_CLOSE) and (not opened or _OPEN.index(opened.pop().text) != _CLOSE.index(token.text)):
            reader.fail("the parentheses are not balanced")
        reader.take()
    if opened:
        reader.fail("a parenthesis is not closed", opened[-1])
    return reader.piece(first, reader.index)


def at_command(reader: StatementReader, after_with: bool = True) -> bool:
    """Whether a command that changes a table begins here: any command after WITH, or INSERT after FROM."""
    token = reader.token
    if not token.is_word("INSERT", "DELETE", "MERGE", "UPDATE") or reader.previous.is_symbol("."):
        return False
    if token.is_word("INSERT"):
        return reader.at("INSERT", "INTO|OVERWRITE|WITH")
    if not after_with:
        return False  # a column, or another name
    return reader.at("DELETE", "FROM") or reader.at("MERGE", "INTO|WITH") or is_update(reader.tokens, reader.index)


def at_query(reader: StatementReader) -> bool:
    """Whether a query begins here."""
    index = reader.index
    while reader.tokens[index].is_symbol("("):
        index += 1
    token = reader.tokens[index]
    # a list of names may contain such a word
    if not token.is_word(*_QUERY_WORDS) or reader.tokens[index + 1].is_symbol(",", ")"):
        return False
    return not token.is_word("TABLE") or reader.tokens[index + 1].is_name


def begins_query(reader: StatementReader) -> bool:
    """Whether a query begins after an expression."""
    token, before = reader.token, reader.previous
    if token.is_symbol("("):
        return ends_value(before) and before.kind != "word" and at_query(reader)
    if token.is_word("FROM"):
        return not before.is_word("DISTINCT")
    if token.is_word("TABLE") and not reader.following.is_name:
        return False  # a column with this name
    if token.is_word("WITH") and not reader.following.is_name:
        return False
    if before.kind == "symbol" and not ends_value(before):
        return False  # after an operator it is a column, too
    if token.is_word("VALUES") and reader.following.kind == "symbol" and not reader.following.is_symbol(*_BEGINS):
        return False
    return token.is_word("SELECT", "WITH", "VALUES", "TABLE")
