"""The local disk: what it opens, what it makes last, and what it deletes."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.errors import FileExistsInStorageError, FileNotFoundInStorageError, StorageError
from delta_pyds.storage.base import TAIL_BYTES, Storage
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.noting_server import noting_server

STORAGE = LocalStorage()
READS: list[Callable[[str], Any]] = [STORAGE.read, STORAGE.parquet_source, lambda path: STORAGE.read(path, 1, 4)]


# --- names


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    with noting_server() as found:
        yield found


@pytest.mark.parametrize("url", ["s3://b/x?endpoint_override={}&scheme=http", "http://{}/x", "gs://b/x", "hdfs://{}/x"])
def test_a_name_in_another_store_is_refused_and_nobody_is_asked(
    url: str, server: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    path = url.format(server[0])
    for call in (*READS, STORAGE.status, STORAGE.exists, lambda path: list(STORAGE.list_from(path, ""))):
        with pytest.raises(StorageError, match="may not refer to another store"):
            call(path)
    assert server[1] == []


def test_a_name_that_looks_like_a_uri_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("s3:", "x?endpoint_override=127.0.0.1:9&scheme=http", "file:"):
        (tmp_path / name).write_bytes(b"0123456789")
        with STORAGE.parquet_source(f"{tmp_path}/{name}") as file:
            assert file.read() == b"0123456789"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="may not refer to another store"):
        STORAGE.read("s3:")  # not even where the working directory has such a file


@pytest.mark.parametrize(
    ("name", "reason"),
    [("\ud800", "not a valid file name"), ("a\0b", "NUL"), ("x" * 300, "name too long"), ("x/" * 3000 + "x", "long")],
)  # fmt: skip
def test_what_can_be_no_name_is_an_error_with_a_sentence(name: str, reason: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/{name}"
    calls: list[Callable[[], Any]] = [
        *(lambda call=call: call(path) for call in READS),
        lambda: STORAGE.status(path),
        lambda: STORAGE.exists(path),
        lambda: STORAGE.put_if_absent(path, b""),
        lambda: STORAGE.put(path, b""),
        lambda: STORAGE.open_output(path),
        lambda: list(STORAGE.list_from(path, "")),
    ]
    for call in calls:
        with pytest.raises(StorageError, match=reason) as caught:
            call()
        assert caught.value.code == "DELTA_STORAGE_ERROR"
        str(caught.value).encode("utf-8")  # it can be shown, too
        assert len(str(caught.value)) < 5_000
    assert os.listdir(tmp_path) == []


def test_a_name_of_bytes_that_are_no_text_is_read_as_it_is_listed(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.json")).write_bytes(b"x")
    [status] = STORAGE.list_from(str(tmp_path), "")
    assert STORAGE.read(status.path) == b"x"
    with STORAGE.parquet_source(status.path) as file:
        assert file.read() == b"x"


def test_what_may_not_be_read_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    """Tests may run as root, who may read everything: a loop of links is closed to all."""
    (tmp_path / "loop").symlink_to("loop")
    for call in (*READS, STORAGE.status, STORAGE.exists):
        with pytest.raises(StorageError, match="symbolic links") as caught:
            call(f"{tmp_path}/loop")
        assert not isinstance(caught.value, FileNotFoundInStorageError)


# --- entries that are not files


def _make(kind: str, path: Path) -> None:
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        # its name has a limit of 108 bytes
        with socket.socket(socket.AF_UNIX) as one:
            here = os.open(path.parent, os.O_RDONLY)
            one.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a directory"])
def test_only_regular_files_are_opened(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    _make(kind, path)
    for call in READS:
        with pytest.raises(StorageError, match=f"'{path}' could not be read: it is {kind}, not a regular file"):
            call(str(path))
    assert not STORAGE.exists(str(path))
    assert [(one.name, one.regular) for one in STORAGE.list_from(str(tmp_path), "")] == [("f", False)]
    with pytest.raises(StorageError):
        STORAGE.status(str(path))


def test_a_pipe_put_in_the_place_of_a_file_just_now_is_no_file_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    before = os.stat(tmp_path / "f")
    real = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **more: before if str(path).endswith("pipe") else real(path, **more))
    with pytest.raises(StorageError, match="named pipe"):
        STORAGE.read(f"{tmp_path}/pipe")


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "link").symlink_to("f")
    assert STORAGE.read(f"{tmp_path}/link") == b"x"


def test_memory_is_taken_for_what_is_there_not_for_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    assert STORAGE.read(f"{tmp_path}/f", 8, 1 << 60) == b"89"
    assert STORAGE.read(f"{tmp_path}/f", 1 << 70, 1 << 70) == b""
    assert STORAGE.read(f"{tmp_path}/f", 1 << 70) == b""


def test_arrow_gets_an_open_file_and_never_a_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(TAIL_BYTES + 1))
    with STORAGE.parquet_source(f"file://{tmp_path}/f") as file:
        assert isinstance(file, pa.OSFile) and file.readable()


def test_arrow_gets_the_bytes_of_a_short_file(tmp_path: Path) -> None:
    content = bytes(range(256)) * (TAIL_BYTES // 256)
    (tmp_path / "f").write_bytes(content)
    with STORAGE.parquet_source(f"file://{tmp_path}/f") as file:
        assert isinstance(file, pa.BufferReader) and file.read() == content


def test_a_short_file_that_becomes_long_is_not_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x")
    real = os.open

    def grows(path: str, *options: Any) -> int:
        file.write_bytes(bytes(2 * TAIL_BYTES))
        return real(path, *options)

    monkeypatch.setattr(os, "open", grows)
    with STORAGE.parquet_source(str(file)) as source:
        assert isinstance(source, pa.OSFile) and source.size() == 2 * TAIL_BYTES


# --- what lasts


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and directories that were made to last, and what the files had in them then."""
    found: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        status = os.fstat(descriptor)
        found.append("directory " + path if stat.S_ISDIR(status.st_mode) else f"file of {status.st_size} bytes")
        if stat.S_ISDIR(status.st_mode):
            found.extend(sorted(name for name in os.listdir(path) if not name.endswith(".tmp")))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_a_created_file_lasts_and_so_does_its_name(tmp_path: Path, synced: list[str]) -> None:
    STORAGE.put_if_absent(f"{tmp_path}/1.json", b"12345")
    assert synced == ["file of 5 bytes", f"directory {tmp_path}", "1.json"]


def test_a_replaced_file_lasts_and_so_does_its_name(tmp_path: Path, synced: list[str]) -> None:
    STORAGE.put(f"{tmp_path}/hint", b"123")
    assert synced == ["file of 3 bytes", f"directory {tmp_path}", "hint"]


@pytest.mark.parametrize("broken_link", [False, True])
def test_a_put_that_comes_too_late_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken_link: bool
) -> None:
    target = tmp_path / "1.json"
    target.symlink_to("nowhere") if broken_link else target.write_bytes(b"first")
    written: list[object] = []
    monkeypatch.setattr("delta_pyds.storage.local._write_new", lambda *args: written.append(args))
    with pytest.raises(FileExistsInStorageError):
        STORAGE.put_if_absent(str(target), b"second")
    assert written == []
    assert os.listdir(tmp_path) == ["1.json"]


@pytest.mark.parametrize("put", [STORAGE.put_if_absent, STORAGE.put])
def test_the_way_to_a_first_file_lasts_too(put: Callable[..., None], tmp_path: Path, synced: list[str]) -> None:
    put(f"{tmp_path}/t/_delta_log/0.json", b"1")
    log = f"directory {tmp_path}/t/_delta_log"
    assert sorted(synced) == sorted(
        [f"directory {tmp_path}/t", "_delta_log", f"directory {tmp_path}", "t", "file of 1 bytes", log, "0.json"]
    )


def test_a_directory_that_cannot_be_made_to_last_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match=r"1\.json.*could not be created: Input/output error"):
        STORAGE.put_if_absent(f"{tmp_path}/1.json", b"x")


# --- what is deleted


def sibling(root: str) -> str:
    """A directory beside the table's root; only the last part of the path differs."""
    return root.removesuffix("/t") + "/other"


@pytest.fixture(params=["local", "memory"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    """A storage and a table's root with a file in it."""
    storage: Storage = LocalStorage() if request.param == "local" else MemoryStorage()
    root = f"{tmp_path}/t" if request.param == "local" else "memory://t"
    storage.put_if_absent(f"{root}/a/f", b"x")
    storage.put_if_absent(f"{sibling(root)}/f", b"x")
    return storage, root


def test_a_file_below_the_root_is_deleted(stored: tuple[Storage, str]) -> None:
    storage, root = stored
    storage.delete(f"{root}/a/f", below=f"{root}/")
    storage.delete(f"{root}/a/f", below=root)
    storage.delete(f"{root}/a/f/g", below=root)
    storage.delete(f"{root}/nowhere/f", below=root)
    assert not storage.exists(f"{root}/a/f")


@pytest.mark.parametrize("path", ["{0}", "{0}/", "{0}/../other/f", "{0}/a/../../other/f", "{0}/./a/f", "{0}//a/f",
                                  "{1}/f", "{0}x/f", "/etc/passwd", "s3://b/x"])  # fmt: skip
def test_nothing_else_is_deleted(stored: tuple[Storage, str], path: str) -> None:
    storage, root = stored
    other = sibling(root)
    with pytest.raises(StorageError, match=r"not a file below|may not refer to another store"):
        storage.delete(path.format(root, other), below=root)
    assert storage.exists(f"{other}/f") and storage.exists(f"{root}/a/f")


@pytest.mark.parametrize("link", ["link/f", "a/link/f", "a/link/deeper/f"])
def test_nothing_is_deleted_behind_a_linked_directory(tmp_path: Path, link: str) -> None:
    outside = tmp_path / "outside" / "deeper"
    outside.mkdir(parents=True)
    for directory in (outside, outside.parent):
        (directory / "f").write_bytes(b"x")
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "t" / link.split("link")[0] / "link").symlink_to(outside.parent)
    with pytest.raises(StorageError, match="link' is a symbolic link"):
        STORAGE.delete(f"{tmp_path}/t/{link}", below=f"{tmp_path}/t")
    assert (outside / "f").exists() and (outside.parent / "f").exists()


def test_the_root_itself_may_be_a_link_and_a_linked_file_is_unlinked(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "outside").write_bytes(b"x")
    (tmp_path / "t" / "f").symlink_to(tmp_path / "outside")
    (tmp_path / "root").symlink_to("t")
    STORAGE.delete(f"{tmp_path}/root/f", below=f"{tmp_path}/root")
    assert not os.path.lexists(tmp_path / "t" / "f") and (tmp_path / "outside").exists()


def test_what_cannot_be_deleted_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    with pytest.raises(StorageError, match="could not be deleted"):
        STORAGE.delete(f"{tmp_path}/d", below=str(tmp_path))
    assert (tmp_path / "d" / "e").exists()
