from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_pyds.catalog import Catalog
from delta_pyds.catalog.sqlite import SqliteCatalog
from tests.support.catalogs import CatalogTable
from tests.unit.catalog.fifty_lines import DictCatalog

MAKERS: dict[str, Callable[[Path], Catalog]] = {
    "sqlite, inline": lambda path: SqliteCatalog(str(path / "catalog.db")),
    "sqlite, staged": lambda path: SqliteCatalog(str(path / "catalog.db"), max_inline_bytes=0),
    "fifty lines": lambda path: DictCatalog(str(path / "tables")),
}


@pytest.fixture(params=MAKERS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    """Each kind of catalog, empty."""
    return MAKERS[request.param](tmp_path)


@pytest.fixture
def table(catalog: Catalog) -> CatalogTable:
    made = CatalogTable(catalog)
    made.create()
    return made
