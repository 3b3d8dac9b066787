"""A name that is nearly an option's is a mistake; what others call theirs is not."""

from __future__ import annotations

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import StructType
from delta_pyds.spark.options.names import _OF_OTHERS, WRITE_NAMES
from delta_pyds.spark.options.read import READ_OPTIONS, STREAM_OPTIONS, parse_read_options
from delta_pyds.spark.options.write import parse_write_options


@pytest.mark.parametrize(
    ("given", "meant"),
    [("versionAs0f", "versionAsOf"), ("timestampAsOff", "timestampAsOf"), ("wher", "where"), ("colums", "columns"),
     ("readChangefeeds", "readChangeFeed"), ("maxFilePerTrigger", "maxFilesPerTrigger")],
)  # fmt: skip
def test_a_reads_option_that_is_nearly_one_is_refused(given: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"Did you mean {meant}"):
        parse_read_options({"path": "/t", given: "1"})
    # whether it is a writer's is not known there
    parse_read_options({"path": "/t", given: "1"}, quiet=True)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("mergeSchemas", "mergeSchema"), ("replaceWere", "replaceWhere"), ("partitonBy", "partitionBy"),
     ("txnAppID_", "txnAppId")],
)  # fmt: skip
def test_a_writes_option_that_is_nearly_one_is_refused(given: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"Did you mean {meant}"):
        parse_write_options({"path": "/t", given: "1"}, StructType(()), overwrite=False, assumed_time_zone="UTC")


@pytest.mark.parametrize(
    "name", sorted({*_OF_OTHERS, *map(str.lower, WRITE_NAMES), *READ_OPTIONS, *STREAM_OPTIONS, "myteam.option", "hint"})
)
def test_what_anybody_knows_is_not_refused_for_its_name(name: str) -> None:
    for parse in (
        lambda: parse_read_options({"path": "/t", name: "x"}),
        lambda: parse_write_options(
            {"path": "/t", name: "x"}, StructType(()), overwrite=False, assumed_time_zone="UTC"
        ),
    ):
        try:
            parse()
        except Exception as error:  # for its value
            assert "Did you mean" not in str(error)
