"""``_last_checkpoint`` as we write it: newest wins, and every reader can check it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from delta_pyds.errors import StorageError
from delta_pyds.log.last_checkpoint import (
    LastCheckpointHint,
    V2CheckpointHint,
    encode_last_checkpoint,
    parse_last_checkpoint,
    read_last_checkpoint,
    write_last_checkpoint,
)
from tests.support.checkpoints import hint_checksum
from tests.support.memory_storage import MemoryStorage

ROOT = "memory:/t"
PATH = f"{ROOT}/_delta_log/_last_checkpoint"


def version_after(known: bytes | None, written: int) -> int | None:
    storage = MemoryStorage()
    if known is not None:
        storage.put(PATH, known)
    write_last_checkpoint(storage, ROOT, LastCheckpointHint(version=written, size=3))
    hint = read_last_checkpoint(storage, ROOT)
    return None if hint is None else hint.version


def test_the_newest_checkpoint_is_kept() -> None:
    known = encode_last_checkpoint(LastCheckpointHint(version=10, size=1))
    assert version_after(None, 5) == 5
    assert version_after(known, 9) == 10
    assert version_after(known, 10) == version_after(known, 10) == 10
    assert version_after(known, 11) == 11


@pytest.mark.parametrize("damaged", [b"", b"{", b'{"version":99,"size":1,"checksum":"0"}', b"\xff"])
def test_a_damaged_hint_is_replaced(damaged: bytes) -> None:
    assert version_after(damaged, 5) == 5


def test_a_hint_of_the_same_version_is_replaced_by_the_later_one() -> None:
    storage = MemoryStorage()
    write_last_checkpoint(storage, ROOT, LastCheckpointHint(version=5, size=1))
    write_last_checkpoint(storage, ROOT, LastCheckpointHint(version=5, size=2))
    hint = read_last_checkpoint(storage, ROOT)
    assert hint is not None and hint.size == 2


def test_a_hint_that_cannot_be_written_is_an_error_and_leaves_the_old_one() -> None:
    failing = {"put": False}

    def fail(operation: str, path: str) -> None:
        if failing.get(operation):
            raise StorageError("the disk is full", path=path)

    storage = MemoryStorage(on_call=fail)
    write_last_checkpoint(storage, ROOT, LastCheckpointHint(version=5, size=1))
    failing["put"] = True
    with pytest.raises(StorageError, match="full"):
        write_last_checkpoint(storage, ROOT, LastCheckpointHint(version=6, size=1))
    hint = read_last_checkpoint(storage, ROOT)
    assert hint is not None and hint.version == 5


@pytest.mark.parametrize(
    "hint",
    [
        LastCheckpointHint(version=0),
        LastCheckpointHint(
            version=7, size=3, size_in_bytes=5, num_of_add_files=0, checkpoint_schema={"type": "struct"}
        ),
        LastCheckpointHint(version=7, size=3, parts=2, tags={"é": None, "k": "a b"}),
        LastCheckpointHint(
            version=7,
            size=3,
            v2_checkpoint=V2CheckpointHint(
                path="x.json",
                size_in_bytes=1,
                modification_time=2,
                non_file_actions=[{"metaData": {"schemaString": '{"a":"\\"ü"}', "description": None}}],
                sidecar_files=[],
            ),
        ),
    ],
)
def test_what_is_written_is_read_back_and_has_the_checksum_of_its_content(hint: LastCheckpointHint) -> None:
    data = encode_last_checkpoint(hint)
    value: dict[str, Any] = json.loads(data)
    assert value["checksum"] == hint_checksum(value)
    assert list(value)[:2] == ["version", "size"] and list(value)[-1] == "checksum"
    assert None not in value.values() and None not in value.get("v2Checkpoint", {}).values()
    again = parse_last_checkpoint(data)
    assert again.version == hint.version and again.size == (-1 if hint.size is None else hint.size)
    assert (again.parts, again.tags, again.v2_checkpoint) == (hint.parts, hint.tags, hint.v2_checkpoint)
    assert (again.size_in_bytes, again.num_of_add_files) == (hint.size_in_bytes, hint.num_of_add_files)
    assert again.checkpoint_schema == hint.checkpoint_schema
