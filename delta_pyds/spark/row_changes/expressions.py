"""Session-independent texts of a user's conditions and values, for our own evaluator and for skipping.

Invariant: a text that is returned means to our parser what it means to Spark in this session, or our parser refuses it.
If anything may give it another meaning (a setting, a function of the user, an alias that is also a column's name), the
result is None, and Spark evaluates the expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from pyspark.sql import Column, SparkSession

from delta_pyds.errors import DeltaError, ExpressionError
from delta_pyds.expr.nodes import Predicate, columns, references
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.expr.parser.lexer import Token, tokenize
from delta_pyds.protocol.char_types import is_padded
from delta_pyds.protocol.schema import DATE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, StructType
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.built_in_functions import called_names, is_built_in
from delta_pyds.spark.planning.pruning import conjunction
from delta_pyds.spark.row_changes.column_text import conjuncts_of_column, text_of_column
from delta_pyds.spark.settings import (
    ANSI,
    CASE_SENSITIVE,
    CONCAT_BINARY_AS_STRING,
    DECIMAL_PRECISION_LOSS,
    DOUBLE_QUOTED_IDENTIFIERS,
    ELT_OUTPUT_AS_STRING,
    ESCAPED_STRING_LITERALS,
    FUNCTION_ORDER,
    LEGACY_PREFIX,
    QUOTED_REGEX_COLUMN_NAMES,
    SQL_PATH,
    STORE_ASSIGNMENT_POLICY,
    TIMESTAMP_TYPE,
)
from delta_pyds.spark.versions import calls_built_in_functions_first
from delta_pyds.table.definition.schema_paths import unresolved_column
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ACTION_COLUMN, FILE_COLUMN, POSITION_COLUMN, ROW_ID_COLUMN, SOURCE_ROW_COLUMN

# Settings that change the meaning of expressions, with the values that our parser and evaluator assume.
_MEANING = {
    CASE_SENSITIVE: "false",
    TIMESTAMP_TYPE: "timestamp_ltz",
    STORE_ASSIGNMENT_POLICY: "ansi",
    DOUBLE_QUOTED_IDENTIFIERS: "false",
    ESCAPED_STRING_LITERALS: "false",
    QUOTED_REGEX_COLUMN_NAMES: "false",
    DECIMAL_PRECISION_LOSS: "true",
    CONCAT_BINARY_AS_STRING: "false",
    ELT_OUTPUT_AS_STRING: "false",
    # functions of the session, or of a catalog, may come before Spark's own
    FUNCTION_ORDER: "second",
    SQL_PATH: "false",
}
_GIVEN = re.compile(r"\b(spark\.sql\.[A-Za-z0-9_.]+)=")
# `${spark.app.name}`, `${env:HOME}`: Spark inserts the value before it parses, also in quotes
_VARIABLE = "${"
# columns of a command's query, beside the table's
_INTERNAL = frozenset((FILE_COLUMN, POSITION_COLUMN, ACTION_COLUMN, SOURCE_ROW_COLUMN, ROW_ID_COLUMN))
# words before a string that give it a type
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X")


def independent_text(
    spark: SparkSession, expression: Column | str, schema: StructType, alias: str | None
) -> str | None:
    """The session-independent text of a condition or value, without the table's alias, for ``expr.parse``; or None.

    ``schema``: the table's. ``alias``: the table's name in the expression.
    """
    if isinstance(expression, str):
        text: str | None = expression
    else:
        text = text_of_column(expression)
    # an empty text is an error in Spark, and must not count as no condition
    if text is None or not text.strip() or _is_replaced(text) or not has_plain_settings(spark):
        return None
    text = _without_alias(text, schema, alias)
    if text is None or names_any(text, padded_columns(schema)):
        return None
    return None if _may_be_shadowed(spark, text) else text


def plain_text(spark: SparkSession, expression: Column | str) -> str | None:
    """The session-independent text of a condition or value with its names unchanged, for a parser of several tables; or
    None.
    """
    text = expression if isinstance(expression, str) else text_of_column(expression)
    if text is None or _is_replaced(text) or not has_plain_settings(spark):
        return None
    return None if _may_be_shadowed(spark, text) else text


def prunable(
    spark: SparkSession, condition: Column | str | None, schema: StructType, alias: str | None, time_zone: str
) -> str | None:
    """A predicate that is true wherever the condition is: the conjuncts that ``expr.parse`` supports."""
    if condition is None:
        return None
    parts = [condition] if isinstance(condition, str) else conjuncts_of_column(condition)
    texts = [text for part in parts if part is not None for text in conjunct_texts(part)]
    # the value of a variable may contain an OR, which changes the parts
    if not texts or any(map(_is_replaced, texts)) or not has_plain_settings(spark):
        return None
    plain = [text for text in (_without_alias(text, schema, alias) for text in texts) if text is not None]
    return conjunction(text for text, _ in supported(spark, plain, schema, time_zone))


def supported(
    spark: SparkSession, conjuncts: Iterable[str], schema: StructType, time_zone: str, *, later: bool = False
) -> Iterator[tuple[str, Predicate]]:
    """Yield the conjuncts about columns that mean to ``expr.parse`` what they mean to Spark, if ``has_plain_settings``.

    ``conjuncts``: without aliases. ``later``: Spark analyses them only when the rows are read, so time zone and ANSI
    mode may be others by then.
    """
    padded = padded_columns(schema)
    ansi: bool | None = False if later else None
    for text in conjuncts:
        if names_any(text, padded):
            continue
        try:
            predicate = parse_predicate(text, schema, time_zone=time_zone)
        except DeltaError:
            continue
        if not references(predicate.expr) or (later and predicate.uses_time_zone):
            continue
        if _depends_on_ansi(text, predicate):
            ansi = is_ansi(spark) if ansi is None else ansi
            if not ansi:
                continue
        if not _may_be_shadowed(spark, text):
            yield text, predicate


def is_ansi(spark: SparkSession) -> bool:
    return (spark.conf.get(ANSI, None) or "true").strip().lower() == "true"


def _depends_on_ansi(text: str, predicate: Predicate) -> bool:
    """Whether a supported predicate may be true for other rows without ANSI mode, where ``expr.parse`` has its rules.

    Then Spark compares a list of texts with dates as texts, and a text with a number in the number's type. It compares
    whole numbers with FLOAT as FLOAT.
    """
    types = {column.data_type for column in columns(predicate.expr)}
    # a token before the first one
    tokens = [Token("end", "", 0), *tokenize(text)]
    if FLOAT in types or any(token.suffix == "F" or token.is_word("FLOAT", "REAL") for token in tokens):
        return True
    if types <= {STRING}:
        return False
    texts = any(
        (token.kind == "string" and not before.is_word(*_TYPED)) or (token.kind == "list" and "'" in token.text)
        for before, token in pairwise(tokens)
    )
    if not texts and STRING not in types:
        return False
    # such a text becomes a date or a time with and without ANSI mode, but not in a list
    return not types <= {DATE, TIMESTAMP, TIMESTAMP_NTZ} or any(token.is_word("IN") for token in tokens)


def padded_columns(schema: StructType) -> frozenset[str]:
    """The columns of type ``char``, or that contain one, in lower case.

    Spark compares them padded, and pads constants beside them. Values in files and statistics may be unpadded. So a
    text that names such a column is not session-independent, and skips no files.
    """
    return frozenset(field.name.lower() for field in schema if is_padded(field))


def names_any(text: str, columns: frozenset[str]) -> bool:
    """Whether a text may name one of the columns."""
    if not columns:
        return False
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return True
    return any(token.is_symbol("*") or (token.is_name and token.value.lower() in columns) for token in tokens)


def has_plain_settings(spark: SparkSession) -> bool:
    """Whether no setting of the session changes the meaning of expressions, besides ANSI mode and time zone."""
    if is_remote(spark):
        names = set(spark.conf.getAll)
    else:
        # one call instead of one for each setting
        names = set(_GIVEN.findall(spark._jsparkSession.conf().getAllAsJava().toString()))
    if any(name.startswith(LEGACY_PREFIX) for name in names):
        return False
    return all((spark.conf.get(name) or "").lower() == _MEANING[name] for name in names & _MEANING.keys())


def conjunct_texts(text: str) -> list[str]:
    """The conjuncts of a predicate's text; the whole text if they cannot be separated.

    Text that our parser does not support, such as a subquery, is split at the same positions as by Spark.
    """
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return [text]
    depth = between = 0
    cuts: list[Token] = []
    for token in tokens:
        if token.is_symbol("(", "["):
            depth += 1
        elif token.is_symbol(")", "]"):
            depth -= 1
        elif depth > 0:
            continue
        # a text with CASE or END, which may also be names of columns, is not split
        elif depth < 0 or token.is_word("OR", "CASE", "END") or token.is_symbol("->"):
            return [text]
        elif token.is_word("BETWEEN"):
            between += 1
        elif token.is_word("AND"):
            if between:
                between -= 1
            else:
                cuts.append(token)
    starts = [0, *(token.start + len(token.text) for token in cuts)]
    ends = [*(token.start for token in cuts), len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def shown_text(expression: Column | str) -> str:
    """The expression as the table's history shows it; it is never evaluated."""
    if isinstance(expression, str):
        return expression
    known = text_of_column(expression)
    return known if known is not None else re.sub(r"^Column<'(.*)'>$", r"\1", str(expression), flags=re.DOTALL)


def refuse_internal_names(expressions: Iterable[Column | str | None], snapshot: Snapshot) -> None:
    """Refuse names of columns that only the query of a command has.

    Raises: ColumnNotFoundError with the columns of the table.
    """
    for expression in expressions:
        text = "" if expression is None else shown_text(expression)
        # most texts have no such name, and are not tokenized
        if not any(name in text.lower() for name in _INTERNAL):
            continue
        try:
            names = {token.value.lower() for token in tokenize(text) if token.is_name}
        except ExpressionError:
            continue  # Spark reports the error
        for name in sorted(names & _INTERNAL):
            raise unresolved_column(name, snapshot.schema, snapshot.table_root)


def mentioned(expressions: Sequence[Column | str], schema: StructType) -> list[str] | None:
    """The columns of the table that the expressions may use; None if it may be all of them.

    An expression does not use a column whose name does not occur in its text.
    """
    texts = [e if isinstance(e, str) else str(e) for e in expressions]
    whole = "\n".join(texts).lower()
    # a star, a name made of a text, a truncated text, a subquery of frames, a variable
    if any(sign in whole for sign in ("*", "identifier", "...", "subquery", _VARIABLE)):
        return None
    return [f.name for f in schema if "`" in f.name or f.name.lower() in whole]


def _without_alias(text: str, schema: StructType, alias: str | None) -> str | None:
    """The text without the alias before names; None if the alias is also a column's name."""
    if alias is None or alias.lower() not in text.lower():
        return text
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return None
    if schema.find(alias) is not None:
        called = (token for token, after in pairwise(tokens) if token.is_name and after.is_symbol("."))
        return None if any(token.value.lower() == alias.lower() for token in called) else text
    pieces, end = [], 0
    for n, token in enumerate(tokens[:-2]):
        first = n == 0 or not tokens[n - 1].is_symbol(".")
        qualifies = tokens[n + 1].is_symbol(".") and tokens[n + 2].is_name
        if first and qualifies and token.is_name and token.value.lower() == alias.lower():
            if tokens[min(n + 3, len(tokens) - 1)].is_symbol("("):
                return None  # a function in a schema that is called like the alias
            pieces.append(text[end : token.start])
            end = tokens[n + 2].start
    return "".join([*pieces, text[end:]])


def _is_replaced(text: str) -> bool:
    """Whether Spark replaces variables in this text before it parses it."""
    return _VARIABLE in text


def _may_be_shadowed(spark: SparkSession, text: str) -> bool:
    """Whether the text may call a function that the session has replaced. The session has plain settings."""
    names = called_names(text)
    if not names:
        return names is None
    return not (calls_built_in_functions_first(spark) or all(is_built_in(spark, name) for name in names))
