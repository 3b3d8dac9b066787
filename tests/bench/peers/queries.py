"""All queries of TPC-H and TPC-DS: this project beside the reference, Spark's Parquet reader, Sail and deltalake.

Every side opens its tables in each round. The reference reads names of its own catalog. ``delta_pyds.read`` makes a
view of each table that the query names. ``spark.sql`` after ``install`` reads the names of ``delta_pyds.create_table``,
in a process without the reference. That JVM runs the queries of one side, the other of three. So each query runs there
twice more, untimed, and both JVMs are equally warm. All answers must be the reference's, floating point numbers nearly.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds
from tests.bench.measure import Side, in_turn, say
from tests.bench.peers.dialect import without_limit
from tests.bench.peers.goals import DELTALAKE, NAMES, PARQUET, READ, REFERENCE, SAIL
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.rows import first_difference
from tests.bench.peers.sail import Engine, running, sail
from tests.bench.peers.settings import PeerSettings
from tests.bench.peers.suites import TPCDS, TPCH, Query, Suite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OURS = (READ, NAMES)
# READ, PARQUET and REFERENCE share a JVM. It runs a query so many times more than the JVM of NAMES.
_UNTIMED_RUNS = 2
# other engines sum floating point numbers, and round decimals, in their own way
_OTHER_ENGINE = 1e-4

Answers = dict[str, list[Any]]


def tpch(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All 22 queries."""
    _suite(spark, settings, results, TPCH)


def tpcds(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All 99 queries."""
    _suite(spark, settings, results, TPCDS)


def _suite(spark: SparkSession, settings: PeerSettings, results: Results, suite: Suite) -> None:
    tables = suite.tables(spark, settings)
    adapted: dict[str, list[int]] = {}
    medians: dict[str, dict[int, Side]] = {}
    with _reference_names(spark, suite, tables), _engines(settings, results, suite, tables) as engines:
        for query in suite.queries():
            if settings.queries and query.number not in settings.queries:
                continue
            for rule in query.rules:
                adapted.setdefault(rule, []).append(query.number)
            took, refused = _measured(spark, settings, suite, query, tables, engines)
            for side, measured in took.items():
                medians.setdefault(side, {})[query.number] = measured
            results.add(suite.name, f"{suite.name} {query.number}", took, _pairs(took))
            for side, why in refused.items():
                results.note(f"{suite.name} {query.number}: {side} cannot: {why}")
    results.about({f"{suite.name}: texts adapted to Spark": _adapted(adapted)})
    _summary(suite, results, medians)


def _measured(
    spark: SparkSession, settings: PeerSettings, suite: Suite, query: Query, tables: Mapping[str, Path],
    engines: Mapping[str, Engine],
) -> tuple[dict[str, Side], dict[str, str]]:  # fmt: skip
    """The times of each side, and why other engines cannot run the query."""
    what = f"{suite.name} {query.number}"
    say(what)
    answers: Answers = {}
    named = {name: tables[name] for name in query.tables}
    sides = _sides(spark, suite, query, named, answers)
    sides[NAMES] = partial(_by_names, engines[NAMES], query.sql, answers)
    others: dict[str, Callable[[], Any]] = {}
    if settings.other_engines:
        others[DELTALAKE] = partial(_by_deltalake, query, named, answers)
    if SAIL in engines:
        others[SAIL] = partial(_by_engine, engines[SAIL], query.sql, SAIL, answers)
    refused = {}
    for side, run in others.items():
        try:
            run()
        except Exception as error:  # other engines raise their own errors
            refused[side] = str(error).strip().split("\n")[0][:150]
            continue
        sides[side] = run
    took = in_turn(sides, settings.rounds)
    for side in took:
        difference = _difference(spark, suite, query, side, named, answers, engines)
        if difference and side in _OURS:
            raise RuntimeError(f"{what}: {side} and {REFERENCE} answer differently: {difference}")
        if difference:
            refused[side] = f"another answer, {difference[:150]}"
    return {side: measured for side, measured in took.items() if side not in refused}, refused


def _pairs(took: Mapping[str, Side]) -> list[Pair]:
    floor = PARQUET if PARQUET in took else None
    pairs = [Pair(side, REFERENCE, floor) for side in _OURS]
    return pairs + [Pair(READ, side) for side in (PARQUET, SAIL, DELTALAKE) if side in took]


def _summary(suite: Suite, results: Results, medians: Mapping[str, Mapping[int, Side]]) -> None:
    """The geometric mean of all ratios, and the query of the largest one."""
    if REFERENCE not in medians:
        return
    theirs = {number: side.median for number, side in medians[REFERENCE].items()}
    for side in [side for side in medians if side != REFERENCE]:
        ours = {number: measured.median for number, measured in medians[side].items()}
        same = sorted(ours)
        what = f"{len(same)} queries, geometric mean"
        took = {side: _mean(ours[n] for n in same), REFERENCE: _mean(theirs[n] for n in same)}
        results.add(f"{suite.name}: all queries", what, took, [Pair(side, REFERENCE)])
        if side in _OURS:
            worst = max(same, key=lambda n: ours[n] / theirs[n])
            took = {side: Side([ours[worst]]), REFERENCE: Side([theirs[worst]])}
            results.add(f"{suite.name}: worst query", f"{suite.name} {worst}", took, [Pair(side, REFERENCE)])


def _mean(seconds: Iterator[float]) -> Side:
    logs = [math.log(each) for each in seconds]
    return Side([math.exp(sum(logs) / len(logs))])


def _adapted(rules: Mapping[str, Sequence[int]]) -> str:
    return "; ".join(f"{rule} ({len(numbers)} queries)" for rule, numbers in rules.items())


# --- sides


def _sides(
    spark: SparkSession, suite: Suite, query: Query, tables: Mapping[str, Path], answers: Answers
) -> dict[str, Callable[[], Any]]:
    views = {READ: partial(delta_pyds.read, spark), PARQUET: spark.read.parquet}
    sides: dict[str, Callable[[], Any]] = {
        side: partial(_by_views, spark, query.sql, tables, load, side, answers) for side, load in views.items()
    }
    sides[REFERENCE] = partial(_by_reference, spark, suite, query.sql, answers)
    return sides


def _by_views(
    spark: SparkSession, sql: str, tables: Mapping[str, Path], load: Callable[[str], DataFrame], side: str,
    answers: Answers,
) -> tuple[float]:  # fmt: skip
    begin = time.perf_counter()
    for name, path in tables.items():
        load(str(path)).createOrReplaceTempView(name)
    answers[side] = spark.sql(sql).collect()
    seconds = time.perf_counter() - begin
    for name in tables:  # a temporary view would hide the other sides' names
        spark.catalog.dropTempView(name)
    return (seconds,)


def _by_reference(spark: SparkSession, suite: Suite, sql: str, answers: Answers) -> tuple[float]:
    spark.catalog.setCurrentDatabase(suite.extension)
    try:
        begin = time.perf_counter()
        answers[REFERENCE] = spark.sql(sql).collect()
        return (time.perf_counter() - begin,)
    finally:
        spark.catalog.setCurrentDatabase("default")


def _by_deltalake(query: Query, tables: Mapping[str, Path], answers: Answers) -> None:
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    builder = QueryBuilder()
    for name, path in tables.items():
        builder.register(name, DeltaTable(str(path)))
    found = pa.table(builder.execute(query.original.strip().rstrip(";")).read_all())
    answers[DELTALAKE] = [tuple(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


def _by_names(engine: Engine, sql: str, answers: Answers) -> tuple[float]:
    for _ in range(_UNTIMED_RUNS):
        engine.query(sql)
    return _by_engine(engine, sql, NAMES, answers)


def _by_engine(engine: Engine, sql: str, side: str, answers: Answers) -> tuple[float]:
    seconds, answers[side] = engine.query(sql)
    return (seconds,)


# --- names


@contextmanager
def _reference_names(spark: SparkSession, suite: Suite, tables: Mapping[str, Path]) -> Iterator[None]:
    """A database of Spark's catalog with the reference's names."""
    spark.sql(f"CREATE DATABASE {suite.extension}")
    try:
        for name, path in tables.items():
            spark.sql(f"CREATE TABLE {suite.extension}.{name} USING delta LOCATION '{path}'")
        yield
    finally:
        spark.sql(f"DROP DATABASE {suite.extension} CASCADE")


@contextmanager
def _engines(
    settings: PeerSettings, results: Results, suite: Suite, tables: Mapping[str, Path]
) -> Iterator[dict[str, Engine]]:
    """Processes with names for the tables: a session after ``install``, and Sail where it was asked for."""
    scratch = settings.scratch / f"names-{suite.extension}"
    command = [sys.executable, "-m", "tests.bench.peers.names_process", str(scratch)]
    names = [f"CREATE TABLE {name} USING delta LOCATION '{path}'" for name, path in tables.items()]
    with ExitStack() as stack:
        engines = {NAMES: stack.enter_context(running(command, os.environ))}
        if settings.sail and settings.other_engines:
            engines[SAIL] = stack.enter_context(sail(settings.data))
            results.about({"Sail": engines[SAIL].version})
        for engine in engines.values():
            engine.run(names)
        yield engines


# --- answers


def _difference(
    spark: SparkSession, suite: Suite, query: Query, side: str, tables: Mapping[str, Path], answers: Answers,
    engines: Mapping[str, Engine],
) -> str:  # fmt: skip
    """Empty, or how the answer of ``side`` differs from the reference's."""
    theirs, ours = answers[REFERENCE], answers[side]
    if side in (SAIL, DELTALAKE):
        return first_difference(ours, theirs, ordered=False, relative=_OTHER_ENGINE)
    if not first_difference(ours, theirs, ordered="order by" in query.sql.lower()):
        return ""
    # rows that tie come in any order, and a limit takes any of them
    if not first_difference(ours, theirs, ordered=False):
        return ""
    whole: Answers = {}
    sql = without_limit(query.sql)
    _by_reference(spark, suite, sql, whole)
    if side == NAMES:
        _by_engine(engines[NAMES], sql, NAMES, whole)
    else:
        load = partial(delta_pyds.read, spark) if side == READ else spark.read.parquet
        _by_views(spark, sql, tables, load, side, whole)
    return first_difference(whole[side], whole[REFERENCE], ordered=False)
