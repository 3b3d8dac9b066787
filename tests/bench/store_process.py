"""One work on a table in a store, in a process of its own: python -m tests.bench.store_process SIDE WORK TABLE OTHER.

The work is done on the table OTHER first, so that no import and no proof counts. Then the process says ``ready``,
waits for a line, works on TABLE, and prints JSON: ``seconds``; ``found``: files planned, rows read, or versions.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from tests.bench.tables import rows

# of the floor
_CONNECTIONS = 16
_RANGE_BYTES = 8 * 1024 * 1024


def plan(table: str, options: Mapping[str, Any], where: str) -> Callable[[], int]:
    """Open the table and list the files that may hold wanted rows."""
    from delta_pyds.table.scan.scan import plan_scan
    from delta_pyds.table.snapshot import load_snapshot

    def act() -> int:
        return len(list(plan_scan(load_snapshot(table, storage_options=options), where=f"id = {where}").files()))

    return act


def scan(table: str, options: Mapping[str, Any], columns: str) -> Callable[[], int]:
    """Open the table and read the rows."""
    import delta_pyds

    def act() -> int:
        chosen = None if columns == "*" else columns
        return sum(len(batch) for batch in delta_pyds.scan(table, columns=chosen, storage_options=options).to_batches())

    return act


def append(table: str, options: Mapping[str, Any], _: str) -> Callable[[], int]:
    """Open the table and commit a file of ten rows."""
    from tests.support.large_table import SHORTHAND
    from tests.support.table_writes import write_rows

    def act() -> int:
        done = write_rows(table, SHORTHAND, rows(0, 10), storage_options=options)
        assert done is not None
        return done.version

    return act


def poll(table: str, options: Mapping[str, Any], _: str) -> Callable[[], int]:
    """A look for new commits by a stream that has read all of them."""
    from delta_pyds.storage.resolve import resolve_storage
    from delta_pyds.table.snapshot import load_snapshot
    from delta_pyds.table.stream.commit_poller import CommitPoller

    version = load_snapshot(table, storage_options=options).version
    poller = CommitPoller(resolve_storage(table, options), table)
    assert list(poller.commits(version + 1)) == []
    return lambda: len(list(poller.commits(version + 1)))


def deltalake_plan(table: str, options: Mapping[str, Any], where: str) -> Callable[[], int]:
    from deltalake import DeltaTable

    def act() -> int:
        adds = pa.table(DeltaTable(table, storage_options=dict(options)).get_add_actions(flatten=True))
        wanted = int(where)
        keep = pc.and_kleene(pc.less_equal(adds["min.id"], wanted), pc.greater_equal(adds["max.id"], wanted))
        return int(adds.filter(pc.fill_null(keep, True)).num_rows)

    return act


def deltalake_scan(table: str, options: Mapping[str, Any], columns: str) -> Callable[[], int]:
    from deltalake import DeltaTable, QueryBuilder

    def act() -> int:
        opened = DeltaTable(table, storage_options=dict(options))
        found = QueryBuilder().register("t", opened).execute(f"select {columns} from t")
        return sum(batch.num_rows for batch in found)

    return act


def deltalake_append(table: str, options: Mapping[str, Any], _: str) -> Callable[[], int]:
    from deltalake import write_deltalake

    def act() -> int:
        write_deltalake(table, rows(0, 10), mode="append", storage_options=dict(options))
        return 0

    return act


def deltalake_poll(table: str, options: Mapping[str, Any], _: str) -> Callable[[], int]:
    from deltalake import DeltaTable

    opened = DeltaTable(table, storage_options=dict(options))
    version = opened.version()

    def act() -> int:
        opened.update_incremental()
        return opened.version() - version

    return act


def floor_scan(_: str, options: Mapping[str, Any], files: str) -> Callable[[], int]:
    """The bytes of files by plain ranged requests, several at a time. ``files``: names and lengths, as JSON."""
    pieces = [
        (name, start, min(start + _RANGE_BYTES, size) - 1)
        for name, size in json.loads(files)
        for start in range(0, size, _RANGE_BYTES)
    ]

    def act() -> int:
        waiting, received = iter(pieces), []

        def work() -> None:
            connection = HTTPConnection(urlsplit(options["endpoint_url"]).netloc)
            for name, first, last in waiting:
                connection.request("GET", f"/{name}", headers={"Range": f"bytes={first}-{last}"})
                received.append(len(connection.getresponse().read()))
            connection.close()

        threads = [threading.Thread(target=work) for _ in range(_CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(received)

    return act


WORKS: dict[tuple[str, str], Callable[[str, Mapping[str, Any], str], Callable[[], int]]] = {
    ("deltapy", "plan"): plan,
    ("deltapy", "scan"): scan,
    ("deltapy", "append"): append,
    ("deltapy", "poll"): poll,
    ("deltalake", "plan"): deltalake_plan,
    ("deltalake", "scan"): deltalake_scan,
    ("deltalake", "append"): deltalake_append,
    ("deltalake", "poll"): deltalake_poll,
    ("floor", "scan"): floor_scan,
}


def main() -> None:
    """See the module. The options and the work's argument come as a line of JSON."""
    side, work, table, warm_up = sys.argv[1:]
    options, argument, first = json.loads(sys.stdin.readline())
    WORKS[side, work](warm_up, options, first)()
    act = WORKS[side, work](table, options, argument)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    found = act()
    print(json.dumps({"seconds": time.perf_counter() - start, "found": found}), flush=True)


if __name__ == "__main__":
    main()
