"""Sail's own process: reads lists of SQL statements as lines of JSON, answers each with the seconds that it took.

Run by ``sail`` in Sail's environment, where nothing else of this project can be imported.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from typing import Any


def main() -> None:
    server: Any = importlib.import_module("pysail.spark").SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    session: Any = importlib.import_module("pyspark.sql").SparkSession
    spark = session.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    _answer(importlib.metadata.version("pysail"))
    for line in sys.stdin:
        statements = json.loads(line)
        begin = time.perf_counter()
        for statement in statements:
            spark.sql(statement).collect()
        _answer(str(time.perf_counter() - begin))


def _answer(text: str) -> None:
    print(f"ANSWER {text}", flush=True)


if __name__ == "__main__":
    main()
