"""Which places of a store are the same one, as settings of Hadoop and our URLs name them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from delta_pyds.spark.native import connectors


class Settings:
    """What is asked of Hadoop's configuration; ``brought``: by Hadoop's own file of defaults."""

    def __init__(self, brought: Mapping[str, str] | None = None, **given: str) -> None:
        self._given = {name.replace("_", "."): value for name, value in given.items()}
        self._brought = brought or {}

    def get(self, name: str) -> str | None:
        return self._given.get(name, self._brought.get(name))

    def getBoolean(self, name: str, default: bool) -> bool:  # noqa: N802 - Hadoop's name
        found = self.get(name)
        return default if found is None else found == "true"

    def getPropertySources(self, name: str) -> list[str] | None:  # noqa: N802
        if name in self._given:
            return ["programmatically"]
        return ["core-default.xml"] if name in self._brought else None


@pytest.mark.parametrize(
    ("settings", "endpoint", "same"),
    [
        (Settings(), "https://s3.eu-west-1.amazonaws.com", True),
        (Settings(fs_s3a_endpoint=""), "https://s3.amazonaws.com", True),
        (Settings(fs_s3a_endpoint="s3.eu-west-3.amazonaws.com"), "https://s3.us-east-1.amazonaws.com", True),
        (Settings(fs_s3a_endpoint="s3.cn-north-1.amazonaws.com.cn"), "https://s3.us-east-1.amazonaws.com", False),
        (Settings(), "https://s3.cn-north-1.amazonaws.com.cn", False),
        (Settings(), "https://minio.example.com", False),
        (Settings(), "https://amazonaws.com.example.com", False),
        (Settings(), "https://notamazonaws.com", False),
        (Settings(fs_s3a_endpoint="https://minio.example.com:443/"), "https://MinIO.example.com", True),
        (Settings(fs_s3a_endpoint="minio:9000"), "http://minio:9000", False),
        (Settings(fs_s3a_endpoint="minio:9000", fs_s3a_connection_ssl_enabled="false"), "http://minio:9000", True),
        (Settings(fs_s3a_endpoint="http://minio:9000"), "http://minio:9001", False),
        (Settings(fs_s3a_endpoint="http://a:1", fs_s3a_bucket_b_endpoint="http://b:2"), "http://b:2", True),
        (Settings(fs_s3a_endpoint="http://a:1", fs_s3a_bucket_b_endpoint="http://b:2"), "http://a:1", False),
        (Settings(fs_s3a_endpoint="http://a:1", fs_s3a_bucket_c_endpoint="http://b:2"), "http://a:1", True),
    ],
)
def test_places_of_s3(settings: Settings, endpoint: str, same: bool) -> None:
    assert connectors._is_same_place(connectors._of_s3(settings, "s3a://b/t"), endpoint) == same


ACCOUNT = "acct.dfs.core.windows.net"
LOCAL = {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"}
OAUTH = {"fs.azure.account.auth.type": "OAuth"}
AZURE, AZURITE = "https://acct.blob.core.windows.net/", "http://127.0.0.1:10000/acct"


@pytest.mark.parametrize(
    ("scheme", "settings", "endpoint", "same"),
    [
        ("abfss", {}, AZURE, True),
        ("abfs", {}, AZURE, True),
        ("abfss", {}, "https://other.blob.core.windows.net/", False),
        ("abfss", {}, AZURITE, False),
        ("abfs", {"fs.azure.always.use.https": "false"}, AZURE, False),
        ("abfss", {"fs.azure.always.use.https": "false"}, AZURE, True),
        ("abfs", {"fs.azure.always.use.https": "false", **OAUTH}, AZURE, True),
        ("abfs", {"fs.azure.always.use.https": "false", f"fs.azure.account.auth.type.{ACCOUNT}": "OAuth"}, AZURE, True),
        ("abfs", LOCAL, AZURITE, True),
        ("abfs", LOCAL, AZURE, False),
        ("abfss", LOCAL, AZURITE, False),
        ("abfs", {**LOCAL, f"fs.azure.abfs.endpoint.{ACCOUNT}": " 127.0.0.1:10001"}, AZURITE, False),
        # what is set for the account goes before, and where it is empty, too
        ("abfss", {**LOCAL, f"fs.azure.abfs.endpoint.{ACCOUNT}": ""}, AZURE, True),
        ("abfs", {**LOCAL, "fs.azure.abfs.endpoint.other.dfs.core.windows.net": "127.0.0.1:1"}, AZURITE, True),
        # one without a port is not looked at
        ("abfss", {"fs.azure.abfs.endpoint": "azure.example.com"}, AZURE, True),
    ],
)
def test_places_of_azure(scheme: str, settings: Mapping[str, str], endpoint: str, same: bool) -> None:
    found = connectors._of_azure(Settings(**settings), f"{scheme}://c@{ACCOUNT}/t")
    assert connectors._is_same_place(found, endpoint) == same


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, "https://storage.googleapis.com"),
        ({"root": "http://127.0.0.1:4443/"}, "http://127.0.0.1:4443"),
        ({"root": "http://127.0.0.1:4443/", "client": "http_api_client"}, "http://127.0.0.1:4443"),
        # what speaks gRPC is told by no setting where to ask
        ({"root": "http://127.0.0.1:4443/", "client": "STORAGE_CLIENT"}, "https://storage.googleapis.com"),
    ],
)
def test_places_of_google(settings: Mapping[str, str], place: str) -> None:
    names = {"root": "fs.gs.storage.root.url", "client": "fs.gs.client.type"}
    found = connectors._of_google(Settings(**{names[name]: value for name, value in settings.items()}), "gs://b/t")
    assert connectors._is_same_place(found, f"{place}/storage/v1/")
    others = {"https://storage.googleapis.com", "http://127.0.0.1:4443"} - {place}
    assert not any(connectors._is_same_place(found, f"{other}/storage/v1/") for other in others)


@pytest.mark.parametrize(
    ("size", "read"), [(None, True), ("67108864", True), (" 67108864 ", True), ("64m", False), ("64 m", False)]
)
def test_sizes_that_google_s_connector_reads(size: str | None, read: bool) -> None:
    settings = Settings(**({} if size is None else {"fs.gs.block.size": size}))
    assert (connectors._sizes_with_a_unit(settings) == "") == read


def test_a_setting_that_hadoop_brings_was_set_by_nobody() -> None:
    name = "fs.s3a.aws.credentials.provider"
    assert not connectors._is_set(Settings({name: "a,b"}), name)
    assert not connectors._is_set(Settings(), name)
    assert connectors._is_set(Settings({name: "a,b"}, fs_s3a_aws_credentials_provider="c"), name)
