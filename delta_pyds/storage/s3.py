"""S3, and what speaks like it, by s3fs. The package is imported when a path first needs it (see ``fsspec_store``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from delta_pyds.storage.base import FileStatus, directory_not_found
from delta_pyds.storage.conditional_put import ConditionalPutStorage
from delta_pyds.storage.fsspec_store import generation_of, modification_time_ms


class S3Storage(ConditionalPutStorage):
    """S3 by s3fs: lists from a name on instead of the whole directory, and creates by a conditional put."""

    _unproven = "the store, or the installed version of botocore, ignores If-None-Match"

    def _bucket(self, own_path: str) -> str:
        bucket, _, _ = self._filesystem.split_path(own_path)
        return str(bucket)

    def _put_where_absent(self, own_path: str, data: bytes) -> None:
        bucket, key, _ = self._filesystem.split_path(own_path)
        self._filesystem.call_s3(
            "put_object", Bucket=bucket, Key=key, Body=data, IfNoneMatch="*", **self._filesystem.req_kw
        )

    def _http_status(self, error: BaseException) -> int | None:
        return _status_of(error)

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        bucket, key, _ = self._filesystem.split_path(self._own(directory))
        if not key or bucket.endswith("--x-s3"):
            return super().list_from(directory, start_name)  # directory buckets list in no order
        prefix = key.rstrip("/") + "/"
        # StartAfter leaves its own name out: start a little before it
        first = self._page(directory, bucket, prefix, StartAfter=prefix + start_name[:-1])
        nothing = not first.get("Contents") and not first.get("CommonPrefixes")
        if nothing and not self._page(directory, bucket, prefix, MaxKeys=1).get("KeyCount"):
            raise directory_not_found(directory)
        return self._pages(directory, bucket, prefix, start_name, first)

    def _pages(
        self, directory: str, bucket: str, prefix: str, start_name: str, page: Mapping[str, Any]
    ) -> Iterator[FileStatus]:
        base = directory.rstrip("/") + "/"
        while True:
            for entry in page.get("Contents", ()):
                name = str(entry["Key"])[len(prefix) :]
                if name and name >= start_name:
                    yield FileStatus(base + name, int(entry["Size"]), modification_time_ms(entry), generation_of(entry))
            if not page.get("IsTruncated"):
                return
            page = self._page(directory, bucket, prefix, ContinuationToken=page["NextContinuationToken"])

    def _page(self, directory: str, bucket: str, prefix: str, **request: Any) -> Mapping[str, Any]:
        with self._translated("listed", directory, directory=True):
            page: Mapping[str, Any] = self._filesystem.call_s3(
                "list_objects_v2",
                Bucket=bucket,
                Prefix=prefix,
                Delimiter="/",
                **self._filesystem.req_kw,
                **request,
            )
        return page


def _status_of(error: BaseException | None) -> int | None:
    """The status that botocore keeps in an error, or in its cause where s3fs translated it."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, Mapping):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
        error = error.__cause__
    return None
