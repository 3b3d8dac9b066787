"""Maps exceptions of the object stores' packages to delta_pyds errors.

Invariant: neither the message nor the causes in a traceback contain a secret
of the storage options, or the credentials of a URL.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import quote

from delta_pyds.backoff import pause_s
from delta_pyds.errors import DeltaError, StorageError
from delta_pyds.redaction import without_secrets
from delta_pyds.storage.base import directory_not_found, file_not_found

_T = TypeVar("_T")
# Statuses of a server that is temporarily unable to answer.
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 16.0
# The longest pause that a store may ask for.
_LONGEST_RETRY_AFTER_S = 60.0


@contextlib.contextmanager
def translated(
    verb: str,
    path: str,
    secrets: tuple[str, ...],
    *,
    directory: bool = False,
    keep: type[BaseException] | tuple[()] = (),
) -> Iterator[None]:
    try:
        yield
    except keep:
        raise
    except DeltaError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise (directory_not_found(path) if directory else file_not_found(path)) from shown_cause(error, secrets)
    except Exception as error:  # botocore, azure and aiohttp errors have no common base
        raise StorageError(f"{path!r} could not be {verb}: {describe(error, secrets)}.", path=path) from shown_cause(
            error, secrets
        )


def describe(error: BaseException, secrets: tuple[str, ...]) -> str:
    text = str(error) if isinstance(error, GaveUpError) else f"{type(error).__name__}: {error}"
    return _masked(text, secrets).rstrip(". \n")


def _masked(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        for spelling in (secret, quote(secret, safe="")):
            text = text.replace(spelling, "***")
    return text


def shown_cause(error: BaseException, secrets: tuple[str, ...]) -> BaseException | None:
    """The error, to be shown as a cause; None if its text, or that of its own causes, contains a secret."""
    seen: BaseException | None = error
    while seen is not None:
        text = f"{seen!r} {seen}"
        if _masked(text, secrets) != text or without_secrets(text) != text:
            return None
        seen = seen.__cause__ or seen.__context__
    return error


class GaveUpError(Exception):
    """No attempt succeeded; the cause is the error of the last one."""

    def __init__(self, attempts: int, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}: {str(error).rstrip('. ')}; this was tried {attempts} times")


class TruncatedResponseError(Exception):
    """The answer of the server broke off."""


def after_transient_errors(
    request: Callable[[], _T],
    status_of: Callable[[BaseException], int | None],
    is_no_answer: Callable[[BaseException], bool],
    retry_after_s: Callable[[BaseException], float],
) -> _T:
    """Call ``request`` up to 6 times, with growing pauses, and return its result.

    Args:
        request: must be safe to repeat.
        status_of: the server's status in an error; None if it has none.
        is_no_answer: whether an error means that the answer is missing or incomplete.
        retry_after_s: the seconds that the server asks to wait; 0 if it does not.

    Raises: the error of ``request`` if another attempt would not help; GaveUpError from the last error.
    """
    attempt = 1
    while True:
        try:
            return request()
        except Exception as error:
            status = status_of(error)
            if not (status in _TRANSIENT or (status is None and is_no_answer(error))):
                raise
            if attempt == _ATTEMPTS:
                raise GaveUpError(attempt, error) from error
            pause = pause_s(attempt, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S)
            time.sleep(max(pause, min(retry_after_s(error), _LONGEST_RETRY_AFTER_S)))
        attempt += 1
