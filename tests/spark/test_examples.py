"""The examples of ``DeltaTable`` run as they are, in the session of the tests, and print what they promise."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    # an example ends its session, and this one is that of all tests
    monkeypatch.setattr(type(spark), "stop", lambda _: None)

    def printed(name: str) -> str:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return printed


def test_upsert(run: Callable[[str], str]) -> None:
    out = run("upsert.py")

    assert "|                3|               1|               1|                1|" in out  # what the merge returned
    assert "|  5|  Ed|Chur|     1|" not in out.partition("2. Update")[2].partition("3. Where")[0]  # deleted again
    assert "|  3|  Cy|Bern|    17|" in out
    assert "ran in " in out and "MERGE" in out
    assert "ok, 0 errors, 0 warnings" in out


def test_change_feed(run: Callable[[str], str]) -> None:
    out = run("change_feed.py")

    for change in ("update_preimage", "update_postimage", "insert", "delete"):
        assert change in out
    assert "The second table has the rows of the first." in out


def test_maintenance(run: Callable[[str], str]) -> None:
    out = run("maintenance.py")

    assert "4500 rows are back" in out
    assert "3250 rows in the clone, 4500 in the table" in out
    assert "0 files would be deleted" in out
    for operation in ("CREATE TABLE", "OPTIMIZE", "ADD CONSTRAINT", "ADD COLUMNS", "RESTORE"):
        assert operation in out
    assert "ok, 0 errors, 0 warnings" in out


def test_catalog(run: Callable[[str], str]) -> None:
    out = run("catalog.py")

    now, before = out.partition("2. Change")[2].partition("3. The same in SQL")[0].split("+---+----+------+\n\n")
    assert "|  1|Bern|   121|" in now and "Basel" not in now
    assert "|  2|Basel|    40|" in before and "|      3|   DELETE|" in before
    assert "|Bern|  137|" in out
    assert "latest version 3, 0 commits wait to be published" in out
    assert "is managed by a catalog" in out
    assert "ok, 0 errors, 0 warnings" in out


def test_catalog_of_yours(run: Callable[[str], str]) -> None:
    """Also that its object comes to the processes that Spark plans in: it is of a class that no module has."""
    out = run("catalog_of_yours.py")

    assert "it satisfies 12 rules, such as: a table is seen once it is registered" in out
    rows = out.partition("2. Create")[2].partition("3. The")[0]
    assert "|  1|Bern|   120|" in rows and "|  3|Bern|    15|" in rows and "Basel" not in rows
    assert "latest version 2, 0 commits wait to be published" in out
    assert "ok, 0 errors, 0 warnings" in out


def test_delta_program(run: Callable[[str], str], spark: SparkSession) -> None:
    """Also what a program for delta-spark says of catalog and extensions in its settings."""
    try:
        out = run("delta_program.py")
    finally:
        delta_pyds.uninstall()
        spark.conf.unset("spark.sql.catalog.spark_catalog")

    assert "for the format deltapy and delta" in out
    assert "|  2|Chur|     5|" in out and "|  3|Bern|     2|" in out
    assert "2 rows before" in out and "MERGE" in out and "UPDATE" in out


def test_sql(run: Callable[[str], str]) -> None:
    out = run("sql.py")

    assert "|                2|               1|               1|                0|" in out  # what the merge returned
    assert "|  1|  Zug|    14|     3|" in out
    assert "ADD COLUMNS" in out and "update_postimage" in out
    assert "SETT visits = 0\n-----^^^" in out
