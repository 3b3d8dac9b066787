"""What a write did goes from one process to another through a file of the user's own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql.types import StructType

from delta_pyds.errors import OptionError
from delta_pyds.spark.source.write_result import (
    WriteResult,
    leave_result,
    new_result_id,
    schema_with_result,
    take_result,
)

RESULT = WriteResult(7, 2, 30, 4000, (5, 6))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


class Session:
    """A session whose loads are answered in another process's directory."""

    def __init__(self, told: Any) -> None:
        self.read = self
        self.told = told

    def format(self, _: str) -> Session:
        return self

    def option(self, _: str, value: str) -> Session:
        self.schema: StructType = self.told(value)
        return self

    def load(self) -> Session:
        return self


def nothing(_: str) -> Any:
    raise AssertionError("the session was asked for what is here")


def test_it_is_found_once_beside_the_process_that_left_it(folder: Path) -> None:
    result_id = new_result_id()
    leave_result(result_id, RESULT)
    assert take_result(cast(Any, Session(nothing)), "deltapy", result_id) == RESULT
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def test_the_schema_of_a_load_brings_it_from_elsewhere() -> None:
    result_id = new_result_id()
    leave_result(result_id, RESULT)
    schema = schema_with_result(result_id)
    again = StructType.fromJson(schema.jsonValue())
    assert take_result(cast(Any, Session(lambda _: again)), "deltapy", result_id) == RESULT


def test_an_answer_that_never_came_is_no_failure_and_says_that_the_write_is_done() -> None:
    result = take_result(cast(Any, Session(schema_with_result)), "deltapy", new_result_id())
    assert result.version is None and "the write is done" in result.reason


@pytest.mark.parametrize("kind", ["file", "writable directory", "link"])
def test_what_others_put_where_results_were_once_kept_keeps_no_result_away(folder: Path, kind: str) -> None:
    blocked = folder / f"delta_pyds-write-results-{os.getuid()}"
    if kind == "file":
        blocked.touch()
    elif kind == "link":
        blocked.symlink_to(folder / "nowhere")
    else:
        blocked.mkdir()
        blocked.chmod(0o777)
    result_id = new_result_id()
    leave_result(result_id, RESULT)
    assert take_result(cast(Any, Session(nothing)), "deltapy", result_id) == RESULT


@pytest.mark.parametrize("kind", ["writable", "link", "pipe", "directory", "of another user"])
def test_a_file_that_others_can_have_written_is_not_believed(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result_id = new_result_id()
    leave_result(result_id, RESULT)
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    if kind == "writable":
        file.chmod(0o666)
    elif kind == "link":
        file.rename(folder / "elsewhere")
        file.symlink_to(folder / "elsewhere")
    elif kind == "pipe":
        file.unlink()
        os.mkfifo(file)
    elif kind == "directory":
        file.unlink()
        file.mkdir()
    else:
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
    assert not schema_with_result(result_id).fields[0].metadata
    # the write is done, and does not fail for it
    leave_result(result_id, RESULT)


@pytest.mark.parametrize("result_id", ["", "../x", "a" * 31, "A" * 32, "/etc/passwd"])
def test_only_drawn_names_are_opened(result_id: str, folder: Path) -> None:
    with pytest.raises(OptionError, match="writeResult"):
        schema_with_result(result_id)
    leave_result(result_id, RESULT)
    assert [p for p in folder.rglob("*") if p.is_file()] == []
