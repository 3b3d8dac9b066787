"""Sail's own process: reads lines of JSON. It answers a list of SQL statements with the seconds that they took.

A text is a query: the answer has its seconds and rows, or the error.

Run by ``sail`` in Sail's environment, where nothing else of this project can be imported.
"""

from __future__ import annotations

import decimal
import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from typing import Any


def main() -> None:
    server: Any = importlib.import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    session: Any = importlib.import_module("pyspark.sql").SparkSession
    spark = session.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    serve(importlib.metadata.version("pysail"), spark.sql)


def serve(version: str, sql: Callable[[str], Any]) -> None:
    """Answer questions until there are no more. ``sql``: makes a frame of a text."""
    _answer(version)
    for line in sys.stdin:
        question = json.loads(line)
        if isinstance(question, str):
            _answer(json.dumps(_rows(sql, question), default=_plain))
            continue
        begin = time.perf_counter()
        for statement in question:
            sql(statement).collect()
        _answer(str(time.perf_counter() - begin))


def _rows(sql: Callable[[str], Any], text: str) -> dict[str, object]:
    begin = time.perf_counter()
    try:
        rows = sql(text).collect()
    except Exception as error:  # of any class: the client decides
        return {"error": str(error)}
    return {"seconds": time.perf_counter() - begin, "rows": [list(row) for row in rows]}


def _plain(value: object) -> object:
    return float(value) if isinstance(value, decimal.Decimal) else str(value)


def _answer(text: str) -> None:
    print(f"ANSWER {text}", flush=True)


if __name__ == "__main__":
    main()
