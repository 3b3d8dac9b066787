"""``Ratified`` is believed only where the table says the same: no answer of a faulty catalog takes a row away."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from delta_pyds.catalog import (
    Catalog,
    CommitOutcome,
    CommitProposal,
    ManagedTable,
    NewTable,
    Ratified,
    UnpublishedCommit,
)
from delta_pyds.catalog.publishing import publish
from delta_pyds.errors import CommitOutcomeUnknownError, StorageError
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import open_snapshot
from delta_pyds.table.transaction.transaction import Committed
from delta_pyds.verification.catalog import check_catalog
from delta_pyds.verification.report import Findings
from tests.support.catalogs import NAME, CatalogTable, FaultyCatalog, new_table
from tests.support.transactions import QUIET, WRITE, Table, file
from tests.unit.catalog.fifty_lines import DictCatalog


class Believer(DictCatalog):
    """Takes any commit as any version, and tells each writer that it has won: nobody holds a lock.

    ``tells``: whether it says what the table is afterwards. ``keeps``: whether it stores what it says that it took.
    """

    tells = keeps = True
    reports = True
    after: Callable[[], object] | None = None

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        table = self._tables[proposal.table_name]
        given = proposal.version, proposal.timestamp_ms, proposal.file_name, proposal.size_bytes
        commit = UnpublishedCommit(*given, proposal.modification_time_ms, proposal.content)
        others = tuple(one for one in table.unpublished if one.version != proposal.version)
        if self.keeps and (proposal.version > table.latest_version or len(others) < len(table.unpublished)):
            table = replace(
                table,
                latest_version=max(table.latest_version, proposal.version),
                unpublished=(*(one for one in others if one.version < proposal.version), commit),
            )
            self._tables[table.name] = table
        after, self.after = self.after, None
        if after is not None:
            after()
        return Ratified(table if self.tells else None)

    def report_published(self, name: str, table_id: str, version: int) -> None:
        if self.reports:
            super().report_published(name, table_id, version)


@pytest.fixture(params=[0, 1 << 16], ids=["staged", "inline"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> CatalogTable:
    made = CatalogTable(Believer(str(tmp_path), max_inline_bytes=request.param))
    made.create()
    made.append("first")
    return made


def catalog_of(table: CatalogTable) -> Believer:
    assert isinstance(table.catalog, Believer)
    return table.catalog


def begun(table: CatalogTable, name: str) -> Callable[[], Committed]:
    """An append that has read the table now, and commits when it is called."""
    storage = table.storage()
    transaction = Table(storage, storage.table_root).start(open_snapshot(storage, storage.table_root))
    transaction.add(file(name))
    return lambda: transaction.commit(WRITE, policy=QUIET)


@pytest.mark.parametrize("tells", [True, False])
def test_two_writers_that_are_told_the_same_version_while_they_race(table: CatalogTable, tells: bool) -> None:
    """The other one is told, publishes and reports it between our answer and our publishing."""
    catalog = catalog_of(table)
    catalog.tells = tells
    others: list[Committed] = []
    theirs, ours_begun = begun(table, "theirs"), begun(table, "ours")
    catalog.after = lambda: others.append(theirs())

    ours = ours_begun()

    assert [others[0].version, ours.version] == [2, 3]
    assert table.files() == ["first", "ours", "theirs"]
    assert table.published() == [0, 1, 2, 3] and table.unpublished() == []


@pytest.mark.parametrize("tells", [True, False])
def test_a_version_that_is_another_writers_already(table: CatalogTable, tells: bool) -> None:
    """It is published, and the catalog has forgotten it: the log says whose it is."""
    catalog_of(table).tells = tells
    ours_begun = begun(table, "ours")
    table.append("theirs")
    ours = ours_begun()
    assert ours.version == 3
    assert table.files() == ["first", "ours", "theirs"]


@pytest.mark.parametrize("tells", [True, False])
def test_a_catalog_that_contradicts_the_log_for_good(table: CatalogTable, tells: bool) -> None:
    """The log has the other's commit as that version and the catalog ours: which of them holds nobody can say."""
    catalog = catalog_of(table)
    catalog.tells, catalog.reports = tells, False
    ours = begun(table, "ours")
    table.append("theirs")

    with pytest.raises(CommitOutcomeUnknownError, match="the log has the commit of another transaction") as error:
        ours()

    assert error.value.parameters["version"] == 2
    assert b'"theirs"' in (table.log / f"{2:020d}.json").read_bytes()


@pytest.mark.parametrize("tells", [True, False])
def test_a_catalog_that_keeps_nothing_of_what_it_ratified(table: CatalogTable, tells: bool) -> None:
    catalog = catalog_of(table)
    catalog.tells, catalog.keeps = tells, False
    with pytest.raises(CommitOutcomeUnknownError, match="the table does not have the version"):
        table.append("ours")
    assert table.files() == ["first"]
    assert table.published() == [0, 1]


def test_a_catalog_that_has_another_commit_as_that_version(
    table: CatalogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is published: the store takes nothing then, and only the catalog's list says whose the version is."""
    catalog = catalog_of(table)
    real = LocalStorage.put_if_absent

    def no_commits(self: LocalStorage, path: str, data: bytes) -> None:
        if path.endswith(".json") and "_staged_commits" not in path:
            raise StorageError("the store takes no commits now")
        real(self, path, data)

    monkeypatch.setattr(LocalStorage, "put_if_absent", no_commits)
    catalog.after, ours_begun = begun(table, "theirs"), begun(table, "ours")
    ours = ours_begun()
    assert ours.version == 3
    assert table.files() == ["first", "ours", "theirs"]


def test_a_name_that_two_creators_are_given(tmp_path: Path) -> None:
    class LastWins(DictCatalog):
        after: Callable[[], object] | None = None

        def register_table(self, table: NewTable) -> CommitOutcome:
            made = ManagedTable(table.name, table.table_id, table.location, 0)
            self._tables[table.name] = made
            after, self.after = self.after, None
            if after is not None:
                after()
            return Ratified(made)

    table = CatalogTable(LastWins(str(tmp_path)))
    catalog = table.catalog
    assert isinstance(catalog, LastWins)
    ours, theirs = table.new_storage(), catalog.reserve_table(NAME)
    catalog.after = lambda: catalog.register_table(new_table(theirs))
    with pytest.raises(CommitOutcomeUnknownError, match="does not have it under that name"):
        table.create(ours)
    assert catalog.load_table(NAME).table_id == theirs.table_id


# --- JSON that the catalog writes its own way


def rewritten(data: bytes) -> bytes:
    """The same commit: keys sorted, blanks between, the commit info last, null values written out."""
    lines = [json.loads(line) for line in data.splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["tags"] = line["add"].get("tags")
    return b"".join(json.dumps(line, sort_keys=True, indent=None).encode() + b"\r\n" for line in reversed(lines))


class Rewriting(DictCatalog):
    """Keeps an inline commit as JSON of its own. ``publishes``: it does so itself, and forgets nothing before told."""

    publishes = False

    def propose_commit(self, proposal: CommitProposal) -> CommitOutcome:
        assert proposal.content is not None
        content = rewritten(proposal.content)
        outcome = super().propose_commit(replace(proposal, content=content, size_bytes=len(content)))
        if self.publishes and isinstance(outcome, Ratified):
            log = Path(self.load_table(proposal.table_name).location, "_delta_log")
            (log / f"{proposal.version:020d}.json").write_bytes(content)
        return outcome


@pytest.mark.parametrize("publishes", [False, True])
def test_a_catalog_that_stores_json_its_own_way(tmp_path: Path, publishes: bool) -> None:
    catalog = Rewriting(str(tmp_path), max_inline_bytes=1 << 20)
    table = CatalogTable(catalog)
    table.create()
    catalog.publishes = publishes
    assert [table.append(name).version for name in "abc"] == [1, 2, 3]
    assert table.files() == ["a", "b", "c"]
    assert table.published() == [0, 1, 2, 3] and table.unpublished() == []


def test_two_publishers_with_json_of_their_own(tmp_path: Path) -> None:
    """One has the writer's bytes, the other the catalog's: they publish the same commit."""
    catalog = Rewriting(str(tmp_path), max_inline_bytes=1 << 20)
    table = CatalogTable(catalog)
    table.create()
    storage = table.storage()
    before = storage.latest()
    table.append("a")
    assert before is not None
    data = (table.log / f"{1:020d}.json").read_bytes()
    inline = UnpublishedCommit(1, 1, content=rewritten(data))
    stale = replace(before, latest_version=1, unpublished=(inline,))

    assert publish(storage, stale).version == 1
    catalog._tables[NAME] = stale
    findings = Findings(10)
    check_catalog(table.storage(), findings)
    assert not findings.all()


def test_a_file_of_the_same_transaction_that_lacks_rows_is_not_published(tmp_path: Path) -> None:
    catalog = DictCatalog(str(tmp_path), max_inline_bytes=1 << 20)
    table = CatalogTable(catalog)
    table.create()
    storage = table.storage()
    before = storage.latest()
    table.append("a", "b")
    path = table.log / f"{1:020d}.json"
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert before is not None
    stale = replace(before, latest_version=1, unpublished=(UnpublishedCommit(1, 1, content=whole),))
    catalog._tables[NAME] = stale

    published = publish(storage, stale)

    assert published.version == 0 and "other actions" in published.obstacle
    assert table.unpublished() == [1] and table.files() == ["a", "b"]


# --- what it costs


@pytest.mark.parametrize("inline", [0, 1 << 16])
def test_nothing_more_is_asked_where_the_answer_has_the_table(tmp_path: Path, inline: int) -> None:
    """One question to open the table, the proposal, and the report: what is at hand says whose the version is."""
    inner: Catalog = DictCatalog(str(tmp_path), max_inline_bytes=inline)
    CatalogTable(inner).create()
    calls = FaultyCatalog(inner)
    storage = CatalogTable(inner).storage()
    there = CatalogTable(calls)
    opened = there.storage()
    calls.calls.clear()
    snapshot = open_snapshot(opened, storage.table_root)
    asked = list(calls.calls)
    transaction = Table(opened, storage.table_root).start(snapshot)
    transaction.add(file("a"))
    calls.calls.clear()
    transaction.commit(WRITE, policy=QUIET)
    assert (asked, calls.calls) == (["load_table", "load_table"], ["propose_commit", "report_published"])
