"""Object stores for tests: where a server is, what a table in it is opened with, and a hand that writes past ours."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fsspec.asyn

from tests.support.s3_server import options as s3_options

# Azurite's well-known ones
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Store:
    """``place``: the URL of a bucket. ``options``: the storage options. ``environment``: what says the same instead.

    ``put``: writes or replaces a file. ``make``: makes a bucket. ``url``: the server's. ``on_disk``: the server
    keeps objects as files, so that none is below another.
    """

    name: str
    url: str
    place: str
    options: dict[str, Any]
    environment: dict[str, str]
    put: Callable[[str, bytes], None]
    make: Callable[[str], None]
    on_disk: bool = False

    def options_by(self, url: str) -> dict[str, Any]:
        """The options of the same store at another URL."""
        return {"s3": s3_options, "azure": azure_options, "google": google_options}[self.name](url)

    def root(self) -> str:
        """A new place in the bucket."""
        return f"{self.place}/{uuid.uuid4().hex}"

    def parts(self, path: str) -> tuple[str, str]:
        """Bucket and key."""
        authority, _, key = path.partition("://")[2].partition("/")
        return authority.partition("@")[0], key

    def spellings(self, root: str) -> list[str]:
        """All URLs of a place in the bucket."""
        bucket, key = self.parts(root)
        if self.name == "azure":
            hosts = {"abfss": "dfs", "abfs": "dfs", "wasbs": "blob", "wasb": "blob"}
            full = [f"{scheme}://{bucket}@{ACCOUNT}.{h}.core.windows.net/{key}" for scheme, h in hosts.items()]
            return [*full, f"az://{bucket}/{key}", f"abfs://{bucket}/{key}"]
        schemes = {"s3": ["s3", "s3a", "s3n"], "google": ["gs", "gcs"]}[self.name]
        return [f"{scheme}://{bucket}/{key}" for scheme in schemes]


def s3_store(url: str, *, bucket: str = "bucket", **credentials: str) -> Store:
    """On the server at ``url``, which has the bucket ``bucket``; another one is made. ``credentials``: as of s3fs."""
    import s3fs

    options = {**s3_options(url), **credentials}
    filesystem = s3fs.S3FileSystem(**options)

    def make(bucket: str) -> None:
        filesystem.call_s3("create_bucket", Bucket=bucket)

    if bucket != "bucket":
        make(bucket)

    def put(path: str, data: bytes) -> None:
        bucket, key = store.parts(path)
        filesystem.call_s3("put_object", Bucket=bucket, Key=key, Body=data)

    environment = {
        "AWS_ACCESS_KEY_ID": options["key"],
        "AWS_SECRET_ACCESS_KEY": options["secret"],
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }
    store = Store("s3", url, f"s3://{bucket}", options, environment, put, make, on_disk=bucket != "bucket")
    return store


def azure_options(url: str) -> dict[str, Any]:
    return {
        "connection_string": f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
        f"BlobEndpoint={url}/{ACCOUNT};"
    }


def azure_store(url: str) -> Store:
    """On the server at ``url``, with a container of its own."""
    import adlfs

    options = azure_options(url)
    container = uuid.uuid4().hex
    filesystem = adlfs.AzureBlobFileSystem(**options)
    filesystem.mkdir(container)

    def put(path: str, data: bytes) -> None:
        async def upload() -> None:
            blob = filesystem.service_client.get_blob_client(*store.parts(path))
            await blob.upload_blob(data, overwrite=True)

        fsspec.asyn.sync(filesystem.loop, upload)

    environment = {"AZURE_STORAGE_CONNECTION_STRING": options["connection_string"]}
    store = Store(
        "azure", url, f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net", options, environment, put, filesystem.mkdir
    )
    return store


def google_options(url: str) -> dict[str, Any]:
    return {"endpoint_url": url, "token": "anon"}


def google_store(url: str) -> Store:
    """On the server at ``url``, with a bucket of its own."""
    import gcsfs.core

    options = google_options(url)
    bucket = uuid.uuid4().hex
    filesystem = gcsfs.core.GCSFileSystem(**options)

    def make(bucket: str) -> None:
        filesystem.call("POST", "b", json={"name": bucket}, project="test")

    make(bucket)

    def put(path: str, data: bytes) -> None:
        filesystem.pipe_file(path, data)

    environment = {"STORAGE_EMULATOR_HOST": options["endpoint_url"], "FSSPEC_GS_TOKEN": "anon"}
    return Store("google", url, f"gs://{bucket}", options, environment, put, make)
