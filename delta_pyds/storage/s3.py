"""S3 and compatible stores, with s3fs. The package is imported when a path first needs it (see ``fsspec_store``)."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, BinaryIO, cast

from delta_pyds.errors import FileNotFoundInStorageError, StorageError
from delta_pyds.storage.failures import TruncatedResponseError, after_transient_errors
from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms
from delta_pyds.storage.object_output import PARALLEL, Upload
from delta_pyds.storage.object_store import ObjectInfo, ObjectStorage, ObjectTail, Page, byte_range, size_of

# s3fs takes the rest of a path from here on for a version
_VERSION = "?versionId="
# connections; botocore's 10 are too few to open a table with many commits, or to read many files
_CONNECTIONS = 32


class S3Storage(ObjectStorage):
    """Objects in S3. Puts if absent with ``If-None-Match: *``, which each bucket must prove."""

    _unproven = "the store, or the installed version of botocore, ignores If-None-Match"

    def __init__(self, filesystem: Any, scheme: str, *, root: str = "", secrets: tuple[str, ...] = ()) -> None:
        super().__init__(filesystem, scheme, root=root, secrets=secrets)
        # s3fs makes 5 attempts with 5 attempts of botocore each: 25 minutes for a silent server
        filesystem.retries = 2
        filesystem.config_kwargs = {"max_pool_connections": _CONNECTIONS, **filesystem.config_kwargs}

    def _bucket_and_key(self, path: str) -> tuple[str, str]:
        own = self._canonical(path)
        bucket, key, _ = self._filesystem.split_path(own)
        if _VERSION in own:
            key = own.partition("://")[2][len(bucket) + 1 :].rstrip("/")
        return str(bucket), str(key)

    def put(self, path: str, data: bytes) -> None:
        self._require_whole(path)
        super().put(path, data)

    def open_output(self, path: str) -> BinaryIO:
        self._require_whole(path)
        return super().open_output(path)

    def _upload(self, path: str) -> Upload:
        return _PartsOfS3(self, path)

    def _require_whole(self, path: str) -> None:
        """Raises: StorageError for a path that s3fs would shorten."""
        if _VERSION in path:
            raise StorageError(
                f"{path!r} was not written: its name contains {_VERSION!r}, and s3fs would cut the name off there. Use "
                "another name.",
                path=path,
            )

    def endpoint(self) -> str:
        return str(self._filesystem.s3.meta.endpoint_url)

    def _call(self, operation: str, bucket: str, **request: Any) -> Any:
        return self._filesystem.call_s3(operation, Bucket=bucket, **self._filesystem.req_kw, **request)

    def _conditional_put(self, canonical_path: str, data: bytes) -> None:
        bucket, key = self._bucket_and_key(canonical_path)
        self._call("put_object", bucket, Key=key, Body=data, IfNoneMatch="*")

    def _http_status(self, error: BaseException) -> int | None:
        """The status in botocore's error, or in the error's cause if s3fs translated it."""
        at: BaseException | None = error
        while at is not None:
            response = getattr(at, "response", None)
            if isinstance(response, Mapping):
                return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
            at = at.__cause__
        return None

    def _lists_in_order(self, bucket: str) -> bool:
        return not bucket.endswith("--x-s3")  # directory buckets do not

    def _page(self, bucket: str, prefix: str, start: str, *, more: Any = None, limit: int | None = None) -> Page:
        request: dict[str, Any] = {} if limit is None else {"MaxKeys": limit}
        if more is not None:
            request["ContinuationToken"] = more
        elif start:
            # StartAfter excludes its own name: start a little before it
            request["StartAfter"] = prefix + start[:-1]
        page = self._call("list_objects_v2", bucket, Prefix=prefix, Delimiter="/", **request)
        files = [_info(str(entry["Key"]), entry, "Size") for entry in page.get("Contents", ())]
        directories = [ObjectInfo(str(e["Prefix"])[:-1], is_directory=True) for e in page.get("CommonPrefixes", ())]
        return Page(files + directories, page["NextContinuationToken"] if page.get("IsTruncated") else None)

    def _head(self, bucket: str, key: str) -> ObjectInfo:
        return _info(key, self._call("head_object", bucket, Key=key), "ContentLength")

    def _fetch(self, bucket: str, key: str, offset: int, length: int | None, generation: str) -> bytes:
        wanted = byte_range(offset, length)
        condition = {"IfMatch": generation} if generation else {}
        return self._answer(bucket, key, **({"Range": wanted} if wanted else {}), **condition)[1]

    def _answer(self, bucket: str, key: str, **wanted: str) -> tuple[Mapping[str, Any], bytes]:
        request = {"Bucket": bucket, "Key": key, **self._filesystem.req_kw, **wanted}

        async def read() -> tuple[Mapping[str, Any], bytes]:
            # cat_file of newer s3fs makes a request for the size first
            answer = await self._filesystem._call_s3("get_object", **request)
            try:
                return answer, bytes(await answer["Body"].read())
            except Exception as error:  # errors of botocore, aiohttp and Python: the answer broke off
                raise TruncatedResponseError(str(error)) from error
            finally:
                answer["Body"].close()

        sync = importlib.import_module("fsspec.asyn").sync
        # s3fs repeats requests, but not if the answer breaks off
        return after_transient_errors(
            lambda: cast(tuple[Mapping[str, Any], bytes], sync(self._filesystem.loop, read)),
            lambda _: None,
            lambda error: isinstance(error, TruncatedResponseError),
            lambda _: 0.0,
        )

    def _fetch_tail(self, bucket: str, key: str, tail_bytes: int, size_bytes: int | None) -> ObjectTail:  # noqa: ARG002 - the answer has it
        try:
            answer, tail = self._answer(bucket, key, Range=f"bytes=-{tail_bytes}")
        except Exception as error:
            if self._http_status(error) == 416:
                return ObjectTail(0, b"", "")
            raise
        content_range = answer.get("ContentRange")
        return ObjectTail(size_of(content_range) if content_range else len(tail), tail, generation_of(answer))

    def _delete_object(self, bucket: str, key: str) -> None:
        self._call("delete_object", bucket, Key=key)

    def _delete_batch(self, bucket: str, keys: Sequence[str]) -> Collection[str]:
        answer = self._call("delete_objects", bucket, Delete={"Objects": [{"Key": key} for key in keys]})
        return {str(entry["Key"]) for entry in answer.get("Deleted", ())}


class _PartsOfS3:
    """A multipart upload, which the store keeps until it is finished or discarded."""

    parallel = PARALLEL

    def __init__(self, storage: S3Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._bucket, self._key = storage._bucket_and_key(path)
        begun = self._call("create_multipart_upload")
        self._id = begun["UploadId"]
        self._with_checksums = bool(begun.get("ChecksumAlgorithm"))
        self._parts: dict[int, dict[str, Any]] = {}
        self._sizes: dict[int, int] = {}

    def _call(self, operation: str, **request: Any) -> Any:
        with self._storage._translated("written", self._path):
            return self._storage._call(operation, self._bucket, Key=self._key, **request)

    def part(self, number: int, data: bytes) -> None:
        answer = self._call("upload_part", UploadId=self._id, PartNumber=number, Body=data)
        # only an upload with checksums expects those of the parts
        sums = {n: v for n, v in answer.items() if n.startswith("Checksum") and n != "ChecksumType"}
        self._sizes[number] = len(data)
        self._parts[number] = {"PartNumber": number, "ETag": answer["ETag"], **(sums if self._with_checksums else {})}

    def finish(self) -> None:
        parts = [self._parts[number] for number in sorted(self._parts)]
        try:
            self._call("complete_multipart_upload", UploadId=self._id, MultipartUpload={"Parts": parts})
        except FileNotFoundInStorageError:
            # the upload no longer exists: an attempt whose answer was lost has completed it
            if self._storage.status(self._path).size_bytes != sum(self._sizes.values()):
                raise

    def discard(self) -> None:
        self._call("abort_multipart_upload", UploadId=self._id)


def _info(key: str, entry: Mapping[str, Any], size: str) -> ObjectInfo:
    return ObjectInfo(key, int(entry[size]), modification_time_ms(entry), generation_of(entry))
