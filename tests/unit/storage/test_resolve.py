"""Paths as users write them, and the storage that they lead to."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import fsspec
import pytest

from delta_pyds.errors import StorageError
from delta_pyds.storage.fsspec_store import FsspecStorage, open_filesystem
from delta_pyds.storage.local import LocalStorage, local_path
from delta_pyds.storage.resolve import normalize_table_root, resolve_storage, scheme_of


@pytest.mark.parametrize(
    ("written", "root"),
    [
        ("/a/b", "/a/b"),
        ("/a/b///", "/a/b"),
        ("//a//b", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/", "/"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:/a", "/a"),
        ("/a%20b/ü", "/a%20b/ü"),
        ("file:///a%20b", "/a%20b"),
        ("/with space", "/with space"),
        ("s3://bucket/t/", "s3://bucket/t"),
        ("s3a://bucket/t", "s3://bucket/t"),
        ("s3n://bucket/a%20b", "s3://bucket/a%20b"),
        ("S3://Bucket/T", "s3://Bucket/T"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("abfss://c@acc.dfs.core.windows.net/t/", "abfss://c@acc.dfs.core.windows.net/t"),
        ("memory://t", "memory://t"),
        ("memory:/t", "memory://t"),
    ],
)
def test_a_table_has_one_spelling(written: str, root: str) -> None:
    assert normalize_table_root(written) == root
    assert normalize_table_root(root) == root


def test_relative_paths_are_below_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_table_root("t/u") == f"{os.getcwd()}/t/u"
    assert normalize_table_root("t", "/base") == "/base/t"
    assert normalize_table_root("./a:b", "/base") == "/base/a:b"
    assert normalize_table_root("/abs", "/base") == "/abs"


@pytest.mark.parametrize("path", ["", "  "])
def test_an_empty_path_is_refused(path: str) -> None:
    with pytest.raises(StorageError, match="path is empty"):
        normalize_table_root(path)


def test_a_file_on_another_host_is_refused() -> None:
    with pytest.raises(StorageError, match="host 'server'"):
        normalize_table_root("file://server/share/t")


def test_local_paths_are_otherwise_untouched() -> None:
    assert [local_path(p) for p in ("/a b", "rel", "files:/x", "/file:/x")] == ["/a b", "rel", "files:/x", "/file:/x"]


def test_scheme_of_a_path() -> None:
    assert [scheme_of(p) for p in ("/a", "file:/a", "s3a://b", "GCS://b", "a:b")] == [
        "file",
        "file",
        "s3",
        "gs",
        "file",
    ]


def test_a_storage_is_opened_once_per_scheme_and_options() -> None:
    assert isinstance(resolve_storage("/a"), LocalStorage)
    assert resolve_storage("/a") is resolve_storage("file:///b", {"ignored": 1})
    first = resolve_storage("memory://a")
    assert isinstance(first, FsspecStorage)
    assert resolve_storage("memory://a/b") is first
    assert resolve_storage("memory://a", {"some": "option"}) is not first


def test_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(StorageError, match=r"'gopher'.*Supported are: file, s3, gs,.*abfss"):
        resolve_storage("gopher://x/t")


@pytest.mark.parametrize(
    ("scheme", "extra", "module"), [("s3", "s3", "s3fs"), ("gs", "gcs", "gcsfs"), ("abfss", "azure", "adlfs")]
)
def test_a_missing_package_is_named_with_its_extra(
    scheme: str, extra: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_installed(protocol: str) -> None:
        raise ImportError(f"Install {module} to access {protocol}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", not_installed)
    with pytest.raises(StorageError, match=rf"pip install 'delta-pyds\[{extra}\]'"):
        open_filesystem(scheme, f"{scheme}://bucket/t", {})


def test_options_reach_the_file_system_in_their_case() -> None:
    filesystem = open_filesystem("memory", "memory://t", {"camelCase": 1, "snake_case": "x"})
    assert filesystem.storage_options == {"camelCase": 1, "snake_case": "x"}


def test_options_that_the_file_system_refuses_are_named() -> None:
    class Picky(fsspec.AbstractFileSystem):
        protocol = "picky"

        def __init__(self, *, known: int = 0) -> None:
            super().__init__(known=known)

    fsspec.register_implementation("picky", Picky, clobber=True)
    with pytest.raises(StorageError, match=r"options \['wrong'\]"):
        open_filesystem("picky", "picky://t", {"wrong": 1})


def test_storages_with_credentials_of_long_ago_are_not_kept() -> None:
    """A stream that is given others each hour would hold the connections of all of them."""
    opened = [resolve_storage("memory://t", {"token": f"token-{n}"}) for n in range(200)]
    assert resolve_storage("memory://t", {"token": "token-199"}) is opened[-1]
    left = [weakref.ref(storage._filesystem) for storage in opened if isinstance(storage, FsspecStorage)]
    assert len(left) == 200
    opened.clear()
    gc.collect()
    assert sum(one() is not None for one in left) <= 64
