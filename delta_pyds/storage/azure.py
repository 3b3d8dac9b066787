"""Azure Blob Storage and ADLS Gen2, with adlfs and its client (see ``fsspec_store``).

Listings, reads and puts call the client directly: adlfs parses paths as URLs, and its listings include deeper names and
names that merely start like the directory's.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from delta_pyds.errors import StorageError
from delta_pyds.storage.failures import after_transient_errors
from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms
from delta_pyds.storage.object_output import PARALLEL, Upload
from delta_pyds.storage.object_store import ObjectInfo, ObjectStorage, ObjectTail, Page, size_of

_T = TypeVar("_T")

# The first version of the service that supports listings from a name.
_LISTS_FROM_A_NAME = "2026-02-06"
# Retries are ours: the client would wait 15 seconds, and ignore the pause that the store asks for.
_ONCE = {"retry_total": 0}
_FILES_PER_PAGE = 5000


class AzureStorage(ObjectStorage):
    """Blobs in containers. Puts if absent with ``If-None-Match: *``, which each container must prove."""

    _unproven = "the store ignores If-None-Match"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        """Raises: StorageError if the options are for another account than that of ``root``."""
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        if self._host and self._account() and self._host != self._account():
            raise StorageError(
                f"{root!r} was not opened: it is in the account {self._host!r}, but the storage options or the "
                f"environment (AZURE_STORAGE_...) are for {self._account()!r}. Give the options of the path's account.",
                path=root,
            )
        self._starts_at_a_name = True

    def _account(self) -> str:
        # adlfs prefers the account in a connection string
        named = getattr(self._filesystem.service_client, "account_name", None) or self._filesystem.account_name
        return str(named or "").lower()

    def endpoint(self) -> str:
        return str(self._filesystem.service_client.url)

    def _bucket_and_key(self, path: str) -> tuple[str, str]:
        authority, _, name = self._canonical(path).partition("://")[2].partition("/")
        return authority.rpartition("@")[0] or authority, name

    def _container(self, name: str) -> Any:
        return self._filesystem.service_client.get_container_client(name)

    def _ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Await a request of the client in the loop of adlfs, with retries after transient errors."""
        sync = importlib.import_module("fsspec.asyn").sync

        def answer() -> _T:
            return cast(_T, sync(self._filesystem.loop, request))

        return after_transient_errors(answer, self._http_status, _is_no_answer, _retry_after_s)

    def _http_status(self, error: BaseException) -> int | None:
        at: BaseException | None = error
        while at is not None:
            status = getattr(at, "status_code", None)
            if isinstance(status, int):
                # Azure's answer to If-None-Match: *
                return 412 if status == 409 and str(_code_of(at)) == "BlobAlreadyExists" else status
            at = at.__cause__
        return None

    def _conditional_put(self, canonical_path: str, data: bytes) -> None:
        bucket, key = self._bucket_and_key(canonical_path)

        async def put() -> None:
            # long data goes up in invisible blocks; the request that commits them has the condition
            await self._container(bucket).get_blob_client(key).upload_blob(data, overwrite=False, **_ONCE)

        self._ask(put)

    def put(self, path: str, data: bytes) -> None:
        bucket, key = self._bucket_and_key(path)

        async def put() -> None:
            await self._container(bucket).get_blob_client(key).upload_blob(data, overwrite=True, **_ONCE)

        with self._translated("written", path):
            self._ask(put)

    def _upload(self, path: str) -> Upload:
        return _Blocks(self, path)

    def _fetch(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        return self._fetch_range(bucket, key, offset, length, generation).tail

    def _fetch_tail(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> ObjectTail:
        # Azure does not support ranges from the end
        if size_bytes is not None and size_bytes > 0:
            end = self._tail_of(bucket, key, tail_bytes, size_bytes)
            if end is not None:
                return end
        found = self._head(bucket, key)
        if not found.size_bytes:
            return ObjectTail(0, b"", "")
        start = max(found.size_bytes - tail_bytes, 0)
        return self._fetch_range(bucket, key, start, found.size_bytes - start, found.generation)

    def _tail_of(self, bucket: str, key: str, tail_bytes: int, size_bytes: int) -> ObjectTail | None:
        """The last bytes of a blob of this size; None if its size differs."""
        start = max(size_bytes - tail_bytes, 0)
        try:
            end = self._fetch_range(bucket, key, start, size_bytes - start)
        except Exception as error:
            if self._http_status(error) == 416:
                return None
            raise
        return end if end.size_bytes == size_bytes else None

    def _fetch_range(self, bucket: str, key: str, offset: int, length: int | None, generation: str = "") -> ObjectTail:
        async def read() -> ObjectTail:
            blob = self._container(bucket).get_blob_client(key)
            condition: dict[str, Any] = {}
            if generation:
                unchanged = importlib.import_module("azure.core").MatchConditions.IfNotModified
                condition = {"etag": f'"{_unquoted(generation)}"', "match_condition": unchanged}
            stream = await blob.download_blob(offset=offset, length=length, **condition, **_ONCE)
            data = bytes(await stream.readall())
            return ObjectTail(size_of(stream.properties.content_range), data, generation_of(stream.properties))

        return self._ask(read)

    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        container = self._container(bucket)
        begins = bool(start) and self._starts_at_a_name and str(container.api_version) >= _LISTS_FROM_A_NAME
        # starts a little before the name, as with the other stores
        request: dict[str, Any] = {"start_from": prefix + start[:-1]} if begins else {}

        async def list_page() -> Page:
            pages = container.walk_blobs(
                name_starts_with=prefix, include=["metadata"], results_per_page=limit or _FILES_PER_PAGE,
                **request, **_ONCE,
            ).by_page(more)  # fmt: skip
            try:
                found = [_info(entry) async for entry in await pages.__anext__()]
            except StopAsyncIteration:
                return Page([])
            return Page(found, pages.continuation_token or None)

        try:
            return self._ask(list_page)
        except Exception as error:
            if begins and self._http_status(error) == 400:
                # a compatible store without this parameter
                self._starts_at_a_name = False
                return self._page(bucket, prefix, start, more=more, limit=limit)
            raise

    def _head(self, bucket: str, key: str) -> ObjectInfo:
        async def examine() -> ObjectInfo:
            return _info(await self._container(bucket).get_blob_client(key).get_blob_properties(**_ONCE))

        return self._ask(examine)

    def _delete_object(self, bucket: str, key: str) -> None:
        async def remove() -> None:
            await self._container(bucket).get_blob_client(key).delete_blob(**_ONCE)

        self._ask(remove)

    def _delete_batch(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        async def remove() -> list[int]:
            answers = await self._container(bucket).delete_blobs(*keys, raise_on_any_failure=False, **_ONCE)
            return [int(answer.status_code) async for answer in answers]

        gone = (202, 404)
        # a refused batch has only one answer
        return {key for key, status in zip(keys, self._ask(remove), strict=False) if status in gone}


class _Blocks:
    """An upload in blocks. The store drops them after a week if they are not committed."""

    parallel = PARALLEL

    def __init__(self, storage: AzureStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._sent: set[int] = set()

    def _call(self, operation: str, *arguments: Any) -> None:
        bucket, key = self._storage._bucket_and_key(self._path)

        async def call() -> None:
            await getattr(self._storage._container(bucket).get_blob_client(key), operation)(*arguments, **_ONCE)

        with self._storage._translated("written", self._path):
            self._storage._ask(call)

    def part(self, number: int, data: bytes) -> None:
        self._call("stage_block", f"{number:08d}", data)
        self._sent.add(number)

    def finish(self) -> None:
        block = importlib.import_module("azure.storage.blob").BlobBlock
        self._call("commit_block_list", [block(f"{number:08d}") for number in sorted(self._sent)])

    def discard(self) -> None:
        self._sent.clear()


def _info(entry: Any) -> ObjectInfo:
    if not hasattr(entry, "etag"):  # a prefix
        return ObjectInfo(str(entry.name).rstrip("/"), is_directory=True)
    # markers of a directory by Hadoop's connectors and by accounts with a hierarchical namespace
    metadata = {name.lower(): value for name, value in (entry.metadata or {}).items()}
    is_directory = "true" in (metadata.get("hdi_isfolder"), metadata.get("is_directory"))
    etag = _unquoted(generation_of(entry))
    return ObjectInfo(str(entry.name), int(entry.size or 0), modification_time_ms(entry), etag, is_directory)


def _unquoted(etag: str) -> str:
    return etag.strip('"')  # some answers quote it


def _code_of(error: BaseException) -> Any:
    code = getattr(error, "error_code", None)
    return getattr(code, "value", code)


def _is_no_answer(error: BaseException) -> bool:
    exceptions = importlib.import_module("azure.core.exceptions")
    kinds = (exceptions.ServiceRequestError, exceptions.ServiceResponseError, exceptions.IncompleteReadError)
    return isinstance(error, (*kinds, OSError))


def _retry_after_s(error: BaseException) -> float:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("Retry-After") or 0)
    except ValueError:
        return 0.0  # a date
