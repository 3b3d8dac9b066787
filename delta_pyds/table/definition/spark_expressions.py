"""Expressions of a table that a Spark session computes: what their texts name, and what no session is asked for.

Invariant: a table is another's; its expressions compute values of a row from that row, or they are refused. Nothing
here understands SQL: a text is cut into tokens, and in doubt it names more than it does.

Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns", "Default Columns".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.schema import StructType
from delta_pyds.tasks.write_state import SparkExpression

_TOKEN = re.compile(
    r"(?P<skip>\s+|--[^\r\n]*|/\*.*?\*/)"
    r"|(?P<text>[rR]'[^']*'|[rR]\"[^\"]*\"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<name>`(?:``|[^`])*`|\w+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_QUOTED = re.compile(r"`((?:``|[^`])+)`|\"((?:\"\"|[^\"])+)\"")
# whatever is called, also where Spark takes for code what the tokens take for a text
_CALLED = re.compile(r"(?<!\w)(\w+)\s*\(|`((?:``|[^`])+)`\s*\(")

# They call into the JVM, read what is outside of the row, or make other rows of it; one makes names of texts.
_REFUSED = frozenset(
    {"reflect", "java_method", "try_reflect", "try_java_method", "identifier"}
    | {"input_file_name", "input_file_block_start", "input_file_block_length"}
    | {"window", "session_window", "window_time"}
    | {"from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf", "from_xml", "schema_of_xml"}
)


def spark_expression(text: str, schema: StructType, what: str) -> SparkExpression:
    """The expression, for a session to compute. ``schema``: of the table. ``what``: whose it is, for messages.

    Raises: ExpressionError naming what no session is asked for: functions that do more than compute, ``*``, and
        settings of the session in the text.
    """
    problem = _problem(text)
    if problem is not None:
        raise ExpressionError(
            f"nothing can be written: {what}, {text}, {problem}. An expression of a table computes a value of a "
            "row, and may do no more.",
            code="DELTA_UNSUPPORTED_EXPRESSION",
            expression=text,
        )
    return SparkExpression(text, named_columns(text, schema))


def named_columns(text: str, schema: StructType) -> tuple[str, ...]:
    """The columns that a text may name, in the table's order; also those that stand in a comment."""
    names = possible_names(text)
    return tuple(name for name in schema.names if name.lower() in names)


def possible_names(text: str) -> frozenset[str]:
    """All that could be the name of a column, a variable or a part of one, in lower case."""
    tokens = {name for token in _tokens(text) for name in _unquoted(token)}
    words = re.findall(r"\w+", text)
    quoted = [(tick or double).replace("``", "`").replace('""', '"') for tick, double in _QUOTED.findall(text)]
    return frozenset(name.lower() for name in (*tokens, *words, *quoted))


def called_functions(text: str) -> frozenset[tuple[str, ...]]:
    """All that could be the name of a function that is called, its parts as they are written."""
    found: set[tuple[str, ...]] = {(word or tick.replace("``", "`"),) for word, tick in _CALLED.findall(text)}
    name: list[str] = []
    for token in _tokens(text):
        part = next(_unquoted(token), None)
        if part is not None and (not name or name[-1] == "."):
            name.append(part)
        elif part is not None:
            name = [part]
        elif token == "." and name:
            name.append(token)
        else:
            if token == "(" and name:
                found.add(tuple(name[::2]))
            name = []
    return frozenset(found)


def _problem(text: str) -> str | None:
    if "${" in text:
        return "has ${...}, in place of which Spark puts settings of the session"
    for function in sorted(called_functions(text)):
        if function[-1].lower() in _REFUSED:
            return f"calls {function[-1].lower()}"
    before = "("
    for token in _tokens(text):
        if token == "*" and before in ("(", ",", "."):
            return "has a * that stands for columns"
        before = token
    return None


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.finditer(text):
        if found.lastgroup != "skip":
            yield found[0]


def _unquoted(token: str) -> Iterator[str]:
    if token.startswith("`"):
        yield token[1:-1].replace("``", "`")
    elif re.fullmatch(r"\w+", token):
        yield token
