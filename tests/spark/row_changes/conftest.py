"""A view for the subqueries of conditions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import delta_pyds


@pytest.fixture
def others(spark: SparkSession) -> Iterator[None]:
    delta_pyds.register(spark)
    spark.createDataFrame([(3,), (4,), (None,)], "id long").createOrReplaceTempView("others")
    yield
    spark.catalog.dropTempView("others")
