"""Drawn tables, and queries of them as DataFrames, as SQL and of a plain model of rows."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from tests.support.table_builder import TableBuilder

Row = tuple[Any, ...]
NAN = float("nan")


@dataclass(frozen=True)
class Query:
    """The same question of a DataFrame, of the table ``t`` in SQL, and of a list of (id, x, d, p)."""

    sql: str
    spark: Callable[[DataFrame], DataFrame]
    model: Callable[[list[Row]], list[Row]]


def _greater(value: float | None, bound: float) -> bool:
    # NaN is Spark's greatest value
    return value is not None and (value != value or value > bound)


def _self_join(rows: list[Row]) -> list[Row]:
    return [(a[0], b[0]) for a in rows for b in rows if a[1] is not None and a[1] == b[1]]


def _sums(rows: list[Row]) -> list[Row]:
    found: dict[Any, list[int]] = {}
    for _, x, _, p in rows:
        entry = found.setdefault(p, [0, 0])
        entry[0] += 1
        entry[1] += 0 if x is None else x
    return [(p, n, s) for p, (n, s) in found.items()]


def _previous(rows: list[Row]) -> list[Row]:
    found = []
    last: dict[Any, Any] = {}
    for row in sorted(rows, key=lambda r: r[0]):
        found.append((row[0], last.get(row[3])))
        last[row[3]] = row[0]
    return found


QUERIES = [
    Query("SELECT * FROM t", lambda df: df, lambda rows: rows),
    Query("SELECT count(*) FROM t", lambda df: df.groupBy().count(), lambda rows: [(len(rows),)]),
    Query("SELECT x FROM t", lambda df: df.select("x"), lambda rows: [(r[1],) for r in rows]),
    Query(
        "SELECT id FROM t WHERE x = 3",
        lambda df: df.filter("x = 3").select("id"),
        lambda rows: [(r[0],) for r in rows if r[1] == 3],
    ),
    Query(
        "SELECT id FROM t WHERE x IS NULL",
        lambda df: df.filter("x IS NULL").select("id"),
        lambda rows: [(r[0],) for r in rows if r[1] is None],
    ),
    Query(
        "SELECT id FROM t WHERE d > 1",
        lambda df: df.filter("d > 1").select("id"),
        lambda rows: [(r[0],) for r in rows if _greater(r[2], 1)],
    ),
    Query(
        "SELECT id FROM t WHERE d = 0",
        lambda df: df.filter("d = 0").select("id"),
        lambda rows: [(r[0],) for r in rows if r[2] == 0],
    ),
    Query(
        "SELECT id, p FROM t WHERE p = 'a'",
        lambda df: df.filter("p = 'a'").select("id", "p"),
        lambda rows: [(r[0], r[3]) for r in rows if r[3] == "a"],
    ),
    Query(
        "SELECT id FROM t WHERE p <> 'a' OR x < 2",
        lambda df: df.filter("p <> 'a' OR x < 2").select("id"),
        lambda rows: [(r[0],) for r in rows if r[3] not in (None, "a") or (r[1] is not None and r[1] < 2)],
    ),
    Query(
        "SELECT id FROM t WHERE x = 1 UNION ALL SELECT id FROM t WHERE x = 2",
        lambda df: df.filter("x = 1").union(df.filter("x = 2")).select("id"),
        lambda rows: [(r[0],) for r in rows if r[1] in (1, 2)],
    ),
    Query(
        "SELECT a.id, b.id FROM t a JOIN t b ON a.x = b.x",
        lambda df: df.alias("a").join(df.alias("b"), F.col("a.x") == F.col("b.x")).select("a.id", "b.id"),
        _self_join,
    ),
    Query(
        "SELECT p, count(*), coalesce(sum(x), 0) FROM t GROUP BY p",
        lambda df: df.groupBy("p").agg(F.count("*"), F.coalesce(F.sum("x"), F.lit(0))),
        _sums,
    ),
    Query(
        "SELECT id FROM t ORDER BY id LIMIT 3",
        lambda df: df.orderBy("id").limit(3).select("id"),
        lambda rows: [(i,) for i in sorted(r[0] for r in rows)[:3]],
    ),
    Query(
        "SELECT id, lag(id) OVER (PARTITION BY p ORDER BY id) FROM t",
        lambda df: df.selectExpr("id", "lag(id) OVER (PARTITION BY p ORDER BY id) AS before"),
        _previous,
    ),
]

NUMBERS = st.one_of(st.none(), st.integers(0, 4))
FLOATS = st.sampled_from([None, 0.0, -0.0, 0.5, 2.0, NAN, float("inf")])
PARTS = st.sampled_from(["a", "b c", "ü=%", None])
WHERES: list[tuple[str | None, Callable[[Row], bool]]] = [
    (None, lambda _: True),
    ("x >= 2", lambda r: r[1] is not None and r[1] >= 2),
    ("p = 'a' OR d > 1", lambda r: r[3] == "a" or _greater(r[2], 1)),
    ("p IS NULL AND NOT x = 3", lambda r: r[3] is None and r[1] is not None and r[1] != 3),
]


@dataclass(frozen=True)
class Drawn:
    """``files``: rows of each file but for their ids; ``deleted``: for some of them, which rows go."""

    files: list[list[tuple[Any, Any, Any]]]
    deleted: list[tuple[int, list[int]]]
    mapped: bool
    partitioned: bool
    where: int
    queries: list[int]


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    files = draw(st.lists(st.lists(st.tuples(NUMBERS, FLOATS, PARTS), min_size=1, max_size=12), max_size=3))
    return Drawn(
        files,
        draw(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 11), min_size=1, max_size=8)), max_size=3)),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.integers(0, len(WHERES) - 1)),
        draw(st.lists(st.integers(0, len(QUERIES) - 1), min_size=2, max_size=4)),
    )


def write(drawn: Drawn, path: Path) -> TableBuilder:
    properties = {"delta.enableDeletionVectors": "true"}
    if drawn.mapped:
        properties["delta.columnMapping.mode"] = "name"
    table = TableBuilder(
        path,
        {"id": "long", "x": "integer", "d": "double", "p": "string"},
        partition_columns=["p"] if drawn.partitioned else [],
        properties=properties,
    )
    table.create()
    number = 0
    for content in drawn.files:
        rows = [{"id": number + i, "x": x, "d": d, "p": p} for i, (x, d, p) in enumerate(content)]
        number += len(rows)
        table.append(rows, row_group_size=4)
    for which, positions in drawn.deleted:
        active = table.active()
        if active:
            add = active[which % len(active)]
            if "deletionVector" not in add["add"]:
                count = int(add["add"]["stats"].split('"numRecords":')[1].split(",")[0].strip("}"))
                table.commit(table.delete_rows(add, sorted({i % count for i in positions})))
    return table


def plain(rows: list[Row]) -> Counter[str]:
    # whichever zero it is, both engines have to have the same one
    return Counter(map(repr, rows))


def one_answer(spark: SparkSession, scheme: str = "", *, number: int = 6, native: bool = True) -> None:
    """Draw tables. Each engine and SQL give the answers of the model. ``scheme``: of the tables' paths."""

    @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(tables())
    def check(drawn: Drawn) -> None:
        directory = Path(tempfile.mkdtemp())
        try:
            _one_answer(spark, write(drawn, directory / "t"), scheme, drawn, "native" if native else "auto")
        finally:
            shutil.rmtree(directory)

    check()


def _one_answer(spark: SparkSession, table: TableBuilder, scheme: str, drawn: Drawn, engine: str) -> None:
    where, matches = WHERES[drawn.where]
    path = f"{scheme}{table.path}"
    other = delta_pyds.read(spark, path, where=where, engine=engine)
    arrow = delta_pyds.read(spark, path, where=where, engine="arrow")
    named = f"(SELECT * FROM delta.`{path}`{f' WHERE {where}' if where else ''})"
    model = [row for r in table.expected_rows() if matches(row := (r["id"], r["x"], r["d"], r["p"]))]
    for number in drawn.queries:
        query = QUERIES[number]
        wanted = plain(query.model(model))
        text = re.sub(r"(?<=FROM |JOIN )t\b", named, query.sql)
        for way, rows in (
            (engine, query.spark(other)), ("arrow", query.spark(arrow)), ("SQL", delta_pyds.sql(spark, text)),
        ):  # fmt: skip
            assert plain([tuple(row) for row in rows.collect()]) == wanted, (way, query.sql)
