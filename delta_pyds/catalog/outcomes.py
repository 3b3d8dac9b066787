"""The outcome of a proposal or a registration, from the catalog's answer or error; reasons for refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from delta_pyds.catalog.answers import cause_of, message_of, require_outcome
from delta_pyds.catalog.interface import (
    Catalog,
    CommitOutcome,
    CommitProposal,
    Conflict,
    OutcomeUnknown,
    Ratified,
    Refused,
)
from delta_pyds.errors import DeltaError, NothingWrittenError


class NeverCommittedError(Exception):
    """The commit is not in the table and cannot become a version later, so its staged file can be deleted."""

    def __init__(self, error: DeltaError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True)
class NotReached:
    """The catalog certainly accepted nothing, but may accept a repeated call."""

    reason: str


@dataclass(frozen=True)
class Raised(OutcomeUnknown):
    """The call raised an error that leaves the outcome unknown. ``cause``: the cause of the final error."""

    cause: Exception | None = None


Answer: TypeAlias = CommitOutcome | NotReached


def answer_of(catalog: Catalog, method: str, call: Callable[[], CommitOutcome]) -> Answer:
    """The answer of the catalog's method that ``call`` calls.

    Raises: CatalogAnswerError for a return value that is not an outcome.
    """
    try:
        outcome = call()
    except NothingWrittenError as error:
        return NotReached(error.message)
    except Exception as error:  # clients of catalogs may raise any error
        return Raised(message_of(error), cause_of(error))
    return require_outcome(catalog, method, outcome)


def refused_for_another(proposal: CommitProposal) -> Refused:
    """The answer if another table has the name now, or no table has it."""
    return Refused(
        f"the catalog no longer has a table {proposal.table_name} with the id {proposal.table_id}: it was dropped, "
        "renamed or replaced"
    )


def refused_version(latest: int) -> Refused:
    """The answer if earlier versions are missing in the catalog."""
    return Refused(f"its latest version in the catalog is {latest}, so version {latest + 1} must come next")


def cause_in(answer: Answer) -> Exception | None:
    return answer.cause if isinstance(answer, Raised) else None


def reason_of(outcome: Answer) -> str:
    if isinstance(outcome, OutcomeUnknown | NotReached | Refused):
        return outcome.reason.rstrip(".") or "no reason was given"
    if isinstance(outcome, Conflict):
        return "the catalog reports that the version is taken, but also that it does not exist"
    if isinstance(outcome, Ratified):
        return "the catalog reports that it is ratified, but the table does not have the version"
    return "the catalog's backlog is full"


def joined(known: str, *more: str) -> str:
    """The reasons without repetitions; later ones say why the outcome is still unknown."""
    for reason in more:
        text = reason.rstrip(".")
        if text not in known:
            known = f"{known}; {text}" if known else text
    return known
