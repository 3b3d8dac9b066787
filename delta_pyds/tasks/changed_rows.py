"""Changed rows of a command, for the tasks that write the new rows and mark the replaced ones.

The rows are found by a query of Spark or by our own tasks. They come as batches with the columns below, and one writer
handles those of every command. Small, picklable, without classes of the log and Arrow.

Protocol: "Deletion Vectors", "Change Data Files", "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from delta_pyds.tasks.scan_state import RowIdColumns
from delta_pyds.tasks.write_state import ColumnSource, WriteState

# The original row in the table: its file, as a number or a name, and its position in the file. Null for inserted rows.
FILE_COLUMN: Final = "_deltapy_file"
POSITION_COLUMN: Final = "_deltapy_position"
# The ``Action`` on the row.
ACTION_COLUMN: Final = "_deltapy_action"
# The number of the source's row, if a merge counts them; the row id, if the table tracks rows.
SOURCE_ROW_COLUMN: Final = "_deltapy_source_row"
ROW_ID_COLUMN: Final = "_deltapy_row_id"
# By position in the table's schema: the new values of the row, and the old ones (for change files).
NEW_PREFIX: Final = "_deltapy_new_"
OLD_PREFIX: Final = "_deltapy_old_"
# By position in ``WriteState.checks``: whether the row passes a check that Spark evaluates.
CHECK_PREFIX: Final = "_deltapy_check_"


class Action(IntEnum):
    """The action of a command on a row. KEEP, UPDATE and DELETE are for rows that match the condition of a merge."""

    KEEP = 0  # matched, but no clause applies
    UPDATE = 1
    DELETE = 2
    INSERT = 3
    UPDATE_NOT_MATCHED_BY_SOURCE = 4
    DELETE_NOT_MATCHED_BY_SOURCE = 5


@dataclass(frozen=True)
class ChangeState:
    """The state of a task that writes changed rows.

    ``write``: the table after the command: its columns and checks, and the settings of new files.
    ``change_data``: change files with all changes of the commit are written; the rows then have the old values too.
    ``row_id_columns``: if the table tracks rows, the physical names of the columns with a moved row's id and commit
    version. ``base_row_ids``: the files' base row ids by their name in ``FILE_COLUMN``, for rows without an id.
    ``one_match``: two rows of the source that match one row of the table are an error. ``insert_columns``: the column
    sources of inserted rows, if they differ from ``write.columns``: defaults and identity values are for new rows only.
    ``with_origins``: written files get the origins of their rows, for a command that loses a race.
    ``most_origin_bytes``: a task whose origins take more has none; None for no limit.
    ``dry_run``: rows are found and counted, and nothing is written.
    """

    write: WriteState
    change_data: bool = False
    row_id_columns: RowIdColumns | None = None
    base_row_ids: Mapping[str, int] = field(default_factory=dict)
    one_match: bool = False
    insert_columns: tuple[ColumnSource, ...] | None = None
    with_origins: bool = False
    most_origin_bytes: int | None = None
    dry_run: bool = False
