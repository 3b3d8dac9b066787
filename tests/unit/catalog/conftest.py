from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from delta_pyds.catalog import Catalog
from delta_pyds.catalog.postgresql import PostgresqlCatalog
from delta_pyds.catalog.sqlite import SqliteCatalog
from tests.support.catalogs import CatalogTable
from tests.support.postgresql_server import URL, empty_database
from tests.unit.catalog.fifty_lines import DictCatalog

MAKERS: dict[str, Callable[[Path], Catalog]] = {
    "sqlite, inline": lambda path: SqliteCatalog(str(path / "catalog.db")),
    "sqlite, staged": lambda path: SqliteCatalog(str(path / "catalog.db"), max_inline_bytes=0),
    "fifty lines": lambda path: DictCatalog(str(path / "tables")),
}
if URL in os.environ:  # make test-postgresql
    MAKERS = {
        "postgresql, inline": lambda path: PostgresqlCatalog(empty_database(), root=str(path / "tables")),
        "postgresql, staged": lambda path: PostgresqlCatalog(
            empty_database(), root=str(path / "tables"), max_inline_bytes=0
        ),
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
