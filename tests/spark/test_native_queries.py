"""Tables and queries that are drawn: both engines, SQL and a plain model give the same answers."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from delta_pyds.spark.native import parts as native_parts
from tests.support.drawn_queries import one_answer
from tests.support.session_settings import SETTINGS, WITHOUT_NATIVE, session_with


@pytest.mark.parametrize("large", [0, 250_000])
def test_queries_on_drawn_tables_have_one_answer(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(native_parts, "LARGE_FILE_ROWS", large)
    one_answer(spark)


@pytest.mark.one_case_in(6)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_session_change_no_answer(spark: SparkSession, name: str) -> None:
    one_answer(session_with(spark, name), number=3, native=name not in WITHOUT_NATIVE)
