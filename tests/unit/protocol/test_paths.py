"""Paths of the log: decoded once, and never upwards."""

from __future__ import annotations

import pytest

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.paths import is_absolute, resolve_below, resolve_data_path, resolve_sidecar_path


@pytest.mark.parametrize("path", ["/a", "s3://b/x", "file:/a", "file:///a", "abfss://c@a/x", "s3:/b", "x-1.2+y:/z"])
def test_an_absolute_path_has_a_slash_or_a_scheme_with_one(path: str) -> None:
    assert is_absolute(path)
    assert resolve_data_path("/t", path) == path


@pytest.mark.parametrize("path", ["a:b", "part:1/x", "ts=10:30:00/x", "1s3:b", ":x", "a b:c", "x"])
def test_a_name_with_a_colon_is_relative(path: str) -> None:
    assert not is_absolute(path)
    assert resolve_data_path("/t", path) == f"/t/{path}"


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("p=a%20b/x", "/t/p=a b/x"),
        ("p=%2525/x", "/t/p=%25/x"),
        ("p=a%3Ab/x", "/t/p=a:b/x"),
        ("s3%3A//b/x", "/t/s3:/b/x"),  # what is a scheme only once decoded is a name
        ("%2Fetc/passwd", "/t/etc/passwd"),
        ("1s3://b", "/t/1s3:/b"),
        ("./a//b/./c", "/t/a/b/c"),
        ("/o/p=%C3%BC/x", "/o/p=ü/x"),
        ("s3://b/a%2520b", "s3://b/a%20b"),
        ("a..b/..c/d../...", "/t/a..b/..c/d../..."),
    ],
)
def test_a_path_is_decoded_exactly_once(path: str, resolved: str) -> None:
    assert resolve_data_path("/t", path) == resolved


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "a/..", "..", "%2e%2e/x", "a/%2E./x", "..%2Fx", "/o/../etc/x", "file:///o/%2e%2e/x", "s3://b/../c/x"],
)  # fmt: skip
def test_a_path_that_leads_upwards_is_refused(path: str) -> None:
    with pytest.raises(ProtocolError, match=r"the table '/t' names the file .*'\.\.'"):
        resolve_data_path("/t", path)


def test_a_name_that_is_not_encoded_stays_below_too() -> None:
    assert resolve_below("/t/", "a%20b/..c") == "/t/a%20b/..c"
    with pytest.raises(ProtocolError, match="names the file") as caught:
        resolve_below("/t", "../x/deletion_vector_1.bin")
    assert caught.value.code == "DELTA_PROTOCOL_VIOLATION"


@pytest.mark.parametrize(
    "path",
    ["a b.parquet", "a%20b.parquet", "_sidecars/a%20b.parquet", "/o/_delta_log/_sidecars/a%20b.parquet",
     "s3://other/a%20b.parquet", "../../../a%20b.parquet", "x%2Fa%20b.parquet"],
)  # fmt: skip
def test_a_sidecar_lies_among_the_sidecars_whatever_its_path_says(path: str) -> None:
    assert resolve_sidecar_path("/t", path) == "/t/_delta_log/_sidecars/a b.parquet"


def test_a_request_in_the_name_of_a_sidecar_is_a_name() -> None:
    path = "s3://b/x?endpoint_override=127.0.0.1:9&scheme=http"
    assert resolve_sidecar_path("/t", path) == "/t/_delta_log/_sidecars/x?endpoint_override=127.0.0.1:9&scheme=http"


@pytest.mark.parametrize("path", ["", "/", "a/", "..", "a/..", "%2e%2e", "s3://b/."])
def test_a_sidecar_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(ProtocolError, match="no file name") as caught:
        resolve_sidecar_path("/t", path)
    assert caught.value.code == "DELTA_CORRUPT_CHECKPOINT"
