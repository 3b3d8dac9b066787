"""S3 against a server: the whole contract, and a put-if-absent that must be proven."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import s3fs

from delta_pyds.errors import FileExistsInStorageError, FileNotFoundInStorageError, NothingWrittenError, StorageError
from delta_pyds.storage.base import Storage
from delta_pyds.storage.object_output import PART_BYTES
from delta_pyds.storage.object_store import Page
from delta_pyds.storage.resolve import resolve_storage
from delta_pyds.storage.s3 import S3Storage
from tests.support.faulty_proxy import proxy
from tests.support.s3_server import options, s3_server

from .contract import ODD_NAMES, Put, WritingContract


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with s3_server() as url:
        yield url


class TestS3(WritingContract):
    @pytest.fixture
    def storage(self, url: str) -> Storage:
        return resolve_storage("s3://bucket/t", options(url))

    @pytest.fixture
    def root(self) -> str:
        return f"s3://bucket/{uuid.uuid4().hex}"

    @pytest.fixture
    def put(self, url: str) -> Put:
        filesystem = s3fs.S3FileSystem(**options(url))

        def put(path: str, data: bytes) -> None:
            bucket, _, key = path.removeprefix("s3://").partition("/")
            filesystem.call_s3("put_object", Bucket=bucket, Key=key, Body=data)

        return put

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_created_names_are_literal(self, storage: Storage, root: str, name: str) -> None:
        storage.put_if_absent(f"{root}/{name}", b"x")
        assert self.names(storage, root, "") == [name]
        with storage.open_output(f"{root}/d/{name}") as file:
            file.write(b"y")
        assert storage.read(f"{root}/d/{name}") == b"y"

    def test_a_name_that_s3fs_takes_for_a_version_is_literal(self, storage: Storage, root: str, put: Put) -> None:
        """To delete it must not delete what has the name before it."""
        names = ["x", "x?versionId=1", "y", "y?versionId=1"]
        for name in names:
            put(f"{root}/{name}", name.encode())
        assert self.names(storage, root, "") == names
        assert storage.read(f"{root}/x?versionId=1") == b"x?versionId=1"
        storage.delete(f"{root}/x?versionId=1", below=root)
        assert self.names(storage, root, "") == ["x", "y", "y?versionId=1"]
        assert storage.delete_all([f"{root}/y?versionId=1", f"{root}/none"], below=root) == {}
        assert self.names(storage, root, "") == ["x", "y"]
        storage.put_if_absent(f"{root}/z?versionId=1", b"z")
        assert self.names(storage, root, "z") == ["z?versionId=1"]
        for write in (lambda path: storage.put(path, b"new"), storage.open_output):
            with pytest.raises(StorageError, match="was not written"):
                write(f"{root}/x?versionId=1")
        assert storage.read(f"{root}/x") == b"x"


class Client:
    """s3fs with a hand in its calls."""

    def __init__(self, url: str) -> None:
        self._filesystem = s3fs.S3FileSystem(**options(url))
        self.puts: list[str] = []
        self.answers: list[Exception | None] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._filesystem, name)

    def call_s3(self, method: str, **request: Any) -> Any:
        if method == "put_object":
            self.puts.append(request["Key"])
            answer = self.answers.pop(0) if self.answers else None
            if answer is not None:
                raise answer
        return self._filesystem.call_s3(method, **request)


def failure(status: int) -> OSError:
    """As s3fs raises it: a Python error whose cause is botocore's."""
    from botocore.exceptions import ClientError

    cause = ClientError({"Error": {"Code": str(status)}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")
    error = OSError(5, f"status {status}")
    error.__cause__ = cause
    return error


@pytest.fixture
def client(url: str) -> Client:
    return Client(url)


@pytest.fixture
def root() -> str:
    return f"s3://bucket/{uuid.uuid4().hex}"


class MarkedStorage(S3Storage):
    """Shows objects whose names end in _d as such that stand for directories, as Azure does; lists in no order."""

    def _lists_in_order(self, bucket: str) -> bool:
        return not bucket

    def _page(self, *where: Any, **how: Any) -> Page:
        page = super()._page(*where, **how)
        return page._replace(
            entries=[one._replace(is_directory=one.is_directory or one.key.endswith("_d")) for one in page.entries]
        )


def test_a_directory_with_an_object_that_stands_for_it_is_listed_once(client: Client, root: str) -> None:
    storage = MarkedStorage(client, "s3")
    for name in ("p_d", "p_d/x", "f"):
        storage.put(f"{root}/{name}", b"x")
    assert [(one.name, one.kind) for one in storage.list_directory(root)] == [("f", "file"), ("p_d", "directory")]


def test_a_missing_directory_where_listings_have_no_order(client: Client, root: str) -> None:
    storage = MarkedStorage(client, "s3")
    storage.put(f"{root}/f", b"x")
    assert list(storage.list_from(root, "g")) == []
    with pytest.raises(FileNotFoundInStorageError):
        storage.list_from(f"{root}/nothing", "")


def test_a_store_that_ignores_the_condition_is_refused(root: str) -> None:
    with s3_server(heeds_conditions=False) as url:
        storage = resolve_storage("s3://bucket/t", options(url))
        for _ in range(2):
            with pytest.raises(NothingWrittenError, match="ignores If-None-Match") as caught:
                storage.put_if_absent(f"{root}/1.json", b"x")
            assert caught.value.code == "DELTA_OPERATION_NOT_ALLOWED"
        with pytest.raises(NothingWrittenError, match="ignores If-None-Match"):
            storage.require_put_if_absent(root)
        assert not storage.exists(f"{root}/1.json")


def test_a_store_that_looks_first_and_puts_then_is_refused(root: str) -> None:
    """One after the other it refuses the second, and of two at once it takes both."""
    with s3_server(in_one_step=False) as url:
        storage = resolve_storage("s3://bucket/t", options(url))
        with pytest.raises(NothingWrittenError, match="ignores If-None-Match"):
            storage.put_if_absent(f"{root}/1.json", b"x")
        assert not storage.exists(f"{root}/1.json")


def test_the_proof_is_asked_for_once_and_leaves_nothing(client: Client, root: str) -> None:
    storage = S3Storage(client, "s3")
    storage.put_if_absent(f"{root}/1.json", b"x")
    storage.put_if_absent(f"{root}/2.json", b"x")
    assert len(client.puts) == 11 and len(set(client.puts)) == 3
    assert [status.name for status in storage.list_from(root, "")] == ["1.json", "2.json"]


@pytest.mark.parametrize("times", [1, 5])
def test_a_conflict_of_two_creates_is_tried_again(
    client: Client, root: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_pyds.storage.conditional_put.time.sleep", lambda _: None)
    storage = S3Storage(client, "s3")
    storage.put_if_absent(f"{root}/0.json", b"x")
    client.answers = [failure(409)] * times
    storage.put_if_absent(f"{root}/1.json", b"x")
    client.answers = [failure(409)] * times
    with pytest.raises(FileExistsInStorageError):
        storage.put_if_absent(f"{root}/1.json", b"y")
    assert storage.read(f"{root}/1.json") == b"x"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (failure(403), True),
        (failure(404), True),
        (failure(409), False),
        (failure(429), False),
        (failure(500), False),
        (failure(503), False),
        (TimeoutError("no answer"), False),
    ],
)
def test_only_a_refusal_says_that_nothing_was_written(
    client: Client, root: str, answer: Exception, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delta_pyds.storage.conditional_put.time.sleep", lambda _: None)
    storage = S3Storage(client, "s3")
    storage.put_if_absent(f"{root}/0.json", b"x")
    client.answers = [answer] * 10
    with pytest.raises(StorageError) as caught:
        storage.put_if_absent(f"{root}/1.json", b"x")
    assert isinstance(caught.value, NothingWrittenError) is refused
    assert f"{root}/1.json" in caught.value.message


def test_a_bucket_that_does_not_exist_is_a_refusal(url: str) -> None:
    with pytest.raises(NothingWrittenError, match="s3://nowhere/t/"):
        resolve_storage("s3://nowhere/t", options(url)).put_if_absent("s3://nowhere/t/1.json", b"x")


def test_a_long_file_whose_last_answer_is_lost_is_there(url: str) -> None:
    """The client asks again, and stores say that there is no such upload: it ended."""
    ends: list[str] = []

    def lose(method: str, path: str) -> str | None:
        if method == "POST" and "uploadId=" in path:
            ends.append(path)
            return "lost" if len(ends) == 1 else "refused"
        return None

    def write(path: str) -> None:
        with resolve_storage(path, options(behind)).open_output(path) as file:
            file.write(data)

    data, root = bytes(PART_BYTES + 1), f"s3://bucket/{uuid.uuid4().hex}"
    with proxy(url) as (behind, faults):
        faults.choose = lose
        faults.refusal = (404, [], b"<Error><Code>NoSuchUpload</Code><Message>None.</Message></Error>")
        write(f"{root}/1")
        assert len(ends) == 2 and resolve_storage(root, options(url)).read(f"{root}/1") == data
        # one that another process has ended
        with pytest.raises(StorageError, match=f"{root}/2"):
            write(f"{root}/2")
