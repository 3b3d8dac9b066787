"""The table of a name, where Spark says that it has none, and where Spark says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException

from delta_pyds.errors import CatalogError
from delta_pyds.spark.catalog_names import lookup, statement_names
from delta_pyds.spark.install.names import named_if_ours
from delta_pyds.spark.sql import run


class Catalog:
    def __init__(self, current: str) -> None:
        self._current = current

    def __getattr__(self, name: str) -> Callable[[], str]:
        assert name == "currentCatalog"
        return lambda: self._current


class Session:
    """One of Spark Connect."""

    def __init__(self, current: str = "spark_catalog") -> None:
        self.catalog = Catalog(current)


def refused(condition: str) -> AnalysisException:
    return AnalysisException(f"[{condition}] of a server", errorClass=condition)  # type: ignore[call-arg]


def answering(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def ask(*_: object) -> None:
        raise error

    for module in (lookup, statement_names):
        monkeypatch.setattr(module, "is_remote", lambda _: True)
    monkeypatch.setattr(lookup, "_look_up_on_server", ask)


@pytest.mark.parametrize(
    "error",
    [refused("TABLE_OR_VIEW_NOT_FOUND"), refused("SCHEMA_NOT_FOUND"), refused("REQUIRES_SINGLE_PART_NAMESPACE")],
)
def test_a_name_that_nothing_has_is_not_ours(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    answering(monkeypatch, error)
    session: Any = Session()
    assert named_if_ours(session, "sales.orders") is None
    assert run.statement_on_ours(session, "SELECT * FROM orders") is None


@pytest.mark.parametrize(
    "error",
    [
        PySparkException("failed to connect to all addresses\nand more"),
        AnalysisException("[_LEGACY_ERROR_TEMP_3065] MetaException: the metastore is away"),
        refused("INTERNAL_ERROR"),
    ],
)
def test_without_an_answer_of_spark_nothing_is_run(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Else the text would go to Spark as it is, which may answer the next question."""
    answering(monkeypatch, error)
    session: Any = Session()
    for text in ("SELECT * FROM orders", "SELECT * FROM a JOIN sales.orders USING (id)", "DELETE FROM orders"):
        with pytest.raises(CatalogError, match=r"'(orders|a|sales\.orders)'"):
            run.statement_on_ours(session, text)
    with pytest.raises(PySparkException, match=r"did not say what 'orders'.*Nothing was run") as caught:
        named_if_ours(session, "orders")
    assert isinstance(caught.value, CatalogError)
    assert caught.value.__cause__ is error
    assert "and more" not in str(caught.value)


def test_of_a_name_in_another_catalog_spark_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, PySparkException("of a driver of JDBC"))
    elsewhere: Any = Session("lake")
    assert named_if_ours(elsewhere, "sales.orders") is None
    assert named_if_ours(Session(), "lake.sales.orders") is None  # type: ignore[arg-type]
    with pytest.raises(CatalogError):
        named_if_ours(elsewhere, "spark_catalog.sales.orders")


def test_what_is_no_name_spark_says(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, ParseException("near '-'"))
    session: Any = Session()
    assert named_if_ours(session, "orders") is None


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", True),
        ("-- now\nvacuum t RETAIN many HOURS", True),
        ("OPTIMIZE t WHERE 'open", True),
        ("CREATE OR REPLACE TABLE t SHALLOW CLONE parquet.`/data/plain`", True),
        ("INSERT INTO t VALUES ('open", False),
    ],
)
def test_a_statement_that_only_delta_has_is_refused_in_our_words(
    monkeypatch: pytest.MonkeyPatch, text: str, ours: bool
) -> None:
    """Of Spark they would be an error at the first word."""
    answering(monkeypatch, refused("TABLE_OR_VIEW_NOT_FOUND"))
    session: Any = Session()
    monkeypatch.setattr(run, "has_reference", lambda _: False)
    assert (run.statement_on_ours(session, text) is not None) == ours
    monkeypatch.setattr(run, "has_reference", lambda _: True)
    assert run.statement_on_ours(session, text) is None
