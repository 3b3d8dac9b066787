"""One plan for files that are alike, and none for files that only look so."""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.read import shared_plans
from delta_pyds.data.read.file_plan import FilePlan
from delta_pyds.data.read.reader import read
from delta_pyds.data.read.shared_plans import SharedPlans
from delta_pyds.errors import CorruptDataFileError, DeltaError
from delta_pyds.protocol.schema import DATE, LONG, STRING, StructField
from delta_pyds.tasks.scan_state import ScanFile, ScanState
from tests.support.scans import VIEW, state_of, struct, write

NESTED = struct(("x", LONG))
SCHEMA = struct(("a", NESTED), ("b", NESTED), ("s", STRING), ("d", DATE), ("p", LONG))
ROWS: dict[str, Any] = {
    "a": pa.array([{"x": 1}, {"x": 2}], pa.struct([("x", pa.int64())])),
    "b": pa.array([{"x": 10}, None], pa.struct([("x", pa.int64())])),
    "s": pa.array(["u", None]),
    "d": pa.array([dt.date(1200, 1, 1), dt.date(2026, 1, 1)]),
}
# Arrow finds the schemas of the first two equal: it compares the leaves, not what they are in
TABLES = {
    "as it is": pa.table(ROWS),
    "structs swapped": pa.table({name: ROWS[name] for name in ("b", "a", "s", "d")}),
    "other types": pa.table({**ROWS, "a": ROWS["a"].cast(pa.struct([("x", pa.int32())]))}),
    "views": pa.table({**ROWS, "s": ROWS["s"].cast(VIEW)}),
    "without a column": pa.table({name: ROWS[name] for name in ("a", "b", "d")}),
    "Julian dates": pa.table(ROWS).replace_schema_metadata(
        {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"}
    ),
    "no rows": pa.table(ROWS).slice(0, 0),
}


def read_all(state: ScanState, files: list[ScanFile], plans: SharedPlans | None) -> list[list[dict[str, Any]]]:
    return [pa.Table.from_batches(list(read(state, f, plans)), SharedPlans(state).schema).to_pylist() for f in files]


def written(folder: Path, values: tuple[str | None, ...] = ("5",)) -> dict[str, ScanFile]:
    files = {name: write(folder / f"{name}.parquet", table) for name, table in TABLES.items()}
    return {name: ScanFile(f.path, f.size_bytes, values) for name, f in files.items()}


def test_files_that_are_alike_are_planned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Counted(FilePlan):
        def __init__(self, state: ScanState, file: ScanFile, data: Any) -> None:
            made.append(file.path)
            super().__init__(state, file, data)

    monkeypatch.setattr(shared_plans, "FilePlan", Counted)
    tables = [pa.table({"x": range(n, n + 3)}) for n in range(5)]
    files = [write(tmp_path / f"{n}.parquet", table) for n, table in enumerate(tables)]
    state = state_of(tmp_path, struct(("x", LONG)))

    assert read_all(state, files, SharedPlans(state)) == [table.to_pylist() for table in tables]
    assert made == [files[0].path]


def test_rows_are_those_of_a_plan_of_their_own_whatever_came_before(tmp_path: Path) -> None:
    state = state_of(tmp_path, SCHEMA, partition_columns=("p",))
    files = [*written(tmp_path).values()]
    files.append(ScanFile(files[0].path, files[0].size_bytes, ("6",)))
    files.append(ScanFile(files[0].path, files[0].size_bytes, (None,)))
    alone = dict(zip(files, (rows for [rows] in (read_all(state, [f], None) for f in files)), strict=True))
    assert len({str(rows) for rows in alone.values()}) >= 6

    plans = SharedPlans(state)
    for pair in itertools.product(files, repeat=2):
        assert read_all(state, list(pair), plans) == [alone[file] for file in pair]


def test_an_error_names_its_own_file(tmp_path: Path) -> None:
    state = state_of(tmp_path, struct(StructField("x", LONG, False)))
    good = write(tmp_path / "good.parquet", pa.table({"x": [1, 2]}))
    bad = write(tmp_path / "bad.parquet", pa.table({"x": pa.array([1, None], pa.int64())}))
    plans = SharedPlans(state)
    assert read_all(state, [good], plans) == [[{"x": 1}, {"x": 2}]]

    with pytest.raises(DeltaError) as shared:
        read_all(state, [bad], plans)
    with pytest.raises(DeltaError) as own:
        read_all(state, [bad], None)
    assert str(shared.value) == str(own.value)
    assert "bad.parquet" in str(own.value) and "good.parquet" not in str(shared.value)


def test_a_damaged_name_is_noticed_in_every_file_that_lacks_a_column(tmp_path: Path) -> None:
    state = state_of(tmp_path, struct(("there", LONG), ("missing", LONG)))
    table = pa.table({"there": [1, 2]})
    good = write(tmp_path / "good.parquet", table, store_schema=False)
    content = Path(good.path).read_bytes()
    at = content.rindex(b"there")  # in the row group; the schema names it before
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(content[:at] + b"these" + content[at + 5 :])
    assert pq.read_schema(bad).names == ["there"]
    plans = SharedPlans(state)
    assert read_all(state, [good, good], plans) == [[{"there": n, "missing": None} for n in (1, 2)]] * 2

    with pytest.raises(CorruptDataFileError, match=r"bad\.parquet"):
        read_all(state, [ScanFile(str(bad), good.size_bytes)], plans)


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"x": [1, 2], "s": ["u", None]}),
        pa.table({"s": ["u", None], "x": [1, 2]}),
        pa.table({"more": [0, 0], "x": [1, 2], "s": ["u", None]}),
        pa.table({"x": pa.array([1, 2], pa.int32()), "s": ["u", None]}),
        pa.table({"x": [1, 2], "s": pa.array(["u", None], VIEW)}),
        pa.table({"x": [1, 2], "s": pa.array(["u", None]).dictionary_encode()}),
        pa.table(
            [pa.array([1, 2]), pa.array(["u", None])],
            schema=pa.schema(
                [
                    pa.field("x", pa.int64(), nullable=False),
                    pa.field("s", pa.string(), metadata={"PARQUET:field_id": "2"}),
                ]
            ),
        ),
    ],
    ids=["alike", "swapped", "more", "narrow", "views", "dictionary", "other fields"],
)
def test_every_batch_has_exactly_the_schema_of_the_scan(tmp_path: Path, table: pa.Table) -> None:
    state = state_of(tmp_path, struct(("x", LONG), ("s", STRING)))
    plans = SharedPlans(state)
    files = [write(tmp_path / f"{n}.parquet", table) for n in range(2)]
    for batch in (batch for file in files for batch in read(state, file, plans)):
        assert batch.schema.equals(plans.schema, check_metadata=True)
        assert batch.to_pydict() == {"x": [1, 2], "s": ["u", None]}
