"""The state of a write for its tasks, and their outputs.

Every task gets the same ``WriteState`` and returns a ``TaskOutput``. Small,
picklable, without classes of the log and Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import StructField, StructType

if TYPE_CHECKING:
    from delta_pyds.expr.nodes import Expr
from delta_pyds.redaction import Concealing

# the origin of a column's values
ColumnOrigin = Literal["input", "null", "default", "generated", "identity"]


@dataclass(frozen=True)
class SessionExpression:
    """An expression that is bound both with and without ANSI mode.

    ``sql``: the text, for messages. ``ansi``, ``legacy``: bound trees for
    ``spark.sql.ansi.enabled`` true and false; only a task knows its session's
    setting. ``legacy`` is None if the text cannot be bound without ANSI rules;
    ``legacy_refusal`` is the reason. ``uses_time_zone``: its value depends on the
    session's time zone, which was assumed to be ``WriteState.time_zone``.
    ``reads_clock``: it contains the time at which it was bound.
    """

    sql: str
    ansi: Expr
    legacy: Expr | None = None
    legacy_refusal: str = ""
    uses_time_zone: bool = False
    reads_clock: bool = False


@dataclass(frozen=True)
class SparkExpression:
    """An expression that a Spark session computes; the incoming rows contain its values.

    ``sql``: the text from the table's metadata. ``columns``: the table's columns that the text may name, for messages.
    """

    sql: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class IdentityColumn:
    """The settings of an identity column. Protocol: "Identity Columns".

    ``high_water_mark``: the furthest value that was ever assigned; None before the first.
    """

    start: int
    step: int
    high_water_mark: int | None
    allow_explicit_insert: bool


@dataclass(frozen=True)
class ColumnSource:
    """The source of one column's values.

    ``field``: the table's column, with its logical name and metadata.
    ``source``: ``input``: the given values. ``null``: nulls. ``default``, ``generated``: values of ``expression``,
    which is bound to the table's logical columns; given values of a generated column are compared with it instead.
    ``identity``: assigned numbers for rows without a value.
    ``input``: the position among the incoming columns; None if they lack it.
    ``computed``: replaces ``expression`` for a default or generated column that a Spark session computes. ``input`` is
    then the position of these values, after the given columns. If a generated column was given and a session compares
    it, there is a ``Check``.
    """

    field: StructField
    source: ColumnOrigin
    input: int | None = None
    expression: SessionExpression | None = None
    identity: IdentityColumn | None = None
    computed: SparkExpression | None = None


CheckKind = Literal["check", "invariant", "replace_where", "generated"]


@dataclass(frozen=True)
class Check:
    """A condition that must be true (null is a violation) for each written row.

    Kinds: a CHECK constraint, a column invariant, the predicate of replaceWhere, or null-safe equality of a given
    generated column with ``expression``. ``name``: the constraint's or the column's. ``expression``: if it is a
    ``SparkExpression`` the rows contain the result in the column ``changed_rows.CHECK_PREFIX`` with the check's
    position. Protocol: "CHECK Constraints", "Column Invariants", "Generated Columns".
    """

    kind: CheckKind
    name: str
    expression: SessionExpression | SparkExpression


@dataclass(frozen=True, repr=False)
class WriteState(Concealing):
    """The state of one write, for all its tasks.

    Invariants: ``columns`` has one entry for each column of ``schema``, in its
    order; ``schema`` has logical names, with physical names and ids in its
    metadata; a column comes before the columns that are generated from it.
    ``partition_columns``: logical names. ``stats_columns``: the leaf columns with
    statistics, as paths of logical names. ``random_prefix_length``: the length of
    random directory names; None for Hive-style partition directories.
    ``max_records_per_file``: 0 means no limit. ``tight_bounds``: statistics have
    ``tightBounds`` (for tables that support deletion vectors). ``change_data``:
    the files belong to the change data feed, with its directory and names.
    ``nested_field_ids``: Parquet ids of list elements, map keys and values are written too.
    """

    table_root: str
    storage_options: Mapping[str, Any]
    schema: StructType
    columns: tuple[ColumnSource, ...]
    partition_columns: tuple[str, ...] = ()
    column_mapping_mode: str = "none"
    checks: tuple[Check, ...] = ()
    stats_columns: tuple[tuple[str, ...], ...] = ()
    string_prefix_length: int = 32
    tight_bounds: bool = False
    random_prefix_length: int | None = None
    partition_columns_in_files: bool = False
    nested_field_ids: bool = False
    change_data: bool = False
    target_file_bytes: int = 128 * 1024 * 1024
    max_records_per_file: int = 0
    compression: str = "snappy"
    time_zone: str = "UTC"

    @property
    def needs_spark(self) -> bool:
        """Whether the rows must contain values that a Spark session has computed."""
        return any(source.computed is not None for source in self.columns) or any(
            isinstance(check.expression, SparkExpression) for check in self.checks
        )


@dataclass(frozen=True)
class WrittenFile:
    """A data file that a task wrote, with the values of its ``add``.

    ``path``: relative to the table and percent-encoded, as in the log.
    ``partition_values``: physical names to values. ``statistics``: the JSON of ``add.stats``.
    ``origins``: the origins of the rows (``columnar.row_origins``), if they were recorded. ``deleted``: a bitmap of
    the ``num_deleted`` rows that the commit must mark as deleted, because the command lost a race for them.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modification_time_ms: int
    num_records: int
    statistics: str
    origins: bytes | None = None
    deleted: bytes | None = None
    num_deleted: int = 0


@dataclass(frozen=True)
class FoundRows:
    """The rows to delete and to keep that a task found in one file of the table.

    Bitmaps are 64-bit roaring bitmaps in the portable format. ``file``: the position of the file among those of the
    command, or Spark's name for it. ``positions``: a bitmap of the rows to delete, without those that were deleted
    before. ``kept``: a bitmap of the rows that a merge matched and leaves unchanged. ``num_records``: the number of all
    rows of the file, with deleted ones, if the task has counted them. ``deleted_before``: the file's deletion vector,
    if the task has loaded it.
    """

    file: int | str
    positions: bytes
    kept: bytes | None = None
    num_records: int | None = None
    deleted_before: bytes | None = None


@dataclass(frozen=True)
class ReplacedFile:
    """A file of the table that a task has rewritten: its live rows, changed or not, are in new files.

    ``number``: its position among the files of the command. ``live_rows``: counted in the file. ``updated_rows``: those
    that a command changed.
    """

    number: int
    live_rows: int
    updated_rows: int = 0


@dataclass(frozen=True)
class TaskOutput:
    """The result of one task, for the commit.

    Invariant: each file that it names is complete. ``files``: new data files. ``change_files``: files of the change
    data feed. ``copied_rows``: the number of unchanged rows in ``files``. ``identity_marks``: the furthest assigned
    identity value by logical column name. ``found``: rows of the table that the end of the command marks as deleted.
    ``replaced``: files of the table whose rows are in ``files`` now. ``counts``: numbers of rows by
    ``changed_rows.Action``. ``matched_source_rows``: a bitmap of the source's row numbers that a merge matched.
    ``vectors``: deletion vectors in new files. ``origin_files``: the file of each index in ``WrittenFile.origins``, as
    in ``FoundRows.file``. ``source_matches``: packed numbers of source rows
    (``columnar.row_origins``), one for each match; empty if each row of ``matched_source_rows`` matched once.
    """

    files: tuple[WrittenFile, ...] = ()
    identity_marks: Mapping[str, int] = field(default_factory=dict)
    change_files: tuple[WrittenFile, ...] = ()
    copied_rows: int = 0
    found: tuple[FoundRows, ...] = ()
    replaced: tuple[ReplacedFile, ...] = ()
    counts: Mapping[int, int] = field(default_factory=dict)
    matched_source_rows: bytes | None = None
    vectors: tuple[DeletionVectorDescriptor, ...] = ()
    origin_files: tuple[int | str, ...] = ()
    source_matches: bytes = b""

    @property
    def written(self) -> tuple[WrittenFile, ...]:
        """All files that the task wrote, except those of deletion vectors."""
        return (*self.files, *self.change_files)


@dataclass(frozen=True)
class StreamOrigin:
    """The query and the batch of a stream for which a task wrote; None if the task does not know them."""

    query_id: str | None
    batch_id: int | None
