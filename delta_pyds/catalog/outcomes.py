"""Answers to a proposal or a registration, whatever the catalog returned or raised, and why a question stays open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from delta_pyds.catalog.answers import cause_of, require_outcome, said_by
from delta_pyds.catalog.interface import Catalog, CommitOutcome, Conflict, OutcomeUnknown, Ratified, Refused
from delta_pyds.errors import DeltaError, NothingWrittenError


class SurelyNotError(Exception):
    """Nothing was committed, and nothing of it can become a version: what was staged for it serves nobody."""

    def __init__(self, error: DeltaError) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True)
class NotReached:
    """The catalog surely took nothing; it may, if it is asked again."""

    reason: str


@dataclass(frozen=True)
class Raised(OutcomeUnknown):
    """The call raised what nobody can tell the outcome from. ``cause``: for the error that is raised in the end."""

    cause: Exception | None = None


Answer: TypeAlias = CommitOutcome | NotReached


def answer_of(catalog: Catalog, method: str, call: Callable[[], CommitOutcome]) -> Answer:
    """What the catalog's method says, which ``call`` calls.

    Raises: CatalogAnswerError for what is no outcome.
    """
    try:
        outcome = call()
    except NothingWrittenError as error:
        return NotReached(error.message)
    except Exception as error:  # whatever the client of a catalog raises
        return Raised(said_by(error), cause_of(error))
    return require_outcome(catalog, method, outcome)


def cause_in(answer: Answer) -> Exception | None:
    return answer.cause if isinstance(answer, Raised) else None


def reason_of(outcome: Answer) -> str:
    if isinstance(outcome, OutcomeUnknown | NotReached | Refused):
        return outcome.reason.rstrip(".") or "without a reason"
    if isinstance(outcome, Conflict):
        return "the catalog says that the version is taken, but also that it does not exist"
    if isinstance(outcome, Ratified):
        return "the catalog says that it is ratified, but the table does not have the version"
    return "the catalog's backlog is full"


def joined(known: str, *more: str) -> str:
    """Each of the reasons once: what came later says why the question stayed open."""
    for reason in more:
        text = reason.rstrip(".")
        if text not in known:
            known = f"{known}; {text}" if known else text
    return known
