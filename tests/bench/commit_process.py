"""Commits of one small file each: side, table, how many (0 makes the table). Says ready, waits for a line, goes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def deltapy(table: str) -> Callable[[], None]:
    """Plan, write a file of one row, commit: all that an append is."""
    from tests.support.large_table import SHORTHAND
    from tests.support.table_writes import batch_of, struct, write_rows

    schema = struct(SHORTHAND)
    batch_of([], schema)
    return lambda: write_rows(table, schema, [{"id": 1}]) and None


def deltalake(table: str) -> Callable[[], None]:
    """The same with deltalake."""
    import pyarrow as pa
    from deltalake import write_deltalake

    row = pa.table({"id": pa.array([1], pa.int64())})
    return lambda: write_deltalake(table, row, mode="append")


def main() -> None:
    side, table, commits = sys.argv[1], sys.argv[2], int(sys.argv[3])
    append = {"deltapy": deltapy, "deltalake": deltalake}[side](table)
    if not commits:
        append()
        return
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.time()
    each = []
    for _ in range(commits):
        before = time.perf_counter()
        append()
        each.append(time.perf_counter() - before)
    print(json.dumps({"begin": begin, "end": time.time(), "each": each}))


if __name__ == "__main__":
    main()
