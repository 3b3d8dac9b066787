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
from delta_pyds.statements.kinds import Create, Delete, Insert, Merge, PassThrough, SqlText
from delta_pyds.statements.parse import QUERY_ALONE, parse_statement

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
)
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
    f"CREATE TABLE {T} SHALLOW CLONE delta.`/y` VERSION AS OF 1 TBLPROPERTIES ('a' = 'b') LOCATION '/x/t'",
    f"CREATE OR REPLACE TABLE {T} SHALLOW CLONE s TIMESTAMP AS OF '2020-01-01'",
    f"CREATE TABLE IF NOT EXISTS {T} SHALLOW CLONE s",
)
_WORDS = (
    "DELETE",
    "FROM",
    "WHERE",
    "SET",
    "MERGE",
    "USING",
    "ON",
    "WHEN",
    "MATCHED",
    "NOT",
    "BY",
    "SOURCE",
    "THEN",
    "INSERT",
    "VALUES",
    "TABLE",
    "AS",
    "AND",
    "*",
    "(",
    ")",
    ",",
    ".",
    "=",
    "==",
    ";",
    "'x'",
    '"y"',
    "`z`",
    "a",
    "1",
    "-1",
    "2.5",
    "NULL",
    "DEFAULT",
    "IN",
    "/* c */",
    "-- c\n",
    "/*+ BROADCAST(t) */",
    "é",
    "`a``b`",
    "'it''s'",
    "''",
    "r'\\'",
    "'\\''",
    "IF",
    "EXISTS",
    "COLUMN",
    "TO",
    "COMMENT",
    "FIRST",
    "SELECT",
    "WITH",
    "CASE",
    "END",
    ":x",
    "?",
    "::",
    "[",
    "]",
    "<",
    ">",
    "@v1",
    "\xa0",
    "INT",
    "ARRAY",
    "UPDATE",
    "\n",
)
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
    """``spark``: a classic session, whose parser is asked for nothing but syntax."""

    def __init__(self, spark: Any) -> None:
        self._parser = spark._jsparkSession.sessionState().sqlParser()

    def disagreement(self, text: str) -> str | None:
        """In words, where one takes a statement that the other does not, or both cut it differently.

        What is Spark's alone, and what we refuse by its name, is none.
        """
        found, ours = None, None
        try:
            found = parse_statement(text).statement
        except UnsupportedOperationError:
            return None
        except DeltaError as error:
            assert error.message.strip(), text
            ours = error.code
            if ours == "UNBOUND_SQL_PARAMETER":
                return None  # Spark says it later
        if isinstance(found, PassThrough):
            return None
        theirs = self._refused("parsePlan", text)
        if found is not None:
            ours = next(filter(None, (self._refused(kind, piece) for kind, piece in pieces(found))), None)
        if (ours is None) != (theirs is None):
            return f"{text!r}: ours {ours}, theirs {theirs}"
        return self._cut_otherwise(text, found) if theirs is None else None

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

    def _cut_otherwise(self, text: str, found: Any) -> str | None:
        if not isinstance(found, (Delete, Merge)) or found.condition is None:
            return None
        plan = self._parser.parsePlan(text)
        condition = plan.condition() if isinstance(found, Delete) else plan.mergeCondition()
        ours, theirs = (_shown(one) for one in (self._parser.parseExpression(found.condition.text), condition))
        return None if ours == theirs else f"{text!r}: ours {ours}, theirs {theirs}"


def _shown(expression: Any) -> str:
    return re.sub(r"#\d+", "", expression.toString())


def pieces(statement: Any) -> Iterator[tuple[str, str]]:
    """What Spark reads of a statement when it runs: by which of its parser's methods, and the text."""
    for name in ("condition", "replace_where", "value", "default", "generated"):
        piece = getattr(statement, name, None)
        if isinstance(piece, SqlText):
            yield "parseExpression", f"({piece.text})"
    if isinstance(statement, (Insert, Create)) and statement.query is not None:
        yield "parsePlan", statement.query.text.join(QUERY_ALONE)
    if isinstance(statement, Merge) and isinstance(statement.source, SqlText):
        yield "parsePlan", statement.source.text.join(QUERY_ALONE)
    if isinstance(getattr(statement, "data_type", None), str):
        yield "parseDataType", statement.data_type
    for name in ("clauses", "assignments", "columns"):
        for inner in getattr(statement, name, None) or ():
            yield from pieces(inner)
