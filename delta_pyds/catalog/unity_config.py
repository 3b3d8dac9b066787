"""The interface that a server of Unity Catalog offers: its version, and the calls.

Invariant: a server is asked once for each of its catalogs, before any other call, and never gets a call that it does
not offer. Paths are those of version 1, the only existing version.

Specification: "Get Configuration".
"""

from __future__ import annotations

import msgspec

from delta_pyds.catalog.unity_http import UnityError, UnityHttp
from delta_pyds.errors import UnsupportedOperationError

_OURS = "1.0"
_BAD_REQUEST, _NOT_FOUND = 400, 404
_SCHEMA = "/v1/catalogs/{catalog}/schemas/{schema}"
LOAD = f"GET {_SCHEMA}/tables/{{table}}"
UPDATE = f"POST {_SCHEMA}/tables/{{table}}"
STAGE = f"POST {_SCHEMA}/staging-tables"
CREATE = f"POST {_SCHEMA}/tables"
CREDENTIALS = f"GET {_SCHEMA}/tables/{{table}}/credentials"


class _Config(msgspec.Struct, rename="kebab"):
    """``endpoints``: method and path of each call; calls that we do not use are ignored."""

    endpoints: list[str] = []
    protocol_version: str = _OURS


class UnityConfig:
    """``http``: the client of the server.

    >>> UnityConfig(http).require("main", LOAD)
    """

    def __init__(self, http: UnityHttp) -> None:
        self._http = http
        self._offered: dict[str, frozenset[str]] = {}

    def require(self, catalog: str, call: str) -> None:
        """Raises: UnsupportedOperationError if the server does not offer the call; UnityError and CatalogError if it
        does not list its calls.
        """
        if not self.offers(catalog, call):
            raise UnsupportedOperationError(
                f"the server {self._http.shown} does not offer the call {call!r} (Unity Catalog's interface for Delta) "
                f"for its catalog {catalog}. Nothing was changed; ask the server's administrator.",
                code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
                catalog=catalog,
            )

    def offers(self, catalog: str, call: str) -> bool:
        """Whether the server offers the call. Raises: as ``require`` if the server does not list its calls."""
        if catalog not in self._offered:
            found = self._ask(catalog)
            if found is None:
                return True
            self._offered[catalog] = found
        return call in self._offered[catalog]

    def _ask(self, catalog: str) -> frozenset[str] | None:
        """The calls for a catalog; None if it does not exist: the next call then raises an error about its table."""
        try:
            found = self._http.get("config", _Config, catalog=catalog, **{"protocol-versions": _OURS})
        except UnityError as error:
            if error.status == _NOT_FOUND and error.kind:
                return None
            if error.status == _BAD_REQUEST and error.kind:
                raise self._other_version(str(error)) from None
            raise
        if found.protocol_version.partition(".")[0] != "1":
            raise self._other_version(f"it answers in version {found.protocol_version!r:.40}")
        return frozenset(found.endpoints)

    def _other_version(self, reason: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"the server {self._http.shown} does not offer version {_OURS} of Unity Catalog's interface for Delta, the "
            f"only one that this release supports: {reason}.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        )
