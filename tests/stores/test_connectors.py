"""Spark's own reader through its connector for S3: the same rows, and never those of another server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.s3_server import s3_server
from tests.support.store_processes import s3_proxy_server
from tests.support.store_programs import s3a_jars
from tests.support.stores import Store, s3_store
from tests.support.table_writes import write_rows

ROOT = Path(__file__).parents[2]
COLUMNS = {"id": "long", "p": "string"}
PARTITIONS = ["a b%20/ü", "=x", None]


@pytest.fixture(scope="module")
def jars() -> str:
    try:
        return ",".join(map(str, s3a_jars()))
    except LookupError as error:
        if os.environ.get("STORES") == "optional":
            pytest.skip(f"NOT TESTED: Spark's connector for S3 cannot be had here ({error})")
        raise


@pytest.fixture(scope="module")
def stores() -> Iterator[tuple[Store, Store]]:
    """The same bucket on two servers; two of moto in one process would be one."""
    with s3_server() as one, s3_proxy_server() as other:
        yield s3_store(one, bucket="both"), s3_store(other, bucket="both")


def written(store: Store, table: str, first: int) -> list[list[Any]]:
    rows = [{"id": first + n, "p": PARTITIONS[n % 3]} for n in range(6)]
    given: dict[str, Any] = {"partition_by": (("p",),), "storage_options": store.options}
    properties = {"delta.enableDeletionVectors": "true"}
    write_rows(table, COLUMNS, rows, properties=properties, **given)
    return [[row["id"], row["p"]] for row in rows]


def test_s3a_reads_what_we_read_or_nothing(jars: str, stores: tuple[Store, Store]) -> None:
    table = stores[0].root()
    rows, others = written(stores[0], table, 0), written(stores[1], table, 100)
    command = [sys.executable, "-m", "tests.stores.s3a_process", jars, stores[0].url, stores[1].url, table]
    done = subprocess.run(
        [*command, json.dumps(stores[0].options)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    by_python = {
        "no settings": "S3A asks https://s3.amazonaws.com, and the table is at http://127.0.0.1",
        "no credentials": "set spark.hadoop.fs.s3a.access.key",
        "another server": f"S3A asks {stores[1].url}",
        "kept connection": f"S3A asks {stores[0].url}",
    }
    for name, why in by_python.items():
        said, found = told[name]
        assert "engine arrow" in said and why in said, (name, said)
        assert found == sorted(others if name == "kept connection" else rows, key=str), name
    for name in ("all settings", "where"):
        said, found = told[name]
        assert "engine native through S3A" in said, said
        assert found == sorted((row for row in rows if name != "where" or row[1] == PARTITIONS[0]), key=str)
    assert stores[0].options["secret"] not in "".join(said for said, _ in told.values()).replace("tests", "")
