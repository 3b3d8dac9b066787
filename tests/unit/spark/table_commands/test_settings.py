"""What a session's settings mean for one command."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from delta_pyds.commands.maintenance.vacuum import VacuumOptions
from delta_pyds.errors import OptionError
from delta_pyds.spark.install.write_settings import with_settings
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.session import _require_dynamic_overwrite
from delta_pyds.spark.settings import (
    DROP_CONSTRAINT_IF_EXISTS,
    DYNAMIC_OVERWRITE,
    RETENTION_CHECK,
    TXN_APP_ID,
    TXN_AUTO_RESET,
    TXN_VERSION,
    USER_METADATA,
    VACUUM_LITE,
    VACUUM_LOGGING,
)
from delta_pyds.spark.sql import alter
from delta_pyds.spark.table_commands import alter as table_alter
from delta_pyds.spark.table_commands import maintenance
from delta_pyds.spark.table_commands.settings import for_one_command, without_transaction
from delta_pyds.statements.kinds import DropConstraint


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


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, (False, None, True)),
        ({VACUUM_LITE: "true", VACUUM_LOGGING: "false"}, (True, False, True)),
        ({VACUUM_LOGGING: "true", RETENTION_CHECK: "false"}, (False, True, False)),
    ],
)
def test_a_vacuum_asks_the_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: dict[str, str], wanted: tuple[bool | None, ...]
) -> None:
    found: list[VacuumOptions] = []

    def plan(*given: Any) -> None:
        found.append(given[-1])
        raise InterruptedError

    monkeypatch.setattr(maintenance, "plan_vacuum", plan)
    with pytest.raises(InterruptedError):
        maintenance.vacuum(TableHandle(session(**settings), str(tmp_path)))
    assert [(one.lite, one.log_entries, one.check_retention) for one in found] == [wanted]


@pytest.mark.parametrize(
    ("setting", "said", "expected"), [(None, False, False), ("true", False, True), (None, True, True)]
)
def test_a_constraint_that_is_dropped_may_be_missing(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, said: bool, expected: bool
) -> None:
    found: list[bool] = []
    monkeypatch.setattr(table_alter, "drop_constraint", lambda *_, if_exists: found.append(if_exists))
    spark = session(**({} if setting is None else {DROP_CONSTRAINT_IF_EXISTS: setting}))
    context: Any = SimpleNamespace(spark=spark, table=lambda reference: reference)
    alter.drop_constraint(context, DropConstraint(cast(Any, None), "c", said))
    assert found == [expected]
