"""One pass over the log: each commit is applied to a state, and everything else is compared with it.

Invariant: nothing is replayed twice. The cost of a version depends on its own files only.

Protocol: "Delta Log Entries", "Checkpoints", "Metadata Cleanup".
"""

from __future__ import annotations

from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.log.listing import LogFile, LogListing, by_version, list_log
from delta_pyds.log.segment import CheckpointFiles, complete_checkpoints, no_log, not_a_table
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddCDCFile
from delta_pyds.storage.base import Storage
from delta_pyds.verification.actions import Actions, parse_actions
from delta_pyds.verification.checkpoint_content import CheckpointContent
from delta_pyds.verification.checkpoints import check_checkpoint, seed_state
from delta_pyds.verification.checksums import check_checksum
from delta_pyds.verification.commits import CommitRules, check_uniqueness
from delta_pyds.verification.compactions import CompactionChecks
from delta_pyds.verification.evolution import MetadataHistory
from delta_pyds.verification.file_actions import FileActionRules
from delta_pyds.verification.hint import check_hint
from delta_pyds.verification.metadata import check_metadata
from delta_pyds.verification.protocol import check_features_needed, check_protocol
from delta_pyds.verification.report import Checked, Findings
from delta_pyds.verification.state import TableState


class LogWalk:
    """Reads the log in order.

    ``state``: the last version's, after ``run``; None if the log does not define it. ``change_files``: the change data
    files of the commits that were read, with their versions.

    Raises: TableNotFoundError, by the constructor.
    """

    def __init__(self, storage: Storage, table_root: str, findings: Findings) -> None:
        self._storage = storage
        self._root = table_root
        self._findings = findings
        self._listing = self._list()
        self._commits = by_version(self._listing.commits)
        self._checksums = by_version(self._listing.checksums)
        self._checkpoints: dict[int, list[CheckpointFiles]] = {}
        for files in complete_checkpoints(self._listing):
            self._checkpoints.setdefault(files.version, []).append(files)
        self.version = max([*self._commits, *self._checkpoints], default=-1)
        if self.version < 0:
            if not self._listing.compactions and not self._listing.checkpoints:
                raise not_a_table(table_root, "has no commit and no checkpoint in its _delta_log directory")
            findings.error("log.no-start", table_root, "there is no commit and no complete checkpoint.")
        self.state: TableState | None = None
        self.change_files: list[tuple[int, AddCDCFile]] = []
        self._rules = self._new_rules(from_start=0 in self._commits)
        self._compactions = CompactionChecks(storage, self._listing.compactions, findings)
        self._contents: dict[int, list[tuple[CheckpointContent, int]]] = {}
        self._num_commits = self._num_checkpoints = self._num_checksums = 0

    def _list(self) -> LogListing:
        try:
            return list_log(self._storage, self._root)
        except FileNotFoundInStorageError:
            raise no_log(self._storage, self._root) from None

    def _new_rules(self, *, from_start: bool) -> CommitRules:
        history = MetadataHistory(from_start=from_start)
        return CommitRules(history, FileActionRules(), self.change_files)

    @property
    def checked(self) -> Checked:
        return Checked(self._num_commits, self._num_checkpoints, self._compactions.checked, self._num_checksums)

    def run(self) -> None:
        self._check_listing()
        if 0 in self._commits:
            self.state = TableState()
        before: int | None = None
        versions = sorted(self._commits.keys() | self._checkpoints.keys())
        with step("verification of the log", self._root, total=len(versions), unit="versions") as advance:
            for version in versions:
                self._step(version, before)
                before = version
                advance(1)
        self._compactions.finish()
        if self.state is not None:
            found = self._findings.of(self.state.version)
            self._rules.files.check_live_paths(self.state, self._root, found)
            self._rules.files.check_clustering_statistics(self.state, found)
        check_hint(self._storage, self._root, self._contents, self.version, self._findings)

    def _check_listing(self) -> None:
        complete = {f.path for versions in self._checkpoints.values() for files in versions for f in files.files}
        for file in self._listing.checkpoints:
            if file.path not in complete:
                what = "empty" if file.size_bytes == 0 else "part of a set that is not complete"
                self._findings.warning("checkpoint.incomplete", file.path, f"it is {what}: readers must ignore it.")
        for file in self._listing.unusable:
            message = "it is not a regular file (a directory, a named pipe, a broken link): readers must ignore it."
            self._findings.warning("log.not-a-file", file.path, message)
        first = min(self._commits, default=None)
        for version, file in self._checksums.items():
            if version > self.version:
                self._findings.error("checksum.without-commit", file.path, "the commit of its version does not exist.")
        for file in self._listing.compactions:
            end = file.name.end_version or 0
            if end < file.version or end > self.version:
                self._findings.error("compaction.range", file.path, "its range is not one of the log's versions.")
        if first is None or first == 0:
            return
        start = min(self._checkpoints, default=None)
        if start is None:
            self._findings.error(
                "log.no-start", first, f"the log starts at version {first}, and there is no complete checkpoint."
            )
        elif start > first:
            self._findings.warning(
                "log.unreachable", first, f"versions {first} to {start - 1} have no checkpoint to start from."
            )

    def _step(self, version: int, before: int | None) -> None:
        if before is not None and version != before + 1:
            self._gap(before + 1, version - 1)
        commit = self._commits.get(version)
        if commit is not None:
            self._commit(commit)
        elif before is not None and before in self._commits:
            self._gap(version, version)
        for files in self._checkpoints.get(version, ()):
            self._num_checkpoints += 1
            with self._findings.guard("checkpoint.unreadable", files.files[0].path):
                self._checkpoint(files)
        checksum = self._checksums.get(version)
        if checksum is not None and self.state is not None:
            self._num_checksums += 1
            with self._findings.guard("checksum.unreadable", checksum.path):
                check_checksum(self._storage, checksum, self.state, self._findings)

    def _gap(self, first: int, last: int) -> None:
        what = (
            f"the commit of version {first} is" if first == last else f"the commits of versions {first} to {last} are"
        )
        self._findings.error("log.gap", first, f"{what} missing.")
        self._lose()

    def _lose(self) -> None:
        """Forget the state, which is unknown until the next complete checkpoint."""
        self.state = None
        self._compactions.gap()

    def _commit(self, file: LogFile) -> None:
        self._num_commits += 1
        version = file.version
        actions = Actions(damaged=True)
        with self._findings.guard("commit.unreadable", file.path):
            actions = parse_actions(self._storage.read(file.path), file.path, self._findings, prefix="commit")
        if actions.first_kind is None and not actions.damaged:
            self._findings.warning("commit.empty", version, "the commit holds no action.")
        check_uniqueness(actions, self._findings.of(version))
        if self.state is not None:
            with self._findings.guard("commit.unreadable", file.path):
                self._rules.check(actions, self.state, self._findings.of(version))
            self.state.apply(actions, version)
        if actions.damaged:
            self._lose()
        else:
            self._compactions.commit(version, actions)

    def _checkpoint(self, files: CheckpointFiles) -> None:
        if self.state is not None:
            content, adds = check_checkpoint(self._storage, self._root, files, self.state, self._findings)
        else:
            self.state, content = seed_state(self._storage, self._root, files, self._findings)
            adds = len(self.state.live) if self.state is not None else -1
            if self.state is not None:
                self._start_from(self.state)
        self._contents.setdefault(files.version, []).append((content, adds))

    def _start_from(self, state: TableState) -> None:
        found = self._findings.of(state.version)
        self._rules = self._new_rules(from_start=False)
        self._rules.history.remember(state.view)
        self._rules.files.row_tracking.seed(state, found)
        if state.protocol is not None:
            check_protocol(state.protocol, found)
        check_metadata(state.view, found)
        check_features_needed(state.view, found)
