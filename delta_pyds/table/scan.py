"""A scan of a snapshot: which files, which columns, and what the tasks must know.

Protocol: "Per-file Statistics", "Column Mapping", "Row Tracking".
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.scan_files import PARTITION_PREFIX, to_scan_files
from delta_pyds.columnar.skipping import first_ruling_out, keep
from delta_pyds.errors import UserError
from delta_pyds.expr.nodes import And, Expr, conjuncts, references, to_sql
from delta_pyds.expr.stats_rewrite import Needs, Skip, needs, skipping
from delta_pyds.log.checkpoint_reader import AddRequest
from delta_pyds.protocol.handoff import (
    FILE_PATH_COLUMN,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    ROW_POSITION_COLUMN,
    ScanFile,
    ScanState,
)
from delta_pyds.protocol.schema import StructType
from delta_pyds.table.column_selection import match_user_schema, parse_column_list, select_columns
from delta_pyds.table.file_facts import FactColumns, partition_strings
from delta_pyds.table.snapshot import Snapshot

_FILE_FIELDS = ("path", "size", "deletionVector", "baseRowId", "defaultRowCommitVersion")


@dataclass(frozen=True)
class Scan:
    """A planned read. ``state`` goes to every task; ``batches`` are the files that may hold wanted rows.

    Invariant: a file is left out only where partition values or statistics
    prove that no row of it satisfies ``state.predicate`` (or the pushed filters).
    ``uses_time_zone``: the meaning of the predicate depends on the time zone.
    """

    snapshot: Snapshot
    state: ScanState
    where: str | None
    uses_time_zone: bool
    filters: tuple[Expr, ...] = field(default=())

    @cached_property
    def _skips(self) -> tuple[Skip, ...]:
        return tuple(skipping(f, self.snapshot.configuration.partition_columns) for f in self.filters)

    @cached_property
    def _facts(self) -> FactColumns:
        wanted = reduce(operator.or_, (needs(s) for s in self._skips), Needs())
        return FactColumns(wanted, self.snapshot.schema, self.state.time_zone)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files to read as rows of ``columnar.scan_files``, in bounded memory."""
        partitions = self.state.partition_columns
        request = self.request((*_FILE_FIELDS, *(("partitionValues",) if partitions else ())))
        for batch in self.snapshot.adds(request):
            arrays = [batch.files.column(name) for name in _FILE_FIELDS]
            add = batch.files.to_struct_array() if partitions else None
            arrays += [partition_strings(add, p) for p in partitions]
            yield pa.RecordBatch.from_arrays(
                arrays, names=[*_FILE_FIELDS, *(f"{PARTITION_PREFIX}{i}" for i in range(len(partitions)))]
            )

    def request(self, columns: tuple[str, ...]) -> AddRequest:
        """What to ask of the log to get these fields of the files that the scan reads."""
        facts = self._facts

        def test(add: pa.StructArray) -> pa.BooleanArray:
            bound = facts.of(add)
            mask = keep(self._skips[0], bound)
            for skip in self._skips[1:]:
                mask = pc.and_(mask, keep(skip, bound))
            return mask

        return AddRequest(
            columns=columns,
            facts=facts.json_fields,
            parsed_facts=facts.parsed_fields,
            keep=test if self._skips else None,
        )

    def files(self) -> Iterator[ScanFile]:
        """Yield the files to read as values."""
        for batch in self.batches():
            yield from to_scan_files(batch, self.snapshot.table_root)

    def explain(self) -> ScanReport:
        """Say of every file of the table whether it is read, and if not, which part of the predicate ruled it out."""
        parts = tuple(p for f in self.filters for p in conjuncts(f))
        skips = tuple(skipping(p, self.snapshot.configuration.partition_columns) for p in parts)
        request = AddRequest(
            columns=("path", "size"),
            facts=self._facts.json_fields,
            parsed_facts=self._facts.parsed_fields,
            with_facts=True,
        )
        names = pa.array([to_sql(p) for p in parts], pa.string())
        tables = [pa.table({"path": pa.array([], pa.string()), "size_bytes": pa.array([], pa.int64()),
                            "kept": pa.array([], pa.bool_()), "ruled_out_by": pa.array([], pa.string())})]  # fmt: skip
        for batch in self.snapshot.adds(request):
            if skips:
                assert batch.facts is not None
                bound = self._facts.of(batch.facts)
                reasons = names.take(first_ruling_out(skips, bound))
                # parts alone may each be possible where the whole is not
                kept = reasons.is_null()
                for skip in self._skips:
                    kept = pc.and_(kept, keep(skip, bound))
            else:
                reasons = pa.nulls(batch.files.num_rows, pa.string())
                kept = reasons.is_null()
            tables.append(
                pa.table(
                    {
                        "path": batch.files.column("path"),
                        "size_bytes": batch.files.column("size"),
                        "kept": kept,
                        "ruled_out_by": reasons,
                    }
                )
            )
        return ScanReport(self.snapshot.table_root, self.snapshot.version, self.where, pa.concat_tables(tables))


@dataclass(frozen=True)
class ScanReport:
    """What planning decided for each file of the table.

    ``files``: an Arrow table with ``path``, ``size_bytes``, ``kept`` and
    ``ruled_out_by``, the part of the predicate (as SQL) that no row of the
    file can satisfy; null for files that are kept.
    """

    table_root: str
    version: int
    where: str | None
    files: pa.Table

    @property
    def num_files(self) -> int:
        return int(self.files.num_rows)

    @property
    def num_kept(self) -> int:
        return int(pc.sum(self.files.column("kept")).as_py() or 0)

    @property
    def total_bytes(self) -> int:
        return int(pc.sum(self.files.column("size_bytes")).as_py() or 0)

    @property
    def kept_bytes(self) -> int:
        sizes = self.files.filter(self.files.column("kept")).column("size_bytes")
        return int(pc.sum(sizes).as_py() or 0)

    def to_text(self, limit: int = 20) -> str:
        """The totals and the first ``limit`` files, for people."""
        lines = [
            f"{self.table_root} at version {self.version}" + (f" where {self.where}" if self.where else ""),
            f"{self.num_kept} of {self.num_files} files read, {self.kept_bytes:,} of {self.total_bytes:,} bytes",
        ]
        for row in self.files.slice(0, limit).to_pylist():
            verdict = "read" if row["kept"] else f"skipped: {row['ruled_out_by'] or 'the predicate as a whole'}"
            lines.append(f"  {row['path']}  {verdict}")
        if self.num_files > limit:
            lines.append(f"  ... and {self.num_files - limit} more")
        return "\n".join(lines)

    __str__ = to_text


def plan_scan(
    snapshot: Snapshot,
    *,
    where: str | None = None,
    columns: str | Sequence[str] | None = None,
    schema: StructType | None = None,
    pushed: Sequence[Expr] = (),
    time_zone: str = "UTC",
    row_position: bool = False,
    row_ids: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Scan:
    """Plan a read of a snapshot.

    ``where``: a Spark SQL predicate; the scan is of the rows for which it is
    true. ``pushed``: filters that Spark will apply to the rows itself: they
    only rule out files and row groups. ``columns``: names, nested by dots;
    ``schema``: a user's schema instead. ``row_position`` and ``row_ids`` add
    ``_file_path, _row_position`` and ``_row_id, _row_commit_version`` at the end.

    Raises: ExpressionError, ColumnNotFoundError, UserError, UnsupportedFeatureError.
    """
    configuration = snapshot.configuration
    table = snapshot.table_root
    output = snapshot.schema
    if columns is not None:
        listed = ",".join(columns) if not isinstance(columns, str) else columns
        output = select_columns(snapshot.schema, parse_column_list(listed), table)
    if schema is not None:
        output = match_user_schema(snapshot.schema, schema, table)
    _check_names(output, row_position, row_ids, table)
    predicate: Expr | None = None
    uses_time_zone = False
    if where is not None and where.strip():
        # imported here: most scans have no predicate
        from delta_pyds.expr.parse import parse_predicate

        parsed = parse_predicate(where, snapshot.schema, time_zone=time_zone)
        predicate, uses_time_zone = parsed.expr, parsed.uses_time_zone
    filters = tuple(([predicate] if predicate is not None else []) + list(pushed))
    paths = sorted({path for f in filters for path in references(f)})
    inputs = select_columns(snapshot.schema, paths, table)
    used = {f.physical_name for f in (*output, *inputs)}
    skip = None
    if filters:
        whole = filters[0] if len(filters) == 1 else And(filters)
        skip = skipping(whole, configuration.partition_columns)
    state = ScanState(
        table_root=table,
        storage_options=dict(storage_options or {}),
        output=output,
        inputs=inputs,
        partition_columns=tuple(
            f.physical_name
            for f in snapshot.schema
            if f.name in configuration.partition_columns and f.physical_name in used
        ),
        column_mapping_mode=configuration.column_mapping_mode,
        predicate=predicate,
        skip=skip,
        row_position=row_position,
        row_ids=configuration.row_id_columns() if row_ids else None,
        time_zone=time_zone,
    )
    return Scan(snapshot, state, where, uses_time_zone, filters)


def _check_names(output: StructType, row_position: bool, row_ids: bool, table: str) -> None:
    extra = [FILE_PATH_COLUMN, ROW_POSITION_COLUMN] if row_position else []
    extra += [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN] if row_ids else []
    clash = [n for n in extra if n in {name.lower() for name in output.names}]
    if clash:
        raise UserError(
            f"the table {table} has a column named {clash[0]}, which the option "
            f"{'rowPosition' if clash[0] in (FILE_PATH_COLUMN, ROW_POSITION_COLUMN) else 'rowIds'} wants to add. "
            "Leave it out with the option columns, or read without that option.",
            code="DELTA_COLUMN_NAME_CONFLICT",
            table=table,
            column=clash[0],
        )
