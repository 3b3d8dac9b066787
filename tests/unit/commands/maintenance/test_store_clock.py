"""A vacuum where this machine's clock and the store's are not the same."""

from __future__ import annotations

import time

import pytest

from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
from delta_pyds.errors import UserError
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import ROOT, Table

HOUR_MS = 3_600_000
AT_WORK = f"{ROOT}/being-written.parquet"


def vacuum_on(behind_hours: float, options: VacuumOptions) -> tuple[MemoryStorage, list[str]]:
    """A store whose clock lags so far, and the names in its log after a vacuum."""
    now = [int(time.time() * 1000) - 400 * HOUR_MS]
    storage = MemoryStorage(clock=lambda: now[0])
    Table(storage).create()
    storage.put(AT_WORK, b"x")
    now[0] = int(time.time() * 1000 - behind_hours * HOUR_MS)
    run_vacuum(plan_vacuum(storage, ROOT, options))
    return storage, [file.name for file in storage.list_from(f"{ROOT}/_delta_log", "")]


@pytest.mark.parametrize("behind_hours", [-1000, -2, 0, 0.5])
def test_a_clock_that_is_behind_or_right_is_no_harm(behind_hours: float) -> None:
    storage, names = vacuum_on(behind_hours, VacuumOptions())
    assert not storage.exists(AT_WORK)
    assert not any(name.endswith(".tmp") for name in names)


def test_a_clock_that_is_ahead_deletes_nothing() -> None:
    storages: list[MemoryStorage] = []
    create = MemoryStorage.__init__

    def noted(self: MemoryStorage, **given: object) -> None:
        storages.append(self)
        create(self, **given)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStorage, "__init__", noted)
        with pytest.raises(UserError, match=r"clock of this machine is 30\.0 hours ahead of the store's") as caught:
            vacuum_on(30, VacuumOptions())
    assert caught.value.code == "DELTA_ILLEGAL_USAGE"
    [storage] = storages
    assert storage.exists(AT_WORK)
    assert not [f for f in storage.list_from(f"{ROOT}/_delta_log", "") if f.name.endswith(".tmp")]


def test_who_wants_all_gone_is_not_asked_for_the_time() -> None:
    storage, _ = vacuum_on(30, VacuumOptions(retention_hours=0, check_retention=False))
    assert not storage.exists(AT_WORK)
