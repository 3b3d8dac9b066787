"""The end of every command whose tasks write files: one version of the table names them, or they are deleted.

    with commit_or_discard(table_root, storage_options, outputs) as end:
        transaction = Transaction(snapshot)
        changes.put_into(transaction)
        committed = end.commit(transaction, operation)

Invariant: files are deleted only if it is certain that no commit names them. Commands whose tasks write no file
(convert, clone, restore, a change of the definition) have nothing to delete, and call ``Transaction.commit``.

Protocol: "Add File and Remove File", "Deletion Vectors", "Add CDC File".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec

from delta_pyds.catalog.opening import committer_of, table_storage
from delta_pyds.errors import (
    CommitOutcomeUnknownError,
    DeltaError,
    FileNotFoundInStorageError,
    TableNotFoundError,
    UserError,
)
from delta_pyds.log.segment import LogSegment
from delta_pyds.protocol.actions import AddCDCFile, AddFile, Metadata, Protocol, RemoveFile, SingleAction
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.paths import join, resolve_data_path
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.definition.identity import furthest_marks, with_high_water_marks
from delta_pyds.table.scan.live_files import removal
from delta_pyds.table.snapshot import Snapshot, open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.log_continuity import replaced_meanwhile
from delta_pyds.table.transaction.mend import Mend, MendedChanges, NetChanges, NothingToCommitError, NotRepeatableError
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.table.transaction.transaction import CommitPolicy, Committed, Transaction
from delta_pyds.tasks.write_state import TaskOutput, WrittenFile

logger = safe_logger(__name__)

# A shared file system takes a millisecond to find a file, and finds several at a time.
_CHECK_THREADS = 16
_FEWEST_PER_THREAD = 8


@dataclass(frozen=True)
class MarkedFile:
    """A file of the table with deleted rows. ``vector``: marks all its deleted rows, the earlier ones too.

    ``num_records``: all rows of the file.
    """

    file: AddFile
    vector: DeletionVectorDescriptor
    num_records: int


@dataclass
class FileChanges:
    """The changes of one command to the files of a table.

    ``written``: new files with new rows. ``rewritten``: new files with rows that were in the table before. ``marked``:
    files of the table with another deletion vector, whose earlier state is in ``removes``. ``vectors``: those of new
    files, by path.
    ``deleted_rows``: None if the log does not have the number of rows of a removed file.
    """

    written: list[WrittenFile] = field(default_factory=list)
    rewritten: list[WrittenFile] = field(default_factory=list)
    marked: list[AddFile] = field(default_factory=list)
    vectors: dict[str, DeletionVectorDescriptor] = field(default_factory=dict)
    removes: list[RemoveFile] = field(default_factory=list)
    change_files: list[AddCDCFile] = field(default_factory=list)
    deleted_rows: int | None = 0
    copied_rows: int = 0

    def take(self, outputs: Sequence[TaskOutput], files: Sequence[AddFile], *, now_ms: int) -> None:
        """Add the files of these tasks. ``files``: the input of the tasks; outputs name files by their index in it."""
        for output in outputs:
            (self.rewritten if output.copied_rows else self.written).extend(output.files)
            self.copied_rows += output.copied_rows
            self.change_files += [_change_file(file) for file in output.change_files]
            self.remove((files[one.number] for one in output.replaced), now_ms=now_ms)

    def remove(self, files: Iterable[AddFile], *, now_ms: int) -> None:
        """Remove files from the table, or their deletion vectors (see ``mark``)."""
        self.removes += [removal(file, deletion_timestamp_ms=now_ms, data_change=True) for file in files]

    def mark(self, marked: MarkedFile) -> None:
        """Add a removed file again, with another deletion vector."""
        self.marked.append(_marked(marked))

    def adds(self, *, data_change: bool = True) -> list[AddFile]:
        """The new files of the table."""
        return [self._new(file, data_change) for file in (*self.written, *self.rewritten)] + self.marked

    def _new(self, file: WrittenFile, data_change: bool) -> AddFile:
        add, vector = _add(file, data_change), self.vectors.get(file.path)
        return add if vector is None else _marked(MarkedFile(add, vector, file.num_records), data_change)

    def put_into(self, transaction: Transaction, *, data_change: bool = True) -> None:
        """Record all changes in the transaction that commits them.

        Raises: as ``require_visible``.
        """
        self.require_visible(transaction)
        transaction.add(self.adds(data_change=data_change))
        transaction.remove(self.removes)
        transaction.add_change_file(self.change_files)

    def require_visible(self, table: Transaction | Snapshot) -> None:
        """Check that tasks wrote the files to the file system of this process. Raises: as ``require_visible``."""
        paths = [file.path for files in (self.written, self.rewritten, self.change_files) for file in files]
        require_visible(table.storage, table.table_root, paths)

    def __bool__(self) -> bool:
        return bool(self.written or self.rewritten or self.marked or self.removes)


def metadata_with_identities(
    new: Metadata | None, current: Metadata, schema: StructType, outputs: Sequence[TaskOutput]
) -> Metadata | None:
    """The metadata that a command commits: its own, with the identity values that its tasks assigned.

    ``current``: the table's, or ``new``. Returns: None if the metadata does not change.
    """
    after = with_high_water_marks(current, furthest_marks([output.identity_marks for output in outputs], schema))
    return new if after is current else after


def live_rows(files: Iterable[AddFile]) -> int | None:
    """The number of live rows in whole files, by the log; None if the log does not have it."""
    total = 0
    for file in files:
        count = row_counts(file.stats).num_records
        if count is None:
            return None
        total += count - (0 if file.deletion_vector is None else file.deletion_vector.cardinality)
    return total


def require_visible(storage: Storage, table_root: str, paths: Iterable[str]) -> None:
    """Check that tasks wrote to the file system of this process: on another machine a path may mean another directory.

    ``paths``: the new files, as the log names them. Raises: UserError for a missing file.
    """
    if storage.scheme != "file":
        return

    def missing(some: Sequence[str]) -> str | None:
        return next((path for path in some if not storage.exists(resolve_data_path(table_root, path))), None)

    written = list(paths)
    threads = max(1, min(_CHECK_THREADS, len(written) // _FEWEST_PER_THREAD))
    if threads == 1:
        path = missing(written)
    else:
        with ThreadPoolExecutor(threads, thread_name_prefix="deltapy-check") as pool:
            found = list(pool.map(missing, [written[number::threads] for number in range(threads)]))
        path = next((path for path in found if path is not None), None)
    if path is not None:
        raise UserError(
            f"a task wrote the file {path!r} of the table {table_root}, but the driver's machine does not have it: on "
            "the task's machine the path is another directory. Nothing was committed. "
            "Put the table in a place that all machines see under one path, such as a store or a shared file system.",
            table=table_root,
            path=path,
        )


def reopen(
    storage: Storage,
    table_root: str,
    version: int | None,
    table_id: str,
    segment: LogSegment | None,
    known: tuple[Protocol, Metadata] | None = None,
) -> Snapshot | None:
    """Open the version that a command was planned from; None for a table that it creates.

    ``segment``: the log files of that version, so that nothing is listed. ``known``: its protocol and metadata, for
    callers that need nothing else. The transaction then checks that the log is still the same.

    Raises: UserError (DELTA_TABLE_ID_MISMATCH) if another table is at the path now.
    """
    if version is None:
        return None
    if known is not None and segment is not None and segment.last_commit is not None and segment.last_commit.generation:
        return Snapshot(storage, segment, known)
    try:
        snapshot = open_snapshot(storage, table_root, version, segment)
    except DeltaError:
        # log files may have been deleted since the plan was made; others may define the same version
        snapshot = open_snapshot(storage, table_root, version)
    if snapshot.metadata.id != table_id:
        raise replaced_meanwhile(snapshot.table_root)
    return snapshot


class CommandEnd:
    """The commit of one command, and the files of its tasks. See ``commit_or_discard``.

    ``may_be_named``: a commit was tried, and may be in the log.
    """

    def __init__(self, outputs: Sequence[TaskOutput | None]) -> None:
        self.may_be_named = False
        self._outputs = [outputs]

    @property
    def outputs(self) -> list[TaskOutput]:
        """The outputs of all tasks of the command."""
        return [output for some in self._outputs for output in some if output is not None]

    def add(self, outputs: Sequence[TaskOutput]) -> None:
        """Add the outputs of further tasks. The list may still grow."""
        self._outputs.append(outputs)

    def commit(
        self,
        transaction: Transaction,
        operation: Operation,
        *,
        user_metadata: str | None = None,
        isolation_level: str | None = None,
        tags: Mapping[str, str] | None = None,
        policy: CommitPolicy | None = None,
        mend: Mend | None = None,
    ) -> Committed:
        """Commit the transaction. Raises: as ``Transaction.commit``."""
        # an interrupt may come when the commit is in the log
        self.may_be_named = True

        def mend_unnamed(net: NetChanges) -> MendedChanges | None:
            # each commit that was tried is certainly not in the log
            assert mend is not None
            self.may_be_named = False
            try:
                mended = mend(net)
            except (FileNotFoundInStorageError, NotRepeatableError):
                # a vacuum may have deleted a file that a winner replaced, so its rows cannot be read again
                return None
            self.may_be_named = True
            return mended

        try:
            return transaction.commit(
                operation,
                user_metadata=user_metadata,
                isolation_level=isolation_level,
                tags=tags,
                policy=policy,
                mend=None if mend is None else mend_unnamed,
            )
        except CommitOutcomeUnknownError:
            raise
        except (DeltaError, NothingToCommitError):
            self.may_be_named = False
            raise


@contextlib.contextmanager
def commit_or_discard(
    table_root: str,
    storage_options: Mapping[str, Any],
    outputs: Sequence[TaskOutput | None] = (),
    *,
    repeated_after: int | None = None,
) -> Iterator[CommandEnd]:
    """End a command: after the block, either a commit names the files of ``outputs``, or they are deleted.

    The files are deleted if the block fails before its commit, if the commit fails, or if the block commits nothing.
    They stay if the outcome of the commit is unknown. Vacuum deletes files that cannot be deleted now.

    ``repeated_after``: set if Spark may ask for the same commit twice: the version of the plan, -1 for a new table. A
    commit after it may name the files already. So after an error they stay, unless the log shows that none does.
    """
    end = CommandEnd(outputs)
    try:
        yield end
    except BaseException as error:
        if not end.may_be_named:
            if repeated_after is None:
                discard_files(table_root, storage_options, end.outputs)
            else:
                discard_unnamed(table_root, storage_options, end.outputs, after_version=repeated_after, error=error)
        raise
    if not end.may_be_named:
        discard_files(table_root, storage_options, end.outputs)


def discard_files(table_root: str, storage_options: Mapping[str, Any], outputs: Sequence[TaskOutput | None]) -> None:
    """Delete the files of tasks that no commit names or will name; vacuum deletes what remains."""
    made = _files_of(table_root, outputs)
    if not made:
        return
    storage = table_storage(table_root, storage_options)
    for path in sorted(made):
        with contextlib.suppress(DeltaError):
            # as ``delete`` requires, the tasks of this command have named and written the file
            storage.delete(path, below=table_root)


def discard_unnamed(
    table_root: str,
    storage_options: Mapping[str, Any],
    outputs: Sequence[TaskOutput | None],
    *,
    after_version: int,
    error: BaseException,
) -> None:
    """``discard_files``, but only if no commit after ``after_version`` names any of them.

    ``error``: the commit's error. The version that a conflict names is in the log, even if a listing does not show it.
    """
    made = _files_of(table_root, outputs)
    if not made:
        return
    version = error.parameters.get("version") if isinstance(error, DeltaError) else None
    known = version if isinstance(version, int) and version > after_version else None
    try:
        storage = table_storage(table_root, storage_options)
        commits = committer_of(storage, table_root).commits_after(after_version, known_version=known)
        named = {path for commit in commits for action in commit.actions for path in _named_by(table_root, action)}
    except (FileNotFoundInStorageError, TableNotFoundError):
        named = set()  # there is no log
    except DeltaError as unreadable:
        logger.warning(
            "Files of a write to %s remain until vacuum, because it is unknown whether a commit names them: %s",
            table_root,
            unreadable,
        )
        return
    if not named & made:
        discard_files(table_root, storage_options, outputs)


def _files_of(table_root: str, outputs: Sequence[TaskOutput | None]) -> set[str]:
    """The paths of all files that tasks wrote."""
    made: set[str] = set()
    for output in outputs:
        if output is not None:
            made.update(resolve_data_path(table_root, file.path) for file in output.written)
            made.update(_vector_path(table_root, vector) for vector in output.vectors if vector.storage_type == "u")
    return made


def _named_by(table_root: str, action: SingleAction) -> Iterator[str]:
    """The paths of the files that an action puts into the table."""
    for file in (action.add, action.cdc):
        if file is not None:
            yield resolve_data_path(table_root, file.path)
    vector = action.add.deletion_vector if action.add is not None else None
    if vector is not None and vector.storage_type == "u":
        yield _vector_path(table_root, vector)


def _vector_path(table_root: str, vector: DeletionVectorDescriptor) -> str:
    return join(table_root, vector.relative_path())


def _add(file: WrittenFile, data_change: bool) -> AddFile:
    return AddFile(
        path=file.path,
        partition_values=dict(file.partition_values),
        size=file.size_bytes,
        modification_time=file.modification_time_ms,
        data_change=data_change,
        stats=file.statistics,
    )


def _change_file(file: WrittenFile) -> AddCDCFile:
    return AddCDCFile(
        path=file.path, partition_values=dict(file.partition_values), size=file.size_bytes, data_change=False
    )


def _marked(marked: MarkedFile, data_change: bool = True) -> AddFile:
    return msgspec.structs.replace(
        marked.file,
        deletion_vector=marked.vector,
        data_change=data_change,
        stats=_wide_statistics(marked.file.stats, marked.num_records),
    )


def _wide_statistics(statistics: str | None, num_records: int) -> str:
    """The same statistics, no longer tight. Protocol: "Per-file Statistics"."""
    # raw: a decimal that was converted to a float and back would not be the same bound
    try:
        known = decode_json(statistics, dict[str, msgspec.Raw]) if statistics else {}
    except InvalidJSONError:
        known = {}  # there were no statistics before
    known["numRecords"] = msgspec.Raw(str(num_records).encode())
    known["tightBounds"] = msgspec.Raw(b"false")
    return msgspec.json.encode(known).decode()
