"""Commits that the protocol forbids, and the version that a type change is given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from delta_pyds.errors import (
    DeltaError,
    UnsupportedFeatureError,
)
from delta_pyds.protocol.actions import AddCDCFile, AddFile, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.schema import LONG, StructField, StructType, schema_to_string
from delta_pyds.table.definition.column_mapping import assign_columns
from delta_pyds.table.transaction.transaction import Operation, TableToCreate, Transaction
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, SCHEMA, WRITE, Table, file, removed

# --- type widening


def test_the_version_of_a_type_change_follows_the_commit(storage: MemoryStorage) -> None:
    table = Table(storage)
    features = ["typeWidening", "appendOnly", "invariants"]
    table.create(protocol=Protocol(3, 7, ["typeWidening"], features), properties={"delta.enableTypeWidening": "true"})
    mine = table.start()
    changes = [
        {"fromType": "byte", "toType": "integer", "tableVersion": 0},
        {"fromType": "integer", "toType": "long", "tableVersion": 1},
    ]
    widened = StructType((StructField("id", LONG, metadata={"delta.typeChanges": changes}), SCHEMA.fields[1]))
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, schema_string=schema_to_string(widened)))
    table.append("x")
    table.append("y")
    assert mine.commit(Operation("CHANGE COLUMN"), policy=QUIET).version == 3
    noted = table.snapshot().schema.fields[0].metadata["delta.typeChanges"]
    assert [change["tableVersion"] for change in noted] == [0, 3]


# --- what must not be committed


VECTOR = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 2)
DV_TABLE = Protocol(3, 7, ["deletionVectors"], ["deletionVectors"])


def refused(table: Table, code: str, *adds: AddFile, remove: Any = (), cdc: Any = ()) -> DeltaError:
    transaction = table.start()
    version = table.snapshot().version
    with pytest.raises(DeltaError) as error:
        transaction.add(adds)
        transaction.remove(remove)
        transaction.add_change_file(cdc)
        transaction.commit(WRITE, policy=QUIET)
    assert error.value.code == code
    assert table.snapshot().version == version
    return error.value


def test_a_file_stands_once_in_a_commit(table: Table) -> None:
    code = "DELTA_DUPLICATE_ACTIONS_FOUND"
    assert "added twice" in str(refused(table, code, file("a"), file("a")))
    assert "removed twice" in str(refused(table, code, remove=removed(["a", "a"])))
    assert "added and removed" in str(refused(table, code, file("a"), remove=removed("a")))
    assert "file of changes" in str(refused(table, code, cdc=[AddCDCFile("c", {}, 1), AddCDCFile("c", {}, 1)]))


def test_a_path_may_change_its_deletion_vector(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(protocol=DV_TABLE)
    table.append("a")
    mine = table.start()
    mine.remove(removed("a"))
    mine.add(file("a", stats='{"numRecords":5,"tightBounds":false}', deletion_vector=VECTOR))
    assert mine.commit(Operation("DELETE"), policy=QUIET).version == 2
    gone = removed("a", deletion_vector=VECTOR)
    wide = '{"numRecords":5,"tightBounds":false}'
    refused(table, "DELTA_DUPLICATE_ACTIONS_FOUND", file("a", stats=wide, deletion_vector=VECTOR), remove=gone)


@pytest.mark.parametrize(
    ("protocol", "given", "code"),
    [
        (Protocol(1, 2), {}, "DELTA_ADDING_DELETION_VECTORS_DISALLOWED"),
        (DV_TABLE, {"stats": None}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (DV_TABLE, {"stats": "{"}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (
            DV_TABLE,
            {"stats": '{"numRecords":5,"tightBounds":true}'},
            "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
        ),
        (DV_TABLE, {}, "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED"),
    ],
)
def test_a_deletion_vector_needs_wide_bounds_and_a_count(
    storage: MemoryStorage, protocol: Protocol, given: dict[str, Any], code: str
) -> None:
    table = Table(storage)
    table.create(protocol=protocol)
    refused(table, code, file("a", deletion_vector=VECTOR, **given))


@pytest.mark.parametrize(
    ("protocol", "properties", "code"),
    [
        (DV_TABLE, {}, "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"),
        (Protocol(1, 7, None, ["rowTracking", "domainMetadata"]), {}, "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"),
        (
            Protocol(2, 7, None, ["columnMapping", "icebergCompatV1"]),
            {"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
            "DELTA_ICEBERG_COMPAT_VIOLATION",
        ),
    ],
)
def test_some_tables_want_every_file_counted(
    storage: MemoryStorage, protocol: Protocol, properties: dict[str, str], code: str
) -> None:
    table = Table(storage)
    schema, last = assign_columns(SCHEMA, 0)
    table.create(
        protocol=protocol, properties={**properties, "delta.columnMapping.maxColumnId": str(last)}, schema=schema
    )
    refused(table, code, file("a", None))
    table.append("b")


def test_an_append_only_table_only_grows(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties={"delta.appendOnly": "true"})
    table.append("a")
    refused(table, "DELTA_CANNOT_MODIFY_APPEND_ONLY", remove=removed("a"))
    mine = table.start()
    mine.remove(removed("a", data_change=False))
    mine.add(file("b", data_change=False))
    mine.commit(Operation("OPTIMIZE"), policy=QUIET)
    assert table.live() == ["b"]


def test_partition_values_are_those_of_the_partition_columns(partitioned: Table) -> None:
    code = "DELTA_INVALID_PARTITIONING_SCHEMA"
    refused(partitioned, code, file("a"))
    refused(partitioned, code, AddFile("a", {"p": "x", "q": "y"}, 1, 1))
    refused(partitioned, code, cdc=[AddCDCFile("c", {"P": "x"}, 1)])
    partitioned.append("a", p="x")


def test_partition_values_go_by_physical_names(storage: MemoryStorage) -> None:
    table = Table(storage)
    fields = [
        StructField(
            f.name,
            f.data_type,
            metadata={"delta.columnMapping.id": i, "delta.columnMapping.physicalName": f"col-{i}"},
        )
        for i, f in enumerate(SCHEMA, 1)
    ]
    table.create(
        schema=StructType(tuple(fields)),
        partitioned=True,
        protocol=Protocol(2, 5),
        properties={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
    )
    refused(table, "DELTA_INVALID_PARTITIONING_SCHEMA", file("a", p="x"))
    mine = table.start()
    mine.add(AddFile("a", {"col-2": "x"}, 1, 1))
    assert mine.commit(WRITE, policy=QUIET).version == 1


def test_a_reader_version_never_shrinks(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(protocol=Protocol(3, 7, [], ["appendOnly"]))
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly"]))
    with pytest.raises(DeltaError) as error:
        mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert error.value.code == "DELTA_INVALID_PROTOCOL_DOWNGRADE"


@pytest.mark.parametrize("protocol", [Protocol(1, 1), Protocol(1, 7, None, ["appendOnly"])])
def test_a_protocol_never_shrinks(table: Table, protocol: Protocol) -> None:
    mine = table.start()
    mine.set_protocol(protocol)
    with pytest.raises(DeltaError) as error:
        mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert error.value.code == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    assert table.snapshot().version == 0


@pytest.mark.parametrize(
    ("metadata", "code"),
    [
        (Metadata(id="i", schema_string="no schema"), "DELTA_INVALID_SCHEMA"),
        (Metadata(id="i"), "DELTA_STATE_RECOVER_ERROR"),
        (
            Metadata(id="i", schema_string=schema_to_string(SCHEMA), partition_columns=["q"]),
            "DELTA_MISSING_PARTITION_COLUMN",
        ),
        (
            Metadata(id="i", schema_string=schema_to_string(SCHEMA), configuration={"delta.appendOnly": "perhaps"}),
            "DELTA_INVALID_TABLE_PROPERTY",
        ),
    ],
)
def test_metadata_that_could_not_be_read_is_not_written(table: Table, metadata: Metadata, code: str) -> None:
    mine = table.start()
    mine.set_metadata(metadata)
    with pytest.raises(DeltaError) as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.code == code
    assert table.snapshot().version == 0


def test_a_protocol_that_we_cannot_write_is_not_written(table: Table) -> None:
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "fancyWrites"]))
    with pytest.raises(UnsupportedFeatureError, match="fancyWrites"):
        mine.commit(WRITE, policy=QUIET)


def test_a_table_needs_protocol_and_metadata(storage: MemoryStorage) -> None:
    mine = Transaction(TableToCreate(storage, ROOT))
    mine.set_protocol(Protocol(1, 2))
    with pytest.raises(DeltaError, match="metaData"):
        mine.commit(WRITE)


def test_domains_need_their_feature_and_the_row_tracking_one_is_ours(table: Table) -> None:
    mine = table.start()
    mine.set_domain(DomainMetadata("d", "{}"))
    with pytest.raises(DeltaError, match="domainMetadata") as error:
        mine.commit(WRITE, policy=QUIET)
    assert error.value.code == "DELTA_DOMAIN_METADATA_NOT_SUPPORTED"
    with pytest.raises(DeltaError, match="only be set by the transaction"):
        table.start().set_domain(DomainMetadata("delta.rowTracking", "{}"))
