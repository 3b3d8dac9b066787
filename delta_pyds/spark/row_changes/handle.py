"""A table, as one command of the user sees it: its path, the user's options, the settings of the session.

Invariant: each command makes its own handle, so it sees the session's current settings. The format is
registered in the session, and the path is absolute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.catalog.opening import table_storage
from delta_pyds.commands.row_changes.plan import CommandOptions, is_done
from delta_pyds.redaction import Concealing
from delta_pyds.spark.active_session import is_remote
from delta_pyds.table.snapshot import Snapshot, open_snapshot

# Where a command runs: in this process, in Spark tasks with our evaluator, or as a query of Spark.
Engine = Literal["auto", "process", "tasks", "spark"]

DEFAULT_PROCESS_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, repr=False)
class TableHandle(Concealing):
    """The table and the session of one command.

    ``path``: the table's absolute root. ``alias``: a qualifier for the table's columns in conditions.
    ``engine``: where the user wants the command to run. ``process_bytes``: the most bytes that the user's process reads
    after pruning. ``time_zone``: the session's. ``shared_files``: the session's workers see the same files under this
    path as this process does. ``max_runs``: the most runs of a command that loses races.
    ``row_level_concurrency``: as in ``CommandOptions``.
    ``isolation_level``: None for the table's own. ``txn``: an application and a version; a command that the table
    already has under them does nothing. ``known_frames``: the results of ``toDF``, whose Columns conditions may use
    (see ``resolving_columns_of``). ``on_schema_change``: updates the table's entry in Spark's catalog, if
    it has one. It is called after a command that may have changed the columns. ``reader``: "arrow" after Spark's own
    reader failed for a file of the table (see ``target_frame.by_either_reader``). ``pinned``: the version that the
    command reads, if the table is open already. ``run_again`` must not call a command twice with the same one.
    """

    spark: SparkSession
    path: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    alias: str | None = None
    engine: Engine = "auto"
    process_bytes: int = DEFAULT_PROCESS_BYTES
    time_zone: str = "UTC"
    shared_files: bool = True
    max_runs: int = 1
    row_level_concurrency: bool = True
    isolation_level: str | None = None
    user_metadata: str | None = None
    txn: tuple[str, int] | None = None
    known_frames: tuple[DataFrame, ...] = ()
    on_schema_change: Callable[[Snapshot], None] | None = None
    reader: Literal["auto", "arrow"] = "auto"
    pinned: Snapshot | None = None

    @property
    def remote(self) -> bool:
        """Whether the session is one of Spark Connect."""
        return is_remote(self.spark)

    def open(self) -> Snapshot:
        """The current version of the table, or the pinned one. A command reads it and commits against it.

        Raises: AlreadyWrittenError if the table already has the version of ``txn``, or a later one; as
        ``open_snapshot``.
        """
        snapshot = self.pinned or open_snapshot(table_storage(self.path, self.storage_options), self.path)
        if is_done(snapshot, CommandOptions(application=self.txn)):
            raise AlreadyWrittenError
        return snapshot

    def update_catalog(self) -> None:
        """Update the catalog entry after a command that may have changed the columns."""
        if self.on_schema_change is not None:
            self.on_schema_change(replace(self, txn=None, pinned=None).open())


class AlreadyWrittenError(Exception):
    """The command ran before, under the same application and version: it does nothing, without an error."""
