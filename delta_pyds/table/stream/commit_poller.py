"""Polls the log of a table for the commits after a version. Protocol: "Delta Log Entries", "Metadata Cleanup"."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from delta_pyds.bounded_cache import BoundedCache
from delta_pyds.catalog.managed import is_catalog_managed
from delta_pyds.errors import FileNotFoundInStorageError, MissingLogFilesError, UserError
from delta_pyds.log.commit_reader import decode_commit, fetch_commits
from delta_pyds.log.committer import LoggedCommit
from delta_pyds.log.listing import LogFile, commit_by_name, log_files
from delta_pyds.log.segment import no_log
from delta_pyds.protocol.paths import LogFileKind, commit_path, log_directory, version_prefix
from delta_pyds.storage.base import Storage

# The interval between listings of the log if polls find nothing, and the maximum share of time spent on them.
_CHECK_EVERY_S = 10.0
_CHECK_SHARE = 0.05
_CACHE_BYTES = 64 * 1024 * 1024
# Commits of the first listing: few, because the caller may stop soon.
_FIRST_WINDOW = 256
_LAST_WINDOW = 16_384
_WINDOW_GROWTH = 4
_MAX_FINGERPRINTS = 1_024
# Larger commits are not read only to identify them later.
_MAX_PINNED_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class _Fingerprint:
    """Identifies a commit that was read before, by its file and content."""

    file: LogFile
    digest: bytes


@dataclass(frozen=True)
class _LogWindow:
    """A listing of the log from one version before the wanted one, cut off after a window of commits.

    ``newest``: the newest version that the listing proves to exist, or -1.
    """

    commits: dict[int, LogFile]
    newest: int


@dataclass(frozen=True)
class _CommitRun:
    """Commits to read, ascending. ``more``: others follow. ``gap``: the next one is missing, but a later one exists."""

    files: Sequence[LogFile] = ()
    more: bool = False
    gap: bool = False


class CommitPoller:
    """The commits of one table's log from any version on; for one thread.

    Invariants:

    - No commit is skipped.
    - If another table replaces this one, none of its commits follows a commit of this table.
    - A poll that finds nothing costs one look-up by name. The first poll, and then about one in ten seconds, also lists
      the end of the log. This shows whether it is still the same log.
    - Memory is bounded: decoded commits are cached up to ``cache_bytes`` of JSON.
    """

    def __init__(
        self,
        storage: Storage,
        table_root: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        cache_bytes: int = _CACHE_BYTES,
    ) -> None:
        self._storage = storage
        self._root = table_root
        self._clock = clock
        self._next_check = float("-inf")
        self._newest: int | None = None
        self._cache: BoundedCache[int, tuple[LoggedCommit, int]] = BoundedCache(cache_bytes, size_of=itemgetter(1))
        self._fingerprints: BoundedCache[int, _Fingerprint] = BoundedCache(_MAX_FINGERPRINTS)
        self._listed: dict[int, LogFile] = {}

    @property
    def newest(self) -> int | None:
        """The newest version seen so far. Does no I/O."""
        return self._newest

    def forget(self, before: int) -> None:
        """Drop cached data of versions below ``before``, which will not be requested again."""
        for version in self._cache:
            if version < before:
                self._cache.forget(version)
        # the fingerprint of the commit right before proves that the next commit belongs to the same table
        for version in self._fingerprints:
            if version < before - 1:
                self._fingerprints.forget(version)
        self._listed = {version: file for version, file in self._listed.items() if version >= before}

    def commits(self, first: int, last: int | None = None) -> Iterator[LoggedCommit]:
        """Every commit from ``first`` on, ascending and without a gap, up to ``last`` or the newest one.

        Empty if ``first`` is not written yet; shorter if ``last`` is not. Each commit is read and decoded when the
        iteration reaches it.

        Raises:
            MissingLogFilesError: DELTA_MISSING_FILES_UNEXPECTED_VERSION if the log was cleaned up beyond ``first``
                (parameters ``version`` and ``earliest``, the first available commit); otherwise
                DELTA_VERSIONS_NOT_CONTIGUOUS.
            UserError: the log ends before ``first - 1`` (DELTA_STREAMING_TRAILING_COMMIT_MISSING), or its commits are
                not those returned before (DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
            TableNotFoundError, CorruptLogError: the log is missing or damaged.
        """
        version, window = first, _FIRST_WINDOW
        while last is None or version <= last:
            cached = self._cache.get(version)
            if cached is not None:
                yield cached[0]
                version += 1
                continue
            run, began = self._find(version, last, window), version
            for commit in self._read(run):
                version = commit.version + 1
                yield commit
            if not run.more or version == began:
                return
            window = min(window * _WINDOW_GROWTH, _LAST_WINDOW)

    # --- finding commits

    def _find(self, version: int, last: int | None, window: int) -> _CommitRun:
        if self._clock() < self._next_check:
            known = self._find_without_listing(version, last)
            if known is not None:
                if known.files:
                    self._check_unchanged(version - 1, None)
                return known
        began = self._clock()
        self._next_check = float("-inf")  # until this listing has succeeded
        log_window = self._list_window(version, window)
        if version not in log_window.commits and version <= log_window.newest and self._by_name(version) is None:
            # the log may change while it is listed: the second listing decides
            log_window = self._list_window(version, window)
        run = self._run_from(log_window, version, last, window)
        if not run.files:
            if run.gap:
                raise self._missing(version, log_window)
            self._check_end(version, log_window)
        self._check_unchanged(version - 1, log_window.commits.get(version - 1), pin=not run.files)
        if not run.gap:  # a new listing decides when its turn comes
            now = self._clock()
            self._next_check = now + max(_CHECK_EVERY_S, (now - began) / _CHECK_SHARE)
            self._listed = {file.version: file for file in run.files[:_FIRST_WINDOW]}
        return run

    def _find_without_listing(self, version: int, last: int | None) -> _CommitRun | None:
        """Commits known from the last listing and from look-ups by name; None if a listing is needed."""
        listed: list[LogFile] = []
        # a stream that reads a backlog in small batches finds the next commits in the last listing
        while (file := self._listed.get(version + len(listed))) is not None and (last is None or file.version <= last):
            listed.append(file)
        if listed:
            return _CommitRun(listed, more=True)
        file = self._by_name(version)
        if file is None:
            # a version older than the newest was cleaned up, or the store does not show it
            return None if self._newest is not None and version <= self._newest else _CommitRun()
        # a listing may cost far more than a look-up, and a stream that keeps up finds one commit at a time
        return _CommitRun([file]) if version == last or self._by_name(version + 1) is None else None

    def _list_window(self, version: int, window: int) -> _LogWindow:
        """List from the previous version on, which shows whether this is still the same log."""
        start = version_prefix(max(version - 1, 0))
        try:
            statuses = self._storage.list_from(log_directory(self._root), start)
        except FileNotFoundInStorageError as error:
            raise no_log(self._storage, self._root) from error
        commits: dict[int, LogFile] = {}
        newest = -1
        for file in log_files(statuses):
            if file.name.kind is LogFileKind.COMMIT:
                commits[file.version] = file
            elif file.name.kind is not LogFileKind.CHECKPOINT or not file.regular:
                continue
            newest = max(newest, file.version)
            if len(commits) > window:  # the previous version, and a full window of commits
                break
        self._note_version(newest)
        return _LogWindow(commits, newest)

    def _run_from(self, log_window: _LogWindow, version: int, last: int | None, window: int) -> _CommitRun:
        """The commits from ``version`` on, including those that exist but were not in the listing."""
        files: list[LogFile] = []
        at = version
        while last is None or at <= last:
            if len(files) == window or at in self._cache:
                return _CommitRun(files, more=True)
            file = log_window.commits.get(at)
            if file is None:
                stale = bool(files) and files[-1].version > log_window.newest
                if at == version or at <= log_window.newest or stale or last is not None:
                    file = self._by_name(at)
            if file is None:
                gap = at <= log_window.newest
                return _CommitRun(files, more=gap, gap=gap)
            files.append(file)
            at += 1
        return _CommitRun(files)

    def _by_name(self, version: int) -> LogFile | None:
        try:
            file = commit_by_name(self._storage, self._root, version)
        except FileNotFoundInStorageError:
            return None
        self._note_version(version)
        return file

    def _note_version(self, version: int) -> None:
        if version >= 0 and (self._newest is None or version > self._newest):
            self._newest = version

    # --- reading commits

    def _read(self, run: _CommitRun) -> Iterator[LoggedCommit]:
        version = run.files[0].version if run.files else 0
        try:
            for file, data in fetch_commits(self._storage, run.files):
                version = file.version
                if not data.strip() and self._newest == version and self._by_name(version + 1) is None:
                    return  # a store without atomic creation may show the file before its content
                yield self._decoded(file, data)
                version += 1
        except MissingLogFilesError as error:
            raise self._disappeared(version, error) from error

    def _decoded(self, file: LogFile, data: bytes) -> LoggedCommit:
        digest = _digest(data)
        before = self._fingerprints.get(file.version)
        if before is not None and before.digest != digest:
            raise self._replaced_log(file.version)
        commit = LoggedCommit(file.version, file, decode_commit(data, file.path))
        self._fingerprints.put(file.version, _Fingerprint(file, digest))
        self._cache.put(file.version, (commit, len(data)))
        return commit

    # --- checking that the log is still the same

    def _check_unchanged(self, version: int, shown: LogFile | None, *, pin: bool = False) -> None:
        """Raise if the commit differs from the one that was read. ``pin``: remember a commit that was not read."""
        known = self._fingerprints.get(version)
        if version < 0 or (known is None and not pin):
            return
        file = shown or self._by_name(version)
        # a commit that was cleaned up cannot be compared
        if file is None or (known is None and file.size_bytes > _MAX_PINNED_BYTES):
            return
        if known is not None and _same_file(known.file, file):
            return
        # a file that was touched, copied or linked has a new time: its content decides
        try:
            [(_, data)] = fetch_commits(self._storage, [file])
        except MissingLogFilesError:
            return
        digest = _digest(data)
        if known is not None and known.digest != digest:
            raise self._replaced_log(version)
        self._fingerprints.put(file.version, _Fingerprint(file, digest))

    def _check_end(self, version: int, log_window: _LogWindow) -> None:
        """Raise if the log lacks ``version`` and also the version before it."""
        if version == 0 or log_window.newest >= version - 1 or self._by_name(version - 1) is not None:
            return
        raise log_ends_before(self._storage, self._root, version - 1)

    def _disappeared(self, version: int, error: MissingLogFilesError) -> Exception:
        """The error for a commit that was listed but cannot be read any more."""
        self._next_check = float("-inf")
        log_window = self._list_window(version, _FIRST_WINDOW)
        if log_window.newest > version or (log_window.newest == version and version not in log_window.commits):
            return self._missing(version, log_window)
        self._check_end(version, log_window)
        return error

    def _missing(self, version: int, log_window: _LogWindow) -> MissingLogFilesError:
        # if only a checkpoint is left, the next commit will be the one after it
        earliest = min((other for other in log_window.commits if other > version), default=log_window.newest + 1)
        path = commit_path(self._root, version)
        if version > 0 and self._by_name(version - 1) is not None:
            return MissingLogFilesError(
                f"The log of table {self._root!r} has a gap: the commit of version {version} is missing, although "
                f"the one before it and version {log_window.newest} exist. Its changes are unknown, so the "
                f"stream cannot continue: restore {path!r}, or start the query with a new checkpoint location.",
                table=self._root,
                version=version,
                missing_version=version,
            )
        return MissingLogFilesError(
            f"The stream needs version {version} of table {self._root!r} next, but the earliest commit that its log "
            f"still has is version {earliest}: the log was cleaned up before the stream had read it. Restore "
            f"{path!r} and the commits after it; or start the query with a new checkpoint location, to read "
            "the whole table again; or set the option failOnDataLoss=false, to continue with version "
            f"{earliest} and lose the changes in between.",
            code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            table=self._root,
            version=version,
            earliest=earliest,
        )

    def _replaced_log(self, version: int) -> UserError:
        return UserError(
            f"Version {version} of table {self._root!r} is not the commit that the stream has read: another table took "
            "its place, or the log was overwritten. Rows already read and new rows would not belong "
            "together. To read the current table, start the query with a new checkpoint location.",
            code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=self._root,
            version=version,
        )


def log_ends_before(storage: Storage, table_root: str, version: int) -> UserError:
    """The error for a log that lacks a version that the stream has read or planned to read."""
    text = (
        f"The log of table {table_root!r} ends before version {version}, but the stream has already read that version. "
    )
    if is_catalog_managed(storage):
        text += (
            "The answer of its catalog was outdated, as a replica's may be: start the query again, with the same "
            "checkpoint, and it continues where it was. If the error remains, the catalog or the table was restored "
            "from an older copy: ask the administrator of the catalog."
        )
    else:
        text += (
            "The table was deleted and recreated, or restored from an older copy. Restore the log; or start the "
            "query with a new checkpoint location, to read the current table."
        )
    code = "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    return UserError(text, code=code, table=table_root, version=version)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _same_file(one: LogFile, other: LogFile) -> bool:
    return (one.size_bytes, one.modification_time_ms, one.generation) == (
        other.size_bytes,
        other.modification_time_ms,
        other.generation,
    )
