"""The state that planning sends to the tasks of a write, and the outputs that they return.

One ``WriteState`` travels to every task; each task answers with a
``TaskOutput``. Small, picklable, free of the log's classes and of Arrow.
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

# where a column's values come from, when the incoming rows do not have it or may lack it
ColumnOrigin = Literal["input", "null", "default", "generated", "identity"]


@dataclass(frozen=True)
class SessionExpression:
    """An expression bound both with and without ANSI mode.

    ``ansi`` and ``legacy`` are bound trees for ``spark.sql.ansi.enabled`` true
    and false: only a task knows which holds.
    ``legacy`` is None where the text cannot be bound without ANSI rules;
    ``legacy_refusal`` then says why. ``sql`` is the text, for messages.
    ``uses_time_zone``: its meaning depends on the session's time zone, which
    was taken to be ``WriteState.time_zone``. ``reads_clock``: it has the time at which it was bound.
    """

    sql: str
    ansi: Expr
    legacy: Expr | None = None
    legacy_refusal: str = ""
    uses_time_zone: bool = False
    reads_clock: bool = False


@dataclass(frozen=True)
class SparkExpression:
    """An expression that a Spark session computes: the rows bring what it gives.

    ``sql`` is the text, as the table has it. ``columns``: those of the table that the text may name, for messages.
    """

    sql: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class IdentityColumn:
    """How an identity column numbers rows. Protocol: "Identity Columns".

    ``high_water_mark``: the last value ever given, None before the first.
    """

    start: int
    step: int
    high_water_mark: int | None
    allow_explicit_insert: bool


@dataclass(frozen=True)
class ColumnSource:
    """How one column of the table is filled.

    ``field``: the table's column, logical name, with its metadata.
    ``input``: position among the incoming columns; None where they lack it.
    ``source``: ``input``: taken as given. ``null``: not given, all null.
    ``default``, ``generated``: ``expression`` computes it; a generated column
    with an ``input`` is checked against it instead. Expressions are bound to
    the table's logical columns. ``identity``: numbered where not given.
    ``computed``: in place of ``expression``, a default or generated column that a Spark session computes: ``input`` is
    where the rows bring its values, behind the columns that were given. What a session compares of a generated column
    that was given is a ``Check``.
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
    """A condition that must be true, not just not false, of each row that is written.

    Kinds: a CHECK constraint, a column invariant, the predicate of replaceWhere, or that a generated column that was
    given is null-safely equal to what ``expression`` gives. ``name``: of the constraint or of the column.
    ``expression``: with a ``SparkExpression`` the rows bring whether they pass, as the column
    ``changed_rows.CHECK_PREFIX`` with the check's position. Protocol: "CHECK Constraints", "Column Invariants",
    "Generated Columns".
    """

    kind: CheckKind
    name: str
    expression: SessionExpression | SparkExpression


@dataclass(frozen=True, repr=False)
class WriteState(Concealing):
    """All that every task of one write needs to know.

    Invariants: ``columns`` is one entry per column of ``schema``, in its
    order; ``schema`` has logical names, and physical names and ids in its
    metadata; a column that other columns are generated from comes before them.
    ``partition_columns``: logical names. ``stats_columns``: the leaf columns to
    collect statistics of, as paths of logical names from the top.
    ``random_prefix_length``: None puts files into Hive-style partition
    directories, a number into random ones. ``max_records_per_file``: 0 is no limit.
    ``tight_bounds``: statistics say so (tables that support deletion vectors).
    ``change_data``: the files are of the change data feed, and lie and are named as such.
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
        """Whether the rows must bring what a Spark session has computed."""
        return any(source.computed is not None for source in self.columns) or any(
            isinstance(check.expression, SparkExpression) for check in self.checks
        )


@dataclass(frozen=True)
class WrittenFile:
    """A data file that a task wrote: what an ``add`` needs to know of it.

    ``path``: relative to the table and percent-encoded, as the log has it.
    ``partition_values``: by physical name. ``statistics``: the JSON of ``add.stats``.
    """

    path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modification_time_ms: int
    num_records: int
    statistics: str


@dataclass(frozen=True)
class FoundRows:
    """Live rows of a file of the table that a task found.

    ``file``: the number of the file among those that the command handed out, or the name that Spark has for it.
    ``positions``: of the rows that leave the table, a 64-bit roaring bitmap in the portable format; those that were
    deleted before are not among them. ``kept``: of the rows that a merge matched and leaves as they are.
    ``num_records``: all rows of the file, deleted ones too, where the task has counted them in the file.
    ``deleted_before``: the file's deletion vector, where the task has loaded it.
    """

    file: int | str
    positions: bytes
    kept: bytes | None = None
    num_records: int | None = None
    deleted_before: bytes | None = None


@dataclass(frozen=True)
class ReplacedFile:
    """A file of the table all of whose live rows a task has written anew, changed or not.

    ``number``: its place among the files that the command handed out. ``live_rows``: counted in the file.
    """

    number: int
    live_rows: int


@dataclass(frozen=True)
class TaskOutput:
    """All that one task did: what a commit needs of it.

    Invariant: each file that it names is complete. ``files``: new data files. ``change_files``: of the change data
    feed. ``copied_rows``: rows of ``files`` that were in the table before and did not change. ``identity_marks``: by
    logical column name, the value furthest along that it gave out. ``found``: the rows of the table that it found, for
    the end of the command to mark. ``replaced``: files of the table whose rows are in ``files`` now. ``counts``: rows
    by ``changed_rows.Action``. ``matched_source_rows``: numbers of the source's rows that a merge matched, a bitmap.
    ``vectors``: in new files of deletion vectors.
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

    @property
    def written(self) -> tuple[WrittenFile, ...]:
        """All files that exist because of the task, but for deletion vectors."""
        return (*self.files, *self.change_files)


@dataclass(frozen=True)
class StreamOrigin:
    """Which batch of which stream a task wrote for, as far as Spark has told the task."""

    query_id: str | None
    batch_id: int | None
