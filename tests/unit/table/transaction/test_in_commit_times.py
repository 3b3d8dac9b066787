"""In-commit timestamps. Protocol: "In-Commit Timestamps"."""

from __future__ import annotations

import msgspec
import pytest

from delta_pyds.errors import (
    CorruptLogError,
)
from delta_pyds.protocol.actions import Protocol
from delta_pyds.table.transaction.transaction import CommitPolicy, Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.transactions import QUIET, ROOT, WRITE, Table, file

WITH_ICT = Protocol(1, 7, None, ["inCommitTimestamp"])
ICT = {"delta.enableInCommitTimestamps": "true"}
ENABLEMENT = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


def test_times_in_commits_ascend_whatever_the_clock_says(storage: MemoryStorage) -> None:
    now = [1_000]
    table = Table(storage, clock=lambda: now[0])
    table.create(properties=ICT, protocol=WITH_ICT)
    assert table.info(0)["inCommitTimestamp"] == 1_000
    assert not set(ENABLEMENT) & table.actions(0, "metaData")[0]["configuration"].keys()
    now[0] = 500
    assert table.append("a").timestamp_ms == 1_001
    mine = table.start()
    mine.add(file("mine"))
    now[0] = 5_000
    table.append("b")
    now[0] = 600
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["inCommitTimestamp"] == done.timestamp_ms == 5_001
    assert next(iter(table.info(done.version))) == "inCommitTimestamp"


def test_the_time_before_may_come_from_the_checksum(storage: MemoryStorage) -> None:
    table = Table(storage, clock=lambda: 1_000)
    table.create(properties=ICT, protocol=WITH_ICT)
    for i in range(10):
        table.append(f"f{i}", policy=CommitPolicy())
    assert table.info(10)["inCommitTimestamp"] == 1_010
    for version in range(11):
        storage.delete(f"{ROOT}/_delta_log/{version:020d}.json")
    assert table.append("next").timestamp_ms == 1_011


def test_a_version_that_lacks_its_time_is_not_followed(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create(properties=ICT, protocol=WITH_ICT)
    storage.put_if_absent(f"{ROOT}/_delta_log/{1:020d}.json", b'{"commitInfo":{"operation":"WRITE"}}\n')
    with pytest.raises(CorruptLogError, match="Version 1 of table"):
        table.append("a")


def test_times_that_begin_later_say_since_when(storage: MemoryStorage) -> None:
    now = [1_000]
    table = Table(storage, clock=lambda: now[0])
    table.create()
    mine = table.start()
    metadata = table.snapshot().metadata
    mine.set_metadata(msgspec.structs.replace(metadata, configuration=ICT))
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    table.append("x")
    file_time = storage.status(f"{ROOT}/_delta_log/{1:020d}.json").modification_time_ms
    done = mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    # the version and the time are those that it got after the lost race; the files' clock is ahead of this process's
    assert done.timestamp_ms == table.info(2)["inCommitTimestamp"] == file_time + 1
    configuration = table.actions(2, "metaData")[0]["configuration"]
    assert [configuration[key] for key in ENABLEMENT] == ["2", str(file_time + 1)]
    table.set_properties(user_key="v")
    assert [table.snapshot().configuration.configuration[key] for key in ENABLEMENT] == ["2", str(file_time + 1)]


def test_metadata_set_anew_keeps_since_when_times_are_in_commits(storage: MemoryStorage) -> None:
    table = Table(storage)
    table.create()
    table.set_properties(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]), **_dots(ICT))
    since = {key: table.snapshot().configuration.configuration[key] for key in ENABLEMENT}
    mine = table.start()
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, configuration={**ICT, "k": "v"}))
    mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    assert table.snapshot().configuration.configuration == {**ICT, "k": "v", **since}


def _dots(properties: dict[str, str]) -> dict[str, str]:
    return {key.replace(".", "_"): value for key, value in properties.items()}


def test_a_winner_that_turns_times_on_makes_us_carry_ours(storage: MemoryStorage) -> None:
    table = Table(storage, clock=lambda: 1_000)
    table.create()
    table.set_properties(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    mine = table.start()
    mine.add(file("mine"))
    enabled = table.set_properties(**_dots(ICT)).timestamp_ms
    done = mine.commit(WRITE, policy=QUIET)
    assert table.info(done.version)["inCommitTimestamp"] == enabled + 1
    assert table.kinds(done.version) == ["commitInfo", "add"]


def test_times_that_begin_with_the_feature_say_since_when(storage: MemoryStorage) -> None:
    now = [10**13]  # later than the files' clock
    table = Table(storage, clock=lambda: now[0])
    table.create(properties=ICT)
    table.append("a")
    assert "inCommitTimestamp" not in table.info(1)
    mine = table.start()
    mine.set_protocol(Protocol(1, 7, None, ["appendOnly", "invariants", "inCommitTimestamp"]))
    table.append("b")
    done = mine.commit(Operation("UPGRADE PROTOCOL"), policy=QUIET)
    assert table.kinds(3) == ["commitInfo", "metaData", "protocol"]
    assert table.info(3)["inCommitTimestamp"] == done.timestamp_ms == now[0]
    (metadata,) = table.actions(3, "metaData")
    assert [metadata["configuration"][key] for key in ENABLEMENT] == ["3", str(now[0])]
    assert metadata["configuration"].items() >= ICT.items()
    table.append("c")
    assert table.kinds(4) == ["commitInfo", "add"]
