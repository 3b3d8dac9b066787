"""Whether a session uses Comet, and what a plan says that Comet takes."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.spark.native import comet
from delta_pyds.spark.native.comet import acceleration, is_on, reason_against_positions, takes_word_joins
from delta_pyds.spark.settings import (
    COMET,
    COMET_CONVERT_PARQUET,
    COMET_EXEC,
    COMET_LOCAL_TABLES,
    COMET_SCAN,
    EXTENSIONS,
)
from delta_pyds.table.scan.read_report import Acceleration, QueryReport, ReadReport, explained, remember

EXTENSION = "org.apache.comet.CometSparkSessionExtensions"
BY_DEFAULT = {EXTENSIONS: EXTENSION}
ALL = {**BY_DEFAULT, COMET_CONVERT_PARQUET: "true", COMET_LOCAL_TABLES: " TRUE "}

PLAN = """
AdaptiveSparkPlan isFinalPlan=false
+- CometUnion
   :- CometNativeScan parquet [id#1L]
   :- *(1) ColumnarToRow
   :  +- FileScan parquet [id#3L] Batched: true
   +- CometFilter
      +- CometSparkColumnarToColumnar
         +-  Scan parquet  [COMET: no row index, not this type]
"""


def test_comet_is_found_by_its_extension() -> None:
    assert not is_on({})
    assert not is_on({EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension"})
    assert is_on(BY_DEFAULT)
    assert is_on({EXTENSIONS: f"a.B, {EXTENSION} ,c.D"})


@pytest.mark.parametrize("setting", [COMET, COMET_EXEC, COMET_SCAN])
def test_comet_can_be_turned_off(setting: str) -> None:
    assert takes_word_joins(ALL)
    assert not is_on({**ALL, setting: "false"})
    assert not takes_word_joins({**ALL, setting: "false"})


def test_joins_need_two_settings_and_the_reason_names_those_that_are_off() -> None:
    assert not takes_word_joins(BY_DEFAULT)
    assert not takes_word_joins({**ALL, COMET_LOCAL_TABLES: "false"})
    assert reason_against_positions(ALL, 1) == "Spark must read the row positions of the file with a deletion vector"
    assert reason_against_positions(BY_DEFAULT, 3) == (
        "Spark must read the row positions of 3 files with deletion vectors, and Comet does not take their rows, "
        f"because {COMET_CONVERT_PARQUET} and {COMET_LOCAL_TABLES} are not true"
    )


def test_scans_and_reasons_are_counted_in_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = object()
    monkeypatch.setattr(comet, "_plan", lambda _: PLAN)
    found = acceleration(frame, ["positions"])
    assert found == Acceleration("Comet", 3, 1, ("positions", "no row index", "not this type"))
    assert str(found) == "Comet takes 1 of 3 scans (positions; no row index; not this type)"
    monkeypatch.setattr(comet, "_plan", lambda _: "+- CometNativeScan parquet [id#1L]")
    assert str(acceleration(frame, ["positions"])) == "Comet takes 1 of 1 scans"


class _Frame:
    pass


def test_a_report_asks_for_the_plan_only_when_it_is_explained() -> None:
    asked: list[Any] = []

    def accelerator(frame: Any) -> Acceleration:
        asked.append(frame)
        return Acceleration("Comet", 2, 1)

    one, both = _Frame(), _Frame()
    report = ReadReport("/t", "native", (), 3, 2, accelerator=accelerator)
    remember(one, report)
    remember(both, QueryReport((ReadReport("/u", "arrow"), report)))
    assert not asked
    assert str(explained(one)) == "/t at version 3: engine native, 2 files; Comet takes 1 of 2 scans"
    assert str(explained(both)).splitlines()[-1] == "Comet takes 1 of 2 scans"
    assert asked == [one, both]
    assert "accelerator" not in repr(report)
    assert explained(both).version is None
