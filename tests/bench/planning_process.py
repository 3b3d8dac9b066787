"""One measure of planning, in a process of its own: python -m tests.bench.planning_process SIDE TABLE ID WARM_UP_TABLE.

Prints JSON: ``seconds`` from opening the table to the list of files that may
hold ``id = ID``, without imports; ``peak_mb`` of the whole process; ``files``.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


def plan_ours(path: str, wanted: int) -> int:
    """Open the table and prune, with this package. Returns: the number of files left."""
    from delta_pyds.table.scan.scan import plan_scan
    from delta_pyds.table.snapshot import load_snapshot

    scan = plan_scan(load_snapshot(path), where=f"id = {wanted}")
    return len(list(scan.files()))


def plan_deltalake(path: str, wanted: int) -> int:
    """The same with deltalake, by the quickest way it has: its add actions as Arrow, filtered by their bounds.

    Its query engine prunes too and takes longer; its pyarrow dataset makes a Python object for each file.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    adds = pa.table(DeltaTable(path).get_add_actions(flatten=True))
    keep = pc.and_kleene(pc.less_equal(adds["min.id"], wanted), pc.greater_equal(adds["max.id"], wanted))
    return int(adds.filter(pc.fill_null(keep, True)).num_rows)


def plan_deltalake_query(path: str, wanted: int) -> int:
    """The same with deltalake's query engine, which also reads the file that is left."""
    import pyarrow as pa
    from deltalake import DeltaTable, QueryBuilder

    query = QueryBuilder().register("t", DeltaTable(path)).execute(f"select id from t where id = {wanted}")
    return int(pa.table(query.read_all()).num_rows)


SIDES: dict[str, Callable[[str, int], int]] = {
    "deltapy": plan_ours,
    "deltalake": plan_deltalake,
    "deltalake-query": plan_deltalake_query,
}


def peak_mb() -> float:
    """This process's peak memory. Linux's ru_maxrss starts from the parent's peak; VmHWM does not."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    scale = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main(side: str, path: str, wanted: str, warm_up: str) -> None:
    """Measure one side and print the result."""
    plan = SIDES[side]
    plan(warm_up, int(wanted))  # imports what it imports, starts its threads
    begin = time.perf_counter()
    files = plan(path, int(wanted))
    seconds = time.perf_counter() - begin
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb(), "files": files}))


if __name__ == "__main__":
    main(*sys.argv[1:])
