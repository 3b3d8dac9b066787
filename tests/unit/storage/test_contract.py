"""Every storage against the one contract."""

from __future__ import annotations

import datetime
import errno
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import fsspec.implementations.memory
import pytest

from delta_pyds.errors import FileNotFoundInStorageError, NothingWrittenError, StorageError
from delta_pyds.storage.base import Storage
from delta_pyds.storage.fsspec_store import FsspecStorage
from delta_pyds.storage.local import LocalStorage
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.s3 import S3Storage
from tests.support.memory_storage import MemoryStorage

from .contract import Put, ReadingContract, WritingContract


def write_file(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)


class TestLocal(WritingContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return LocalStorage()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.fixture
    def put(self) -> Put:
        return write_file


class TestLocalByUri(WritingContract):
    """``file://`` paths go in and come out as they are."""

    @pytest.fixture
    def storage(self) -> Storage:
        return resolve_storage("file:///")

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}"

    @pytest.fixture
    def put(self) -> Put:
        return lambda path, data: write_file(path.removeprefix("file://"), data)


class TestMemory(WritingContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return MemoryStorage()

    @pytest.fixture
    def root(self) -> str:
        return "memory://t"

    @pytest.fixture
    def put(self, storage: MemoryStorage) -> Put:
        return storage.put


class TestFsspecMemory(ReadingContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return resolve_storage("memory://")

    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid.uuid4().hex}"

    @pytest.fixture
    def put(self) -> Put:
        return lambda path, data: fsspec.filesystem("memory").pipe_file(path, data)

    def test_refuses_to_create_files(self, storage: Storage, root: str) -> None:
        with pytest.raises(StorageError, match="no atomic create has been proven for memory://"):
            storage.put_if_absent(f"{root}/1.json", b"x")
        assert not storage.exists(f"{root}/1.json")
        with pytest.raises(StorageError, match="no atomic create has been proven for memory://"):
            storage.require_put_if_absent(root)


class TestFsspecLocal(ReadingContract):
    @pytest.fixture
    def storage(self) -> Storage:
        return FsspecStorage(fsspec.filesystem("file"), "file")

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path)

    @pytest.fixture
    def put(self) -> Put:
        return write_file


class CachingFilesystem(fsspec.implementations.memory.MemoryFileSystem):
    """Remembers listings, as the file systems of object stores do."""

    protocol = "caching"
    cachable = False

    def ls(self, path: str, **_: Any) -> Any:
        if path not in self.dircache:
            self.dircache[path] = super().ls(path, detail=True)
        return self.dircache[path]

    def info(self, path: str, **_: Any) -> Any:
        return next(entry for entry in self.ls(self._parent(path)) if entry["name"] == path)

    def invalidate_cache(self, path: str | None = None) -> None:
        while path:
            self.dircache.pop(path, None)
            path = self._parent(path) if path != "/" else None


def test_cached_listings_do_not_hide_new_files() -> None:
    filesystem = CachingFilesystem()
    storage, root = FsspecStorage(filesystem, "memory"), f"memory://{uuid.uuid4().hex}"
    filesystem.pipe_file(f"{root}/1", b"x")
    assert [status.name for status in storage.list_from(root, "")] == ["1"]
    filesystem.pipe_file(f"{root}/2", b"x")
    assert [status.name for status in storage.list_from(root, "")] == ["1", "2"]
    assert storage.status(f"{root}/1").size_bytes == 1
    filesystem.pipe_file(f"{root}/1", b"xyz")
    assert storage.status(f"{root}/1").size_bytes == 3


class FakeS3:
    """The calls of s3fs that S3Storage makes, with pages of two keys."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests: list[dict[str, Any]] = []
        self.req_kw = {"RequestPayer": "requester"}
        self.config_kwargs: dict[str, Any] = {}

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.removeprefix("s3://").partition("/")
        return bucket, key, None

    def call_s3(self, method: str, **request: Any) -> dict[str, Any]:
        assert (method, request["Bucket"], request["RequestPayer"]) == ("list_objects_v2", "bucket", "requester")
        self.requests.append(request)
        prefix = request["Prefix"]
        after = request.get("ContinuationToken") or request.get("StartAfter", "")
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        tops = sorted({prefix + key[len(prefix) :].partition("/")[0] for key in keys})
        page = tops[: request.get("MaxKeys", 2)]
        now = datetime.datetime.now(datetime.timezone.utc)
        contents = [key for key in page if key in self.objects]
        return {
            "Contents": [{"Key": key, "Size": len(self.objects[key]), "LastModified": now} for key in contents],
            "CommonPrefixes": [{"Prefix": f"{top}/"} for top in page if top not in self.objects],
            "KeyCount": len(page),
            "IsTruncated": len(page) < len(tops),
            # past the last key, and past all keys below it where it is a folder
            "NextContinuationToken": page[-1] + "/\U0010ffff" if page else None,
        }


class TestS3Listing:
    """Listing by StartAfter; the rest is FsspecStorage."""

    @pytest.fixture
    def s3(self) -> FakeS3:
        fake = FakeS3()
        for version in range(10):
            fake.objects[f"t/_delta_log/{version:020d}.json"] = b"x" * version
        fake.objects["t/_delta_log/_sidecars/a.parquet"] = b"x"
        fake.objects["t/_delta_log/_last_checkpoint"] = b"{}"
        return fake

    def test_starts_at_the_name_and_follows_pages(self, s3: FakeS3) -> None:
        storage = S3Storage(s3, "s3")
        listed = list(storage.list_from("s3://bucket/t/_delta_log", f"{3:020d}"))
        assert [status.path for status in listed] == [
            *(f"s3://bucket/t/_delta_log/{version:020d}.json" for version in range(3, 10)),
            "s3://bucket/t/_delta_log/_last_checkpoint",
        ]
        assert [status.size_bytes for status in listed[:3]] == [3, 4, 5]
        assert f"{2:020d}" not in s3.requests[0]["StartAfter"]
        assert len(s3.requests) < 8

    def test_a_start_name_that_is_there_is_listed(self, s3: FakeS3) -> None:
        names = [status.name for status in S3Storage(s3, "s3").list_from("s3://bucket/t/_delta_log", f"{9:020d}.json")]
        assert names == [f"{9:020d}.json", "_last_checkpoint"]

    def test_stopping_early_asks_for_no_more_pages(self, s3: FakeS3) -> None:
        listing = S3Storage(s3, "s3").list_from("s3://bucket/t/_delta_log", "")
        next(listing)
        assert len(s3.requests) == 1

    def test_nothing_after_the_name_differs_from_no_directory(self, s3: FakeS3) -> None:
        storage = S3Storage(s3, "s3")
        assert list(storage.list_from("s3://bucket/t/_delta_log", "zzz")) == []
        with pytest.raises(FileNotFoundInStorageError, match="s3://bucket/other"):
            storage.list_from("s3://bucket/other", "zzz")


def test_memory_storage_injects_faults() -> None:
    def fail(operation: str, path: str) -> None:
        if operation == "read":
            raise StorageError(f"{path} is on fire.", path=path)

    storage = MemoryStorage(on_call=fail, clock=lambda: 42)
    storage.put_if_absent("/t/a", b"x")
    assert storage.status("/t/a").modification_time_ms == 42
    with pytest.raises(StorageError, match="on fire"):
        storage.read("/t/a")


def test_a_local_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    # a directory in place of a file fails for every user, root too
    (tmp_path / "d").mkdir()
    with pytest.raises(StorageError, match="could not be read") as caught:
        LocalStorage().read(str(tmp_path / "d"))
    assert caught.value.parameters["path"] == str(tmp_path / "d")


def test_a_failed_local_create_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageError, match="could not be created"):
        LocalStorage().put_if_absent(str(tmp_path / "file" / "1.json"), b"x")
    LocalStorage().put_if_absent(str(tmp_path / "1.json"), b"x")
    assert sorted(os.listdir(tmp_path)) == ["1.json", "file"]


@pytest.mark.parametrize("answer", [OSError(5, "I/O error"), FileExistsError(17, "File exists")])
def test_a_link_that_was_made_counts_whatever_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: OSError
) -> None:
    """Over NFS the answer may be lost, and the repeated request says that the target exists."""
    link = os.link

    def link_and_fail(source: str, target: str) -> None:
        link(source, target)
        raise answer

    monkeypatch.setattr(os, "link", link_and_fail)
    LocalStorage().put_if_absent(str(tmp_path / "1.json"), b"x")
    assert (tmp_path / "1.json").read_bytes() == b"x"
    assert os.listdir(tmp_path) == ["1.json"]


@pytest.mark.parametrize(("number", "refused"), [(errno.EIO, False), (errno.EPERM, True), (errno.EOPNOTSUPP, True)])
def test_a_link_that_was_not_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, refused: bool
) -> None:
    def fail(source: str, target: str) -> None:
        raise OSError(number, f"cannot link {source} to {target}")

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(StorageError, match=r"1\.json") as caught:
        LocalStorage().put_if_absent(str(tmp_path / "1.json"), b"x")
    assert isinstance(caught.value, NothingWrittenError) is refused
    assert os.listdir(tmp_path) == []


def test_memory_storage_loses_answers_and_hides_files() -> None:
    def lose(operation: str, path: str) -> None:
        raise TimeoutError(f"{operation} {path}")

    storage = MemoryStorage(after_call=lose, listed=lambda _, names: names[:-1])
    for put in (storage.put, storage.put_if_absent):
        with pytest.raises(TimeoutError, match=put.__name__):
            put(f"/t/{put.__name__}", b"x")
        assert storage.read(f"/t/{put.__name__}") == b"x"
    assert [status.name for status in storage.list_from("/t", "")] == ["put"]
    with pytest.raises(TimeoutError, match="delete"):
        storage.delete("/t/put")
    assert not storage.exists("/t/put")


class Noting:
    """A file system that notes what it is asked for, and has everything."""

    config_kwargs: ClassVar[dict[str, Any]] = {}

    account_name = "Acc"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def _strip_protocol(self, path: str) -> str:
        return path

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.removeprefix("s3://").partition("/")
        return bucket, key, None

    def cat_file(self, path: str, *_: Any, **__: Any) -> bytes:
        self.asked.append(path)
        return b"x"

    req_kw: Mapping[str, Any] = {}
    open = ls = pipe_file = rm_file = cat_file

    def info(self, path: str) -> dict[str, str]:
        self.asked.append(path)
        return {"type": "file"}

    def call_s3(self, _: str, **request: Any) -> dict[str, int]:
        self.asked.append(f"s3://{request['Bucket']}/{request['Key']}")
        return {"ContentLength": 1}

    def invalidate_cache(self, path: str) -> None:
        pass


@pytest.mark.parametrize(
    ("root", "path", "asked"),
    [
        ("s3://b/t", "s3://other/x", "s3://other/x"),
        ("s3://b/t", "s3a://other/x", "s3://other/x"),
        ("s3://b/t", "S3N:/other/x", "s3://other/x"),
        ("s3://b/t", "gs://b/x", None),
        ("s3://b/t", "file:///etc/passwd", None),
        ("s3://b/t", "/etc/passwd", None),
        ("s3://b/t", "http://host/x", None),
        ("gs://b/t", "gcs://other/x", "gs://other/x"),
        ("gs://b/t", "s3://b/x", None),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfss://d@ACC.dfs.core.windows.net/x", "abfss://d@ACC.dfs.core.windows.net/x"),
        ("abfss://c@acc.dfs.core.windows.net/t", "az://d/x", "abfss://d/x"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfss://c@other.dfs.core.windows.net/x", None),
        ("abfss://c@acc.dfs.core.windows.net/t", "wasbs://d@acc.blob.core.windows.net/x", "abfss://d@acc.blob.core.windows.net/x"),
        ("abfss://c/t", "abfss://c@acc.dfs.core.windows.net/x", "abfss://c@acc.dfs.core.windows.net/x"),
        ("abfss://c/t", "abfss://c@other.dfs.core.windows.net/x", None),
        ("http://host:80/t", "http://host:80/x", "http://host:80/x"),
        ("http://host:80/t", "http://host:81/x", None),
        ("http://host/t", "https://host/x", None),
        ("memory://t", "memory:/u/x", "memory://u/x"),
    ],
)  # fmt: skip
def test_a_store_opens_files_of_its_own_place_only(root: str, path: str, asked: str | None) -> None:
    filesystem = Noting()
    scheme = root.split(":")[0]
    kind = S3Storage if scheme == "s3" else FsspecStorage
    storage = kind(filesystem, scheme, root=root)
    if asked is not None:
        assert storage.exists(path)
    else:
        for call in (
            storage.read,
            storage.parquet_source,
            storage.status,
            storage.exists,
            lambda p: storage.put(p, b""),
        ):
            with pytest.raises(StorageError, match="may not refer to another store"):
                call(path)
        with pytest.raises(StorageError, match="may not refer to another store"):
            storage.list_from(path, "")
    assert filesystem.asked == ([] if asked is None else [asked])


def test_an_error_of_delete_is_an_error() -> None:
    class Forbidding(Noting):
        def rm_file(self, path: str, *_: Any, **__: Any) -> bytes:
            raise FileNotFoundError(path) if path.endswith("gone") else PermissionError("403")

    storage = FsspecStorage(Forbidding(), "gs", root="gs://b/t")
    storage.delete("gs://b/t/gone", below="gs://b/t")
    with pytest.raises(StorageError, match="'gs://b/t/f' could not be deleted: PermissionError: 403"):
        storage.delete("gs://b/t/f", below="gs://b/t")
    with pytest.raises(StorageError, match="not a file below"):
        storage.delete("gs://b/tt/f", below="gs://b/t")
