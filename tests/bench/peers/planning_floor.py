"""The floor of planning: pyarrow decodes of the newest checkpoint what pruning needs, and keeps nothing.

As a process it measures itself as ``planning_process`` does: python -m tests.bench.peers.planning_floor TABLE WARM_UP.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.bench.planning_process import peak_mb


def read_checkpoint(table: Path) -> int:
    """Paths and statistics of all files, decoded once. Returns: the number of rows."""
    import pyarrow.parquet as pq

    newest = max((table / "_delta_log").glob("*.checkpoint.parquet"))
    with pq.ParquetFile(newest) as file:
        return sum(batch.num_rows for batch in file.iter_batches(columns=["add.path", "add.stats"]))


def main(table: str, warm_up: str) -> None:
    read_checkpoint(Path(warm_up))
    begin = time.perf_counter()
    read_checkpoint(Path(table))
    print(json.dumps({"seconds": time.perf_counter() - begin, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
