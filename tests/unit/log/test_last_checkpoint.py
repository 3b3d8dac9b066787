"""The checkpoint hint and its checksum. Protocol: "Last Checkpoint File Schema", "JSON checksum"."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import StorageError
from delta_pyds.log.last_checkpoint import (
    LastCheckpointHint,
    canonical_form,
    checkpoint_checksum,
    parse_last_checkpoint,
    read_last_checkpoint,
)
from delta_pyds.storage.local import LocalStorage
from tests.support.checkpoints import canonical_json, hint_checksum
from tests.support.memory_storage import MemoryStorage
from tests.support.table_builder import TableBuilder

SAMPLE = {
    "k0": "'v 0'",
    "checksum": "adsaskfljadfkjadfkj",
    "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
}


def read(text: str | bytes) -> LastCheckpointHint | None:
    storage = MemoryStorage()
    storage.put("/t/_delta_log/_last_checkpoint", text.encode() if isinstance(text, str) else text)
    return read_last_checkpoint(storage, "/t")


def test_canonical_form_of_the_protocols_sample() -> None:
    assert canonical_form(SAMPLE) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checkpoint_checksum(SAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ({"a": True, "b": False, "c": None}, '"a"=true,"b"=false,"c"=null'),
        ({"a": {}, "b": [], "c": 1}, '"c"=1'),
        ({"b": 1, "a": 2, "B": 3}, '"B"=3,"a"=2,"b"=1'),
        ({"a": list(range(11))}, ",".join(f'"a"+{i}={i}' for i in (0, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9))),
        ({"ü ~-._/": '"\n\\€'}, '"%C3%BC%20~-._%2F"="%22%0A%5C%E2%82%AC"'),
        ({"a": {"checksum": "kept"}, "checksum": "ignored"}, '"a"+"checksum"="kept"'),
        ({"a": -3, "b": 12345678901234567890}, '"a"=-3,"b"=12345678901234567890'),
    ],
)
def test_canonical_form(value: dict[str, Any], form: str) -> None:
    assert canonical_form(value) == form


def test_numbers_count_as_they_are_written() -> None:
    for text in ("1.50", "1E3", "2.0"):
        checksum = hashlib.md5(f'"size"=1,"tags"+"x"="y","version"=1,"z"={text}'.encode()).hexdigest()
        data = f'{{"version":1,"size":1,"z":{text},"tags":{{"x":"y"}},"checksum":"{checksum}"}}'
        assert parse_last_checkpoint(data.encode()).version == 1


_text = st.text('aZ09-._~ "\\/+=,%\n\x00ü€😀', max_size=5)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | _text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_text, children, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(_text, _json, max_size=5))
def test_agrees_with_an_independent_writer(value: dict[str, Any]) -> None:
    assert (canonical_form(value), checkpoint_checksum(value)) == (canonical_json(value), hint_checksum(value))
    hint = {"version": 1, "unknown": value}
    written = json.dumps({**hint, "checksum": hint_checksum(hint)}).encode()
    assert parse_last_checkpoint(written).version == 1


@pytest.mark.parametrize("kind", ["classic", "multipart", "v2-json", "v2-parquet"])
def test_reads_the_hint_of_every_kind_of_checkpoint(tmp_path: Path, kind: str) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    table.checkpoint(kind=kind, parts=3)
    hint = read_last_checkpoint(LocalStorage(), str(tmp_path))
    assert hint is not None
    assert (hint.version, hint.checksum is not None) == (1, True)
    if kind == "multipart":
        assert hint.parts == 3
    if kind.startswith("v2"):
        assert hint.v2_checkpoint is not None
        assert (table.log_path / str(hint.v2_checkpoint.path)).exists()


def test_a_hint_without_a_checksum_is_believed() -> None:
    assert read('{"version": 3, "size": 6}') == LastCheckpointHint(3, size=6)
    assert read('\ufeff{"version": 3, "unknown": [1]}\n') == LastCheckpointHint(3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"version": "three"}',
        '{"version": -1}',
        '{"version": null}',
        '{"version": 1, "version": 2}',
        '{"version": 1, "tags": {"a": "1", "a": "2"}}',
        '{"version": 1, "size": 2, "checksum": "00000000000000000000000000000000"}',
        b'{"version": 1, "tags": {"a": "\xff"}}',
        '{"version": 1, "tags": ' + "[" * 100_000,
        '{"version": 1, "checksum": "x", "tags": {"a": "\\ud800"}}',
    ],
)
def test_a_damaged_hint_is_ignored_with_a_warning(text: str | bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert read(text) is None
    assert "/t/_delta_log/_last_checkpoint is damaged" in caplog.text


def test_any_change_breaks_the_checksum(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, {"id": "long"})
    table.create()
    table.checkpoint(kind="v2-json")
    file = tmp_path / "_delta_log" / "_last_checkpoint"
    hint = json.loads(file.read_text())
    hint["v2Checkpoint"]["sizeInBytes"] += 1
    file.write_text(json.dumps(hint))
    assert read_last_checkpoint(LocalStorage(), str(tmp_path)) is None


def test_a_missing_hint_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    assert read_last_checkpoint(MemoryStorage(), "/t") is None
    assert not caplog.records


def test_a_hint_that_cannot_be_read_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_operation: str, path: str) -> None:
        raise StorageError("no permission", path=path)

    assert read_last_checkpoint(MemoryStorage(on_call=refuse), "/t") is None
    assert "no permission" in caplog.text
