"""Catalogs: who says which commits a table has, where the log alone does not. Protocol: "Catalog-managed tables".

What a catalog is, and which there are:

- ``interface``: ``Catalog``, and the values that it speaks in
- ``sql``: what catalogs in a database have in common
- ``sqlite_file``: connections to an SQLite file, in a process that may fork
- ``sqlite``: a catalog in one file, for any number of processes of one machine
- ``postgresql``: a catalog in a PostgreSQL database, for processes of many machines
- ``unity_deadline``: time limits of whole answers
- ``unity_http``: calls of Unity Catalog, and what its failures say
- ``unity_config``: what its server offers
- ``unity_json``: its values and ours
- ``unity_credentials``: storage credentials that it hands out
- ``unity``: Unity Catalog
- ``contract``: what every catalog has to keep, as rules that are run on one
- ``objects``: catalogs that are given as objects, and how they come to other processes
- ``settings``: what a file or the environment says of a catalog that an option names
- ``named``: the catalog of a name

How tables of any catalog are read and committed to:

- ``managed``: whether a catalog manages the table that a storage was opened for
- ``staging``: staged commits: their names, writing them, and deleting those that nobody needs
- ``answers``: checks of the types that a catalog's methods return, and of their errors
- ``table_state``: consistency checks of a catalog's answer about a table
- ``likeness``: whether two texts are the same commit
- ``told_listing``: a listing of the log with the commits that the catalog returns
- ``managed_storage``: the table's files, with the log according to the catalog
- ``evidence``: the owner of a version, from the catalog's commits and the log
- ``publishing``: ratified commits become files of the log, in order
- ``outcomes``: the outcome of a proposal, from what the catalog returned or raised
- ``registration``: version 0, and the table's name
- ``committer``: commits through the catalog, with lost answers resolved
- ``address``: from a table's name to its location, as options for other processes
- ``opening``: the storage and the committer of a table with or without a catalog

>>> delta_pyds.load_snapshot(table="main.sales.orders", catalog="sqlite:///data/catalog.db")

A catalog of one's own is a subclass of ``Catalog`` with five methods: ``examples/catalog_of_yours.py`` is one. What it
does wrong ``contract.check`` says; the object itself is given as ``catalog=``.

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
    # what tables at paths need of this package costs them nothing
    if name not in __all__:
        raise AttributeError(f"module 'delta_pyds.catalog' has no attribute '{name}'")
    return getattr(importlib.import_module("delta_pyds.catalog.interface"), name)
