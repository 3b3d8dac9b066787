"""Statements drawn out of valid ones, and the two parsers about each: Spark's, or the reference's, and ours.

Invariant: a text is drawn from a seed alone. What our parser takes is taken only if Spark takes its pieces too, because
it is Spark that reads them when the statement runs.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from delta_pyds.errors import DeltaError, UnsupportedOperationError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.statements.kinds import (
    Create,
    Delete,
    Insert,
    Merge,
    PassThrough,
    SqlText,
    TableReference,
    Update,
)
from delta_pyds.statements.parse import QUERY_ALONE, ParsedStatement, parse_statement

T = "delta.`/x/t`"
_MERGE = f"MERGE INTO {T} AS t USING (SELECT 1 AS id) s ON t.id = s.id"
# of Spark too
STATEMENTS = (
    f"DELETE FROM {T} AS t WHERE t.id = 1 AND b IN (1, 2)",
    f"UPDATE {T} SET a = 1, b.c = CASE WHEN x THEN 2 END WHERE id = 'x'",
    (
        f"{_MERGE} WHEN MATCHED AND s.a THEN UPDATE SET a = 1, b = s.b WHEN MATCHED THEN DELETE WHEN NOT "
        "MATCHED THEN INSERT (a, b) VALUES (1, s.b) WHEN NOT MATCHED BY SOURCE AND t.x THEN UPDATE SET x"
        " = 1"
    ),
    f"{_MERGE} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY TARGET THEN INSERT *",
    f"MERGE WITH SCHEMA EVOLUTION INTO {T} t USING src ON true WHEN NOT MATCHED BY SOURCE THEN DELETE",
    f"INSERT INTO {T} (a, b) VALUES (1, 'x'), (2, DEFAULT)",
    f"INSERT INTO TABLE {T} BY NAME SELECT 1 AS a",
    f"INSERT OVERWRITE {T} PARTITION (p = 1, q) SELECT * FROM s WHERE x",
    f"INSERT INTO {T} REPLACE WHERE a > 1 AND b < 2 SELECT 1, 2",
    f"INSERT INTO {T} BY NAME REPLACE USING (a, b) SELECT 1 AS a, 2 AS b",
    (
        f"CREATE TABLE {T} (a INT NOT NULL COMMENT 'x', b STRUCT<c: ARRAY<INT>, d: MAP<STRING, INT>> "
        "DEFAULT NULL, c BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 INCREMENT BY 2), e DATE "
        "GENERATED ALWAYS AS (CAST(a AS DATE))) USING delta PARTITIONED BY (a) COMMENT 'c' TBLPROPERTIES"
        " ('a' = 'b', c.d = 1) LOCATION '/y'"
    ),
    f"CREATE OR REPLACE TABLE {T} USING delta CLUSTER BY (a, b.c) AS SELECT 1 AS a, 2 AS b",
    f"CREATE TABLE IF NOT EXISTS {T} LIKE other",
    f"REPLACE TABLE {T} (a INT) USING delta",
    f"ALTER TABLE {T} ADD COLUMNS (a.b INT COMMENT 'x' AFTER c, d STRING FIRST)",
    f"ALTER TABLE {T} RENAME COLUMN a.b TO c",
    f"ALTER TABLE {T} DROP COLUMNS (a, b.c)",
    f"ALTER TABLE {T} ALTER COLUMN a TYPE BIGINT",
    f"ALTER TABLE {T} ALTER COLUMN a SET NOT NULL",
    f"ALTER TABLE {T} ALTER COLUMN a COMMENT 'x'",
    f"ALTER TABLE {T} SET TBLPROPERTIES ('a' = 'b', c.d = true)",
    f"ALTER TABLE {T} UNSET TBLPROPERTIES IF EXISTS ('a', b.c)",
    f"ALTER TABLE {T} ADD CONSTRAINT x CHECK (a > 0 AND b IS NOT NULL)",
    f"ALTER TABLE {T} DROP CONSTRAINT IF EXISTS x",
    f"ALTER TABLE {T} CLUSTER BY (a, b)",
    f"ALTER TABLE {T} CLUSTER BY NONE",
    f"ALTER TABLE {T} REPLACE COLUMNS (a INT, b STRING)",
    f"TRUNCATE TABLE {T}",
    f"DESCRIBE TABLE EXTENDED {T}",
    f"DESC {T} a.b",
    f"SHOW TBLPROPERTIES {T} ('a')",
    f"SHOW COLUMNS IN {T}",
    f"COMMENT ON TABLE {T} IS 'x'",
    f"REFRESH TABLE {T}",
    f"DROP TABLE IF EXISTS {T}",
    f"DELETE FROM {T} WHERE EXISTS (SELECT 1 FROM u WHERE u.`a``b` = id) OR c NOT LIKE 'x!%' ESCAPE '!' -- why",
    f"UPDATE {T} SET a = (SELECT max(a) FROM {T} VERSION AS OF 1), b = x[0]::STRUCT<y: INT>.y || r'\\d'",
    (
        f"MERGE INTO {T} USING {T} s ON s.a <=> 1 WHEN MATCHED AND CASE WHEN s.b THEN true END THEN "
        "UPDATE SET a = (SELECT 1), `b c` = DEFAULT WHEN NOT MATCHED BY TARGET AND s.c IS NOT NULL THEN INSERT (a) "
        "VALUES (if(s.a, 1, 2))"
    ),
    f"INSERT INTO {T} AS x BY NAME REPLACE USING (a) SELECT 1 AS a",
    f"INSERT INTO {T} x REPLACE USING (a) SELECT 1 AS a",
    f"INSERT WITH SCHEMA EVOLUTION INTO {T} BY NAME SELECT 1 AS a",
    f"INSERT OVERWRITE TABLE {T} PARTITION (p = DATE'2020-01-01', q = -1) (a, b) VALUES (1, 2)",
    f"INSERT INTO {T} WITH x AS (SELECT 1 AS a) SELECT * FROM x",
    f"INSERT INTO {T} TABLE src",
    f"INSERT INTO {T} FROM src SELECT a WHERE b |> LIMIT 1",
    f"INSERT INTO {T} SELECT /*+ COALESCE(1) */ * FROM s TABLESAMPLE (10 PERCENT) x PIVOT (sum(a) FOR b IN (1, 2))",
    f"INSERT INTO {T} (SELECT a FROM s TIMESTAMP AS OF '2020-01-01' /* x /* y */ z */ LATERAL VIEW explode(b) e AS c)",
    (
        f"CREATE TABLE {T} (a STRING COLLATE UTF8_BINARY, b INTERVAL DAY TO SECOND, c TIMESTAMP WITHOUT TIME ZONE, "
        "d VARIANT, CONSTRAINT x CHECK (a > 0)) USING delta PARTITIONED BY (e INT)"
    ),
    f"CREATE TABLE {T} PARTITIONED BY (a) LOCATION '/y' SELECT 1 AS a",
    f"ALTER TABLE {T} CHANGE COLUMN a a BIGINT COMMENT 'x' AFTER b",
    f"ALTER TABLE {T} ALTER a.b SET DEFAULT 1 + 2",
    f"ALTER TABLE {T} ALTER COLUMN a DROP DEFAULT",
    f"ALTER TABLE {T} ALTER COLUMN a FIRST",
    f"SHOW COLUMNS FROM {T}",
    f"DESCRIBE TABLE EXTENDED {T} AS JSON",
    f"CACHE LAZY TABLE v OPTIONS ('storageLevel' = 'MEMORY_ONLY') AS SELECT * FROM {T}",
    f"UNCACHE TABLE IF EXISTS {T}",
    f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW v (a, b) COMMENT 'x' AS SELECT * FROM {T}",
    # queries, in which the tables are looked for
    (
        f"WITH x AS (SELECT a FROM {T}), y (b) AS (TABLE {T}) SELECT /*+ BROADCAST(x) */ x.a, (SELECT max(c) FROM {T}) "
        f"FROM x LEFT JOIN {T} VERSION AS OF 3 t ON x.a = t.a, LATERAL (SELECT * FROM {T} u WHERE u.a = t.a) w "
        f"WHERE x.a IS DISTINCT FROM 1 AND extract(DAY FROM d) IN (SELECT b FROM y) ORDER BY 1"
    ),
    f"SELECT * FROM {T} TABLESAMPLE (3 ROWS) t PIVOT (sum(a) AS s FOR (b, c) IN ((1, 2) AS x)) UNION ALL VALUES (1)",
    f"SELECT * FROM {T} TIMESTAMP AS OF current_date() - INTERVAL '1' DAY UNPIVOT (v FOR n IN (a, b)) LIMIT 1",
    f"FROM {T} |> WHERE a > 1 |> JOIN {T} u USING (a) |> SELECT a",
    f"SELECT trim(BOTH 'x' FROM a), delta.`/x/t` FROM ({T} CROSS JOIN (SELECT * FROM {T})) WINDOW w AS (ORDER BY a)",
    f"EXPLAIN EXTENDED SELECT a FROM {T} GROUP BY a HAVING count(*) > 1",
)
# of Spark from 4.3 on
OF_SPARK_4_3 = (f"COMMENT ON COLUMN {T}.a.b IS NULL",)
# of Delta alone
OF_DELTA = (
    f"OPTIMIZE {T} WHERE p = 1 ZORDER BY (a, b.c)",
    f"OPTIMIZE {T} FULL",
    "OPTIMIZE '/x/t'",
    f"VACUUM {T} RETAIN 168 HOURS DRY RUN",
    "VACUUM '/x/t' LITE",
    f"VACUUM {T} USING INVENTORY (SELECT * FROM x) RETAIN 1 HOURS",
    f"REORG TABLE {T} WHERE p = 1 APPLY (PURGE)",
    f"REORG TABLE {T} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    f"RESTORE TABLE {T} TO VERSION AS OF 1",
    f"RESTORE {T} TO TIMESTAMP AS OF '2020-01-01'",
    "CONVERT TO DELTA parquet.`/x` NO STATISTICS PARTITIONED BY (a INT, b STRING)",
    f"DESCRIBE HISTORY {T} LIMIT 3",
    f"DESC DETAIL {T}",
    f"GENERATE symlink_format_manifest FOR TABLE {T}",
    f"ALTER TABLE {T} DROP FEATURE deletionVectors TRUNCATE HISTORY",
    f"ALTER TABLE {T} CHANGE COLUMN a.b SYNC IDENTITY",
    f"CREATE TABLE {T} SHALLOW CLONE delta.`/y` VERSION AS OF 1 TBLPROPERTIES ('a' = 'b') LOCATION '/x/t'",
    f"CREATE OR REPLACE TABLE {T} SHALLOW CLONE s TIMESTAMP AS OF '2020-01-01'",
    f"CREATE TABLE IF NOT EXISTS {T} SHALLOW CLONE s",
)
_WORDS = (
    "DELETE", "FROM", "WHERE", "SET", "MERGE", "USING", "ON", "WHEN", "MATCHED", "NOT", "BY", "SOURCE", "THEN",
    "INSERT", "VALUES", "TABLE", "AS", "AND", "*", "(", ")", ",", ".", "=", "==", ";", "'x'", '"y"', "`z`", "a", "1",
    "-1", "2.5", "NULL", "DEFAULT", "IN", "/* c */", "-- c\n", "/*+ BROADCAST(t) */", "é", "`a``b`", "'it''s'", "''",
    "r'\\'", "'\\''", "IF", "EXISTS", "COLUMN", "TO", "COMMENT", "FIRST", "SELECT", "WITH", "CASE", "END", ":x", "?",
    "::", "[", "]", "<", ">", "@v1", "\xa0", "INT", "ARRAY", "UPDATE", "\n",
)  # fmt: skip
# in what the reference's parser takes more: predicates that it reads when they run, hints, keys of two strings;
# and where it takes less: times that are not strings, raw strings, properties without a sign, names of partitions
_TAKES_MORE = re.compile(
    r"\b(?:OPTIMIZE|REORG)\b.*\bWHERE\b|\bINVENTORY\b|\bCHECK\b|/\*\+|TBLPROPERTIES\b.*['\"]\W+['\"]",
    re.IGNORECASE | re.DOTALL,
)
_TAKES_LESS = re.compile(r"\bAS\W+OF\b|\br'|\bTBLPROPERTIES\b|\bCONVERT\b", re.IGNORECASE)
# what only asks
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "EXPLAIN")
_BLANKS = ("/* ' */", "--`\n", "/*/* x */*/", "/*+ a */", ";")


def drawn(number: int, seed: str, statements: Sequence[str]) -> Iterator[str]:
    """The statements, and so many texts out of them: tokens lost, doubled, swapped, replaced, new, in another case."""
    yield from statements
    draw = random.Random(seed)
    whole = [[token.text for token in tokenize(text, statement=True)[:-1]] for text in statements]
    for _ in range(number):
        tokens = list(draw.choice(whole))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            _change(draw, tokens)
        yield " ".join(tokens)


def _change(draw: random.Random, tokens: list[str]) -> None:
    place = draw.randrange(len(tokens) or 1)
    kind = draw.randrange(7) if len(tokens) > 1 else 3
    if kind == 0:
        tokens.pop(place)
    elif kind == 1:
        tokens.insert(place, tokens[place])
    elif kind == 2:
        tokens[place - 1], tokens[place] = tokens[place], tokens[place - 1]
    elif kind == 3:
        tokens.insert(place, draw.choice(_WORDS))
    elif kind == 4:
        tokens[place] = draw.choice(_WORDS)
    elif kind == 5:
        tokens.insert(place, draw.choice(_BLANKS))
    else:
        tokens[place] = tokens[place].replace("'", '"') if tokens[place][0] in "'`" else tokens[place].swapcase()


class Parsers:
    """``spark``: a classic session, whose parser is asked for nothing but syntax. ``of_reference``: it is its own."""

    def __init__(self, spark: Any, *, of_reference: bool = False) -> None:
        self._parser = spark._jsparkSession.sessionState().sqlParser()
        self._of_reference = of_reference

    def disagreement(self, text: str) -> str | None:
        """In words, where one takes a statement that the other does not, or both cut it differently.

        None for a statement of Spark's alone, and for one that we refuse by its name.
        """
        parsed, ours = None, None
        try:
            parsed = parse_statement(text)
        except UnsupportedOperationError:
            return None
        except DeltaError as error:
            assert error.message.strip(), text
            ours = error.code
            if ours == "UNBOUND_SQL_PARAMETER" or "called case stands in" in error.message:
                return None  # Spark says it later; and to Spark CASE may be a column before WHEN
            if self._of_reference and re.search(r"near '[()]'", error.message):
                return None  # there parentheses may be names
        theirs = self._refused("parsePlan", text)
        if parsed is not None and isinstance(parsed.statement, PassThrough):
            return self._other_tables(text, parsed.statement) if theirs is None else None
        if parsed is not None:
            ours = next(filter(None, (self._refused(kind, piece) for kind, piece in pieces(parsed))), None)
            if self._of_reference and ours is None and theirs is not None:
                theirs = self._refused("parsePlan", _in_backticks(text))
        if (ours is None) != (theirs is None):
            known = self._of_reference and (_TAKES_MORE if theirs is None else _TAKES_LESS).search(text)
            return None if known else f"{text!r}: ours {ours}, theirs {theirs}"
        return self._cut_otherwise(text, parsed.statement) if parsed is not None and theirs is None else None

    def _refused(self, kind: str, text: str) -> str | None:
        """The code; None for a text that is taken."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import ParseException

        try:
            getattr(self._parser, kind)(text)
        except ParseException as error:
            return error.getCondition() or "PARSE_SYNTAX_ERROR"
        except Py4JJavaError:
            return "INTERNAL_ERROR"  # the reference, of types
        return None

    def _other_tables(self, text: str, found: PassThrough) -> str | None:
        """Where a query names tables by path."""
        if not found.verb.startswith(_QUERIES):
            return None
        plan = self._parser.parsePlan(text)
        while plan.getClass().getSimpleName() == "ExplainCommand":
            plan = plan.logicalPlan()
        theirs = plan.toString().lower().count("unresolvedrelation [delta, /x/t]")
        ours = sum(isinstance(span.table, TableReference) and span.table.path == "/x/t" for span in found.tables)
        return None if ours == theirs else f"{text!r}: tables ours {ours}, theirs {theirs}"

    def _cut_otherwise(self, text: str, found: Any) -> str | None:
        if not isinstance(found, (Delete, Update, Merge, Insert, Create)):
            return None
        plan = self._parser.parsePlan(text)
        is_query = isinstance(found, (Insert, Create))
        parse = self._parser.parsePlan if is_query else self._parser.parseExpression
        if is_query and found.query is not None and self._refused("parsePlan", found.query.text):
            return None  # it has a name, as in FROM
        ours = [_shown(parse(piece.text)) for piece in _cut(found)]
        theirs = [_shown(piece) for piece in (_cut_by_spark(plan) if not is_query else [plan.query()] if ours else [])]
        return None if ours == theirs else f"{text!r}: ours {ours}, theirs {theirs}"


def _shown(tree: Any) -> str:
    return re.sub(r"#\d+", "", tree.toString())


def _cut(found: Any) -> Iterator[SqlText]:
    """The expressions of a change of rows in the order of its text, or the query."""
    if isinstance(found, (Insert, Create)):
        yield from (found.query,) if found.query is not None else ()
        return
    if found.condition is not None:
        yield found.condition
    for inner in getattr(found, "clauses", ()):
        yield from _cut(inner)
    yield from (one.value for one in getattr(found, "assignments", None) or ())


def _cut_by_spark(plan: Any) -> Iterator[Any]:
    kind = plan.getClass().getSimpleName()
    if kind == "DeleteFromTable":
        # without WHERE all rows go
        yield from () if plan.condition().toString() == "true" else (plan.condition(),)
    elif kind == "MergeIntoTable":
        yield plan.mergeCondition()
        for actions in (plan.matchedActions(), plan.notMatchedActions(), plan.notMatchedBySourceActions()):
            for action in _items(actions):
                yield from _cut_by_spark(action)
    else:
        yield from (plan.condition().get(),) if plan.condition().isDefined() else ()
        if kind in ("UpdateTable", "UpdateAction", "InsertAction"):
            yield from (one.value() for one in _items(plan.assignments()))


def _items(sequence: Any) -> Iterator[Any]:
    return map(sequence.apply, range(sequence.size()))


def _in_backticks(text: str) -> str:
    """The text without comments, and with names of several parts quoted: the reference reserves words for itself."""
    tokens = tokenize(text, statement=True)[:-1]
    shown = [token.text for token in tokens]
    for number, token in enumerate(tokens):
        beside = shown[number - 1 : number] + shown[number + 1 : number + 2]
        if token.kind == "word" and "." in beside:
            shown[number] = f"`{token.text}`"
    return " ".join(shown)


def pieces(parsed: ParsedStatement) -> Iterator[tuple[str, str]]:
    """The texts of a statement that Spark parses when it runs: the parser's method, and the text."""
    yield from _pieces(parsed, parsed.statement)


def _pieces(parsed: ParsedStatement, statement: Any) -> Iterator[tuple[str, str]]:
    if isinstance(statement, str):
        return  # the name of a column
    for name in ("condition", "replace_where", "value", "default", "generated", "timestamp"):
        piece = getattr(statement, name, None)
        if isinstance(piece, SqlText):
            yield "parseExpression", parsed.expression(piece)
    for _, value in (*(getattr(statement, "constraints", ())), *(getattr(statement, "partition", None) or ())):
        if isinstance(value, SqlText):
            yield "parseExpression", parsed.expression(value)
    for name in ("query", "source", "inventory"):
        piece = getattr(statement, name, None)
        if isinstance(piece, SqlText):
            yield "parsePlan", piece.text.join(QUERY_ALONE)
    if isinstance(getattr(statement, "data_type", None), str):
        yield "parseDataType", statement.data_type
    if isinstance(getattr(statement, "partition_schema", None), str):
        yield "parseTableSchema", statement.partition_schema
    for name in ("clauses", "assignments", "columns"):
        for inner in getattr(statement, name, None) or ():
            yield from _pieces(parsed, inner)
    for name in ("target", "source"):
        if isinstance(getattr(statement, name, None), TableReference):
            yield from _pieces(parsed, getattr(statement, name))
