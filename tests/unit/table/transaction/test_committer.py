"""A transaction commits through the committer that it is given, and by nothing else."""

from __future__ import annotations

import msgspec
import pytest

from delta_pyds.errors import ConcurrentAppendError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.committer import FileSystemCommitter, LoggedCommit, ProposedCommit, Seen
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.paths import LogFileKind, LogFileName, commit_path
from delta_pyds.table.transaction.transaction import Transaction
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Table, file


class Ledger:
    """Versions are decided here: the log does not hold what was committed after ``published``."""

    def __init__(self, published: int) -> None:
        self.published = published
        self.commits: list[ProposedCommit] = []

    def propose(self, commit: ProposedCommit) -> bool:
        if commit.version != self.published + 1 + len(self.commits):
            return False
        self.commits.append(commit)
        return True

    def commits_after(
        self, version: int, *, known_version: int | None = None, seen: Seen | None = None
    ) -> list[LoggedCommit]:
        assert known_version is None or known_version <= self.published + len(self.commits)
        assert seen is not None or known_version is None
        return [
            LoggedCommit(c.version, _file(c.version), decode_commit(c.data, commit_path(ROOT, c.version)))
            for c in self.commits
            if c.version > version
        ]

    def publish(self, version: int) -> bool:
        return version <= self.published


def _file(version: int) -> LogFile:
    return LogFile(commit_path(ROOT, version), version, 1, 1, LogFileName(LogFileKind.COMMIT, version))


@pytest.fixture
def table() -> Table:
    made = Table(MemoryStorage())
    made.create()
    return made


def _start(table: Table, ledger: Ledger) -> Transaction:
    return Transaction(table.snapshot(), committer=ledger)


def test_nothing_reaches_the_log_but_through_the_committer(table: Table) -> None:
    ledger = Ledger(published=0)
    transaction = _start(table, ledger)
    transaction.add(file("a"))
    done = transaction.commit(WRITE, policy=QUIET)
    assert (done.version, table.snapshot().version) == (1, 0)
    (commit,) = ledger.commits
    assert (commit.version, commit.txn_id, commit.timestamp_ms) == (1, transaction.txn_id, done.timestamp_ms)
    assert (commit.protocol, commit.metadata) == (None, None)


def test_winners_come_from_the_committer_and_are_checked(table: Table) -> None:
    ledger = Ledger(published=0)
    late, reader = _start(table, ledger), _start(table, ledger)
    first = _start(table, ledger)
    first.add(file("a"))
    first.commit(WRITE, policy=QUIET)
    late.add(file("b"))
    done = late.commit(WRITE, policy=QUIET)
    assert (done.version, done.winners, done.attempts) == (2, (1,), 2)
    reader.record_whole_table()
    reader.add(file("c"))
    with pytest.raises(ConcurrentAppendError):
        reader.commit(WRITE, isolation_level="Serializable", policy=QUIET)
    assert len(ledger.commits) == 2


def test_a_proposal_says_what_it_changes_of_the_table(table: Table) -> None:
    changed = msgspec.structs.replace(table.snapshot().metadata, description="new")
    ledger = Ledger(published=0)
    transaction = _start(table, ledger)
    transaction.set_metadata(changed)
    transaction.commit(WRITE, policy=QUIET)
    assert ledger.commits[0].metadata == changed
    assert ledger.commits[0].protocol is None


def test_the_log_is_the_committer_that_a_transaction_has_without_one(table: Table) -> None:
    proposed = ProposedCommit(1, b'{"commitInfo":{"txnId":"us"}}\n', "us", 1)
    committer = FileSystemCommitter(table.storage, ROOT)
    assert committer.propose(proposed)
    assert not committer.propose(ProposedCommit(1, b'{"commitInfo":{"txnId":"them"}}\n', "them", 1))
    assert [c.version for c in committer.commits_after(0)] == [1]
    assert table.storage.read(commit_path(ROOT, 1)) == proposed.data
