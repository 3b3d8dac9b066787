"""The requests of a native read through S3A, counted on the wire: planning makes none for a data file."""

from __future__ import annotations

from collections.abc import Sequence

from tests.stores.test_connectors import COLUMNS, Reads
from tests.support.faulty_proxy import proxy
from tests.support.s3_server import s3_server
from tests.support.store_processes import what_can_be_had
from tests.support.stores import s3_store
from tests.support.table_writes import write_rows

_FILES = 12
Asked = Sequence[tuple[str, str]]


def steps(asked: Asked) -> dict[str, Asked]:
    """The requests before each mark, by its name."""
    found: dict[str, Asked] = {}
    since: list[tuple[str, str]] = []
    for method, path in asked:
        if path.startswith("/mark/"):
            found[path.removeprefix("/mark/")], since = since, []
        else:
            since.append((method, path))
    return found


def of_files(asked: Asked) -> set[str]:
    """The data files that were asked for."""
    return {path for _, path in asked if path.endswith(".parquet") and "_delta_log" not in path}


def test_planning_makes_no_request_for_a_data_file() -> None:
    with what_can_be_had(), s3_server() as url, proxy(url) as (counted, faults):
        store = s3_store(counted)
        table, options = store.root(), store.options
        # a checkpoint at version 10, and a commit after it
        for number in range(_FILES):
            write_rows(table, COLUMNS, [{"id": number, "p": "a"}], storage_options=options)
        rows = [[number, "a"] for number in range(_FILES)]
        keys = {"access.key": options["key"], "secret.key": options["secret"], "endpoint": counted}
        settings = {**keys, "path.style.access": "true", "attempts.maximum": "1"}
        reads = Reads("S3A", {f"fs.s3a.{name}": value for name, value in settings.items()})
        reads.read("cold", table, options, where="id = 7", marks=counted)
        reads.read("warm", table, options, where="id = 7", marks=counted)
        reads.read("whole", table, options, marks=counted)
        del faults.asked[:]
        reads.run()
        asked = steps(faults.asked)
    for name in ("cold", "warm"):
        reads.natively(name, rows[7:8])
    reads.natively("whole", rows)
    for name in ("cold", "warm", "whole"):
        assert of_files(asked[f"{name}/loaded"]) == set(), name
        # the query asks for no part of the log, lists nothing, and asks for the files that are left alone
        collected = asked[f"{name}/collected"]
        assert len(of_files(collected)) == (_FILES if name == "whole" else 1)
        assert all(path in of_files(collected) for _, path in collected), collected
        # the end of the file, and its one column chunk
        assert len(collected) <= 3 * len(of_files(collected))
    # hint and listing, a checkpoint, commits; then the newest commit by us, and by the connector: status and bytes
    assert len(asked["cold/loaded"]) <= 8, asked["cold/loaded"]
    # hint and listing: Spark still has the connection that returned the newest commit
    assert len(asked["warm/loaded"]) == 2, asked["warm/loaded"]
