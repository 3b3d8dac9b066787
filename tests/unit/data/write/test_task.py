from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.data.write.task import TaskSession, write
from delta_pyds.errors import ConstraintViolationError, OptionError
from delta_pyds.expr.nodes import Literal
from delta_pyds.protocol.schema import LONG
from delta_pyds.tasks.write_state import Check, ColumnSource, IdentityColumn, WriteState
from tests.support.write_states import batch, column, expression, given, greater, state_of


def at(path: Path, columns: Any, *checks: Check, **more: Any) -> WriteState:
    state = state_of(columns, checks, **more)
    return WriteState(**{**vars(state), "table_root": str(path)})


def data_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet"))


def test_the_rows_of_a_task_are_in_the_files_that_it_names(tmp_path: Path) -> None:
    columns = [*given(column("a")), ColumnSource(column("id"), "identity", identity=IdentityColumn(1, 1, None, False))]
    batches = (batch({"A": list(range(i, i + 10))}, {"A": pa.int32()}) for i in range(0, 50, 10))
    output = write(at(tmp_path, columns), batches, TaskSession(0))
    assert [tmp_path / f.path for f in output.files] == data_files(tmp_path)
    table = pa.concat_tables(pq.read_table(tmp_path / f.path) for f in output.files)
    assert table.to_pydict() == {"a": list(range(50)), "id": list(range(1, 51))}
    assert sum(f.num_records for f in output.files) == 50
    assert output.identity_marks == {"id": 50}


@pytest.mark.parametrize("batches", [[], [batch({"a": []})]])
def test_a_task_without_rows_writes_nothing(tmp_path: Path, batches: list[pa.RecordBatch]) -> None:
    output = write(at(tmp_path, given(column("a"))), batches, TaskSession(3))
    assert (output.files, output.identity_marks, data_files(tmp_path)) == ((), {}, [])


def test_a_row_that_breaks_a_rule_leaves_no_file(tmp_path: Path) -> None:
    state = at(
        tmp_path,
        given(column("a")),
        Check("check", "positive", greater("a", 0)),
        max_records_per_file=5,
        target_file_bytes=64,
    )
    batches = [batch({"a": list(range(1, 50))}), batch({"a": [5, 0]})]
    assert data_files_while_writing(state, batches, tmp_path) > 0
    assert data_files(tmp_path) == []


def data_files_while_writing(state: WriteState, batches: list[pa.RecordBatch], path: Path) -> int:
    """The number of files just before the last batch, which is refused."""
    seen = [0]

    def watched() -> Iterator[pa.RecordBatch]:
        yield from batches[:-1]
        seen[0] = len(data_files(path))
        yield batches[-1]

    with pytest.raises(ConstraintViolationError, match="'positive'"):
        write(state, watched(), TaskSession(0))
    return seen[0]


@pytest.mark.parametrize("error", [RuntimeError("the upstream died"), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_stops_the_rows_leaves_no_file_and_goes_up(tmp_path: Path, error: BaseException) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield batch({"a": list(range(100))})
        raise error

    state = at(tmp_path, given(column("a")), max_records_per_file=5, target_file_bytes=64)
    with pytest.raises(type(error)) as e:
        write(state, rows(), TaskSession(0))
    assert e.value is error
    assert data_files(tmp_path) == []


def test_files_that_cannot_be_deleted_do_not_hide_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(writer: object) -> None:
        raise OSError(f"the disk of {writer} is gone")

    monkeypatch.setattr("delta_pyds.data.write.writer.DataFileWriter.discard", broken)
    state = at(tmp_path, given(column("a")), Check("check", "positive", greater("a", 0)))
    with pytest.raises(ConstraintViolationError, match="'positive'"):
        write(state, [batch({"a": [0]})], TaskSession(0))


def zoned(path: Path, kind: str) -> WriteState:
    made = expression(greater("a", 0).ansi, "a > 0", uses_time_zone=True)
    if kind == "check":
        return at(path, given(column("a")), Check("check", "c", made), time_zone="Europe/Berlin")
    default = expression(Literal(1, LONG), "1", uses_time_zone=True)
    columns = [*given(column("a")), ColumnSource(column("d"), "default", expression=default)]
    return at(path, columns, time_zone="Europe/Berlin")


@pytest.mark.parametrize("kind", ["check", "default"])
def test_another_time_zone_than_planned_is_refused_where_an_expression_depends_on_it(tmp_path: Path, kind: str) -> None:
    with pytest.raises(OptionError, match=r'add \.option\("timeZone", "Asia/Tokyo"\)'):
        write(zoned(tmp_path, kind), [batch({"a": [1]})], TaskSession(0, time_zone="Asia/Tokyo"))
    assert data_files(tmp_path) == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_the_planned_time_zone_or_an_unknown_one_is_fine(tmp_path: Path, zone: str | None) -> None:
    assert write(zoned(tmp_path, "check"), [batch({"a": [1]})], TaskSession(0, time_zone=zone)).files


def test_a_time_zone_that_no_expression_depends_on_does_not_matter(tmp_path: Path) -> None:
    state = at(tmp_path, given(column("a")), Check("check", "c", greater("a", 0)), time_zone="Europe/Berlin")
    assert write(state, [batch({"a": [1]})], TaskSession(0, time_zone="Asia/Tokyo")).files


def test_zones_of_one_meaning_are_one_zone(tmp_path: Path) -> None:
    state = zoned(tmp_path, "check")
    state = WriteState(**{**vars(state), "time_zone": "UTC"})
    assert write(state, [batch({"a": [1]})], TaskSession(0, time_zone="Etc/UTC")).files
