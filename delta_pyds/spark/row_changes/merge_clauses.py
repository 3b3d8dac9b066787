"""The clauses of a merge, as plain values in the order in which the user gave them.

Invariant of a checked list: of each kind only the last clause may lack a condition, for it would take all rows from
those behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from delta_pyds.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import Column

ClauseKind = Literal["matched", "not_matched", "not_matched_by_source"]
ClauseAction = Literal["update", "delete", "insert"]

_POSSIBLE: dict[ClauseKind, tuple[ClauseAction, ...]] = {
    "matched": ("update", "delete"),
    "not_matched": ("insert",),
    "not_matched_by_source": ("update", "delete"),
}
_WORDS: dict[ClauseKind, str] = {
    "matched": "MATCHED",
    "not_matched": "NOT MATCHED",
    "not_matched_by_source": "NOT MATCHED BY SOURCE",
}


@dataclass(frozen=True)
class MergeClause:
    """What becomes of the rows of one kind that satisfy a condition.

    ``condition``: None takes every row of the kind. ``assignments``: by (nested) column name of the table, the new
    value, as SQL text or Column; None is ``*``, all columns. A delete has none.
    """

    kind: ClauseKind
    action: ClauseAction
    condition: Column | str | None = None
    assignments: Mapping[str, Column | str] | None = None

    @property
    def is_star(self) -> bool:
        """Whether all columns are assigned from the source's columns of the same names."""
        return self.action != "delete" and self.assignments is None


def check_clauses(clauses: Sequence[MergeClause]) -> None:
    """Refuse a list that is no merge.

    Raises: UserError with DELTA_MERGE_MISSING_WHEN for none, DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION and its like
        for a clause without a condition before another one of its kind.
    """
    if not clauses:
        raise UserError(
            "a merge needs at least one clause: say with whenMatchedUpdate, whenNotMatchedInsert or another one what "
            "becomes of rows.",
            code="DELTA_MERGE_MISSING_WHEN",
        )
    for kind, words in _WORDS.items():
        of_kind = [clause for clause in clauses if clause.kind == kind]
        for clause in of_kind:
            if clause.action not in _POSSIBLE[kind] or (kind == "not_matched_by_source" and clause.is_star):
                raise UserError(f"WHEN {words} {clause.action.upper()} is no clause of a merge.")
        if any(clause.condition is None for clause in of_kind[:-1]):
            raise UserError(
                f"of the WHEN {words} clauses of a merge only the last one may lack a condition: those behind it "
                "would never see a row. Give the others a condition.",
                code=f"DELTA_NON_LAST_{words.replace(' ', '_')}_CLAUSE_OMIT_CONDITION",
            )
