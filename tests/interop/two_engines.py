"""Writers of one table, of either engine, each a process: what they do, what they are told, and what must be then.

Invariants: a commit says in its ``userMetadata`` what it did, so the log alone gives the serial order; every attempt
writes rows of names that no other has, so a row of an attempt that was refused would be seen.

Run as ``python -m tests.interop.two_engines ours|reference FOLDER NUMBER COMMITS SEED``.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.interop.racing import OURS, REFERENCE, racing_reference, wait_for_start

SCHEMA = {"id": "string", "p": "string"}
SHARED = "shared"
WRITERS = 4
_ROWS = 3
_CHOICES = (
    # operation, on the partition that all share, weight
    ("append", False, 4), ("append", True, 2), ("replace", False, 2), ("replace", True, 3), ("clear", True, 1),
)  # fmt: skip
# one writer's refusals in a row before it gives up: by then it starves
_ATTEMPTS = 60
_LONGEST_PAUSE_S = 0.2


@dataclass(frozen=True)
class Done:
    """One attempt. ``clear`` replaces the partition's rows by none."""

    operation: str
    partition: str
    writer: str
    n: int
    attempt: int

    @property
    def rows(self) -> list[str]:
        count = 0 if self.operation == "clear" else _ROWS
        return [f"{self.writer}-{self.n}-{self.attempt}.{i}" for i in range(count)]

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))

    @property
    def predicate(self) -> str | None:
        return None if self.operation == "append" else f"p = '{self.partition}'"


class RefusedError(Exception):
    """A conflict that an engine named. ``winner``: what it says of the commit that came first."""

    def __init__(self, code: str, winner: dict[str, Any], text: str) -> None:
        super().__init__(text)
        self.code, self.winner = code, winner


class Writer:
    """Makes its commits one after another, each tried with a new plan until it is in, and notes what it was told."""

    def __init__(self, engine: str, folder: Path, number: int, seed: int) -> None:
        self.name = f"{engine}{number}"
        self.folder = folder
        self._random = random.Random(f"{seed}/{self.name}")

    def run(self, commits: int, write: Callable[[Done, float], int | None], wait: Callable[[int], None]) -> None:
        with open(self.folder / f"{self.name}.jsonl", "a", buffering=1) as notes:
            for n in range(commits):
                wait(n)
                operation, shared, _ = self._random.choices(_CHOICES, [weight for *_, weight in _CHOICES])[0]
                for attempt in range(_ATTEMPTS):
                    done = Done(operation, SHARED if shared else f"of {self.name}", self.name, n, attempt)
                    pause = self._random.uniform(0, _LONGEST_PAUSE_S)
                    try:
                        version = write(done, pause)
                    except RefusedError as e:
                        refused = {"code": e.code, "winner": e.winner, "text": str(e)[:2000]}
                        notes.write(json.dumps({"done": asdict(done), "refused": refused}) + "\n")
                    else:
                        notes.write(json.dumps({"version": version, "done": asdict(done)}) + "\n")
                        break
                else:
                    raise AssertionError(f"{self.name} was refused {_ATTEMPTS} times in a row at its commit {n}.")


def acknowledged(folder: Path, engine: str) -> int:
    """The number of commits that the writers of an engine were told of; a refusal names a version too."""
    files = folder.glob(f"{engine}*.jsonl")
    return sum(line.startswith('{"version"') for file in files for line in file.read_text().splitlines())


# --- ours


def write_as_us(table: str) -> Callable[[Done, float], int | None]:
    """The core without Spark: plan, write, wait, commit."""
    from delta_pyds.commands.write.request import WriteRequest
    from delta_pyds.commands.write.write import commit_write, plan_write
    from delta_pyds.data.write.task import write as write_task
    from delta_pyds.data.write.task_session import TaskSession
    from delta_pyds.errors import ConflictError
    from tests.support.table_writes import batch_of, struct

    schema = struct(SCHEMA)

    def write(done: Done, pause: float) -> int | None:
        plan = plan_write(
            WriteRequest(
                table_root=table,
                incoming=schema,
                mode="append" if done.predicate is None else "overwrite",
                replace_where=done.predicate,
                user_metadata=done.text,
            )
        )
        assert plan.state is not None
        rows = [{"id": row, "p": done.partition} for row in done.rows]
        output = write_task(plan.state, iter(batch_of(rows, schema)), TaskSession(0))
        time.sleep(pause)
        try:
            committed = commit_write(plan, [output])
        except ConflictError as e:
            raise RefusedError(e.code, {"version": e.parameters.get("version")}, str(e)) from e
        return None if committed is None else committed.version

    return write


# --- the reference


def write_as_reference(table: str, folder: Path, number: int) -> Callable[[Done, float], int | None]:
    spark = racing_reference(folder, number)

    def write(done: Done, _: float) -> int | None:
        """It is slow enough to be overtaken without a pause."""
        writer = f"{done.writer}-{done.n}-{done.attempt}."
        df = spark.range(0, len(done.rows), 1, 1).selectExpr(
            f"concat('{writer}', id) AS id", f"'{done.partition}' AS p"
        )
        action = df.write.format("delta").option("userMetadata", done.text)
        action = action.mode("append" if done.predicate is None else "overwrite")
        if done.predicate is not None:
            action = action.option("replaceWhere", done.predicate)
        try:
            action.save(table)
        except Exception as e:
            refused = conflict(str(e))
            if refused is None:
                raise
            raise refused from e
        return None

    return write


def conflict(text: str) -> RefusedError | None:
    """The conflict that the reference names in an error, or None if the error is another one."""
    code = re.search(r"\[(DELTA_(?:CONCURRENT_|METADATA_CHANGED|PROTOCOL_CHANGED)[A-Z_]*)(?:\.[A-Z_]+)?\]", text)
    if code is None:
        return None
    version = re.search(r"committed at version (\d+)", text)
    winner = {"version": int(version[1])} if version else {}
    return RefusedError(code[1], winner, text)


# --- what must be


def replay(operations: Sequence[Done]) -> list[tuple[str, str]]:
    """The rows after a serial execution in the order given, as (partition, id)."""
    rows: dict[str, list[str]] = {}
    for done in operations:
        if done.operation != "append":
            rows[done.partition] = []
        rows.setdefault(done.partition, []).extend(done.rows)
    return sorted((p, row) for p, found in rows.items() for row in found)


def allowed(done: Done, code: str, adds: int, removes: int) -> bool:
    """Whether the decision table lets a winner that added and removed these files of the partition refuse an attempt.

    A blind append conflicts with nothing. An overwrite of a partition has read the files of that partition alone. Its
    rows are asked in turn: added files that it would have read, then removed ones that it read. It removes no file
    that it did not read, so what removes the same file twice is named by the row before.
    """
    if done.operation == "append" or done.partition != SHARED:
        return False
    if code == "DELTA_CONCURRENT_APPEND":
        return adds > 0
    return code == "DELTA_CONCURRENT_DELETE_READ" and adds == 0 and removes > 0


def main(engine: str, folder: Path, number: int, commits: int, seed: int) -> None:
    table = str(folder / "table")
    writer = Writer(engine, folder, number, seed)
    write = write_as_us(table) if engine == OURS else write_as_reference(table, folder, number)
    wait_for_start(folder, writer.name)

    def wait(n: int) -> None:
        """We are ten times as fast: without this we would have finished before the reference had begun."""
        while engine == OURS and acknowledged(folder, REFERENCE) < n * WRITERS:
            time.sleep(0.01)

    writer.run(commits, write, wait)


if __name__ == "__main__":
    import logging

    logging.disable(logging.INFO)
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6]))
