"""Where an expression, a type or a query ends, and its exact text.

Invariant: nothing is understood here but parentheses, CASE and the words that end a piece, so that every expression of
Spark, also one of a later version, is cut where Spark cuts it.
"""

from __future__ import annotations

from collections.abc import Callable

from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.arguments import ends_value
from delta_pyds.statements.kinds import SqlText
from delta_pyds.statements.reader import StatementReader

_OPEN, _CLOSE = ("(", "["), (")", "]")
# behind these words CASE is a column, not the beginning of an expression
_NOT_AFTER_CASE = frozenset(
    ["=", "==", "<", ">", "<=", ">=", "<>", "!=", "<=>", ",", ")", ".", "+", "/", "*", "%", "||"]
)
_BINARY = ("+", "-", "*", "/", "%", "||", "&", "|", "^", "<<", ">>", "DIV")
_QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")

Ends = Callable[[StatementReader], bool]


def _nowhere(_: StatementReader) -> bool:
    return False


def expression(reader: StatementReader, ends: Ends = _nowhere) -> SqlText:
    """An expression up to a comma, a closing parenthesis, a semicolon, or where ``ends`` says so.

    Raises: SqlSyntaxError where there is none, and for parentheses that do not go together.
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
                    reader.fail("the parentheses do not go together")
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
    if reader.index == first:
        reader.fail("an expression is missing")
    return reader.piece(first, reader.index)


def _is_end(reader: StatementReader, cases: int, ends: Ends) -> bool:
    token = reader.token
    if token.kind == "symbol" and token.text in (",", ")", ";"):
        return True
    return cases == 0 and not reader.previous.is_symbol(".") and ends(reader)


def at_word(*words: str) -> Ends:
    """Ends at any of these words."""
    return lambda reader: reader.token.is_word(*words)


def value_expression(reader: StatementReader) -> SqlText:
    """An expression without comparisons, such as the time of a TIMESTAMP AS OF: what comes next may be an alias."""
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
    elif token.kind in ("word", "name"):
        reader.path()
        if reader.token.is_symbol("("):
            _balanced(reader)
    elif token.kind == "number":
        reader.take()
    elif token.is_symbol(":") and reader.following.kind == "word":
        reader.fail("no value was given for this argument, or none that a command takes")
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
        reader.take()
        reader.identifier()
    if reader.accept("TO"):
        reader.identifier()


def _balanced(reader: StatementReader) -> None:
    opened: list[Token] = []
    while True:
        token = reader.token
        if token.kind == "end":
            reader.fail("a parenthesis is not closed", opened[-1])
        if token.is_symbol(*_OPEN):
            opened.append(token)
        elif token.is_symbol(*_CLOSE) and _OPEN.index(opened.pop().text) != _CLOSE.index(token.text):
            reader.fail("the parentheses do not go together")
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
        elif token.is_symbol(">", ">>"):
            depth -= len(token.text)
        reader.take()
        if depth == 0:
            return
        if depth < 0:
            reader.fail("the brackets of a type do not go together", token)


def query(reader: StatementReader) -> SqlText:
    """The rest of the statement as a query."""
    if not at_query(reader):
        reader.fail("expected a query")
    first = reader.index
    opened: list[Token] = []
    while reader.token.kind != "end":
        token = reader.token
        if not opened and token.is_symbol(")", ";"):
            break
        if token.is_symbol(*_OPEN):
            opened.append(token)
        elif token.is_symbol(*_CLOSE) and (not opened or _OPEN.index(opened.pop().text) != _CLOSE.index(token.text)):
            reader.fail("the parentheses do not go together")
        reader.take()
    if opened:
        reader.fail("a parenthesis is not closed", opened[-1])
    return reader.piece(first, reader.index)


def at_query(reader: StatementReader) -> bool:
    """Whether a query begins here."""
    index = reader.index
    while reader.tokens[index].is_symbol("("):
        index += 1
    # not a list of names, one of which is a word like these
    return reader.tokens[index].is_word(*_QUERY_WORDS) and not reader.tokens[index + 1].is_symbol(",", ")")


def begins_query(reader: StatementReader) -> bool:
    """Whether a query begins behind an expression."""
    token, before = reader.token, reader.previous
    if token.is_symbol("("):
        return ends_value(before) and before.kind != "word" and at_query(reader)
    if token.is_word("FROM"):
        return not before.is_word("DISTINCT")
    return token.is_word("SELECT", "WITH", "VALUES", "TABLE")
