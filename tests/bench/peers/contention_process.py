"""Writers of a race: python -m tests.bench.peers.contention_process JSON of ``Writers``.

Says ready, waits for a line, runs its commands, and prints their ``Report`` as JSON. An aborted command is counted and
not repeated.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from tests.bench.peers.contention_commands import (
    BLOCK_ROWS,
    KINDS,
    MERGE_CONDITION,
    SCHEMA,
    Command,
    Race,
    command,
    first_rows,
    told,
)

if TYPE_CHECKING:
    import pyarrow as pa

Engine = Literal["ours", "deltalake", "reference", "optimize"]
# changes the table, and raises ``AbortedError``
Change = Callable[[Command, str], None]


@dataclass(frozen=True)
class Writers:
    """``numbers``: of the writers in this process. They begin no command after ``seconds``; None for no limit."""

    engine: Engine
    table: str
    race: Race
    numbers: list[int]
    seconds: float | None
    scratch: str

    @staticmethod
    def from_json(text: str) -> Writers:
        given = json.loads(text)
        return Writers(**{**given, "race": Race(**given["race"])})


@dataclass
class Report:
    """``seconds``: of each command that was committed. ``aborted``: the error of each other one.

    ``read_bytes``: what our commands read before their first commit, to see the winners, and to mend themselves.
    """

    begin: float = 0.0
    end: float = 0.0
    seconds: list[float] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    read_bytes: dict[str, list[int]] = field(default_factory=dict)
    bytes_before: int = 0


class AbortedError(Exception):
    """Another commit came first."""


def main() -> None:
    """Run the writers of this process."""
    logging.disable(logging.WARNING)
    writers = Writers.from_json(sys.argv[1])
    report = Report()
    changes = _CHANGES[writers.engine](writers, report)
    print("ready", flush=True)
    sys.stdin.readline()
    report.begin = time.time()
    # the writers of the reference share a JVM; others take turns in this process
    with ThreadPoolExecutor(len(changes) if writers.engine == "reference" else 1) as pool:
        for done in [pool.submit(_run, writers, n, change, report) for n, change in changes.items()]:
            done.result()
    report.end = time.time()
    print(json.dumps(asdict(report)), flush=True)


def _run(writers: Writers, writer: int, change: Change, report: Report) -> None:
    deadline = None if writers.seconds is None else report.begin + writers.seconds
    for n in range(1 if writers.engine == "optimize" else writers.race.num_commands):
        if deadline is not None and time.time() > deadline:
            return
        begin = time.perf_counter()
        try:
            change(command(writers.race, writer, n), told(writer, n))
        except AbortedError as error:
            report.aborted.append(str(error))
        else:
            report.seconds.append(time.perf_counter() - begin)


# --- ours


def _ours(writers: Writers, report: Report) -> dict[int, Change]:
    """Our evaluator in this process, without Spark."""
    import pyarrow as pa

    from delta_pyds.columnar.schema import arrow_schema
    from delta_pyds.commands.row_changes.delete import run_delete
    from delta_pyds.commands.row_changes.merge import run_merge
    from delta_pyds.commands.row_changes.plan import CommandOptions
    from delta_pyds.commands.row_changes.resolved import MergeClause
    from delta_pyds.commands.row_changes.result import Place
    from delta_pyds.commands.row_changes.update import run_update
    from delta_pyds.errors import ConflictError
    from delta_pyds.table.snapshot import load_snapshot
    from tests.support.planned_changes import planned_delete, planned_merge, planned_update
    from tests.support.table_writes import struct

    schema, here = struct(SCHEMA), Place("process", "a bench says so.")
    clauses = [MergeClause("matched", "update", None, None), MergeClause("not_matched", "insert", None, None)]

    def change(table: str, given: Command, about: str) -> None:
        report.bytes_before = _bytes_read()
        options, snapshot = CommandOptions(user_metadata=about), load_snapshot(table)
        try:
            if given.kind == "delete":
                run_delete(planned_delete(snapshot, given.condition, options), here)
            elif given.kind == "update":
                run_update(planned_update(snapshot, given.condition, {"v": given.value}, options), here)
            else:
                rows = pa.Table.from_pylist(_source_rows(given), schema=arrow_schema(schema))
                run_merge(planned_merge(snapshot, MERGE_CONDITION, clauses, rows, schema, options), here)
        except ConflictError as error:
            raise AbortedError(error.code) from error

    _warm_up(change)
    _count_bytes(report)
    return dict.fromkeys(writers.numbers, partial(change, writers.table))


def _warm_up(change: Callable[[str, Command, str], None]) -> None:
    """Run each kind of command on a table of this process: modules are read from the disk once."""
    from tests.support.table_writes import write_rows

    with tempfile.TemporaryDirectory() as folder:
        write_rows(folder, SCHEMA, first_rows(0, BLOCK_ROWS), properties={"delta.enableDeletionVectors": "true"})
        for kind in KINDS:
            change(folder, Command(kind, 0, BLOCK_ROWS - 1, 0), told(0, 0))


def _count_bytes(report: Report) -> None:
    """Count the bytes that commands read: before their first commit, from the log after a lost race, in mends."""
    from delta_pyds.commands.commit import CommandEnd
    from delta_pyds.log.committer import FileSystemCommitter

    commit, commits_after = CommandEnd.commit, FileSystemCommitter.commits_after

    def counted(part: str, function: Callable[..., Any], *args: Any, **more: Any) -> Any:
        before = _bytes_read()
        result = function(*args, **more)
        report.read_bytes.setdefault(part, []).append(_bytes_read() - before)
        return result

    def counting_commit(self: CommandEnd, *args: Any, mend: Any = None, **more: Any) -> Any:
        report.read_bytes.setdefault("command", []).append(_bytes_read() - report.bytes_before)
        counting_mend = None if mend is None else lambda net: counted("mend", mend, net)
        return commit(self, *args, mend=counting_mend, **more)

    def counting_log(self: FileSystemCommitter, *args: Any, **more: Any) -> Any:
        return counted("log", commits_after, self, *args, **more)

    mock.patch.object(CommandEnd, "commit", counting_commit).start()
    mock.patch.object(FileSystemCommitter, "commits_after", counting_log).start()


def _bytes_read() -> int:
    """The bytes that this process has read from files, cached ones too."""
    return int(Path("/proc/self/io").read_text().split()[1])


def _optimize(writers: Writers, _: Report) -> dict[int, Change]:
    """A compaction of the whole table."""
    from delta_pyds.commands.layout.optimize import plan_optimize
    from delta_pyds.commands.layout.run import run_layout
    from delta_pyds.commands.row_changes.plan import CommandOptions
    from delta_pyds.commands.row_changes.result import Place
    from delta_pyds.errors import ConflictError
    from delta_pyds.table.snapshot import load_snapshot

    def change(_: Command, __: str) -> None:
        try:
            run_layout(
                plan_optimize(load_snapshot(writers.table), (), CommandOptions()), Place("process", "a bench says so.")
            )
        except ConflictError as error:
            raise AbortedError(error.code) from error

    return dict.fromkeys(writers.numbers, change)


def _source_rows(given: Command) -> list[dict[str, Any]]:
    return [dict(zip(SCHEMA, row, strict=True)) for row in given.source]


# --- others


def _deltalake(writers: Writers, _: Report) -> dict[int, Change]:
    """deltalake in this process, with its own retries of commits."""
    import pyarrow as pa
    from deltalake import CommitProperties, DeltaTable
    from deltalake.exceptions import DeltaError

    def source(given: Command) -> pa.Table:
        return pa.Table.from_pylist(_source_rows(given))

    def change(given: Command, about: str) -> None:
        table, more = DeltaTable(writers.table), {"commit_properties": CommitProperties({"userMetadata": about})}
        try:
            if given.kind == "delete":
                table.delete(given.condition, **more)
            elif given.kind == "update":
                table.update(updates={"v": given.value}, predicate=given.condition, **more)
            else:
                merge = table.merge(source(given), MERGE_CONDITION, source_alias="s", target_alias="t", **more)
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
        except DeltaError as error:
            raise AbortedError(type(error).__name__) from error

    return dict.fromkeys(writers.numbers, change)


def _reference(writers: Writers, _: Report) -> dict[int, Change]:
    """delta-spark: each writer is a thread with a session of its own in one JVM."""
    from tests.bench.peers.settings import WORKERS
    from tests.interop.reference_session import for_few_rows, reference_session

    builder = reference_session(WORKERS, Path(writers.scratch) / "spark", memory="2g")
    spark = for_few_rows(builder.appName("writers of one table")).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    name = f"delta.`{writers.table}`"

    def changing(session: Any) -> Change:
        def change(given: Command, about: str) -> None:
            session.conf.set("spark.databricks.delta.commitInfo.userMetadata", about)
            try:
                session.sql(_statement(name, given)).collect()
            except Exception as error:
                if "Concurrent" not in (text := f"{type(error).__name__} {error}"):
                    raise
                words = text.replace("[", " ").replace("]", " ").split()
                raise AbortedError(next(w for w in words if "CONCURRENT" in w or "Concurrent" in w)) from error

        return change

    changes = {n: changing(spark.newSession()) for n in writers.numbers}
    spark.table(name).count()
    return changes


def _statement(name: str, given: Command) -> str:
    if given.kind == "delete":
        return f"DELETE FROM {name} WHERE {given.condition}"
    if given.kind == "update":
        return f"UPDATE {name} SET v = {given.value} WHERE {given.condition}"
    rows = ", ".join(f"({i}L, {v}L, '{note}')" for i, v, note in given.source)
    return (
        f"MERGE INTO {name} AS t USING (SELECT * FROM VALUES {rows} AS s(id, v, note)) AS s ON {MERGE_CONDITION} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


_CHANGES: dict[Engine, Callable[[Writers, Report], dict[int, Change]]] = {
    "ours": _ours,
    "optimize": _optimize,
    "deltalake": _deltalake,
    "reference": _reference,
}

if __name__ == "__main__":
    main()
