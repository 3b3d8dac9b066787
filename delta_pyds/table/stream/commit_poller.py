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

# How often a poll that finds nothing lists the log, and which share of the time such listings may take.
_CHECK_EVERY_S = 10.0
_CHECK_SHARE = 0.05
_CACHE_BYTES = 64 * 1024 * 1024
# Commits of one listing: few at first, for the caller may stop soon.
_FIRST_WINDOW = 256
_LAST_WINDOW = 16_384
_WINDOW_GROWTH = 4
_MAX_FINGERPRINTS = 1_024
# Larger commits are not read only to identify them later.
_MAX_PINNED_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class _Fingerprint:
    """Identifies a commit that was read before."""

    file: LogFile
    digest: bytes


@dataclass(frozen=True)
class _LogWindow:
    """A listing of the log that starts one version before the wanted one, cut off after a window of commits.

    ``newest``: the newest version that its names prove, or -1.
    """

    commits: dict[int, LogFile]
    newest: int


@dataclass(frozen=True)
class _Run:
    """Commits to read, ascending. ``more``: others follow. ``gap``: the next one is missing, and a later one is not."""

    files: Sequence[LogFile] = ()
    more: bool = False
    gap: bool = False


class CommitPoller:
    """The commits of one table's log from any version on; for one thread.

    Invariant: no commit is passed over, and none of another table that took
    this one's place is handed out after one of this table. A poll that finds
    nothing is one look-up by name; the first one, and then about one in ten
    seconds, lists the log's tail too, to see that it is still the log that it
    was. Memory does not grow with what was read: decoded commits are kept
    within ``cache_bytes`` of JSON.
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
        """Drop what is kept of versions below ``before``, which will not be asked for again."""
        for version in self._cache:
            if version < before:
                self._cache.forget(version)
        # by the one right before, the next commit is known to be this table's
        for version in self._fingerprints:
            if version < before - 1:
                self._fingerprints.forget(version)
        self._listed = {version: file for version, file in self._listed.items() if version >= before}

    def commits(self, first: int, last: int | None = None) -> Iterator[LoggedCommit]:
        """Every commit from ``first`` on, ascending and without a gap, to ``last`` or to what is there now.

        Nothing where ``first`` is not written yet; short where ``last`` is not.
        Each is read and decoded when its turn comes.

        Raises: MissingLogFilesError, with the code DELTA_MISSING_FILES_UNEXPECTED_VERSION where the log was cleaned
            up beyond ``first`` (parameters ``version`` and ``earliest``, the first commit that can be had), else
            DELTA_VERSIONS_NOT_CONTIGUOUS; UserError (DELTA_STREAMING_TRAILING_COMMIT_MISSING) for a log that ends
            before ``first - 1``, (DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE) for one whose commits are not
            those handed out before; TableNotFoundError; CorruptLogError.
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

    # --- finding

    def _find(self, version: int, last: int | None, window: int) -> _Run:
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

    def _find_without_listing(self, version: int, last: int | None) -> _Run | None:
        """The commits known from the last listing and from look-ups by name; None if a listing is needed."""
        listed: list[LogFile] = []
        # a stream that takes little of a backlog at a time comes back for what was listed
        while (file := self._listed.get(version + len(listed))) is not None and (last is None or file.version <= last):
            listed.append(file)
        if listed:
            return _Run(listed, more=True)
        file = self._by_name(version)
        if file is None:
            # one that is older than the newest was cleaned up, or is hidden
            return None if self._newest is not None and version <= self._newest else _Run()
        # a listing may cost far more than a look-up, and a stream that keeps up meets one commit at a time
        return _Run([file]) if version == last or self._by_name(version + 1) is None else None

    def _list_window(self, version: int, window: int) -> _LogWindow:
        """List from the version before, which shows whether this is still the same log."""
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
            if len(commits) > window:  # with the one before, so that a run of them fills the window
                break
        self._saw(newest)
        return _LogWindow(commits, newest)

    def _run_from(self, log_window: _LogWindow, version: int, last: int | None, window: int) -> _Run:
        """The commits from ``version`` on, including those that exist although the listing did not show them."""
        files: list[LogFile] = []
        at = version
        while last is None or at <= last:
            if len(files) == window or at in self._cache:
                return _Run(files, more=True)
            file = log_window.commits.get(at)
            if file is None:
                stale = bool(files) and files[-1].version > log_window.newest
                if at == version or at <= log_window.newest or stale or last is not None:
                    file = self._by_name(at)
            if file is None:
                gap = at <= log_window.newest
                return _Run(files, more=gap, gap=gap)
            files.append(file)
            at += 1
        return _Run(files)

    def _by_name(self, version: int) -> LogFile | None:
        try:
            file = commit_by_name(self._storage, self._root, version)
        except FileNotFoundInStorageError:
            return None
        self._saw(version)
        return file

    def _saw(self, version: int) -> None:
        if version >= 0 and (self._newest is None or version > self._newest):
            self._newest = version

    # --- reading

    def _read(self, run: _Run) -> Iterator[LoggedCommit]:
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
            raise self._another(file.version)
        commit = LoggedCommit(file.version, file, decode_commit(data, file.path))
        self._fingerprints.put(file.version, _Fingerprint(file, digest))
        self._cache.put(file.version, (commit, len(data)))
        return commit

    # --- whether it is still the same log

    def _check_unchanged(self, version: int, shown: LogFile | None, *, pin: bool = False) -> None:
        """Raise if the commit is not the one that was read; ``pin``: remember it, if it was not."""
        known = self._fingerprints.get(version)
        if version < 0 or (known is None and not pin):
            return
        file = shown or self._by_name(version)
        # one that was cleaned up can be compared no more
        if file is None or (known is None and file.size_bytes > _MAX_PINNED_BYTES):
            return
        if known is not None and _same_file(known.file, file):
            return
        # a file that was touched, copied or linked looks new and is not: the content decides
        try:
            [(_, data)] = fetch_commits(self._storage, [file])
        except MissingLogFilesError:
            return
        digest = _digest(data)
        if known is not None and known.digest != digest:
            raise self._another(version)
        self._fingerprints.put(file.version, _Fingerprint(file, digest))

    def _check_end(self, version: int, log_window: _LogWindow) -> None:
        """Raise if the log, which has no ``version``, ends even before the one before it."""
        if version == 0 or log_window.newest >= version - 1 or self._by_name(version - 1) is not None:
            return
        raise log_ends_before(self._storage, self._root, version - 1)

    def _disappeared(self, version: int, error: MissingLogFilesError) -> Exception:
        """The error for a commit that was listed and cannot be read any more."""
        self._next_check = float("-inf")
        log_window = self._list_window(version, _FIRST_WINDOW)
        if log_window.newest > version or (log_window.newest == version and version not in log_window.commits):
            return self._missing(version, log_window)
        self._check_end(version, log_window)
        return error

    def _missing(self, version: int, log_window: _LogWindow) -> MissingLogFilesError:
        # with a checkpoint alone, the next commit will be the one after it
        earliest = min((other for other in log_window.commits if other > version), default=log_window.newest + 1)
        path = commit_path(self._root, version)
        if version > 0 and self._by_name(version - 1) is not None:
            return MissingLogFilesError(
                f"The log of table {self._root!r} has a gap: the commit of version {version} is missing, although "
                f"those before it and version {log_window.newest} are there. What happened in it is not known, so the "
                f"stream cannot go on: restore {path!r}, or start the query with a new checkpoint location.",
                table=self._root,
                version=version,
                missing_version=version,
            )
        return MissingLogFilesError(
            f"The stream needs version {version} of table {self._root!r} next, and the earliest commit that its log "
            f"still has is that of version {earliest}: the log was cleaned up before the stream had read it. Restore "
            f"{path!r} and those that follow it; or start the query with a new checkpoint location, to read "
            "the whole table again; or set the option failOnDataLoss=false, to go on with version "
            f"{earliest} and lose what happened in between.",
            code="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
            table=self._root,
            version=version,
            earliest=earliest,
        )

    def _another(self, version: int) -> UserError:
        return UserError(
            f"Version {version} of table {self._root!r} is not the commit that the stream has read: another table was "
            "put in its place, or the log was written over. What was read and what comes next do not belong together. "
            "To read the table that there is now, start the query with a new checkpoint location.",
            code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=self._root,
            version=version,
        )


def log_ends_before(storage: Storage, table_root: str, version: int) -> UserError:
    """The error for a log that does not have a version which the stream has read, or planned to read."""
    text = (
        f"The log of table {table_root!r} ends before version {version}, and the stream has read that version already. "
    )
    if is_catalog_managed(storage):
        text += (
            "Its catalog gave an answer that lags behind, as a replica may: start the query again, from the same "
            "checkpoint, and it goes on where it was. If it stays so, the catalog or the table was restored from an "
            "older copy, and whoever keeps the catalog can tell."
        )
    else:
        text += (
            "The table was deleted and made again, or restored from an older copy. Restore the log; or start the "
            "query with a new checkpoint location, to read the table that there is now."
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
