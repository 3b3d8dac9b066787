"""Checks a table that several writers changed at once: each version is the one before it and one step.

The log gives the order. The model takes the steps one by one, and every version must have its rows, its change feed and
its row ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from delta_pyds import verify
from delta_pyds.data.read.reader import output_schema, read
from delta_pyds.table.change_feed.change_scan import change_range, plan_changes
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot, load_snapshot
from tests.concurrency.changing_workload import LAYOUT_STEPS, Change, Log, Report, Workload, overlooked
from tests.support.change_feed import applied
from tests.support.change_feed import bag as feed_bag
from tests.support.row_model.harness import RowIds, check_metrics
from tests.support.row_model.model import Effect, Model, Past, bag
from tests.support.row_model.steps import BASE, Delete, Layout, Merge, Update
from tests.support.row_model.upkeep import Restore


@dataclass(frozen=True)
class TableAt:
    """A table and the options that open it, which may name it in a catalog."""

    root: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def snapshot(self, version: int | None = None) -> Snapshot:
        return load_snapshot(self.root, version=version, storage_options=self.options)

    def rows(self, version: int, *, row_ids: bool) -> list[dict[str, Any]]:
        scan = plan_scan(self.snapshot(version), row_ids=row_ids, storage_options=self.options)
        return _rows_of(scan)

    def changes(self, version: int) -> list[dict[str, Any]]:
        """The change feed of one version."""
        latest = self.snapshot()
        versions = change_range(latest, starting_version=version, ending_version=version)
        return _rows_of(plan_changes(latest, versions, storage_options=self.options))


def _rows_of(scan: Any) -> list[dict[str, Any]]:
    batches = [batch for file in scan.files() for batch in read(scan.state, file)]
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, schema=output_schema(scan.state)).to_pylist()
    return rows


def check_history(
    table: TableAt, layout: Layout, workload: Workload, reports: Sequence[Report], *, all_acknowledged: bool = True
) -> list[dict[str, Any]]:
    """Check the table, which version 0 created without rows. Returns: what each commit says that it was.

    ``all_acknowledged``: each writer was told of all versions that it made.
    """
    latest = table.snapshot()
    log = Log(latest)
    states = _Replay(table, layout, workload, log)
    told = [states.take(version) for version in log.commits]
    _check_acknowledged(states, told, reports, all_acknowledged=all_acknowledged)
    assert overlooked(log, workload, told) == []
    report = verify(table.root, storage_options=table.options)
    # the last of two writers of checkpoints may have made the earlier one
    assert all(finding.rule == "hint.stale" for finding in report.findings), str(report)
    return told


class _Replay:
    """The model, which takes the commits in the order of the log."""

    def __init__(self, table: TableAt, layout: Layout, workload: Workload, log: Log) -> None:
        self._table, self._workload, self._log = table, workload, log
        self._row_ids = RowIds()
        self._identities: dict[int, Any] = {}
        self._rows: list[dict[str, Any]] = []
        self.model = Model(layout)
        # the effect of a step depends on the version before it
        self.before: list[Past] = [self.model.now()]

    def take(self, version: int) -> dict[str, Any]:
        """Take one commit, and compare its version. Returns: what it says that it was."""
        told = self._log.told(version)
        step = self._workload.planned(told["writer"], told["n"]).step
        model, layout = self.model, self.model.layout
        effect = model.effect(step)
        if isinstance(step, Restore):
            target = int(self._log.info(version).operation_parameters["version"])
            past = self.before[target]
            effect = Effect(past.columns, [row.copy() for row in past.rows], births=past.births)
        what = f"version {version}, {step}, mended {told['numMends']} times"
        assert not effect.errors, f"{what}: {effect.errors}"
        model.take(effect)
        model.version = version
        rows = self._table.rows(version, row_ids=layout.row_tracking)
        assert bag(rows, list(BASE)) == bag(model.values(), list(BASE)), f"{what}: other rows."
        if layout.row_tracking:
            self._row_ids.check(model, rows, version)
        self._check_computed(rows, what)
        if layout.change_feed:
            self._check_feed(step, effect, rows, version, what)
        self._check_info(step, effect, version)
        self.before.append(model.now())
        return told

    def may_be_nothing(self, writer: int, n: int) -> bool:
        """Whether a step changes nothing, or is refused by a constraint, after some version."""
        step = self._workload.planned(writer, n).step
        if isinstance(step, (Restore, *LAYOUT_STEPS)):
            return True
        model = Model(self.model.layout)
        for past in self.before:
            model.rows = list(past.rows)
            effect = model.effect(step)
            if effect.errors or not effect.changes:
                return True
        return False

    def _check_computed(self, rows: Sequence[Mapping[str, Any]], what: str) -> None:
        """The generated column ``g`` and the identity column ``i``, where the table has them."""
        for row in rows:
            assert "g" not in row or row["g"] == row["n"] + 1, f"{what}: {row}"
        if rows and "i" in rows[0]:
            values = [row["i"] for row in rows]
            assert None not in values and len(set(values)) == len(values), f"{what}: identity values {sorted(values)}"
            for row in rows if "_row_id" in rows[0] else ():
                before = self._identities.setdefault(row["_row_id"], row["i"])
                assert before == row["i"], f"{what}: the identity value of {row} was {before}."

    def _check_feed(
        self, step: Change, effect: Effect, rows: Sequence[Mapping[str, Any]], version: int, what: str
    ) -> None:
        changes = self._table.changes(version)
        names = ["_change_type", *BASE]
        if not isinstance(step, Restore):
            wanted = [{"_change_type": kind, **values} for kind, values in effect.changes]
            assert bag(changes, names) == bag(wanted, names), f"{what}: another change feed."
        now = [{name: value for name, value in row.items() if not name.startswith("_row_")} for row in rows]
        assert applied(self._rows, changes) == feed_bag(now), f"{what}: the change feed does not make the rows."
        self._rows = now

    def _check_info(self, step: Change, effect: Effect, version: int) -> None:
        info = self._log.info(version)
        adds = [a.add for a in self._log.commits[version].actions if a.add is not None]
        if isinstance(step, LAYOUT_STEPS):
            assert not any(add.data_change for add in adds)
        metrics = info.operation_metrics or {}
        whole_files = isinstance(step, Delete) and "numDeletedRows" not in metrics
        if isinstance(step, (Delete, Update, Merge)) and not whole_files and _is_ours(info.engine_info):
            check_metrics(step, effect, {"operation": info.operation, "operationMetrics": metrics}, counts_source=True)


def _is_ours(engine: Any) -> bool:
    return "delta_pyds" in str(engine)


def _check_acknowledged(
    states: _Replay, told: Sequence[Mapping[str, Any]], reports: Sequence[Report], *, all_acknowledged: bool
) -> None:
    """Each step is in the log once at most, as its writer was told; a step that is not there changes nothing."""
    made = {(commit["writer"], commit["n"]): commit["version"] for commit in told}
    assert len(made) == len(told), "a step was committed more than once."
    known = {(done["writer"], done["n"]): done["version"] for report in reports for done in report.done}
    assert made.keys() <= known.keys(), "the log has a step that nobody ended."
    for step, version in known.items():
        if version is not None or all_acknowledged:
            assert made.get(step) == version, f"step {step} was told of as version {version}, not {made.get(step)}."
    lost = [step for step in known.keys() - made.keys() if not states.may_be_nothing(*step)]
    assert not lost, f"steps were acknowledged, and are not in the log: {lost}"
