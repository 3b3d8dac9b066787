"""Google Cloud Storage, with the requests of gcsfs (see ``fsspec_store``)."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms
from delta_pyds.storage.object_store import ObjectInfo, ObjectStorage, ObjectTail, Page, byte_range, size_of

_FILES_PER_PAGE = 1000  # the service's maximum
_BOUNDARY = "delta_pyds_batch"
# in each part of a batch's answer: the number of its request, and its status
_ANSWERED = re.compile(r"Content-ID: <response-(\d+)>.*?\nHTTP/[\d.]+ (\d+)", re.DOTALL | re.IGNORECASE)


class GoogleStorage(ObjectStorage):
    """Objects in buckets. Puts if absent with ``ifGenerationMatch=0``, which each bucket must prove."""

    _unproven = "the store ignores ifGenerationMatch"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        filesystem._request = _retry_unauthorized_once(filesystem)

    def endpoint(self) -> str:
        return str(self._filesystem.base)

    def _bucket_and_key(self, path: str) -> tuple[str, str]:
        bucket, _, key = self._canonical(path).partition("://")[2].partition("/")
        return bucket, key

    def _call(self, method: str, path: str, *names: str, **request: Any) -> Any:
        return self._filesystem.call(method, path, *names, **request)

    def _send(self, bucket: str, key: str, data: bytes, **condition: str) -> None:
        path = self._filesystem.base.replace("/storage/v1/", "/upload/storage/v1/") + f"b/{quote(bucket, safe='')}/o"
        headers = {"Content-Type": "application/octet-stream"}
        self._call("POST", path, headers=headers, data=data, uploadType="media", name=key, **condition)

    def _conditional_put(self, canonical_path: str, data: bytes) -> None:
        bucket, key = self._bucket_and_key(canonical_path)
        self._send(bucket, key, data, ifGenerationMatch="0")

    def _http_status(self, error: BaseException) -> int | None:
        """The status of an error: gcsfs turns some answers into Python's errors, and keeps the status of the others."""
        if isinstance(error, FileNotFoundError):
            return 404
        if isinstance(error, FileExistsError):
            return 412
        if isinstance(error, OSError) and str(error).startswith("Forbidden"):
            return 403
        code = getattr(error, "code", None)
        return code if isinstance(code, int) else None

    def put(self, path: str, data: bytes) -> None:
        with self._translated("written", path):
            self._send(*self._bucket_and_key(path), data)

    def _fetch(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        # requests the generation instead of comparing it: a bucket with versioning still has an overwritten one
        named = {"generation": generation} if generation else {}
        return self._answer(bucket, key, byte_range(offset, length), **named)[1]

    def _answer(self, bucket: str, key: str, wanted: str | None, **more: str) -> tuple[Mapping[str, str], bytes]:
        headers = {"Range": wanted} if wanted else {}
        answered, data = self._call("GET", "b/{}/o/{}", bucket, key, headers=headers, alt="media", **more)
        return answered, bytes(data)

    def _fetch_tail(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> ObjectTail:  # noqa: ARG002 - the answer has it
        try:
            headers, tail = self._answer(bucket, key, f"bytes=-{tail_bytes}")
        except Exception as error:
            if self._http_status(error) == 416:
                return ObjectTail(0, b"", "")
            raise
        content_range = headers.get("Content-Range")
        size = size_of(content_range) if content_range else len(tail)
        return ObjectTail(size, tail, headers.get("X-Goog-Generation") or "")

    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        page = self._call(
            "GET", "b/{}/o", bucket, json_out=True, prefix=prefix, delimiter="/", pageToken=more,
            startOffset=prefix + start if start else None, maxResults=limit or _FILES_PER_PAGE,
        )  # fmt: skip
        files = [_info(entry) for entry in page.get("items", ())]
        directories = [ObjectInfo(str(name)[:-1], is_directory=True) for name in page.get("prefixes", ())]
        return Page(files + directories, page.get("nextPageToken"))

    def _head(self, bucket: str, key: str) -> ObjectInfo:
        return _info(self._call("GET", "b/{}/o/{}", bucket, key, json_out=True))

    def _delete_object(self, bucket: str, key: str) -> None:
        self._call("DELETE", "b/{}/o/{}", bucket, key)

    def _delete_batch(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        parts = [
            f"--{_BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <{number}>\r\n\r\n"
            f"DELETE /storage/v1/b/{quote(bucket, safe='')}/o/{quote(key, safe='')} HTTP/1.1\r\n"
            "Content-Length: 0\r\n\r\n\r\n"
            for number, key in enumerate(keys)
        ]
        path = self._filesystem.base.replace("/storage/v1/", "/batch/storage/v1")
        headers = {"Content-Type": f"multipart/mixed; boundary={_BOUNDARY}"}
        _, answer = self._call("POST", path, headers=headers, data="".join(parts) + f"--{_BOUNDARY}--\r\n")
        answered = _ANSWERED.findall(bytes(answer).decode("utf-8", "replace"))
        return {keys[int(number)] for number, status in answered if status in ("200", "204", "404")}


class _UnauthorizedError(Exception):
    """The service no longer accepts the credentials."""

    code = 401


def _retry_unauthorized_once(filesystem: Any) -> Callable[..., Awaitable[Any]]:
    """The requests of gcsfs, without its retries after 401, which take half a minute and longer.

    Credentials that can be renewed are renewed once.
    """
    retry = importlib.import_module("gcsfs.retry")
    request = inspect.unwrap(type(filesystem)._request)

    async def ask(*arguments: Any, **named: Any) -> Any:
        credentials = getattr(filesystem.credentials, "credentials", None)
        token = getattr(credentials, "token", None)
        may_renew = bool(token) and getattr(credentials, "refresh_token", "") is not None
        while True:
            try:
                return await request(filesystem, *arguments, **named)
            except retry.HttpError as error:
                if error.code not in (401, "401"):
                    raise
                if not may_renew:
                    raise _UnauthorizedError(f"{error.message}") from error
            may_renew = False
            # another thread may have renewed them meanwhile
            if getattr(credentials, "token", None) == token:
                cast(Any, credentials).token = None

    return cast(Callable[..., Awaitable[Any]], retry.retry_request(retries=filesystem.retries)(ask))


def _info(entry: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(str(entry["name"]), int(entry["size"]), modification_time_ms(entry), generation_of(entry))
