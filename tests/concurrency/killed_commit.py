"""A writer of a catalog's table, killed at a given step: the calls that change the disk, and those of the catalog."""

from __future__ import annotations

import os
from typing import Any

from delta_pyds.catalog.address import locate
from delta_pyds.catalog.named import open_catalog
from tests.concurrency.killed_process import Steps
from tests.support.table_writes import write_rows

IDS = {"id": "long"}


def run(table: str, catalog: str, environment: dict[str, str], kill_at: int, report: Any) -> None:
    """Append two rows in a process of its own; a process that lives sends the steps it took."""
    os.environ.update(environment)
    address = locate(table=table, catalog=catalog)
    steps, kind = Steps(kill_at), type(open_catalog(catalog))
    for name in ("link", "unlink"):
        setattr(os, name, steps.watched(name, getattr(os, name)))
    for name in ("load_table", "propose_commit", "report_published"):
        setattr(kind, name, _named(steps, name, getattr(kind, name)))
    write_rows(address.table_root, IDS, [{"id": 10}, {"id": 11}], storage_options=address.storage_options)
    report.send(steps.taken)


def _named(steps: Steps, name: str, real: Any) -> Any:
    def call(*args: Any) -> Any:
        steps.step(f"before {name}")
        result = real(*args)
        steps.step(f"after {name}")
        return result

    return call
