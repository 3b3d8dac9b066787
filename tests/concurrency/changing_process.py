"""One writer that changes rows, as a process of its own: table, writer, steps, seed; prints its report as JSON."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from delta_pyds.commands.layout.optimize import plan_optimize, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.errors import ConflictError
from delta_pyds.table.snapshot import load_snapshot
from tests.concurrency.changing_workload import LAYOUT_STEPS, Change, RefusedError, run
from tests.support.row_model.core_engine import CoreEngine
from tests.support.row_model.steps import BASE, Append, Delete, Overwrite, Update, with_columns
from tests.support.row_model.upkeep import Optimize, ZOrder
from tests.support.table_writes import write_rows


def changer(path: Path, pause: Callable[[], None] = lambda: None) -> Callable[[Change, str], int | None]:
    """Makes one change in this process. ``pause``: of ``CoreEngine``."""

    def change(step: Change, told: str) -> int | None:
        options = CommandOptions(user_metadata=told)
        if isinstance(step, LAYOUT_STEPS):
            return _lay_out(path, step, options)
        engine = CoreEngine(options, pause)
        try:
            if isinstance(step, Append):
                rows = [row for task in step.tasks for row in with_columns(task, list(BASE))]
                committed = write_rows(path, BASE, rows, user_metadata=told)
                return None if committed is None else committed.version
            if isinstance(step, Overwrite):
                engine.overwrite(path, step, list(BASE), [with_columns(task, list(BASE)) for task in step.tasks])
            elif isinstance(step, Delete):
                engine.delete(path, step)
            elif isinstance(step, Update):
                engine.update(path, step)
            else:
                engine.merge(path, step, list(BASE))
        except ConflictError as error:
            raise RefusedError(error.code, error.parameters.get("version")) from error
        return engine.version

    return change


def _lay_out(path: Path, step: Optimize | ZOrder, options: CommandOptions) -> int | None:
    snapshot = load_snapshot(str(path))
    plan = (
        plan_zorder(snapshot, step.columns, (), options)
        if isinstance(step, ZOrder)
        else plan_optimize(snapshot, (), options)
    )
    try:
        return run_layout(plan, Place("process", "a test says so.")).version
    except ConflictError:
        # others replaced all files that it read, so nothing is left to do
        return None


if __name__ == "__main__":
    logging.disable(logging.INFO)
    table, number, steps, seed, layouts = sys.argv[1:]
    load_snapshot(table)
    start = Path(table).parent / "start"
    while not start.exists():
        time.sleep(0.01)
    report = run(int(number), int(steps), int(seed), changer(Path(table)), layouts=int(layouts))
    print(json.dumps(asdict(report)))
