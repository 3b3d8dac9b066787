"""Checkpoints of other shapes than Spark writes: read right, or refused by name; never a table without its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.errors import CorruptLogError
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    built = TableBuilder(tmp_path / "t", {"id": "long", "p": "string"}, partition_columns=["p"])
    built.create()
    for i in range(3):
        built.append([{"id": i, "p": f"x{i}"}])
    return built


def reshape(table: TableBuilder, change: Callable[[pa.StructArray], pa.Array]) -> None:
    """Replace the checkpoint's ``add`` column."""
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    add = content.column("add").combine_chunks()
    pq.write_table(content.set_column(content.column_names.index("add"), "add", change(add)), file)
    table.cleanup_log(table.version)


def paths(table: TableBuilder, where: str | None = None) -> list[str]:
    return sorted(f.path for f in plan_scan(load_snapshot(str(table.path)), where=where).files())


def fields_of(add: pa.StructArray, **changed: pa.Array | None) -> pa.StructArray:
    columns = {add.type.field(i).name: add.field(i) for i in range(add.type.num_fields)}
    columns.update(changed)
    kept = {k: v for k, v in columns.items() if v is not None}
    return pa.StructArray.from_arrays(list(kept.values()), names=list(kept), mask=add.is_null())


def expected(table: TableBuilder) -> list[str]:
    return sorted(str(table.data_file(a)) for a in table.active())


@pytest.mark.parametrize("kind", [pa.large_string(), pa.binary(), pa.large_binary()])
def test_paths_of_any_string_type_are_read_with_and_without_later_commits(
    table: TableBuilder, kind: pa.DataType
) -> None:
    reshape(table, lambda add: fields_of(add, path=add.field("path").cast(kind)))
    assert paths(table) == expected(table)
    table.commit([table.remove(table.active()[0])])
    assert paths(table) == expected(table)


def test_a_struct_of_nulls_is_no_file(table: TableBuilder) -> None:
    def without_nulls(add: pa.StructArray) -> pa.StructArray:
        return pa.StructArray.from_arrays(add.flatten(), fields=list(add.type))

    reshape(table, without_nulls)
    assert paths(table) == expected(table)
    assert len(paths(table, "p = 'x1'")) == 1


def test_a_file_without_a_size_is_read_whole(table: TableBuilder) -> None:
    reshape(table, lambda add: fields_of(add, size=None))
    assert paths(table) == expected(table)
    assert {f.size_bytes for f in plan_scan(load_snapshot(str(table.path))).files()} == {0}


@pytest.mark.parametrize(
    "change",
    [
        lambda add: add.field("path"),
        lambda add: fields_of(add, path=None),
        lambda add: fields_of(add, partitionValues=None),
        lambda add: fields_of(add, partitionValues=pa.array(["p=x"] * len(add))),
    ],
    ids=["no struct", "no path", "no partition values", "partition values of another type"],
)
def test_an_add_of_another_shape_is_refused_by_name(
    table: TableBuilder, change: Callable[[pa.StructArray], pa.Array]
) -> None:
    reshape(table, change)
    for where in (None, "p = 'x1'", "id = 1"):
        with pytest.raises(CorruptLogError, match=r"checkpoint\.parquet") as error:
            paths(table, where)
        assert error.value.code == "DELTA_CORRUPT_CHECKPOINT"


@pytest.mark.parametrize("name", ["add", "protocol", "metaData"])
def test_a_column_named_as_the_path_of_a_field_is_refused_by_name(table: TableBuilder, name: str) -> None:
    (file,) = table.checkpoint()
    content = pq.read_table(file)
    pq.write_table(content.rename_columns([f"{n}.path" if n == name else n for n in content.column_names]), file)
    table.cleanup_log(table.version)
    for where in (None, "p = 'x1'"):
        with pytest.raises(CorruptLogError, match=f"{name}.path' contains a dot"):
            paths(table, where)
