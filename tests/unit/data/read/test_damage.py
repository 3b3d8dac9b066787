"""Files that are not what the log promises: an error that names the file, never rows."""

from __future__ import annotations

import dataclasses
import io
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.read import shared_plans
from delta_pyds.data.read.data_file import DataFile, NamedErrors
from delta_pyds.data.read.reader import read
from delta_pyds.errors import (
    CorruptDataFileError,
    DeltaError,
    FileNotFoundInStorageError,
    StorageError,
    UnsupportedFeatureError,
)
from delta_pyds.protocol.schema import LONG, STRING, StructField
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.scans import scan, state_of, struct, write

SCHEMA = struct(("a", LONG), ("s", STRING))
TABLE = pa.table({"a": list(range(500)), "s": [str(i) * 5 for i in range(500)]})


def _failing(tmp_path: Path, file: ScanFile) -> DeltaError:
    with pytest.raises(DeltaError) as caught:
        scan(state_of(tmp_path, SCHEMA), file)
    assert file.path in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return caught.value


def test_missing_file_names_table_and_file_and_says_what_to_do(tmp_path: Path) -> None:
    error = _failing(tmp_path, ScanFile(str(tmp_path / "part-9.parquet"), 100))
    assert isinstance(error, FileNotFoundInStorageError)
    assert error.code == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert f"'{tmp_path}'" in str(error) and "VACUUM" in str(error) and "FSCK" in str(error)


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1PAR1", b"not a Parquet file at all, really", b"PAR1" + b"\xff" * 50 + b"PAR1"]
)
def test_what_is_no_parquet_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    for size in (len(content), 0):
        assert isinstance(_failing(tmp_path, ScanFile(str(tmp_path / "f"), size)), CorruptDataFileError)


def test_file_of_another_size_than_the_log_promises(tmp_path: Path) -> None:
    file = write(tmp_path / "f", TABLE)
    for size in (file.size_bytes - 1, file.size_bytes + 1):
        error = _failing(tmp_path, dataclasses.replace(file, size_bytes=size))
        assert isinstance(error, CorruptDataFileError)
        assert str(size) in str(error) and str(file.size_bytes) in str(error)


def test_truncated_file_even_when_the_size_is_not_known(tmp_path: Path) -> None:
    content = Path(write(tmp_path / "f", TABLE).path).read_bytes()
    for length in (10, len(content) // 2, len(content) - 1):
        (tmp_path / "f").write_bytes(content[:length])
        assert isinstance(_failing(tmp_path, ScanFile(str(tmp_path / "f"), 0)), CorruptDataFileError)


def test_damaged_bytes_never_escape_as_another_error(tmp_path: Path) -> None:
    file = write(tmp_path / "f", TABLE, compression="zstd", row_group_size=100)
    content = Path(file.path).read_bytes()
    random = Random(5)
    failed = 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[random.randrange(4, len(content))] ^= 1 << random.randrange(8)
        Path(file.path).write_bytes(damaged)
        try:
            for batch in read(state_of(tmp_path, SCHEMA), file):
                assert batch.num_rows
        except DeltaError as e:
            failed += 1
            assert file.path in str(e)
    # bytes without a checksum may decode as other values
    assert failed > 50


def test_encrypted_file_is_refused(tmp_path: Path) -> None:
    # the magic number of a file with an encrypted footer
    (tmp_path / "f").write_bytes(b"PARE" + bytes(100) + (50).to_bytes(4, "little") + b"PARE")
    error = _failing(tmp_path, ScanFile(str(tmp_path / "f"), 112))
    assert isinstance(error, UnsupportedFeatureError)
    assert error.parameters["feature"] == "parquetEncryption"


def test_null_in_a_not_null_column_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "f", pa.table({"a": [1, None]}))
    with pytest.raises(CorruptDataFileError, match="'a'"):
        scan(state_of(tmp_path, struct(StructField("a", LONG, nullable=False))), file)
    kept = write(tmp_path / "g", pa.table({"a": [1, 2]}))
    assert scan(state_of(tmp_path, struct(StructField("a", LONG, nullable=False))), kept).num_rows == 2


def test_errors_of_the_disk_keep_their_reason() -> None:
    with pytest.raises(StorageError, match=r"part-1.*I/O"), NamedErrors("table", "part-1"):
        raise OSError(5, "I/O error")


class _Remote(LocalStorage):
    """Files as binary streams, as object stores give them."""

    def __init__(self) -> None:
        self.opened: list[Any] = []

    def parquet_source(self, path: str) -> Any:
        self.opened.append(io.BytesIO(self.read(path)))
        return self.opened[-1]


def test_streams_are_read_like_local_files_and_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = _Remote()
    monkeypatch.setattr(shared_plans, "resolve_storage", lambda *_: remote)
    file = write(tmp_path / "f", TABLE, row_group_size=100)
    assert scan(state_of(tmp_path, SCHEMA), file).equals(TABLE)
    (tmp_path / "g").write_bytes(b"nonsense")
    for path in ("g", "missing"):
        _failing(tmp_path, ScanFile(str(tmp_path / path), 8))
    assert len(remote.opened) == 2 and all(stream.closed for stream in remote.opened)


class _ShortReader:
    """A decoder that gives one row less than the footer says."""

    def iter_batches(self, *_: Any, **__: Any) -> Any:
        return iter(TABLE.slice(0, 499).to_batches())


class _ShortFile:
    def __init__(self, parquet: pq.ParquetFile) -> None:
        self.metadata = parquet.metadata
        self.reader = _ShortReader()


def test_footer_that_promises_other_rows_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "f", TABLE)
    with pq.ParquetFile(file.path) as parquet:
        data = DataFile(_ShortFile(parquet), file.path, str(tmp_path))
        with pytest.raises(CorruptDataFileError, match="row groups have 1 fewer rows"):
            list(data.decode([0], [0, 1], 100))
