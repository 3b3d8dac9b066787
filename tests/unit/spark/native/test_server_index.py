"""The directory that a server of Spark Connect writes for an index of files, and when it is asked for one."""

from __future__ import annotations

import os
import stat
import tempfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from delta_pyds.spark.native import relations, server_index
from delta_pyds.spark.native.eligibility import SessionDescription
from delta_pyds.spark.native.file_index import NoIndexError
from delta_pyds.spark.settings import IGNORE_SINK_LOG

NO_SESSION: Any = None


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def ask(name: str, start: int, contents: bytes | None) -> str:
    """The answer of the server to one request: the directory."""
    writer: Any = server_index._directory_writer()
    piece = None if contents is None else zlib.compress(contents)
    found = writer.analyze(*(SimpleNamespace(value=value) for value in (name, start, piece)))
    [column] = found.schema.names
    return str(column)


def test_pieces_may_come_twice_and_the_directory_goes(temporary: Path) -> None:
    name = "deltapy-index-of-a-test"
    root = Path(ask(name, 0, b"v1\none"))
    for start, piece in ((6, b"\ntwo"), (0, b"v1\none"), (6, b"\ntwo")):
        assert ask(name, start, piece) == str(root) == str(temporary / name)
    log = root / "_spark_metadata" / "0.compact"
    assert log.read_bytes() == b"v1\none\ntwo"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (root, log.parent, log)] == [0o700, 0o700, 0o600]
    # a directory whose log is gone must not look like a table without rows
    assert [path.name for path in root.iterdir() if not path.name.startswith("_") and path.stat().st_size]
    ask(name, 0, None)
    ask(name, 0, None)
    assert list(temporary.iterdir()) == []


def test_directories_of_dead_clients_go_after_an_hour(temporary: Path) -> None:
    old, new = (Path(ask(f"deltapy-index-{which}", 0, b"v1")) for which in ("old", "new"))
    other = temporary / "deltapy-of-another"
    other.mkdir()
    for path in (old, other):
        os.utime(path, (1, 1))
    ask("deltapy-index-next", 6, b"x")
    assert old.exists()
    ask("deltapy-index-next", 0, b"v1")
    assert sorted(path.name for path in temporary.iterdir()) == [
        "deltapy-index-new", "deltapy-index-next", "deltapy-of-another",
    ]  # fmt: skip
    assert new.exists()


def test_the_contents_are_sent_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_index, "_REQUEST_BYTES", 4)
    assert list(server_index._pieces([b"v1", b"abc", b"d", b"efghij", b"k"])) == [b"v1abc", b"defghij", b"k"]


@pytest.mark.parametrize(("root", "most"), [("/t", 100_000), ("s3://bucket/t", 1_000)])
def test_only_a_spark_that_lists_paths_has_a_limit_of_files(
    monkeypatch: pytest.MonkeyPatch, root: str, most: int
) -> None:
    def taken(session: SessionDescription, num_files: int = 10**6) -> bool:
        return relations.takes_index(NO_SESSION, session, root, num_files)

    classic, remote = SessionDescription(), SessionDescription(remote=True)
    assert taken(classic)
    monkeypatch.setattr(relations, "reason_against_index", lambda _: None)
    assert taken(remote)
    monkeypatch.setattr(relations, "reason_against_index", lambda _: "its Python is another")
    for session, why in ((remote, "its Python is another"), (SessionDescription({IGNORE_SINK_LOG: "TRUE"}), "is true")):
        assert not taken(session, most)
        with pytest.raises(NoIndexError, match=f"more than {most:,} files.*{why}"):
            taken(session, most + 1)


def test_a_few_local_files_on_connect_need_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "reason_against_index", lambda _: None)
    few, remote = relations.FEW_LISTED_FILES, SessionDescription(remote=True)
    assert not relations.takes_index(NO_SESSION, remote, "/t", few)
    assert relations.takes_index(NO_SESSION, remote, "/t", few + 1)
    assert relations.takes_index(NO_SESSION, remote, "s3://bucket/t", 1)
