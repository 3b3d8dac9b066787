"""Spark's part of a streaming query, without Spark: a checkpoint, micro-batches, and crashes between its steps."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.data.read.computed_changes import with_changed_rows
from delta_pyds.data.read.reader import read
from delta_pyds.protocol.stream_offset import StreamOffset
from delta_pyds.storage.resolve import normalize_table_root, resolve_storage
from delta_pyds.table.change_feed.change_scan import select_changes
from delta_pyds.table.configuration import load_configuration
from delta_pyds.table.scan.row_selection import Relation, select_rows
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.stream.schema_log import Allowed, SchemaTracking
from delta_pyds.table.stream.source import StreamOptions, StreamSource

_NOTHING = Allowed()


class Query:
    """One query over its runs. ``batches``: what each batch id delivered last, rows of ``columnar.scan_files``.

    A run is a new ``StreamSource``. As in Spark, the start of batch 0 is not
    kept, a batch that was not done is planned again at the next run, and batch
    0 runs even if it is empty.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        options: StreamOptions | None = None,
        *,
        where: str | None = None,
        columns: str | None = None,
        schema_log: str | os.PathLike[str] | None = None,
        allow: Allowed = _NOTHING,
    ) -> None:
        self.path = os.fspath(path)
        self.options = options or StreamOptions()
        self.where, self.columns = where, columns
        self.schema_log, self.allow = schema_log, allow
        self.offsets: list[str] = []
        self.done = 0
        self.batches: dict[int, list[dict[str, Any]]] = {}
        self.source: StreamSource | None = None

    # ---- runs

    def open(self) -> StreamSource:
        """A source as a process makes it."""
        snapshot = load_snapshot(self.path)
        configuration, tracking = snapshot.configuration, None
        if self.schema_log is not None:
            location = normalize_table_root(os.fspath(self.schema_log))
            storage = resolve_storage(location, {})
            tracking = SchemaTracking(storage, location, snapshot.metadata.id, None, self.allow)
            kept = tracking.latest()
            if kept is not None:
                configuration = load_configuration(snapshot.table_root, kept.version, kept.protocol, kept.metadata)
        if self.options.read_change_feed:
            self.selection = select_changes(configuration, where=self.where, columns=self.columns)
        else:
            self.selection = select_rows(Relation.of(configuration), where=self.where, columns=self.columns)
        return StreamSource(
            snapshot.storage, snapshot.table_root, self.options, configuration, self.selection, tracking=tracking
        )

    def start_offset(self) -> StreamOffset:
        return self.open().initial_offset()

    def start(self, *, available_now: bool = False) -> None:
        """Begin a run: what the last one left undone is done again first."""
        self.source = self.open()
        if available_now:
            self.source.fix_end()
        if len(self.offsets) > self.done:
            self._deliver(self._start_of(self.done))
            self.done += 1

    def crash(self) -> None:
        self.source = None

    # ---- batches

    def trigger(self, crash: str | None = None, *, unlimited: bool = False) -> bool:
        """Run a batch, if there is one. ``crash``: "logged" or "delivered": the process ends after that step."""
        if self.source is None:
            self.start()
        assert self.source is not None
        start = self._start_of(len(self.offsets))
        end = self.source.latest_offset(start, unlimited=unlimited)
        text = json.dumps(end.to_json())
        if self.offsets and text == self.offsets[-1]:
            return False
        self.offsets.append(text)
        if self.done:
            self.source.committed(start)
        if crash == "logged":
            self.crash()
            return True
        self._deliver(start)
        if crash == "delivered":
            self.crash()
            return True
        self.done += 1
        return True

    def run(self, limit: int = 1000, **options: Any) -> int:
        """Run batches until there is no more data. Returns: their number."""
        for count in range(limit):
            if not self.trigger(**options):
                return count
        raise AssertionError(f"the query does not end: {self.offsets[-3:]}")

    def run_available_now(self) -> int:
        """One run with ``Trigger.AvailableNow``."""
        self.start(available_now=True)
        return self.run()

    def _start_of(self, batch: int) -> StreamOffset:
        assert self.source is not None
        if batch == 0:
            return self.source.initial_offset()
        return StreamOffset.from_json(json.loads(self.offsets[batch - 1]))

    def _deliver(self, start: StreamOffset) -> None:
        assert self.source is not None
        end = StreamOffset.from_json(json.loads(self.offsets[-1]))
        rows = [row for batch in self.source.batches(start, end) for row in batch.to_pylist()]
        self.batches[len(self.offsets) - 1] = rows

    # ---- what came

    def files(self) -> list[dict[str, Any]]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    def paths(self) -> list[str]:
        return [row["path"] for row in self.files()]

    def sizes_of_batches(self) -> list[int]:
        return [len(rows) for _, rows in sorted(self.batches.items())]

    def last(self) -> Mapping[str, Any]:
        """The last offset, without what never changes."""
        offset = json.loads(self.offsets[-1])
        return {k: offset[k] for k in ("reservoirVersion", "index", "isStartingVersion")}

    def plan(self, start: StreamOffset, end: StreamOffset) -> list[dict[str, Any]]:
        """The files of a batch, planned by a process of its own."""
        return [row for batch in self.open().batches(start, end) for row in batch.to_pylist()]

    def rows(self, start: StreamOffset, end: StreamOffset) -> list[dict[str, Any]]:
        """The rows between two offsets, read by a process of its own."""
        source = self.open()
        return [
            row
            for batch in source.batches(start, end)
            for file in with_changed_rows(self.selection.state, to_scan_files(batch, normalize_table_root(self.path)))
            for records in read(self.selection.state, file)
            for row in records.to_pylist()
        ]
