from __future__ import annotations

import pytest

from delta_pyds.errors import OptionError, UnsupportedOperationError
from delta_pyds.spark.options import parse_read_options


def test_keys_match_whatever_their_case_and_values_are_typed() -> None:
    options = parse_read_options(
        {
            "PATH": "/t", "versionasof": "3", "MaxPartitionBytes": "64m", "openCostInBytes": "0",
            "rowPosition": "TRUE", "minPartitions": "5", "storageOptions": '{"key": "x"}', "timeZone": "Europe/Paris",
        }
    )  # fmt: skip
    assert (options.path, options.version, options.max_partition_bytes) == ("/t", 3, 64 << 20)
    assert (options.open_cost_bytes, options.row_position, options.row_ids) == (0, True, False)
    assert (options.min_partitions, options.storage_options, options.time_zone) == (5, {"key": "x"}, "Europe/Paris")


def test_unknown_options_are_logged_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    assert parse_read_options({"path": "/t", "mergeSchema": "true"}).path == "/t"
    assert "mergeschema" in caplog.text


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "DELTA_ILLEGAL_OPTION"),
        ({"path": " "}, "DELTA_ILLEGAL_OPTION"),
        ({"paths": '["a","b"]'}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "versionAsOf": "-1"}, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE"),
        ({"path": "/t", "versionAsOf": "1.0"}, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE"),
        ({"path": "/t", "versionAsOf": "1", "timestampAsOf": "2024"}, "DELTA_ONEOF_IN_TIMETRAVEL"),
        ({"path": "/t", "maxPartitionBytes": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "maxPartitionBytes": "1x"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "minPartitions": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "rowIds": "1"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "storageOptions": "[]"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "storageOptions": "{"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "timeZone": "Nowhere"}, "DELTA_ILLEGAL_OPTION"),
        ({"path": "/t", "timeZone": ""}, "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, str], code: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_read_options(options)
    assert error.value.code == code


def test_the_change_feed_is_refused_by_name_until_it_is_there() -> None:
    with pytest.raises(UnsupportedOperationError, match="readChangeFeed"):
        parse_read_options({"path": "/t", "readChangeFeed": "true"})
    assert parse_read_options({"path": "/t", "readChangeFeed": "false"}).path == "/t"


@pytest.mark.parametrize("zone", ["UTC", "Z", "+02:00", "GMT+5:30", "America/New_York", "PST"])
def test_time_zones_are_understood_as_spark_writes_them(zone: str) -> None:
    assert parse_read_options({"path": "/t", "timeZone": zone}).time_zone == zone
