"""Changes of a table by ``deltalake`` (delta-rs), as a writer of a drawn history."""

from __future__ import annotations

import deltalake
import pyarrow as pa
from deltalake import CommitProperties
from deltalake.exceptions import CommitFailedError, DeltaError

from delta_pyds.columnar.schema import arrow_schema
from tests.concurrency.changing_process import Changer
from tests.concurrency.changing_workload import LAYOUT_STEPS, Change, RefusedError
from tests.support.row_model.expressions import Expression
from tests.support.row_model.steps import BASE, Append, Delete, Merge, Rows, Update, with_columns
from tests.support.table_writes import struct

# in the text of what it raises for a row that breaks a constraint
_VIOLATED = "failed validation"


class DeltalakeChanger(Changer):
    """It does not tell which version it made, so the log is asked."""

    def __call__(self, step: Change, told: str) -> int | None:
        """As of ``Changer``."""
        # its own name for what the reference calls userMetadata
        properties = CommitProperties(custom_metadata={"userMetadata": told})
        table = deltalake.DeltaTable(self._table)
        self._pause()
        try:
            self._take(table, step, properties)
        except CommitFailedError as error:
            raise RefusedError(str(error), None) from error
        except DeltaError as error:
            if _VIOLATED not in str(error):
                raise
            return None
        return self.committed(told)

    def _take(self, table: deltalake.DeltaTable, step: Change, properties: CommitProperties) -> None:
        if isinstance(step, Append):
            rows = [row for task in step.tasks for row in task]
            deltalake.write_deltalake(table, _table_of(tuple(rows)), mode="append", commit_properties=properties)
        elif isinstance(step, Delete):
            table.delete(_text_of(step.condition), commit_properties=properties)
        elif isinstance(step, Update):
            assignments = {name: value.sql() for name, value in step.assignments}
            table.update(updates=assignments, predicate=_text_of(step.condition), commit_properties=properties)
        elif isinstance(step, Merge):
            merge(table, step, properties)
        else:
            # its optimize commits also if others replaced the files that it read, and their rows are there twice
            assert isinstance(step, LAYOUT_STEPS)


def merge(table: deltalake.DeltaTable, step: Merge, properties: CommitProperties) -> None:
    merger = table.merge(
        _table_of(step.rows), step.condition.sql(), source_alias="s", target_alias="t", commit_properties=properties
    )
    for clause in step.matched:
        if clause.action == "delete":
            merger = merger.when_matched_delete(_text_of(clause.condition))
        else:
            given = {name: value.sql() for name, value in clause.assignments or ()}
            merger = merger.when_matched_update(given, _text_of(clause.condition))
    for clause in step.not_matched:
        merger = merger.when_not_matched_insert_all(_text_of(clause.condition))
    merger.execute()


def _text_of(condition: Expression | None) -> str | None:
    return None if condition is None else condition.sql()


def _table_of(rows: Rows) -> pa.Table:
    return pa.Table.from_pylist(with_columns(rows, list(BASE)), schema=arrow_schema(struct(BASE)))
