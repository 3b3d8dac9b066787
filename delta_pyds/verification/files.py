"""The data files of the latest version: they exist, are readable, have the table's schema, and fit the log.

The change data files of all commits: each is readable, and each row has a change type.

Invariant: files of any size are read in batches, without the statistics of their row groups.

Protocol: "Data Files", "Consistency Between Table Metadata and Data Files", "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.columnar.parquet_footer import open_parquet
from delta_pyds.columnar.rows import column_at
from delta_pyds.columnar.schema import arrow_type
from delta_pyds.data.read.change_type import CHANGE_TYPES
from delta_pyds.data.read.deletion_vector import DeletedRows, load_deletion_vector
from delta_pyds.data.read.reader import read
from delta_pyds.errors import DeletionVectorError, FileNotFoundInStorageError, ProtocolError, SchemaMismatchError
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddCDCFile, AddFile
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.partition_values import parse_partition_value
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.schema import (
    FLOAT,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
    STRING,
    TIMESTAMP,
    StructField,
    StructType,
    nullable_throughout,
)
from delta_pyds.protocol.temporal import lacks_zone
from delta_pyds.protocol.type_changes import recorded_changes
from delta_pyds.storage.base import Storage
from delta_pyds.storage.parquet_ends import ParquetEnds
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ROW_ID_COLUMN, RowIdColumns, ScanFile, ScanState
from delta_pyds.verification.file_schema import check_file_schema
from delta_pyds.verification.report import Findings
from delta_pyds.verification.rows import RowChecks
from delta_pyds.verification.state import TableState
from delta_pyds.verification.statistics import ColumnPaths, StatisticsCheck

# 8 bytes each; beyond this number of unique values, only the extremes are kept
_MOST = 20_000_000
_NO_COLUMNS = StructType(())


class FileChecks:
    """Checks every live file of a state. ``num_files`` and ``num_rows``: the files and live rows that were read."""

    def __init__(
        self,
        storage: Storage,
        table_root: str,
        storage_options: Mapping[str, Any],
        state: TableState,
        findings: Findings,
        time_zone: str | None = None,
    ) -> None:
        self._storage = storage
        self._ends = ParquetEnds("footers")
        self._root = table_root
        self._options = storage_options
        self._state = state
        self._view = state.view
        self._findings = findings
        self._paths = ColumnPaths(self._view.data_schema)
        self._rows = RowChecks(self._view, findings, time_zone)
        self._identities = {f.name: _UniqueValues() for f in self._view.columns if IDENTITY_STEP in f.metadata}
        self._row_ids = _UniqueValues()
        self.num_files = 0
        self.num_rows = 0

    def run(self) -> None:
        if self._view.schema is None:
            self._findings.warning(
                "files.not-checked", self._state.version, "data files cannot be checked without a schema."
            )
            return
        live = self._state.live.values()
        with step("verification of files", self._root, total=len(live)) as advance:
            for add in live:
                try:
                    with self._findings.guard("file.unreadable", add.path):
                        self._file(add, resolve_data_path(self._root, add.path))
                finally:
                    self.num_files += 1
                    advance(1)
        self._finish()

    def _file(self, add: AddFile, path: str) -> None:
        try:
            size = self._storage.status(path).size_bytes
        except FileNotFoundInStorageError:
            self._findings.error("file.missing", path, "the data file does not exist.")
            return
        if size != add.size:
            self._findings.error("file.size", path, f"the data file has {size} bytes, but the log says {add.size}.")
        num_rows, materialised = self._footer(path, size)
        deleted = self._deleted(add, path, num_rows)
        try:
            self._content(add, path, size, num_rows, deleted)
            for field in materialised:
                self._materialised(add, path, size, field)
        except SchemaMismatchError as e:
            self._findings.error("file.schema", path, e.message)

    def _footer(self, path: str, size_bytes: int) -> tuple[int, list[StructField]]:
        """The number of rows of the file, and the partition columns that it holds."""
        source = self._ends.open(self._storage, path, size_bytes)
        try:
            parquet = open_parquet(source)
            schema = parquet.schema_arrow
            check_file_schema(self._view, parquet, path, self._findings)
            names = set(schema.names)
            return int(parquet.metadata.num_rows), [f for f in self._view.partition_fields if f.physical_name in names]
        finally:
            source.close()

    def _deleted(self, add: AddFile, path: str, num_rows: int) -> DeletedRows | None:
        if add.deletion_vector is None:
            return None
        try:
            deleted = load_deletion_vector(self._storage, self._root, add.deletion_vector)
            deleted.check_within(num_rows, path)
        except (DeletionVectorError, FileNotFoundInStorageError) as e:
            self._findings.error("file.deletion-vector", path, e.message)
            return None
        return deleted

    def _scan(
        self, columns: StructType, partitions: tuple[StructField, ...], row_ids: RowIdColumns | None
    ) -> ScanState:
        return ScanState(
            table_root=self._root,
            storage_options=self._options,
            output=columns,
            inputs=_NO_COLUMNS,
            partition_columns=tuple(f.physical_name for f in partitions),
            column_mapping_mode=self._view.mapping_mode,
            row_ids=row_ids,
        )

    def _content(self, add: AddFile, path: str, size: int, num_rows: int, deleted: DeletedRows | None) -> None:
        view = self._view
        statistics = StatisticsCheck(add, self._paths, num_rows, path, self._findings)
        partitions = tuple(f for f in view.partition_fields if self._is_readable(add, f))
        # all nulls in NOT NULL columns are found here
        columns = StructType(
            tuple(
                StructField(f.name, nullable_throughout(f.data_type), True, f.metadata)
                for f in view.columns
                if f in partitions or f not in view.partition_fields
            )
        )
        row_ids = None
        if view.properties.row_tracking and view.supports(Feature.ROW_TRACKING) and add.base_row_id is not None:
            p = view.properties
            row_ids = RowIdColumns(p.materialized_row_id_column, None)
        values = tuple((add.partition_values or {}).get(f.physical_name) for f in partitions)
        file = ScanFile(path, size, values, base_row_id=add.base_row_id, default_row_commit_version=0)
        first = 0
        for batch in read(self._scan(columns, partitions, row_ids), file):
            live = None if deleted is None else deleted.live(first, batch.num_rows)
            statistics.update(batch, live)
            rows = batch if live is None else batch.filter(live)
            self._rows.check(rows, path)
            self._remember(rows)
            self.num_rows += rows.num_rows
            first += batch.num_rows
        statistics.finish()

    def _is_readable(self, add: AddFile, field: StructField) -> bool:
        """Whether the partition value is valid. An invalid one is a finding of its commit, and hides no other."""
        try:
            parse_partition_value((add.partition_values or {}).get(field.physical_name), field.data_type)
        except ProtocolError:
            return False
        return True

    def _materialised(self, add: AddFile, path: str, size: int, field: StructField) -> None:
        """Check that a partition column in the file has the log's value in every row."""
        text = (add.partition_values or {}).get(field.physical_name)
        if not self._is_readable(add, field):
            return
        # a timestamp without a zone depends on the writer's session, which is unknown
        zoned = field.data_type != TIMESTAMP or not text or not lacks_zone(text)
        wanted = _values(text, field)
        relaxed = StructField(field.name, field.data_type, True, field.metadata)
        for batch in read(self._scan(StructType((relaxed,)), (), None), ScanFile(path, size)):
            found = pc.unique(batch.column(0)).to_pylist() if zoned else []
            if all(any(_equal(value, one) for one in wanted) for value in found):
                continue
            self._findings.error(
                "file.partition-value",
                path,
                f"the column {field.name} holds other values than the log's {text!r} for the file.",
            )
            return

    def _remember(self, rows: pa.RecordBatch) -> None:
        for name, values in self._identities.items():
            if (found := column_at(rows, (name,))) is not None:
                values.put(found)
        if (found := column_at(rows, (ROW_ID_COLUMN,))) is not None:
            self._row_ids.put(found)

    def _finish(self) -> None:
        where = self._state.version
        if self._row_ids.duplicates():
            self._findings.error("row-tracking.duplicate", where, f"{self._row_ids.duplicates()} rows share a row id.")
        for f in self._view.columns:
            values = self._identities.get(f.name)
            if values is None:
                continue
            if values.duplicates():
                self._findings.warning(
                    "identity.duplicate",
                    where,
                    f"{values.duplicates()} values of the identity column {f.name} are not unique.",
                )
            mark, step = f.metadata.get(IDENTITY_HIGH_WATER_MARK), f.metadata.get(IDENTITY_STEP)
            if f.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) or not isinstance(step, int) or not values.count:
                continue
            last = values.highest if step > 0 else values.lowest
            if not isinstance(mark, int) or (last > mark if step > 0 else last < mark):
                self._findings.error(
                    "identity.high-water-mark",
                    where,
                    f"the high water mark of {f.name} is {mark}, but a row has {last}.",
                )


def _values(text: str | None, field: StructField) -> list[Any]:
    """The values that a file may have for the log's text: also the nearest float, if the column was a float before."""
    types = [field.data_type]
    types += [FLOAT] if any(change.get("fromType") == "float" for change in recorded_changes(field)) else []
    return [pa.scalar(parse_partition_value(text, one), arrow_type(one)).as_py() for one in types]


def _equal(value: Any, wanted: Any) -> bool:
    """Whether both are equal: NaN equals itself, and an empty text or binary value is null in the log."""
    return value == wanted or (value != value and wanted != wanted) or (value in ("", b"") and wanted is None)


class _UniqueValues:
    """Counts repeated values, of at most 20 million values."""

    def __init__(self) -> None:
        self._chunks: list[pa.Array] = []
        self._duplicates: int | None = None
        self.count = 0
        self.lowest = 0
        self.highest = 0

    def put(self, values: pa.Array) -> None:
        values = values.drop_null().cast(pa.int64())
        if not len(values):
            return
        extremes = pc.min_max(values).as_py()
        self.lowest = min(extremes["min"], self.lowest) if self.count else extremes["min"]
        self.highest = max(extremes["max"], self.highest) if self.count else extremes["max"]
        self.count += len(values)
        if self.count > _MOST:
            self._chunks = []
        else:
            self._chunks.append(values)

    def duplicates(self) -> int:
        """The number of values minus the number of distinct ones, once all values are in."""
        if self._duplicates is None:
            values = pa.chunked_array(self._chunks, pa.int64())
            self._duplicates = len(values) - len(pc.unique(values))
        return self._duplicates


def check_change_data(
    table_root: str,
    storage_options: Mapping[str, Any],
    change_files: Sequence[tuple[int, AddCDCFile]],
    findings: Findings,
) -> None:
    """Check the change types of each file. A missing file is not a finding, because VACUUM deletes such files.

    ``change_files``: paths with the versions whose commits name them.
    """
    state = ScanState(
        table_root=table_root,
        storage_options=storage_options,
        output=StructType((StructField(CHANGE_TYPE_COLUMN, STRING),)),
        inputs=StructType(()),
        partition_columns=(),
        column_mapping_mode="none",  # this column has one name in every mode
    )
    for version, file in change_files:
        with findings.guard("cdc.unreadable", file.path):
            path = resolve_data_path(table_root, file.path)
            found: set[str] = set()
            try:
                for batch in read(state, ScanFile(path, file.size, change_data=True)):
                    found.update(pc.unique(batch.column(0)).to_pylist())
            except FileNotFoundInStorageError:
                continue
            strange = sorted(found.difference(CHANGE_TYPES))
            if strange:
                shown = ", ".join(map(repr, strange[:5]))
                findings.warning(
                    "cdc.change-type",
                    path,
                    f"the commit {version} has rows with the change type {shown}, which the protocol does not define.",
                )
