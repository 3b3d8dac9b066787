from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt
import pytest

from delta_pyds.data.read.data_file import open_data_file
from delta_pyds.data.read.dictionaries import checked_pieces, dictionary_columns
from delta_pyds.data.read.reader import read
from delta_pyds.errors import CorruptDataFileError
from delta_pyds.expr.parse import parse_predicate
from delta_pyds.protocol.schema import BINARY, LONG, STRING
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from tests.support.scans import scan, state_of, struct, write

ROWS = 40_000
SCHEMA = struct(("id", LONG), ("few", STRING), ("bytes", BINARY), ("many", STRING), ("a.b", STRING))


def _table() -> pa.Table:
    few = [None if i % 7 == 0 else f"value {i % 5}" for i in range(ROWS)]
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "few": pa.array(few, pa.string()),
            "bytes": pa.array([None if v is None else v.encode() for v in few], pa.binary()),
            "many": pa.array([f"row {i}" for i in range(ROWS)], pa.string()),
            "a.b": pa.array(few, pa.string()),
        }
    )


def _names(state: ScanState, file: ScanFile) -> tuple[str, ...]:
    with open_data_file(lambda: LocalStorage().parquet_source(file.path), state, file) as data:
        groups = range(data.metadata.num_row_groups)
        return dictionary_columns(data.columns, data.metadata, data.footer, groups, range(data.metadata.num_columns))


@pytest.mark.parametrize("predicate", [None, "id % 100 = 7", "few = 'value 3'", "few IS NULL AND id > 20000"])
def test_text_of_dictionaries_is_the_text(tmp_path: Path, predicate: str | None) -> None:
    table = _table()
    # dictionaries end with row groups; the last row group of the other file is too small for any
    file = write(tmp_path / "f.parquet", table, row_group_size=ROWS // 2)
    other = write(tmp_path / "g.parquet", table, row_group_size=ROWS - 10)
    bound = None if predicate is None else parse_predicate(predicate, SCHEMA, time_zone="UTC").expr
    state = state_of(tmp_path, SCHEMA, predicate=bound, batch_rows=1 << 15)
    assert _names(state, file) == ("few", "bytes")
    assert _names(state, other) == ()
    few, number = table.column("few"), pa.array(range(ROWS))
    wanted = {
        None: table,
        "id % 100 = 7": table.take(pa.array(range(7, ROWS, 100))),
        "few = 'value 3'": table.filter(pc.equal(few, "value 3")),
        "few IS NULL AND id > 20000": table.filter(pc.and_(pc.is_null(few), pc.greater(number, 20_000))),
    }[predicate]
    for one in (file, other):
        assert scan(state, one).cast(wanted.schema).equals(wanted)


def test_row_groups_without_a_dictionary_are_read_plain(tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", _table(), use_dictionary=["few"])
    state = state_of(tmp_path, SCHEMA)
    assert _names(state, file) == ("few",)
    assert scan(state, file).column("bytes").to_pylist() == _table().column("bytes").to_pylist()


def test_text_that_other_encodings_hold_is_read_plain(tmp_path: Path) -> None:
    encodings = dict.fromkeys(("few", "bytes", "many", "a.b"), "DELTA_BYTE_ARRAY")
    options = {"use_dictionary": False, "column_encoding": encodings}
    file = write(tmp_path / "f.parquet", _table(), **options)
    state = state_of(tmp_path, SCHEMA)
    assert _names(state, file) == ()
    assert scan(state, file).cast(_table().schema).equals(_table())


def test_a_value_that_names_no_entry_is_an_error(tmp_path: Path) -> None:
    texts = [("a", "b", "c")[i % 3] for i in range(ROWS)]
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"s": texts}), path, compression="none", write_statistics=False)
    content = bytearray(path.read_bytes())
    # 0, 1, 2, and so on, in two bits each
    content[content.rindex(bytes.fromhex("244992") * 2) + 3] = 0xFF
    path.write_bytes(content)
    schema = struct(("s", STRING))
    state, file = state_of(tmp_path, schema), ScanFile(str(path), len(content))
    assert _names(state, file) == ("s",)
    with pytest.raises(CorruptDataFileError, match="the dictionary index 3 exceeds the 3 entries"):
        list(read(state, file))


def test_long_text_comes_in_short_batches() -> None:
    wide = pa.array(["x" * (1 << 20), "y"])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1] * 100, pa.int32()), wide)
    batch = pa.RecordBatch.from_arrays([pa.array(range(400)), column], names=["id", "s"])
    pieces = list(checked_pieces(batch, ["s"]))
    assert [piece.num_rows for piece in pieces] == [64] * 6 + [16]
    assert pa.Table.from_batches(pieces).column("id").to_pylist() == list(range(400))
    assert all(pt.is_dictionary(piece.column("s").type) for piece in pieces)
