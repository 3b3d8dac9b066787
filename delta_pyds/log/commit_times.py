"""When commits were made. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.errors import CorruptLogError
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import CommitInfo


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
