"""Catalogs by their names: one client of each for each process."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from delta_pyds.catalog.interface import Catalog
from delta_pyds.catalog.objects import is_object, object_named
from delta_pyds.catalog.settings import CatalogSettings, read_settings
from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.redaction import conceal, secrets_of

SQLITE = "sqlite:///"
_NAMES_OF_USERS = ("user", "username", "login")

_open: dict[tuple[int, str], Catalog] = {}
_lock = threading.Lock()


def open_catalog(name: str) -> Catalog:
    """The client of a catalog: ``sqlite:///path/of/catalog.db``, or a name that has settings (see ``settings``).

    >>> open_catalog("sqlite:///data/catalog.db").load_table("main.sales.orders").latest_version

    Raises: OptionError for a name without settings; UnsupportedOperationError for an unsupported kind of catalog.
    """
    # a forked process must not use its parent's connections
    key = (os.getpid(), name)
    with _lock:
        found = _open.get(key)
        if found is None:
            found = _open[key] = _connect(name)
        return found


def forget_catalogs() -> None:
    """Forget opened catalogs: their settings are read again at the next use."""
    with _lock:
        # a client of the parent process is never closed here: that would end the parent's connections
        for key in [key for key in _open if key[0] == os.getpid()]:
            del _open[key]


def _after_fork() -> None:
    global _lock
    # a thread that does not exist in this process may have held it
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _connect(name: str) -> Catalog:
    if is_object(name):
        return object_named(name)
    if name.startswith(SQLITE):
        return _by_url(name, name)
    settings = read_settings(name)
    conceal(_secrets(settings))
    if "factory" in settings:
        return _by_factory(settings)
    if "url" not in settings:
        raise OptionError(
            f"the catalog '{name}' has neither a url nor a factory: it has {', '.join(sorted(settings))}.",
            option="catalog",
        )
    return _by_url(name, settings["url"], settings)


def _secrets(settings: CatalogSettings) -> list[str]:
    """The secrets that a client's messages may contain: settings with a secret's name, and passwords in URLs."""
    # user names are not concealed, because they may be part of any text
    found = list(secrets_of({name: value for name, value in settings.items() if name not in _NAMES_OF_USERS}))
    for value in settings.values():
        with contextlib.suppress(ValueError):
            password = urlsplit(value).password
            found += [password, unquote(password)] if password else []
    return found


def _by_url(name: str, url: str, settings: Mapping[str, str] | None = None) -> Catalog:
    if url.startswith(SQLITE):
        from delta_pyds.catalog.sqlite import SqliteCatalog

        return SqliteCatalog.at(url, root=None if settings is None else settings.get("root"))
    if settings is not None and url.startswith(("postgresql://", "postgres://")):
        from delta_pyds.catalog.postgresql import PostgresqlCatalog

        return PostgresqlCatalog.of(settings)
    if settings is not None and url.startswith(("https://", "http://")):
        from delta_pyds.catalog.unity import UnityCatalog

        return UnityCatalog.of(settings)
    scheme = url.partition(":")[0][:40]
    raise UnsupportedOperationError(
        f"the catalog '{name}' has the scheme {scheme}:, which this release does not support. Give sqlite:///path, "
        "postgresql://host/database, https://host (Unity Catalog), or as the factory a package.module:function of your "
        "own: it is called with the settings and returns a delta_pyds.catalog.Catalog.",
        option="catalog",
    )


def _by_factory(settings: CatalogSettings) -> Catalog:
    module, _, function = settings["factory"].partition(":")
    try:
        factory = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionError(
            f"the factory '{settings['factory']}' of the catalog '{settings.catalog}' does not exist "
            f"({type(error).__name__}): give package.module:function.",
            option="catalog",
        ) from error
    made = factory(settings)
    if not isinstance(made, Catalog):
        raise OptionError(
            f"the factory '{settings['factory']}' of the catalog '{settings.catalog}' returned a "
            f"{type(made).__name__}, but must return a delta_pyds.catalog.Catalog.",
            option="catalog",
        )
    return made
