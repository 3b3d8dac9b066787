"""A write meets a directory with files of no table, or a table with properties of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.commands.write.existing_data import check_no_other_format
from delta_pyds.commands.write.request import WriteRequest
from delta_pyds.commands.write.write import plan_write
from delta_pyds.errors import DeltaError, OptionError, UserError
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.verification.verify import verify
from tests.support.memory_storage import MemoryStorage
from tests.support.table_writes import read_sorted, struct, write_rows

IDS = {"id": "long"}
DELETIONS = {"delta.enableDeletionVectors": "true"}


def request(path: Path, **properties: str) -> WriteRequest:
    return WriteRequest(str(path), struct(IDS), "append", properties=properties)


@pytest.mark.parametrize(
    "name", ["part-0.parquet", "part-00000-5f0c2a3e-7f4e-4bb0-8d27-0d1b7f0d9a10-c000.snappy.parquet"]
)
def test_a_directory_of_plain_parquet_is_left_alone(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / name)
    with pytest.raises(UserError, match=name) as error:
        write_rows(tmp_path, IDS, [{"id": 2}])
    assert error.value.code == "DELTA_MISSING_TRANSACTION_LOG"
    assert [f.name for f in tmp_path.iterdir()] == [name]
    for create_mode in ("ignore", "errorIfExists", "createIfNotExists"):
        with pytest.raises(UserError, match="another format"):
            plan_write(WriteRequest(str(tmp_path), struct(IDS), "overwrite", create_mode=create_mode))


def test_partitioned_data_that_spark_wrote_is_known_by_what_spark_left(tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "p=1" / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(UserError, match="_SUCCESS"):
        plan_write(request(tmp_path))


def test_a_file_is_no_table_and_none_is_made_of_it(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("1")
    for refused in (lambda: load_snapshot(str(file)), lambda: verify(str(file)), lambda: plan_write(request(file))):
        with pytest.raises(DeltaError, match="is a file, but a table is a directory"):
            refused()
    assert file.read_text() == "1"


def test_no_table_is_made_inside_of_the_log_of_another(tmp_path: Path) -> None:
    write_rows(tmp_path, IDS, [{"id": 1}])
    for below in ("_delta_log", "_delta_log/_sidecars"):
        with pytest.raises(UserError, match="for that table's log alone"):
            plan_write(request(tmp_path / below))
    assert verify(str(tmp_path)).ok


def test_a_table_may_be_made_beside_checkpoints_and_notes(tmp_path: Path) -> None:
    for name in ("_checkpoints/0", ".hidden.parquet", "_metadata.parquet", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    write_rows(tmp_path, IDS, [{"id": 1}])
    assert read_sorted(tmp_path, "id") == [1]


def test_files_of_a_write_that_was_not_committed_do_not_stop_the_next_one(tmp_path: Path) -> None:
    """Neither those of one that failed nor those of another writer who is still at work."""
    write_rows(tmp_path, IDS, [{"id": 1}])
    for file in (tmp_path / "_delta_log").iterdir():
        file.unlink()
    (left,) = tmp_path.glob("*.parquet")
    write_rows(tmp_path, IDS, [{"id": 2}])
    assert read_sorted(tmp_path, "id") == [2] and left.exists()


def test_a_large_directory_is_not_listed_to_its_end() -> None:
    storage = MemoryStorage()
    for i in range(1_500):
        storage.put(f"memory://t/{i:06d}.csv", b"")
    storage.put("memory://t/z.parquet", b"")
    check_no_other_format(storage, "memory://t")
    storage.put("memory://t/000000.parquet", b"")
    with pytest.raises(UserError, match=r"000000\.parquet"):
        check_no_other_format(storage, "memory://t")


def test_properties_that_the_table_has_may_be_repeated(tmp_path: Path) -> None:
    asked = {**DELETIONS, "delta.feature.rowTracking": "supported", "delta.minWriterVersion": "7"}
    plan_and_write(tmp_path, **asked)
    same = {
        "delta.enabledeletionvectors": "TRUE",
        "delta.feature.rowTracking": "supported",
        "delta.minWriterVersion": "7",
    }
    plan_write(request(tmp_path, **same))
    plan_write(request(tmp_path))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.enableDeletionVectors", "false"),
        ("delta.appendOnly", "true"),
        ("delta.constraints.small", "id < 5"),
        ("delta.feature.rowTracking", "supported"),
        ("delta.minReaderVersion", "3"),
    ],
)
def test_other_properties_for_a_table_that_is_there_are_refused(tmp_path: Path, key: str, value: str) -> None:
    plan_and_write(tmp_path, **{"delta.checkpointInterval": "5"})
    for mode in ("append", "overwrite"):
        asked = WriteRequest(
            str(tmp_path), struct(IDS), mode, properties={key: value}, overwrite_schema=mode == "overwrite"
        )
        with pytest.raises(UserError, match="leave the option out") as error:
            plan_write(asked)
        assert error.value.code == "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"
        assert error.value.parameters["property"] == key and key in error.value.message
    assert load_snapshot(str(tmp_path)).version == 0
    # a write that is not made changes nothing, and has nothing to refuse
    ignored = WriteRequest(str(tmp_path), struct(IDS), "append", properties={key: value}, create_mode="ignore")
    assert plan_write(ignored).nothing_to_do


def test_another_comment_for_a_table_that_is_there_is_refused(tmp_path: Path) -> None:
    plain, described = tmp_path / "plain", tmp_path / "described"
    write_rows(plain, IDS, [{"id": 1}])
    write_rows(described, IDS, [{"id": 1}], table_comment="ours")
    for path, comment in ((plain, "ours"), (described, "theirs"), (described, "")):
        for mode in ("append", "overwrite"):
            with pytest.raises(UserError, match="comment=") as error:
                plan_write(WriteRequest(str(path), struct(IDS), mode, table_comment=comment))
            assert error.value.parameters["property"] == "comment"
    for path, comment in ((plain, ""), (plain, None), (described, "ours"), (described, None)):
        plan_write(WriteRequest(str(path), struct(IDS), "append", table_comment=comment))


def test_a_property_that_no_table_has_is_refused_as_for_a_new_table(tmp_path: Path) -> None:
    plan_and_write(tmp_path)
    with pytest.raises(OptionError, match=r"delta\.nonsense"):
        plan_write(request(tmp_path, **{"delta.nonsense": "1"}))
    with pytest.raises(DeltaError):
        plan_write(request(tmp_path, **{"delta.appendOnly": "perhaps"}))


def plan_and_write(path: Path, **properties: str) -> None:
    write_rows(path, IDS, [{"id": 1}], properties=properties)
