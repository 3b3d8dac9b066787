"""Spark's own reader through its connectors for stores: the same rows, and never those of another server.

A table has files with deletion vectors, two of one size, and partition values that directories spell otherwise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.connect import connect_server
from tests.support.limits import ONLY_A_HANG_S
from tests.support.s3_server import s3_server
from tests.support.store_processes import azure_server, google_server, s3_proxy_server, what_can_be_had
from tests.support.store_programs import connector_jars
from tests.support.stores import ACCOUNT, ACCOUNT_KEY, Store, azure_store, google_store, s3_store
from tests.support.table_writes import write_rows
from tests.support.under_names import seen_as

ROOT = Path(__file__).parents[2]
COLUMNS = {"id": "long", "p": "string"}
PARTITIONS = ["a b%20/ü", "=x", None]
ACCOUNTS_HOST = f"{ACCOUNT}.dfs.core.windows.net"
GOOGLES_HOST = "storage.googleapis.com"
GCS_CLASS = "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"


def jars(name: str) -> str:
    return ",".join(map(str, connector_jars(name)))


def written(store: Store, table: str, first: int) -> list[list[Any]]:
    rows = [{"id": first + n, "p": PARTITIONS[n % 3]} for n in range(9)]
    given: dict[str, Any] = {"partition_by": (("p",),), "storage_options": store.options}
    properties = {"delta.enableDeletionVectors": "true"}
    write_rows(table, COLUMNS, rows, properties=properties, **given)
    return [[row["id"], row["p"]] for row in rows]


class Reads:
    """The tables that one session with a connector reads, one after the other."""

    def __init__(
        self, connector: str, settings: dict[str, str] | None = None, java_options: str = "", *, remote: str = ""
    ) -> None:
        self.name = connector
        self.steps: list[dict[str, Any]] = []
        self.told: dict[str, tuple[str, list[list[Any]]]] = {}
        self._plan: dict[str, Any] = {"remote": remote}
        if not remote:
            self._plan = {"jars": jars(connector), "java_options": java_options, "settings": settings or {}}

    def delete(self, table: str, options: dict[str, Any], condition: str) -> None:
        self.steps.append({"table": table, "options": options, "delete": condition})

    def read(self, name: str, table: str, options: dict[str, Any], **more: Any) -> None:
        self.steps.append({"name": name, "table": table, "options": options, **more})

    def run(self, **environment: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "tests.stores.connector_process"],
            input=json.dumps({**self._plan, "steps": self.steps}),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=ONLY_A_HANG_S,
            env={**os.environ, **environment},
        )
        self.told = json.loads(done.stdout.splitlines()[-1])

    def by_python(self, name: str, why: str, rows: list[list[Any]]) -> None:
        said, found = self.told[name]
        assert "engine arrow" in said and why in said, (name, said)
        assert found == sorted(rows, key=str), name

    def natively(self, name: str, rows: list[list[Any]]) -> None:
        said, found = self.told[name]
        assert f"engine native through {self.name}," in said, (name, said)
        assert found == sorted(rows, key=str), name

    def shows_none_of(self, *secrets: str) -> None:
        said = "".join(said for said, _ in self.told.values())
        assert not any(secret in said for secret in secrets)


def without(rows: list[list[Any]], *numbers: int) -> list[list[Any]]:
    return [row for row in rows if row[0] % 100 not in numbers]


def read_everywhere(reads: Reads, table: str, options: dict[str, Any], **more: Any) -> None:
    """Rows of two files of one size are deleted; all rows, some, and one whole partition."""
    reads.delete(table, options, "id % 100 in (1, 2)")
    reads.read("all settings", table, options, **more)
    reads.read("where", table, options, where="p = 'a b%20/ü'")
    reads.read("by id", table, options, where="id % 100 > 3")


def found_everywhere(reads: Reads, rows: list[list[Any]]) -> None:
    left = without(rows, 1, 2)
    reads.natively("all settings", left)
    reads.natively("where", [row for row in left if row[1] == PARTITIONS[0]])
    reads.natively("by id", [row for row in left if row[0] % 100 > 3])


def test_s3a_reads_what_we_read_or_nothing() -> None:
    # two of moto in one process would be one
    with what_can_be_had(), s3_server() as one, s3_proxy_server() as other:
        here, there = s3_store(one, bucket="both"), s3_store(other, bucket="both")
        table = here.root()
        rows, others = written(here, table, 0), written(there, table, 100)
        # an attempt to ask a place where nobody is should not take minutes
        reads = Reads("S3A", {"fs.s3a.path.style.access": "true", "fs.s3a.attempts.maximum": "1"})
        options = here.options
        reads.read("no settings", table, options)
        reads.read("no credentials", table, options, set={"fs.s3a.endpoint": one})
        keys = {"fs.s3a.access.key": options["key"], "fs.s3a.secret.key": options["secret"]}
        read_everywhere(reads, table, options, set=keys)
        # the session says the second server now, and keeps its connection to the first one
        reads.read("another server", table, options, set={"fs.s3a.endpoint": other})
        reads.read("kept connection", table, {**options, "endpoint_url": other})
        reads.run()
    reads.by_python("no settings", "S3A asks https://s3.amazonaws.com, but the table is at http://127.0.0.1", rows)
    reads.by_python("no credentials", "set spark.hadoop.fs.s3a.access.key", rows)
    found_everywhere(reads, rows)
    reads.by_python("another server", f"S3A asks {other}", without(rows, 1, 2))
    reads.by_python("kept connection", f"S3A asks {one}", others)


def test_connect_reads_what_we_read_or_nothing(tmp_path: Path) -> None:
    """The client knows no setting of the server: the server's answers decide, once for a bucket."""
    with what_can_be_had(), s3_server() as one, s3_proxy_server() as other:
        here, away, apart = (s3_store(one, bucket=name) for name in ("both", "away", "apart"))
        table, moved, empty = here.root(), away.root(), apart.root()
        rows, moved_rows, unseen = written(here, table, 0), written(away, moved, 100), written(apart, empty, 200)
        # the server has a table at the same URL in another store
        written(s3_store(other, bucket="away"), moved, 300)
        options = here.options
        settings = {
            "path.style.access": "true", "attempts.maximum": "1", "endpoint": one, "access.key": options["key"],
            "secret.key": options["secret"], "bucket.away.endpoint": other, "bucket.apart.endpoint": other,
        }  # fmt: skip
        submit = " ".join(f"--conf spark.hadoop.fs.s3a.{name}={value}" for name, value in settings.items())
        with connect_server(tmp_path, submit=f"--jars {jars('S3A')} {submit}") as remote:
            reads = Reads("the server's connector for s3://", remote=remote)
            read_everywhere(reads, table, options)
            reads.read("another store", moved, away.options)
            reads.read("no table there", empty, apart.options)
            reads.run()
    found_everywhere(reads, rows)
    reads.by_python("another store", "does not return 's3a://away/", moved_rows)
    reads.by_python("no table there", "does not read s3a://apart/", unseen)


def test_abfs_reads_what_we_read_or_nothing(tmp_path: Path) -> None:
    """Of an account without a hierarchy of directories: at a place that is set, and by the account's own name."""
    blobs = ACCOUNTS_HOST.replace(".dfs.", ".blob.")
    with (
        what_can_be_had(),
        azure_server() as one,
        azure_server() as other,
        seen_as(one, tmp_path, blobs) as (java, environment, faults),
    ):
        here, there = azure_store(one), azure_store(other)
        container, key = here.parts(here.root())
        there.make(container)
        # the scheme without a certificate
        table, secure = f"abfs://{container}@{ACCOUNTS_HOST}/{key}", f"abfss://{container}@{ACCOUNTS_HOST}/{key}"
        rows, others = written(here, table, 0), written(there, table, 100)
        settings = {"account.hns.enabled": "false", "fns.account.service.type": "BLOB", "io.retry.max.retries": "1"}
        # the other library makes connections by https alone
        by_http = {"always.use.https": "false", "networking.library": "JDK_HTTP_URL_CONNECTION"}
        reads = Reads("ABFS", {f"fs.azure.{name}": value for name, value in {**settings, **by_http}.items()}, java)
        options = here.options
        reads.read("no settings", table, options)
        reads.read("no credentials", table, options, set={"fs.azure.abfs.endpoint": one.partition("//")[2]})
        read_everywhere(reads, table, options, set={f"fs.azure.account.key.{ACCOUNTS_HOST}": ACCOUNT_KEY})
        reads.read("abfss", secure, options)
        reads.read("wasb", f"wasb://{container}@{blobs}/{key}", options)
        reads.read("az", f"az://{container}/{key}", options)
        reads.read("another server", table, options, set={"fs.azure.abfs.endpoint": other.partition("//")[2]})
        reads.read("kept connection", table, there.options)
        named = {
            "connection_string": f"DefaultEndpointsProtocol=https;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
            "EndpointSuffix=core.windows.net"
        }
        reads.read("named", secure, named, set={"fs.azure.abfs.endpoint": "", "fs.azure.always.use.https": "true"})
        reads.run(**environment)
    left = without(rows, 1, 2)
    reads.by_python("no settings", f"ABFS asks http://{blobs}, but the table is at {one}/{ACCOUNT}", rows)
    reads.by_python("no credentials", f"set spark.hadoop.fs.azure.account.key.{ACCOUNTS_HOST}", rows)
    found_everywhere(reads, rows)
    reads.by_python("abfss", f"ABFS asks https://{one.partition('//')[2]}, but the table is at {one}", left)
    for name in ("wasb", "az"):
        reads.by_python(name, "give it as abfss://container@account.dfs.core.windows.net", left)
    reads.by_python("another server", f"ABFS asks {other}", left)
    reads.by_python("kept connection", f"ABFS asks {one}", others)
    reads.natively("named", left)
    # on a busy machine it sometimes also connects to the other name of the same account
    asked = {path for method, path in faults.asked if method == "CONNECT"}
    assert f"{blobs}:443" in asked and asked <= {f"{blobs}:443", f"{ACCOUNTS_HOST}:443"}, asked
    reads.shows_none_of(ACCOUNT_KEY)


def test_gcs_reads_what_we_read_or_nothing() -> None:
    with what_can_be_had(), google_server() as one, google_server() as other:
        here, there = google_store(one), google_store(other)
        table = here.root()
        there.make(here.parts(table)[0])
        rows, others = written(here, table, 0), written(there, table, 100)
        reads = Reads("GCS")
        options = here.options
        reads.read("no class", table, options)
        reads.read("no settings", table, options, set={"fs.gs.impl": GCS_CLASS})
        reads.read(
            "another client", table, options, set={"fs.gs.storage.root.url": one, "fs.gs.client.type": "STORAGE_CLIENT"}
        )
        reads.read("no credentials", table, options, set={"fs.gs.client.type": "HTTP_API_CLIENT"})
        reads.read("sizes", table, options, set={"fs.gs.auth.type": "UNAUTHENTICATED"})
        read_everywhere(reads, table, options, set={"fs.gs.block.size": "67108864"})
        reads.read("gcs", table.replace("gs://", "gcs://"), options)
        reads.read("another server", table, options, set={"fs.gs.storage.root.url": other})
        reads.read("kept connection", table, there.options)
        reads.run()
    left = without(rows, 1, 2)
    reads.by_python("no class", f"set spark.hadoop.fs.gs.impl to {GCS_CLASS}", rows)
    for name in ("no settings", "another client"):
        reads.by_python(name, f"GCS asks https://{GOOGLES_HOST}, but the table is at {one}", rows)
    reads.by_python("no credentials", "set spark.hadoop.fs.gs.auth.type", rows)
    reads.by_python(
        "sizes",
        "does not read Hadoop's fs.gs.block.size (64m): set spark.hadoop.fs.gs.block.size 67108864",
        rows,
    )
    found_everywhere(reads, rows)
    reads.natively("gcs", left)
    reads.by_python("another server", f"GCS asks {other}", left)
    reads.by_python("kept connection", f"GCS asks {one}", others)


def test_the_connector_that_hadoop_has_for_google(tmp_path: Path) -> None:
    """It asks Google alone, by a token that Google gave: servers play both here."""
    with (
        what_can_be_had(),
        google_server() as url,
        seen_as(url, tmp_path, GOOGLES_HOST, "oauth2.googleapis.com") as (java, environment, faults),
    ):
        faults.give_token()
        store = google_store(url)
        table = store.root()
        rows = written(store, table, 0)
        options = {"endpoint_url": f"https://{GOOGLES_HOST}", "token": "anon", "session_kwargs": {"trust_env": True}}
        user = {"client.id": "i", "client.secret": "s", "refresh.token": "r"}
        settings = {"fs.gs.project.id": "test", **{f"fs.gs.auth.{name}": value for name, value in user.items()}}
        reads = Reads("hadoop-gcp", settings, java)
        reads.read("another place", table, store.options)
        reads.read("no credentials", table, options)
        read_everywhere(reads, table, options, set={"fs.gs.auth.type": "USER_CREDENTIALS"})
        reads.run(**environment)
    reads.by_python("another place", f"hadoop-gcp asks https://{GOOGLES_HOST}, but the table is at {url}", rows)
    reads.by_python("no credentials", "set spark.hadoop.fs.gs.auth.type", rows)
    found_everywhere(reads, rows)
    assert ("POST", "/token") in faults.asked
