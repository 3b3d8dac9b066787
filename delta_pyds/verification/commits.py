"""One commit: its actions, compared with each other and with the state before it.

Protocol: "Delta Log Entries", "Add File and Remove File", "In-Commit Timestamps", "Append-only Tables".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.protocol.actions import AddCDCFile, file_key
from delta_pyds.protocol.features import Feature
from delta_pyds.verification.actions import Actions
from delta_pyds.verification.evolution import MetadataHistory
from delta_pyds.verification.file_actions import FileActionRules
from delta_pyds.verification.metadata import check_metadata
from delta_pyds.verification.protocol import check_features_needed, check_protocol, check_protocol_change
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.state import TableState, num_rows
from delta_pyds.verification.view import TableView, view_of


def check_uniqueness(actions: Actions, findings: VersionFindings, *, reconciled: bool = False) -> None:
    """Check that no two actions have the same key, and that there is no action that only checkpoints may have.

    ``reconciled``: the actions are of several commits, so each deletion vector of a file has its own tombstone.
    """
    for kind, count in (("metaData", len(actions.metadata)), ("protocol", len(actions.protocols))):
        if count > 1:
            findings.error(f"commit.duplicate-{kind.lower()}", f"the commit has {count} {kind} actions.")
    if len(actions.commit_infos) > 1:
        findings.warning("commit.duplicate-commitinfo", "the commit has more than one commitInfo.")
    for kind, names in (
        ("txn", [t.app_id for t in actions.transactions]),
        ("domain", [d.domain for d in actions.domains]),
    ):
        for name in _repeated(names):
            findings.error(f"commit.duplicate-{kind}", f"the commit has several {kind} actions for {name}.")
    adds, removes = [file_key(a) for a in actions.adds], [file_key(r) for r in actions.removes]
    for kind, keys in (("add", adds), ("remove", removes)):
        for path, vector in _repeated(keys):
            findings.error("commit.duplicate-key", f"{kind} occurs more than once for {_key(path, vector)}.")
        for path in [] if reconciled and kind == "remove" else _repeated([path for path, _ in set(keys)]):
            findings.error("commit.duplicate-path", f"{kind} occurs for {path} with several deletion vectors.")
    for path, vector in sorted(set(adds) & set(removes), key=repr):
        findings.error("commit.add-and-remove", f"{_key(path, vector)} is both added and removed.")
    if actions.sidecars or actions.checkpoint_metadata:
        findings.error("commit.checkpoint-action", "the commit holds an action that only checkpoints may have.")


def _repeated(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]


def _key(path: str, vector: str | None) -> str:
    return path if vector is None else f"{path} with the deletion vector {vector}"


@dataclass
class CommitRules:
    """The rules for a commit and the state before it, with the values that they remember between commits."""

    history: MetadataHistory
    files: FileActionRules
    change_files: list[tuple[int, AddCDCFile]]
    last_timestamp: int | None = None
    transaction_ids: dict[str, int] = field(default_factory=dict)

    def check(self, actions: Actions, state: TableState, findings: VersionFindings) -> TableView:
        """Check the next commit. Returns: the view after it."""
        protocol = actions.protocols[-1] if actions.protocols else state.protocol
        metadata = actions.metadata[-1] if actions.metadata else state.metadata
        old = state.view
        new = view_of(protocol, metadata) if actions.protocols or actions.metadata else old
        if findings.version == 0 and not actions.damaged:
            for kind, found in (("protocol", actions.protocols), ("metaData", actions.metadata)):
                if not found:
                    findings.error("commit.first", f"the first commit has no {kind} action.")
        info = actions.commit_infos[0] if actions.commit_infos else {}
        operation = info.get("operation") if isinstance(info.get("operation"), str) else None
        self._check_definition(actions, state, old, new, operation, findings)
        self._check_timestamp(actions, info, old, new, findings)
        self._check_transaction_id(info, findings)
        self._check_transactions(actions, state, findings)
        self._check_domains(actions, state, new, findings)
        self._check_append_only(actions, old, new, findings)
        self._check_change_data(actions, new, findings)
        self._check_data_change(actions, state, findings)
        self.files.check(actions, state, new, findings)
        return new

    def _check_definition(
        self,
        actions: Actions,
        state: TableState,
        old: TableView,
        new: TableView,
        operation: str | None,
        findings: VersionFindings,
    ) -> None:
        if not actions.protocols and not actions.metadata:
            return
        for protocol in actions.protocols:
            check_protocol(protocol, findings)
        if state.protocol is not None and actions.protocols:
            check_protocol_change(state.protocol, actions.protocols[-1], operation, findings)
        if actions.metadata:
            check_metadata(new, findings)
        if new.protocol is not None and new.metadata is not None:
            check_features_needed(new, findings)
        if state.metadata is not None and actions.metadata:
            removed = {file_key(r) for r in actions.removes} | {file_key(a) for a in actions.adds}
            replaced = all(key in removed for key in state.live) if len(state.live) <= len(removed) else False
            self.history.check(old, new, replaced=replaced, findings=findings)
        self.history.remember(new)
        if new.properties.row_tracking and not old.properties.row_tracking:
            self.files.row_tracking.enabled(actions, state, findings)

    def _check_timestamp(
        self, actions: Actions, info: dict[str, Any], old: TableView, new: TableView, findings: VersionFindings
    ) -> None:
        enabled = new.properties.in_commit_timestamps and new.supports(Feature.IN_COMMIT_TIMESTAMP)
        time = info.get("inCommitTimestamp")
        known = isinstance(time, int) and not isinstance(time, bool)
        rule = "commit.in-commit-timestamp"
        if enabled and not known:
            findings.error(rule, f"in-commit timestamps are on, but the commit's is {time!r}.")
        if enabled and known and actions.first_kind != "commitInfo":
            findings.error("commit.info-first", "in-commit timestamps are on, but commitInfo is not first.")
        if enabled and isinstance(time, int) and self.last_timestamp is not None and time <= self.last_timestamp:
            findings.error(rule, f"the commit's timestamp {time} is not above the last one, {self.last_timestamp}.")
        was_enabled = old.properties.in_commit_timestamps and old.supports(Feature.IN_COMMIT_TIMESTAMP)
        if enabled and not was_enabled and findings.version > 0 and old.metadata is not None:
            self._check_enablement(new, time, findings)
        if enabled and known:
            self.last_timestamp = time
        elif not enabled:
            self.last_timestamp = None

    def _check_transaction_id(self, info: dict[str, Any], findings: VersionFindings) -> None:
        """Find a transaction that was committed twice, which duplicates its rows."""
        found = info.get("txnId")
        if not isinstance(found, str):
            return
        other = self.transaction_ids.setdefault(found, findings.version)
        if other != findings.version:
            findings.error(
                "commit.duplicate-transaction", f"the transaction {found} was committed as version {other} too."
            )

    def _check_enablement(self, new: TableView, time: Any, findings: VersionFindings) -> None:
        p = new.properties
        for name, found, wanted in (
            ("Version", p.in_commit_timestamp_enablement_version, findings.version),
            ("Timestamp", p.in_commit_timestamp_enablement_timestamp_ms, time),
        ):
            if found != wanted:
                findings.error(
                    "commit.in-commit-timestamp-enablement",
                    f"delta.inCommitTimestampEnablement{name} is {found}, but must be {wanted}.",
                )

    def _check_transactions(self, actions: Actions, state: TableState, findings: VersionFindings) -> None:
        for t in actions.transactions:
            before = state.transactions.get(t.app_id)
            if before is not None and t.version < before.version:
                findings.warning(
                    "commit.txn-version",
                    f"the application {t.app_id} goes from version {before.version} to {t.version}.",
                )

    def _check_domains(self, actions: Actions, state: TableState, view: TableView, findings: VersionFindings) -> None:
        if actions.domains and not view.supports(Feature.DOMAIN_METADATA):
            findings.error(
                "feature.missing", "there is domain metadata, but the protocol does not support domainMetadata."
            )
        for d in actions.domains:
            before = state.domains.get(d.domain)
            if d.removed and (before is None or before.removed):
                findings.warning("domain.unknown-removed", f"the domain {d.domain} is removed, but does not exist.")
            self.files.check_domain(d, view, findings)

    def _check_append_only(self, actions: Actions, old: TableView, new: TableView, findings: VersionFindings) -> None:
        if not all(v.properties.append_only and v.supports(Feature.APPEND_ONLY) for v in (old, new)):
            return
        for r in actions.removes:
            if r.data_change:
                findings.error("commit.append-only", f"{r.path} is removed from an append-only table.")

    def _check_change_data(self, actions: Actions, view: TableView, findings: VersionFindings) -> None:
        self.change_files += ((findings.version, c) for c in actions.cdcs)
        for c in actions.cdcs:
            if c.data_change:
                findings.error("commit.cdc", f"the cdc action of {c.path} has dataChange true.")
        if actions.cdcs and not (view.properties.change_data_feed and view.supports(Feature.CHANGE_DATA_FEED)):
            findings.warning("commit.cdc", "there are cdc actions, but the change data feed is off.")

    def _check_data_change(self, actions: Actions, state: TableState, findings: VersionFindings) -> None:
        """Check that actions with dataChange false add as many rows as they remove, as far as rows are counted."""
        moved_in = [a for a in actions.adds if not a.data_change and file_key(a)[0] not in state.live_vectors]
        moved_out = [r for r in actions.removes if not r.data_change]
        if moved_in and not actions.removes:
            findings.error("commit.data-change", f"{len(moved_in)} adds have dataChange false, but nothing is removed.")
            return
        removed = [state.live.get(file_key(r)) for r in actions.removes]
        sources, targets = _total(removed), _total(actions.adds)
        rows_in = _total(moved_in)
        rows_out = _total([state.live.get(file_key(r)) for r in moved_out])
        if moved_in and rows_in is not None and sources is not None and rows_in > sources:
            findings.error(
                "commit.data-change", f"{rows_in} rows are added with dataChange false, from {sources} removed rows."
            )
        if moved_out and rows_out is not None and targets is not None and rows_out > targets:
            findings.error(
                "commit.data-change", f"{rows_out} rows are removed with dataChange false, but {targets} are added."
            )


def _total(files: Iterable[Any]) -> int | None:
    total = 0
    for file in files:
        rows = None if file is None else num_rows(file)
        if rows is None:
            return None
        total += rows
    return total
