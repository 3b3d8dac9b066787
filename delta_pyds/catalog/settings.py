"""The settings of a named catalog, from a file or the environment: its address and its secrets.

Options contain only the name, so that plans, logs and pickles never contain secrets. Settings of the catalog ``prod``
(the environment takes precedence over the file):

    DELTA_PYDS_CATALOG_PROD_URL=sqlite:///data/catalog.db      # or _FACTORY=package.module:function, or _TOKEN=...
    ~/.delta_pyds/catalogs.json                                # {"prod": {"url": "...", "token": "..."}}

``DELTA_PYDS_CATALOGS`` is the path of another file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from delta_pyds.errors import OptionError

PREFIX = "DELTA_PYDS_CATALOG_"
FILE_VARIABLE = "DELTA_PYDS_CATALOGS"
_DEFAULT_FILE = "~/.delta_pyds/catalogs.json"
_ADDRESS_KEYS = {"url", "factory"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")


class CatalogSettings(Mapping[str, str]):
    """Settings by lower-case name (``url``, ``token`` ...). ``repr`` shows only the names. They cannot be pickled."""

    def __init__(self, catalog: str, values: Mapping[str, str]) -> None:
        self.catalog = catalog
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"CatalogSettings({self.catalog!r}: {', '.join(sorted(self._values))})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("The settings of a catalog contain secrets and cannot be pickled.")


def any_configured() -> bool:
    """Whether there may be catalogs with settings; if not, no name needs to be looked up."""
    return any(key.startswith(PREFIX) for key in os.environ) or _file().exists()


def is_configured(catalog: str) -> bool:
    """Whether the file or the environment has the address of a catalog.

    Raises: OptionError for a file that cannot be read: its content is unknown.
    """
    # PROD_EU_URL in the environment is the URL of prod-eu, but looks like a setting EU_URL of prod
    return _NAME.fullmatch(catalog) is not None and not _ADDRESS_KEYS.isdisjoint(_values(catalog))


def read_settings(catalog: str) -> CatalogSettings:
    """The settings of the catalog of that name.

    Raises: OptionError for an invalid name, a file that cannot be read, or a catalog without settings.
    """
    if not _NAME.fullmatch(catalog):
        raise OptionError(
            f"'{catalog}' is not a catalog's name: a name has letters, digits, '_' and '-'. Set the address as "
            f"{PREFIX}<NAME>_URL and give the name in the option; only sqlite:///path may be the option itself.",
            option="catalog",
        )
    values = _values(catalog)
    if not values:
        raise OptionError(
            f"the catalog '{catalog}' has no settings: set {_prefix(catalog)}URL in the environment of this "
            f"process, or put it into {_file()}.",
            option="catalog",
        )
    return CatalogSettings(catalog, values)


def _values(catalog: str) -> dict[str, str]:
    prefix = _prefix(catalog)
    of_environment = {key[len(prefix) :].lower(): value for key, value in os.environ.items() if key.startswith(prefix)}
    return {**_from_file(catalog), **of_environment}


def _prefix(catalog: str) -> str:
    return f"{PREFIX}{catalog.upper().replace('-', '_')}_"


def _file() -> Path:
    return Path(os.environ.get(FILE_VARIABLE) or _DEFAULT_FILE).expanduser()


def _from_file(catalog: str) -> Mapping[str, str]:
    file = _file()
    try:
        text = file.read_text()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(
            f"the file of catalogs {file} cannot be read: {type(error).__name__}. Set {FILE_VARIABLE} to "
            "the path of another file.",
            option="catalog",
        ) from None
    try:
        found = json.loads(text).get(catalog, {})
        if not all(isinstance(value, str) for value in found.values()):
            raise TypeError
    except (ValueError, AttributeError, TypeError):
        # without the error itself, whose text may contain a part of the file
        raise OptionError(
            f'the file of catalogs {file} must be JSON like {{"{catalog}": {{"url": "...", "token": "..."}}}}, with '
            "texts only.",
            option="catalog",
        ) from None
    return {name.lower(): value for name, value in found.items()}
