"""Each test runs on each store of which ``make test-stores`` has a server, and says which."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.support.s3_server import s3_server
from tests.support.store_processes import AZURE, GOOGLE, S3PROXY
from tests.support.stores import Store, azure_store, google_store, s3_store

_URLS = {"s3proxy": S3PROXY, "azure": AZURE, "google": GOOGLE}
STORES = ["s3", *(name for name, variable in _URLS.items() if variable in os.environ)]


def pytest_report_header() -> str:
    return f"stores: {', '.join(STORES)}"


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """``s3`` is moto, one step at a time."""
    if request.param == "s3":
        with s3_server() as url:
            yield s3_store(url)
        return
    url = os.environ[_URLS[request.param]]
    if request.param == "s3proxy":
        yield s3_store(url, bucket=uuid.uuid4().hex)
    else:
        yield {"azure": azure_store, "google": google_store}[request.param](url)


@pytest.fixture
def environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of tables come from the environment here."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    if store.name == "google":
        import fsspec.config

        # as fsspec takes it from the environment when it is imported
        monkeypatch.setitem(fsspec.config.conf, "gs", {"token": store.environment["FSSPEC_GS_TOKEN"]})
