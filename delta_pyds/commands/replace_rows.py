"""Takes the rows out of a table for which a predicate is true: the first half of ``replaceWhere``.

Protocol: "Deletion Vectors", "Row Tracking", "Add File and Remove File".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from pyroaring import BitMap64

from delta_pyds.columnar.roaring import serialize
from delta_pyds.commands.change_files import write_changes
from delta_pyds.commands.scan_files import scan_file
from delta_pyds.data.deletion_vector import load_deletion_vector
from delta_pyds.data.deletion_vector_writer import write_deletion_vectors
from delta_pyds.data.reader import read
from delta_pyds.data.writer import DataFileWriter
from delta_pyds.protocol.actions import AddCDCFile, AddFile, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor, z85_encode
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.handoff import ROW_POSITION_COLUMN, ScanState
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.protocol.write_handoff import WriteState, WrittenFile
from delta_pyds.table.live_files import live_files, removal
from delta_pyds.table.scan import Scan, plan_scan
from delta_pyds.table.snapshot import Snapshot

# tasks count their partitions from 0: files of the driver must not look like one of theirs
_DRIVER_PARTITION = 0


@dataclass
class Replacement:
    """What leaves the table, and the rows of the same files that stay, as new files or deletion vectors."""

    removes: list[RemoveFile] = field(default_factory=list)
    rewritten: list[WrittenFile] = field(default_factory=list)
    marked: list[AddFile] = field(default_factory=list)
    changes: list[AddCDCFile] = field(default_factory=list)
    deleted_rows: int = 0
    copied_rows: int = 0


@dataclass(frozen=True)
class _Marked:
    """A file of which some rows leave. ``gone``: positions of all rows that are then deleted."""

    file: AddFile
    gone: BitMap64
    num_rows: int


def remove_rows(
    snapshot: Snapshot, scan: Scan, state: WriteState, written: Sequence[WrittenFile], *, now_ms: int
) -> Replacement:
    """Plan the removal of the rows that the scan's predicate selects.

    A file all of whose rows leave is removed; of another one the rows that
    leave are marked in a deletion vector, where the table has them enabled, or
    else the rows that stay are written to new files, with their row ids. Then,
    if the table's change data feed is on, readers could not tell the change
    from the files: change files say it, of the rows that leave and of the new
    ones, which are in ``written``.
    Nothing is committed: what is written here is orphaned without a commit.
    """
    result = Replacement()
    leaving: list[AddFile] = []
    partial: list[_Marked] = []
    for file in live_files(scan):
        selected = _selected(scan, file)
        if not selected:
            continue
        gone = selected | _deleted(snapshot, file)
        num_rows = _num_rows(scan, file)
        result.deleted_rows += len(selected)
        result.removes.append(removal(file, deletion_timestamp_ms=now_ms, data_change=True))
        leaving.append(file)
        if len(gone) < num_rows:
            partial.append(_Marked(file, gone, num_rows))
    properties = snapshot.configuration.properties
    if partial and properties.deletion_vectors and snapshot.configuration.supports("deletionVectors"):
        result.marked = _mark(snapshot, partial, state)
    elif partial:
        _rewrite(snapshot, partial, state, result)
        if properties.change_data_feed:
            result.changes = write_changes(scan, state, leaving, written)
    return result


def _selected(scan: Scan, file: AddFile) -> BitMap64:
    """Positions of the live rows for which the predicate is true; only the predicate's columns are decoded."""
    state = replace(scan.state, output=StructType(()), row_position=True, row_ids=None)
    positions = BitMap64()
    for batch in read(state, scan_file(file, state, file.deletion_vector)):
        positions.update(batch.column(ROW_POSITION_COLUMN).to_pylist())
    return positions


def _deleted(snapshot: Snapshot, file: AddFile) -> BitMap64:
    if file.deletion_vector is None:
        return BitMap64()
    return load_deletion_vector(snapshot.storage, snapshot.table_root, file.deletion_vector).positions


def _num_rows(scan: Scan, file: AddFile) -> int:
    """All rows of the file, deleted ones too: counted, for statistics are optional."""
    state = replace(
        scan.state, output=StructType(()), inputs=StructType(()), predicate=None, skip=None, row_position=True
    )
    return sum(batch.num_rows for batch in read(state, scan_file(file, state, None)))


def _mark(snapshot: Snapshot, partial: list[_Marked], state: WriteState) -> list[AddFile]:
    vectors = write_deletion_vectors(
        snapshot.storage,
        snapshot.table_root,
        [m.gone for m in partial],
        random_prefix_length=state.random_prefix_length,
    )
    return [
        msgspec.structs.replace(
            marked.file,
            deletion_vector=vector,
            data_change=True,
            stats=_wide_statistics(marked.file.stats, marked.num_rows),
        )
        for marked, vector in zip(partial, vectors, strict=True)
    ]


def _wide_statistics(statistics: str | None, num_rows: int) -> str:
    """The same statistics, no longer tight. Protocol: "Per-file Statistics"."""
    # raw: a decimal that went through a float would not be the same bound
    try:
        known = decode_json(statistics, dict[str, msgspec.Raw]) if statistics else {}
    except InvalidJSONError:
        known = {}  # they said nothing before either
    known["numRecords"] = msgspec.Raw(str(num_rows).encode())
    known["tightBounds"] = msgspec.Raw(b"false")
    return msgspec.json.encode(known).decode()


def _rewrite(snapshot: Snapshot, partial: list[_Marked], state: WriteState, result: Replacement) -> None:
    tracked = snapshot.configuration.has_row_tracking
    scan = plan_scan(snapshot, storage_options=state.storage_options, time_zone=state.time_zone)
    # asked for here: the names that a user's scan gives to row ids may be columns of this table
    staying = replace(scan.state, row_ids=snapshot.configuration.row_id_columns() if tracked else None)
    # rows that stay are read in the table's present schema, which a merged one only extends
    target = replace(state, schema=_with_row_ids(snapshot) if tracked else snapshot.schema)
    names = target.schema.names
    writer = DataFileWriter(target, _DRIVER_PARTITION)
    try:
        for marked in partial:
            for batch in _staying(staying, marked):
                writer.write(batch.rename_columns(list(names)))
                result.copied_rows += batch.num_rows
        result.rewritten = list(writer.close())
    except BaseException:
        writer.discard()
        raise


def _staying(state: ScanState, marked: _Marked) -> Iterator[pa.RecordBatch]:
    data = serialize(marked.gone)
    inline = DeletionVectorDescriptor("i", z85_encode(data), len(data), len(marked.gone))
    yield from read(state, scan_file(marked.file, state, inline))


def _with_row_ids(snapshot: Snapshot) -> StructType:
    """The schema with the columns that keep a moved row's id and commit version. Protocol: "Row Tracking"."""
    columns = snapshot.configuration.row_id_columns()
    extra = [StructField(name, LONG) for name in (columns.row_id, columns.row_commit_version) if name is not None]
    return StructType((*snapshot.schema.fields, *extra))
