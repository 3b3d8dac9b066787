"""``%%deltapy`` in notebooks: SQL on Delta tables in its own cell.

Invariant: nothing of IPython is loaded here; a notebook that says ``%load_ext delta_pyds`` brings it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds import html_table
from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.spark.sql.run import sql

MAGIC = "deltapy"
_MOST_ROWS = 20
_USAGE = "%%deltapy [--into NAME] [--args NAME] [--limit ROWS]"


def load_ipython_extension(ipython: Any) -> None:
    """Give a notebook ``%%deltapy`` and ``%deltapy``; ``%load_ext delta_pyds`` calls it.

    A cell holds statements as ``delta_pyds.sql`` takes them, separated by semicolons; the answer of the last one is
    shown. The session is the variable ``spark``, or else the active one. In the line of ``%%deltapy``, ``--into df``
    keeps the answer as a DataFrame, ``--args wanted`` names the variable with the values of ``:name`` or ``?``, and
    ``--limit 100`` is the number of rows to show. The magic raises an ``OptionError`` for an invalid option, and the
    errors of ``delta_pyds.sql``.

    Args:
        ipython: The shell of the notebook, which IPython gives.

    >>> get_ipython().run_line_magic("load_ext", "delta_pyds")
    >>> get_ipython().run_cell_magic("deltapy", "--into df", "SELECT city, count(*) FROM delta.`/data/t` GROUP BY 1")
    """

    def deltapy(line: str, cell: str | None = None) -> QueryResult | None:
        options = {} if cell is None else _options(line)
        return _run(ipython.user_ns, line if cell is None else cell, options)

    ipython.register_magic_function(deltapy, "line_cell", MAGIC)


@dataclass(frozen=True)
class QueryResult:
    """The result of a statement: ``frame``, and its first rows, which a notebook shows as a table."""

    frame: DataFrame
    rows: tuple[Any, ...]
    more: bool

    def __repr__(self) -> str:
        lines = [" | ".join(self.frame.columns), *(" | ".join(map(str, row)) for row in self.rows)]
        return "\n".join([*lines, *([f"(the first {len(self.rows)} rows)"] if self.more else [])])

    def _repr_html_(self) -> str:
        caption = f"the first {len(self.rows)} rows" if self.more else ""
        return html_table.table(self.frame.columns, self.rows, caption=caption, most=len(self.rows) or 1)


def _run(variables: dict[str, Any], text: str, options: Mapping[str, str]) -> QueryResult | None:
    args = _variable(variables, options["args"]) if "args" in options else None
    limit = _limit(options.get("limit"))
    spark = _session(variables)
    statements = statements_of(text)
    if not statements:
        raise OptionError(f"the cell has no statement. Write SQL below {_USAGE}.", option="cell")
    for statement in statements:
        frame = sql(spark, statement, args)
    if "into" in options:
        variables[options["into"]] = frame
    if not frame.columns:
        return None
    rows = frame.limit(limit + 1).collect()
    return QueryResult(frame, tuple(tuple(row) for row in rows[:limit]), len(rows) > limit)


def statements_of(text: str) -> list[str]:
    """The statements between semicolons. A script of Spark, ``BEGIN ... END``, is one; so is invalid SQL."""
    try:
        tokens = tokenize(text, statement=True)
    except ExpressionError:
        return [text]
    if tokens[0].is_word("BEGIN"):
        return [text]
    ends = [token.start for token in tokens if token.is_symbol(";")]
    pieces = [text[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True)]
    # a comment alone is not a statement
    return [piece for piece in pieces if tokenize(piece, statement=True)[0].kind != "end"]


def _options(line: str) -> dict[str, str]:
    try:
        words = shlex.split(line)
    except ValueError as e:
        raise OptionError(f"the line of %%deltapy cannot be read ({e}): {_USAGE}", option=line) from None
    names = [word.removeprefix("--") for word in words[0::2]]
    if len(words) % 2 or any(f"--{name}" != word for name, word in zip(names, words[0::2], strict=True)):
        raise OptionError(f"the line of %%deltapy is {line!r:.200}, but must be: {_USAGE}", option=line)
    found = dict(zip(names, words[1::2], strict=True))
    strange = found.keys() - {"into", "args", "limit"}
    if strange or len(found) < len(names):
        raise OptionError(f"%%deltapy has no option {sorted(strange)[:1]}, or has it twice: {_USAGE}", option=line)
    if not found.get("into", "df").isidentifier():
        raise OptionError(f"--into is {found['into']!r:.200}, but must be the name of a variable.", option="into")
    return found


def _variable(variables: Mapping[str, Any], name: str) -> Any:
    if name not in variables:
        raise OptionError(f"--args is {name!r:.200}, but there is no such variable.", option="args")
    return variables[name]


def _limit(given: str | None) -> int:
    if given is None:
        return _MOST_ROWS
    if not given.isascii() or not given.isdigit() or not 0 < int(given[:10]) <= 100_000:
        raise OptionError(f"--limit is {given!r:.200}, but must be a number of rows, 1 to 100,000.", option="limit")
    return int(given)


def _session(variables: Mapping[str, Any]) -> SparkSession:
    found = variables.get("spark")
    if not hasattr(found, "dataSource"):
        found = SparkSession.getActiveSession()
    if found is None:
        raise OptionError(
            "there is no session: make one, spark = SparkSession.builder.getOrCreate(), and run the cell again.",
            option="spark",
        )
    session: SparkSession = found
    return session
