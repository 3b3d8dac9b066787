from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import StructType as SparkStructType

from delta_pyds.columnar.schema import VARIANT, arrow_schema, arrow_type
from delta_pyds.protocol.schema import VOID, DataType, StructField, StructType, display, type_to_json
from tests.support.scans import every_type


def _spark(schema: StructType) -> SparkStructType:
    return SparkStructType.fromJson(json.loads(json.dumps(type_to_json(schema))))


@pytest.mark.parametrize("data_type", every_type(), ids=display)
def test_every_type_is_sparks_arrow_type_to_the_child_names_and_metadata(data_type: DataType) -> None:
    spark_type = _spark(StructType((StructField("c", data_type),)))["c"].dataType
    expected = to_arrow_type(spark_type, timezone="UTC")
    ours = arrow_type(data_type)
    assert pa.field("c", ours).equals(pa.field("c", expected), check_metadata=True)
    # equality of list types overlooks the name of the element
    assert str(ours) == str(expected)


def test_schema_keeps_order_names_and_nullability_as_spark_does() -> None:
    fields = [StructField(f"c {i}.x", t, nullable=i % 2 == 0 or t == VOID) for i, t in enumerate(every_type())]
    schema = StructType(tuple(fields))
    expected = to_arrow_schema(_spark(schema), timezone="UTC")
    assert arrow_schema(schema).equals(expected, check_metadata=True)


def test_column_mapping_metadata_does_not_reach_arrow() -> None:
    metadata = {"delta.columnMapping.id": 3, "delta.columnMapping.physicalName": "col-1"}
    field = arrow_schema(StructType((StructField("a", every_type()[0], True, metadata),))).field(0)
    assert field.metadata is None


def test_variant_is_marked_so_that_spark_knows_it() -> None:
    assert [f.name for f in VARIANT] == ["value", "metadata"]
    assert VARIANT.field("metadata").metadata == {b"variant": b"true"}
