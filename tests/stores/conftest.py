"""Each test runs on each store, by the servers of ``make test-stores``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.s3_server import s3_server
from tests.support.stores import Store, azure_store, google_store, s3_store


@pytest.fixture(scope="session", params=["s3", "azure", "google"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "s3":
        with s3_server() as url:
            yield s3_store(url)
    else:
        yield {"azure": azure_store, "google": google_store}[request.param]("")


@pytest.fixture
def environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of tables come from the environment here."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    if store.name == "google":
        import fsspec.config

        # as fsspec takes it from the environment when it is imported
        monkeypatch.setitem(fsspec.config.conf, "gs", {"token": store.environment["FSSPEC_GS_TOKEN"]})
