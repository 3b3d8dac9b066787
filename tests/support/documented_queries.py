"""Queries as the reference's public documentation has them, reworded, over one table with a history.

Invariant: each has the same rows by path and by name, on classic sessions and on Spark Connect. ``<T>`` is the table as
SQL names it, ``<P>`` its path, ``<N>`` what ``table_changes`` takes.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Sql = Callable[[str], Any]
# hours ago, of each version
_AGES = (240, 216, 48, 1, 0.5)
_A, _B, _C, _D = (1, "click"), (2, "view"), (3, "buy"), (4, "view")

QUERIES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT * FROM <T>", [_A, (2, "VIEW"), _C, _D]),
    ("SELECT userId FROM <T> WHERE userId > 2 AND eventType LIKE 'v%'", [(4,)]),
    ("SELECT count(*), min(userId), max(userId) FROM <T>", [(4, 1, 4)]),
    ("SELECT * FROM <T> VERSION AS OF 1", [_A, (111, "gone"), _B]),
    ("SELECT * FROM <T>@v1 WHERE userId < 3", [_A, _B]),
    ("SELECT * FROM <T> TIMESTAMP AS OF date_sub(current_date(), 5)", [_A, (111, "gone"), _B]),
    ("SELECT count(*) FROM <T> TIMESTAMP AS OF current_timestamp() - INTERVAL 12 HOURS", [(5,)]),
    ("SELECT count(*) FROM <T> FOR SYSTEM_TIME AS OF '<5 DAYS AGO>'", [(3,)]),
    (
        ("SELECT count(DISTINCT userId) - (SELECT count(DISTINCT userId) FROM <T> TIMESTAMP AS OF "
        "date_sub(current_date(), 7)) AS new_customers FROM <T>"),
        [(1,)],
    ),
    (
        ("WITH earlier AS (SELECT * FROM <T> VERSION AS OF 2) SELECT b.userId, t.eventType FROM earlier b "
        "LEFT JOIN <T> AS t ON b.userId = t.userId WHERE b.userId > 3"),
        [(111, None), (4, "view")],
    ),
    ("SELECT userId FROM <T> VERSION AS OF 2 EXCEPT SELECT userId FROM <T>", [(111,)]),
    ("SELECT s.n FROM (SELECT eventType, count(*) AS n FROM <T> GROUP BY eventType) s WHERE s.n > 1", []),
    ("SELECT userId, _change_type FROM table_changes('<N>', 3)", [
        (111, "delete"), (2, "update_postimage"), (2, "update_preimage"),
    ]),
    ("SELECT count(*), max(_commit_version) FROM table_changes('<N>', 1, 2)", [(5, 2)]),
    (
        ("SELECT c.userId FROM table_changes_by_path('<P>', '<5 DAYS AGO>', current_timestamp()) c "
        "WHERE c._change_type = 'insert'"),
        [(3,), (4,)],
    ),
    ("SELECT eventType FROM <T> TABLESAMPLE (100 PERCENT) ORDER BY userId LIMIT 1", [("click",)]),
]  # fmt: skip


def make(sql: Sql, table: str, path: str) -> None:
    """A table of five versions: the second is nine days old, the third two, the fourth an hour."""
    for text in (
        (
            f"CREATE TABLE {table} (userId BIGINT, eventType STRING) USING deltapy LOCATION '{path}' "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        ),
        f"INSERT INTO {table} VALUES (1, 'click'), (2, 'view'), (111, 'gone')",
        f"INSERT INTO {table} VALUES (3, 'buy'), (4, 'view')",
        f"DELETE FROM {table} WHERE userId = 111",
        f"UPDATE {table} SET eventType = upper(eventType) WHERE userId = 2",
    ):
        sql(text)
    for version, hours in enumerate(_AGES):
        then = dt.datetime.now().timestamp() - hours * 3600
        os.utime(Path(path.removeprefix("file://"), "_delta_log", f"{version:020}.json"), (then, then))


def wrong_answers(sql: Sql, table: str, path: str, *, is_name: bool) -> list[str]:
    """The queries whose rows are others, with these."""
    days_ago = dt.datetime.now(dt.timezone.utc) - dt.timedelta(days=5)
    parts = {
        "<T>": table,
        "<P>": path,
        "<N>": table if is_name else path,
        "<5 DAYS AGO>": f"{days_ago:%Y-%m-%dT%H:%M:%S.000Z}",
    }
    wrong = []
    for text, wanted in QUERIES:
        for part, value in parts.items():
            text = text.replace(part, value)
        found = sorted((tuple(row) for row in sql(text).collect()), key=repr)
        if found != sorted(wanted, key=repr):
            wrong.append(f"{text}\n  {found}")
    return wrong
