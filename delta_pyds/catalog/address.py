"""The location of a table by its name in a catalog, as options for other processes.

Invariant: the options contain names and ids, but no secrets. A process that opens the table asks the catalog again,
with its own settings. A process that only opens files of the table needs no catalog: ``resolve_storage`` ignores these
options.

Protocol: "Table Discovery".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from delta_pyds.errors import OptionError, TableNotFoundError
from delta_pyds.redaction import Concealing
from delta_pyds.storage.resolve import CATALOG_OPTIONS, normalize_table_root
from delta_pyds.storage.table_path import PathLike, absolute_table_path

if TYPE_CHECKING:
    from delta_pyds.catalog.interface import Catalog

DEFAULT_CATALOG = "default"
# the options that name a table in its catalog
CATALOG_NAME = f"{CATALOG_OPTIONS}catalog"
TABLE_NAME = f"{CATALOG_OPTIONS}table"
TABLE_ID = f"{CATALOG_OPTIONS}tableId"
RESERVED = f"{CATALOG_OPTIONS}reserved"


@dataclass(frozen=True, repr=False)
class TableAddress(Concealing):
    """The location of a table. ``storage_options``: those of its file system, and its name in its catalog, if any."""

    table_root: str
    storage_options: Mapping[str, Any] = field(default_factory=dict)


def locate(
    path: PathLike | None = None,
    *,
    table: str | None = None,
    catalog: str | Catalog | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> TableAddress:
    """The table at a path, or the table that a catalog has under the name ``table``. Only one of the two is given.

    ``catalog``: ``sqlite:///path``, or a name with settings in a file or the environment (see ``catalog.settings``);
    by default ``default``; or the catalog itself (see ``catalog.objects`` for other processes).

    Raises: OptionError; TableNotFoundError if the catalog does not have the table; errors of the catalog.
    """
    if table is None:
        if path is None or catalog is not None:
            missing = "neither a path nor a table is given" if path is None else "a catalog is given without a table"
            raise OptionError(f"{missing}: give the path of a table, or its name and its catalog.", option="table")
        return TableAddress(absolute_table_path(path), storage_options or {})
    if path is not None:
        raise OptionError(
            f"the table {table} of a catalog is also given by a path. Leave the path out.",
            option="table",
        )
    # imported here: tables at paths have no catalog
    from delta_pyds.catalog.named import open_catalog
    from delta_pyds.catalog.table_state import ask

    name = _name(catalog)
    found = ask(open_catalog(name), table)
    return _address(name, table, found.table_id, found.location, storage_options)


def reserve(
    table: str, catalog: str | Catalog | None = None, *, storage_options: Mapping[str, Any] | None = None
) -> TableAddress:
    """Reserve a location for a new table of that name. The commit that creates the table also registers it.

    Raises: UserError (TABLE_OR_VIEW_ALREADY_EXISTS); OptionError; CatalogError for an invalid location; errors of the
        catalog.
    """
    from delta_pyds.catalog.answers import reserve_table
    from delta_pyds.catalog.named import open_catalog
    from delta_pyds.catalog.table_state import require_absolute

    name = _name(catalog)
    made = reserve_table(open_catalog(name), table)
    require_absolute(table, made.location)
    given = _address(name, table, made.table_id, made.location, storage_options)
    reserved = {"properties": dict(made.properties), "features": list(made.features)}
    return TableAddress(given.table_root, {**given.storage_options, RESERVED: json.dumps(reserved)})


def locate_or_reserve(
    table: str, catalog: str | Catalog | None = None, *, storage_options: Mapping[str, Any] | None = None
) -> TableAddress:
    """The location of the table, or a reserved one if it does not exist; for operations that may create the table."""
    try:
        return locate(table=table, catalog=catalog, storage_options=storage_options)
    except TableNotFoundError:
        return reserve(table, catalog, storage_options=storage_options)


def _name(catalog: str | Catalog | None) -> str:
    """The catalog's name. Raises: OptionError for a value that is neither a name nor a catalog."""
    if catalog is None or isinstance(catalog, str):
        return catalog or DEFAULT_CATALOG
    from delta_pyds.catalog.interface import Catalog
    from delta_pyds.catalog.objects import name_of

    if not isinstance(catalog, Catalog):
        raise OptionError(
            f"the catalog is a {type(catalog).__name__}, but must be a name or a delta_pyds.catalog.Catalog.",
            option="catalog",
        )
    return name_of(catalog)


def _address(
    catalog: str, table: str, table_id: str, location: str, storage_options: Mapping[str, Any] | None
) -> TableAddress:
    names = {CATALOG_NAME: catalog, TABLE_NAME: table, TABLE_ID: table_id}
    return TableAddress(normalize_table_root(location), {**(storage_options or {}), **names})
