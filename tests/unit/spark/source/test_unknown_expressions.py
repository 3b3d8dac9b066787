"""A refusal for want of a session names the call that has one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StructType

from delta_pyds.errors import UNKNOWN_EXPRESSION, ExpressionError
from delta_pyds.spark.source.datasource import DeltaDataSource
from tests.support.table_builder import TableBuilder

SCHEMA = StructType().add("id", LongType())


@pytest.mark.parametrize("stream", [False, True], ids=["batch", "stream"])
def test_a_refused_constraint_names_the_write_that_computes_it(tmp_path: Path, stream: bool) -> None:
    properties = {"delta.constraints.c": "soundex(cast(id AS string)) > 0"}
    TableBuilder(tmp_path, {"id": "long"}, properties=properties, protocol=(1, 3)).create()
    source = DeltaDataSource({"path": str(tmp_path)})
    with pytest.raises(ExpressionError) as caught:
        (source.streamWriter if stream else source.writer)(SCHEMA, False)
    assert "delta_pyds.write(df, path)" in caught.value.message
    assert ("foreachBatch" in caught.value.message) == stream
    assert UNKNOWN_EXPRESSION in caught.value.parameters


def test_a_refused_replace_where_names_it_too(tmp_path: Path) -> None:
    TableBuilder(tmp_path, {"id": "long"}).create()
    source = DeltaDataSource({"path": str(tmp_path), "replaceWhere": "crc32(cast(id AS string)) > 0"})
    with pytest.raises(ExpressionError, match=r"delta_pyds\.write"):
        source.writer(SCHEMA, True)
