"""The times of commits. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_pyds.errors import CorruptLogError
from delta_pyds.log.listing import LogFile, by_version, commits_by_name, list_log
from delta_pyds.log.segment import earliest_version
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.storage.base import Storage

# Earlier versions whose file times are examined: a run of commits with equal or
# descending times may raise the time of the first requested version.
_LOOKED_BACK = 1_000


@dataclass(frozen=True)
class TimedCommits:
    """The commits of consecutive versions, as far as the log has them, with the times of their files.

    ``files``: versions to commit files, ascending. ``file_times``: the same versions to milliseconds since the epoch,
    strictly ascending. ``in_commit``: the first version with an in-commit timestamp; None if no version has one.
    """

    files: Mapping[int, LogFile]
    file_times: Mapping[int, int]
    in_commit: int | None

    def timestamp_ms(self, version: int, info: CommitInfo | None) -> int:
        """The time of a version of ``files``, in milliseconds since the epoch. ``info``: its commit info.

        Raises: CorruptLogError if the commit lacks its required in-commit timestamp.
        """
        if self.has_in_commit_timestamp(version):
            return in_commit_timestamp(info, self.files[version])
        return self.file_times[version]

    def has_in_commit_timestamp(self, version: int) -> bool:
        return self.in_commit is not None and version >= self.in_commit


def timed_commits(
    storage: Storage, table_root: str, first: int, last: int, *, in_commit: int | None = None
) -> TimedCommits:
    """The commits from ``first`` to ``last``. The listing starts at most 1,000 versions earlier.

    So the time of a version does not depend on ``first``. The exception: more than 1,000 commits before it have
    descending times. Commits that a stale listing does not show are looked up by name.

    Raises: StorageError.
    """
    # in-commit timestamps do not depend on earlier commits
    start = first if in_commit is not None and first >= in_commit else max(0, first - _LOOKED_BACK)
    listing = list_log(storage, table_root, start, last, missing_ok=True)
    # a listing may be stale
    unlisted = max(first, listing.commits[-1].version + 1) if listing.commits else first
    commits = [*listing.commits, *commits_by_name(storage, table_root, unlisted, last)]
    # if the log starts within this listing, times are as in a listing of the whole log
    whole = start == 0 or (bool(commits) and commits[0].version > start)
    times = monotonic_file_times(commits, earliest_version(listing) if whole else None)
    files = {version: file for version, file in by_version(commits).items() if first <= version <= last}
    return TimedCommits(files, {version: times[version] for version in files}, in_commit)


def monotonic_file_times(commits: Sequence[LogFile], earliest: int | None) -> dict[int, int]:
    """The file times by version in milliseconds, raised where necessary so that they ascend strictly.

    Versions before ``earliest``, the first one that can be reconstructed, do not affect later times: they may be stray
    files.
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
    """The in-commit timestamp of a commit that must have one, in milliseconds since the epoch.

    Raises: CorruptLogError if it has none.
    """
    if info is None or info.in_commit_timestamp is None:
        raise CorruptLogError(
            f"The commit {file.path!r} has no inCommitTimestamp, although in-commit timestamps are enabled at version "
            f"{file.version}. Use version numbers instead of timestamps.",
            code="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
            path=file.path,
            version=file.version,
        )
    return info.in_commit_timestamp
