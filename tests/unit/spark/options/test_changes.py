"""Spark's options of a read of changes, as options of our feed."""

from __future__ import annotations

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.spark.options.changes import changes_read
from delta_pyds.spark.options.read import parse_read_options

FEED = {"readchangefeed": "true", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingVersion": "1"}, {"startingversion": "1"}),
        (
            {"startingVersion": "1", "endingVersion": "5", "startingBoundInclusive": "FALSE"},
            {"startingversion": "2", "endingversion": "5"},
        ),
        (
            {"STARTINGVERSION": "1", "endingVersion": "5", "endingBoundInclusive": "false"},
            {"startingversion": "1", "endingversion": "4"},
        ),
        (
            {"startingVersion": "1", "endingVersion": "5", "endingBoundInclusive": "true"},
            {"startingversion": "1", "endingversion": "5"},
        ),
        # a bound that is not given is neither excluded nor included
        ({"startingVersion": "1", "endingBoundInclusive": "false"}, {"startingversion": "1"}),
        ({"startingVersion": "1", "deduplicationMode": "none"}, {"startingversion": "1"}),
        ({"startingVersion": "1", "deduplicationMode": "DROPCARRYOVERS"}, {"startingversion": "1"}),
        ({"startingVersion": "1", "deduplicationMode": "netchanges"}, {"startingversion": "1", "netchanges": "true"}),
        ({"startingVersion": "1", "computeUpdates": "true"}, {"startingversion": "1", "computechanges": "rowIds"}),
        (
            {"startingVersion": "1", "computeUpdates": "true", "computeChanges": "auto"},
            {"startingversion": "1", "computechanges": "auto"},
        ),
        ({"startingTimestamp": "2026-01-31 12:00"}, {"startingtimestamp": "2026-01-31 12:00"}),
        (
            {"startingTimestamp": "2026-01-31", "startingBoundInclusive": "false"},
            {"startingtimestamp": "2026-01-31 00:00:00.001000Z"},
        ),
        (
            {"startingTimestamp": "2026-01-31", "startingBoundInclusive": "false", "timeZone": "+02:00"},
            {"startingtimestamp": "2026-01-30 22:00:00.001000Z", "timezone": "+02:00"},
        ),
        # commits have whole milliseconds: the next one is after the bound, whatever its fraction
        (
            {"startingTimestamp": "2026-01-31 00:00:00.0005", "startingBoundInclusive": "false"},
            {"startingtimestamp": "2026-01-31 00:00:00.001000Z"},
        ),
        (
            {
                "startingTimestamp": "2026-01-31",
                "endingTimestamp": "2026-02-01 00:00:00.0005",
                "endingBoundInclusive": "false",
            },
            {"startingtimestamp": "2026-01-31", "endingtimestamp": "2026-02-01 00:00:00Z"},
        ),
        (
            {"startingTimestamp": "2026-01-31", "endingTimestamp": "2026-02-01", "endingBoundInclusive": "false"},
            {"startingtimestamp": "2026-01-31", "endingtimestamp": "2026-01-31 23:59:59.999000Z"},
        ),
    ],
)
def test_an_option_of_spark_is_one_of_the_feed(given: dict[str, str], expected: dict[str, str]) -> None:
    read = changes_read(given, "UTC")
    assert read.options == FEED | expected
    assert read.images == (given.get("computeUpdates") == "true")
    assert parse_read_options({**read.options, "path": "/t"}).change_feed


def test_a_condition_on_the_change_type_is_about_the_type_that_is_shown() -> None:
    given = {"startingVersion": "1", "where": "_change_type = 'delete'"}
    shown = changes_read(given, "UTC")
    assert (shown.where, shown.options.get("where")) == ("_change_type = 'delete'", None)
    images = changes_read({**given, "computeUpdates": "true"}, "UTC")
    assert (images.where, images.options.get("where")) == (None, "_change_type = 'delete'")
    assert changes_read({**given, "where": "_CHANGE_TYPE <> ''"}, "UTC").where is not None
    other = changes_read({**given, "where": "id = 1"}, "UTC")
    assert (other.where, other.options.get("where")) == (None, "id = 1")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "DELTA_CHANGELOG_UNBOUNDED_RANGE"),
        ({"endingVersion": "1"}, "INVALID_CDC_OPTION.MISSING_STARTING_VERSION"),
        ({"endingTimestamp": "2026-01-01"}, "INVALID_CDC_OPTION.MISSING_STARTING_TIMESTAMP"),
        ({"startingVersion": "1", "endingTimestamp": "2026-01-01"}, "INVALID_CDC_OPTION.CONFLICTING_RANGE_TYPES"),
        ({"startingVersion": "1", "deduplicationMode": "all"}, "INVALID_CDC_OPTION.INVALID_DEDUPLICATION_MODE"),
        ({"startingVersion": "1", "computeUpdates": "maybe"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "1", "startingBoundInclusive": "no"}, "DELTA_ILLEGAL_OPTION"),
        ({"startingVersion": "1", "netChanges": "true"}, "DELTA_ILLEGAL_OPTION"),
        (
            {"startingVersion": "a", "startingBoundInclusive": "false"},
            "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
        ),
        (
            {"startingVersion": "0", "endingVersion": "0", "endingBoundInclusive": "false"},
            "DELTA_INVALID_CDC_RANGE",
        ),
        ({"startingTimestamp": "soon", "startingBoundInclusive": "false"}, "DELTA_TIMESTAMP_INVALID"),
        (
            {"startingTimestamp": "9999-12-31 23:59:59.999", "startingBoundInclusive": "false"},
            "DELTA_TIMESTAMP_INVALID",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], code: str) -> None:
    with pytest.raises(OptionError) as caught:
        changes_read(given, "UTC")
    assert caught.value.code == code


def test_a_stream_may_begin_where_it_likes_and_has_no_net_changes() -> None:
    assert changes_read({}, "UTC", stream=True).options == FEED
    for given in ({"deduplicationMode": "netChanges"}, {"startingVersion": "1", "endingVersion": "2"}):
        with pytest.raises(OptionError, match="a stream has no end"):
            changes_read(given, "UTC", stream=True)


@pytest.mark.parametrize(
    "name", ["deduplicationMode", "computeUpdates", "startingBoundInclusive", "endingBoundInclusive"]
)
def test_read_change_feed_refuses_them(name: str) -> None:
    """As the reference's main branch does: to ignore them would give other changes than were asked for."""
    with pytest.raises(OptionError, match=name) as caught:
        parse_read_options({"path": "/t", "readChangeFeed": "true", "startingVersion": "1", name: "true"})
    assert caught.value.code == "DELTA_CHANGELOG_UNSUPPORTED_OPTION"
