"""The life of a table, in the shape of LST-Bench: load, change, query, travel in time and optimize, session by session.

Each side has a table of its own, by the same statements. The sides run in turn, step by step. The order changes with
each session. Nothing starts again, so a step that changes the table has one measure a session, a query ``rounds``.
The first session is also the warm-up: growth is the last session over the second.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import delta_pyds
from tests.bench.measure import Side, say
from tests.bench.peers.goals import REFERENCE, STATEMENTS
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.session import clear_reference
from tests.bench.peers.settings import PeerSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = (
    "id, CAST(id % 1000 AS INT) AS customer, CAST(id * 7919 % 100000 AS DECIMAL(12, 2)) AS price,"
    " CONCAT('comment of row ', id) AS comment, DATE_ADD(DATE '2024-01-01', CAST(id % 365 AS INT)) AS day"
)
_QUERY = (
    "SELECT MONTH(day) AS m, COUNT(*) AS n, SUM(price) AS total, MAX(comment) AS last FROM {t}"
    " WHERE customer < 500 GROUP BY MONTH(day) ORDER BY m"
)
_PAIR = Pair(STATEMENTS, REFERENCE)


def life(spark: SparkSession, settings: PeerSettings, results: Results) -> None:
    """All sessions; answers must be the same on both sides after every step."""
    home = settings.scratch / "life"
    shutil.rmtree(home, ignore_errors=True)
    clear_reference(spark)
    tables = {side: home / str(number) for number, side in enumerate((STATEMENTS, REFERENCE))}
    run: dict[str, Callable[[str], DataFrame]] = {
        STATEMENTS: lambda sql: delta_pyds.sql(spark, sql),
        REFERENCE: spark.sql,
    }
    for side, path in tables.items():
        run[side](
            f"CREATE TABLE delta.`{path}` (id BIGINT, customer INT, price DECIMAL(12, 2), comment STRING, day DATE)"
            " USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        ).collect()
    found: dict[str, dict[int, dict[str, Side]]] = {}
    version = 0
    for session in range(settings.sessions):
        order = list(tables)[:: -1 if session % 2 else 1]
        steps = _steps(settings, session, version)
        for step, statements in steps.items():
            say(f"session {session + 1}: {step}")
            took = {side: Side() for side in tables}
            for _ in range(settings.rounds if len(statements) == 1 and statements[0].startswith("SELECT") else 1):
                answers = {}
                for side in order:
                    texts = [text.format(t=f"delta.`{tables[side]}`") for text in statements]
                    begin = time.perf_counter()
                    rows = [run[side](text).collect() for text in texts]
                    took[side].seconds.append(time.perf_counter() - begin)
                    answers[side] = rows[-1]
                _require_same(step, statements, answers)
            found.setdefault(step, {})[session] = took
        state = {side: run[side](_STATE.format(t=f"delta.`{path}`")).collect() for side, path in tables.items()}
        _require_same("the whole session", [_STATE], state)
        history = {side: len(list((path / "_delta_log").glob("*.json"))) for side, path in tables.items()}
        version = version or settings.commits_of_a_session
        for step in steps:
            results.add("life of a table", f"session {session + 1}, {step}", found[step][session], [_PAIR])
        results.note(f"session {session + 1} ends with " + _counted(history))
    _growth(results, found)
    shutil.rmtree(home, ignore_errors=True)


_STATE = "SELECT COUNT(*) AS n, SUM(id) AS ids, SUM(price) AS total FROM {t}"


def _steps(settings: PeerSettings, session: int, version: int) -> dict[str, list[str]]:
    """Statements of each step, ``{t}`` for the table. ``version``: that of time travel, 0 in the first session."""
    of_session = settings.life_rows // settings.sessions
    first = session * of_session
    batch = of_session // settings.commits_of_a_session
    loads = [
        f"INSERT INTO {{t}} SELECT {_COLUMNS} FROM RANGE({first + n * batch}, {first + (n + 1) * batch}, 1, 1)"
        for n in range(settings.commits_of_a_session)
    ]
    last = first + settings.commits_of_a_session * batch
    # of all rows so far one of a hundred, and as many new ones
    source = (
        f"SELECT {_COLUMNS} FROM (SELECT id * 100 + {session} AS id FROM RANGE({max(1, last // 100)})"
        f" UNION ALL SELECT id + 1000000000 + {session} * 1000000 AS id FROM RANGE({max(1, last // 100)}))"
    )
    merge = (
        f"MERGE INTO {{t}} AS t USING ({source}) AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET price = s.price + 1 WHEN NOT MATCHED THEN INSERT *"
    )
    travel = _QUERY.replace("{t}", f"{{t}} VERSION AS OF {version}") if version else ""
    return {
        f"load by {len(loads)} commits": loads,
        "query": [_QUERY],
        "merge of 1 %": [merge],
        "delete of 1 %": [f"DELETE FROM {{t}} WHERE id % 100 = {50 + session}"],
        "query after changes": [_QUERY],
        **({"query of the first session's version": [travel]} if travel else {}),
        "optimize": ["OPTIMIZE {t}"],
        "query after optimize": [_QUERY],
    }


def _require_same(step: str, statements: list[str], answers: Mapping[str, list[Any]]) -> None:
    if statements[-1].startswith("SELECT") and len(set(map(repr, answers.values()))) > 1:
        raise RuntimeError(f"{step}: the sides do not answer the same: {answers}")


def _counted(history: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} commits in the log of {side}" for side, count in history.items())


def _growth(results: Results, found: Mapping[str, Mapping[int, Mapping[str, Side]]]) -> None:
    """The last session over the second, for each step."""
    for step, sessions in found.items():
        first, last = max(1, min(sessions)), max(sessions)
        if last > first:
            early, late = sessions[first], sessions[last]
            took = {side: Side([late[side].median / early[side].median]) for side in late}
            results.add("growth over sessions", step, took, [_PAIR], "times")
