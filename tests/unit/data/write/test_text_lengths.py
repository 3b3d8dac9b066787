from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from delta_pyds.data.write.text_lengths import plan_text_lengths
from delta_pyds.errors import ConstraintViolationError
from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import LONG, STRING, ArrayType, DataType, MapType, StructField, StructType


def limited(declared: str, values: list[Any], data_type: DataType, arrow: pa.DataType) -> list[Any]:
    field = StructField("c", data_type, metadata={CHAR_VARCHAR_TYPE: declared})
    convert = plan_text_lengths(field, arrow)
    assert convert is not None
    result = convert(pa.array(values, arrow))
    result.validate(full=True)
    assert result.type == arrow
    return list(result.to_pylist())


def texts(declared: str, values: list[str | None]) -> list[str | None]:
    return limited(declared, values, STRING, pa.string())


def test_texts_that_fit_a_varchar_are_not_touched() -> None:
    field = StructField("c", STRING, metadata={CHAR_VARCHAR_TYPE: "varchar(3)"})
    convert = plan_text_lengths(field, pa.string())
    array = pa.array(["", "abc", None, "äöü", "😀😀😀"])
    assert convert is not None
    assert convert(array) is array


def test_a_column_without_lengths_has_nothing_to_do() -> None:
    assert plan_text_lengths(StructField("c", STRING), pa.string()) is None


def test_a_char_is_written_as_it_came() -> None:
    """The reference pads none, by path and by name: Spark pads what it reads."""
    assert texts("char(3)", ["a", "a ", "", None, "abc", "ö"]) == ["a", "a ", "", None, "abc", "ö"]


def test_lengths_are_counted_in_characters() -> None:
    assert texts("char(4)", ["éééé", "éé", None, "😀"]) == ["éééé", "éé", None, "😀"]
    assert texts("varchar(2)", ["éé", "😀😀"]) == ["éé", "😀😀"]


@pytest.mark.parametrize("declared", ["varchar(3)", "char(3)"])
@pytest.mark.parametrize("text", ["abcd", "abc d", "äöüß", "abc\t", "    x", "abc ", "a     "])
def test_a_text_that_is_too_long_fails_with_the_text_and_the_limit(declared: str, text: str) -> None:
    with pytest.raises(ConstraintViolationError, match=r"'c' (VAR)?CHAR\(3\)") as e:
        texts(declared, ["ok", None, text, "also too long"])
    assert e.value.code == "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
    assert e.value.parameters["value"] == text.replace("\t", r"\t")


@pytest.mark.parametrize("declared", ["varchar(3)", "char(3)"])
def test_a_text_too_long_that_is_no_utf8_fails_with_a_sentence(declared: str) -> None:
    convert = plan_text_lengths(StructField("c", STRING, metadata={CHAR_VARCHAR_TYPE: declared}), pa.string())
    assert convert is not None
    with pytest.raises(ConstraintViolationError, match=r"'c' .* is not UTF-8") as e:
        convert(pa.array([b"abc", b"\xff" * 5]).view(pa.string()))
    assert e.value.code == "INVALID_UTF8_STRING"


def test_columns_without_a_text_pass() -> None:
    assert texts("char(3)", [None, None]) == [None, None]
    assert texts("char(3)", []) == []


def test_lengths_hold_inside_arrays_structs_and_maps() -> None:
    arrow = pa.struct(
        [("n", pa.int64()), ("a", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.list_(pa.string())))]
    )
    kind = StructType(
        (
            StructField("n", LONG),
            StructField("a", ArrayType(STRING)),
            StructField("m", MapType(STRING, ArrayType(STRING))),
        )
    )
    declared = "struct<n:bigint,a:array<varchar(2)>,m:map<char(2),array<char(1)>>>"
    good = {"n": 1, "a": ["ab", None], "m": [("k", ["v", ""])]}
    values = [good, None, {"n": None, "a": None, "m": None}]
    assert limited(declared, values, kind, arrow) == values
    assert limited(declared, [], kind, arrow) == []
    with pytest.raises(ConstraintViolationError, match=r"c\.a\.element"):
        limited(declared, [good | {"a": ["abc"]}], kind, arrow)
    with pytest.raises(ConstraintViolationError, match=r"c\.m\.value\.element"):
        limited(declared, [good | {"m": [("k", ["vv"])]}], kind, arrow)
    with pytest.raises(ConstraintViolationError, match=r"c\.m\.key"):
        limited(declared, [good | {"m": [("key", None)]}], kind, arrow)


def test_a_text_below_a_null_struct_is_no_text() -> None:
    hidden = pa.StructArray.from_arrays([pa.array(["too long", "ok"])], ["a"], mask=pa.array([True, False]))
    kind = StructType((StructField("a", STRING),))
    field = StructField("c", kind, metadata={CHAR_VARCHAR_TYPE: "struct<a:varchar(3)>"})
    convert = plan_text_lengths(field, hidden.type)
    assert convert is not None
    assert convert(hidden).to_pylist() == [None, {"a": "ok"}]
