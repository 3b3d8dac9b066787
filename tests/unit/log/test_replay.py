"""Within one commit the later line wins, and the later commit over the earlier one: for every kind of action."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from delta_pyds.log.compaction import write_compaction
from delta_pyds.log.replay import reconcile
from delta_pyds.protocol.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SingleAction,
)
from tests.support.memory_storage import MemoryStorage

ROOT = "memory://t"

# for each kind: the earlier and the later word on one key
PAIRS: dict[str, tuple[SingleAction, SingleAction]] = {
    "add": (SingleAction(add=AddFile("a", size=1)), SingleAction(add=AddFile("a", size=2))),
    "remove": (SingleAction(remove=RemoveFile("a", 1)), SingleAction(remove=RemoveFile("a", 2))),
    "added, then removed": (SingleAction(add=AddFile("a")), SingleAction(remove=RemoveFile("a", 2))),
    "removed, then added": (SingleAction(remove=RemoveFile("a", 1)), SingleAction(add=AddFile("a"))),
    "txn": (SingleAction(txn=SetTransaction("app", 1)), SingleAction(txn=SetTransaction("app", 2))),
    "domain": (
        SingleAction(domain_metadata=DomainMetadata("d", "1")),
        SingleAction(domain_metadata=DomainMetadata("d", "2", True)),
    ),
    "metadata": (SingleAction(meta_data=Metadata("1")), SingleAction(meta_data=Metadata("2"))),
    "protocol": (SingleAction(protocol=Protocol(1, 1)), SingleAction(protocol=Protocol(1, 2))),
}


def state(commits: list[list[SingleAction]]) -> Any:
    tail = reconcile(commits)
    return (tail.protocol, tail.metadata, tail.transactions, tail.domains, tail.adds, tail.removes)


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("in_one_commit", [True, False])
def test_the_later_word_counts(kind: str, in_one_commit: bool) -> None:
    earlier, later = PAIRS[kind]
    assert state([[earlier]]) != state([[later]])
    found = state([[earlier, later]] if in_one_commit else [[earlier], [later]])
    assert found == state([[later]])


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("in_one_commit", [True, False])
def test_the_later_word_counts_in_a_compaction_too(kind: str, in_one_commit: bool) -> None:
    storage = MemoryStorage()
    earlier, later = (msgspec.json.encode(msgspec.to_builtins(action, str_keys=True)) for action in PAIRS[kind])
    earlier, later = (_without_nulls(text) for text in (earlier, later))
    commits = [earlier + b"\n" + later, b""] if in_one_commit else [earlier, later]
    for version, data in enumerate(commits):
        storage.put(f"{ROOT}/_delta_log/{version:020d}.json", data)
    assert storage.read(write_compaction(storage, ROOT, 0, 1)) == later + b"\n"


def _without_nulls(text: bytes) -> bytes:
    return msgspec.json.encode({kind: body for kind, body in msgspec.json.decode(text).items() if body is not None})


def test_files_keep_the_order_of_the_log() -> None:
    adds = [SingleAction(add=AddFile(name)) for name in "cab"]
    tail = reconcile([[adds[0]], [adds[1], SingleAction(remove=RemoveFile("c")), adds[2]]])
    assert [file.path for file in tail.adds] == ["a", "b"]
    assert [file.path for file in tail.removes] == ["c"]
    assert tail.touched == {"a": frozenset([None]), "b": frozenset([None]), "c": frozenset([None])}
