"""What a Spark has is found by a look at it."""

from __future__ import annotations

import pyspark
import pytest
from pyspark.sql import DataFrameReader, datasource
from pyspark.sql.catalog import Catalog

from delta_pyds.spark import versions
from delta_pyds.spark.options.read import parse_read_options
from delta_pyds.spark.source.reader import pushes_filters


@pytest.fixture
def spark_4_0(monkeypatch: pytest.MonkeyPatch) -> None:
    """This PySpark without the names that 4.0 lacks."""
    for name in ("Filter", "DataSourceStreamArrowWriter"):
        monkeypatch.delattr(datasource, name, raising=False)
    for name in versions.CATALOG_METHODS:
        monkeypatch.delattr(Catalog, name, raising=False)
    for name in ("has_admission_control", "has_pipelines"):
        monkeypatch.setattr(versions, name, lambda: False)
    monkeypatch.delattr(DataFrameReader, "changes", raising=False)
    monkeypatch.setattr(pyspark, "__version__", "4.0.5")


@pytest.mark.usefixtures("spark_4_0")
def test_an_old_spark_says_what_it_lacks() -> None:
    assert versions.lacks() == [
        "filter pushdown",
        "limits and triggers of Python streams",
        "its own functions beside a session's of the same name",
        "declarative pipelines",
        "reads of changes (`spark.read.changes`, CHANGES FROM)",
        f"in `spark.catalog`: {', '.join(versions.CATALOG_METHODS)}",
    ]


def test_a_method_that_is_there_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is found by a look at PySpark, whatever its version."""
    for name in versions.CATALOG_METHODS:
        monkeypatch.setattr(Catalog, name, None, raising=False)
    assert not any("spark.catalog" in text for text in versions.lacks())
    monkeypatch.delattr(Catalog, "listViews")
    assert "in `spark.catalog`: listViews" in versions.lacks()


@pytest.mark.usefixtures("spark_4_0")
def test_a_spark_without_filters_reads_without_them() -> None:
    assert not pushes_filters(parse_read_options({"path": "/t", "pushFilters": "true"}))


@pytest.mark.usefixtures("spark_4_0")
def test_the_sink_of_a_stream_takes_batches_where_no_class_is_named_so() -> None:
    base = versions.arrow_stream_writer()
    assert issubclass(base, datasource.DataSourceStreamWriter) and issubclass(base, datasource.DataSourceArrowWriter)
