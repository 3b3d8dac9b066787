"""Rows that a command changes become bitmaps of positions, new files and change files: one writer for every command.

    rows = ChangedRows(state, session)
    try:
        for batch in batches:      # columns of tasks.changed_rows
            rows.take(batch)
        output = rows.close()
    except BaseException:
        rows.discard()
        raise

What the columns of a batch mean (any may come in any order; others are ignored):

- FILE_COLUMN (int32 number or string name, null for inserts), POSITION_COLUMN (int64, null for inserts), ACTION_COLUMN
  (int8): always there.
- NEW_PREFIX+i: the i-th column of ``state.write.schema``, for rows that are written (UPDATE, INSERT,
  UPDATE_NOT_MATCHED_BY_SOURCE); anything for others. Where ``state.write.columns[i].input`` is None the column need
  not come: a default, a generated or an identity column is made here. ``input`` may be any number: values are taken
  from NEW_PREFIX+i. ``state.insert_columns``, where given, takes the place of ``write.columns`` for inserted rows.
- OLD_PREFIX+i: the i-th column as it was, where ``state.change_data``; for inserts anything. One that does not come
  is null.
- ROW_ID_COLUMN: the row's id; null for inserts. Without it ``state.base_row_ids[file] + position``.
- SOURCE_ROW_COLUMN: gathered of the actions KEEP, UPDATE, DELETE into ``TaskOutput.matched_source_rows``.
- CHECK_PREFIX+i: boolean, whether a written row keeps ``state.write.checks[i]``; our own evaluator then does not.

``TaskOutput.counts`` has for each action its number of rows. ``found.positions``: UPDATE, DELETE, and both by source;
``found.kept``: KEEP, only where ``state.one_match``.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

import pyarrow as pa

from delta_pyds.data.write.task_session import TaskSession
from delta_pyds.tasks.changed_rows import ChangeState
from delta_pyds.tasks.write_state import TaskOutput


class ChangedRows:
    """The changed rows of one task."""

    def __init__(self, state: ChangeState, session: TaskSession) -> None:
        raise NotImplementedError

    def take(self, batch: pa.RecordBatch) -> None:
        raise NotImplementedError

    def close(self) -> TaskOutput:
        raise NotImplementedError

    def discard(self) -> None:
        raise NotImplementedError
