"""Put-if-absent by a conditional put, as S3 and compatible stores offer it.

Some stores accept the request but ignore the condition, and old clients silently drop it. So each bucket must prove the
condition once, before the first create. The proof is a race for one name, because some stores check first and put
afterwards. If such a store happens to pass the race, it cannot be distinguished from a correct store.
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
from delta_pyds.storage.failures import describe, shown_cause
from delta_pyds.storage.fsspec_store import FsspecStorage

# After two conditional puts of one name at the same time, the store asks to try again.
_CONFLICT_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.08
_LONGEST_PAUSE_S = 2.0
_RACERS = 8
# Statuses that say that the server did nothing, and that another attempt would not help.
_REFUSALS = range(400, 500)
_NOT_REFUSALS = (408, 409, 429)


class ConditionalPutStorage(FsspecStorage, ABC):
    """An object store that creates files with a conditional put, which each bucket must prove first.

    A subclass defines the bucket of a path, the put, the status of an error, and the reason (``_unproven``) to show for
    a store that creates a file twice.
    """

    _unproven = "the store ignores the condition of the put"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        self._proven: set[str] = set()
        self._proving = threading.Lock()

    @abstractmethod
    def _bucket(self, canonical_path: str) -> str:
        """The part of the store for which one proof is enough."""

    @abstractmethod
    def _conditional_put(self, canonical_path: str, data: bytes) -> None:
        """Make one request. Raises: errors of the store's package, which ``_http_status`` understands."""

    @abstractmethod
    def _http_status(self, error: BaseException) -> int | None:
        """The server's status: 412 if the file exists, 409 if another request interfered; None if it did not answer."""

    def require_put_if_absent(self, directory: str) -> None:
        bucket = self._bucket(self._canonical(directory))
        with self._proving:
            if bucket not in self._proven:
                self._prove(directory)
                self._proven.add(bucket)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.require_put_if_absent(path.rpartition("/")[0])
        self._create(path, data)

    def _prove(self, directory: str) -> None:
        """Create one file from several threads at once, and then again.

        Raises: NothingWrittenError if more than one of these attempts succeeds.
        """
        # hidden and without a version, so that no reader takes it for a file of the table or its log
        probe = f"{directory.rstrip('/')}/.{uuid.uuid4().hex}.tmp"
        try:
            with ThreadPoolExecutor(_RACERS) as pool:
                # may be 0: if an answer is lost, the client's own retry finds its file and fails
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
        canonical_path = self._canonical(path)
        for attempt in range(1, _CONFLICT_ATTEMPTS + 1):
            try:
                self._conditional_put(canonical_path, data)
            except Exception as error:  # botocore's, Python's and aiohttp's errors have no common base
                status = self._http_status(error)
                if status == 409 and attempt < _CONFLICT_ATTEMPTS:
                    time.sleep(pause_s(attempt, first_s=_FIRST_PAUSE_S, longest_s=_LONGEST_PAUSE_S))
                    continue
                if status == 412:
                    raise file_exists(path) from shown_cause(error, self._secrets)
                refused = status in _REFUSALS and status not in _NOT_REFUSALS
                kind = NothingWrittenError if refused else StorageError
                reason, cause = describe(error, self._secrets), shown_cause(error, self._secrets)
                raise kind(f"{path!r} could not be created: {reason}.", path=path) from cause
            else:
                self._filesystem.invalidate_cache(self._key(path))
                return
