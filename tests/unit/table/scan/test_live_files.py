from __future__ import annotations

from delta_pyds.protocol.actions import AddFile, RemoveFile
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.scan.live_files import removal


def test_a_remove_says_all_that_readers_of_changes_and_vacuum_need() -> None:
    vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 1)
    add = AddFile(
        "a b",
        {"p": None},
        10,
        7,
        tags={"k": "v"},
        deletion_vector=vector,
        base_row_id=3,
        default_row_commit_version=4,
        stats="{}",
    )
    for data_change in (True, False):
        assert removal(add, deletion_timestamp_ms=99, data_change=data_change) == RemoveFile(
            "a b",
            deletion_timestamp=99,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values={"p": None},
            size=10,
            tags={"k": "v"},
            deletion_vector=vector,
            base_row_id=3,
            default_row_commit_version=4,
        )


def test_a_remove_of_an_unpartitioned_file_has_no_partition_values_and_not_none() -> None:
    assert removal(AddFile("a", None, 10, 7), deletion_timestamp_ms=1, data_change=True).partition_values == {}
