from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delta_pyds.errors import UserError
from delta_pyds.protocol.stream_offset import BASE_INDEX, METADATA_CHANGE_INDEX, StreamOffset

OFFSETS = st.builds(
    StreamOffset,
    st.text(max_size=4),
    st.integers(0, 2**62),
    st.integers(BASE_INDEX, 2**40),
    st.booleans(),
) | st.builds(StreamOffset, st.text(max_size=4), st.integers(0, 9), st.just(METADATA_CHANGE_INDEX), st.just(False))


def reference(**changes: Any) -> dict[str, Any]:
    """An offset as the reference writes it."""
    offset = {"sourceVersion": 1, "reservoirId": "a", "reservoirVersion": 3, "index": 5, "isStartingVersion": False}
    return {**offset, **changes}


def test_an_offset_has_the_fields_of_the_reference_in_one_order() -> None:
    text = json.dumps(StreamOffset("a", 3, 5).to_json())
    assert text == json.dumps(reference())


def test_before_the_first_file_is_written_as_minus_one() -> None:
    assert StreamOffset("a", 3, is_initial=True).to_json() == reference(index=-1, isStartingVersion=True)


def test_a_change_of_the_schema_is_written_with_source_version_3() -> None:
    assert StreamOffset("a", 3, METADATA_CHANGE_INDEX).to_json() == reference(sourceVersion=3, index=-20)


@given(OFFSETS)
def test_what_was_written_is_read_back(offset: StreamOffset) -> None:
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_behind_a_change_of_the_schema_is_read_as_at_it() -> None:
    """The reference goes on from there with the files of the same commit, as this source does."""
    found = StreamOffset.from_json(reference(sourceVersion=3, index=-19))
    assert found == StreamOffset("a", 3, METADATA_CHANGE_INDEX)


def test_positions_ascend_as_a_stream_proceeds() -> None:
    way = [
        StreamOffset("a", 3, BASE_INDEX),
        StreamOffset("a", 3, METADATA_CHANGE_INDEX),
        StreamOffset("a", 3, 0),
        StreamOffset("a", 3, 1),
        StreamOffset("a", 3, BASE_INDEX, True),
        StreamOffset("a", 3, 0, True),
        StreamOffset("a", 4, BASE_INDEX),
    ]
    positions = [offset.position for offset in way]
    assert positions == sorted(positions)
    assert len(set(positions)) == len(positions)


@pytest.mark.parametrize(
    "damaged",
    [
        {"reservoirId": None},
        {"reservoirId": 3},
        {"reservoirVersion": -1},
        {"reservoirVersion": True},
        {"reservoirVersion": "3"},
        {"reservoirVersion": 3.0},
        {"index": None},
        {"index": True},
        {"index": -2},
        {"index": -20},
        {"index": -100},
        {"isStartingVersion": 1},
        {"isStartingVersion": "true"},
        {"sourceVersion": None},
        {"sourceVersion": True},
        {"sourceVersion": 1.0},
        {"sourceVersion": [1]},
        {"sourceVersion": 3, "index": -20, "isStartingVersion": True},
    ],
)
def test_what_nobody_wrote_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(UserError) as error:
        StreamOffset.from_json(reference(**damaged))
    assert error.value.code == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


@pytest.mark.parametrize("value", [None, [], "x", 3, {}, {"partition": 1}])
def test_what_is_no_offset_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match="another source"):
        StreamOffset.from_json(value)


@pytest.mark.parametrize("source_version", [2, 4, 0])
def test_another_source_version_is_named(source_version: int) -> None:
    with pytest.raises(UserError, match=f"source version {source_version}") as error:
        StreamOffset.from_json(reference(sourceVersion=source_version))
    assert error.value.code == "DELTA_INVALID_SOURCE_VERSION"


@pytest.mark.parametrize("key", ["sourceVersion", "reservoirVersion", "index"])
@pytest.mark.parametrize("number", [2**63, 10**4000])
def test_numbers_are_of_64_bits(key: str, number: int) -> None:
    with pytest.raises(UserError) as failure:
        StreamOffset.from_json({**StreamOffset("t", 3, 1).to_json(), key: number})
    assert failure.value.code == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
    assert len(str(failure.value)) < 700
