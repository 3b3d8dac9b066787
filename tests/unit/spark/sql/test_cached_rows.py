"""Rows that CACHE TABLE keeps, where another thread lets go of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel

from delta_pyds.errors import TableNotFoundError
from delta_pyds.spark.sql import cached_rows as module
from delta_pyds.spark.sql.cached_rows import any_cached, cached_rows, forget
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.snapshot import open_snapshot
from tests.support.table_builder import TableBuilder


class Session:
    """Anything that can be forgotten."""


class Frame:
    """Rows that Spark keeps, or not."""

    kept = False
    columns = ("id",)

    def __getattr__(self, name: str) -> Callable[..., Frame]:
        assert name == "toDF"
        return lambda *_: self

    def persist(self, _: object) -> Frame:
        self.kept = True
        return self

    def unpersist(self) -> None:
        self.kept = False


def test_of_what_is_not_kept_there_are_no_rows() -> None:
    session: Any = Session()
    assert not any_cached(session)
    assert cached_rows(session, "/data/events") is None
    assert not forget(session, "/data/events")


def test_rows_of_a_table_that_somebody_deleted_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.append([{"id": 1}])
    root, session, frame = str(table.path), Session(), Frame()
    keeps: Any = session
    monkeypatch.setattr(module, "load", lambda *_, **__: frame)
    monkeypatch.setattr(module, "report_of", lambda _: None)
    module.cache(keeps, root, open_snapshot(LocalStorage(), root), StorageLevel.MEMORY_ONLY)
    found = cached_rows(keeps, root)
    assert found is not None
    assert (found.frame, found.version) == (frame, 1)
    assert cached_rows(keeps, root, 1) is not None
    assert cached_rows(keeps, root, 0) is None
    assert frame.kept
    (tmp_path / "t").rename(tmp_path / "away")
    with pytest.raises(TableNotFoundError):
        cached_rows(keeps, root)
    assert not frame.kept
    assert not any_cached(keeps)
