"""Commits through a catalog that fails before, during or after a call: in the table once, or not at all and told so."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from delta_pyds.catalog import (
    BacklogFull,
    Catalog,
    CommitOutcome,
    CommitProposal,
    Conflict,
    ManagedTable,
    NewTable,
    OutcomeUnknown,
    Refused,
)
from delta_pyds.catalog.committer import CatalogCommitter
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.catalog.opening import committer_of
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    ConflictError,
    DeltaError,
    NothingWrittenError,
    StorageError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.log.committer import FileSystemCommitter
from delta_pyds.storage.allowed_roots import require_all_allowed
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.table.snapshot import open_snapshot
from tests.support.catalogs import NAME, CatalogTable, FaultyCatalog, faulty, raising, registered
from tests.support.transactions import QUIET, WRITE, Table, file
from tests.unit.catalog.fifty_lines import DictCatalog

# --- what is written


def test_a_new_table_has_a_place_for_staged_commits(table: CatalogTable) -> None:
    """Others do not make it, and their first write would fail."""
    assert (table.log / "_staged_commits").is_dir()


def test_a_commit_is_published_at_once(table: CatalogTable) -> None:
    assert [table.append(name).version for name in "abc"] == [1, 2, 3]
    assert table.published() == [0, 1, 2, 3]
    assert table.unpublished() == []
    assert table.files() == ["a", "b", "c"]
    staged = [int(name[:20]) for name in table.staged()]
    assert staged == ([] if table.catalog.max_inline_bytes else [1, 2, 3])
    for name in table.staged():
        data = (table.log / "_staged_commits" / name).read_bytes()
        assert data == (table.log / f"{name[:20]}.json").read_bytes()


def test_a_large_commit_is_staged(tmp_path: Path) -> None:
    catalog = SqliteCatalog(str(tmp_path / "c.db"), max_inline_bytes=2_000)
    table = CatalogTable(catalog)
    table.create()
    table.append("small")
    assert table.staged() == []
    table.append(*(f"file-{n}" for n in range(40)))
    assert [name[:20] for name in table.staged()] == [f"{2:020d}"]
    assert len(table.files()) == 41


def test_commits_say_what_the_protocol_wants(table: CatalogTable) -> None:
    table.append("a")
    table.append("b")
    infos = [json.loads((table.log / f"{v:020d}.json").read_text().splitlines()[0])["commitInfo"] for v in range(3)]
    assert len({info["txnId"] for info in infos}) == 3
    times = [info["inCommitTimestamp"] for info in infos]
    assert times == sorted(set(times))


def test_the_committer_is_the_tables(table: CatalogTable, tmp_path: Path) -> None:
    storage = table.storage()
    assert isinstance(committer_of(storage, storage.table_root), CatalogCommitter)
    assert isinstance(committer_of(LocalStorage(), str(tmp_path)), FileSystemCommitter)


def test_a_lost_race_is_rebased(table: CatalogTable) -> None:
    storage = table.storage()
    snapshot = open_snapshot(storage, storage.table_root)
    ours = Table(storage, storage.table_root).start(snapshot)
    ours.add(file("ours"))
    table.append("theirs")
    committed = ours.commit(WRITE, policy=QUIET)
    assert (committed.version, committed.winners) == (2, (1,))
    assert table.files() == ["ours", "theirs"]
    # the staged commit for the version that was lost serves nobody
    assert len(table.staged()) in (0, 2)


# --- an answer that is lost


ANY = [OSError("the network is gone"), StorageError("the network is gone"), TimeoutError()]


@pytest.mark.parametrize("error", ANY, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_proposal_whose_answer_is_lost(table: CatalogTable, side: str, number: int, error: Exception) -> None:
    """Also twice in a row: the same proposal is made until the catalog says whose the version is."""
    there = faulty(table, **{side: raising(error, "propose_commit", *range(1, number + 1))})
    assert there.append("a").version == 1
    assert table.append("b").version == 2
    assert table.files() == ["a", "b"]
    assert table.published() == [0, 1, 2]


@pytest.mark.parametrize("published", [False, True])
def test_another_writer_goes_on_after_a_lost_answer(table: CatalogTable, published: bool) -> None:
    """The answer is lost, and before anybody asks again another one has published it and committed the next version."""
    inner = table.catalog

    def lost(name: str, number: int) -> None:
        if name == "propose_commit" and number == 1:
            if published:
                table.append("theirs")
            raise OSError("lost")

    there = faulty(table, after=lost)
    assert there.append("ours").version == 1
    assert table.files() == (["ours", "theirs"] if published else ["ours"])
    assert inner.load_table(NAME).latest_version == 1 + published


def test_another_writer_wins_while_the_outcome_is_unknown(table: CatalogTable) -> None:
    def lost(name: str, number: int) -> None:
        if name == "propose_commit" and number == 1:
            table.append("theirs")
            raise OSError("lost")

    there = faulty(table, before=lost)
    assert there.append("ours").version == 2
    assert table.files() == ["ours", "theirs"]


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_outcome_that_nobody_can_tell(table: CatalogTable, side: str) -> None:
    there = faulty(table, **{side: raising(OSError("gone"), "propose_commit")})
    assert isinstance(there.catalog, FaultyCatalog)
    catalog, proposing = there.catalog, there.catalog.before

    def fault(name: str, number: int) -> None:
        if name == "load_table" and "propose_commit" in catalog.calls:
            raise OSError("gone")
        if proposing is not None:
            proposing(name, number)

    catalog.before = fault

    with pytest.raises(CommitOutcomeUnknownError) as error:
        there.append("a")

    assert error.value.parameters["version"] == 1 and "gone" in error.value.message
    assert there.pauses == [0.1, 0.5, 2.0, 5.0]
    catalog.before = catalog.after = None
    assert table.files() == (["a"] if side == "after" else [])
    # what was ratified is published by the next one
    table.append("b")
    assert table.published() == list(range(table.catalog.load_table(NAME).latest_version + 1))


def test_a_catalog_that_takes_nothing_is_asked_again_and_then_told_of(table: CatalogTable) -> None:
    once = faulty(table, before=raising(NothingWrittenError("the lock is held"), "propose_commit", 1))
    assert once.append("a").version == 1
    always = faulty(table, before=raising(NothingWrittenError("the lock is held"), "propose_commit"))
    with pytest.raises(NothingWrittenError, match="the lock is held"):
        always.append("b")
    assert table.files() == ["a"] and len(table.staged()) < 2


class Answers(FaultyCatalog):
    """Gives these answers instead of proposing."""

    def __init__(self, catalog: Catalog, *outcomes: CommitOutcome) -> None:
        super().__init__(catalog)
        self.outcomes = list(outcomes)

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        return self.outcomes.pop(0) if self.outcomes else super().propose_commit(proposal)


@pytest.mark.parametrize("outcome", [OutcomeUnknown("lost"), Conflict(), BacklogFull()], ids=lambda o: type(o).__name__)
def test_answers_that_are_not_true_now(table: CatalogTable, outcome: CommitOutcome) -> None:
    """A conflict with a version that does not exist does not count: the catalog is asked again."""
    there = CatalogTable(Answers(table.catalog, outcome))
    assert there.append("a").version == 1
    assert table.files() == ["a"]


def test_a_refusal(table: CatalogTable) -> None:
    there = CatalogTable(Answers(table.catalog, Refused("you may not write here.")))
    with pytest.raises(UnsupportedOperationError, match=r"you may not write here\. Nothing was changed"):
        there.append("a")
    assert table.files() == [] and table.staged() == []


@pytest.mark.parametrize("ratified", [True, False])
@pytest.mark.parametrize("loads", [True, False])
def test_a_refusal_after_a_lost_answer(table: CatalogTable, ratified: bool, loads: bool) -> None:
    """The token has expired between the two calls: the refusal says nothing of the first, which may still arrive.
    Nothing is deleted that the catalog has ratified, or may ratify.
    """
    calls = FaultyCatalog(table.catalog)
    revoked: list[CommitProposal] = []

    class Revoked(Answers):
        def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
            if revoked:
                return Refused("your token has expired.")
            revoked.append(proposal)
            if ratified:
                calls.propose_commit(proposal)
            raise ConnectionResetError("the answer was lost")

        def load_table(self, name: str) -> ManagedTable:
            if revoked and not loads:
                raise PermissionError("401")
            return calls.load_table(name)

    there = CatalogTable(Revoked(table.catalog))
    if ratified and loads:
        assert there.append("a").version == 1
    else:
        with pytest.raises(CommitOutcomeUnknownError, match=r"the answer was lost; your token has expired") as caught:
            there.append("a")
        assert caught.value.code == "DELTA_COMMIT_OUTCOME_UNKNOWN"
        if not ratified:
            # the request arrives after all
            table.catalog.propose_commit(revoked[0])
    assert table.files() == ["a"]
    assert table.append("b").version == 2
    assert table.published() == [0, 1, 2]


def test_a_full_backlog_after_a_lost_answer(table: CatalogTable) -> None:
    there = CatalogTable(Answers(table.catalog, OutcomeUnknown(""), BacklogFull()))
    assert there.append("a").version == 1
    assert table.files() == ["a"]


# --- version 0


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_registration_whose_answer_is_lost(catalog: Catalog, side: str) -> None:
    table = CatalogTable(FaultyCatalog(catalog, **{side: raising(OSError("gone"), "register_table", 1)}))
    assert table.create().version == 0
    assert CatalogTable(catalog).append("a").version == 1
    assert CatalogTable(catalog).files() == ["a"]


def test_a_registration_that_nobody_can_tell_of(catalog: Catalog) -> None:
    table = CatalogTable(FaultyCatalog(catalog, after=raising(OSError("gone"), "register_table")))
    storage = table.new_storage()
    assert isinstance(table.catalog, FaultyCatalog)
    table.catalog.before = raising(OSError("gone"), "load_table", *range(3, 99))
    with pytest.raises(CommitOutcomeUnknownError) as error:
        table.create(storage)
    assert error.value.parameters["version"] == 0
    assert CatalogTable(catalog).files() == []


class Registering(FaultyCatalog):
    """Registers or not, loses the first answer, and refuses from then on."""

    stale: ManagedTable | None = None

    def __init__(self, catalog: Catalog, *, registers: bool, loads: bool) -> None:
        super().__init__(catalog)
        self.registers, self.loads, self.tried = registers, loads, 0

    def register_table(self, table: NewTable) -> CommitOutcome:
        self.tried += 1
        if self.tried > 1:
            return Refused("your token has expired.")
        if self.registers:
            super().register_table(table)
        raise ConnectionResetError("the answer was lost")

    def load_table(self, name: str) -> ManagedTable:
        if self.tried and not self.loads:
            raise PermissionError("401")
        return self.stale if self.tried and self.stale is not None else super().load_table(name)


@pytest.mark.parametrize("registers", [True, False])
@pytest.mark.parametrize("loads", [True, False])
def test_a_refused_registration_after_a_lost_answer(catalog: Catalog, registers: bool, loads: bool) -> None:
    table = CatalogTable(Registering(catalog, registers=registers, loads=loads))
    storage = table.new_storage()
    if registers and loads:
        table.create(storage)
    else:
        with pytest.raises(CommitOutcomeUnknownError, match="your token has expired"):
            table.create(storage)
    assert Path(storage.table_root, "_delta_log", f"{0:020d}.json").exists()
    if registers:
        assert CatalogTable(catalog).files() == []


def test_an_older_table_of_the_name_in_an_answer_that_lags_behind(tmp_path: Path) -> None:
    """It was dropped, the new one is registered, the answer is lost, and a replica still has the old one."""
    inner = DictCatalog(str(tmp_path))
    old = registered(inner)
    inner._tables.clear()
    registering = Registering(inner, registers=True, loads=True)
    registering.stale = old
    table = CatalogTable(registering)
    storage = table.new_storage()
    with pytest.raises(CommitOutcomeUnknownError):
        table.create(storage)
    assert CatalogTable(inner).files() == []


@pytest.mark.parametrize("outcome", [Refused("not you."), NothingWrittenError("the lock is held")])
def test_a_table_that_surely_was_not_registered(catalog: Catalog, outcome: Refused | NothingWrittenError) -> None:
    class Never(FaultyCatalog):
        def register_table(self, table: NewTable) -> CommitOutcome:
            if isinstance(outcome, Refused) and table.name == NAME:
                return outcome
            assert isinstance(outcome, NothingWrittenError)
            raise outcome

    table = CatalogTable(Never(catalog))
    storage = table.new_storage()
    expected = UnsupportedOperationError if isinstance(outcome, Refused) else NothingWrittenError
    with pytest.raises(expected, match="not you" if isinstance(outcome, Refused) else "the lock is held"):
        table.create(storage)
    assert not list(Path(storage.table_root).rglob("*.json"))


def test_two_creators_of_one_name(catalog: Catalog) -> None:
    table = CatalogTable(catalog)
    first, second = table.new_storage(), table.new_storage()
    table.create(first)
    table.append("a")
    with pytest.raises(UserError) as error:
        table.create(second)
    assert error.value.code == "TABLE_OR_VIEW_ALREADY_EXISTS"
    assert table.files() == ["a"]
    assert not list(Path(second.table_root).rglob("*.json"))


def test_a_table_that_is_dropped_and_made_again(tmp_path: Path) -> None:
    catalog = DictCatalog(str(tmp_path))
    table = CatalogTable(catalog)
    table.create()
    storage = table.storage()
    snapshot = open_snapshot(storage, storage.table_root)
    catalog._tables.clear()
    table.create()
    late = Table(storage, storage.table_root).start(snapshot)
    late.add(file("late"))
    with pytest.raises(DeltaError) as error:
        late.commit(WRITE, policy=QUIET)
    assert not isinstance(error.value, CommitOutcomeUnknownError | ConflictError)
    assert table.files() == []


# --- the storage


def test_storages_of_one_table_are_alike(table: CatalogTable, tmp_path: Path) -> None:
    """What a process keeps of files goes by the storage, and each command opens one."""
    other = CatalogTable(DictCatalog(str(tmp_path / "other")))
    other.create()
    assert {table.storage(), table.storage()} == {table.storage()} != {other.storage()}


def test_a_storage_stays_in_its_process(table: CatalogTable) -> None:
    storage = table.storage()
    assert isinstance(storage, CatalogStorage)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(storage)
    if type(table.catalog).__reduce__ is Catalog.__reduce__:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(table.catalog)
    assert "sqlite" not in repr(storage).lower()


def test_allowed_roots_hold_for_who_opens_files_by_other_means(table: CatalogTable) -> None:
    """Spark's own reader does."""
    root = str(table.root)
    restricted = resolve_storage(root, {"allowed_roots": []})
    storage = CatalogStorage(table.catalog, NAME, root, lambda _: restricted)
    require_all_allowed(storage, [f"{root}/a.parquet"])
    with pytest.raises(StorageError, match="allowed_roots"):
        require_all_allowed(storage, [f"{root}/a.parquet", "/elsewhere/b.parquet"])
    require_all_allowed(table.storage(), ["/elsewhere/b.parquet"])


def test_a_forked_process_has_a_client_of_its_own(table: CatalogTable) -> None:
    made: list[Catalog] = []

    def connect() -> Catalog:
        made.append(FaultyCatalog(table.catalog))
        return made[-1]

    storage = CatalogStorage(table.catalog, NAME, str(table.root), lambda _: LocalStorage(), connect=connect)
    assert storage.catalog is table.catalog
    storage._process -= 1  # as if it had been made there
    assert [storage.catalog, storage.catalog] == made * 2
    assert storage == table.storage()
