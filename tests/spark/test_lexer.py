"""Our lexer cuts texts where Spark's own cuts them, and what it refuses no parser of Spark's takes."""

from __future__ import annotations

import re
from random import Random

from py4j.java_gateway import get_field
from pyspark.sql import SparkSession

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import tokenize
from tests.support.sampling import exhaustive, seed

PIECES = (
    "reflect", "a", "_b1", "1", "1.", "1.5", ".5", "1e3", "1.e5", "1e", "12L", "1.5BD", "1_a",
    "1e+5", "2E-3D", "L", "BD", "\u00e9", "\u017f",
    "\u0130", "\u212a", "(", ")", "'", "''", '"', '""', "`", "``", "\\", "\\'", "\\\n", "\n", "\r", "\r\n", " ",
    "\u00a0", "\u2028", "\u200b", "--", "-", "/*", "*/", "/*+", "/", "*", "+", "//", "://", "a://", "r'", 'R"', "x'",
    "<", ">", "<=", ">=", "<>", "<=>", "!=", "==", "=", "!", "!<", "!>", "|", "||", "|>", "&", "<<", ">>>", "::", ":",
    "?", "->", "=>", ".", ",", "[", "]", "%", "/**/", "/*/**/*/", "-- x\\\n", "#",
)  # fmt: skip
_TOKEN = re.compile(r"\[@-?\d+,(\d+):(\d+)='.*?',<(\d+)>(,channel=\d+)?,\d+:\d+\]", re.DOTALL)


def test_texts_are_cut_where_spark_cuts_them(spark: SparkSession) -> None:
    random = Random(seed())
    parser = spark._jvm.org.apache.spark.sql.catalyst.parser
    streams = spark._jvm.org.antlr.v4.runtime.CharStreams
    names = parser.SqlBaseLexer.VOCABULARY
    foreign = {i for i in range(1, 800) if names.getSymbolicName(i) in ("UNRECOGNIZED", "HENT_START", "HENT_END")}
    agreed = 0
    for _ in range(20_000 if exhaustive() else 1_500):
        text = "".join(random.choice(PIECES) for _ in range(random.randrange(1, 9)))
        lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(streams.fromString(text)))
        lexer.removeErrorListeners()
        found = _TOKEN.findall(lexer.getAllTokens().toString())
        readable = not (any(int(kind) in foreign for *_, kind, _ in found))
        readable = readable and not get_field(lexer, "has_unclosed_bracketed_comment")
        theirs = [(int(first), int(last) + 1) for first, last, _, hidden in found if not hidden]
        try:
            ours = [(token.start, token.start + len(token.text)) for token in tokenize(text)[:-1]]
        except ExpressionError:
            assert not readable, (text, theirs)
        else:
            assert readable and ours == theirs, (text, ours, theirs)
            agreed += 1
    assert agreed > 300
