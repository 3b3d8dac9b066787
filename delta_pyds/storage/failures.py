"""Maps exceptions of the object stores' packages to delta_pyds errors.

Invariant: neither the message nor the causes in a traceback contain a secret
of the storage options, or the credentials of a URL.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import quote

from delta_pyds.errors import DeltaError, StorageError
from delta_pyds.redaction import without_secrets
from delta_pyds.storage.base import directory_not_found, file_not_found
from delta_pyds.storage.retries import GaveUpError


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
