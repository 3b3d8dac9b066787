"""What a notebook shows: tables, of which no text can be markup."""

from __future__ import annotations

from pathlib import Path

import pytest

import delta_pyds
from delta_pyds.api import Explanation
from delta_pyds.commands.layout.operation import LayoutResult
from delta_pyds.commands.maintenance.clone import CloneResult
from delta_pyds.commands.maintenance.restore import RestoreResult
from delta_pyds.commands.maintenance.vacuum import VacuumResult
from delta_pyds.commands.row_changes.result import Place, RowChangeResult
from delta_pyds.html_table import pairs, table, text
from delta_pyds.table.scan.read_report import ReadReport
from tests.support.table_builder import TableBuilder

BAD = '<script>"&\u202e'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""), (True, "true"), (1234567, "1,234,567"), (0.5, "0.5"), ("a<b", "a&lt;b"), ('"', "&quot;"),
        ("s3://key:secret@host/t", "s3://***@host/t"), ("a\nb", "a\\nb"),
    ],
)  # fmt: skip
def test_a_value(value: object, shown: str) -> None:
    assert text(value) == shown


def test_values_and_tables_are_short() -> None:
    assert len(text("x" * 10**6)) < 400 and len(text(10**4000)) <= 300
    many = table(["n"], ([n] for n in range(1000)), most=10, more=5)
    assert many.count("<tr>") == 12 and "and 995 more" in many


@pytest.mark.parametrize(
    "value",
    [
        RowChangeResult(3, 2, 2, 0, 0, 1, Place("process", BAD)),
        LayoutResult(BAD, 4, {"numFilesRemoved": 3, "numFilesAdded": 1, BAD: BAD}, Place("process", BAD)),
        VacuumResult(3, 0, 700, 1, 9),
        RestoreResult(3, 1, 2, 3, 4, 5, 6),
        CloneResult(1, 2, 3, 4, 5, 6, 7),
        ReadReport(BAD, "arrow", (BAD, "and"), 3, 7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_result_is_a_table(value: Explanation) -> None:
    assert value.version is not None
    shown = value._repr_html_()
    assert shown.startswith("<table><caption>") and shown.count("<tr>") >= 4
    assert "<script" not in shown and "\u202e" not in shown


def test_a_number_that_python_does_not_write_is_described() -> None:
    assert text(10**5000) == "a number of 16610 bits"


def test_names_of_fields_are_words() -> None:
    shown = VacuumResult(3, 0, 700, 1, None)._repr_html_()
    assert '<th scope="row">deleted files</th><td class="n">3</td>' in shown
    assert '<th scope="row">version</th><td></td>' in shown


def test_verify_and_explain(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path, {"id": "long"}, name=BAD)
    builder.create()
    builder.append([{"id": 1}])
    shown = delta_pyds.verify(tmp_path)._repr_html_()
    assert "ok, 0 errors, 0 warnings; checked 2 commits" in shown and "<tbody></tbody>" in shown
    for file in tmp_path.glob("*.parquet"):
        file.unlink()
    assert "<td>file.missing</td>" in delta_pyds.verify(tmp_path)._repr_html_()
    explained = delta_pyds.explain(tmp_path, where="id > 5 AND '<b>' = '<b>'")._repr_html_()
    assert "0 of 1 files read" in explained and "<td>skipped</td>" in explained and "<b>" not in explained


def test_pairs() -> None:
    assert pairs([("a", 1)], caption="c") == (
        '<table><caption>c</caption><tbody><tr><th scope="row">a</th><td class="n">1</td></tr></tbody></table>'
    )
