from __future__ import annotations

import pytest
from pyspark.sql import types as spark_types

from delta_pyds.errors import UserError
from delta_pyds.protocol.schema import STRING, StructField, StructType
from delta_pyds.spark.planning.types import from_spark, to_spark


@pytest.mark.parametrize(
    "data_type", [spark_types.DayTimeIntervalType(), spark_types.ArrayType(spark_types.YearMonthIntervalType())]
)
def test_a_column_of_a_type_that_no_table_has_is_named(data_type: spark_types.DataType) -> None:
    schema = spark_types.StructType().add("id", "long").add("how_long", data_type)
    with pytest.raises(UserError, match=r"'how_long' is of type .*INTERVAL") as error:
        from_spark(schema)
    assert error.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"


def test_a_schema_with_a_collation_is_converted_twice() -> None:
    """PySpark changes the JSON that it gets. Snapshots are cached, so the next load would get the changed one."""
    columns = StructType((StructField("name", STRING, metadata={"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}),))
    assert to_spark(columns) == to_spark(columns)
    assert columns.fields[0].metadata == {"__COLLATIONS": {"name": "spark.UTF8_LCASE"}}
