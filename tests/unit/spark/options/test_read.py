from __future__ import annotations

from dataclasses import fields, replace

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.spark.options.read import PINNED_OPTION, ReadOptions, parse_read_options, read_texts
from delta_pyds.spark.options.stream import parse_stream_options
from delta_pyds.spark.options.write import parse_write_options


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


def test_a_version_that_the_package_pins_is_no_unknown_option(caplog: pytest.LogCaptureFixture) -> None:
    parse_read_options({"path": "/t", "versionAsOf": "1", PINNED_OPTION: "true"})
    assert caplog.text == ""


def test_what_sparks_catalog_adds_is_no_unknown_option(caplog: pytest.LogCaptureFixture) -> None:
    """As it does for a table of CREATE TABLE ... USING deltapy, for reads and for INSERT INTO."""
    given = {"path": "/t", "owner": "me", "location": "file:/w/t", "provider": "deltapy", "is_managed_location": "true"}
    parse_read_options(given)
    incoming = StructType((StructField("id", LONG),))
    parse_write_options(given, incoming, overwrite=False, assumed_time_zone="UTC")
    assert caplog.text == ""


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


def test_the_change_feed_has_a_range() -> None:
    given = {"path": "/t", "readChangeFeed": "true", "startingVersion": "3", "endingTimestamp": "2024-01-01"}
    options = parse_read_options(given)
    assert (options.change_feed, options.starting_version, options.ending_timestamp) == (True, 3, "2024-01-01")
    assert parse_read_options({"path": "/t", "readChangeData": "TRUE", "startingVersion": "latest"}).change_feed
    assert not parse_read_options({"path": "/t", "readChangeFeed": "false"}).change_feed


@pytest.mark.parametrize("other", [{"versionAsOf": "1"}, {"timestampAsOf": "2024-01-01"}, {"rowIds": "true"}])
def test_the_change_feed_contradicts_what_reads_one_version(other: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=next(iter(other))):
        parse_read_options({"path": "/t", "readChangeFeed": "true", "startingVersion": "0", **other})


def test_a_stream_takes_a_thousand_files_unless_it_is_told_otherwise() -> None:
    options = parse_stream_options({"path": "/t"})
    assert (options.max_files, options.max_bytes, options.fail_on_data_loss) == (1000, None, True)
    assert not (options.ignore_deletes or options.ignore_changes or options.skip_change_commits)
    bytes_only = parse_stream_options({"maxBytesPerTrigger": "10m"})
    assert (bytes_only.max_files, bytes_only.max_bytes) == (None, 10 << 20)
    both = parse_stream_options({"MAXFILESPERTRIGGER": "7", "maxBytesPerTrigger": "1"})
    assert (both.max_files, both.max_bytes) == (7, 1)


def test_options_of_a_stream_have_their_older_names_too() -> None:
    options = parse_stream_options(
        {"ignoreFileDeletion": "true", "schemaLocation": "/s", "failOnDataLoss": "false", "excludeRegex": "a.*b"}
    )
    assert options.ignore_changes and options.schema_tracking_location == "/s" and not options.fail_on_data_loss
    assert options.exclude is not None and options.exclude.search("xaxbx")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"maxFilesPerTrigger": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"maxFilesPerTrigger": "many"}, "DELTA_ILLEGAL_OPTION"),
        ({"maxBytesPerTrigger": "0"}, "DELTA_ILLEGAL_OPTION"),
        ({"excludeRegex": "("}, "DELTA_ILLEGAL_OPTION"),
        ({"skipChangeCommits": "1"}, "DELTA_ILLEGAL_OPTION"),
        ({"endingVersion": "3"}, "DELTA_ILLEGAL_OPTION"),
        ({"timestampAsOf": "2024-01-01"}, "DELTA_ILLEGAL_OPTION"),
        (
            {"startingVersion": "1", "startingTimestamp": "2024-01-01"},
            "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        ),
    ],
)
def test_impossible_options_of_a_stream_are_refused(options: dict[str, str], code: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_stream_options({"path": "/t", **options})
    assert error.value.code == code


@pytest.mark.parametrize("zone", ["UTC", "Z", "+02:00", "GMT+5:30", "America/New_York", "PST"])
def test_time_zones_are_understood_as_spark_writes_them(zone: str) -> None:
    assert parse_read_options({"path": "/t", "timeZone": zone}).time_zone == zone


# --- the way back to texts

FULL = ReadOptions(
    "/t",
    version=3,
    timestamp="2026-01-31",
    where="id = 'ü'",
    columns="id,`a.b`",
    time_zone="Europe/Berlin",
    max_partition_bytes=5,
    open_cost_bytes=0,
    min_partitions=2,
    row_position=True,
    row_ids=True,
    push_filters=False,
    verify_page_checksums=False,
    check_footers=True,
    storage_options={"key": "k", "allowed_roots": ["/a"]},
    change_feed=True,
    starting_version="latest",
    starting_timestamp="2026-01-01",
    ending_version=9,
    ending_timestamp="2026-01-02",
    compute_changes="values",
    net_changes=True,
)


@pytest.mark.parametrize("option", ["computeChanges", "netChanges"])
def test_an_option_of_changes_needs_the_change_feed(option: str) -> None:
    given = {"path": "/t", option: "auto" if option == "computeChanges" else "true"}
    with pytest.raises(OptionError, match="readChangeFeed"):
        parse_read_options(given)
    parse_read_options({**given, "readChangeFeed": "true"})


def test_every_field_of_a_read_comes_back_from_its_texts() -> None:
    blank = ReadOptions("/t")
    assert [f.name for f in fields(FULL) if getattr(FULL, f.name) == getattr(blank, f.name)] == ["path"]
    of_changes = (
        "change_feed", "starting_version", "starting_timestamp", "ending_version", "ending_timestamp",
        "compute_changes", "net_changes",
    )  # fmt: skip
    plain = replace(FULL, timestamp=None, **{name: getattr(blank, name) for name in of_changes})
    changes = replace(FULL, version=None, timestamp=None, row_ids=False, row_position=False)
    for options in (blank, plain, changes, replace(plain, version=None, timestamp="2026-01-31"), ReadOptions("/t", 0)):
        assert parse_read_options({**read_texts(options), "path": "/t"}) == options
    assert read_texts(blank) == {}
