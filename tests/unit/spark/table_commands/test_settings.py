"""What a session's settings mean for one command."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from delta_pyds.errors import OptionError
from delta_pyds.spark.install.write_settings import with_settings
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.session import _require_dynamic_overwrite
from delta_pyds.spark.settings import DYNAMIC_OVERWRITE, TXN_APP_ID, TXN_AUTO_RESET, TXN_VERSION, USER_METADATA
from delta_pyds.spark.table_commands.settings import for_one_command, without_transaction


class Settings(dict[str, str]):
    """``spark.conf`` of a session that has these settings."""

    def unset(self, key: str) -> None:
        self.pop(key, None)


def session(**settings: str) -> Any:
    return SimpleNamespace(conf=Settings(settings))


def transaction(**more: str) -> Any:
    return session(**{TXN_APP_ID: "job", TXN_VERSION: "7", **more})


def test_a_session_that_resets_its_version_gives_it_to_one_command() -> None:
    kept, reset = transaction(), transaction(**{TXN_AUTO_RESET: "true"})
    for spark in (kept, reset):
        assert for_one_command(TableHandle(spark, "/t")).txn == ("job", 7)
    assert for_one_command(TableHandle(kept, "/t")).txn == ("job", 7)
    with pytest.raises(OptionError) as error:
        for_one_command(TableHandle(reset, "/t"))
    assert error.value.code == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"


def test_a_transaction_that_is_given_or_not_needed_leaves_the_sessions_alone() -> None:
    spark = transaction(**{TXN_AUTO_RESET: "true", USER_METADATA: "m"})
    assert for_one_command(TableHandle(spark, "/t", txn=("other", 1))).txn == ("other", 1)
    given = with_settings(spark, "/t", {"txnAppId": "other", "txnVersion": "1"}, overwrite=False)
    assert (given["txnAppId"], given["userMetadata"]) == ("other", "m")
    upkeep = without_transaction(TableHandle(spark, "/t", txn=("other", 1)))
    assert (upkeep.txn, upkeep.user_metadata) == (None, "m")
    assert spark.conf[TXN_VERSION] == "7"
    written = with_settings(spark, "/t", {}, overwrite=False)
    assert (written["txnAppId"], written["txnVersion"]) == ("job", "7")
    assert TXN_VERSION not in spark.conf
    # an application without a version stops commands that need one, and no others
    without_transaction(TableHandle(spark, "/t"))


def test_dynamic_overwrites_can_be_turned_off() -> None:
    for spark in (session(), session(**{DYNAMIC_OVERWRITE: "true"})):
        _require_dynamic_overwrite(cast(Any, spark))
    with pytest.raises(OptionError) as error:
        _require_dynamic_overwrite(session(**{DYNAMIC_OVERWRITE: "false"}))
    assert error.value.code == "DELTA_DYNAMIC_PARTITION_OVERWRITE_DISABLED"
