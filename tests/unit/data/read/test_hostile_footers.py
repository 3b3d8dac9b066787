"""Footers that contradict themselves: no byte of them ends the process, and what is refused names the file."""

from __future__ import annotations

import io
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.parquet_footer import ParquetFooter, open_parquet
from delta_pyds.data.read.data_file import NamedErrors
from delta_pyds.errors import CorruptDataFileError, DeltaError
from delta_pyds.protocol.schema import LONG, STRING, StructField, StructType
from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.parquet_footers import (
    I64,
    LIST,
    MAX_VALUE,
    META_DATA,
    MIN_VALUE,
    NULL_COUNT,
    NUM_VALUES,
    ROW_GROUPS,
    SCHEMA,
    STATISTICS,
    STRUCT,
    Struct,
    chunks,
    read_footer,
    with_footer,
    with_page_size,
)
from tests.support.scans import scan, state_of, struct, write


# every bit of the last bytes, where the orders of the columns are: a union without a field ended the process
@pytest.mark.parametrize(("how", "count"), [("footers", 250), ("ends", 8 * 60)])
@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["data", "checkpoint"])
def test_no_footer_ends_the_process(tmp_path: Path, kind: str, how: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.footer_process", str(tmp_path), kind, how, str(count)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"ended by {done.returncode} at: {lines[-1:]}\n{done.stderr[-2000:]}"
    outcomes = Counter(line.split(" ", 1)[1] for line in lines)
    assert sum(outcomes.values()) == count
    damaged = "CorruptDataFileError" if kind == "data" else "CorruptLogError"
    allowed = {"ok", damaged, "SchemaMismatchError", "UnsupportedFeatureError"}
    assert set(outcomes) <= allowed, outcomes
    assert outcomes["ok"] > count // 10 and outcomes[damaged] > count // 10


def test_what_arrow_says_of_its_own_files_is_what_is_read(tmp_path: Path) -> None:
    """Every fact that Arrow gives of a sound footer, of all types and with nulls."""
    table = pa.table(
        {
            "i": pa.array([1, None, 3, -5], pa.int32()),
            "l": pa.array([2**40, 1, None, None], pa.int64()),
            "f": pa.array([0.5, -2.0, None, 7.0], pa.float32()),
            "d": pa.array([0.5, -2.0, None, 7.0]),
            "b": pa.array([True, None, False, True]),
            "s": ["x" * 300, "é", None, ""],
            "n": pa.nulls(4, pa.int64()),
            "m": pa.array([[("k", 1)], None, [], [("a", None)]], pa.map_(pa.string(), pa.int32())),
            "st": pa.array([{"x": {"y": 1}}] * 4),
        }
    )
    path = tmp_path / "f"
    pq.write_table(table, path, row_group_size=2, compression={"i": "zstd", "l": "none", "f": "gzip"})
    source = pa.OSFile(str(path))
    metadata = open_parquet(source).metadata
    footer = ParquetFooter(metadata, source)
    codecs = {"LZ4": "LZ4_RAW"}
    for group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            told, found = metadata.row_group(group).column(leaf), footer.chunk(group, leaf)
            statistics = told.statistics
            assert found.physical_type == told.physical_type
            assert found.codec == codecs.get(told.compression, told.compression)
            assert found.num_values == told.num_values
            assert found.uncompressed_bytes == told.total_uncompressed_size
            assert found.compressed_bytes == told.total_compressed_size
            assert found.first_byte == min(told.dictionary_page_offset or told.data_page_offset, told.data_page_offset)
            assert found.null_count == statistics.null_count
            bounds = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
            assert (found.minimum, found.maximum) == bounds
    footer.check_names()


@pytest.mark.parametrize("leaf", ["id", "st", "x"])
def test_a_column_whose_name_was_damaged_is_not_a_column_that_is_missing(tmp_path: Path, leaf: str) -> None:
    table = pa.table({"id": [1, 2], "st": pa.array([{"x": "a"}] * 2), "s": ["b", "c"]})
    columns = struct(("id", LONG), ("st", StructType((StructField("x", STRING),))), ("s", STRING))
    file = write(tmp_path / "f", table)
    content = Path(file.path).read_bytes()
    footer = read_footer(content)
    element = next(e for e in footer[SCHEMA][1][1] if e[4][1] == leaf.encode())
    element[4][1] = bytes([element[4][1][0] ^ 2]) + element[4][1][1:]
    Path(file.path).write_bytes(with_footer(content, footer))
    changed = ScanFile(file.path, Path(file.path).stat().st_size)
    with pytest.raises(CorruptDataFileError, match=leaf):
        scan(state_of(tmp_path, columns), changed)
    # a column that no footer has is missing
    Path(file.path).write_bytes(content)
    more = struct(*((f.name, f.data_type) for f in columns), ("new", LONG))
    assert scan(state_of(tmp_path, more), file).column("new").to_pylist() == [None, None]


def _with_statistics(content: bytes, change: Callable[[Struct], None]) -> tuple[pq.FileMetaData, ParquetFooter]:
    """The file's footer with other statistics of its first column chunk."""
    footer = read_footer(content)
    change(next(chunks(footer))[META_DATA][1])
    source = pa.BufferReader(with_footer(content, footer))
    metadata = open_parquet(source).metadata
    return metadata, ParquetFooter(metadata, source)


def _swapped(column: Struct) -> None:
    statistics = column[STATISTICS][1]
    statistics[MIN_VALUE], statistics[MAX_VALUE] = statistics[MAX_VALUE], statistics[MIN_VALUE]


def _content(values: pa.Array) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"c": values}), file)
    return file.getvalue()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-5, 3]),
        pa.array([-(2**31), 7], pa.int32()),
        pa.array([-1.5, 2.5]),
        pa.array([-0.5, 1.0], pa.float32()),
        pa.array([False, True]),
        pa.array(["text 1", "text 2"]),
        # bytes compare as unsigned ones
        pa.array([b"\x01", b"\xff"]),
        pa.array(["z", "é"]),
        pa.array([1, 2], pa.date32()),
        pa.array([-1, 1], pa.timestamp("us", "UTC")),
    ],
    ids=lambda values: str(values.type),
)
def test_bounds_of_which_the_minimum_is_the_greater_one_are_unknown(values: pa.Array) -> None:
    content = _content(values)
    _, sound = _with_statistics(content, lambda _: None)
    assert sound.chunk(0, 0).minimum is not None
    _, damaged = _with_statistics(content, _swapped)
    assert (damaged.chunk(0, 0).minimum, damaged.chunk(0, 0).maximum) == (None, None)
    assert damaged.chunk(0, 0).null_count == 0


@pytest.mark.parametrize("precision", [9, 30])
def test_bounds_of_decimals_are_unknown_where_they_are_bytes(precision: int) -> None:
    values = pa.array([Decimal("-1.25"), Decimal("2.50")], pa.decimal128(precision, 2))
    for change in (lambda _: None, _swapped):
        _, footer = _with_statistics(_content(values), change)
        assert (footer.chunk(0, 0).minimum, footer.chunk(0, 0).maximum) == (None, None)


def test_bounds_that_are_equal_are_bounds() -> None:
    for values in (pa.array([7, 7]), pa.array([-0.0, 0.0]), pa.array([0.0, -0.0]), pa.array(["", ""])):
        _, footer = _with_statistics(_content(values), _swapped)
        assert footer.chunk(0, 0).minimum is not None


def test_nulls_alone_have_no_bounds() -> None:
    """A number of nulls that says so beside bounds hides rows, in a checkpoint files."""
    _, footer = _with_statistics(
        _content(pa.array([1, None, 3])), lambda column: column[STATISTICS][1].__setitem__(NULL_COUNT, [I64, 3])
    )
    assert (footer.chunk(0, 0).null_count, footer.chunk(0, 0).minimum) == (None, 1)


@pytest.mark.parametrize("damage", ["none", "swapped", "nulls alone"])
def test_what_contradicts_itself_is_not_given_to_sparks_reader(tmp_path: Path, damage: str) -> None:
    """It would skip the rows."""
    content = _content(pa.array([1, None, 3]))
    footer = read_footer(content)
    column = next(chunks(footer))[META_DATA][1]
    if damage == "swapped":
        _swapped(column)
    elif damage == "nulls alone":
        column[STATISTICS][1][NULL_COUNT] = [I64, 3]
    path = tmp_path / "f.parquet"
    path.write_bytes(with_footer(content, footer))
    state, file = state_of(tmp_path, struct(("c", LONG))), ScanFile(str(path), path.stat().st_size)
    reason = first_foreign_to_spark(LocalStorage(), state, [file])
    assert reason is None if damage == "none" else "statistics that contradict each other" in str(reason)
    assert scan(state, file).column("c").to_pylist() == [1, None, 3]


def test_a_column_has_as_many_values_as_its_row_group_has_rows() -> None:
    _, footer = _with_statistics(_content(pa.array([1, None, 3])), lambda column: column[NUM_VALUES].__setitem__(1, 2))
    with pytest.raises(pa.ArrowInvalid, match="2 values of column 0 in row group 0, but 3 rows"):
        footer.chunk(0, 0)


def test_a_row_group_that_is_told_twice_is_understood_as_arrow_does() -> None:
    """The last of two fields of one number counts; what Arrow and we do not read alike is refused."""
    content = _content(pa.array([1, 2, 3]))
    footer = read_footer(content)
    tail = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    body = content[: -8 - len(tail)]
    # a second list of row groups: none
    twice = tail[:-1] + bytes([LIST, ROW_GROUPS << 1, STRUCT]) + b"\0"
    source = pa.BufferReader(body + twice + len(twice).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pa.ArrowInvalid, match="3 rows, but its row groups have 0"):
        open_parquet(source)
    assert len(footer[ROW_GROUPS][1][1]) == 1


def test_memory_of_a_footer_is_a_file_object_as_well() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), file)
    assert open_parquet(pa.BufferReader(file.getvalue())).read().num_rows == 1
    with pytest.raises(pa.ArrowInvalid):
        open_parquet(pa.BufferReader(b"PAR1" * 5))


_READ_WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from delta_pyds.data.read.reader import read
from delta_pyds.errors import StorageError
from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile
from delta_pyds.protocol.schema import LONG
from tests.support.scans import state_of, struct

path = Path(sys.argv[1])
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
try:
    list(read(state_of(path.parent, struct(("id", LONG))), ScanFile(str(path), path.stat().st_size)))
except StorageError as e:
    print(e)
"""


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_a_page_that_claims_two_gigabytes_is_an_error_that_names_the_file(tmp_path: Path, codec: str) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(1_000))}), file, compression=codec, use_dictionary=False)
    path = tmp_path / "hostile.parquet"
    path.write_bytes(with_page_size(file.getvalue(), 2**31 - 1))
    done = subprocess.run(
        [sys.executable, "-c", _READ_WITH_LITTLE_MEMORY, str(path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert "DELTA_OUT_OF_MEMORY" in done.stdout and str(path) in done.stdout


@pytest.mark.parametrize(
    "raised", [MemoryError(), OverflowError("too large"), pa.ArrowCapacityError("array too large")]
)
def test_what_python_and_arrow_raise_of_sizes_names_the_file(raised: Exception) -> None:
    with pytest.raises(DeltaError, match="the file") as error, NamedErrors("the table", "the file"):
        raise raised
    assert "restore" in error.value.message
