"""Azure Blob Storage and ADLS Gen2, by adlfs and the client that it brings (see ``fsspec_store``).

The requests that decide anything are made here, with that client: adlfs reads paths as URLs, and its listings take in
what lies deeper, and what merely begins like the directory.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, TypeVar, cast

from delta_pyds.errors import StorageError
from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms
from delta_pyds.storage.object_output import PARALLEL, Upload
from delta_pyds.storage.object_store import End, Found, ObjectStorage, Page, size_of
from delta_pyds.storage.retries import after_transient_errors

_T = TypeVar("_T")

# The first version of the service whose listings begin at a name.
_LISTS_FROM_A_NAME = "2026-02-06"
# We repeat requests ourselves: the client would wait 15 seconds, whatever the store says.
_ONCE = {"retry_total": 0}
_FILES_PER_PAGE = 5000


class AzureStorage(ObjectStorage):
    """A container of blobs: creates by ``If-None-Match: *``, which each container must prove."""

    _unproven = "the store ignores If-None-Match"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        """Raises: StorageError if the options are of another account than ``root``."""
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        if self._host and self._account() and self._host != self._account():
            raise StorageError(
                f"{root!r} was not opened: it is of the account {self._host!r}, and the storage options or the "
                f"environment (AZURE_STORAGE_...) are of {self._account()!r}. Give those of one account.",
                path=root,
            )
        self._starts_at_a_name = True

    def _account(self) -> str:
        # a connection string names one too, and adlfs goes by that
        named = getattr(self._filesystem.service_client, "account_name", None) or self._filesystem.account_name
        return str(named or "").lower()

    def endpoint(self) -> str:
        return str(self._filesystem.service_client.url)

    def _place(self, path: str) -> tuple[str, str]:
        authority, _, name = self._own(path).partition("://")[2].partition("/")
        return authority.rpartition("@")[0] or authority, name

    def _container(self, name: str) -> Any:
        return self._filesystem.service_client.get_container_client(name)

    def _ask(self, request: Callable[[], Awaitable[_T]]) -> _T:
        """Make a request, a coroutine of the client, in the loop of adlfs; again where the store was busy or silent."""
        sync = importlib.import_module("fsspec.asyn").sync

        def answer() -> _T:
            return cast(_T, sync(self._filesystem.loop, request))

        return after_transient_errors(answer, self._http_status, _is_silence, _asked_pause_s)

    def _http_status(self, error: BaseException) -> int | None:
        at: BaseException | None = error
        while at is not None:
            status = getattr(at, "status_code", None)
            if isinstance(status, int):
                # Azure's answer to If-None-Match: *
                return 412 if status == 409 and str(_code_of(at)) == "BlobAlreadyExists" else status
            at = at.__cause__
        return None

    def _put_where_absent(self, own_path: str, data: bytes) -> None:
        bucket, key = self._place(own_path)

        async def put() -> None:
            # a long one goes up in blocks that nobody sees, and the request that makes them a blob has the condition
            await self._container(bucket).get_blob_client(key).upload_blob(data, overwrite=False, **_ONCE)

        self._ask(put)

    def put(self, path: str, data: bytes) -> None:
        bucket, key = self._place(path)

        async def put() -> None:
            await self._container(bucket).get_blob_client(key).upload_blob(data, overwrite=True, **_ONCE)

        with self._translated("written", path):
            self._ask(put)

    def _upload(self, path: str) -> Upload:
        return _Blocks(self, path)

    def _content(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        return self._part(bucket, key, offset, length, generation).tail

    def _end(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> End:
        # Azure knows no ranges that count from the end
        if size_bytes is not None and size_bytes > 0:
            end = self._end_of(bucket, key, tail_bytes, size_bytes)
            if end is not None:
                return end
        found = self._examined(bucket, key)
        if not found.size_bytes:
            return End(0, b"", "")
        start = max(found.size_bytes - tail_bytes, 0)
        return self._part(bucket, key, start, found.size_bytes - start, found.generation)

    def _end_of(self, bucket: str, key: str, tail_bytes: int, size_bytes: int) -> End | None:
        """The end of a blob of this size; None where it has another."""
        start = max(size_bytes - tail_bytes, 0)
        try:
            end = self._part(bucket, key, start, size_bytes - start)
        except Exception as error:
            if self._http_status(error) == 416:
                return None
            raise
        return end if end.size_bytes == size_bytes else None

    def _part(self, bucket: str, key: str, offset: int, length: int | None, generation: str = "") -> End:
        async def read() -> End:
            blob = self._container(bucket).get_blob_client(key)
            condition: dict[str, Any] = {}
            if generation:
                unchanged = importlib.import_module("azure.core").MatchConditions.IfNotModified
                condition = {"etag": f'"{_unquoted(generation)}"', "match_condition": unchanged}
            stream = await blob.download_blob(offset=offset, length=length, **condition, **_ONCE)
            data = bytes(await stream.readall())
            return End(size_of(stream.properties.content_range), data, generation_of(stream.properties))

        return self._ask(read)

    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        container = self._container(bucket)
        begins = bool(start) and self._starts_at_a_name and str(container.api_version) >= _LISTS_FROM_A_NAME
        # begun a little before the name, as everywhere
        request: dict[str, Any] = {"start_from": prefix + start[:-1]} if begins else {}

        async def list_page() -> Page:
            pages = container.walk_blobs(
                name_starts_with=prefix, include=["metadata"], results_per_page=limit or _FILES_PER_PAGE,
                **request, **_ONCE,
            ).by_page(more)  # fmt: skip
            try:
                found = [_found(entry) async for entry in await pages.__anext__()]
            except StopAsyncIteration:
                return Page([])
            return Page(found, pages.continuation_token or None)

        try:
            return self._ask(list_page)
        except Exception as error:
            if begins and self._http_status(error) == 400:
                # a store that speaks like Azure, and not all of it
                self._starts_at_a_name = False
                return self._page(bucket, prefix, start, more=more, limit=limit)
            raise

    def _examined(self, bucket: str, key: str) -> Found:
        async def examine() -> Found:
            return _found(await self._container(bucket).get_blob_client(key).get_blob_properties(**_ONCE))

        return self._ask(examine)

    def _remove(self, bucket: str, key: str) -> None:
        async def remove() -> None:
            await self._container(bucket).get_blob_client(key).delete_blob(**_ONCE)

        self._ask(remove)

    def _remove_many(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        async def remove() -> list[int]:
            answers = await self._container(bucket).delete_blobs(*keys, raise_on_any_failure=False, **_ONCE)
            return [int(answer.status_code) async for answer in answers]

        gone = (202, 404)
        # a batch that is not understood has one answer
        return {key for key, status in zip(keys, self._ask(remove), strict=False) if status in gone}


class _Blocks:
    """An upload by blocks, which the store forgets after a week where none makes them a blob."""

    parallel = PARALLEL

    def __init__(self, storage: AzureStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._sent: set[int] = set()

    def _call(self, operation: str, *arguments: Any) -> None:
        bucket, key = self._storage._place(self._path)

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


def _found(entry: Any) -> Found:
    if not hasattr(entry, "etag"):  # a prefix
        return Found(str(entry.name).rstrip("/"), is_directory=True)
    # what Hadoop's connectors and accounts with a hierarchy of directories put there for one
    metadata = {name.lower(): value for name, value in (entry.metadata or {}).items()}
    is_directory = "true" in (metadata.get("hdi_isfolder"), metadata.get("is_directory"))
    etag = _unquoted(generation_of(entry))
    return Found(str(entry.name), int(entry.size or 0), modification_time_ms(entry), etag, is_directory)


def _unquoted(etag: str) -> str:
    return etag.strip('"')  # some answers have them quoted


def _code_of(error: BaseException) -> Any:
    code = getattr(error, "error_code", None)
    return getattr(code, "value", code)


def _is_silence(error: BaseException) -> bool:
    exceptions = importlib.import_module("azure.core.exceptions")
    kinds = (exceptions.ServiceRequestError, exceptions.ServiceResponseError, exceptions.IncompleteReadError)
    return isinstance(error, (*kinds, OSError))


def _asked_pause_s(error: BaseException) -> float:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        return float(headers.get("Retry-After") or 0)
    except ValueError:
        return 0.0  # a date
