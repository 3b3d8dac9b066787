"""Vacuum: deletes files that no retained version of a table needs.

    plan = plan_vacuum(storage, root, VacuumOptions(retention_hours=200))
    plan.files                                  # the files to delete, which a dry run returns
    result = run_vacuum(plan)

Invariants:

- A version that was the latest at some time within the retention stays complete.
- Only files that a listing found below the root, or that the log removed there, are deleted. No symbolic link is
  followed, and no file of another table below this one is deleted.
- Files younger than the retention stay, because a writer may not have committed them yet.
- The table is listed before its log is read, so that files committed in between are known. Before each deletion, later
  commits and new tables below this one are searched for again.
- All files that exist when the vacuum begins are synced to the disk before anything is deleted.

Protocol: "Add File and Remove File", "Vacuum Protocol Check".
"""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.catalog.managed import check_allowed
from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.commands.maintenance.listing import FoundFiles, files_of_inventory, hidden_names, list_old_files
from delta_pyds.commands.maintenance.needed_files import files_added_since, first_retained_version, needed_files
from delta_pyds.commands.maintenance.removed_files import present, read_last_vacuum, removed_files, write_last_vacuum
from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.errors import (
    DeltaError,
    FileNotFoundInStorageError,
    OptionError,
    StorageError,
    UserError,
)
from delta_pyds.html_table import ShownAsTable
from delta_pyds.progress import step
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction

logger = safe_logger(__name__)

_HOUR_MS = 3_600_000
# less than any retention that protects writers
_HARMLESS_SKEW_MS = _HOUR_MS
_TOO_LONG_MS = 2**62
_THREADS = 16
_LOCAL_THREADS = 4
# at most this many files are deleted between two checks for new commits
_DELETED_AT_ONCE = 5_000
# the number of files that every store can delete in one request
_IN_ONE_REQUEST = 100
_ATTEMPTS_TO_LOG = 3
# the reference writes no entries to these stores, whose listings were once inconsistent
_UNLOGGED = ("s3", "s3a", "s3n", "gs", "gcs")


@dataclass(frozen=True)
class VacuumOptions:
    """The options of a vacuum.

    ``retention_hours``: None for the table's own. ``check_retention``: refuse less than the table's own. ``lite``:
    delete only files that the log removed, without a listing. ``inventory``: a listing from the user, used instead of
    both. ``log_entries``: write START and END into the log; None writes them as the reference does.
    """

    retention_hours: float | None = None
    check_retention: bool = True
    lite: bool = False
    inventory: Iterable[pa.RecordBatch] | None = None
    log_entries: bool | None = None
    user_metadata: str | None = None
    threads: int | None = None


@dataclass(frozen=True)
class VacuumPlan:
    """The files to delete. ``files``: ``path`` relative to the root, and ``size``. Times and durations are in ms.

    ``first_version``: the first version that stays complete. ``version``: the latest one when it was planned.
    ``num_directories``: listed directories, with the root. ``done_version``: the next lite vacuum begins after it; None
    for a full vacuum.
    """

    storage: Storage
    table_root: str
    options: VacuumOptions
    version: int
    table_id: str
    first_version: int
    cutoff_ms: int
    table_retention_ms: int
    files: pa.Table
    empty_directories: tuple[str, ...]
    num_directories: int
    done_version: int | None

    @property
    def size_bytes(self) -> int:
        return exact_sum(self.files.column("size"))

    @property
    def paths(self) -> pa.ChunkedArray:
        """Whole paths of all that will be deleted, directories too."""
        relative = pa.chunked_array([*self.files.column("path").chunks, pa.array(self.empty_directories, pa.string())])
        return pc.binary_join_element_wise(self.table_root.rstrip("/"), relative, "/")


@dataclass(frozen=True)
class VacuumResult(ShownAsTable):
    """``version``: the version of the last log entry; None without entries."""

    num_deleted_files: int
    num_deleted_directories: int
    deleted_bytes: int
    num_directories: int
    version: int | None

    def __str__(self) -> str:
        return (
            f"deleted {self.num_deleted_files} files of {self.deleted_bytes} bytes in all and "
            f"{self.num_deleted_directories} empty directories, in {self.num_directories} directories"
        )


def plan_vacuum(storage: Storage, table_root: str, options: VacuumOptions, *, now_ms: int | None = None) -> VacuumPlan:
    """Find the files to delete. Nothing is changed.

    Raises: OptionError for a retention that is invalid, or too short (DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT); errors
        of opening and listing the table; UnsupportedOperationError (DELTA_CANNOT_VACUUM_LITE).
    """
    check_allowed(storage, "VACUUM START")
    before = open_snapshot(storage, table_root)
    before.configuration.check_writable()
    table_retention_ms = before.configuration.properties.deleted_file_retention_ms
    retention_ms = _retention_ms(options, table_retention_ms, table_root)
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    cutoff_ms = max(now_ms - retention_ms, 0)
    is_hidden = hidden_names(before.configuration)
    found = FoundFiles()
    if options.inventory is not None:
        found = files_of_inventory(options.inventory, table_root, before_ms=cutoff_ms, is_hidden=is_hidden)
    elif not options.lite:
        with step("listing", table_root, unit="directories", log=logger):
            found = list_old_files(
                storage, table_root, before_ms=cutoff_ms, is_hidden=is_hidden, threads=_threads(storage, options)
            )
    # read after the listing: all listed files that were committed are known now
    listed = "while it was listed, so nothing was deleted. Run vacuum again."
    snapshot = _open_same_table(storage, table_root, before.metadata.id, before.version, listed)
    first = first_retained_version(snapshot, cutoff_ms)
    files, done_version = found.table, None
    if options.lite and options.inventory is None:
        removed = removed_files(snapshot, first, is_hidden, cutoff_ms=cutoff_ms, now_ms=now_ms)
        files, done_version = removed.files, removed.done_version
    if files.num_rows:
        files = needed_files(snapshot, cutoff_ms, first).without(files)
    if files.num_rows and (options.lite or options.inventory is not None):
        # a full listing does not enter other tables
        files = _without_other_tables(storage, table_root, files, _threads(storage, options))
    if files.num_rows and options.lite and options.inventory is None:
        # an earlier vacuum may have deleted some of these files
        files = present(storage, table_root, files, _threads(storage, options))
    return VacuumPlan(
        storage,
        table_root,
        options,
        snapshot.version,
        snapshot.metadata.id,
        first,
        cutoff_ms,
        table_retention_ms,
        files,
        tuple(found.empty_directories),
        found.num_directories + 1,
        done_version,
    )


def run_vacuum(plan: VacuumPlan) -> VacuumResult:
    """Delete the planned files that are still not needed, with an entry in the log before and one after.

    Raises: StorageError for a read-only store, and if files could not be deleted (the others are deleted, and the END
        entry has the status FAILED); UserError (DELTA_TABLE_ID_MISMATCH) if another table is at the path now, even
        if it was created during the deletion; UserError if our clock is far ahead of the store's.
    """
    plan.storage.require_put_if_absent(plan.table_root)
    # Existing files may be from another engine, which does not sync them. One call is enough for a table of any size,
    # and our later files are synced when they are written. The first entry must come after it.
    plan.storage.make_all_durable([plan.table_root, log_directory(plan.table_root)])
    _check_store_clock(plan.storage, plan.table_root, plan.cutoff_ms)
    logs = plan.options.log_entries
    if logs is None:
        logs = plan.storage.scheme not in _UNLOGGED
    version = _log_entry(plan, _start(plan)) if logs else None
    work = _Deletion(plan)
    try:
        work.run()
    except BaseException:
        if logs:
            _log_failure(plan, work)
        raise
    # as in the reference, only a lite vacuum records its progress
    if plan.done_version is not None:
        _note_progress(plan, plan.done_version)
    if logs:
        version = _log_entry(plan, _end(plan, work, "COMPLETED"))
    result = VacuumResult(work.files, work.directories, work.bytes, plan.num_directories, version)
    logger.info("Vacuum of table %s %s.", plan.table_root, result)
    return result


class _Deletion:
    """Deletes in pieces, and counts."""

    def __init__(self, plan: VacuumPlan) -> None:
        self.plan = plan
        self.files = self.directories = self.bytes = 0
        self._failures: list[StorageError] = []
        self._version = plan.version

    def run(self) -> None:
        """Delete the files. Raises: StorageError with the first of the errors, after all deletions were tried."""
        plan = self.plan
        with (
            step("deletion of files", plan.table_root, total=plan.files.num_rows, log=logger) as advance,
            ThreadPoolExecutor(_threads(plan.storage, plan.options), thread_name_prefix="deltapy-delete") as pool,
        ):
            for start in range(0, plan.files.num_rows, _DELETED_AT_ONCE):
                files = self._still_unneeded(plan.files.slice(start, _DELETED_AT_ONCE))
                sizes = dict(zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True))
                for tried, gone in pool.map(self._delete, _pieces(list(sizes), plan.storage)):
                    advance(tried)
                    self.files += len(gone)
                    self.bytes += sum(sizes[path] or 0 for path in gone)
        for directory in plan.empty_directories:
            self.directories += self._delete_directory(directory)
        if self._failures:
            error = self._failures[0]
            raise StorageError(
                f"the vacuum of table {plan.table_root} deleted {self.files} files, but {len(self._failures)} could "
                f"not be deleted. The first error: {error.message} Run vacuum again.",
                table=plan.table_root,
            ) from error

    def _still_unneeded(self, files: pa.Table) -> pa.Table:
        """The files that still no version needs, and that belong to no other table.

        A commit since the plan, such as a restore, may need some again. Another table may have been created below
        this one. Raises: UserError (DELTA_TABLE_ID_MISMATCH) if another table has replaced this one.
        """
        storage, root = self.plan.storage, self.plan.table_root
        _open_same_table(storage, root, self.plan.table_id, self._version)
        added, self._version = files_added_since(storage, root, self._version)
        return _without_other_tables(storage, root, added.without(files), _threads(storage, self.plan.options))

    def _delete(self, paths: Sequence[str]) -> tuple[int, list[str]]:
        """Delete files. Returns: the number of tried files, and the deleted ones."""
        storage, root = self.plan.storage, self.plan.table_root
        failed = storage.delete_all([join(root, path) for path in paths], below=root)
        gone = [path for path in paths if join(root, path) not in failed]
        if storage.scheme == "file":
            # Hadoop's checksums of the deleted files
            checksums = [
                f"{directory}{slash}.{name}.crc" for directory, slash, name in (p.rpartition("/") for p in gone)
            ]
            failed |= storage.delete_all([join(root, path) for path in checksums], below=root)
        self._failures += failed.values()
        return len(paths), gone

    def _delete_directory(self, path: str) -> bool:
        try:
            return self.plan.storage.delete_empty_directory(
                join(self.plan.table_root, path), below=self.plan.table_root
            )
        except StorageError as e:
            self._failures.append(e)
            return False


def _pieces(paths: list[str], storage: Storage) -> Iterator[list[str]]:
    """The paths that one thread deletes at once."""
    length = 1 if storage.scheme == "file" else _IN_ONE_REQUEST
    return (paths[start : start + length] for start in range(0, len(paths), length))


def _retention_ms(options: VacuumOptions, table_ms: int, table_root: str) -> int:
    hours = options.retention_hours
    if hours is None:
        return table_ms
    if not math.isfinite(hours) or hours < 0:
        raise OptionError(
            f"the retention is {hours} hours, but must be a number of 0 or more.",
            code="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
            option="retentionHours",
        )
    if hours * _HOUR_MS >= _TOO_LONG_MS:
        raise OptionError(
            f"the retention of {hours:g} hours begins before the year 1970. Give fewer hours.",
            option="retentionHours",
        )
    given_ms = int(hours * _HOUR_MS)
    if options.check_retention and given_ms < table_ms:
        raise OptionError(
            f"a vacuum of table {table_root} with a retention of {hours:g} hours may delete files that active readers "
            f"and writers still need: the table keeps removed files for {table_ms / _HOUR_MS:g} hours "
            "(delta.deletedFileRetentionDuration). If no writer, reader or stream uses the table, set "
            "spark.databricks.delta.retentionDurationCheck.enabled=false for the session (in the command deltapy: "
            "--unsafe-retention); else give more hours.",
            code="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            table=table_root,
        )
    return given_ms


def _threads(storage: Storage, options: VacuumOptions) -> int:
    return options.threads or (_LOCAL_THREADS if storage.scheme == "file" else _THREADS)


def _open_same_table(
    storage: Storage, root: str, table_id: str, version: int, when: str = "while vacuum ran, so vacuum stopped."
) -> Snapshot:
    """The latest version of the table, which was at ``version`` before.

    Raises: UserError (DELTA_TABLE_ID_MISMATCH) for another table.
    """
    snapshot = open_snapshot(storage, root)
    if snapshot.metadata.id != table_id or snapshot.version < version:
        raise UserError(
            f"the table at {root} was replaced by another one {when}", code="DELTA_TABLE_ID_MISMATCH", table=root
        )
    return snapshot


def _note_progress(plan: VacuumPlan, done_version: int) -> None:
    """Record the progress for the next lite vacuum. Without the record, that one only takes longer."""
    noted = read_last_vacuum(plan.storage, plan.table_root, plan.version)
    if done_version >= 0 and (noted is None or noted < done_version):
        try:
            write_last_vacuum(plan.storage, plan.table_root, done_version)
        except StorageError as e:
            logger.warning("The progress of the vacuum of table %s was not recorded: %s", plan.table_root, e)


# --- the entries in the log


def _start(plan: VacuumPlan) -> Operation:
    parameters: dict[str, object] = {
        "retentionCheckEnabled": plan.options.check_retention,
        "defaultRetentionMillis": plan.table_retention_ms,
    }
    if plan.options.retention_hours is not None:
        parameters["specifiedRetentionMillis"] = int(plan.options.retention_hours * _HOUR_MS)
    number = plan.files.num_rows + len(plan.empty_directories)
    return Operation("VACUUM START", parameters, {"numFilesToDelete": number, "sizeOfDataToDelete": plan.size_bytes})


def _end(plan: VacuumPlan, work: _Deletion, status: str) -> Operation:
    metrics = {"numDeletedFiles": work.files + work.directories, "numVacuumedDirectories": plan.num_directories}
    return Operation("VACUUM END", {"status": status}, metrics)


def _log_entry(plan: VacuumPlan, operation: Operation) -> int:
    """Commit a version that changes nothing. Returns: its number."""

    def once() -> int:
        transaction = Transaction(_open_same_table(plan.storage, plan.table_root, plan.table_id, plan.version))
        return transaction.commit(operation, user_metadata=plan.options.user_metadata).version

    return run_again(_ATTEMPTS_TO_LOG, once)


def _log_failure(plan: VacuumPlan, work: _Deletion) -> None:
    try:
        _log_entry(plan, _end(plan, work, "FAILED"))
    except DeltaError as e:
        logger.warning("The failure of the vacuum of table %s could not be recorded in its log: %s", plan.table_root, e)


def _without_other_tables(storage: Storage, table_root: str, files: pa.Table, threads: int) -> pa.Table:
    """The files that do not belong to another table below the root; one request for each directory.

    A directory with a ``_delta_log`` in it, and everything below, belongs to another table. The store is asked, because
    a log or a user's inventory may not show other tables. ``path`` is relative to the root.

    Raises: StorageError for a directory that cannot be checked.
    """
    of_file = pc.replace_substring_regex(files.column("path"), pattern=r"/?[^/]*$", replacement="")
    directories = [path for path in pc.unique(of_file).to_pylist() if path]
    asked = sorted({above for directory in directories for above in _with_those_above(directory)})

    def is_table(directory: str) -> bool:
        return _has_log(storage, join(table_root, directory))

    with ThreadPoolExecutor(threads, thread_name_prefix="deltapy-look") as pool:
        tables = {directory for directory, found in zip(asked, pool.map(is_table, asked), strict=True) if found}
    theirs = [directory for directory in directories if not tables.isdisjoint(_with_those_above(directory))]
    if not theirs:
        return files
    return files.filter(pc.invert(pc.is_in(of_file, value_set=pa.array(theirs, pa.string()))))


def _with_those_above(directory: str) -> list[str]:
    parts = directory.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]


def _has_log(storage: Storage, directory: str) -> bool:
    """Whether the directory has a log. An empty one counts: on a disk, a writer may be creating a table there."""
    try:
        storage.list_from(log_directory(directory), "")
    except FileNotFoundInStorageError:
        return False
    return True


def _check_store_clock(storage: Storage, table_root: str, cutoff_ms: int) -> None:
    """Compare the store's clock with this machine's, before files older than ``cutoff_ms`` are deleted.

    The store dates files, and a vacuum computes their age. If the age is too high, it might delete files that a writer
    has not committed yet. A temporary file in the store tells its clock.

    Raises: UserError if this machine's clock is more than an hour ahead; StorageError.
    """
    now_ms = int(time.time() * 1000)
    if storage.scheme == "file" or cutoff_ms >= now_ms - _HARMLESS_SKEW_MS:
        return  # there is only one clock, or files of any age may be deleted
    path = join(log_directory(table_root), f".{uuid.uuid4().hex}.tmp")  # the log's clean-up deletes these names
    storage.put(path, b"")
    try:
        ahead_ms = now_ms - storage.status(path).modification_time_ms
    finally:
        with contextlib.suppress(StorageError):
            storage.delete(path, below=table_root)
    if ahead_ms > _HARMLESS_SKEW_MS:
        raise UserError(
            f"nothing of table {table_root} was deleted: the clock of this machine is {ahead_ms / _HOUR_MS:.1f} hours "
            "ahead of the store's, so files of active writers would look old. Correct this machine's clock.",
            table=table_root,
        )
