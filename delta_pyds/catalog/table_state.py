"""The state of a table in its catalog, checked for contradictions before it is used."""

from __future__ import annotations

from delta_pyds.catalog.answers import load_table
from delta_pyds.catalog.interface import Catalog, ManagedTable
from delta_pyds.catalog.staging import staged_version
from delta_pyds.errors import CatalogError, UserError
from delta_pyds.storage.resolve import has_scheme, normalize_table_root


def ask(catalog: Catalog, name: str) -> ManagedTable:
    """Ask the catalog for the current state of the table, and check its consistency.

    Raises: TableNotFoundError; CatalogError if the catalog gives no answer, or one that contradicts itself.
    """
    return require_consistent(load_table(catalog, name))


def require_absolute(table: str, location: str) -> None:
    """Raises: CatalogError for a relative location: each process has its own working directory."""
    if not (location.startswith("/") or has_scheme(location)):
        raise CatalogError(
            f"the catalog returned the location {location!r:.500} for table {table!r}, which is neither a URL nor "
            "an absolute path. Nothing was changed; ask the administrator of the catalog.",
            table=table,
        )


def require_consistent(table: ManagedTable) -> ManagedTable:
    """Raises: CatalogError if the catalog's versions contradict each other; as ``require_absolute``."""
    require_absolute(table.name, table.location)
    wrong = _contradiction(table)
    if wrong is not None:
        raise CatalogError(
            f"the catalog says of table {table.name!r} {wrong}, so its versions are unknown. Nothing was changed; "
            "ask the administrator of the catalog.",
            table=table.name,
        )
    return table


def _contradiction(table: ManagedTable) -> str | None:
    if table.latest_version < 0:
        return f"that its latest version is {table.latest_version}"
    versions = [commit.version for commit in table.unpublished]
    if versions and versions != list(range(table.latest_version + 1 - len(versions), table.latest_version + 1)):
        shown = ", ".join(map(str, versions[:20]))
        return f"that {table.latest_version} is the latest version, but lists the unpublished commits {shown}"
    for commit in table.unpublished:
        if (commit.file_name is None) == (commit.content is None):
            return f"neither or both of file and content for version {commit.version}"
        if commit.file_name is not None and staged_version(commit.file_name) != commit.version:
            return f"that version {commit.version} is the staged commit {commit.file_name!r} of another version"
        if commit.file_name is not None and commit.size_bytes is not None and commit.size_bytes <= 0:
            return f"that the staged commit of version {commit.version} has {commit.size_bytes} bytes"
    return None


def check_same(table: ManagedTable, table_root: str, table_id: str | None) -> None:
    """Raises: UserError (DELTA_TABLE_ID_MISMATCH) if the name now belongs to another table."""
    if normalize_table_root(table.location) == table_root and table_id in (None, table.table_id):
        return
    raise UserError(
        f"the table {table.name} is now another table: it had the id {table_id} and was at {table_root}, but has the "
        f"id {table.table_id} and is at {table.location}. Nothing was changed: open it again by its name.",
        code="DELTA_TABLE_ID_MISMATCH",
        table=table_root,
    )


def newer_of(known: ManagedTable | None, found: ManagedTable) -> ManagedTable:
    """The newer of two states. Versions are never removed, so an answer with fewer comes from a stale replica."""
    if known is None or known.table_id != found.table_id or found.latest_version >= known.latest_version:
        return found
    return known
