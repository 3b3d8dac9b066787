"""Where a named catalog is, and that what it must keep secret is seen nowhere."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from delta_pyds import load_snapshot
from delta_pyds.catalog import Catalog, ManagedTable, named
from delta_pyds.catalog.address import TableAddress, locate, reserve
from delta_pyds.catalog.named import forget_catalogs, open_catalog
from delta_pyds.catalog.opening import table_storage
from delta_pyds.catalog.settings import is_configured, read_settings
from delta_pyds.catalog.sqlite import SqliteCatalog
from delta_pyds.errors import CatalogError, DeltaError, OptionError, TableNotFoundError, UnsupportedOperationError
from delta_pyds.redaction import safe_logger
from tests.support.catalogs import registered
from tests.unit.catalog.fifty_lines import DictCatalog

SECRET = "dapi-0123456789abcdef"
DSN = "postgresql://etl:p%40ss-word@db/x?sslpassword=open-sesame"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No catalogs but the test's."""
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(tmp_path / "catalogs.json"))
    forget_catalogs()
    yield
    forget_catalogs()


def test_from_a_file_and_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"prod": {"url": "https://one", "token": SECRET}, "other": {"url": "https://two"}}
    (tmp_path / "catalogs.json").write_text(json.dumps(known))
    assert dict(read_settings("prod")) == known["prod"]
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", "https://three")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MY_OWN_URL", "https://four")
    assert dict(read_settings("prod")) == {"url": "https://three", "token": SECRET}
    assert dict(read_settings("my-own")) == {"url": "https://four"}


def test_the_directory_of_new_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the settings for SQLite too. A directory in the URL comes first."""
    monkeypatch.setenv("DELTA_PYDS_CATALOG_LOCAL_URL", f"sqlite://{tmp_path}/c.db")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_LOCAL_ROOT", "s3://bucket/tables")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_NEAR_URL", f"sqlite://{tmp_path}/c.db?root={tmp_path}/near")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_NEAR_ROOT", "s3://bucket/tables")

    assert reserve("a.b.t", "local").table_root.startswith("s3://bucket/tables/")
    assert reserve("a.b.t", "near").table_root.startswith(f"{tmp_path}/near/")


def test_settings_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_TOKEN", SECRET)
    settings = read_settings("prod")
    assert repr(settings) == "CatalogSettings('prod': token)"
    with pytest.raises(TypeError, match="secrets"):
        pickle.dumps(settings)


@pytest.mark.parametrize("text", ["{", "[]", '{"prod": {"token": 5}}', '{"prod": "x"}'])
def test_a_file_that_cannot_be_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / "catalogs.json").write_text(text.replace("5", f'["{SECRET}"]'))
    for ask in (read_settings, is_configured):
        with pytest.raises(OptionError, match="must be JSON") as error:
            ask("prod")
        assert SECRET not in str(error.value)


def test_what_nobody_can_read_is_not_taken_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that the default catalog has would be looked for in Spark's."""
    assert not is_configured("default")
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(tmp_path / "catalogs.json" / "no directory"))
    (tmp_path / "catalogs.json").write_text('{"default": {"url": "sqlite:///c.db"}}')
    assert not is_configured("default")
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(tmp_path))
    with pytest.raises(OptionError, match="cannot be read"):
        is_configured("default")
    monkeypatch.setenv("DELTA_PYDS_CATALOGS", str(tmp_path / "catalogs.json"))
    assert is_configured("default") and not is_configured("other") and not is_configured("no name")


@pytest.mark.parametrize("name", ["https://host", "a b", "", "../x", "postgresql://user:pass@host/db"])
def test_an_address_is_no_name(name: str) -> None:
    with pytest.raises(OptionError) as error:
        open_catalog(name)
    assert ":pass@" not in str(error.value)


def test_nothing_is_known() -> None:
    with pytest.raises(OptionError, match="DELTA_PYDS_CATALOG_PROD_URL"):
        open_catalog("prod")


def test_a_kind_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", f"iceberg://user:{SECRET}@host/api")
    with pytest.raises(UnsupportedOperationError, match="iceberg:") as error:
        open_catalog("prod")
    assert SECRET not in str(error.value)


def test_a_catalog_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MINE_FACTORY", "tests.unit.catalog.fifty_lines:from_settings")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MINE_ROOT", str(tmp_path))
    first = open_catalog("mine")
    assert isinstance(first, DictCatalog) and open_catalog("mine") is first


@pytest.mark.parametrize("factory", ["no.such.module:f", "json:no_such", "json", "json:dumps"])
def test_a_factory_that_is_none(monkeypatch: pytest.MonkeyPatch, factory: str) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_MINE_FACTORY", factory)
    with pytest.raises((OptionError, TypeError)):
        open_catalog("mine")


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:///c.db?mode=ro"])
def test_an_address_of_sqlite_that_is_none(url: str) -> None:
    with pytest.raises(OptionError, match="sqlite:///path/of/catalog"):
        open_catalog(url)


def test_the_default_catalog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_DEFAULT_URL", f"sqlite://{tmp_path}/c.db")
    catalog = open_catalog("default")
    assert isinstance(catalog, SqliteCatalog)
    table = registered(catalog)
    assert locate(table="main.db.t").table_root == table.location


def test_a_table_by_name_and_by_path() -> None:
    for given in ({}, {"path": "/t", "table": "t"}, {"path": "/t", "catalog": "c"}, {"catalog": "c"}):
        with pytest.raises(OptionError):
            load_snapshot(**given)  # type: ignore[arg-type]


def test_options_name_a_table_and_hold_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They go into plans and pickles, and to tasks, which open files without the catalog."""
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", f"sqlite://{tmp_path}/c.db")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_TOKEN", SECRET)
    address = reserve("main.db.t", "prod", storage_options={"key": SECRET})
    assert isinstance(address, TableAddress) and SECRET not in repr(address)
    options = {name: value for name, value in address.storage_options.items() if name != "key"}
    assert {type(value) for value in options.values()} == {str}
    assert SECRET not in repr(options)
    with pytest.raises(TableNotFoundError):
        locate(table="main.db.t", catalog="prod")
    assert table_storage("/t", {"x": 1}) is table_storage("/t")


def test_a_catalog_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="There is no catalog"):
        locate(table="t", catalog=f"sqlite://{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


class Talkative(DictCatalog):
    """Its client puts all that it knows into its errors, as those of databases and services do."""

    def load_table(self, name: str) -> ManagedTable:
        raise ConnectionError(f"{name}: host=db user=etl password=hunter2 Authorization: Bearer {SECRET} of {DSN}")


def talkative(settings: Mapping[str, str]) -> Catalog:
    return Talkative(settings["root"])


def test_what_a_client_raises_is_shown_without_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prefix = "DELTA_PYDS_CATALOG_MINE"
    monkeypatch.setattr("delta_pyds.redaction._concealed", ())
    monkeypatch.setenv(f"{prefix}_FACTORY", f"{__name__}:talkative")
    monkeypatch.setenv(f"{prefix}_ROOT", str(tmp_path))
    monkeypatch.setenv(f"{prefix}_TOKEN", SECRET)
    monkeypatch.setenv(f"{prefix}_ADDRESS", DSN)
    monkeypatch.setenv(f"{prefix}_USER", "Connection")
    with pytest.raises(CatalogError) as error:
        locate(table="t", catalog="mine")
    text = "".join(traceback.format_exception(error.value))
    try:
        open_catalog("mine").load_table("t")
    except ConnectionError:
        safe_logger("delta_pyds.catalog.test").warning("It failed with %s", SECRET, exc_info=True)
    text += caplog.text
    assert "ConnectionError" in text and "It failed" in text
    for secret in ("hunter2", SECRET, "open-sesame", "p%40ss-word", "p@ss-word"):
        assert secret not in text


def test_clients_of_a_process_before_a_fork_are_left_alone(tmp_path: Path) -> None:
    """To close their connections would end what the parent has open."""
    name = f"sqlite://{tmp_path}/c.db"
    parents = object()
    named._open[os.getpid() + 1, name] = parents  # type: ignore[assignment]
    mine = open_catalog(name)
    forget_catalogs()
    assert named._open.pop((os.getpid() + 1, name)) is parents
    assert open_catalog(name) is not mine


def test_a_fork_while_another_thread_asks_for_a_catalog(tmp_path: Path) -> None:
    with named._lock:
        process = multiprocessing.get_context("fork").Process(target=open_catalog, args=(f"sqlite://{tmp_path}/c.db",))
        process.start()
        process.join(60)
    assert process.exitcode == 0


def test_a_catalog_in_postgresql_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_URL", f"postgresql://etl:{SECRET}@db.example/x")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(OptionError, match=r"install delta_pyds\[postgresql\]") as error:
        open_catalog("prod")
    assert SECRET not in str(error.value)


def test_the_variables_of_another_catalog_make_none_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a name prod.db.t of Spark's would be looked for in a catalog that nobody has."""
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_EU_URL", "sqlite:///eu.db")
    assert is_configured("prod-eu") and not is_configured("prod")
    monkeypatch.setenv("DELTA_PYDS_CATALOG_PROD_FACTORY", "package.module:function")
    assert is_configured("prod")
