"""The path of a table, as a user may give it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.errors import OptionError, StorageError
from delta_pyds.storage.table_path import absolute_table_path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "home")


@pytest.mark.parametrize("path", ["/a/t", "/a/t/", "file:/a/t", "file:///a/t", Path("/a/t"), Path("file:///a/t")])
def test_all_spellings_of_a_path_are_one(path: Any) -> None:
    assert absolute_table_path(path) == "/a/t"
    assert absolute_table_path(path, remote=True) == "/a/t"


def test_a_tilde_is_the_home(home: str) -> None:
    assert absolute_table_path("~/t") == absolute_table_path(Path("~/t")) == f"{home}/t"
    assert absolute_table_path("~") == home


def test_a_tilde_elsewhere_is_a_character() -> None:
    assert absolute_table_path("./~t") == f"{os.getcwd()}/~t"
    assert absolute_table_path("/a/~/t") == "/a/~/t"


def test_the_home_of_nobody_is_refused() -> None:
    with pytest.raises(OptionError, match=r"begins with ~no-such-user.*'\./~no-such-user/t'"):
        absolute_table_path("~no-such-user/t")


@pytest.mark.parametrize("path", ["t", Path("t"), "./t", "x/../t"])
def test_a_relative_path_is_below_the_working_directory(path: Any) -> None:
    assert absolute_table_path(path) == f"{os.getcwd()}/t"


@pytest.mark.parametrize("path", ["t", Path("t"), "~/t", "~"])
def test_a_server_is_not_asked_for_what_only_the_client_knows(path: Any) -> None:
    with pytest.raises(OptionError, match=r"not absolute\. With Spark Connect"):
        absolute_table_path(path, remote=True)


def test_a_path_in_a_store_is_taken_from_pathlib_too() -> None:
    assert absolute_table_path("s3a://bucket/t/") == "s3://bucket/t"
    assert absolute_table_path(Path("s3://bucket/t"), remote=True) == "s3://bucket/t"


@pytest.mark.parametrize("path", [None, 1, b"/a/t", ["/a/t"]])
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(OptionError, match=r"must be text or a pathlib\.Path"):
        absolute_table_path(path)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(StorageError, match="path is empty"):
        absolute_table_path("")


@pytest.mark.parametrize("kind", ["pathlib", "relative", "home", "uri"])
def test_every_call_takes_every_kind_of_path(kind: str, home: str) -> None:
    import delta_pyds
    from delta_pyds.protocol.schema import StructType
    from delta_pyds.spark.options.read import parse_read_options
    from delta_pyds.spark.options.write import parse_write_options
    from tests.support.table_builder import TableBuilder

    table = TableBuilder(f"{home}/a table ", {"id": "long"})  # the blank at the end is a part of the name
    table.create()
    table.append([{"id": 1}])
    kinds: dict[str, Any] = {"pathlib": table.path, "relative": "home/a table ", "home": "~/a table ",
                             "uri": f"file://{table.path}/"}  # fmt: skip
    path = kinds[kind]
    root = f"{home}/a table "
    assert delta_pyds.load_snapshot(path).table_root == root
    assert delta_pyds.explain(path).table_root == delta_pyds.verify(path).table_root == root
    assert delta_pyds.compact_log(path, 0, 1).startswith(f"{root}/_delta_log/")
    assert delta_pyds.checkpoint(path) == 1
    assert parse_read_options({"path": str(path)}).path == root
    written = parse_write_options({"path": str(path)}, StructType(()), overwrite=False, assumed_time_zone="UTC")
    assert written.table_root == root
