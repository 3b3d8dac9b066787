"""S3, and what speaks like it, by s3fs. The package is imported when a path first needs it (see ``fsspec_store``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms
from delta_pyds.storage.object_store import Found, ObjectStorage, Page


class S3Storage(ObjectStorage):
    """S3 by s3fs: creates by ``If-None-Match: *``, which each bucket must prove."""

    _unproven = "the store, or the installed version of botocore, ignores If-None-Match"

    def _place(self, path: str) -> tuple[str, str]:
        bucket, key, _ = self._filesystem.split_path(self._own(path))
        return str(bucket), str(key)

    def _call(self, operation: str, bucket: str, **request: Any) -> Any:
        return self._filesystem.call_s3(operation, Bucket=bucket, **self._filesystem.req_kw, **request)

    def _put_where_absent(self, own_path: str, data: bytes) -> None:
        bucket, key = self._place(own_path)
        self._call("put_object", bucket, Key=key, Body=data, IfNoneMatch="*")

    def _http_status(self, error: BaseException) -> int | None:
        """The status that botocore keeps in an error, or in its cause where s3fs translated it."""
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
            # StartAfter leaves its own name out: start a little before it
            request["StartAfter"] = prefix + start[:-1]
        page = self._call("list_objects_v2", bucket, Prefix=prefix, Delimiter="/", **request)
        files = [_found(str(entry["Key"]), entry, "Size") for entry in page.get("Contents", ())]
        directories = [Found(str(e["Prefix"])[:-1], is_directory=True) for e in page.get("CommonPrefixes", ())]
        return Page(files + directories, page["NextContinuationToken"] if page.get("IsTruncated") else None)

    def _examined(self, bucket: str, key: str) -> Found:
        return _found(key, self._call("head_object", bucket, Key=key), "ContentLength")

    def _remove(self, bucket: str, key: str) -> None:
        self._call("delete_object", bucket, Key=key)


def _found(key: str, entry: Mapping[str, Any], size: str) -> Found:
    return Found(key, int(entry[size]), modification_time_ms(entry), generation_of(entry))
