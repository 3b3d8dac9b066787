"""A scan of a snapshot: its files, its columns, and the state of its tasks.

Protocol: "Per-file Statistics", "Column Mapping", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.catalog.opening import task_options
from delta_pyds.columnar.exact_sum import exact_sum
from delta_pyds.columnar.scan_files import to_scan_files
from delta_pyds.columnar.skipping import first_ruling_out, keep
from delta_pyds.errors import ProtocolError
from delta_pyds.expr.nodes import Expr, conjuncts, to_sql
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.html_table import table as html_table
from delta_pyds.log.adds import AddRequest, FileBatch
from delta_pyds.protocol.partition_values import INVALID_VALUE
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import shown
from delta_pyds.table.scan.row_selection import Relation, RowSelection, select_rows
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.scan_state import ScanFile, ScanState


@dataclass(frozen=True)
class Scan:
    """A planned scan: a selection of a snapshot's rows. ``batches`` yields the files that may hold wanted rows."""

    snapshot: Snapshot
    selection: RowSelection

    @property
    def state(self) -> ScanState:
        """The part that every task gets."""
        return self.selection.state

    @property
    def where(self) -> str | None:
        return self.selection.where

    @property
    def filters(self) -> tuple[Expr, ...]:
        return self.selection.filters

    @property
    def uses_time_zone(self) -> bool:
        """Whether the result of the predicate depends on the time zone."""
        return self.selection.uses_time_zone

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the files to read as rows of ``columnar.scan_files``, in bounded memory."""
        for batch in self.adds(self.request(self.selection.file_fields)):
            yield self.selection.to_scan_batch(batch.files)

    def adds(self, request: AddRequest) -> Iterator[FileBatch]:
        """Yield the files of the log that the request selects.

        Raises: ProtocolError naming the file, for an invalid partition value.
        """
        with self._naming_files():
            yield from self.snapshot.adds(request)

    @contextmanager
    def _naming_files(self) -> Iterator[None]:
        """Add the file to an error about a partition value.

        Skipping reads files without their paths, so the message needs a second pass over the files.
        """
        try:
            yield
        except ProtocolError as e:
            if e.code == INVALID_VALUE and "file" not in e.parameters:
                for batch in self.snapshot.adds(AddRequest(columns=("path", "partitionValues"))):
                    self.selection.skipping_columns.of(batch.files.to_struct_array())
            raise

    def request(self, columns: tuple[str, ...]) -> AddRequest:
        """A request for the files that the scan reads, with these fields."""
        skipping = self.selection.skipping_columns
        return AddRequest(
            columns=columns,
            filter_fields=skipping.json_fields,
            parsed_filter_fields=skipping.parsed_fields,
            keep=self.selection.file_filter if self.filters else None,
        )

    def files(self) -> Iterator[ScanFile]:
        """Yield the files to read as ``ScanFile`` values."""
        for batch in self.batches():
            yield from to_scan_files(batch, self.snapshot.table_root)

    def explain(self) -> ScanReport:
        """Report for each file whether it is read; if not, the part of the predicate that ruled it out."""
        parts = tuple(p for f in self.filters for p in conjuncts(f))
        skips = tuple(skipping(p, self.selection.relation.partition_columns) for p in parts)
        request = replace(self.request(("path", "size")), keep=None, with_filter_fields=True)
        names = pa.array([to_sql(p) for p in parts], pa.string())
        tables = [pa.table({"path": pa.array([], pa.string()), "size_bytes": pa.array([], pa.int64()),
                            "kept": pa.array([], pa.bool_()), "ruled_out_by": pa.array([], pa.string())})]  # fmt: skip
        for batch in self.adds(request):
            if skips:
                assert batch.filter_fields is not None
                with self._naming_files():
                    bound = self.selection.skipping_columns.of(batch.filter_fields)
                reasons = names.take(first_ruling_out(skips, bound))
                # statistics may rule out the whole predicate, but none of its parts
                kept = reasons.is_null()
                for skip in self.selection.skips:
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
    """The decision of planning for each file of the table.

    ``files``: an Arrow table with ``path``, ``size_bytes``, ``kept`` and ``ruled_out_by``. The last is the part of the
    predicate (as SQL) that no row of the file can satisfy; null for kept files.
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
        return exact_sum(self.files.column("size_bytes"))

    @property
    def kept_bytes(self) -> int:
        sizes = self.files.filter(self.files.column("kept")).column("size_bytes")
        return exact_sum(sizes)

    def to_text(self, limit: int = 20) -> str:
        """The totals and the first ``limit`` files, for display."""
        lines = [
            f"{shown(self.table_root)} at version {self.version}"
            + (f" where {shown(self.where)}" if self.where else ""),
            f"{self.num_kept} of {self.num_files} files read, {self.kept_bytes:,} of {self.total_bytes:,} bytes",
        ]
        for row in self.files.slice(0, limit).to_pylist():
            verdict = "read" if row["kept"] else f"skipped: {shown(row['ruled_out_by'] or 'the predicate as a whole')}"
            lines.append(f"  {shown(row['path'])}  {verdict}")
        if self.num_files > limit:
            lines.append(f"  ... and {self.num_files - limit} more")
        return "\n".join(lines)

    __str__ = to_text

    def _repr_html_(self, limit: int = 20) -> str:
        rows = [
            (row["path"], row["size_bytes"], "read" if row["kept"] else "skipped", row["ruled_out_by"])
            for row in self.files.slice(0, limit).to_pylist()
        ]
        first, second = self.to_text(limit=0).splitlines()[:2]
        left = max(0, self.num_files - limit)
        return html_table(("file", "bytes", "", "ruled out by"), rows, caption=f"{first}: {second}", more=left)


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
    verify_page_checksums: bool = True,
) -> Scan:
    """Plan a read of a snapshot.

    Args:
        where: a Spark SQL predicate; the scan returns the rows for which it is true.
        pushed: filters that Spark applies to the rows itself; they only skip files and row groups.
        columns: names, nested by dots.
        schema: a user's schema instead of ``columns``.
        row_position: append the columns ``_file_path, _row_position``.
        row_ids: append the columns ``_row_id, _row_commit_version``.
        verify_page_checksums: verify the checksums of Parquet pages, where present.
    Raises: ExpressionError, ColumnNotFoundError, UserError, UnsupportedFeatureError.
    """
    configuration = snapshot.configuration
    return Scan(
        snapshot,
        select_rows(
            Relation.of(configuration),
            where=where,
            columns=columns,
            schema=schema,
            pushed=pushed,
            time_zone=time_zone,
            row_position=row_position,
            row_ids=configuration.row_id_columns() if row_ids else None,
            storage_options=task_options(snapshot.storage, storage_options),
            verify_page_checksums=verify_page_checksums,
        ),
    )
