"""Checks of the values that a catalog's methods return, and of their errors: users write catalogs too.

Invariants: an answer of a wrong type is never used. The error names the catalog and the method, and has a cause that
shows the catalog's author the position in the code. The cause is redacted like every error of this package.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from delta_pyds.catalog.interface import (
    BacklogFull,
    Catalog,
    CommitOutcome,
    Conflict,
    ManagedTable,
    OutcomeUnknown,
    Ratified,
    Refused,
    StorageCredentials,
    TableReservation,
    UnpublishedCommit,
)
from delta_pyds.errors import CatalogAnswerError, CatalogError, DeltaError
from delta_pyds.redaction import shown

# frames of a traceback that are shown, innermost first
_FRAMES = 3
_OUTCOMES = (Ratified, Conflict, BacklogFull, OutcomeUnknown, Refused)
_TEXT = ("text", lambda value: isinstance(value, str))
_NUMBER = ("an int", lambda value: isinstance(value, int) and not isinstance(value, bool))
_MAPPING = ("a mapping", lambda value: isinstance(value, Mapping))
_TUPLE = ("a tuple", lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes))
_SET = ("a set of texts", lambda value: isinstance(value, set | frozenset) and all(isinstance(x, str) for x in value))
_FIELDS: dict[type, dict[str, tuple[str, Callable[[Any], bool]]]] = {
    ManagedTable: {
        "name": _TEXT,
        "table_id": _TEXT,
        "location": _TEXT,
        "latest_version": _NUMBER,
        "unpublished": _TUPLE,
        "forbids": _SET,
    },
    UnpublishedCommit: {
        "version": _NUMBER,
        "timestamp_ms": _NUMBER,
        "file_name": ("text or None", lambda value: value is None or isinstance(value, str)),
        "size_bytes": ("an int or None", lambda value: value is None or _NUMBER[1](value)),
        "modification_time_ms": _NUMBER,
        "content": ("bytes or None", lambda value: value is None or isinstance(value, bytes)),
    },
    StorageCredentials: {
        "storage_options": _MAPPING,
        "expires_at_ms": ("an int or None", lambda value: value is None or isinstance(value, int | float)),
    },
    TableReservation: {
        "name": _TEXT,
        "table_id": _TEXT,
        "location": _TEXT,
        "properties": _MAPPING,
        "features": _TUPLE,
    },
    OutcomeUnknown: {"reason": _TEXT},
    Refused: {"reason": _TEXT},
}


def load_table(catalog: Catalog, name: str) -> ManagedTable:
    """Call the method. Raises: CatalogError for no answer or an answer of a wrong type; a DeltaError of the catalog."""
    found: ManagedTable = _called(catalog, "load_table", name, f"the state of table {name!r}", _require_table)
    return found


def reserve_table(catalog: Catalog, name: str) -> TableReservation:
    """Call the method. Raises: as ``load_table``."""
    what = f"a location for table {name!r}"
    made: TableReservation = _called(catalog, "reserve_table", name, what, _require_reservation)
    return made


def reserved_credentials(catalog: Catalog, table_id: str) -> StorageCredentials | None:
    """Call the method. Raises: as ``load_table``."""
    what = "credentials for the new table"
    given: StorageCredentials | None = _called(catalog, "reserved_credentials", table_id, what, _require_credentials)
    return given


def require_outcome(catalog: Catalog, method: str, outcome: Any) -> CommitOutcome:
    """The outcome, with checked types. Raises: CatalogAnswerError for others: it is unknown what the catalog did."""
    try:
        if not isinstance(outcome, _OUTCOMES):
            raise TypeError(
                f"{_returned(outcome)}, but must return a CommitOutcome (Ratified, Conflict, BacklogFull ...)"
            )
        _require(outcome, type(outcome))
        if isinstance(outcome, Ratified) and outcome.table is not None:
            _require_table(outcome.table)
    except TypeError as error:
        unknown = (
            "It is unknown whether the commit is in the table: do not delete its data files, and check the table "
            "before you write the same data again."
        )
        raise _wrong(CatalogAnswerError, catalog, method, error, unknown) from error
    given: CommitOutcome = outcome
    return given


def message_of(error: BaseException) -> str:
    """The message of an error, without its code."""
    return error.message.rstrip(".") if isinstance(error, DeltaError) else f"{type(error).__name__}: {error}"


class CatalogCallError(Exception):
    """The error that a catalog's method raised, redacted, and its position in the code."""


def cause_of(error: BaseException) -> CatalogCallError:
    """A cause that is safe to show. The catalog's own error and its traceback may hold secrets."""
    frames = traceback.StackSummary.extract(traceback.walk_tb(error.__traceback__), lookup_lines=False)
    positions = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames[1:][-_FRAMES:]]
    return CatalogCallError(shown(f"{type(error).__name__}: {error} (raised at {' < '.join(reversed(positions))})"))


def _called(catalog: Catalog, method: str, argument: str, what: str, require: Callable[[Any], None]) -> Any:
    """Call the method, and check its answer. Raises: as ``load_table``."""
    try:
        answer = getattr(catalog, method)(argument)
    except DeltaError:
        raise
    except Exception as error:  # clients of catalogs may raise any error, and its text may contain secrets
        raise CatalogError(
            f"the catalog did not return {what}: {method} of {_name(catalog)} raised {type(error).__name__}: {error}. "
            "Nothing was changed; try again when the catalog works."
        ) from cause_of(error)
    try:
        require(answer)
    except TypeError as error:
        raise _wrong(CatalogError, catalog, method, error, "Nothing was changed.") from error
    return answer


def _require_table(table: Any) -> None:
    _require(table, ManagedTable)
    for commit in table.unpublished:
        _require(commit, UnpublishedCommit, "an unpublished commit")
    _require_credentials(table.credentials)


def _require_reservation(made: Any) -> None:
    _require(made, TableReservation)
    _require_credentials(made.credentials)


def _require_credentials(given: Any) -> None:
    if given is not None:
        _require(given, StorageCredentials, "credentials")


def _require(value: Any, expected: type, part: str = "") -> None:
    """Check a value and its fields.

    Raises: TypeError whose message continues "the method ... returned". It does not show the value.
    """
    if not isinstance(value, expected):
        if part:
            raise TypeError(f"{part} {_kind(value)}, but must be a {expected.__name__}")
        raise TypeError(f"{_returned(value)}, but must return a {expected.__name__}")
    for name, (wanted, fits) in _FIELDS.get(expected, {}).items():
        found = getattr(value, name)
        if not fits(found):
            raise TypeError(f"a {expected.__name__} whose {name} is {_kind(found)}, but must be {wanted}")


def _returned(value: Any) -> str:
    return "None" if value is None else f"a value {_kind(value)}"


def _kind(value: Any) -> str:
    return "None" if value is None else f"of the type {type(value).__name__}"


def _wrong(kind: type[CatalogError], catalog: Catalog, method: str, error: TypeError, consequence: str) -> CatalogError:
    return kind(
        f"the method {method} of {_name(catalog)} returned {error}. {consequence} Tell the administrator of "
        "the catalog.",
        method=method,
    )


def _name(catalog: Catalog) -> str:
    return f"{type(catalog).__module__}.{type(catalog).__qualname__}"
