"""Catalogs. They decide, instead of the log alone, which commits a table has. Protocol: "Catalog-managed tables".

The interface of a catalog, and its implementations:

- ``interface``: ``Catalog``, and the values that it takes and returns
- ``sql``: the common part of catalogs in a database
- ``sqlite_file``: connections to an SQLite file, in a process that may fork
- ``sqlite``: a catalog in one file, for any number of processes of one machine
- ``postgresql``: a catalog in a PostgreSQL database, for processes of many machines
- ``unity_http``: calls of Unity Catalog, and the meaning of their failures
- ``unity_config``: the calls that a server of Unity Catalog offers
- ``unity_json``: conversion between Unity Catalog's values and ours
- ``unity_credentials``: temporary storage credentials from Unity Catalog
- ``unity``: Unity Catalog
- ``contract``: the rules for every catalog, as tests that run on one
- ``objects``: catalogs that users pass as objects, and their copies in other processes
- ``settings``: the settings of a named catalog, from a file or the environment
- ``named``: the client of a catalog, found by its name

How tables of any catalog are read and committed to:

- ``managed``: whether a catalog manages the table that a storage was opened for
- ``staging``: staged commits: their names, writing them, and deleting the unneeded ones
- ``answers``: checks of the types that a catalog's methods return, and of their errors
- ``table_state``: consistency checks of a catalog's answer about a table
- ``commit_comparison``: whether two texts are the same commit
- ``ratified_listing``: a listing of the log with the commits that the catalog returns
- ``managed_storage``: the table's files, with the log according to the catalog
- ``publishing``: ratified commits are written to the log, in order
- ``outcomes``: the outcome of a proposal, from what the catalog returned or raised
- ``registration``: version 0, and the table's name
- ``committer``: commits through the catalog, with lost answers resolved
- ``address``: the location of a table by its name, as options for other processes
- ``opening``: the storage and the committer of a table with or without a catalog

>>> delta_pyds.load_snapshot(table="main.sales.orders", catalog="sqlite:///data/catalog.db")

To write your own catalog, write a subclass of ``Catalog`` with five methods, as in ``examples/catalog_of_yours.py``.
Test it with ``contract.check``, and pass the object as ``catalog=``.

>>> from delta_pyds.catalog import contract
>>> contract.check(lambda: MyCatalog(new_empty_database()))
>>> delta_pyds.load_snapshot(table="main.sales.orders", catalog=MyCatalog(database))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delta_pyds.catalog.interface import (
        BacklogFull,
        Catalog,
        CommitOutcome,
        CommitProposal,
        Conflict,
        ManagedTable,
        NewTable,
        OutcomeUnknown,
        Ratified,
        Refused,
        StorageCredentials,
        TableReservation,
        UnpublishedCommit,
    )

__all__ = [
    "BacklogFull",
    "Catalog",
    "CommitOutcome",
    "CommitProposal",
    "Conflict",
    "ManagedTable",
    "NewTable",
    "OutcomeUnknown",
    "Ratified",
    "Refused",
    "StorageCredentials",
    "TableReservation",
    "UnpublishedCommit",
]


def __getattr__(name: str) -> Any:
    # loaded on demand, so that tables at paths do not import the catalogs
    if name not in __all__:
        raise AttributeError(f"module 'delta_pyds.catalog' has no attribute '{name}'")
    return getattr(importlib.import_module("delta_pyds.catalog.interface"), name)
