"""Dates, timestamps and zones beyond what Python's own types reach."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from delta_pyds.errors import ExpressionError
from delta_pyds.protocol.temporal import TimeZone, parse_date, parse_timestamp, show_date, show_timestamp

UTC = TimeZone("UTC")
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        (" 1970-1-2 ", 1),
        ("1970", 0),
        ("1970-02", 31),
        ("1969-12-31T25:99 anything", -1),
        ("9999-12-31", 2932896),
        ("10000-01-01", 2932897),
        ("+10000-01-01", 2932897),
        ("0001-01-01", -719162),
        ("0000-12-31", -719163),
        ("-0001-12-31", -719529),
        ("2000-02-29", 11016),
    ],
)
def test_dates_parse_in_any_year(text: str, days: int) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize(
    "text", ["", "70-01-01", "1970-13-01", "1900-02-29", "1970-01-01x", "1970/01/01", "12345678", "today"]
)
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_date(text)


@pytest.mark.parametrize("days", [0, -1, 2932897, -719163, -719529, 10_000_000, -10_000_000])
def test_dates_show_as_they_parse(days: int) -> None:
    assert parse_date(show_date(days)) == days


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1970-01-01 00:00:00.123456789", 123456),
        ("1970-01-01 1:2:3", 3723 * SECOND),
        ("1970-01-01 10", 36000 * SECOND),
        ("1970-01-01 10:30", 37800 * SECOND),
        ("1970-01-01 00:00:00+5", -5 * 3600 * SECOND),
        ("1970-01-01 00:00:00 -05:30", 19800 * SECOND),
        ("1970-01-01 00:00:00 UTC", 0),
        ("2020-07-01 00:00:00 America/New_York", 1593576000 * SECOND),
        ("1970", 0),
    ],
)
def test_timestamps_parse_with_and_without_a_zone(text: str, micros: int) -> None:
    assert parse_timestamp(text, UTC) == micros


@pytest.mark.parametrize(
    "text",
    ["1970-01-01 24:00:00", "1970-01-01 00:60:00", "10:00:00", "1970-01-01 10:", "1970-01-01T00:00Z", "now", "epoch",
     "1970-01-01 00:00:00 EST5", "300000-01-01", "1970-01-01 00:00:00.", "1970-01-01 00:00:00+19:99"],
)  # fmt: skip
def test_what_is_no_timestamp_is_refused(text: str) -> None:
    with pytest.raises((ValueError, ExpressionError)):
        parse_timestamp(text, UTC)


def test_a_wall_clock_time_takes_no_zone() -> None:
    assert parse_timestamp("1970-01-01 00:00:01", None) == SECOND
    with pytest.raises(ValueError, match="Z"):
        parse_timestamp("1970-01-01 00:00:01Z", None)


@pytest.mark.parametrize("name", ["America/New_York", "Europe/Paris", "Asia/Kolkata", "Australia/Lord_Howe"])
@pytest.mark.parametrize("year", [1900, 1942, 1999, 2024, 2060])
def test_offsets_agree_with_the_zone_database(name: str, year: int) -> None:
    zone, reference = TimeZone(name), ZoneInfo(name)
    for day in range(0, 365, 11):
        moment = dt.datetime(year, 1, 1, 12, tzinfo=dt.timezone.utc) + dt.timedelta(days=day)
        offset = moment.astimezone(reference).utcoffset()
        assert offset is not None
        assert zone.offset_at_instant(int(moment.timestamp())) == int(offset.total_seconds())
        assert zone.instant_to_wall(zone.wall_to_instant(day * 86_400 * SECOND)) == day * 86_400 * SECOND


def test_rules_go_on_after_the_year_9999() -> None:
    zone = TimeZone("America/New_York")
    july, january = parse_date("12024-07-01") * 86_400, parse_date("12024-01-15") * 86_400
    assert (zone.offset_at_instant(july), zone.offset_at_instant(january)) == (-4 * 3600, -5 * 3600)
    assert zone.offset_at_wall(parse_date("-9999-07-01") * 86_400) == zone.offset_at_wall(
        parse_date("1800-01-01") * 86_400
    )


def test_clocks_set_forward_move_a_missing_time_and_set_back_take_the_first() -> None:
    zone = TimeZone("America/New_York")
    missing, double = parse_timestamp("2020-03-08 02:30:00", None), parse_timestamp("2020-11-01 01:30:00", None)
    assert show_timestamp(zone.wall_to_instant(missing)) == "2020-03-08 07:30:00"
    assert show_timestamp(zone.wall_to_instant(double)) == "2020-11-01 05:30:00"


@pytest.mark.parametrize(
    ("name", "date", "start"),
    [
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04 03:00:00"),  # midnight was skipped
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18 03:00:00"),
        ("America/Toronto", "1919-03-31", "1919-03-31 04:30:00"),  # from 23:30 straight to 00:30
        ("Asia/Kolkata", "2020-01-01", "2019-12-31 18:30:00"),
        ("+05:30", "2020-01-01", "2019-12-31 18:30:00"),
    ],
)
def test_a_day_starts_at_its_first_instant(name: str, date: str, start: str) -> None:
    assert show_timestamp(TimeZone(name).start_of_day(parse_date(date))) == start


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("PST", -8),
        ("JST", 9),
        ("UTC+3", 3),
        ("GMT-03:00", -3),
        ("+1", 1),
        ("-0800", -8),
        ("Z", 0),
        ("EST", -5),
        ("Etc/GMT+9", -9),
    ],
)
def test_zones_go_by_the_names_that_spark_takes(name: str, hours: int) -> None:
    assert TimeZone(name).offset_at_instant(1_579_000_000) == hours * 3600


@pytest.mark.parametrize("name", ["", "Nowhere", "+19:00", "UTC+", "../etc/passwd"])
def test_a_name_that_is_no_zone_is_an_error(name: str) -> None:
    with pytest.raises(ExpressionError):
        TimeZone(name)


def test_a_zone_tells_whether_it_was_asked() -> None:
    zone = TimeZone("Asia/Kolkata")
    parse_timestamp("2020-01-01 00:00:00Z", zone)
    assert not zone.used
    parse_timestamp("2020-01-01 00:00:00", zone)
    assert zone.used
