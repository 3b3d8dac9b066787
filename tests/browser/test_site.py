"""The built site as a real browser shows it: `make test-browser`, which builds it first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chromium import Chromium

WIDTHS = (400, 1280)
SITE = Path(__file__).parents[2] / ".site"
# 404.html is for a server: its links begin with /
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if path.name != "404.html")
# tables that tests write, of many columns
SCROLL_WHEN_WIDE = {"matrix.html", "results.html"}
# cells whose text goes over their edge, tables that are cut off where nothing scrolls, text over the edge of a chart
_CLIPPED = """
[...document.querySelectorAll('article table')].flatMap(table => {
  const cells = [...table.querySelectorAll('th, td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1);
  const box = table.closest('.md-typeset__scrollwrap') || table.parentElement;
  const scrolls = ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
  const cut = table.scrollWidth > box.clientWidth + 1 && !(scrolls && MAY_SCROLL);
  return [...cells.map(cell => cell.innerText), ...(cut ? [table.innerText.slice(0, 80)] : [])];
}).concat([...document.querySelectorAll('article .chart text')].filter(text => {
  const [box, chart] = [text, text.closest('svg')].map(each => each.getBoundingClientRect());
  return box.left < chart.left - 1 || box.right > chart.right + 1 || box.bottom > chart.bottom + 3;
}).map(text => text.textContent))
"""
_SEARCH = """
new Promise(done => {
  const field = document.querySelector('.md-search__input');
  document.querySelector('#__search').click();
  field.focus();
  field.value = 'deletion vectors';
  field.dispatchEvent(new Event('input', {bubbles: true}));
  field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  const look = left => {
    const found = document.querySelectorAll('.md-search-result__item').length;
    found || !left ? done(found) : setTimeout(look, 100, left - 1);
  };
  look(100);
})
"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    with Chromium() as browser:
        yield browser


def test_the_site_is_built() -> None:
    assert "index.html" in PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_and_asks_no_other_host(page: str, chromium: Chromium) -> None:
    """Wide and narrow, light and dark. A narrow window scrolls a wide table inside itself."""
    views = []
    for width in WIDTHS:
        script = _CLIPPED.replace("MAY_SCROLL", str(width < 600 or page in SCROLL_WHEN_WIDE).lower())
        views += [chromium.open(SITE / page, width=width, dark=d, script=script, whole=False) for d in (False, True)]
    for view in views:
        content, window = view.widths
        assert content <= window
        assert view.measured == []
        assert all(request.startswith(("file:", "data:")) for request in view.requests)
        assert view.complaints == []
    assert len({view.picture for view in views}) == 4, "dark looks like light"


def test_search_finds_pages_without_a_server(chromium: Chromium) -> None:
    assert chromium.open(SITE / "index.html", width=1280, script=_SEARCH).measured > 0
