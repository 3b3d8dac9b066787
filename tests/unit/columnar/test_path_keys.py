"""The keys of paths, of one and of a column of them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from delta_pyds.columnar.path_keys import KnownPaths, path_keys
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.paths import encode_path, is_absolute, path_key, resolve_data_path
from tests.support.path_spellings import DIFFERENT, SAME, SAME_BY_PROTOCOL

_PIECES = st.sampled_from(
    ["a", "b", "/", "//", ".", "..", "./", "%2F", "%41", "%25", "%", "%zz", "é", "%C3%A9", "%c3%a9", "%FF", ":", ":/",
     "file:", "s3://", "S3a://B", "file:///", "=", "&", "\n", " ", "+"]
)  # fmt: skip
_PATHS = st.lists(_PIECES, max_size=8).map("".join)


@pytest.mark.parametrize(("one", "other"), [*SAME, *SAME_BY_PROTOCOL])
def test_spellings_of_one_file_have_one_key(one: str, other: str) -> None:
    assert path_key(one) == path_key(other)
    assert path_keys(pa.array([one, other])).to_pylist() == [path_key(one)] * 2


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_files_have_two_keys(one: str, other: str) -> None:
    assert path_key(one) != path_key(other)


@pytest.mark.parametrize(
    "path", ["part-0.parquet", "p=1/q=a b/x", "a:b", "a..b/.c/d.", "p=R&D/x+y,z", "日本/x", "", "a\nb"]
)
def test_a_plain_path_is_its_own_key(path: str) -> None:
    assert path_key(path) is path
    paths = pa.array([path, None])
    assert path_keys(paths) is paths


@given(st.lists(st.none() | _PATHS, max_size=6))
@example(["s3://%41", "s3://x", "file://x", "%2F", "d%20/..", "d%20/x", "d%20/x%20", None])
def test_a_column_has_the_keys_of_its_paths(paths: list[str | None]) -> None:
    expected = [None if path is None else path_key(path) for path in paths]
    assert path_keys(pa.array(paths, pa.string())).to_pylist() == expected


@given(_PATHS)
def test_what_is_opened_is_the_file_of_the_key(path: str) -> None:
    try:
        opened = resolve_data_path("/t", path)
    except ProtocolError:
        return  # upwards
    if not is_absolute(path):
        assert opened == f"/t/{path_key(path)}"


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=20))
def test_an_encoded_path_is_the_path_again(text: str) -> None:
    segments = [part for part in text.split("/") if part not in ("", ".", "..")]
    path = "/".join(segments)
    assert path_key(encode_path(path)) == path
    assert encode_path(path).isascii()


@given(st.lists(st.none() | _PATHS, max_size=8), st.lists(_PATHS | st.just("part-0-c000.parquet"), max_size=3))
@example([f"b%41{'c' * n}" for n in range(29, 34)], [f"bA{'c' * n}" for n in range(29, 34)])
@example(["s3://b", "s3://b/", "x"], ["s3://b"])
@example(["d/x/", "d/x/.", "d/x", "d/y/../x"], ["d/x"])
@example(["a/a%2F.", "a/a/b%2F..", "a/a%2F"], ["a/a"])
def test_files_are_found_by_their_keys(paths: list[str | None], known: list[str]) -> None:
    keys = {path_key(path) for path in known}
    places = KnownPaths(keys).positions(pa.array(paths, pa.string())).to_pylist()
    assert places == [i for i, path in enumerate(paths) if path is not None and path_key(path) in keys]


@given(st.integers(1, 50), st.sampled_from(["", "d/", "d%2F", "é%41/"]), st.sampled_from(["%41", "%C3%A9", "é", "A"]))
def test_an_escape_anywhere_in_a_name_is_found(length: int, directory: str, odd: str) -> None:
    name = "abcdefghij" * 5
    paths = [f"{directory}{name[:at]}{odd}{name[at:length]}" for at in range(length + 1)]
    keys = {path_key(path) for path in paths}
    assert KnownPaths(keys).positions(pa.array(paths)).to_pylist() == list(range(len(paths)))
    assert KnownPaths(dict.fromkeys(keys)).positions(pa.array(["d/other", None])).to_pylist() == []
