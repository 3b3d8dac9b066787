"""A planned command: options, files, state of its tasks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, overload

import pyarrow as pa

from delta_pyds.catalog.opening import task_options
from delta_pyds.columnar.path_keys import convert_odd_paths
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.log.file_table import files_to_batch
from delta_pyds.protocol.actions import AddFile, Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.paths import NON_CANONICAL_PATH, resolve_data_path
from delta_pyds.redaction import Concealing
from delta_pyds.storage.resolve import normalize_table_root
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.definition.write_state import write_state
from delta_pyds.table.scan.live_files import LiveFiles
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.scan_state import RowIdColumns, ScanState
from delta_pyds.tasks.write_state import Check, ColumnSource, WriteState

CommandKind = Literal["DELETE", "UPDATE", "MERGE", "TRUNCATE"]

# larger than in a query, which should return its first rows soon; each batch has a fixed cost
BATCH_ROWS = 1 << 18


@dataclass(frozen=True, repr=False)
class CommandOptions(Concealing):
    """The options of any command that changes rows.

    ``time_zone``, ``ansi``: the session's. ``isolation_level``, ``target_file_bytes``: None for the table's own.
    ``max_runs``: how often the command runs at most, if each run conflicts with another commit.
    ``application``: id and version of an idempotent command (see ``is_done``). ``now_micros``: the value of
    ``current_timestamp()`` in all expressions of the command, in microseconds since 1970. ``row_level_concurrency``:
    after a lost race, the command is decided again on the rows that the winners changed (see ``mend``). The table's
    property ``deltapy.rowLevelConcurrency`` can turn it off too. ``reads_table``: whether a merge's source or a
    subquery reads the table; None if that is unknown. The command then depends on rows that it does not change.
    ``reads_where``: as in ``WriteRequest``.
    """

    storage_options: Mapping[str, Any] = field(default_factory=dict)
    time_zone: str = "UTC"
    ansi: bool = True
    isolation_level: str | None = None
    user_metadata: str | None = None
    max_runs: int = 1
    row_level_concurrency: bool = True
    reads_table: bool | None = False
    reads_where: str | None = None
    application: tuple[str, int] | None = None
    target_file_bytes: int | None = None
    max_records_per_file: int = 0
    compression: str = "snappy"
    now_micros: int = field(default_factory=lambda: time.time_ns() // 1000)


@dataclass(frozen=True, repr=False)
class TargetFiles(Concealing):
    """The files that a command may change.

    ``files``: have all fields of their ``add``; a file's number is its index here. ``scan``: reads all columns of the
    table, with row ids if the table tracks rows, and without a predicate. ``names``: maps a file's name in Spark
    (see ``file_names``) to its number; None if tasks name files by their numbers. ``version``: of the
    last winner, after a lost race; None if the files are those of the snapshot.
    """

    snapshot: Snapshot
    files: Sequence[AddFile]
    scan: ScanState
    names: Mapping[str, int] | None = None
    version: int | None = None

    def number_of(self, file: int | str) -> int:
        """The number of a file by its number or name. Raises: DeltaError for any other file."""
        number = file if isinstance(file, int) else (self.names or {}).get(file)
        if number is None or not 0 <= number < len(self.files):
            raise DeltaError(
                f"a task returned rows of the file {file!r}, but the command does not read that file of the table "
                f"{self.snapshot.table_root}. Nothing was committed.",
                table=self.snapshot.table_root,
                file=str(file),
            )
        return number

    @property
    def row_id_columns(self) -> RowIdColumns | None:
        """The columns that keep a moved row's id and commit version; None if the table does not track rows."""
        return self.scan.row_ids

    @cached_property
    def paths(self) -> frozenset[str]:
        """The paths of the files, as they are in the log."""
        return frozenset(self.values("path"))

    def values(self, column: str) -> list[Any]:
        """The values of a column of ``FILE_COLUMNS``. No action is made for files that are Arrow rows."""
        if isinstance(self.files, _LaterFiles):
            return self.files.values(column)
        return _values(self.files, column)


def _values(files: Sequence[AddFile], column: str) -> list[Any]:
    rows = files.rows if isinstance(files, LiveFiles) else files_to_batch(files, (column,))
    values: list[Any] = rows.column(column).to_pylist()
    return values


class _LaterFiles(Sequence[AddFile]):
    """The files of a command at a later version: some have other entries, and some are new.

    ``first``: those that the command planned, which may be Arrow rows. ``later``: other entries by number.
    """

    def __init__(self, first: Sequence[AddFile], later: Mapping[int, AddFile]) -> None:
        self.first, self.later = first, later
        self._count = max(len(first), *(number + 1 for number in later)) if later else len(first)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> AddFile: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[AddFile]: ...
    def __getitem__(self, number: int | slice) -> AddFile | Sequence[AddFile]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        found = self.later.get(number)
        return self.first[number] if found is None else found

    def values(self, column: str) -> list[Any]:
        """See ``TargetFiles.values``."""
        values = _values(self.first, column) + [None] * (len(self) - len(self.first))
        for number, value in zip(self.later, _values(list(self.later.values()), column), strict=True):
            values[number] = value
        return values


@dataclass(frozen=True, repr=False)
class RowChangePlan(Concealing):
    """A planned command.

    ``state``: the state of the tasks that took changed rows. ``parameters``: ``commitInfo.operationParameters``.
    ``read``: a bound predicate; every row that affects the result satisfies it; TRUE if unknown. Other commits may not
    change rows that satisfy its part over partition columns. ``metadata``, ``protocol``: new ones, if the command
    changes the schema. ``whole_files``: all files are removed, unread.
    """

    kind: CommandKind
    target: TargetFiles
    state: ChangeState
    options: CommandOptions
    parameters: Mapping[str, Any] = field(default_factory=dict)
    read: Expr = TRUE
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    whole_files: bool = False


def mends_races(snapshot: Snapshot, options: CommandOptions) -> bool:
    """Whether a command is mended after a lost race."""
    return options.row_level_concurrency and snapshot.configuration.properties.row_level_concurrency


def is_done(snapshot: Snapshot, options: CommandOptions) -> bool:
    """Whether the table already has a command of that application with that version or a later one.

    Protocol: "Transaction Identifiers".
    """
    if options.application is None:
        return False
    app_id, version = options.application
    stored = snapshot.transactions.get(app_id)
    return stored is not None and stored.version >= version


def check_may_change(snapshot: Snapshot, kind: CommandKind) -> None:
    """Refuse a command before it reads anything, if its commit would be refused.

    Raises: UnsupportedFeatureError for a table that we cannot write; UserError (DELTA_CANNOT_MODIFY_APPEND_ONLY),
        except for a merge that only inserts; StorageError for a store without put-if-absent.
    """
    configuration = snapshot.configuration
    configuration.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)
    if configuration.properties.append_only and kind != "MERGE":
        done = "updated" if kind == "UPDATE" else "deleted"
        raise UserError(
            f"the table {snapshot.table_root} is append-only (delta.appendOnly=true): its rows cannot be {done}. "
            "Set the property to false first.",
            code="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            table=snapshot.table_root,
        )


def scan_of(snapshot: Snapshot, options: CommandOptions, conditions: Sequence[Expr] = ()) -> Scan:
    """A scan of all columns. The conditions skip files and row groups, and filter no rows."""
    return plan_scan(snapshot, pushed=conditions, storage_options=options.storage_options, time_zone=options.time_zone)


def target_files(
    snapshot: Snapshot, files: Sequence[AddFile], options: CommandOptions, names: Mapping[str, int] | None = None
) -> TargetFiles:
    """The files of a command. ``files``: have all fields of their ``add``, as ``live_files`` returns them."""
    configuration = snapshot.configuration
    scan = scan_of(snapshot, options).state
    # a user's scan names the row id columns differently, and the table may have columns with those names
    scan = replace(
        scan, row_ids=configuration.row_id_columns() if configuration.has_row_tracking else None, batch_rows=BATCH_ROWS
    )
    return TargetFiles(snapshot, files, scan, names)


def file_names(table_root: str, paths: pa.ChunkedArray) -> list[str]:
    """The names of files of the log in a query of Spark. Most are made without a call for each."""

    def name(path: str) -> str:
        return normalize_table_root(resolve_data_path(table_root, path))

    # on Spark Connect the root may begin with file:, which no name does
    prefix = normalize_table_root(table_root).rstrip("/") + "/"
    found = (convert_odd_paths(chunk, NON_CANONICAL_PATH, name, plain_prefix=prefix) for chunk in paths.chunks)
    return [name for chunk in found for name in chunk.to_pylist()]


def files_state(
    snapshot: Snapshot,
    options: CommandOptions,
    columns: Sequence[ColumnSource] | None = None,
    checks: Sequence[Check] = (),
    configuration: TableConfiguration | None = None,
) -> WriteState:
    """The state that the command writes files of the table with.

    ``columns``, ``checks``: from ``plan_ingest``; if they are not given, rows are written as they were read.
    ``configuration``: the table's after the command, if it changes the schema.
    """
    after = configuration or snapshot.configuration
    domains = snapshot.domain_metadata if after.supports(Feature.CLUSTERING) else {}
    if columns is None:
        columns = tuple(ColumnSource(f, "input", i) for i, f in enumerate(after.schema))
    return write_state(
        after,
        columns,
        checks,
        clustering=clustering_columns(domains),
        storage_options=task_options(snapshot.storage, options.storage_options),
        time_zone=options.time_zone,
        target_file_bytes=options.target_file_bytes,
        max_records_per_file=options.max_records_per_file,
        compression=options.compression,
    )


def change_state(target: TargetFiles, write: WriteState, *, one_match: bool = False, **more: Any) -> ChangeState:
    """The state of the tasks that take changed rows of an update or a merge.

    ``more``: other fields of ``ChangeState``.
    """
    return ChangeState(
        write,
        change_data=target.snapshot.configuration.properties.change_data_feed,
        row_id_columns=target.row_id_columns,
        base_row_ids=_base_row_ids(target),
        one_match=one_match,
        **more,
    )


def _base_row_ids(target: TargetFiles) -> dict[str, int]:
    if target.row_id_columns is None:
        return {}
    ids = target.values("baseRowId")
    names = {str(n): n for n in range(len(ids))} if target.names is None else target.names
    return {file: ids[n] for file, n in names.items() if ids[n] is not None}


def _with_base_row_ids(before: Mapping[str, int], files: Mapping[str, AddFile]) -> dict[str, int]:
    """The base row ids after other entries of these files, by name."""
    now = dict(before)
    for name, file in files.items():
        if file.base_row_id is None:
            now.pop(name, None)
        else:
            now[name] = file.base_row_id
    return now


def with_files(
    plan: RowChangePlan, changed: Mapping[int, AddFile | None], added: Sequence[AddFile], version: int
) -> RowChangePlan:
    """The plan for a later version. Files keep their numbers, also removed ones; ``added`` have the next numbers.

    ``changed``: the entries of that version, by number; None for a removed file.
    """
    before = plan.target.files
    first, later = (before.first, before.later) if isinstance(before, _LaterFiles) else (before, {})
    found = {number: file for number, file in changed.items() if file is not None}
    found |= dict(enumerate(added, len(before)))
    names, named = plan.target.names, {str(number): file for number, file in found.items()}
    if names is not None and found:
        paths = pa.chunked_array([[file.path for file in found.values()]], pa.string())
        new = file_names(plan.target.snapshot.table_root, paths)
        named = dict(zip(new, found.values(), strict=True))
        names = {**names, **{name: n for name, n in zip(new, found, strict=True) if n >= len(before)}}
    target = replace(plan.target, files=_LaterFiles(first, {**later, **found}), names=names, version=version)
    if target.row_id_columns is None:
        return replace(plan, target=target)
    row_ids = _with_base_row_ids(plan.state.base_row_ids, named)
    return replace(plan, target=target, state=replace(plan.state, base_row_ids=row_ids))


def marks_deletions(configuration: TableConfiguration) -> bool:
    """Whether rows are deleted by deletion vectors, so that no file is rewritten."""
    return configuration.properties.deletion_vectors and configuration.supports(Feature.DELETION_VECTORS)
