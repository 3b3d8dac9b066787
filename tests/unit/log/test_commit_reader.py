"""Decoding of actions from commit files."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from delta_pyds.errors import CorruptLogError, MissingLogFilesError, StorageError
from delta_pyds.log.commit_reader import decode_commit, read_commit, read_commit_info, read_commits
from delta_pyds.log.listing import LogFile, list_log
from delta_pyds.protocol.actions import CommitInfo, SingleAction
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

ADD = b'{"add":{"path":"a","size":1}}'


def commits_of(*contents: bytes) -> tuple[MemoryStorage, tuple[LogFile, ...]]:
    storage = MemoryStorage()
    for version, content in enumerate(contents):
        storage.put(f"/t/_delta_log/{version:020d}.json", content)
    return storage, list_log(storage, "/t").commits


def test_reads_what_a_table_wrote(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    [add] = table.append([{"id": 1}])
    table.delete(add, [0])
    storage = LocalStorage()
    files = list_log(storage, str(tmp_path)).commits
    first, second, third = (read_commit(storage, file) for file in files)
    assert [name for action in first for name in set_fields(action)] == ["commit_info", "protocol", "meta_data"]
    assert second[1].add is not None
    assert second[1].add.path == add["add"]["path"]
    assert third[1].remove is not None
    assert third[2].add is not None
    assert third[2].add.deletion_vector is not None


def set_fields(action: SingleAction) -> list[str]:
    return [name for name in action.__struct_fields__ if getattr(action, name) is not None]


@pytest.mark.parametrize(
    "content",
    [
        ADD,
        ADD + b"\n",
        b"\n\n" + ADD + b"\n  \n\t\n",
        ADD + b"\r\n",
        b"\xef\xbb\xbf" + ADD,
        b'{"add": {"path": "a", "size": 1, "future": {"x": [1]}}, "remove": null, "commitInfo": null}',
        b'  {"add":{"path":"a","size":1}}  ',
    ],
)
def test_layout_of_lines_does_not_matter(content: bytes) -> None:
    [action] = decode_commit(content, "f")
    assert set_fields(action) == ["add"]
    assert action.add is not None
    assert (action.add.path, action.add.size) == ("a", 1)


def test_an_unknown_action_is_an_empty_one() -> None:
    assert [set_fields(action) for action in decode_commit(b'{"someday":{"a":1}}\n{}\n' + ADD, "f")] == [
        [],
        [],
        ["add"],
    ]


def test_an_empty_file_has_no_actions() -> None:
    assert decode_commit(b"", "f") == []


@pytest.mark.parametrize(
    "line",
    [
        b'{"add":{"path":"b"',
        b"not json",
        b'{"add":{"size":1}}',
        b'{"add":{"path":"b","size":"1"}}',
        b'{"add":{"path":"\xff"}}',
        b'{"add":{"path":"b"}},',
        b"[]",
        b"null",
        b'{"commitInfo":{"timestamp":"x"},"add":{"size":1}}',
    ],
)
def test_a_damaged_line_is_named(line: bytes) -> None:
    storage, [file] = commits_of(ADD + b"\n\n" + line + b"\n" + ADD)
    with pytest.raises(CorruptLogError) as caught:
        read_commit(storage, file)
    assert caught.value.parameters == {"path": file.path, "line": 3}
    assert f"Line 3 of the log file '{file.path}'" in caught.value.message


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (b'{"timestamp":"2020-01-01","operation":"WRITE"}', CommitInfo(operation="WRITE")),
        (
            b'{"timestamp":5,"operation":{"odd":1},"inCommitTimestamp":7}',
            CommitInfo(timestamp=5, in_commit_timestamp=7),
        ),
        (b'"text"', CommitInfo()),
        (b"[1]", CommitInfo()),
    ],
)
def test_no_commit_info_makes_a_table_unreadable(info: bytes, expected: CommitInfo) -> None:
    storage, [file] = commits_of(b'{"commitInfo":' + info + b"}\n" + ADD)
    first, second = read_commit(storage, file)
    assert (first.commit_info, set_fields(second)) == (expected, ["add"])
    assert read_commit_info(storage, file) == expected


def test_a_missing_commit_is_named() -> None:
    storage, [file] = commits_of(ADD)
    storage.delete(file.path)
    for read in (read_commit, read_commit_info):
        with pytest.raises(MissingLogFilesError) as caught:
            read(storage, file)
        assert (caught.value.parameters["path"], caught.value.parameters["version"]) == (file.path, 0)


# --- commit infos


def test_commit_info_is_found_anywhere() -> None:
    info = b'{"commitInfo":{"timestamp":1,"operation":"WRITE"}}'
    padding = b"\n".join([ADD.replace(b'"a"', b'"' + b"x" * 1000 + b'"')] * 200)
    for content in (info, ADD + b"\n" + info, padding + b"\n" + info, info + b"\n" + padding):
        storage, [file] = commits_of(content)
        found = read_commit_info(storage, file)
        assert found is not None
        assert (found.timestamp, found.operation) == (1, "WRITE")


def test_commit_info_across_the_end_of_the_head_is_read_whole() -> None:
    filler = ADD.replace(b'"a"', b'"' + b"x" * 65_000 + b'"')
    info = b'{"commitInfo":{"operation":"' + b"o" * 2000 + b'"}}'
    storage, [file] = commits_of(filler + b"\n" + info)
    found = read_commit_info(storage, file)
    assert found is not None
    assert found.operation == "o" * 2000


def test_only_the_head_of_a_large_commit_is_read() -> None:
    storage, [file] = commits_of(b'{"commitInfo":{"timestamp":1}}\n' + (ADD + b"\n") * 100_000)
    lengths: list[int | None] = []
    inner = storage.read

    def watched(path: str, offset: int | None = None, length: int | None = None) -> bytes:
        lengths.append(length)
        return inner(path, offset, length)

    storage.read = watched
    assert read_commit_info(storage, file) == CommitInfo(timestamp=1)
    assert len(lengths) == 1
    assert lengths[0] is not None
    assert lengths[0] < file.size_bytes


def test_a_commit_without_info_has_none() -> None:
    for content in (ADD, b"", b'{"add":{"path":"commitInfo"}}', b'{"commitInfo":null}\n' + ADD):
        storage, [file] = commits_of(content)
        assert read_commit_info(storage, file) is None


# --- many commits


def lines(count: int) -> list[bytes]:
    return [f'{{"add":{{"path":"{version}"}}}}'.encode() for version in range(count)]


@pytest.mark.parametrize("threads", [1, 8])
def test_commits_come_in_the_given_order(threads: int) -> None:
    storage, files = commits_of(*lines(50))
    storage.on_call = lambda _, path: time.sleep(0.002 if path.endswith("0.json") else 0)
    shuffled = files[::-2] + files[::2]
    read = [(file, actions[0].add) for file, actions in read_commits(storage, shuffled, threads=threads)]
    assert [file for file, _ in read] == list(shuffled)
    assert [add.path for _, add in read if add is not None] == [str(file.version) for file in shuffled]


def test_remote_commits_are_fetched_side_by_side_and_not_all_at_once() -> None:
    storage, files = commits_of(*lines(40))
    lock, fetched, running, peak = threading.Lock(), 0, 0, 0

    def slow(_operation: str, _path: str) -> None:
        nonlocal fetched, running, peak
        with lock:
            fetched, running = fetched + 1, running + 1
            peak = max(peak, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    storage.on_call = slow
    commits = read_commits(storage, files, threads=4)
    next(commits)
    time.sleep(0.1)
    assert fetched <= 6
    assert len(list(commits)) == 39
    assert 2 <= peak <= 4


def test_read_ahead_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delta_pyds.log.commit_reader._MAX_BYTES_AHEAD", 100)
    storage, files = commits_of(*(line + b"\n" + b" " * 90 for line in lines(20)))
    fetched: list[str] = []
    storage.on_call = lambda _, path: fetched.append(path)
    commits = read_commits(storage, files, threads=8)
    next(commits)
    time.sleep(0.05)
    assert len(fetched) <= 2
    assert len(list(commits)) == 19


def test_a_failure_comes_when_its_commit_does() -> None:
    storage, files = commits_of(*lines(10))

    def fail(_operation: str, path: str) -> None:
        if path == files[6].path:
            raise StorageError("broken pipe", path=path)

    storage.on_call = fail
    read = []
    with pytest.raises(StorageError, match="broken pipe"):
        for file, _ in read_commits(storage, files):
            read.append(file.version)
    assert read == [0, 1, 2, 3, 4, 5]
