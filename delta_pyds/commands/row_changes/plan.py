"""What a command that changes rows is to do, decided before a row is read. All of it stays in the user's process.

    snapshot = load_snapshot(path)
    target = target_files(snapshot, files, options)                     # files: those that may hold rows of interest
    state = ChangeState(write=write_state(snapshot.configuration, ingest, options), ...)  # goes to the tasks
    plan = RowChangePlan("DELETE", target, state, options, parameters={"predicate": [text]}, read=predicate)
    outputs = ...                                                       # of the tasks that found and wrote rows
    result = commit_rows(plan, outputs, runner=runner, place=Place("spark", "..."))

Protocol: "Add File and Remove File", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from delta_pyds.expr.nodes import TRUE, Expr
from delta_pyds.protocol.actions import AddFile, Metadata, Protocol
from delta_pyds.redaction import Concealing
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.scan_state import ScanState

CommandKind = Literal["DELETE", "UPDATE", "MERGE"]


@dataclass(frozen=True, repr=False)
class CommandOptions(Concealing):
    """What a user may say of any command that changes rows.

    ``time_zone``, ``ansi``: of the session. ``isolation_level``: None leaves it to the table. ``target_file_bytes``:
    None leaves it to the table. ``max_runs``: how often the command runs where each run loses against another commit.
    """

    storage_options: Mapping[str, Any] = field(default_factory=dict)
    time_zone: str = "UTC"
    ansi: bool = True
    isolation_level: str | None = None
    user_metadata: str | None = None
    max_runs: int = 1
    target_file_bytes: int | None = None
    max_records_per_file: int = 0
    compression: str = "snappy"


@dataclass(frozen=True, repr=False)
class TargetFiles(Concealing):
    """The files that a command may change.

    ``files``: all fields of their ``add``. A file's number is its place here. ``scan``: reads all columns of the table,
    with row ids where the table tracks rows, and without a predicate. ``names``: by the name that a finder other than
    ours has for a file (Spark's ``_metadata.file_path``), its number.
    """

    snapshot: Snapshot
    files: Sequence[AddFile]
    scan: ScanState
    names: Mapping[str, int] = field(default_factory=dict)

    def number_of(self, file: int | str) -> int:
        """The number of a file by its number or name. Raises: DeltaError for one that is not among them."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class RowChangePlan(Concealing):
    """One command, planned.

    ``state``: what its tasks were given that took changed rows. ``parameters``: ``commitInfo.operationParameters``.
    ``read``: a predicate, bound to the table's columns, that every row satisfies on which the result depends; its part
    over partition columns is what may not change meanwhile. TRUE where that is not known. ``metadata``, ``protocol``:
    what the commit says of the table besides, where the command changes its schema.
    """

    kind: CommandKind
    target: TargetFiles
    state: ChangeState
    options: CommandOptions
    parameters: Mapping[str, Any] = field(default_factory=dict)
    read: Expr = TRUE
    metadata: Metadata | None = None
    protocol: Protocol | None = None
