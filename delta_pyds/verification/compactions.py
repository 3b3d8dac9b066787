"""Log compaction files, compared with the commits that they cover.

Protocol: "Log Compaction Files".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from delta_pyds.log.commit_reader import read_commit
from delta_pyds.log.compaction import duplicate_key
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import file_key
from delta_pyds.storage.base import Storage
from delta_pyds.verification.actions import Actions, parse_actions
from delta_pyds.verification.commits import check_uniqueness
from delta_pyds.verification.report import Findings


@dataclass
class _Fold:
    """The newest action of each key in a range of commits."""

    actions: dict[tuple[str, Any], Any] = field(default_factory=dict)

    def put(self, actions: Actions) -> None:
        for r in actions.removes:
            self.actions["file", file_key(r)] = r
        for a in actions.adds:
            self.actions["file", file_key(a)] = a
        for t in actions.transactions:
            self.actions["txn", t.app_id] = t
        for d in actions.domains:
            self.actions["domainMetadata", d.domain] = d
        for m in actions.metadata:
            self.actions["metaData", None] = m
        for p in actions.protocols:
            self.actions["protocol", None] = p


class CompactionChecks:
    """Reads the commits in order, and compares each compaction after its last commit."""

    def __init__(self, storage: Storage, compactions: tuple[LogFile, ...], findings: Findings) -> None:
        self._storage = storage
        self._findings = findings
        self._starting: dict[int, list[LogFile]] = {}
        for file in compactions:
            self._starting.setdefault(file.version, []).append(file)
        self._open: list[tuple[LogFile, _Fold]] = []
        self.checked = 0
        self._compared: set[str] = set()

    def gap(self) -> None:
        """Note a missing or damaged commit: compactions that cover it cannot be compared."""
        self._open = []

    def commit(self, version: int, actions: Actions) -> None:
        self._open += [(file, _Fold()) for file in self._starting.get(version, ())]
        still_open = []
        for file, fold in self._open:
            fold.put(actions)
            if file.name.end_version == version:
                with self._findings.guard("compaction.unreadable", file.path):
                    self._compare(file, fold)
            else:
                still_open.append((file, fold))
        self._open = still_open

    def finish(self) -> None:
        """Check compactions that cover missing commits: each must at least be reconciled."""
        for files in self._starting.values():
            for file in files:
                if file.path not in self._compared:
                    with self._findings.guard("compaction.unreadable", file.path):
                        key = duplicate_key(read_commit(self._storage, file))
                        if key is not None:
                            message = f"it holds two actions for {key}, and it is unknown which one is the last."
                            self._findings.error("compaction.actions", file.path, message)

    def _compare(self, file: LogFile, fold: _Fold) -> None:
        self.checked += 1
        self._compared.add(file.path)
        found = parse_actions(self._storage.read(file.path), file.path, self._findings, prefix="compaction")
        own = Findings(1)
        check_uniqueness(found, own.of(file.version), reconciled=True)
        for finding in own.all():
            self._findings.error("compaction.actions", file.path, finding.message)
        recorded = _Fold()
        recorded.put(found)
        for key in sorted(fold.actions.keys() | recorded.actions.keys(), key=repr):
            wanted, have = fold.actions.get(key), recorded.actions.get(key)
            if wanted == have or (wanted is not None and have is not None and _same(wanted, have)):
                continue
            what = " ".join(str(part) for part in key if part is not None)
            state = "missing" if have is None else "not in the commits" if wanted is None else "another one"
            self._findings.error("compaction.actions", file.path, f"the action for {what} is {state}.")


def _same(wanted: Any, have: Any) -> bool:
    """Whether both are equal except for dataChange, which a compaction may set to false."""
    if type(wanted) is not type(have):
        return False
    if hasattr(wanted, "data_change"):
        return bool(
            msgspec.structs.replace(wanted, data_change=False) == msgspec.structs.replace(have, data_change=False)
        )
    return False
