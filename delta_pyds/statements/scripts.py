"""Scripts of SQL: the statements of ``BEGIN ... END``, and the parts of EXECUTE IMMEDIATE."""

from __future__ import annotations

import re
from dataclasses import dataclass

from delta_pyds.errors import SqlSyntaxError
from delta_pyds.expr.parser.lexer import Token
from delta_pyds.statements.arguments import BoundText
from delta_pyds.statements.reader import tokens_of

# words that begin a statement of the scripting language
_CONTROL = (
    "DECLARE", "SET", "IF", "WHILE", "REPEAT", "LOOP", "FOR", "CASE", "BEGIN", "LEAVE", "ITERATE", "OPEN", "FETCH",
    "CLOSE", "SIGNAL", "RESIGNAL", "GET", "ELSE", "ELSEIF", "WHEN", "UNTIL",
)  # fmt: skip
# words after which a statement may begin
_LEADS = ("BEGIN", "ATOMIC", "THEN", "ELSE", "DO", "LOOP", "REPEAT")
# words that begin statements that may change a table; WITH and FROM may come before INSERT
_VERBS = (
    "INSERT", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "ALTER", "CREATE", "REPLACE", "DROP", "COMMENT", "OPTIMIZE",
    "VACUUM", "RESTORE", "REORG", "CONVERT", "GENERATE", "EXECUTE", "LOAD", "WITH", "FROM",
)  # fmt: skip
# words after a label
_LABELLED = ("BEGIN", "LOOP", "WHILE", "REPEAT", "FOR")
_QUERY = re.compile(r"[\s(]*(?:SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_CHANGES = re.compile(r"\b(?:INSERT|MERGE|UPDATE|DELETE)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Script:
    """The statements of a script, in order.

    ``control``: the first word of the scripting language, such as WHILE; None if all statements are plain.
    ``statements``: with a word of control, only those that may change a table, and texts that may be part of one.
    """

    statements: tuple[str, ...]
    control: str | None


@dataclass(frozen=True)
class Immediate:
    """EXECUTE IMMEDIATE. ``text``: the expression of the statement. ``arguments``: those after USING, as a select list.

    ``named``: whether each argument has a name.
    """

    text: str
    arguments: str
    named: bool


def script_of(text: str) -> Script | None:
    """The script that a text is; None for a statement, and for a text that Spark refuses."""
    tokens = _tokens(text, "BEGIN")
    if len(tokens) < 2:
        return None
    control = None
    statements = []
    index = 3 if tokens[1].is_word("NOT") and tokens[2].is_word("ATOMIC") else 1
    while index < len(tokens) and not _ends_script(tokens, index):
        end = index
        while end < len(tokens) and not tokens[end].is_symbol(";"):
            end += 1
        if end == len(tokens):
            return None
        starts = [index] if index < end else []
        # SELECT :begin has an argument, and no label
        labelled = tokens[index + 1].is_symbol(":") and tokens[min(index + 2, end)].is_word(*_LABELLED)
        if labelled or tokens[index].is_word(*_CONTROL, "END"):
            control = control or ("a label" if labelled else tokens[index].text.upper())
            starts = _starts(tokens, index, end)
        last = tokens[end - 1]
        statements += [text[tokens[start].start : last.start + len(last.text)] for start in starts]
        index = end + 1
    return Script(tuple(statements), control)


def is_query(text: str) -> bool:
    """Whether a statement of a script returns rows to the caller of the script."""
    return _QUERY.match(text) is not None and not _CHANGES.search(text)


def immediate_of(text: str) -> Immediate | None:
    """The parts of EXECUTE IMMEDIATE; None for other statements, and for one with INTO."""
    tokens = _tokens(text, "EXECUTE")
    if len(tokens) < 3 or not tokens[1].is_word("IMMEDIATE"):
        return None
    while tokens and (tokens[-1].kind == "end" or tokens[-1].is_symbol(";")):
        tokens.pop()
    using = next((n for n, token in enumerate(tokens) if token.is_word("USING")), len(tokens))
    if using < 3 or any(token.is_word("INTO") for token in tokens[2:using]):
        return None
    given = tokens[using + 1 :]
    arguments = "" if not given else text[given[0].start : given[-1].start + len(given[-1].text)]
    if arguments.startswith("(") and arguments.endswith(")"):
        arguments = arguments[1:-1]
    last = tokens[using - 1]
    return Immediate(
        text[tokens[2].start : last.start + len(last.text)],
        arguments,
        any(token.is_word("AS") for token in given),
    )


def _tokens(text: str, first: str) -> list[Token]:
    if first not in text.upper():
        return []
    try:
        tokens = tokens_of(BoundText(text, text))
    except SqlSyntaxError:
        return []
    return tokens if tokens[0].is_word(first) else []


def _ends_script(tokens: list[Token], index: int) -> bool:
    """Whether the script's own END is here: after it come a semicolon, or nothing."""
    if not tokens[index].is_word("END"):
        return False
    rest = [token for token in tokens[index + 1 :] if token.kind != "end"]
    return not rest or (len(rest) == 1 and rest[0].is_symbol(";"))


def _starts(tokens: list[Token], index: int, end: int) -> list[int]:
    """Each position where a statement may begin, after words such as ``WHILE x < 3 DO``.

    ``CASE WHEN a THEN update END`` has such words too, and does not hide the statement after it.
    """
    verbs = [n for n in range(index + 1, end) if tokens[n].is_word(*_VERBS)]
    handled = {
        _after_conditions(tokens, n + 2, end)
        for n in range(index, end)
        if tokens[n].is_word("HANDLER") and tokens[n + 1].is_word("FOR")
    }
    return [n for n in verbs if n in handled or tokens[n - 1].is_word(*_LEADS)]


def _after_conditions(tokens: list[Token], index: int, end: int) -> int:
    """The position after the conditions of a handler, such as ``NOT FOUND`` or ``SQLSTATE VALUE '22012', mine``."""
    for n in range(index + 1, end):
        before = tokens[n - 1]
        goes_on = before.is_word("SQLSTATE", "NOT") or (before.is_word("VALUE") and tokens[n - 2].is_word("SQLSTATE"))
        separated = any(token.is_symbol(symbol) for token in (before, tokens[n]) for symbol in (",", "."))
        if not goes_on and not separated:
            return n
    return end
