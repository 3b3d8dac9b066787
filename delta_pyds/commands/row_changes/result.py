"""What a command that changes rows tells its caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WhereRun = Literal["process", "tasks", "spark"]


@dataclass(frozen=True)
class Place:
    """Where a command found its rows, and why there, as a sentence for the user.

    ``process``: our evaluator in the user's process. ``tasks``: our evaluator in tasks of the session. ``spark``: a
    query of the session.
    """

    where_run: WhereRun
    reason: str


@dataclass(frozen=True)
class RowChangeResult:
    """``version``: that the command made, None where nothing changed. ``num_files_read``: of the candidate files."""

    version: int | None
    num_affected_rows: int
    num_updated_rows: int
    num_deleted_rows: int
    num_inserted_rows: int
    num_files_read: int
    place: Place
