"""The rows that a command changes, on their way to the tasks that write them and mark those that they replace.

Whatever finds the rows (a query of Spark, or tasks of ours) hands them over as batches with the columns below; one
writer takes them, whatever the command. Small, picklable, free of the log's classes and of Arrow.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from delta_pyds.tasks.scan_state import RowIdColumns
from delta_pyds.tasks.write_state import ColumnSource, WriteState

# Which row of the table a row was: its file, by the name that the finder gave it, and its position there. Null for a
# row that is inserted.
FILE_COLUMN: Final = "_deltapy_file"
POSITION_COLUMN: Final = "_deltapy_position"
# What becomes of it: an ``Action``.
ACTION_COLUMN: Final = "_deltapy_action"
# The number of the source's row, where a merge counts them; its row id, where the table tracks rows.
SOURCE_ROW_COLUMN: Final = "_deltapy_source_row"
ROW_ID_COLUMN: Final = "_deltapy_row_id"
# By position in the table's schema: the values that the row gets, and those that it had (for change files).
NEW_PREFIX: Final = "_deltapy_new_"
OLD_PREFIX: Final = "_deltapy_old_"
# By position in ``WriteState.checks``: whether the row passes a rule that Spark has evaluated.
CHECK_PREFIX: Final = "_deltapy_check_"


class Action(IntEnum):
    """What a command does with a row. The three first are rows that the condition of a merge matches."""

    KEEP = 0  # matched, and no clause is satisfied
    UPDATE = 1
    DELETE = 2
    INSERT = 3
    UPDATE_NOT_MATCHED_BY_SOURCE = 4
    DELETE_NOT_MATCHED_BY_SOURCE = 5


@dataclass(frozen=True)
class ChangeState:
    """All that a task needs that takes changed rows.

    ``write``: the table as the command leaves it: its columns, its rules, how its files are written.
    ``change_data``: change files are written, with all changes of the commit: the rows bring the old values too.
    ``row_id_columns``: where the table tracks rows, the physical names of the columns that keep a moved row's id and
    commit version. ``base_row_ids``: of the files, by their name in ``FILE_COLUMN``, for rows that bring no id.
    ``one_match``: two rows of the source on one row of the table are an error. ``insert_columns``: how inserted rows
    get their columns, where not as ``write.columns`` says: a default, or an identity value, is for new rows alone.
    """

    write: WriteState
    change_data: bool = False
    row_id_columns: RowIdColumns | None = None
    base_row_ids: Mapping[str, int] = field(default_factory=dict)
    one_match: bool = False
    insert_columns: tuple[ColumnSource, ...] | None = None
