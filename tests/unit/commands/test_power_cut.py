"""A power cut takes nothing that a command has said is there: no commit outlives a file that it names, and nothing is
deleted before what takes its place is on the disk.

Every sync that a command makes, and every deletion, is a moment at which the power may go: what is left then is a table
at one of its versions, with the rows of that version.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.catalog.address import locate, reserve
from delta_pyds.catalog.named import forget_catalogs
from delta_pyds.catalog.staging import STAGING_DIRECTORY, clean_staged
from delta_pyds.columnar.schema import arrow_schema
from delta_pyds.commands.layout.optimize import plan_optimize, plan_zorder
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.maintain import checkpoint
from delta_pyds.commands.maintenance.clone import CloneOptions, shallow_clone
from delta_pyds.commands.maintenance.convert import ConvertOptions, convert
from delta_pyds.commands.maintenance.restore import RestoreOptions, restore
from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.commands.row_changes.delete import run_delete
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.row_changes.update import run_update
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.stream import commit_batch, plan_batch
from delta_pyds.data.write.task import write
from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.errors import CommitOutcomeUnknownError, DeltaError, TableNotFoundError
from delta_pyds.log.committer import put_commit
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.tasks.write_state import StreamOrigin
from delta_pyds.verification.verify import verify
from tests.support.change_feed import change_rows
from tests.support.planned_changes import planned_delete, planned_merge, planned_update
from tests.support.power_cut import Disk, noting_syncs
from tests.support.table_writes import batch_of, read_rows, struct, write_rows

Partitions = tuple[tuple[str, ...], ...]
BY_P: Partitions = (("p",),)
SCHEMA = {"id": "long", "p": "string"}
HERE = Place("process", "a test says so.")
OPTIONS = CommandOptions()
KINDS = {
    "vectors": {"delta.enableDeletionVectors": "true"},
    "rewriting": {},
    "change feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
}


class Machine:
    """A disk of which a power cut takes what no sync covers, with one table. ``path``: several directories down."""

    def __init__(self, base: Path) -> None:
        self.base, self.cuts = base / "disk", base / "cuts"
        self.base.mkdir()
        self.disk = Disk(self.base, base / "record")
        self.path = self.base / "a" / "b" / "t"
        self.faults: list[str] = []
        self._acknowledged = -1
        self._rows: dict[int, Any] = {}
        self._number = 0

    def cut(self) -> Path:
        """The table, as a power cut leaves it now."""
        self._number += 1
        left = self.cuts / str(self._number)
        self.disk.left_after_power_cut(left)
        return left / self.path.relative_to(self.base)

    def look(self) -> None:
        """Note what would be wrong if the power went now; the command goes on."""
        try:
            left = self.cut()
            try:
                version = load_snapshot(str(left)).version
            except TableNotFoundError:
                version = -1
            if version < self._acknowledged:
                self.faults.append(f"version {version} is left of {self._acknowledged}")
            if version >= 0 and rows_of(left) != self._rows_of(version):
                self.faults.append(f"version {version} has other rows: {rows_of(left)}")
        except DeltaError as error:
            self.faults.append(f"{type(error).__name__}: {error.message}")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A command, which may be stopped anywhere, and what it did when it is over."""
        with noting_syncs(self.disk, self.look):
            yield
            assert not self.faults, self.faults[:3]
            self._acknowledged = load_snapshot(str(self.path)).version
            self.look()
        assert not self.faults, self.faults[:3]
        left = self.cut()
        assert not verify(str(left)).findings

    def _rows_of(self, version: int) -> Any:
        if version not in self._rows:
            self._rows[version] = rows_of(self.path, version)
        return self._rows[version]


def rows_of(path: Path, version: int | None = None) -> list[Any]:
    return sorted(tuple(row.items()) for row in read_rows(path, version))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.disk.keep_all()
    return machine


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"id": n, "p": f"p{n % 3}"} for n in range(first, last)]


def append(path: Path, first: int = 0, last: int = 6, **request: Any) -> None:
    """By two tasks, whose files lie in the same new directories where the table has partitions."""
    middle = (first + last) // 2
    write_rows(path, SCHEMA, [rows(first, middle), rows(middle, last)], **request)


def vacuum(path: Path, **options: Any) -> None:
    run_vacuum(plan_vacuum(LocalStorage(), str(path), VacuumOptions(0, check_retention=False, **options)))


# --- what a commit names


@pytest.mark.parametrize("partitions", [(), BY_P])
def test_a_table_that_was_made_and_written_to(machine: Machine, partitions: Partitions) -> None:
    with machine.running():
        append(machine.path, partition_by=partitions)
    with machine.running():
        append(machine.path, 6, 9)
    with machine.running():
        write_rows(machine.path, SCHEMA, rows(20, 23), "overwrite")


@pytest.mark.parametrize("partitions", [(), BY_P])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_changed(machine: Machine, kind: str, partitions: Partitions) -> None:
    path = machine.path
    append(path, partition_by=partitions, properties=KINDS[kind])
    machine.disk.keep_all()
    with machine.running():
        run_delete(planned_delete(load_snapshot(str(path)), "id = 1", OPTIONS), HERE)
    with machine.running():
        run_update(planned_update(load_snapshot(str(path)), "id = 2", {"p": "'new'"}, OPTIONS), HERE)
    with machine.running():
        source = pa.Table.from_pylist(rows(3, 9), schema=arrow_schema(struct(SCHEMA)))
        clauses = [
            MergeClause("matched", "update", None, {"id": "t.id + 100"}),
            MergeClause("not_matched", "insert", None, None),
            MergeClause("not_matched_by_source", "delete", "t.id = 0", None),
        ]
        plan = planned_merge(load_snapshot(str(path)), "t.id = s.id", clauses, source, struct(SCHEMA), OPTIONS)
        run_merge(plan, HERE)
    if kind == "change feed":
        assert list(map(told, change_rows(machine.cut(), 1))) == list(map(told, change_rows(path, 1)))


def told(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if name != "_commit_timestamp"}


@pytest.mark.parametrize("partitions", [(), BY_P])
def test_a_batch_of_a_stream(machine: Machine, partitions: Partitions) -> None:
    with machine.running():
        plan = plan_batch(WriteRequest(str(machine.path), struct(SCHEMA), "append", partition_by=partitions))
        state = pickle.loads(pickle.dumps(plan)).write.state
        output = write(state, iter(batch_of(rows(0, 6), struct(SCHEMA))), TaskSession(0))
        commit_batch(plan, 0, [StreamOrigin("query", 0)], [output])


def test_a_table_of_a_catalog(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_CUT_FACTORY", "tests.support.catalogs:staging_sqlite")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_CUT_FILE", str(machine.base / "new" / "c.db"))
    forget_catalogs()
    with noting_syncs(machine.disk):
        made = reserve("main.db.t", "cut")
        # SQLite syncs its own file, by calls that are not seen here; the way to it is made by us
        assert os.listdir(machine.cut().parents[2]) == ["new"]
    with noting_syncs(machine.disk):
        write_rows(made.table_root, SCHEMA, rows(0, 6), storage_options=made.storage_options, partition_by=BY_P)
        address = locate(table="main.db.t", catalog="cut")
        write_rows(made.table_root, SCHEMA, rows(6, 9), storage_options=address.storage_options)
    forget_catalogs()
    machine.path = Path(made.table_root)
    assert files_below(machine.cut()) == files_below(machine.path)


def test_staged_commits_go_when_what_was_published_of_them_is_there(machine: Machine) -> None:
    staged = machine.path / "_delta_log" / STAGING_DIRECTORY / f"{1:020d}.{uuid.uuid4()}.json"
    staged.parent.mkdir(parents=True)
    staged.write_text("{}")
    os.utime(staged, (0, 0))
    machine.disk.keep_all()
    published = staged.parents[1] / f"{1:020d}.json"
    shutil.copy(staged, published)  # by another engine
    with noting_syncs(machine.disk, lambda: machine.faults.extend(["lost"] * (not files_below(machine.cut())))):
        clean_staged(LocalStorage(), str(machine.path), 1, needed=frozenset(), now_ms=10**12)
    assert not machine.faults
    assert not staged.exists()


def files_below(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_files_on_their_way_go_to_the_disk_before_they_are_closed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_pyds.storage.local_output._STEP_BYTES", 100)
    with machine.running():
        append(machine.path, 0, 5_000)


# --- what others wrote, and this process relies on


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize("log_entries", [False, True])
def test_vacuum_deletes_nothing_before_what_replaced_it_is_there(
    machine: Machine, lite: bool, log_entries: bool
) -> None:
    machine.path.mkdir(parents=True)
    append(machine.path)
    machine.disk.keep_all()
    # as another engine, or a version before this one: nothing of it is synced
    run_layout(plan_optimize(load_snapshot(str(machine.path)), [], OPTIONS), HERE, LocalRunner(1))
    with machine.running():
        vacuum(machine.path, lite=lite, log_entries=log_entries)
    assert len(list(machine.path.glob("*.parquet"))) == 1


@pytest.mark.parametrize("partitions", [(), BY_P])
@pytest.mark.parametrize("plan", [plan_optimize, lambda t, f, o: plan_zorder(t, ["id"], f, o)])
def test_all_rows_of_a_table_that_was_optimized_and_vacuumed(
    machine: Machine, plan: Callable[..., Any], partitions: Partitions
) -> None:
    append(machine.path, partition_by=partitions)
    machine.disk.keep_all()
    with machine.running():
        run_layout(plan(load_snapshot(str(machine.path)), [], OPTIONS), HERE, LocalRunner(1))
    with machine.running():
        vacuum(machine.path)


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_log_that_was_cleaned_up(machine: Machine, policy: str) -> None:
    properties = {
        "delta.checkpointPolicy": policy,
        "delta.logRetentionDuration": "interval 1 days",
        "delta.deletedFileRetentionDuration": "interval 1 days",
        "delta.enableExpiredLogCleanup": "true",
    }
    append(machine.path, properties=properties)
    for n in range(3):
        append(machine.path, 10 * n, 10 * n + 4)
    checkpoint(str(machine.path))
    # 9 days ago, by an engine that syncs nothing
    log = machine.path / "_delta_log"
    for path in log.iterdir():
        os.utime(path, (path.stat().st_mtime - 9 * 86_400,) * 2)
    append(machine.path, 50, 54)
    with machine.running():
        checkpoint(str(machine.path))
    assert not (log / f"{0:020d}.json").exists()


def test_files_that_become_a_table(machine: Machine) -> None:
    machine.path.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), machine.path / "x.parquet")
    with machine.running():
        assert convert(LocalStorage(), str(machine.path), ConvertOptions(struct({}))) == 1


def test_a_version_that_came_back(machine: Machine) -> None:
    append(machine.path)
    write_rows(machine.path, SCHEMA, rows(20, 23), "overwrite")
    with machine.running():
        restore(load_snapshot(str(machine.path)), RestoreOptions(version=0))


def test_a_clone_of_files_that_were_just_written(machine: Machine) -> None:
    source, machine.path = machine.base / "source", machine.base / "copy"
    append(source, partition_by=BY_P)
    with noting_syncs(machine.disk):
        shallow_clone(load_snapshot(str(source)), LocalStorage(), str(machine.path), CloneOptions())
    left = machine.cut().parent
    # the clone names its files by where they are
    machine.base.rename(machine.base.with_name("before"))
    shutil.move(left, machine.base)
    assert [row["id"] for row in read_rows(machine.path)] == list(range(6))


# --- what cannot be synced


def failing(monkeypatch: pytest.MonkeyPatch, number: int, which: Callable[[int], bool]) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if which(os.fstat(descriptor).st_mode) and "/_delta_log" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("which", [stat.S_ISREG, stat.S_ISDIR])
def test_what_cannot_be_synced_is_not_committed(
    tmp_path: Path, which: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    append(tmp_path, 0, 12, partition_by=BY_P, properties=KINDS["vectors"])
    failing(monkeypatch, errno.EIO, which)
    name = r"p=p\d/part-" if which is stat.S_ISREG else str(tmp_path)
    with pytest.raises(DeltaError, match=rf"{name}.*Input/output error"):
        append(tmp_path, 12, 18)
    if which is stat.S_ISREG:
        name = r"deletion_vector_.*\.bin"
    with pytest.raises(DeltaError, match=rf"{name}.*Input/output error"):
        run_delete(planned_delete(load_snapshot(str(tmp_path)), "id = 1", OPTIONS), HERE)
    assert load_snapshot(str(tmp_path)).version == 0
    assert len(list(tmp_path.rglob("*.parquet"))) == 6
    assert not list(tmp_path.rglob("*.bin"))


@pytest.mark.parametrize("again", [False, True])
def test_a_commit_whose_name_could_not_be_synced(tmp_path: Path, again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    (log := tmp_path / "_delta_log").mkdir()
    real, failed = os.fsync, []

    def fsync(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(log) and not (again and failed):
            failed.append(errno.EIO)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    def sync_file_system(directory: str) -> None:
        fsync(os.open(directory, os.O_RDONLY))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("delta_pyds.storage.local_sync._sync_file_system", sync_file_system)
    data = b'{"commitInfo":{"txnId":"mine"}}'
    if again:
        assert put_commit(LocalStorage(), str(tmp_path), 1, data, "mine")
    else:
        with pytest.raises(CommitOutcomeUnknownError, match="Input/output error"):
            put_commit(LocalStorage(), str(tmp_path), 1, data, "mine", sleep=lambda _: None)
    assert failed


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_that_cannot_sync_directories_is_written_to(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, number, stat.S_ISDIR)
    append(tmp_path, partition_by=BY_P)
    assert len(read_rows(tmp_path)) == 6
