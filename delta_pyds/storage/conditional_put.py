"""Creating a file only where there is none, by a conditional put: what S3, and stores that speak like it, offer.

Not every store that knows the request heeds the condition, and old clients drop it without a word. So a bucket must
prove it, once, before the first create: by a race for one name, as some look first and put then. Where such a store is
lucky in the race, nobody can tell it from a proof.
"""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from delta_pyds.backoff import pause_s
from delta_pyds.errors import FileExistsInStorageError, NothingWrittenError, StorageError
from delta_pyds.storage.base import file_exists, not_proven
from delta_pyds.storage.failures import say, shown_cause
from delta_pyds.storage.fsspec_store import FsspecStorage

# Two conditional puts of one name at a time: the store asks to try again.
_CONFLICT_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.08
_LONGEST_PAUSE_S = 2.0
_RACERS = 8
# Answers of a server that says that it did nothing and would not do it later either.
_REFUSALS = range(400, 500)
_NOT_REFUSALS = (408, 409, 429)


class ConditionalPutStorage(FsspecStorage, ABC):
    """An object store that creates files by a conditional put, which each bucket must prove first.

    A store says of itself: the bucket of a path, how it puts, the status of an error, and what to think of a store that
    creates a file twice.
    """

    _unproven = "the store ignores the condition of the put"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        self._proven: set[str] = set()
        self._proving = threading.Lock()

    @abstractmethod
    def _bucket(self, own_path: str) -> str:
        """The part of the store for all of which one proof is enough."""

    @abstractmethod
    def _put_where_absent(self, own_path: str, data: bytes) -> None:
        """One request. Raises: whatever the package raises; ``_http_status`` understands it."""

    @abstractmethod
    def _http_status(self, error: BaseException) -> int | None:
        """What the server answered: 412 where a file is, 409 where another request was in the way; None if nothing."""

    def require_put_if_absent(self, directory: str) -> None:
        bucket = self._bucket(self._own(directory))
        with self._proving:
            if bucket not in self._proven:
                self._prove(directory)
                self._proven.add(bucket)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.require_put_if_absent(path.rpartition("/")[0])
        self._create(path, data)

    def _prove(self, directory: str) -> None:
        """Create a file from several threads at once, and once more.

        Raises: NothingWrittenError if that succeeds more than once.
        """
        # hidden and without a version, so that no reader takes it for a file of the table or its log
        probe = f"{directory.rstrip('/')}/.{uuid.uuid4().hex}.tmp"
        try:
            with ThreadPoolExecutor(_RACERS) as pool:
                # none, where the client's second try met its first
                won = sum(pool.map(lambda _: self._creates(probe), range(_RACERS)))
            if won > 1 or self._creates(probe):
                raise not_proven(directory, self._unproven)
        finally:
            with contextlib.suppress(StorageError):
                self.delete(probe, below=directory)

    def _creates(self, path: str) -> bool:
        try:
            self._create(path, b"1")
        except FileExistsInStorageError:
            return False
        return True

    def _create(self, path: str, data: bytes) -> None:
        own_path = self._own(path)
        for attempt in range(1, _CONFLICT_ATTEMPTS + 1):
            try:
                self._put_where_absent(own_path, data)
            except Exception as error:  # botocore's, Python's and aiohttp's errors have no common base
                status = self._http_status(error)
                if status == 409 and attempt < _CONFLICT_ATTEMPTS:
                    time.sleep(pause_s(attempt, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S))
                    continue
                if status == 412:
                    raise file_exists(path) from shown_cause(error, self._secrets)
                refused = status in _REFUSALS and status not in _NOT_REFUSALS
                kind = NothingWrittenError if refused else StorageError
                raise kind(f"{path!r} could not be created: {say(error, self._secrets)}.", path=path) from shown_cause(
                    error, self._secrets
                )
            else:
                self._filesystem.invalidate_cache(self._key(path))
                return
