"""The changes of each commit that is still in the log, and the size of the table after it.

Invariant: sizes are computed backwards from the newest version, whose size is known, by the files that commits add and
remove. Before a commit that cannot be read, or lacks a size, they are unknown (None). If the count is not 0 before
version 0, some commit added a file again or removed one that did not exist: then no earlier size is shown.

Protocol: "Delta Log Entries", "Commit Provenance Information".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Annotated

import msgspec

from delta_pyds.errors import DeltaError
from delta_pyds.log.commit_reader import fetch_commits
from delta_pyds.log.listing import LogFile, list_log
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json_with
from delta_pyds.table.history import CommitRecord, history
from delta_pyds.table.snapshot import Snapshot

MOST_VERSIONS = 1_000
# the most bytes of one commit, and of all commits, that are read
_MOST_COMMIT_BYTES = 32 << 20
_MOST_BYTES = 128 << 20
# an invalid size makes its commit unreadable
_Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


@dataclass(frozen=True)
class Version:
    """One version. ``num_files``, ``size_bytes``: the table's after it; None if unknown."""

    version: int
    timestamp_ms: int
    operation: str
    engine: str
    files_added: int | None
    files_removed: int | None
    num_files: int | None
    size_bytes: int | None


@dataclass(frozen=True)
class Versions:
    """``shown``: the newest, ascending. ``more``: whether the log has older ones. ``operations``: commits by name."""

    shown: tuple[Version, ...]
    more: bool
    operations: tuple[tuple[str, int], ...]


class _File(msgspec.Struct, gc=False):
    size: _Size | None = None
    data_change: bool = msgspec.field(default=True, name="dataChange")


class _Line(msgspec.Struct, gc=False):
    add: _File | None = None
    remove: _File | None = None


_decoder = msgspec.json.Decoder(_Line)


@dataclass(frozen=True)
class _Change:
    """The changes of one commit. ``bytes``, ``files``: the growth of the table; None if unknown."""

    added: int
    removed: int
    bytes: int | None
    files: int | None


def versions(snapshot: Snapshot, num_files: int, size_bytes: int) -> Versions:
    """The newest ``MOST_VERSIONS`` versions up to the snapshot's, which has these files and bytes.

    Raises: DeltaError for a log that cannot be listed.
    """
    records = _records(snapshot)
    listing = list_log(snapshot.storage, snapshot.table_root, 0, snapshot.version)
    files = {file.version: file for file in listing.commits}
    changes = _changes(snapshot, [files[record.version] for record in records if record.version in files])
    shown, count, size = [], _Backwards(num_files), _Backwards(size_bytes)
    expected = snapshot.version
    for record in records:
        if record.version != expected:  # the versions between are gone
            count.value = size.value = None
        change = changes.get(record.version)
        shown.append(
            Version(
                record.version,
                record.timestamp_ms,
                _operation(record),
                _engine(record),
                None if change is None else change.added,
                None if change is None else change.removed,
                count.value,
                size.value,
            )
        )
        count.step(None if change is None else change.files)
        size.step(None if change is None else change.bytes)
        expected = record.version - 1
    begins = bool(shown) and shown[-1].version == 0 and (count.value or size.value)
    if begins or count.impossible or size.impossible:
        shown = [shown[0], *(replace(version, num_files=None, size_bytes=None) for version in shown[1:])]
    operations = Counter(version.operation for version in shown).most_common()
    return Versions(tuple(reversed(shown)), len(files) > len(records), tuple(operations))


class _Backwards:
    """A number that is computed backwards through the versions."""

    def __init__(self, value: int | None) -> None:
        self.value = value
        self.impossible = False

    def step(self, grown: int | None) -> None:
        known = None if self.value is None or grown is None else self.value - grown
        self.impossible |= known is not None and known < 0
        self.value = None if self.impossible else known


def _records(snapshot: Snapshot) -> list[CommitRecord]:
    """The commits, newest first, down to a damaged one."""
    found = []
    try:
        for record in history(
            snapshot.storage,
            snapshot.table_root,
            MOST_VERSIONS,
            properties_of_latest=snapshot.configuration.properties,
        ):
            if record.version <= snapshot.version:
                found.append(record)
    except DeltaError:
        pass  # verify names the damage; the newer versions are shown
    return found


def _changes(snapshot: Snapshot, newest_first: Sequence[LogFile]) -> dict[int, _Change]:
    """The changes of the commits, from the newest back to the first that is too long or unreadable."""
    chosen, room = [], _MOST_BYTES
    for file in newest_first:
        room -= file.size_bytes
        if file.size_bytes > _MOST_COMMIT_BYTES or room < 0:
            break
        chosen.append(file)
    found: dict[int, _Change] = {}
    try:
        for file, data in fetch_commits(snapshot.storage, chosen):
            found[file.version] = _change(data.removeprefix(b"\xef\xbb\xbf"))
    except (DeltaError, InvalidJSONError):
        pass
    return found


def _change(data: bytes) -> _Change:
    """Read a commit line by line, because it may have very many.

    Raises: InvalidJSONError.
    """
    added = removed = rearranged = gone = grown = 0
    unknown = False
    for line in BytesIO(data):
        if not line.strip():
            continue
        action = decode_json_with(_decoder, line)
        if action.add is not None:
            added += 1
            rearranged += not action.add.data_change
            grown += action.add.size or 0
            unknown |= action.add.size is None
        if action.remove is not None:
            removed += 1
            gone += not action.remove.data_change
            grown -= action.remove.size or 0
            unknown |= action.remove.size is None
    if rearranged and not gone:
        # files are added again with other metadata, such as row ids; they cannot be distinguished from other adds
        return _Change(added, removed, *((0, 0) if rearranged == added and not removed else (None, None)))
    return _Change(added, removed, None if unknown else grown, added - removed)


def _operation(record: CommitRecord) -> str:
    operation = None if record.commit_info is None else record.commit_info.operation
    return operation if isinstance(operation, str) and operation else "unknown"


def _engine(record: CommitRecord) -> str:
    engine = None if record.commit_info is None else record.commit_info.engine_info
    return engine if isinstance(engine, str) else ""
