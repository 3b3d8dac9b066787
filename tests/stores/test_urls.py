"""One place by each of its URLs, and by credentials that the environment has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from delta_pyds.errors import StorageError
from delta_pyds.storage.resolve import normalize_table_root, resolve_storage
from tests.support.stores import ACCOUNT, ACCOUNT_KEY, Store

ROOT = Path(__file__).parents[2]


def test_each_spelling_is_the_same_place(store: Store) -> None:
    root = store.root()
    for number, written in enumerate(store.spellings(root)):
        directory = normalize_table_root(written)
        storage = resolve_storage(directory, store.options)
        storage.put_if_absent(f"{directory}/{number}.json", b"x")
        found = [status.path for status in storage.list_from(directory, "")]
        assert found == [f"{directory}/{n}.json" for n in range(number + 1)]
        # absolute paths of a log may have another spelling
        assert storage.read(f"{root}/{number}.json") == b"x"


def test_credentials_come_from_the_environment(store: Store) -> None:
    """In a process of its own: fsspec reads its part of the environment when it is imported."""
    root = store.root()
    program = (
        "from delta_pyds.storage.resolve import resolve_storage\n"
        f"resolve_storage({root!r}).put_if_absent('{root}/1.json', b'x')\n"
    )
    subprocess.run([sys.executable, "-c", program], env={**os.environ, **store.environment}, check=True, cwd=ROOT)
    assert resolve_storage(root, store.options).read(f"{root}/1.json") == b"x"


@pytest.mark.parametrize(
    "environment",
    [
        {"AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY},
        {
            "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=https;AccountName=other;"
            f"AccountKey={ACCOUNT_KEY};EndpointSuffix=core.windows.net"
        },
        {"AZURE_STORAGE_CLIENT_ID": "i", "AZURE_STORAGE_CLIENT_SECRET": "s", "AZURE_STORAGE_TENANT_ID": "t"},
    ],
)
def test_a_sas_that_was_handed_out_goes_before_the_environment(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may do less than the key of the account, and ends. adlfs writes long files by the same attributes."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    storage = resolve_storage("abfss://c@acct.dfs.core.windows.net/t", {"sas_token": "sv=1&sig=handed-out"})
    client = storage._filesystem.service_client  # type: ignore[attr-defined]
    assert client.credential is None and "sig=handed-out" in client.url and client.account_name == "acct"
    assert storage._filesystem.connection_string is storage._filesystem.account_key is None  # type: ignore[attr-defined]


def test_options_of_another_account_are_refused(store: Store) -> None:
    other = "abfss://c@other.dfs.core.windows.net/t"
    if store.name == "azure":
        with pytest.raises(StorageError, match=f"in the account 'other', but .* are for '{ACCOUNT}'"):
            resolve_storage(other, store.options)
    with pytest.raises(StorageError, match="may not refer to another store"):
        resolve_storage(store.place, store.options).read(f"{other}/x")
