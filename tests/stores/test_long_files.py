"""Files of several parts: whole or not there, on each store."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from delta_pyds.errors import StorageError
from delta_pyds.storage.base import Storage
from delta_pyds.storage.object_output import PART_BYTES
from delta_pyds.storage.resolve import resolve_storage
from tests.stores.requests_made import requests_made
from tests.support.faulty_proxy import proxy
from tests.support.stores import Store

ROOT = Path(__file__).parents[2]
DATA = bytes(range(256)) * (PART_BYTES // 256)


@pytest.fixture
def storage(store: Store) -> Storage:
    return resolve_storage(store.place, store.options)


@pytest.fixture
def path(store: Store) -> str:
    return f"{store.root()}/part-0.parquet"


def test_it_is_there_when_it_is_closed(storage: Storage, path: str) -> None:
    with requests_made() as made, storage.open_output(path) as file:
        for _ in range(3):
            file.write(DATA)
        file.write(b"end")
        assert not storage.exists(path)
    assert storage.status(path).size_bytes == 3 * PART_BYTES + 3
    assert storage.read(path, 2 * PART_BYTES) == DATA + b"end"
    # parts, what begins and what ends them, and the look that it is not there
    assert len(made) <= 9


def test_an_error_or_a_writer_that_lets_go_leaves_nothing(storage: Storage, path: str) -> None:
    def write() -> None:
        with storage.open_output(path) as file:
            file.write(DATA * 3)
            raise KeyError("x")

    with pytest.raises(KeyError):
        write()
    assert not storage.exists(path)
    file = storage.open_output(path)
    file.write(DATA * 3)
    del file
    gc.collect()
    time.sleep(0.3)  # had it been completed
    assert not storage.exists(path)


def test_a_part_that_is_refused_names_the_file_and_leaves_nothing(store: Store, storage: Storage, path: str) -> None:
    with proxy(store.url) as (url, faults):
        through_proxy = resolve_storage(store.place, store.options_by(url))
        file = through_proxy.open_output(path)
        file.write(DATA * 2 + b"x")
        faults.choose = lambda method, _: 403 if method in ("PUT", "POST") else None
        with pytest.raises(StorageError if store.name != "google" else Exception, match=r"(?i)part-0|forbidden"):
            file.write(DATA)
            file.close()
    assert not storage.exists(path)


def test_a_writer_that_is_killed_leaves_nothing(store: Store, storage: Storage, path: str) -> None:
    program = (
        "import os, signal\n"
        "from delta_pyds.storage.resolve import resolve_storage\n"
        f"file = resolve_storage({path!r}).open_output({path!r})\n"
        f"file.write(bytes({3 * PART_BYTES + 5}))\n"
        "file._background._pool.shutdown(wait=True)\n"  # the parts are there
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **store.environment}, cwd=ROOT)
    assert done.returncode == -9
    assert not storage.exists(path)
