"""The net changes of winning commits to files, for a transaction that mends its result after a lost race.

Invariant: a mended transaction commits what its operation would have changed if it had run after the winning commits.
Its result differs from the first one only on rows that they took away or brought. The command finds these rows by
``NetChanges``. See the page "Two writers at once" for the proof.

Protocol: "Delta Log Entries", "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from delta_pyds.protocol.actions import AddCDCFile, AddFile, Metadata, RemoveFile
from delta_pyds.protocol.paths import path_key
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.conflict import TransactionInfo, WinningCommit, touches_other_reads


@dataclass
class NetChanges:
    """The files that commits added, removed or gave another deletion vector, without the steps in between.

    ``files``: the last entry of each file by ``path_key``; None for a removed file. ``versions``: of the commits.
    ``changes_data``: False if the commits only moved rows to other files. ``changes_other_reads``: a commit may have
    changed rows that the transaction read, but does not change. ``row_tracking_enabled``: one of the winners enabled
    it, so rows were read without the ids that they have now.
    """

    files: dict[str, AddFile | None] = field(default_factory=dict)
    versions: list[int] = field(default_factory=list)
    changes_data: bool = False
    changes_other_reads: bool = False
    row_tracking_enabled: bool = False

    def take(self, winner: WinningCommit, current: TransactionInfo) -> None:
        """Add the changes of the next commit. ``current``: the transaction that lost."""
        # a commit that gives a file another vector removes the file and adds it
        self.files.update((path_key(remove.path), None) for remove in winner.removes)
        self.files.update((path_key(add.path), add) for add in winner.adds)
        self.versions.append(winner.version)
        self.changes_data |= winner.changes_data
        self.changes_other_reads |= winner.changes_data and touches_other_reads(current, winner)


@dataclass(frozen=True)
class Mends:
    """The number of mends of a command after lost races, and the number of rows that they decided again."""

    number: int = 0
    rows: int = 0

    def and_one(self, rows: int) -> Mends:
        """One more mend, of this number of rows."""
        return Mends(self.number + 1, self.rows + rows)

    @property
    def metrics(self) -> dict[str, int]:
        """The entries of ``operationMetrics``. Their names are ours: the reference has no mends."""
        return {"numMends": self.number, "numMendedRows": self.rows} if self.number else {}


@dataclass(frozen=True)
class MendedChanges:
    """The changes of a mended transaction, which replace its earlier ones.

    ``read_files``: the ``path_key`` of the files that the result depends on now. ``metadata``: None for no change.
    """

    operation: Operation
    adds: Sequence[AddFile]
    removes: Sequence[RemoveFile]
    change_files: Sequence[AddCDCFile]
    read_files: Set[str]
    metadata: Metadata | None = None


class NothingToCommitError(Exception):
    """After the winning commits, the operation has nothing to change. A ``Mend`` raises it. Nothing is committed."""


class NotRepeatableError(Exception):
    """A command cannot decide again on some rows, because its expressions may have other values by now."""


# It is called after a lost race with a conflict of files, with all changes since its last call. It returns None if the
# whole operation must run again.
Mend = Callable[[NetChanges], MendedChanges | None]
