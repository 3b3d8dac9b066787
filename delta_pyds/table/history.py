"""History of a table: when each version was committed, and by which operation.

Protocol: "In-Commit Timestamps", "Commit Provenance Information".
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_pyds.errors import TimeTravelError
from delta_pyds.log.commit_reader import read_commit_info
from delta_pyds.log.commit_times import in_commit_timestamp, monotonic_file_times
from delta_pyds.log.listing import LogFile, by_version, list_log
from delta_pyds.log.segment import earliest_version, latest_version
from delta_pyds.protocol.actions import CommitInfo
from delta_pyds.protocol.properties import TableProperties
from delta_pyds.protocol.temporal import utc_text
from delta_pyds.storage.base import Storage

# Commits of a remote store whose provenance is fetched at once.
_HISTORY_BATCH = 16


@dataclass(frozen=True)
class CommitRecord:
    """One line of a table's history. ``commit_info``: None if the commit has none."""

    version: int
    timestamp_ms: int
    commit_info: CommitInfo | None


@dataclass(frozen=True)
class InCommitTimestamps:
    """The first version with an in-commit timestamp, and its time."""

    from_version: int
    from_timestamp_ms: int | None

    @staticmethod
    def of(properties: TableProperties) -> InCommitTimestamps | None:
        """Read them from the properties of the latest version; None if that has no in-commit timestamps."""
        if not properties.in_commit_timestamps:
            return None
        # both are absent in a table that was created with the feature
        return InCommitTimestamps(
            properties.in_commit_timestamp_enablement_version or 0,
            properties.in_commit_timestamp_enablement_timestamp_ms,
        )


class CommitTimes:
    """The commit times of one table up to ``latest_version``, from one listing of its log.

    Invariant: times ascend strictly with the version. A commit's time is its in-commit timestamp if ``properties``
    (of the latest version) enable them. Otherwise it is its file time, raised to at least 1 ms after the previous one.
    """

    def __init__(self, storage: Storage, table_root: str, *, properties: TableProperties, latest_version: int) -> None:
        self._storage = storage
        self._in_commit = InCommitTimestamps.of(properties)
        self.table_root = table_root
        self.latest = latest_version
        listing = list_log(storage, table_root, 0, latest_version, missing_ok=True)
        self.earliest = earliest_version(listing)
        self.commits: dict[int, LogFile] = by_version(listing.commits)
        self._file_times = monotonic_file_times(listing.commits, self.earliest)

    def commit_timestamp(self, version: int) -> int:
        """The time of a version in ms.

        Raises: TimeTravelError if its commit file is missing; CorruptLogError if it lacks a required in-commit
            timestamp.
        """
        file = self.commits.get(version)
        if file is None:
            raise TimeTravelError(
                f"The commit time of version {version} of table {self.table_root!r} is unknown: "
                "its commit file is no longer in the log.",
                table=self.table_root,
                version=version,
            )
        if self._in_commit is not None and version >= self._in_commit.from_version:
            return in_commit_timestamp(read_commit_info(self._storage, file), file)
        return self._file_times[version]

    def version_at(self, timestamp_ms: int) -> int:
        """The last version committed at or before the time, among those that can be reconstructed.

        Raises: TimeTravelError for a time before the first or after the last commit.
        """
        found = self.last_at_or_before(timestamp_ms)
        if found == self._versions()[-1] and self.commit_timestamp(found) < timestamp_ms:
            raise self._after_latest(found, timestamp_ms)
        return found

    def last_at_or_before(self, timestamp_ms: int) -> int:
        """As ``version_at``, but the last version for a time after it.

        Raises: TimeTravelError for a time before the first commit.
        """
        versions = self._versions()
        candidates = self._candidates(versions, timestamp_ms)
        low = bisect_right(candidates, timestamp_ms, key=self.commit_timestamp)
        if low == 0:
            raise self._before_earliest(versions[0], timestamp_ms)
        return candidates[low - 1]

    def first_at_or_after(self, timestamp_ms: int) -> int:
        """The first version committed at or after the time, among those that can be reconstructed.

        Raises: TimeTravelError for a time after the last commit.
        """
        versions = self._versions()
        candidates = self._candidates(versions, timestamp_ms)
        low = bisect_left(candidates, timestamp_ms, key=self.commit_timestamp)
        if low < len(candidates):
            return candidates[low]
        # each commit of the later clock is later than all commits of the earlier clock
        later = [version for version in versions if not candidates or version > candidates[-1]]
        if not later or self.commit_timestamp(later[0]) < timestamp_ms:
            raise self._after_latest(versions[-1], timestamp_ms)
        return later[0]

    def _versions(self) -> list[int]:
        """Versions that can be reconstructed and have a commit file, ascending. Raises: TimeTravelError for none."""
        versions = sorted(version for version in self.commits if self.earliest is not None and version >= self.earliest)
        if not versions:
            raise TimeTravelError(
                f"No version of table {self.table_root!r} can be found by time: the log has no commit file of a "
                "version that can be reconstructed. Ask for a version by its number.",
                code="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
                table=self.table_root,
            )
        return versions

    def _candidates(self, versions: Sequence[int], timestamp_ms: int) -> list[int]:
        """The versions whose times come from the same clock as the given time.

        File times and in-commit timestamps are different clocks, so they are never compared with each other.
        """
        split = self._in_commit
        if split is None or split.from_timestamp_ms is None:
            return list(versions)
        if timestamp_ms >= split.from_timestamp_ms:
            return [version for version in versions if version >= split.from_version]
        return [version for version in versions if version < split.from_version]

    def _before_earliest(self, first: int, timestamp_ms: int) -> TimeTravelError:
        first_ms = self.commit_timestamp(first)
        return TimeTravelError(
            f"The time {utc_text(timestamp_ms)} is before the earliest version of table {self.table_root!r} that can "
            f"be reconstructed, version {first} of {utc_text(first_ms)}. Ask for that time or a later one.",
            code="DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            table=self.table_root,
            timestamp_ms=timestamp_ms,
            earliest=first,
            earliest_timestamp_ms=first_ms,
        )

    def _after_latest(self, last: int, timestamp_ms: int) -> TimeTravelError:
        last_ms = self.commit_timestamp(last)
        return TimeTravelError(
            f"The time {utc_text(timestamp_ms)} is after the latest version of table {self.table_root!r}, version "
            f"{last} of {utc_text(last_ms)}. Ask for that time or an earlier one.",
            code="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            table=self.table_root,
            timestamp_ms=timestamp_ms,
            latest=last,
            latest_timestamp_ms=last_ms,
        )


def version_at(
    storage: Storage,
    table_root: str,
    timestamp_ms: int,
    *,
    properties_of_latest: TableProperties,
    latest_version: int,
) -> int:
    """The version that the table had at a time. See ``CommitTimes.version_at``."""
    times = CommitTimes(storage, table_root, properties=properties_of_latest, latest_version=latest_version)
    return times.version_at(timestamp_ms)


def history(
    storage: Storage,
    table_root: str,
    limit: int | None = None,
    *,
    properties_of_latest: TableProperties | None = None,
) -> Iterator[CommitRecord]:
    """The commits that the log still has, newest first, at most ``limit``.

    Args:
        properties_of_latest: decide which commits have in-commit timestamps; None uses each in-commit timestamp found.
    Raises:
        TableNotFoundError: the log has no table.
        CorruptLogError: raised while iterating, at a damaged commit.
    """
    split = None if properties_of_latest is None else InCommitTimestamps.of(properties_of_latest)
    listing = list_log(storage, table_root, 0, latest_version(storage, table_root), missing_ok=True)
    times = monotonic_file_times(listing.commits, earliest_version(listing))
    newest_first = listing.commits[::-1][:limit]
    for file, info in _commit_infos(storage, newest_first):
        timestamp_ms = times[file.version]
        if properties_of_latest is None:
            if info is not None and info.in_commit_timestamp is not None:
                timestamp_ms = info.in_commit_timestamp
        elif split is not None and file.version >= split.from_version:
            timestamp_ms = in_commit_timestamp(info, file)
        yield CommitRecord(file.version, timestamp_ms, info)


def _commit_infos(storage: Storage, files: Sequence[LogFile]) -> Iterator[tuple[LogFile, CommitInfo | None]]:
    if storage.scheme == "file" or len(files) <= 1:
        for file in files:
            yield file, read_commit_info(storage, file)
        return
    with ThreadPoolExecutor(min(_HISTORY_BATCH, len(files))) as pool:
        for start in range(0, len(files), _HISTORY_BATCH):
            batch = files[start : start + _HISTORY_BATCH]
            yield from zip(batch, pool.map(lambda file: read_commit_info(storage, file), batch), strict=True)
