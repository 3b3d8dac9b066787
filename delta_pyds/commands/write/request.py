"""The request of a write, and the check that its options do not contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import Concealing

SaveMode = Literal["append", "overwrite"]
PartitionOverwrite = Literal["static", "dynamic"]
CreateMode = Literal["createIfNotExists", "errorIfExists", "ignore", "errorIfNotExists", "replace", "createOrReplace"]

DEFAULT_MAX_ATTEMPTS = 1_000
DEFAULT_MAX_BACKOFF_MS = 5_000


@dataclass(frozen=True, repr=False)
class WriteRequest(Concealing):
    """One batch write.

    ``incoming``: the columns of the rows to write. ``partition_by``, ``cluster_by``: columns as paths; None if the
    user gave none. ``properties``: for a table that the write creates or replaces (``create_mode``). ``application``:
    id and version of an idempotent write. ``replace_using``: columns whose values determine the replaced rows; a query
    of Spark finds them.
    ``target_file_bytes``: None leaves it to the table.
    ``read_version``: the version of this table that the rows were computed from. The commit then depends on all files
    of that version: it is not a blind append, and a change of rows by others since then is a conflict. None: an append
    does not depend on the table.
    ``reads_table``: whether the rows were computed from the table, at the version that the write opens or an earlier
    one. True: a change of any row by others is a conflict. False: after a lost race an overwrite is mended. None: it
    is unknown. ``reads_where``: holds for all rows that were read; only changes of their partitions are conflicts then.
    ``row_level_concurrency``: as in ``CommandOptions``.
    ``max_backoff_ms``: the longest pause between two attempts to commit. ``task_parallelism``: the number of tasks that
    replace rows at once in the session's executors; None leaves it to the session.
    """

    table_root: str
    incoming: StructType
    mode: SaveMode
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    create_mode: CreateMode = "createIfNotExists"
    replace_where: str | None = None
    replace_using: tuple[str, ...] = ()
    partition_overwrite: PartitionOverwrite | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    partition_by: tuple[tuple[str, ...], ...] | None = None
    cluster_by: tuple[tuple[str, ...], ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    table_comment: str | None = None
    user_metadata: str | None = None
    application: tuple[str, int] | None = None
    data_change: bool = True
    max_records_per_file: int = 0
    target_file_bytes: int | None = None
    compression: str = "snappy"
    time_zone: str = "UTC"
    isolation_level: str | None = None
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    max_backoff_ms: int = DEFAULT_MAX_BACKOFF_MS
    task_parallelism: int | None = None
    read_version: int | None = None
    reads_table: bool | None = None
    reads_where: str | None = None
    row_level_concurrency: bool = True

    @property
    def dynamic(self) -> bool:
        """Whether only the partitions that receive rows are overwritten, on a partitioned table."""
        return self.partition_overwrite == "dynamic" and not self.replaces_some

    @property
    def replaces_some(self) -> bool:
        """Whether only some rows are replaced: ``replaceWhere`` or ``replaceUsing``."""
        return self.replace_where is not None or bool(self.replace_using)

    @property
    def replaces_table(self) -> bool:
        """Whether the table's definition is replaced with its rows."""
        return self.create_mode in ("replace", "createOrReplace")

    def check(self) -> None:
        """Refuse contradictions, before the table is opened.

        Raises: OptionError naming both sides.
        """
        overwrites = self.mode == "overwrite"
        if self.replace_where is not None and not overwrites:
            raise OptionError(
                'replaceWhere replaces rows, so it needs the mode overwrite: .mode("overwrite").',
                option="replaceWhere",
            )
        if self.replace_where is not None and "${" in self.replace_where:
            raise OptionError(
                f"replaceWhere contains a variable: {self.replace_where!r:.200}. Spark would substitute its value, but "
                "delta_pyds does not: write the value.",
                option="replaceWhere",
            )
        if self.replace_where is not None and self.partition_overwrite == "dynamic":
            raise OptionError(
                "replaceWhere and partitionOverwriteMode=dynamic both say what to overwrite: give one of them.",
                code="DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
                option="replaceWhere",
            )
        if self.read_version is not None and self.reads_table is False:
            raise OptionError(
                f"readVersion={self.read_version} says that the rows were computed from the table, but "
                "readsTable=false says that they were not: leave one of them out.",
                option="readsTable",
            )
        if self.reads_where is not None and self.reads_table is False:
            raise OptionError(
                f"readsWhere={self.reads_where!r:.200} says which rows of the table were read, but readsTable=false "
                "says that none were: give readsTable=true, or leave readsWhere out.",
                option="readsWhere",
            )
        if self.reads_where is not None and not self.reads_table:
            raise OptionError(
                f"readsWhere={self.reads_where!r:.200} says which rows of the table were read, but readsTable=true is "
                "missing: add it.",
                option="readsWhere",
            )
        if self.replace_using:
            self._check_replace_using()
        if self.replaces_table:
            self._check_replacement()
        if self.overwrite_schema:
            if not overwrites:
                raise OptionError(
                    'overwriteSchema replaces the schema of the table, so it needs .mode("overwrite"). '
                    "To add columns, use mergeSchema.",
                    option="overwriteSchema",
                )
            if self.replace_where is not None:
                raise OptionError(
                    "overwriteSchema needs all rows replaced, but replaceWhere keeps some: leave one of them out.",
                    code="DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
                    option="overwriteSchema",
                )
            if self.partition_overwrite == "dynamic":
                raise OptionError(
                    "overwriteSchema needs all rows replaced, but partitionOverwriteMode=dynamic keeps partitions: "
                    "leave one of them out.",
                    code="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
                    option="overwriteSchema",
                )
        if self.partition_by and self.cluster_by:
            raise OptionError(
                "partitionBy and clusterBy are both given: a table is partitioned or clustered, not both.",
                code="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
                option="clusterBy",
            )

    def _check_replace_using(self) -> None:
        if self.replace_where is not None:
            raise OptionError(
                "replaceUsing and replaceWhere both say what to replace: give one of them.",
                code="DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
                option="replaceUsing",
            )
        if self.partition_overwrite == "dynamic":
            raise OptionError(
                "replaceUsing and partitionOverwriteMode=dynamic both say what to replace: give one of them.",
                code="DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
                option="replaceUsing",
            )
        if self.mode != "overwrite" or self.overwrite_schema or not self.data_change:
            raise OptionError(
                "replaceUsing replaces some rows by others: it needs the mode overwrite, and neither overwriteSchema "
                "nor dataChange=false.",
                option="replaceUsing",
            )

    def _check_replacement(self) -> None:
        wrong = next(
            (
                name
                for name, given in (
                    ("replaceWhere", self.replace_where is not None),
                    ("replaceUsing", bool(self.replace_using)),
                    ("partitionOverwriteMode=dynamic", self.partition_overwrite == "dynamic"),
                    ("mergeSchema", self.merge_schema),
                    ("dataChange=false", not self.data_change),
                )
                if given
            ),
            None,
        )
        if self.mode != "overwrite" or wrong is not None:
            instead = '.mode("overwrite")' if wrong is None else f"no {wrong}"
            raise OptionError(
                f"createMode={self.create_mode} replaces the existing table with all its rows, so it needs {instead}.",
                option="createMode",
            )
