"""Tombstones, which vacuum still needs, as Arrow rows.

Protocol: "Action Reconciliation", "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from delta_pyds.log.checkpoint_part import BATCH_ROWS
from delta_pyds.log.checkpoint_reader import Checkpoint
from delta_pyds.log.file_table import TOMBSTONE_COLUMNS, Touched, UntouchedRows, conform_files, files_to_batch
from delta_pyds.protocol.actions import RemoveFile

_COLUMNS = tuple(TOMBSTONE_COLUMNS)


def checkpoint_tombstones(checkpoint: Checkpoint, touched: Touched, since_ms: int) -> Iterator[pa.RecordBatch]:
    """Yield the tombstones of a checkpoint that no later commit touched and that have not expired.

    A tombstone without a time counts as removed at the epoch, as in the reference.
    """
    yield from commit_tombstones(checkpoint.inline_removes(touched), since_ms)
    untouched = UntouchedRows(touched)
    for part in checkpoint.file_parts:
        with part.explaining():
            part.check_files("remove", set())
            for group in part.row_groups_with("remove"):
                for remove in part.rows("remove", group, _COLUMNS):
                    mask = untouched.mask(remove)
                    batch = conform_files(remove if mask is None else remove.filter(mask), _COLUMNS)
                    times = batch.column("deletionTimestamp").fill_null(0)
                    batch = batch.filter(pc.greater_equal(times, pa.scalar(since_ms, pa.int64())))
                    if len(batch):
                        yield batch


def commit_tombstones(removes: Sequence[RemoveFile], since_ms: int) -> Iterator[pa.RecordBatch]:
    """The same of removes that came as objects."""
    kept = [r for r in removes if (r.deletion_timestamp or 0) >= since_ms]
    for start in range(0, len(kept), BATCH_ROWS):
        yield files_to_batch(kept[start : start + BATCH_ROWS], _COLUMNS)
