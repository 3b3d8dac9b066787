"""Integers that early writers of type widening made decimals that just hold them: all that is done with a table."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.scan import Scan, plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.support.table_builder import Action, TableBuilder
from tests.support.table_writes import read_rows, write_rows
from tests.support.verification import rules

BEFORE = {"b": "byte", "s": "short", "l": "long"}
AFTER = {"b": "decimal(4,1)", "s": "decimal(6,1)", "l": "decimal(20,1)"}
INTEGERS = [
    {"b": -128, "s": -32768, "l": -(2**63)},
    {"b": 127, "s": 32767, "l": 2**63 - 1},
    {"b": None, "s": None, "l": None},
]
DECIMALS = [{"b": Decimal("999.9"), "s": Decimal("-99999.9"), "l": Decimal("9999999999999999999.9")}]
SMALL = [{"b": 1, "s": 1, "l": 1}, {"b": 2, "s": 2, "l": 2}]


def widened() -> Action:
    """The schema after the change, as the feature's preview recorded it."""
    fields = []
    for name, kind in AFTER.items():
        change = {"fromType": BEFORE[name], "toType": kind, "tableVersion": 2}
        fields.append({"name": name, "type": kind, "nullable": True, "metadata": {"delta.typeChanges": [change]}})
    return {"type": "struct", "fields": fields}


def make(path: Path, checkpoint: bool = False) -> tuple[TableBuilder, list[str]]:
    """The table and the paths of its files: two of before the change, one of after it."""
    preview = ["typeWidening-preview"]
    table = TableBuilder(
        path, BEFORE, properties={"delta.enableTypeWidening": "true"}, features=(preview, preview), protocol=(3, 7)
    )
    table.create()
    adds = table.append(INTEGERS) + table.append(SMALL)
    table.commit([table.metadata(widened())], operation="CHANGE COLUMN")
    adds += table.append(DECIMALS)
    if checkpoint:
        table.checkpoint()
    return table, [add["add"]["path"] for add in adds]


def exact(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: None if v is None else Decimal(v).quantize(Decimal("0.1")) for k, v in row.items()} for row in rows]


def plan(table: TableBuilder, where: str | None = None) -> Scan:
    return plan_scan(load_snapshot(str(table.path)), where=where)


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(row) for row in rows)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_every_value_is_read_exactly(tmp_path: Path, checkpoint: bool) -> None:
    table, _ = make(tmp_path, checkpoint)
    found = read_rows(tmp_path)
    assert ordered(found) == ordered(exact(INTEGERS + SMALL) + DECIMALS)
    assert ordered(exact(table.expected_rows())) == ordered(found)
    assert rules(table) == []


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    ("where", "expected", "files"),
    [
        ("b = 127", [INTEGERS[1]], [0]),
        ("b = -128 AND s = -32768 AND l = -9223372036854775808", [INTEGERS[0]], [0]),
        ("l = 9223372036854775807", [INTEGERS[1]], [0]),
        ("l > 9223372036854775806.5", [INTEGERS[1], DECIMALS[0]], [0, 2]),
        ("l > 9223372036854775807", [DECIMALS[0]], [2]),
        ("b > 127.5", [DECIMALS[0]], [2]),
        ("s < -32768", [DECIMALS[0]], [2]),
        ("b BETWEEN 0.9 AND 1.1", [SMALL[0]], [0, 1]),
        ("b = 1.5", [], [0, 1]),
        ("s IS NULL", [INTEGERS[2]], [0]),
        ("l IN (1, 2)", SMALL, [0, 1]),
    ],
)
def test_predicates_are_exact_and_skip_by_the_bounds_of_before(
    tmp_path: Path, checkpoint: bool, where: str, expected: list[dict[str, Any]], files: list[int]
) -> None:
    table, paths = make(tmp_path, checkpoint)
    assert ordered(read_rows(tmp_path, where=where)) == ordered(exact(expected))
    report = plan(table, where).explain()
    kept = {row["path"] for row in report.files.to_pylist() if row["kept"]}
    # more may be kept, where bounds of many digits may have been rounded
    assert kept >= {paths[i] for i in files}
    if "l" not in where.split():
        assert kept == {paths[i] for i in files}
    assert {Path(file.path).name for file in plan(table, where).files()} == {Path(path).name for path in kept}


def test_the_other_engine_declines_and_says_why(tmp_path: Path) -> None:
    table, _ = make(tmp_path)
    scan = plan(table)
    reason = first_foreign_to_spark(LocalStorage(), scan.state, list(scan.files()))
    assert reason is not None and "int8" in reason


def test_rows_are_appended_after_the_change(tmp_path: Path) -> None:
    make(tmp_path)
    write_rows(tmp_path, AFTER, [{"b": Decimal("1.5"), "s": Decimal("2.5"), "l": Decimal("3.5")}])
    assert read_rows(tmp_path, where="b = 1.5") == [{"b": Decimal("1.5"), "s": Decimal("2.5"), "l": Decimal("3.5")}]
    assert rules(str(tmp_path)) == []


def test_a_change_to_fewer_digits_is_no_widening(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path, {"b": "byte"}, features=(["typeWidening-preview"], ["typeWidening-preview"]), protocol=(3, 7)
    )
    table.create()
    table.append([{"b": 1}])
    text = json.dumps(widened()["fields"][0]).replace("decimal(4,1)", "decimal(3,1)")
    table.commit([table.metadata({"type": "struct", "fields": [json.loads(text)]})])
    assert "error schema.type-changed" in rules(table)
