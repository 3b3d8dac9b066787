"""Reads of tables of very many files: on disk, of which few are left, and in a store.

Each side runs in a session of its own, which has read a table of ten files. ``cold``: the session has not seen the
table; ``warm``: the same again. The files of the tables on disk that are only planned are in the log alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.measure import Side, say
from tests.bench.peers.goals import ON_CONNECT, READ, READY_INDEX, REFERENCE
from tests.bench.peers.many_files import ROWS_OF_A_SMALL_FILE, table_of, table_of_small_files
from tests.bench.peers.planning import key_of
from tests.bench.peers.reads_of_many_files_process import THE_PLAN
from tests.bench.peers.results import Pair, Results
from tests.bench.peers.rows import first_difference
from tests.bench.peers.sail import Engine, running
from tests.bench.peers.settings import PeerSettings
from tests.bench.store_server import StoreServer, counted
from tests.bench.tables import made_once
from tests.support.faulty_proxy import Exchange
from tests.support.store_processes import s3_proxy_server
from tests.support.store_programs import connector_jars

_WARM_UP_FILES = 10
_LATENCY_S = 0.03
_BUCKET = "bucket"
_PAIR = Pair(READ, REFERENCE)
_OVER_CLASSIC = Pair(ON_CONNECT, READ)
_BESIDE_INDEX = Pair(READ, REFERENCE, READY_INDEX)


@dataclass(frozen=True)
class Place:
    """The location of tables.

    ``options``: of the storage. ``settings``: of the session. ``server``: it counts requests.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    server: StoreServer | None = None


_ON_DISK = Place()


@dataclass(frozen=True)
class _Question:
    """``what``: the row's text. ``find``, ``where``: see the process. ``work``: as goals name it, by temperature."""

    what: str
    find: str
    table: str
    work: Mapping[str, str]
    where: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"table": self.table, "find": self.find, "where": self.where}


def _both(work: str) -> dict[str, str]:
    return {temperature: f"{work}, {temperature}" for temperature in ("cold", "warm")}


# The answers of one question, by temperature and side, a list of rounds each.
_Answers = dict[str, dict[str, list[dict[str, Any]]]]


def on_disk(settings: PeerSettings, results: Results) -> None:
    """Small files that are all read, files of which one is left, and a million that a plan has."""
    for work in (all_read, one_left, all_planned):
        work(settings, results)


def all_read(settings: PeerSettings, results: Results) -> None:
    """Small files that are all read."""
    size = settings.read_files
    question = _Question(
        f"{size:,} files on disk: load and first aggregate", "one column",
        str(table_of_small_files(settings.data, size)), _both("load and first aggregate of many files"),
    )  # fmt: skip
    answers = _asked(settings, _ON_DISK, question, (READ, REFERENCE, READY_INDEX, ON_CONNECT))
    _seconds(results, question, answers, [_BESIDE_INDEX, _OVER_CLASSIC])


def one_left(settings: PeerSettings, results: Results) -> None:
    """Files of which one is read."""
    size = settings.pruned_files
    question = _Question(
        f"{size:,} files, one of them left: load and query", "one column", str(table_of(settings, size)),
        _both("load and selective query"), f"id = {key_of(size)}",
    )  # fmt: skip
    answers = _asked(settings, _ON_DISK, question, (READ, REFERENCE))
    _seconds(results, question, answers, [_PAIR])


def all_planned(settings: PeerSettings, results: Results) -> None:
    """Files of which a plan has all; memory after it."""
    size = settings.planned_files
    question = _Question(
        f"{size:,} files: load and plan of all", THE_PLAN, str(table_of(settings, size)), {"cold": "load of all files"}
    )
    answers = _asked(settings, _ON_DISK, question, (READ, REFERENCE))
    _seconds(results, question, answers, [_PAIR])
    for name, what, work in (
        ("heap", "heap of the driver", "load of all files"),
        ("process", "memory of the user's process", "memory"),
    ):
        took = {side: Side(peak_mb=[one[name] for one in rounds]) for side, rounds in answers["cold"].items()}
        results.add(work, f"{size:,} files: {what} after it", took, [_PAIR], "MB")


def in_a_store(settings: PeerSettings, results: Results) -> None:
    """A query that one file answers, and scans of one column and of all, where each request takes 30 ms.

    Raises: LookupError if the store's server or Spark's connector cannot be had.
    """
    with store(settings) as place:
        for work in (one_left_in_a_store, one_column_in_a_store, all_columns_in_a_store):
            work(settings, results, place)


def one_left_in_a_store(settings: PeerSettings, results: Results, place: Place) -> None:
    """A query that one file answers."""
    where = f"id = {settings.stored_files // 3 * ROWS_OF_A_SMALL_FILE + 1}"
    work = _both("in a store: load and selective query")
    _stored_table(settings, results, place, "one of them left: load and query", "one column", work, _PAIR, where)


def one_column_in_a_store(settings: PeerSettings, results: Results, place: Place) -> None:
    """A scan of one column of seven, on a classic session and through Spark Connect."""
    work = _both("in a store: one column")
    _stored_table(settings, results, place, "one column of seven", "one column", work, _OVER_CLASSIC)


def all_columns_in_a_store(settings: PeerSettings, results: Results, place: Place) -> None:
    """A scan of all columns."""
    work = {"cold": "in a store: full scan"}
    _stored_table(settings, results, place, "full scan", "all columns", work, _BESIDE_INDEX)


def _stored_table(
    settings: PeerSettings,
    results: Results,
    place: Place,
    what: str,
    find: str,
    work: Mapping[str, str],
    pair: Pair,
    where: str | None = None,
) -> None:
    size = settings.stored_files
    table, small = (_stored(settings, place, n) for n in (size, _WARM_UP_FILES))
    question = _Question(f"{size:,} files in a store at 30 ms, {what}", find, table, work, where)
    sides = [pair.ours, pair.theirs, *([pair.floor] if pair.floor else [])]
    answers = _asked(settings, place, question, sides, small)
    _seconds(results, question, answers, [pair])
    _requests(results, question, answers, [pair])


@contextmanager
def store(settings: PeerSettings) -> Iterator[Place]:
    """s3proxy over a directory of tables, S3A in the session, and a proxy between them that counts and waits."""
    objects = _objects(settings)
    objects.mkdir(parents=True, exist_ok=True)
    jars = ",".join(map(str, connector_jars("S3A")))
    with s3_proxy_server(objects=objects.parent) as url, counted(url) as server:
        options = server.options()
        session = {
            "spark.jars": jars,
            "spark.hadoop.fs.s3a.endpoint": server.url,
            "spark.hadoop.fs.s3a.endpoint.region": options["client_kwargs"]["region_name"],
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": options["key"],
            "spark.hadoop.fs.s3a.secret.key": options["secret"],
        }
        yield Place(options, session, server)


def _objects(settings: PeerSettings) -> Path:
    return settings.data / "store" / _BUCKET


def _stored(settings: PeerSettings, place: Place, size: int) -> str:
    """The URL of a table of ``size`` files. The store made its objects: a file of another hand has no ETag there."""
    table = table_of_small_files(settings.data, size)

    def put(_: Path) -> None:
        import s3fs

        s3fs.S3FileSystem(**place.options).put(f"{table}/", f"{_BUCKET}/{table.name}/", recursive=True)

    made_once(_objects(settings) / table.name, put)
    return f"s3a://{_BUCKET}/{table.name}"


def _asked(
    settings: PeerSettings, place: Place, question: _Question, sides: Sequence[str], small: str = ""
) -> _Answers:
    """Ask the sides in turn, in alternating order. All find the same rows. ``small``: the table that warms them up."""
    small = small or str(table_of_small_files(settings.data, _WARM_UP_FILES))
    say(question.what)
    answers: _Answers = {temperature: {side: [] for side in sides} for temperature in question.work}
    for number in range(settings.rounds):
        for side in sides[:: -1 if number % 2 else 1]:
            with _side(settings, place, question, side, small) as ask:
                for temperature in question.work:
                    answer = ask()
                    answers[temperature][side].append(answer)
                    seconds = f"{answer['seconds']:.2f} s, {answer['load']:.2f} of it to load"
                    say(f"  {side}, {temperature}: {seconds}; {answer['cpu']:.2f} s of CPU time")
    for temperature, by_side in answers.items():
        [first, *others] = [one for rounds in by_side.values() for one in rounds]
        for other in others:
            if difference := first_difference(first.get("rows", []), other.get("rows", []), ordered=True):
                raise RuntimeError(f"{question.what}, {temperature}: the sides differ: {difference}")
    return answers


@contextmanager
def _side(
    settings: PeerSettings, place: Place, question: _Question, side: str, small: str
) -> Iterator[Callable[[], dict[str, Any]]]:
    """A function that asks one side the question. Its session is ready, and ends with the block."""
    arguments = {
        "side": side, "data": str(settings.data), "options": dict(place.options), "settings": dict(place.settings),
        "warm_up": {"table": small, "find": "one column", "where": None},
    }  # fmt: skip
    command = [sys.executable, "-m", "tests.bench.peers.reads_of_many_files_process", json.dumps(arguments)]
    with running(command, os.environ) as engine:
        engine.ask({**question.as_json(), "find": None})

        def ask() -> dict[str, Any]:
            if place.server is None:
                return _answer(engine, question)
            place.server.behave(_LATENCY_S)
            place.server.taken()
            answer = _answer(engine, question)
            answer["requests"] = place.server.taken()
            place.server.behave()
            return answer

        yield ask


def _answer(engine: Engine, question: _Question) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(engine.ask(question.as_json()))
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def _seconds(results: Results, question: _Question, answers: _Answers, pairs: Sequence[Pair]) -> None:
    for temperature, by_side in answers.items():
        work, what = question.work[temperature], f"{question.what}, {temperature}"
        took = {
            side: Side([one["seconds"] for one in rounds], cpu_seconds=[one["cpu"] for one in rounds])
            for side, rounds in by_side.items()
        }
        results.add(work, what, took, pairs)
        results.add(work, f"{what}, CPU time", took, pairs, "CPU s")


def _requests(results: Results, question: _Question, answers: _Answers, pairs: Sequence[Pair]) -> None:
    for temperature, by_side in answers.items():
        work, what = question.work[temperature], f"{question.what}, {temperature}"
        counts = {side: Side([len(one["requests"]) for one in rounds]) for side, rounds in by_side.items()}
        sizes = {
            side: Side([sum(r.bytes_sent + r.bytes_received for r in one["requests"]) / 1e3 for one in rounds])
            for side, rounds in by_side.items()
        }
        results.add(work, f"{what}: requests", counts, pairs, "requests")
        results.add(work, f"{what}: bytes", sizes, pairs, "kB")
        for side, rounds in by_side.items():
            results.note(f"{what}, {side}: {_kinds(rounds[-1]['requests'])}")


def _kinds(made: Sequence[Exchange]) -> str:
    counts = Counter((one.kind, "the log" if "_delta_log" in one.path else "files") for one in made)
    return ", ".join(f"{number} {kind} of {part}" for (kind, part), number in sorted(counts.items()))
