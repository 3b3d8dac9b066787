from __future__ import annotations

import os
import runpy
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from delta_pyds.catalog import Catalog
from delta_pyds.catalog.postgresql import PostgresqlCatalog
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.catalog.unity import UnityCatalog
from tests.support.catalogs import CatalogTable
from tests.support.postgresql_server import URL, empty_database
from tests.support.unity_server import UnityServer
from tests.unit.catalog.fifty_lines import DictCatalog


def unity(path: Path, until_the_end: ExitStack) -> Catalog:
    """Unity Catalog's client, with the server of ``tests.support.unity_server``, which is not the real one."""
    server = until_the_end.enter_context(UnityServer(str(path / "tables"), schemas=("main.db", "main.a", "main.b")))
    return UnityCatalog.of({"url": server.url})


# the class of the example, which is a program and in no package
YOURS = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "catalog_of_yours.py"))["FileCatalog"]
MAKERS: dict[str, Callable[[Path, ExitStack], Catalog]] = {
    "sqlite, inline": lambda path, _: SqliteCatalog(str(path / "catalog.db")),
    "sqlite, staged": lambda path, _: SqliteCatalog(str(path / "catalog.db"), max_inline_bytes=0),
    "unity": unity,
    "yours": lambda path, _: YOURS(str(path / "catalog.json")),
    "in memory": lambda path, _: DictCatalog(str(path / "tables")),
}
if URL in os.environ:  # make test-postgresql
    MAKERS = {
        "postgresql, inline": lambda path, _: PostgresqlCatalog(empty_database(), root=str(path / "tables")),
        "postgresql, staged": lambda path, _: PostgresqlCatalog(
            empty_database(), root=str(path / "tables"), max_inline_bytes=0
        ),
    }


@pytest.fixture(params=MAKERS)
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """Each kind of catalog, empty."""
    with ExitStack() as until_the_end:
        yield MAKERS[request.param](tmp_path, until_the_end)


@pytest.fixture
def table(catalog: Catalog) -> CatalogTable:
    made = CatalogTable(catalog)
    made.create()
    return made
