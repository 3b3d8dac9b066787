"""The settings under which a query may be repeated, over a session of Spark Connect."""

from __future__ import annotations

from typing import Any

import pytest

from delta_pyds.spark.row_changes.repeatable import errors_of_mends
from delta_pyds.spark.row_changes.session_settings import SessionSettings
from delta_pyds.table.transaction.mend import NotRepeatableError

AT_START = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true", "my.own": "1"}
MEANINGFUL = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": None,
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.of.a.later.version": "true",
    "spark.comet.enabled": "true",
}
OTHERS = {
    "my.own": "2",
    "spark.databricks.delta.commitInfo.userMetadata": "a note",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.catalog.of_files": "a.Class",
    "spark.sql.shuffle.partitions": "7",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
}


class Session:
    """A session of Spark Connect, and its settings. ``num_calls``: how often the server was asked for them."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.settings = dict(AT_START)
        self.num_calls = 0
        self.is_gone = False

    @property
    def conf(self) -> Any:
        return self

    @property
    def getAll(self) -> dict[str, str]:  # noqa: N802 - Spark's own name for it
        self.num_calls += 1
        if self.is_gone:
            raise ConnectionError
        return dict(self.settings)


def began(spark: Any) -> SessionSettings:
    return SessionSettings(spark)


def changed(name: str, value: str | None) -> tuple[SessionSettings, Session]:
    spark = Session()
    before = began(spark)
    if value is None:
        del spark.settings[name]
    else:
        spark.settings[name] = value
    return before, spark


@pytest.mark.parametrize("name", MEANINGFUL)
def test_another_meaning(name: str) -> None:
    before, _ = changed(name, MEANINGFUL[name])
    with pytest.raises(NotRepeatableError):
        before.require_same()


@pytest.mark.parametrize("name", OTHERS)
def test_a_setting_without_meaning(name: str) -> None:
    changed(name, OTHERS[name])[0].require_same()


def test_a_look_is_one_call() -> None:
    spark = Session()
    began(spark).require_same()
    assert spark.num_calls == 2


def test_an_error_that_other_settings_may_have_caused() -> None:
    before, _ = changed("spark.sql.ansi.enabled", "false")
    with pytest.raises(NotRepeatableError), errors_of_mends(before):
        raise ValueError("a cast")
    same, _ = changed("my.own", "2")
    with pytest.raises(ValueError, match="a cast"), errors_of_mends(same):
        raise ValueError("a cast")


def test_an_error_of_a_session_that_is_gone() -> None:
    before, spark = changed("my.own", "2")
    spark.is_gone = True
    with pytest.raises(ValueError, match="a task"), errors_of_mends(before):
        raise ValueError("a task")
