from __future__ import annotations

import json

import pytest

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.actions import Metadata
from delta_pyds.protocol.schema import LONG, StructField, StructType, schema_to_string
from delta_pyds.table.definition.identity import (
    furthest_marks,
    keep_high_water_marks,
    synced_mark,
    with_high_water_marks,
)
from delta_pyds.tasks.write_state import IdentityColumn

MARK = "delta.identity.highWaterMark"


def identity(name: str = "id", **given: object) -> StructField:
    values = {"start": 1, "step": 2, "allowExplicitInsert": False, **given}
    return StructField(name, LONG, metadata={f"delta.identity.{k}": v for k, v in values.items()})


def metadata_of(*fields: StructField) -> Metadata:
    return Metadata(schema_string=schema_to_string(StructType(fields)))


def marks_of(metadata: Metadata) -> dict[str, object]:
    fields = json.loads(metadata.schema_string or "")["fields"]
    return {f["name"]: f["metadata"][MARK] for f in fields if MARK in f["metadata"]}


def test_the_furthest_value_is_the_one_along_the_step() -> None:
    schema = StructType((identity("up", step=3), identity("down", step=-1), identity("none"), StructField("a", LONG)))
    outputs = [{"up": 4, "down": -7}, {"up": 10}, {"down": -2}, {"up": 7, "down": -5}]
    assert furthest_marks(outputs, schema) == {"up": 10, "down": -7}


@pytest.mark.parametrize(
    ("step", "known", "new", "expected"),
    [
        (2, None, 5, 5),
        (2, 5, 7, 7),
        (2, 5, 5, 5),
        (2, 5, 3, 5),
        (-2, None, -5, -5),
        (-2, -5, -7, -7),
        (-2, -5, -3, -5),
    ],
)
def test_a_mark_never_moves_back(step: int, known: int | None, new: int, expected: int) -> None:
    before = {} if known is None else {"highWaterMark": known}
    metadata = metadata_of(StructField("a", LONG), identity(step=step, **before))
    after = with_high_water_marks(metadata, {"id": new})
    assert marks_of(after) == {"id": expected}
    # metadata that says the same is not committed again
    assert (after is metadata) == (known == expected)


def test_nothing_but_the_mark_changes_in_the_schema() -> None:
    schema = json.loads(metadata_of(identity(), identity("other")).schema_string or "")
    schema["fields"][0]["metadata"]["of another engine"] = {"x": [1.50]}
    after = with_high_water_marks(Metadata(schema_string=json.dumps(schema)), {"id": 9})
    schema["fields"][0]["metadata"][MARK] = 9
    assert json.loads(after.schema_string or "") == schema


@pytest.mark.parametrize(
    ("new", "kept"),
    [
        (identity(), True),
        (identity("ID"), True),
        (identity(allowExplicitInsert=True), True),
        (identity(start=2), False),
        (identity(step=4), False),
        (identity(step=-2), False),
        (identity("another"), False),
        (StructField("id", LONG), False),
    ],
)
def test_a_column_that_numbers_as_before_goes_on_where_it_was(new: StructField, kept: bool) -> None:
    existing = StructType((StructField("a", LONG), identity(highWaterMark=11)))
    (found,) = keep_high_water_marks(StructType((new,)), existing)
    assert found.metadata == ({**new.metadata, MARK: 11} if kept else new.metadata)


def test_a_column_without_a_mark_stays_without() -> None:
    schema = StructType((identity(),))
    assert keep_high_water_marks(schema, schema) == schema


@pytest.mark.parametrize(
    ("start", "step", "known", "furthest", "expected"),
    [
        (1, 3, None, 1, 1),
        (1, 3, None, 2, 4),
        (1, 3, None, 7, 7),
        (1, 3, 4, 7, 7),
        (1, 3, 4, 8, 10),
        (1, 3, 7, 5, None),
        (1, 3, 4, 4, None),
        (1, -3, None, 1, 1),
        (1, -3, None, 0, -2),
        (1, -3, -2, -4, -5),
        (1, -3, -5, -1, None),
        # it is not left out for values before the start
        (100, 2, None, 99, None),
        (-10, -2, None, -9, None),
        (1, 3, 7, 0, None),
        # a mark that is itself before the start is of another writer, and goes as far as the values
        (100, 48, -20, 5, 52),
        (100, 48, 4, 4, None),
        (100, -48, 220, 195, 148),
        (0, 5, -10, 12, 15),
        ((1 << 63) - 2, 1, None, (1 << 63) - 1, (1 << 63) - 1),
        (-(1 << 63), 2, None, (1 << 63) - 2, (1 << 63) - 2),
    ],
)
def test_a_mark_follows_the_values_of_the_table(
    start: int, step: int, known: int | None, furthest: int, expected: int | None
) -> None:
    found = synced_mark(IdentityColumn(start, step, known, True), furthest, "id")
    assert found == expected


@pytest.mark.parametrize(("step", "furthest"), [(10, (1 << 63) - 1), (-10, -(1 << 63))])
def test_no_mark_is_beyond_bigint(step: int, furthest: int) -> None:
    with pytest.raises(ExpressionError, match="BIGINT") as found:
        synced_mark(IdentityColumn(1, step, None, True), furthest, "id")
    assert found.value.code == "ARITHMETIC_OVERFLOW"
