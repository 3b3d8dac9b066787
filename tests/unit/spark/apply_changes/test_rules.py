"""The arguments of ``apply_changes``: what they mean, and which are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.apply_changes.rules import ChangeRules, change_rules

GIVEN: dict[str, Any] = {
    "keys": "id",
    "sequence_by": "seq",
    "delete_when": None,
    "scd": 1,
    "tombstones": True,
    "column_list": None,
    "except_column_list": None,
    "ignore_null_updates": False,
    "track_history_column_list": None,
    "track_history_except_column_list": None,
}


def rules(**given: Any) -> ChangeRules:
    return change_rules(**{**GIVEN, **given})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("id", ("id",)),
        ("a, `b,c`", ("a", "b,c")),
        (["a", "b.c"], ("a", "b.c")),
        (("a", "a"), ("a",)),
    ],
)
def test_names_of_columns(given: Any, names: tuple[str, ...]) -> None:
    assert rules(keys=given).keys == names
    assert rules(except_column_list=given).except_columns == names


def test_names_as_columns_of_spark() -> None:
    functions = pytest.importorskip("pyspark.sql.connect.functions")
    found = rules(keys=[functions.col("id"), "b"], sequence_by=functions.col("at"))
    assert found.keys == ("id", "b") and found.sequence_name == "at"
    with pytest.raises(OptionError, match="names of columns"):
        rules(keys=[functions.col("id") + 1])


@pytest.mark.parametrize(
    ("sequence", "name"),
    [("seq", "seq"), ("`a b`", "a b"), ("struct(a, b)", None), ("s.seq", None), ("`s`.`seq`", None), ("seq + 1", None)],
)
def test_a_sequence_is_a_column_or_an_expression(sequence: str, name: str | None) -> None:
    assert rules(sequence_by=sequence).sequence_name == name


def test_kinds_of_history() -> None:
    assert [rules(scd=scd).history for scd in (1, "1", 2, "2")] == [False, False, True, True]
    assert rules(column_list=[]).columns is None


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ({"keys": []}, "keys"),
        ({"keys": " "}, "keys"),
        ({"keys": 7}, "keys"),
        ({"keys": [None]}, "keys"),
        ({"keys": "a.b"}, "keys"),
        ({"sequence_by": None}, "sequence_by"),
        ({"sequence_by": " "}, "sequence_by"),
        ({"sequence_by": ["a"]}, "sequence_by"),
        ({"delete_when": True}, "delete_when"),
        ({"scd": 3}, "scd"),
        ({"scd": True}, "scd"),
        ({"tombstones": None}, "tombstones"),
        ({"tombstones": False, "scd": 2}, "tombstones"),
        ({"column_list": "a", "except_column_list": "b"}, "column_list"),
        ({"ignore_null_updates": "no"}, "ignore_null_updates"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], option: str) -> None:
    with pytest.raises(OptionError, match=option) as error:
        rules(**given)
    assert error.value.parameters["option"] == option


@pytest.mark.parametrize(
    "given",
    [{"ignore_null_updates": True}, {"track_history_column_list": ["a"]}, {"track_history_except_column_list": "a"}],
)
def test_what_needs_more_memory_of_the_table_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOperationError, match=next(iter(given))):
        rules(**given)
