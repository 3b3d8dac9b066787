"""All queries of TPC-H with Comet: this project and Comet in one JVM, the reference as it is in another.

Both run the newest Spark that Comet has a JAR for. The reference writes the tables. For the tables with vectors it then
deletes one row in 20 of the large ones, by deletion vectors. Both sides read names of their catalog, and all answers
must be the same. Both processes together take some 4 GB of memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.bench.measure import Side, in_turn, say
from tests.bench.peers.dialect import without_limit
from tests.bench.peers.goals import COMET, REFERENCE
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.rows import first_difference
from tests.bench.peers.sail import Engine, running
from tests.bench.peers.settings import PeerSettings
from tests.bench.peers.suites import TPCH, Query, num_files
from tests.bench.tables import made_once
from tests.comet.environment import comet_environment, comet_jar, reference_jars, variables

WITHOUT_VECTORS, WITH_VECTORS = "without vectors", "with vectors"
# The tables that lose rows, and the columns that choose them.
_DELETED = {"lineitem": "l_orderkey, l_linenumber", "orders": "o_orderkey", "partsupp": "ps_partkey, ps_suppkey"}


def tpch(settings: PeerSettings, results: Results) -> None:
    """All 22 queries, over tables without and with deletion vectors."""
    try:
        jars = {COMET: comet_jar(), REFERENCE: reference_jars()}
    except LookupError as error:
        results.note(f"Not measured, because a JAR cannot be had: {error}")
        return
    with ExitStack() as stack:
        engines = {side: _engine(stack, settings, side, jar) for side, jar in jars.items()}
        results.about({COMET: engines[COMET].version})
        for kind in (WITHOUT_VECTORS, WITH_VECTORS):
            tables = _tables(engines[REFERENCE], settings, kind)
            for engine in engines.values():
                engine.run([f"CREATE TABLE {name} USING delta LOCATION '{path}'" for name, path in tables.items()])
            _queries(engines, settings, results, f"{TPCH.name} with Comet, {kind}")
            for engine in engines.values():
                engine.run([f"DROP TABLE {name}" for name in tables])


def _engine(stack: ExitStack, settings: PeerSettings, side: str, jar: Path) -> Engine:
    python = comet_environment()
    environment = stack.enter_context(variables(python, {}))
    arguments = json.dumps([side, str(settings.scratch / f"comet-{side.split()[0]}"), str(jar)])
    command = [str(python), "-m", "tests.bench.peers.comet_process", arguments]
    return stack.enter_context(running(command, environment))


def _tables(reference: Engine, settings: PeerSettings, kind: str) -> dict[str, Path]:
    generated = TPCH.generated(settings)
    folder = settings.data / f"tpch-comet-{settings.scale:g}" / kind.replace(" ", "-")

    def make(name: str, path: Path) -> None:
        source = generated / f"{name}.parquet"
        key = TPCH.keys[name]
        rows = f"SELECT /*+ REPARTITION_BY_RANGE({num_files(source)}, {key}) */ * FROM parquet.`{source}` SORT BY {key}"
        vectors = str(kind == WITH_VECTORS).lower()
        properties = f"TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
        statements = [f"CREATE TABLE delta.`{path}` USING delta {properties} AS {rows}"]
        if kind == WITH_VECTORS and name in _DELETED:
            statements.append(f"DELETE FROM delta.`{path}` WHERE pmod(hash({_DELETED[name]}), 20) = 3")
        reference.run(statements)

    return {name: made_once(folder / name, partial(make, name)) for name in TPCH.keys}


def _queries(engines: Mapping[str, Engine], settings: PeerSettings, results: Results, work: str) -> None:
    pairs = [Pair(COMET, REFERENCE)]
    medians: dict[str, list[float]] = {side: [] for side in engines}
    for query in TPCH.queries():
        if settings.queries and query.number not in settings.queries:
            continue
        say(f"{work}: {query.number}")
        answers: dict[str, Sequence[Sequence[object]]] = {}
        took = in_turn(
            {side: partial(_timed, engine, side, query.sql, answers) for side, engine in engines.items()},
            settings.rounds,
        )
        if difference := _difference(engines, query, answers):
            raise RuntimeError(f"{work}: in query {query.number} the sides answer differently: {difference}")
        results.add(f"{work}, each query", f"{TPCH.name} {query.number}", took, pairs)
        for side, measured in took.items():
            medians[side].append(measured.median)
    means = {side: Side([math.exp(sum(map(math.log, all_)) / len(all_))]) for side, all_ in medians.items()}
    results.add(work, f"{len(medians[COMET])} queries, geometric mean", means, pairs)


def _timed(engine: Engine, side: str, sql: str, answers: dict[str, Sequence[Sequence[object]]]) -> tuple[float]:
    seconds, answers[side] = engine.query(sql)
    return (seconds,)


def _difference(engines: Mapping[str, Engine], query: Query, answers: Mapping[str, Sequence[Sequence[object]]]) -> str:
    if not first_difference(answers[COMET], answers[REFERENCE], ordered=False):
        return ""
    # a limit takes any of the rows that tie
    whole = {side: engine.query(without_limit(query.sql))[1] for side, engine in engines.items()}
    return first_difference(whole[COMET], whole[REFERENCE], ordered=False)
