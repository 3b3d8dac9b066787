"""MERGE, UPDATE, DELETE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from delta_pyds.statements import kinds, pieces
from delta_pyds.statements.reader import StatementReader
from delta_pyds.statements.tables import source_table, target_table

# after a column, these words continue an expression
_AFTER_COLUMNS = (
    "AND", "OR", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "NOT", "COLLATE",
)  # fmt: skip
# in the order of Spark's grammar
_KINDS = {
    "matched": "MATCHED",
    "not_matched": "NOT MATCHED BY TARGET",
    "not_matched_by_source": "NOT MATCHED BY SOURCE",
}


def delete(reader: StatementReader) -> kinds.Delete:
    """``DELETE FROM t [AS a] [WHERE condition]``"""
    reader.expect("DELETE", "FROM")
    target = target_table(reader)
    named = alias(reader, "WHERE")
    return kinds.Delete(target, named, pieces.expression(reader) if reader.accept("WHERE") else None)


def update(reader: StatementReader) -> kinds.Update:
    """``UPDATE t [AS a] SET column = value, ... [WHERE condition]``"""
    reader.expect("UPDATE")
    target = target_table(reader)
    named = alias(reader, "SET")
    reader.expect("SET")
    assigned = _assignments(reader, pieces.at_word("WHERE"))
    condition = pieces.expression(reader) if reader.accept("WHERE") else None
    return kinds.Update(target, named, assigned, condition)


def truncate(reader: StatementReader) -> kinds.Truncate:
    """``TRUNCATE TABLE t``"""
    reader.expect("TRUNCATE", "TABLE")
    target = target_table(reader)
    if reader.at("PARTITION"):
        reader.refuse(
            "TRUNCATE TABLE of a partition",
            "Use DELETE FROM with a condition.",
            code="DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
        )
    return kinds.Truncate(target)


def alias(reader: StatementReader, *following: str) -> str | None:
    """``[AS] name`` before any of these words. Names of columns after it are refused at the end."""
    token = reader.token
    if reader.at("AS") and reader.following.is_word(*following):
        second = reader.tokens[min(reader.index + 2, len(reader.tokens) - 1)]
        if not second.is_word(*following):
            return reader.identifier()  # the word AS itself, as in Spark
    is_word = token.kind == "word" and (not token.is_word(*following) or _at_same_word(reader))
    if reader.accept("AS") or token.kind == "name" or is_word:
        named = reader.alias()
    else:
        return None
    if reader.token.is_symbol("("):
        reader.refuse_at_end("a table cannot have column aliases here", "COLUMN_ALIASES_NOT_ALLOWED")
        reader.in_parentheses(reader.identifier)
    return named


def _at_same_word(reader: StatementReader) -> bool:
    """Whether the first word of ``SET SET a = 1`` or ``WHERE WHERE a = 1`` is an alias, and the second a keyword."""
    word = reader.token.text
    second = reader.tokens[min(reader.index + 2, len(reader.tokens) - 1)]
    begins = second.kind in ("name", "number", "string") or (
        second.kind == "word" and not second.is_word(*_AFTER_COLUMNS)
    )
    return reader.token.is_word("SET", "WHERE") and reader.following.is_word(word.upper()) and begins


def _assignments(reader: StatementReader, ends: pieces.Ends) -> tuple[kinds.Assignment, ...]:
    def one() -> kinds.Assignment:
        column = reader.path_text()
        reader.expect("=|==")
        return kinds.Assignment(column, pieces.expression(reader, ends))

    return reader.list_of(one)


# --- MERGE


def merge(reader: StatementReader) -> kinds.Merge:
    """``MERGE [WITH SCHEMA EVOLUTION] INTO t [AS a] USING source [AS b] ON condition WHEN ... THEN ...``"""
    reader.expect("MERGE")
    evolves = reader.accept("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = target_table(reader)
    named = alias(reader, "USING")
    reader.expect("USING")
    source = _source(reader)
    source_named = alias(reader, "ON")
    reader.expect("ON")
    condition = pieces.expression(reader, _at_when)
    clauses: list[kinds.MergeClauseText] = []
    order = list(_KINDS)
    while reader.at("WHEN"):
        start = reader.token
        clauses.append(_clause(reader))
        if len(clauses) > 1 and order.index(clauses[-1].kind) < order.index(clauses[-2].kind):
            reader.fail("the order must be MATCHED, NOT MATCHED, NOT MATCHED BY SOURCE", start)
    if not clauses and not any(t.is_word("WHEN", "MATCHED", "THEN") for t in reader.tokens[condition.first :]):
        reader.refuse_at_end("expected WHEN MATCHED or WHEN NOT MATCHED", "MERGE_WITHOUT_WHEN")
    elif not clauses:
        reader.fail("expected WHEN MATCHED or WHEN NOT MATCHED")
    _check_conditions(reader, clauses)
    return kinds.Merge(target, named, source, source_named, condition, tuple(clauses), evolves)


def _check_conditions(reader: StatementReader, clauses: Sequence[kinds.MergeClauseText]) -> None:
    """Only the last clause of a kind may lack a condition."""
    for kind, words in _KINDS.items():
        if any(clause.condition is None for clause in [c for c in clauses if c.kind == kind][:-1]):
            reader.refuse_at_end(
                f"only the last WHEN {words} clause may lack a condition",
                f"NON_LAST_{words.replace(' ', '_')}_CLAUSE_OMIT_CONDITION",
            )


def _source(reader: StatementReader) -> kinds.TableReference | kinds.TableChanges | kinds.SqlText:
    if not reader.accept("("):
        return source_table(reader)
    found = pieces.query(reader)
    reader.expect(")")
    return found


def _at_when(reader: StatementReader) -> bool:
    return reader.at("WHEN", "MATCHED") or reader.at("WHEN", "NOT|!", "MATCHED")


def _clause(reader: StatementReader) -> kinds.MergeClauseText:
    reader.expect("WHEN")
    kind = _kind(reader)
    condition = None
    if reader.accept("AND"):
        condition = pieces.expression(reader, lambda r: r.at("THEN", "UPDATE|DELETE|INSERT"))
    reader.expect("THEN")
    if kind == "not_matched":
        return kinds.MergeClauseText(kind, "insert", condition, _insert_action(reader))
    if reader.accept("DELETE"):
        return kinds.MergeClauseText(kind, "delete", condition, None)
    reader.expect("UPDATE", "SET")
    if reader.token.is_symbol("*"):
        if kind == "not_matched_by_source":
            reader.fail("NOT MATCHED BY SOURCE needs assignments instead of UPDATE SET *")
        reader.take()
        return kinds.MergeClauseText(kind, "update", condition, None)
    return kinds.MergeClauseText(kind, "update", condition, _assignments(reader, _at_when))


def _kind(reader: StatementReader) -> Literal["matched", "not_matched", "not_matched_by_source"]:
    if reader.accept("MATCHED"):
        return "matched"
    reader.expect("NOT|!", "MATCHED")
    if reader.accept("BY", "SOURCE"):
        return "not_matched_by_source"
    reader.accept("BY", "TARGET")
    return "not_matched"


def _insert_action(reader: StatementReader) -> tuple[kinds.Assignment, ...] | None:
    reader.expect("INSERT")
    if reader.accept("*"):
        return None
    start = reader.token
    columns = reader.in_parentheses(reader.path_text)
    reader.expect("VALUES")
    values = reader.in_parentheses(lambda: pieces.expression(reader))
    if len(columns) != len(values):
        reader.refuse_at_end(
            f"the clause has {len(columns)} columns, but {len(values)} values",
            "MERGE_INSERT_VALUE_COUNT_MISMATCH",
            start,
        )
    return tuple(map(kinds.Assignment, columns, values))
