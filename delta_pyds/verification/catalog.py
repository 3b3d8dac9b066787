"""The commits that a catalog ratified, compared with the log.

Protocol: "Reading Catalog-managed Tables", "Publishing Commits", "Maintenance Operations on Catalog-managed Tables".
"""

from __future__ import annotations

from delta_pyds.catalog.commit_comparison import Comparison, compare_commits
from delta_pyds.catalog.interface import ManagedTable
from delta_pyds.catalog.managed import ManagedStorage
from delta_pyds.catalog.managed_storage import CatalogStorage
from delta_pyds.errors import DeltaError, FileNotFoundInStorageError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.listing import LogListing, by_version, list_log
from delta_pyds.protocol.paths import commit_path
from delta_pyds.verification.report import Findings


def check_catalog(storage: ManagedStorage, findings: Findings) -> None:
    """Find published commits that were not ratified, differ from the ratified ones, or were published out of order."""
    assert isinstance(storage, CatalogStorage)
    try:
        table = storage.latest()
        listing = list_log(storage.store, storage.table_root)
    except DeltaError as error:
        findings.error("catalog.unreadable", storage.table_root, error.message)
        return
    if table is None:
        return
    _check_published(table, listing, findings)
    for commit in table.unpublished:
        _check_unpublished(storage, commit.version, listing, findings)


def _check_published(table: ManagedTable, listing: LogListing, findings: Findings) -> None:
    commits = by_version(listing.commits)
    for version, file in commits.items():
        if version > table.latest_version:
            message = f"the catalog has ratified versions up to {table.latest_version} only: readers must ignore it."
            findings.error("catalog.not-ratified", file.path, message)
    ratified = [version for version in commits if version <= table.latest_version]
    newest, first = max(ratified, default=-1), min(ratified, default=0)
    for version in sorted(set(range(first, newest)) - set(ratified)):
        findings.error("catalog.published-order", version, f"version {newest} is published, but this one is not.")
    for file in (*listing.checkpoints, *listing.compactions):
        last = file.name.end_version or file.version
        if last > newest and last not in commits and file.size_bytes:
            findings.error("catalog.unpublished", file.path, f"it covers version {last}, which is not published.")


def _check_unpublished(storage: CatalogStorage, version: int, listing: LogListing, findings: Findings) -> None:
    """Check a commit that the catalog stores: it exists, equals the published one if there is one, and has a txnId."""
    path = commit_path(storage.table_root, version)
    published = by_version(listing.commits).get(version)
    try:
        data = storage.read(path)
        if published is not None and compare_commits(storage.store.read(published.path), data) is not Comparison.SAME:
            message = "it is not the commit that the catalog ratified: readers must take the catalog's."
            findings.error("catalog.other-commit", published.path, message)
        infos = [a.commit_info for a in decode_commit(data, path) if a.commit_info is not None]
    except FileNotFoundInStorageError:
        findings.error("catalog.missing-commit", version, "neither its staged commit nor a published one exists.")
        return
    except DeltaError as error:
        findings.error("catalog.unreadable", version, error.message)
        return
    if not infos or not infos[0].txn_id:
        findings.error("catalog.no-txn-id", version, "its commitInfo has no txnId, which every commit must have.")
