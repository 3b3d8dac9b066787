"""A report as a real browser shows it: `make test-browser`, which installs Chromium where that may be done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import delta_pyds
from tests.support.chromium import Chromium, png_size


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


@pytest.mark.parametrize("kind", ["many_sided", "hostile"])
def test_a_browser_shows_it(kind: str, request: pytest.FixtureRequest, tmp_path: Path, chromium: Chromium) -> None:
    """Light is not dark; nothing is asked for but the page; nobody complains; a phone needs no scrolling sideways."""
    table = request.getfixturevalue(kind)
    page = tmp_path / "page.html"
    delta_pyds.report(table if isinstance(table, Path) else table.path, to=page)
    views = [chromium.open(page, width=width, dark=dark) for width in (390, 1280) for dark in (False, True)]
    for view in views:
        assert view.requests == [page.as_uri()] or view.requests == [page.as_uri(), "data:,"]
        assert view.complaints == []
        content, window = view.widths
        assert content <= window
        assert not view.clipped or window < 1280
        assert "Gains of maintenance" in view.text and view.elements > 20
    assert views[0].picture != views[1].picture and views[2].picture != views[3].picture
    assert [next(png_size(view.picture)) for view in views] == [390, 390, 1280, 1280]
    assert next(png_size(views[0].picture)) == 390
