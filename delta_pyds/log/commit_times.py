"""Commit times. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError
from delta_pyds.log.listing import LogFile, LogListing, by_version, commit_by_name, list_log
from delta_pyds.log.segment import earliest_version
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.storage.base import Storage

# Versions before the first one asked for whose file times are looked at: a run of
# commits with equal or falling times may have raised the time of the first.
_LOOKED_BACK = 1_000


@dataclass(frozen=True)
class TimedCommits:
    """The commits of some consecutive versions, as far as the log has them, and what their files say of their times.

    ``files``: by version, ascending. ``file_times``: in ms, of the same
    versions, ascending strictly. ``in_commit``: the version from which on
    commits carry their own time; None where none does.
    """

    files: Mapping[int, LogFile]
    file_times: Mapping[int, int]
    in_commit: int | None

    def timestamp_ms(self, version: int, info: CommitInfo | None) -> int:
        """The time of a version of ``files``, whose commit info the caller has read.

        Raises: CorruptLogError if the commit should carry its time and does not.
        """
        if self.has_own_time(version):
            return in_commit_timestamp(info, self.files[version])
        return self.file_times[version]

    def has_own_time(self, version: int) -> bool:
        return self.in_commit is not None and version >= self.in_commit


def timed_commits(
    storage: Storage, table_root: str, first: int, last: int, *, in_commit: int | None = None
) -> TimedCommits:
    """List the commits from ``first`` to ``last``, beginning at most 1,000 versions before: never a whole log.

    A version gets the same time whatever ``first`` is, unless more commits
    than that before it have times which do not ascend by themselves.
    Commits that a listing does not show yet are looked up by name.
    """
    # times of their own need no neighbours
    start = first if in_commit is not None and first >= in_commit else max(0, first - _LOOKED_BACK)
    try:
        listing = list_log(storage, table_root, start, last)
    except FileNotFoundInStorageError:
        listing = LogListing(table_root, start)
    commits = [*listing.commits, *_unlisted(storage, listing, max(first, start), last)]
    # where the log begins within what was listed, times begin as they do when all of it is listed
    whole = start == 0 or (bool(commits) and commits[0].version > start)
    times = monotonic_file_times(commits, earliest_version(listing) if whole else None)
    files = {version: file for version, file in by_version(commits).items() if first <= version <= last}
    return TimedCommits(files, {version: times[version] for version in files}, in_commit)


def monotonic_file_times(commits: Sequence[LogFile], earliest: int | None) -> dict[int, int]:
    """Version to file time in ms, raised where needed so that times ascend strictly.

    Starts anew at the earliest version that can be recreated: a stray older
    file must not move the times of the others.
    """
    times: dict[int, int] = {}
    previous: int | None = None
    for file in commits:
        if file.version == earliest:
            previous = None
        time_ms = file.modification_time_ms
        if previous is not None and time_ms <= previous:
            time_ms = previous + 1
        times[file.version] = previous = time_ms
    return times


def in_commit_timestamp(info: CommitInfo | None, file: LogFile) -> int:
    """The time in ms that the commit itself carries, of a version from which on all must.

    Raises: CorruptLogError if it does not.
    """
    if info is None or info.in_commit_timestamp is None:
        raise CorruptLogError(
            f"The commit {file.path!r} has no inCommitTimestamp, although the table has in-commit timestamps enabled "
            f"at version {file.version}. Ask for a version by its number.",
            code="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
            path=file.path,
            version=file.version,
        )
    return info.in_commit_timestamp


def _unlisted(storage: Storage, listing: LogListing, first: int, last: int) -> list[LogFile]:
    """Commits after the listing's last: a listing may lag behind what was written."""
    found: list[LogFile] = []
    start = listing.commits[-1].version + 1 if listing.commits else first
    try:
        for version in range(max(start, first), last + 1):
            found.append(commit_by_name(storage, listing.table_root, version))
    except FileNotFoundInStorageError:
        pass
    return found
