"""Which places of a store are the same one, as settings of Hadoop and URLs of ours name them."""

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
    assert connectors._is_same_place(connectors._of_s3(settings, "b"), endpoint) == same


@pytest.mark.parametrize(
    ("authority", "endpoint", "same"),
    [
        ("c@acct.dfs.core.windows.net", "https://acct.blob.core.windows.net/", True),
        ("c@acct.dfs.core.windows.net", "https://other.blob.core.windows.net/", False),
        ("c@acct.dfs.core.windows.net", "http://127.0.0.1:10000/acct", False),
        ("c", "https://acct.blob.core.windows.net/", False),
    ],
)
def test_places_of_azure(authority: str, endpoint: str, same: bool) -> None:
    assert connectors._is_same_place(connectors._of_azure(Settings(), authority), endpoint) == same


def test_places_of_google() -> None:
    google = "https://storage.googleapis.com/storage/v1/"
    assert connectors._is_same_place(connectors._of_google(Settings(), "b"), google)
    elsewhere = Settings(fs_gs_storage_root_url="http://127.0.0.1:4443/")
    assert not connectors._is_same_place(connectors._of_google(elsewhere, "b"), google)
    assert connectors._is_same_place(connectors._of_google(elsewhere, "b"), "http://127.0.0.1:4443/storage/v1/")


def test_a_setting_that_hadoop_brings_was_set_by_nobody() -> None:
    name = "fs.s3a.aws.credentials.provider"
    assert not connectors._is_set(Settings({name: "a,b"}), name)
    assert not connectors._is_set(Settings(), name)
    assert connectors._is_set(Settings({name: "a,b"}, fs_s3a_aws_credentials_provider="c"), name)
