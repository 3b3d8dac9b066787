"""Damaged tables in processes of their own, with a limit to memory and time.

Invariant: a result comes for each number, whatever becomes of its process. A process goes on to the next number, as
a session would, so that what it remembers of one table must not spoil another; after a fault, or a hundred numbers,
a new one takes its place.
"""

from __future__ import annotations

import multiprocessing as mp
import multiprocessing.connection as mpc
import os
import pickle
import resource
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from delta_pyds import verify
from tests.fuzz.damage import apply
from tests.fuzz.operations import Outcome, chosen, operations, outcome_of, quiet
from tests.fuzz.spark_operations import spark_operations, spark_outcome, start_spark
from tests.fuzz.tables import TABLES, BaseTable, build
from tests.fuzz.verdicts import UNCHECKED, Result, Verdict, verdict

SECONDS = 20
# A stream of Spark takes seconds for itself, and more where others work.
SPARK_SECONDS = 90
# Until a process says anything; Spark's may take its time.
_SECONDS_TO_START = 300
_START = "start"
MEMORY_BYTES = 2 << 30
_NUMBERS_PER_PROCESS = 100
_CHECK_WHOLE_TABLE_EACH = 4

Expected = dict[str, dict[str, Outcome]]


@dataclass(frozen=True)
class Place:
    """Where a process damages its tables.

    ``keep``: damaged tables stay as they are. ``through``: what reads them, "core" or "spark". ``part``: of a table, as
    ``apply`` takes it.
    """

    folder: Path
    keep: bool = False
    through: str = "core"
    part: str = "anything"

    def root(self, table: BaseTable) -> Path:
        return self.folder / "tables" / table.name

    def sound(self, table: BaseTable) -> Path:
        """A copy that nobody damages."""
        return self.folder / "sound" / table.name


def run(
    seed: str,
    numbers: Iterable[int],
    processes: int = 2,
    *,
    keep: Path | None = None,
    through_spark: Collection[int] = (),
    part: str = "anything",
) -> Iterator[Result]:
    """Yield the results of the numbers through the core, and of others through Spark, as they come.

    ``part``: what of the tables is damaged, as ``apply`` takes it.
    """
    folder = Path(keep or tempfile.mkdtemp(prefix="delta_pyds_fuzz_"))
    places = [Place(folder / f"{i:02d}", keep is not None, part=part) for i in range(processes)]
    core = iter(numbers)
    work = [(place, core) for place in places]
    if through_spark:
        work.append((Place(folder / "spark", keep is not None, through="spark", part=part), iter(through_spark)))
    try:
        _in_a_process(lambda: _prepare([place for place, _ in work], folder / "expected"))
        expected: Expected = pickle.loads((folder / "expected").read_bytes())
        yield from _results(seed, work, expected)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def _in_a_process(work: Callable[[], None]) -> None:
    """Run it elsewhere: this process makes many others, and must have no threads of Arrow's."""
    process = mp.get_context("fork").Process(target=work)
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError("the tables could not be made")


def _prepare(places: list[Place], target: Path) -> None:
    expected: Expected = {}
    for place in places:
        for table in TABLES:
            root = place.root(table)
            known = build(table, root)
            shutil.copytree(root, place.sound(table))
            if table.name in expected:
                continue
            report = verify(str(root))
            assert not report.findings, f"{table.name} is not sound: {report}"
            found = {name: outcome_of(operation, str(root)) for name, operation in operations(table).items()}
            assert all(o.kind == "rows" for o in found.values()), f"{table.name} cannot be read: {found}"
            # repr of rows that the table builder knows without the package
            assert known is None or sorted(map(repr, known)) == sorted(found["read"].rows.elements()), table.name
            expected[table.name] = found
    target.write_bytes(pickle.dumps(expected))


# ---- the process that makes the others


class _Worker:
    """One process, its place, and what it works on; it is started when there is work."""

    def __init__(self, seed: str, place: Place, expected: Expected, numbers: Iterator[int]) -> None:
        self._seed, self._place, self._expected = f"{seed}-{place.through}", place, expected
        self._numbers = numbers
        self._seconds = SPARK_SECONDS if place.through == "spark" else SECONDS
        self.number: int | None = None
        self.operation = _START
        self.deadline = 0.0
        self._process: Any = None
        self._done = 0

    def _start(self) -> None:
        context = mp.get_context("fork")
        self.connection, theirs = context.Pipe()
        work = _work_with_spark if self._place.through == "spark" else _work
        self._process = context.Process(target=work, args=(theirs, self._seed, self._place, self._expected))
        self._process.start()
        theirs.close()
        self._done = 0

    def give_next(self) -> None:
        """Begin with the next number, if there is one."""
        number = next(self._numbers, None)
        if number is None:
            return
        if self._process is not None and self._done >= _NUMBERS_PER_PROCESS:
            self.end()
        if self._process is None:
            self._start()
            self.deadline = time.monotonic() + _SECONDS_TO_START
        else:
            self.deadline = time.monotonic() + self._seconds
        self._done += 1
        self.number, self.operation = number, _START
        with suppress(OSError):  # that of a process that is gone is met when its answer is taken
            self.connection.send(number)

    def take(self) -> Result | None:
        """The result, if what the process said is one; that of its end, if it ended."""
        try:
            said = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self.lost("crash")
        if isinstance(said, str):
            if self.operation == _START:
                self.deadline = time.monotonic() + self._seconds
            self.operation = said
            return None
        self.number = None
        if said.faults and self._place.through == "core":
            self.end()
        return said

    def lost(self, kind: str) -> Result:
        """The result of a process that ended, or is ended here."""
        assert self.number is not None
        if kind == "hang":
            self._process.kill()
        self._process.join()
        code = self._process.exitcode or 0
        self._forget()
        text = (
            f"no end after {self._seconds} seconds"
            if kind == "hang"
            else f"signal {signal.Signals(-code).name}"
            if code < 0
            else f"exit {code}"
        )
        table, damages = _damage_again(self._seed, self._place, self.number)
        said = [Verdict(self.operation, kind, text)]
        result = Result(self.number, table, damages, said, through=self._place.through)
        self.number = None
        return result

    def end(self) -> None:
        """Let the process end, if there is one."""
        if self._process is None:
            return
        with suppress(OSError):
            self.connection.send(None)
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
        self._forget()

    def _forget(self) -> None:
        self.connection.close()
        self._process = None


def _results(seed: str, work: list[tuple[Place, Iterator[int]]], expected: Expected) -> Iterator[Result]:
    workers = [_Worker(seed, place, expected, numbers) for place, numbers in work]
    try:
        for worker in workers:
            worker.give_next()
        while busy := [w for w in workers if w.number is not None]:
            wait = max(0.0, min(w.deadline for w in busy) - time.monotonic())
            ready = mpc.wait([w.connection for w in busy], wait)
            for worker in busy:
                result = None
                if worker.connection in ready:
                    result = worker.take()
                elif time.monotonic() > worker.deadline:
                    result = worker.lost("hang")
                if result is not None:
                    yield result
                    worker.give_next()
    finally:
        for worker in workers:
            worker.end()


def _damage_again(seed: str, place: Place, number: int) -> tuple[str, list[Any]]:
    """The damage done to the table of a process that is gone."""
    reader, writer = mp.Pipe(False)

    def work() -> None:
        table, random = _begin(seed, number)
        for each in TABLES:
            SoundCopy(place.sound(each), place.root(each)).restore()
        writer.send((table.name, apply(place.root(table), _others(place, table), random, place.part)))

    process = mp.get_context("fork").Process(target=work)
    process.start()
    process.join(SECONDS)
    if reader.poll():
        found: tuple[str, list[Any]] = reader.recv()
        return found
    return "?", []


# ---- the process that asks


def _begin_process(place: Place) -> dict[str, SoundCopy]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    copies = {table.name: SoundCopy(place.sound(table), place.root(table)) for table in TABLES}
    for copy in copies.values():
        copy.restore()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    return copies


def _work_with_spark(connection: Any, seed: str, place: Place, expected: Expected) -> None:
    copies = _begin_process(place)
    scratch = Path(tempfile.mkdtemp(dir=place.folder))
    spark = start_spark(scratch)
    try:
        while (number := connection.recv()) is not None:
            connection.send("damage")
            table, random = _begin(seed, number)
            damages = apply(place.root(table), _others(place, table), random, place.part)
            verdicts = []
            for name, (like, operation) in spark_operations(table, random, spark, scratch).items():
                connection.send(name)
                outcome = spark_outcome(operation, str(place.root(table)))
                verdicts.append(verdict(name, outcome, expected[table.name][like], damages))
            if not place.keep:
                copies[table.name].restore()
            connection.send(Result(number, table.name, damages, verdicts, through="spark"))
    finally:
        spark.stop()


def _work(connection: Any, seed: str, place: Place, expected: Expected) -> None:
    copies = _begin_process(place)
    with quiet():
        while (number := connection.recv()) is not None:
            connection.send("damage")
            table, random = _begin(seed, number)
            result = _ask(connection.send, table, place, number, random, expected[table.name])
            if not place.keep:
                copies[table.name].restore()
                if number % _CHECK_WHOLE_TABLE_EACH == 0 and not result.faults:
                    result = _check_whole(result, table, place, expected[table.name])
            connection.send(result)


def _begin(seed: str, number: int) -> tuple[BaseTable, Random]:
    random = Random(f"{seed}:{number}")
    return random.choice(TABLES), random


def _others(place: Place, table: BaseTable) -> list[Path]:
    return [place.sound(t) for t in TABLES if t.name != table.name]


def _ask(
    say: Callable[[str], None],
    table: BaseTable,
    place: Place,
    number: int,
    random: Random,
    expected: dict[str, Outcome],
) -> Result:
    root = place.root(table)
    damages = apply(root, _others(place, table), random, place.part)
    verdicts, report = [], None
    for name, operation in chosen(table, random).items():
        say(name)
        outcome = outcome_of(operation, str(root))
        verdicts.append(verdict(name, outcome, expected[name], damages))
        report = outcome if name == "verify" else report
    names_it = None
    if any(v.kind in (UNCHECKED, "wrong rows") for v in verdicts):
        say("verify")
        report = report or outcome_of(operations(table)["verify"], str(root))
        names_it = report.kind != "rows" or report.text != expected["verify"].text
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return Result(number, table.name, damages, verdicts, names_it, memory)


def _check_whole(result: Result, table: BaseTable, place: Place, expected: dict[str, Outcome]) -> Result:
    """The table as it was before must be read as before."""
    verdicts = list(result.verdicts)
    for v in result.verdicts:
        again = outcome_of(operations(table)[v.operation], str(place.root(table)))
        if again.rows != expected[v.operation].rows or again.kind != "rows":
            text = f"before, damaged: {v.kind} {v.text[:300]}; then whole again: {again.kind} {again.text}"
            verdicts.append(Verdict(v.operation, "outlived", text))
    return Result(result.number, result.table, result.damages, verdicts, result.verify_names_it, result.memory_mb)


class SoundCopy:
    """A table and its sound copy: puts back what was changed, and only that."""

    def __init__(self, sound: Path, root: Path) -> None:
        self._sound, self._root = sound, root
        self._known: dict[str, tuple[int, ...]] = {}

    def restore(self) -> None:
        found = self._found()
        for name in sorted(found, reverse=True):
            if found[name] != self._known.get(name) or not self._known:
                _remove(self._root / name)
        wanted = [file for file in sorted(self._sound.rglob("*")) if file.is_file()]
        for file in wanted:
            target = self._root / file.relative_to(self._sound)
            if not os.path.lexists(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)
        self._known = self._found()

    def _found(self) -> dict[str, tuple[int, ...]]:
        """Each entry of the sound copy that is not a directory, with a value that shows whether it is unchanged."""
        found = {}
        for folder, folders, files in os.walk(self._root):
            for name in [*files, *folders]:
                path = os.path.join(folder, name)
                below = os.path.relpath(path, self._root)
                s = os.lstat(path)
                if stat.S_ISDIR(s.st_mode) and (self._sound / below).is_dir():
                    continue
                found[below] = (s.st_mode, s.st_size, s.st_mtime_ns, s.st_ino, s.st_ctime_ns)
        return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
