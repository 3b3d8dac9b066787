"""Rows that CACHE TABLE keeps, where another thread lets go of them."""

from __future__ import annotations

from typing import Any

from delta_pyds.spark.sql.kept_rows import are_kept, forget, kept_rows


class Session:
    """Anything that can be forgotten."""


def test_of_what_is_not_kept_there_are_no_rows() -> None:
    session: Any = Session()
    assert not are_kept(session)
    assert kept_rows(session, "/data/events") is None
    assert not forget(session, "/data/events")
