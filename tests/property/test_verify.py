"""Whatever is done to the files of a table, ``verify`` reports it and does not raise."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delta_pyds import verify
from delta_pyds.errors import TableNotFoundError
from tests.support.sampling import examples
from tests.support.table_builder import TableBuilder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("original")
    properties = {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"}
    t = TableBuilder(path, {"id": "long", "s": {"x": "string"}, "p": "date"}, ["p"], properties)
    t.create([{"txn": {"appId": "a", "version": 1}}])
    adds = t.append([{"id": i, "s": {"x": "text"}, "p": f"2024-01-0{1 + i % 2}"} for i in range(20)])
    t.checkpoint(kind="v2-json", stats_struct=True)
    t.delete(adds[0], [1, 2])
    t.checkpoint(kind="classic", partition_values_struct=True)
    t.checksum(all_files=True)
    t.compact_log(0, 2)
    assert verify(str(path)).findings == ()
    yield path


def files_of(path: Path) -> list[Path]:
    return sorted(p.relative_to(path) for p in path.rglob("*") if p.is_file())


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_reported_and_never_raised(original: Path, tmp_path: Path, data: st.DataObject) -> None:
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    for name in data.draw(st.lists(st.sampled_from(files_of(copy)), min_size=1, max_size=2, unique=True)):
        file = copy / name
        kind = data.draw(st.sampled_from(["delete", "cut", "flip", "bytes", "twice"]))
        content = file.read_bytes()
        at = data.draw(st.integers(0, len(content) - 1))
        if kind == "delete":
            file.unlink()
        elif kind == "cut":
            file.write_bytes(content[:at])
        elif kind == "flip":
            file.write_bytes(
                content[:at] + bytes([content[at] ^ (1 << data.draw(st.integers(0, 7)))]) + content[at + 1 :]
            )
        elif kind == "bytes":
            file.write_bytes(content[:at] + data.draw(st.binary(max_size=8)) + content[at:])
        else:
            file.write_bytes(content * 2)
    try:
        report = verify(str(copy))
    except TableNotFoundError:
        assert not list((copy / "_delta_log").glob("*.json")) and not list((copy / "_delta_log").glob("*.parquet"))
        return
    assert str(report)
    assert report.ok == (not report.errors)
