"""Log compactions as they lie in the log; that they change no version is a property test of replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import MissingLogFilesError, StorageError, UnsupportedOperationError
from delta_pyds.log.compaction import write_compaction
from delta_pyds.log.segment import load_segment
from delta_pyds.storage.local import LocalStorage
from tests.support.memory_storage import MemoryStorage

ROOT = "memory://t"


def put(storage: MemoryStorage, version: int, *lines: Any) -> None:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    storage.put(f"{ROOT}/_delta_log/{version:020d}.json", "\n".join(texts).encode())


def compacted(storage: MemoryStorage, first: int, last: int) -> list[Any]:
    path = write_compaction(storage, ROOT, first, last)
    assert path == f"{ROOT}/_delta_log/{first:020d}.{last:020d}.compacted.json"
    return [json.loads(line) for line in storage.read(path).splitlines()]


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    put(storage, 3, {"add": {"path": "f1"}})
    put(storage, 4, {"commitInfo": {}}, {"add": {"path": "f2"}}, {"remove": {"path": "f1"}})
    txn = {"appId": "3ae45b72-24e1-865a-a211-34987ae02f2a", "version": 4389}
    put(storage, 5, {"commitInfo": {}}, {"add": {"path": "f3"}}, {"add": {"path": "f4"}}, {"txn": txn})
    put(storage, 6, {"commitInfo": {}}, {"remove": {"path": "f3"}}, {"txn": {**txn, "version": 4390}})
    return storage


def test_the_protocols_example(storage: MemoryStorage) -> None:
    lines = compacted(storage, 4, 6)
    assert sorted(lines, key=str) == [
        {"add": {"path": "f2"}},
        {"add": {"path": "f4"}},
        {"remove": {"path": "f1"}},
        {"remove": {"path": "f3"}},
        {"txn": {"appId": "3ae45b72-24e1-865a-a211-34987ae02f2a", "version": 4390}},
    ]


def test_protocol_and_metadata_are_in_front_and_tombstones_stay(storage: MemoryStorage) -> None:
    domain = {"domain": "d", "configuration": "{}", "removed": True}
    put(storage, 7, {"domainMetadata": domain}, {"cdc": {"path": "c"}}, {"metaData": {"id": "m"}})
    put(storage, 8, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    kinds = [next(iter(line)) for line in compacted(storage, 6, 8)]
    assert kinds == ["metaData", "protocol", "remove", "txn", "domainMetadata"]


def test_what_others_wrote_is_kept_as_they_wrote_it(storage: MemoryStorage) -> None:
    line = '{"add": {"path":"x", "size":1,"future":{"a":[1, 2]}}}'
    put(storage, 7, line)
    path = write_compaction(storage, ROOT, 6, 7)
    assert line.encode() in storage.read(path).splitlines()


def test_an_action_of_a_later_protocol_is_not_lost(storage: MemoryStorage) -> None:
    put(storage, 7, {"futureAction": {"a": 1}})
    with pytest.raises(UnsupportedOperationError, match="futureAction"):
        write_compaction(storage, ROOT, 6, 7)


def test_a_missing_commit_is_named(storage: MemoryStorage) -> None:
    storage.delete(f"{ROOT}/_delta_log/{5:020d}.json")
    with pytest.raises(MissingLogFilesError, match="version 5 is missing"):
        write_compaction(storage, ROOT, 4, 6)
    with pytest.raises(MissingLogFilesError, match="version 7 is missing"):
        write_compaction(storage, ROOT, 6, 7)


@pytest.mark.parametrize(("first", "last"), [(4, 4), (5, 4), (-1, 4)])
def test_a_range_is_of_two_versions_or_more(storage: MemoryStorage, first: int, last: int) -> None:
    with pytest.raises(ValueError, match="at least two versions"):
        write_compaction(storage, ROOT, first, last)


def test_one_that_exists_is_left_alone(storage: MemoryStorage) -> None:
    path = write_compaction(storage, ROOT, 4, 6)
    before = storage.read(path)
    put(storage, 6)
    assert write_compaction(storage, ROOT, 4, 6) == path
    assert storage.read(path) == before


def test_one_that_dies_halfway_leaves_no_part(storage: MemoryStorage) -> None:
    def die(operation: str, path: str) -> None:
        if operation == "put_if_absent":
            raise StorageError(f"{path}: gone")

    storage.on_call = die
    with pytest.raises(StorageError, match="gone"):
        write_compaction(storage, ROOT, 4, 6)
    assert not any("compacted" in status.name for status in storage.list_from(f"{ROOT}/_delta_log", ""))


def test_our_reader_uses_it(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version in range(5):
        (log / f"{version:020d}.json").write_text('{"add":{"path":"f"}}\n')
    path = write_compaction(LocalStorage(), str(tmp_path), 1, 4)
    segment = load_segment(LocalStorage(), str(tmp_path))
    assert [file.path for file in segment.commits] == [str(log / f"{0:020d}.json"), path]
