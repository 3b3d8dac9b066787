"""Whatever the text: a statement or an error that is a sentence, in time that grows as the text does."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from delta_pyds.errors import DeltaError
from delta_pyds.statements.arguments import bind
from delta_pyds.statements.kinds import Merge, PassThrough
from delta_pyds.statements.parse import parse_statement
from delta_pyds.statements.reader import tokens_of
from tests.support.drawn_statements import OF_DELTA, STATEMENTS, drawn
from tests.support.sampling import exhaustive, seed
from tests.unit.statements.parsed import PATH

WORDS = [
    "DELETE", "FROM", "UPDATE", "SET", "WHERE", "MERGE", "INTO", "USING", "ON", "WHEN", "MATCHED", "NOT", "THEN",
    "INSERT", "VALUES", "BY", "SOURCE", "AND", "CASE", "END",
    "CREATE", "OR", "REPLACE", "TABLE", "ALTER", "ADD", "COLUMN", "COLUMNS", "DROP", "TYPE", "DEFAULT", "GENERATED",
    "ALWAYS", "AS", "IDENTITY", "COMMENT",
    "OPTIMIZE", "ZORDER", "VACUUM", "RETAIN", "HOURS", "DRY", "RUN", "RESTORE", "TO", "VERSION", "TIMESTAMP", "OF",
    "CONVERT", "DELTA", "DESCRIBE", "HISTORY",
    "SELECT", "WITH", "JOIN", "EXISTS", "IN", "TBLPROPERTIES", "PARTITIONED", "CLUSTER", "LIKE", "CLONE", "SHALLOW",
    "LOCATION", "TEMP", "VIEW",
    "(", ")", "[", "]", ",", ".", "=", "<", ">", ">>", "::", ":", "?", "@", ";", "*", "-", "--", "${", "}", "'",
    "`", '"', "/*", "*/", "a", "b", "`c`", "'d'", "1", "2.5", "v3", "INTERVAL", "STRUCT", "MAP",
    PATH, "delta", "`/x`", "table_changes(", "IDENTIFIER(", "\n", "\\", "r'", "é", "\ud800", "\x00",
]  # fmt: skip
BEGINNINGS = [
    "", f"DELETE FROM {PATH} ", f"UPDATE {PATH} SET ", f"MERGE INTO {PATH} USING s ON ", f"INSERT INTO {PATH} ",
    f"CREATE TABLE {PATH} ", f"ALTER TABLE {PATH} ", f"OPTIMIZE {PATH} ", f"VACUUM {PATH} ", f"RESTORE {PATH} ",
    f"SELECT * FROM {PATH} ", "CREATE TEMP VIEW v AS ", "DESCRIBE HISTORY ",
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(BEGINNINGS), st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=25), st.booleans(),
    st.none() | st.lists(st.integers() | st.text(max_size=3)) | st.dictionaries(st.sampled_from("ab"), st.integers()),
)  # fmt: skip
@example("UPDATE ", [PATH, "SET", "a", "=", "case", "end"], True, None)
def test_every_outcome_is_a_statement_or_a_sentence(
    beginning: str, words: list[str], apart: bool, args: object
) -> None:
    text = beginning + (" " if apart else "").join(words)
    try:
        found = parse_statement(text, args).statement
    except DeltaError as error:
        assert error.message.strip() and error.code
        return
    if isinstance(found, PassThrough):
        ends = [place for span in found.tables for place in (span.start, span.end)]
        assert ends == sorted(ends) and all(0 <= place <= len(text) for place in ends)


def test_what_is_drawn_out_of_statements_ends_in_one_or_in_a_sentence() -> None:
    for text in drawn(50_000 if exhaustive() else 1_500, seed(), (*STATEMENTS, *OF_DELTA)):
        try:
            parse_statement(text)
        except DeltaError as error:
            assert error.message.strip() and error.code, text


@given(
    st.lists(st.sampled_from(["a", "?", ":b", " ", "'x'", ",", "é"]), max_size=20), st.lists(st.integers(), max_size=9)
)
def test_a_place_in_a_bound_text_has_one_in_the_users(pieces: list[str], values: list[int]) -> None:
    from delta_pyds.statements.arguments import BoundText

    text = " ".join(pieces)
    tokens = tokens_of(BoundText(text, text))
    bound = bind(text, tokens, values)
    places = [bound.original_position(i) for i in range(len(bound.text) + 1)]
    assert places == sorted(places) and places[-1] == len(text)
    changed = {start + i for start, length, _, _ in bound.edits for i in range(length)}
    assert all(bound.text[i] == text[places[i]] for i in range(len(bound.text)) if i not in changed)


def test_long_statements_are_read_in_one_go() -> None:
    """Each would take hours if any step looked at all that it has seen once more."""
    many = 4_000
    for text in (
        f"DELETE FROM {PATH} WHERE " + " AND ".join(["(a = ':x')"] * many),
        f"DELETE FROM {PATH} WHERE " + "(" * many + ")" * many,
        f"UPDATE {PATH} SET " + ", ".join(f"a{i} = CASE WHEN x THEN {i} END" for i in range(many)),
        f"INSERT INTO {PATH} REPLACE WHERE " + "a AND (" * many + ")" * many,
        "SELECT * FROM " + ", ".join([f"{PATH} VERSION AS OF ?"] * many),
        "SELECT " + "(" * many + " FROM " + f"{PATH} a JOIN " * many,
        f"MERGE INTO {PATH} USING s ON a " + "WHEN MATCHED AND x THEN UPDATE SET a = 1 " * many,
        f"CREATE TABLE {PATH} (a " + "ARRAY<" * many + "INT" + ">>" * (many // 2) + ")",
        f"CREATE TABLE {PATH} (" + ", ".join(f"a{i} INT DEFAULT 1 COMMENT 'c'" for i in range(many)) + ")",
        f"DELETE FROM {PATH} WHERE " + "'" * many * 10,
        f"DELETE FROM {PATH} WHERE " + "STRUCT<a:" * many,
        "BEGIN " + "EXECUTE IMMEDIATE " * many,
        "BEGIN " + "ALTER TABLE a " * many,
        f"INSERT INTO {PATH} FROM s " + "UPDATE a " * many,
        f"INSERT INTO {PATH} PARTITION (" + ", ".join(f"p{i} = 1" for i in range(many)) + ") SELECT 1",
        "/*" * many,
    ):
        try:
            parse_statement(text, [3] * many)
        except DeltaError as error:
            assert len(error.message) < 2_000


def test_the_tables_of_all_pieces_are_found_in_one_go() -> None:
    """A MERGE of so many columns would take minutes if each expression meant reading the statement again."""
    columns = [f"a{i}" for i in range(2_000)]
    whole = parse_statement(
        f"MERGE INTO {PATH} USING s ON a WHEN MATCHED THEN UPDATE SET "
        + ", ".join(f"{name} = s.{name} + 1" for name in columns)
    )
    assert isinstance(whole.statement, Merge)
    values = [one.value for clause in whole.statement.clauses for one in clause.assignments or ()]
    assert [whole.tables_in(value) for value in values] == [()] * len(columns)
