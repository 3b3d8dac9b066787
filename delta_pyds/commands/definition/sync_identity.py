"""The high-water mark of an identity column, set from existing values.

Invariant: the mark only moves in the direction of the step. No other commit may add or remove files before this one.

Protocol: "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Callable

from delta_pyds.commands.definition.change import DefinitionChange
from delta_pyds.commands.definition.columns import logged
from delta_pyds.errors import UserError
from delta_pyds.table.definition.identity import identity_column, synced_mark, with_high_water_marks
from delta_pyds.table.definition.schema_paths import Path, field_at, spelled_path
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.scan.log_answers import log_answers
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.adoption import IDENTITY_TAG
from delta_pyds.table.transaction.commit_info import Operation


def sync_identity(snapshot: Snapshot, path: Path, scanned: Callable[[str, str], int | None]) -> DefinitionChange:
    """Set the mark to the furthest value. ``scanned``: reads the ``min`` or ``max`` of a column if the log lacks it.

    Raises: ColumnNotFoundError; UserError (DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN); ExpressionError
        (ARITHMETIC_OVERFLOW); errors of reading the table.
    """
    metadata, table = snapshot.configuration.metadata, snapshot.table_root
    spelled = spelled_path(snapshot.schema, path, table)
    field = field_at(snapshot.schema, spelled)
    identity = identity_column(field, f" of table {table}") if len(spelled) == 1 else None
    if identity is None:
        raise UserError(
            f"the column '{show_path(spelled)}' of table {table} is not an identity column, so it has no "
            "high-water mark.",
            code="DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
            table=table,
            column=show_path(spelled),
        )
    kind = "max" if identity.step > 0 else "min"
    answers = log_answers(snapshot, [(kind, field.name)])
    furthest = scanned(kind, field.name) if answers is None else answers[0]
    mark = None if furthest is None else synced_mark(identity, furthest, field.name)
    return DefinitionChange(
        Operation("CHANGE COLUMN", {"column": logged(field, spelled)}),
        metadata if mark is None else with_high_water_marks(metadata, {field.name: mark}),
        depends_on_rows=True,
        tags={IDENTITY_TAG: "true"},
    )
