"""One writer of a drawn history, as a process that may be killed at any step. The next process goes on.

The report has a line of JSON for each of its steps that ended.
"""

from __future__ import annotations

import json
import logging
import os
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from delta_pyds.catalog.named import open_catalog
from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
from delta_pyds.commands.layout.plan import LayoutPlan
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.row_changes.delete import plan_truncate, run_delete
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import CommitOutcomeUnknownError, ConflictError, DeltaError, StorageError
from delta_pyds.storage import failures
from delta_pyds.table.history import history
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.concurrency.changing_workload import LAYOUT_STEPS, Change, RefusedError, Workload, run
from tests.concurrency.killed_process import Steps
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.model import CONSTRAINT_CODE
from tests.support.row_model.steps import BASE, Append, Delete, Overwrite, Update, with_columns
from tests.support.row_model.upkeep import Optimize, Purge, Restore, Truncate, ZOrder
from tests.support.table_writes import write_rows

_HERE = Place("process", "a test says so.")


class Changer:
    """Makes changes of one table in this process. ``pause``: between what a command plans and what it does."""

    def __init__(
        self, table: str, options: Mapping[str, Any] | None = None, pause: Callable[[], None] = lambda: None
    ) -> None:
        self._table, self._options, self._pause = table, dict(options or {}), pause

    def __call__(self, step: Change, told: str) -> int | None:
        """Returns: the version; None if nothing was to be done, or a constraint refused the step."""
        try:
            return self._changed(step, CommandOptions(self._options, user_metadata=told))
        except ConflictError as error:
            if isinstance(step, LAYOUT_STEPS) and error.code.startswith("DELTA_CONCURRENT_DELETE"):
                # others replaced all files that it read, so nothing is left to do
                return None
            raise RefusedError(error.code, error.parameters.get("version")) from error
        except (StorageError, CommitOutcomeUnknownError) as error:
            committed = self.committed(told)
            if committed is None:
                raise RefusedError(error.code, None) from error
            return committed
        except DeltaError as error:
            if error.code == CONSTRAINT_CODE:
                return None
            raise

    def committed(self, told: str) -> int | None:
        """The version of a step, by the log."""
        for _ in range(9):
            try:
                snapshot = self._opened()
                for record in history(snapshot.storage, snapshot.table_root):
                    if record.commit_info is not None and record.commit_info.user_metadata == told:
                        return record.version
            except StorageError:
                continue
            else:
                return None
        raise AssertionError("the log cannot be read.")

    def _opened(self) -> Snapshot:
        return load_snapshot(self._table, storage_options=self._options)

    def _changed(self, step: Change, options: CommandOptions) -> int | None:
        if isinstance(step, Append):
            return self._append(step, options)
        if isinstance(step, Restore):
            latest = self._opened()
            self._pause()
            target = max(0, latest.version - step.back)
            result = restore(latest, RestoreOptions(target, user_metadata=options.user_metadata))
            return None if result is None else result.version
        if isinstance(step, Truncate):
            truncate = plan_truncate(self._opened(), options)
            self._pause()
            return run_delete(truncate, _HERE).version
        if isinstance(step, (Optimize, ZOrder, Purge)):
            layout = self._layout(step, options)
            self._pause()
            return run_layout(layout, _HERE).version
        engine = CoreEngine(options, self._pause)
        if isinstance(step, Overwrite):
            tasks = [with_columns(task, list(BASE)) for task in step.tasks]
            engine.overwrite(self._table, step, list(BASE), tasks)
        elif isinstance(step, Delete):
            engine.delete(self._table, step)
        elif isinstance(step, Update):
            engine.update(self._table, step)
        else:
            engine.merge(self._table, step, list(BASE))
        return engine.version

    def _append(self, step: Append, options: CommandOptions) -> int | None:
        rows = [row for task in step.tasks for row in with_columns(task, list(BASE))]
        told = {"user_metadata": options.user_metadata, "storage_options": self._options}
        committed = write_rows(self._table, BASE, rows, **told)
        return None if committed is None else committed.version

    def _layout(self, step: Optimize | ZOrder | Purge, options: CommandOptions) -> LayoutPlan:
        snapshot = self._opened()
        if isinstance(step, ZOrder):
            return plan_zorder(snapshot, step.columns, (), options)
        plan = plan_purge if isinstance(step, Purge) else plan_optimize
        return plan(snapshot, (), options)


@dataclass(frozen=True)
class Writer:
    """One life of a writer.

    ``kill_at``: the number of the step of this process at which it dies; 0 for none.
    ``follows``: another life was killed, and may have committed a step without telling so. ``by_deltalake``: the
    commands are those of ``deltalake``. ``environment``: names the catalog of the table. ``folder``: of the race, where
    ``start`` appears after all are ready.
    """

    table: str
    options: Mapping[str, Any]
    environment: Mapping[str, str]
    workload: Workload
    number: int
    steps: int
    folder: Path
    catalog: str | None
    longest_pause_s: float
    kill_at: int = 0
    follows: bool = False
    by_deltalake: bool = False

    @property
    def report(self) -> Path:
        return self.folder / f"writer{self.number}.jsonl"

    def ended_steps(self) -> int:
        return self.report.read_text().count("\n") if self.report.exists() else 0


def live(writer: Writer) -> None:
    """Go on where the report ends."""
    logging.disable(logging.INFO)
    # a process has the environment of the first history
    for name in [name for name in os.environ if name.startswith("DELTA_PYDS_CATALOG_")]:
        del os.environ[name]
    os.environ.update(writer.environment)
    shorten_pauses()
    rng = random.Random(f"{writer.workload.seed}/{writer.number}/{writer.kill_at}")
    steps = Steps(writer.kill_at)
    if writer.kill_at:
        watch_steps(steps, writer)
    kind = Changer
    if writer.by_deltalake:
        # no process may be a fork of one that has used it
        from tests.concurrency.deltalake_changer import DeltalakeChanger

        kind = DeltalakeChanger
    change = kind(writer.table, writer.options, lambda: time.sleep(rng.uniform(0, writer.longest_pause_s)))
    (writer.folder / f"ready{writer.number}").touch()
    while not (writer.folder / "start").exists():
        time.sleep(0.005)
    first = writer.ended_steps()
    try:
        for n in range(first, writer.steps):
            told = json.dumps({"writer": writer.number, "n": n})
            found = change.committed(told) if n == first and writer.follows else None
            if found is not None:
                _note(writer, {"done": [{"writer": writer.number, "n": n, "version": found}]})
                continue
            _note(writer, asdict(run(writer.workload, writer.number, range(n, n + 1), change)))
    except BaseException:
        (writer.folder / f"error{writer.number}").write_text(traceback.format_exc())
        raise


def _note(writer: Writer, report: dict[str, Any]) -> None:
    with open(writer.report, "a") as file:
        file.write(json.dumps(report) + "\n")


def shorten_pauses() -> None:
    """Clients of stores make as many attempts, with shorter pauses."""
    import asyncio

    sleep = asyncio.sleep
    asyncio.sleep = lambda delay, result=None: sleep(min(delay, 0.001), result)  # type: ignore[assignment]
    failures._FIRST_PAUSE_S = failures._LONGEST_PAUSE_S = 0.001


def watch_steps(steps: Steps, writer: Writer) -> None:
    """Count the steps of this process: changes of a disk, of a store and of a catalog, and mends."""
    steps.watch_process()
    if writer.table.startswith("s3://"):
        from tests.stores.requests_made import watch_changes

        watch_changes(steps.step)
    if writer.catalog is not None:
        kind: Any = type(open_catalog(writer.catalog))
        for name in ("load_table", "propose_commit", "report_published"):
            setattr(kind, name, steps.watched(name, getattr(kind, name)))
