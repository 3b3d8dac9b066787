"""Trying a request again where the store was busy or did not answer, for clients that do not do so well enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from delta_pyds.backoff import pause_s

_T = TypeVar("_T")

# Answers of a server that could not just then.
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 16.0
# A store may ask for a longer pause than ours, up to this.
_LONGEST_ASKED_FOR_S = 60.0


class GaveUpError(Exception):
    """No attempt succeeded; the last one's error is the cause."""

    def __init__(self, attempts: int, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {str(error).rstrip('. ')}; this was tried {attempts} times")


class HalfAnswerError(Exception):
    """A server began its answer and did not end it."""


def after_transient_errors(
    request: Callable[[], _T],
    status_of: Callable[[BaseException], int | None],
    is_silence: Callable[[BaseException], bool],
    asked_pause_s: Callable[[BaseException], float],
    *,
    sleep: Callable[[float], None] | None = None,
) -> _T:
    """What ``request`` returns; it is made up to 6 times, with pauses that grow, and must be harmless to repeat.

    ``status_of``: the server's status in an error. ``is_silence``: whether there was no answer, or not all of it.
    ``asked_pause_s``: how long the server asked to wait, 0 where it did not.
    Raises: the request's error where another attempt would not help; GaveUpError from the last one.
    """
    attempt = 1
    while True:
        try:
            return request()
        except Exception as error:
            status = status_of(error)
            if not (status in _TRANSIENT or (status is None and is_silence(error))):
                raise
            if attempt == _ATTEMPTS:
                raise GaveUpError(attempt, error) from error
            pause = pause_s(attempt, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
            (sleep or time.sleep)(max(pause, min(asked_pause_s(error), _LONGEST_ASKED_FOR_S)))
        attempt += 1
