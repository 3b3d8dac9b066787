from __future__ import annotations

import pytest
from pyspark.sql import types as spark_types

from delta_pyds.errors import UserError
from delta_pyds.spark.planning.types import from_spark


@pytest.mark.parametrize(
    "data_type", [spark_types.DayTimeIntervalType(), spark_types.ArrayType(spark_types.YearMonthIntervalType())]
)
def test_a_column_of_a_type_that_no_table_has_is_named(data_type: spark_types.DataType) -> None:
    schema = spark_types.StructType().add("id", "long").add("how_long", data_type)
    with pytest.raises(UserError, match=r"'how_long' is of type .*INTERVAL") as error:
        from_spark(schema)
    assert error.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"
