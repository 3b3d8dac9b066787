"""What is remembered of local paths on Spark Connect."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.spark import same_files
from delta_pyds.spark.same_files import require_same_files, shared_path


class Session:
    """Anything that can be forgotten."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that the server was asked of. It has another table at each path with ``other``."""
    asked: list[str] = []

    def answer(_: object, path: str) -> str:
        asked.append(path)
        return "other" if "other" in path else "the same"

    monkeypatch.setattr(same_files, "is_remote", lambda _: True)
    monkeypatch.setattr(same_files, "newest_log_file", lambda _: "the same")
    monkeypatch.setattr(same_files, "_asked_of_server", answer)
    return asked


def test_a_path_is_asked_of_once(asked: list[str]) -> None:
    session: Any = Session()
    for _ in range(2):
        assert shared_path(session, "/data/t") == "file:///data/t"
        assert shared_path(session, "/data/other") == "/data/other"
    assert asked == ["/data/t", *["/data/other"] * 3]
    with pytest.raises(UnsupportedOperationError, match="finds another table there"):
        require_same_files(session, "/data/other")


def test_a_path_that_is_proved_later_is_shared(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A table may be written while two processes look at it."""
    session: Any = Session()
    assert shared_path(session, "/data/other") == "/data/other"
    monkeypatch.setattr(same_files, "newest_log_file", lambda _: "other")
    require_same_files(session, "/data/other")
    assert shared_path(session, "/data/other") == "file:///data/other"
    assert len(asked) == 4


def test_of_many_paths_some_are_asked_of_again(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_files, "_KEPT", 2)
    session: Any = Session()
    for number in (1, 2, 3, 1):
        assert shared_path(session, f"/data/{number}") == f"file:///data/{number}"
    assert asked == ["/data/1", "/data/2", "/data/3", "/data/1"]
