"""Temporary storage credentials from Unity Catalog, as options of the table's file system.

Invariant: returned credentials are valid for some more minutes, unless the catalog issues only shorter ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from delta_pyds.catalog.interface import StorageCredentials
from delta_pyds.catalog.unity_http import UnityError, UnityHttp, path_of
from delta_pyds.catalog.unity_json import Credentials, StorageCredential
from delta_pyds.redaction import conceal
from delta_pyds.storage.resolve import normalize_table_root, scheme_of

# credentials are returned until this long before they expire; without an expiry time, for this long
_KEPT_MS = 5 * 60_000
_FORBIDDEN = 403
_READ, _READ_WRITE = "READ", "READ_WRITE"
# the catalog's names -> the options of the file systems
_OPTIONS = {
    "s3.access-key-id": "key",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "azure.sas-token": "sas_token",
    "gcs.oauth-token": "token",
}
# not a secret
_PUBLIC = "s3.access-key-id"


class CredentialCache:
    """The temporary credentials for the tables of one catalog, until shortly before they expire."""

    def __init__(self, http: UnityHttp, *, now_ms: Callable[[], float] = lambda: time.time() * 1000) -> None:
        self._http, self._now_ms = http, now_ms
        # by the table's id: the credentials, and the time until which they are returned
        self._known: dict[str, tuple[StorageCredentials, float]] = {}

    def of_table(self, path: str, table_id: str, location: str) -> StorageCredentials | None:
        """The credentials for a table whose calls have that path; for reading only, if the user may not write."""

        def ask() -> Credentials:
            try:
                return self._http.get(f"{path}/credentials", Credentials, operation=_READ_WRITE)
            except UnityError as error:
                if error.status != _FORBIDDEN:
                    raise
            return self._http.get(f"{path}/credentials", Credentials, operation=_READ)

        return self._cached(table_id, location, ask)

    def of_reserved(self, table_id: str) -> StorageCredentials | None:
        """The credentials for the reserved location of a new table."""
        path = f"{path_of('staging-tables', table_id)}/credentials"
        return self._cached(table_id, None, lambda: self._http.get(path, Credentials))

    def take(self, table_id: str, location: str, offered: list[StorageCredential] | None) -> StorageCredentials | None:
        """Cache and return the credentials that another call has returned."""
        found = credentials_for(location, offered)
        if found is not None:
            expires_at_ms = found.expires_at_ms
            # credentials without an expiry time may expire too
            until_ms = self._now_ms() + _KEPT_MS if expires_at_ms is None else expires_at_ms - _KEPT_MS
            self._known[table_id] = found, until_ms
        return found

    def _cached(self, table_id: str, location: str | None, ask: Callable[[], Credentials]) -> StorageCredentials | None:
        if location is not None and scheme_of(location) == "file":
            return None
        known = self._known.get(table_id)
        if known is not None and known[1] > self._now_ms():
            return known[0]
        return self.take(table_id, location or "", ask().storage_credentials)


def credentials_for(location: str, offered: list[StorageCredential] | None) -> StorageCredentials | None:
    """The credentials with the longest prefix of the location; the first ones if there is no location."""
    root = normalize_table_root(location) if location else ""
    fitting = [(len(one.prefix or ""), one) for one in offered or () if not root or _covers(one.prefix, root)]
    if not fitting:
        return None
    best = max(fitting, key=lambda pair: pair[0])[1]
    options = _options(best.config or {})
    return StorageCredentials(options, best.expiration_time_ms) if options else None


def _covers(prefix: str | None, root: str) -> bool:
    if not prefix:
        return True
    given = normalize_table_root(prefix)
    return root == given or root.startswith(f"{given}/")


def _options(config: Mapping[str, str | None]) -> dict[str, str]:
    found = {name: value for name in _OPTIONS if (value := config.get(name))}
    conceal((value for name, value in found.items() if name != _PUBLIC), passing=True)
    return {_OPTIONS[name]: value for name, value in found.items()}
