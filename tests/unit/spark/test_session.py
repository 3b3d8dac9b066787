"""The arguments of ``delta_pyds.write`` as options."""

from __future__ import annotations

import json

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.arguments import property_options
from delta_pyds.spark.options.write import parse_write_options


def test_properties_of_any_name_reach_the_request() -> None:
    given = property_options({"delta.appendOnly": True, "Owner": "me", "n": 1})
    assert json.loads(given["tableProperties"]) == {"Owner": "me", "n": "1"}
    request = parse_write_options({"path": "/t", **given}, StructType(()), overwrite=False, assumed_time_zone="UTC")
    assert request.properties == {"delta.appendOnly": "true", "Owner": "me", "n": "1"}
    assert property_options(None) == {}


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}', '"a"'])
def test_what_are_no_properties_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="tableProperties"):
        parse_write_options(
            {"path": "/t", "tableProperties": text}, StructType(()), overwrite=False, assumed_time_zone="UTC"
        )
