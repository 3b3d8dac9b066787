"""Checks of arguments of ``delta_pyds.changes`` and ``delta_pyds.scan_changes``. Each refusal names the argument."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from delta_pyds.errors import ColumnNotFoundError, OptionError
from delta_pyds.table.change_feed.computed import COMPUTE_CHANGES, ComputeChanges
from delta_pyds.table.time_travel import time_text
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN

_LAST_VERSION = 2**63 - 1


def version_or_time(name: str, value: Any) -> int | str:
    """One end of a range: a version, or a time as text. Raises: OptionError."""
    if isinstance(value, bool) or not isinstance(value, int | str | dt.date):
        raise OptionError(
            f"{name} is {value!r:.200}, but must be a version or a time: a number, text or a datetime.", option=name
        )
    if not isinstance(value, int):
        return time_text(value)
    if not 0 <= value <= _LAST_VERSION:
        raise OptionError(
            f"{name} is {value!r:.40}, but must be a version number, 0 or more.",
            code="DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            option=name,
            value=value,
        )
    return value


def compute_changes_of(text: str, name: str) -> ComputeChanges:
    """Raises: OptionError for another value than ``COMPUTE_CHANGES``."""
    found = next((way for way in COMPUTE_CHANGES if way.lower() == text.strip().lower()), None)
    if found is None:
        raise OptionError(
            f"the option {name} is '{text}', but must be one of {', '.join(COMPUTE_CHANGES)}.", option=name, value=text
        )
    return found


def key_columns(keys: str | Sequence[str] | None, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns that ``keys`` names, as they are spelled in ``columns``; those of the result.

    Raises: ColumnNotFoundError if the result lacks one of them, or a column that pairing needs.
    """
    if keys is None:
        return ()
    names = [name.strip() for name in keys.split(",")] if isinstance(keys, str) else keys
    known = {name.lower(): name for name in columns}
    for name in (*names, CHANGE_TYPE_COLUMN, COMMIT_VERSION_COLUMN) if names else ():
        if name.lower() not in known:
            raise ColumnNotFoundError(
                f"keys needs the column '{name}', but the changes have the columns {', '.join(columns)}. Name "
                "it in columns, or leave columns out.",
                column=name,
            )
    return tuple(dict.fromkeys(known[name.lower()] for name in names))
