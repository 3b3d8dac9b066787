"""Row ids: each row has one, they are unique, and none exceeds the high water mark.

Protocol: "Writer Requirements for Row Tracking".
"""

from __future__ import annotations

from bisect import bisect_left, insort

import msgspec

from delta_pyds.protocol.actions import ROW_TRACKING_DOMAIN, AddFile, DomainMetadata, file_key
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.paths import path_key
from delta_pyds.verification.actions import Actions
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.state import TableState, num_records
from delta_pyds.verification.view import TableView

_RULE = "row-tracking"


class _Mark(msgspec.Struct, rename="camel"):
    """The high water mark: ``rowIdHighWaterMark`` in the reference, ``highWaterMark`` in the protocol's text."""

    row_id_high_water_mark: int | None = None
    high_water_mark: int | None = None


def high_water_mark(domain: DomainMetadata | None) -> int | None:
    if domain is None or domain.removed:
        return None
    try:
        mark = decode_json(domain.configuration, _Mark)
    except InvalidJSONError:
        return None
    return mark.high_water_mark if mark.row_id_high_water_mark is None else mark.row_id_high_water_mark


class RowTrackingRules:
    """Remembers the ids of each path, which never change."""

    def __init__(self) -> None:
        # path -> first id and commit version
        self._given: dict[str, tuple[int, int | None]] = {}
        # (first, last, path), ascending and disjoint
        self._ranges: list[tuple[int, int, str]] = []
        self._highest = -1

    def seed(self, state: TableState, findings: VersionFindings) -> None:
        """Start with the state of a checkpoint."""
        for add in state.live.values():
            if add.base_row_id is not None:
                self._give(add, add.base_row_id, num_records(add), findings)

    def check(self, actions: Actions, state: TableState, view: TableView, findings: VersionFindings) -> None:
        supported = view.supports(Feature.ROW_TRACKING)
        if not supported:
            for a in actions.adds:
                if a.base_row_id is not None or a.default_row_commit_version is not None:
                    # the reference has written such files too, and readers ignore the fields
                    findings.warning(
                        f"{_RULE}.not-supported",
                        f"{a.path} has row ids, but the protocol does not support rowTracking.",
                    )
                    break
        before = high_water_mark(state.domains.get(ROW_TRACKING_DOMAIN))
        domain = next((d for d in actions.domains if d.domain == ROW_TRACKING_DOMAIN), None)
        after = before if domain is None else high_water_mark(domain)
        if domain is not None and not domain.removed and after is None:
            findings.error(f"{_RULE}.high-water-mark", f"it cannot be read: {domain.configuration}.")
        if before is not None and after is not None and after < before:
            findings.error(f"{_RULE}.high-water-mark", f"it goes back from {before} to {after}.")
        if not supported:
            # a feature that was dropped and added again starts from the beginning
            self._given, self._ranges, self._highest = {}, [], -1
            return
        if view.properties.row_tracking_suspended and not view.properties.row_tracking:
            return  # the feature is being dropped: files lose their ids
        for a in actions.adds:
            self._check_add(a, before, findings)
        if self._highest >= 0 and (after is None or after < self._highest):
            findings.error(f"{_RULE}.high-water-mark", f"it is {after}, but the row id {self._highest} is in use.")
        for r in actions.removes:
            given = self._given.get(path_key(r.path))
            if given is not None and r.base_row_id is not None and r.base_row_id != given[0]:
                findings.error(
                    f"{_RULE}.changed", f"{r.path} is removed with the base row id {r.base_row_id}, but has {given[0]}."
                )

    def _check_add(self, add: AddFile, mark: int | None, findings: VersionFindings) -> None:
        base, commit = add.base_row_id, add.default_row_commit_version
        if base is None or commit is None:
            missing = "baseRowId" if base is None else "defaultRowCommitVersion"
            findings.error(f"{_RULE}.missing", f"{add.path} has no {missing}.")
            if base is None:
                return
        if base < 0:
            findings.error(f"{_RULE}.base", f"{add.path} has the base row id {base}.")
        given = self._given.get(path_key(add.path))
        if given is not None:
            if base != given[0]:
                findings.error(
                    f"{_RULE}.changed", f"{add.path} had the base row id {given[0]}, but is added with {base}."
                )
            if given[1] is not None and commit is not None and commit != given[1]:
                findings.error(
                    f"{_RULE}.changed", f"{add.path} has the commit version {given[1]}, but is added with {commit}."
                )
            return
        if commit is not None and commit != findings.version:
            findings.error(f"{_RULE}.commit-version", f"{add.path} is new, but has defaultRowCommitVersion {commit}.")
        if mark is not None and base <= mark:
            findings.warning(
                f"{_RULE}.base", f"{add.path} has the base row id {base}, but ids up to {mark} are in use or reserved."
            )
        self._give(add, base, num_records(add), findings)

    def _give(self, add: AddFile, base: int, rows: int | None, findings: VersionFindings) -> None:
        self._given[path_key(add.path)] = base, add.default_row_commit_version
        if rows is None:
            findings.warning(f"{_RULE}.rows", f"{add.path} has row ids, but no numRecords: they were not compared.")
            return
        if rows <= 0:
            return
        last = base + rows - 1
        at = bisect_left(self._ranges, (base,))
        for neighbour in self._ranges[max(at - 1, 0) : at + 1]:
            if neighbour[0] <= last and base <= neighbour[1]:
                findings.error(
                    f"{_RULE}.duplicate", f"the row ids {base} to {last} of {add.path} overlap those of {neighbour[2]}."
                )
                break
        else:
            insort(self._ranges, (base, last, add.path))
        self._highest = max(self._highest, last)

    def enabled(self, actions: Actions, state: TableState, findings: VersionFindings) -> None:
        """Check that every file has ids in the commit that enables row tracking."""
        gone = {file_key(r) for r in actions.removes} | {file_key(a) for a in actions.adds}
        for key, add in state.live.items():
            if key not in gone and (add.base_row_id is None or add.default_row_commit_version is None):
                findings.error(f"{_RULE}.missing", f"row tracking is enabled, but {add.path} has no row ids.")
