from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delta_pyds.errors import DeltaError, ProtocolError
from delta_pyds.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.row_counts import RowCounts, row_counts
from delta_pyds.table.transaction.row_tracking import assigns_row_ids, high_water_domain, high_water_mark, number_rows
from delta_pyds.table.transaction.transaction import Operation
from tests.support.memory_storage import MemoryStorage
from tests.support.sampling import examples
from tests.support.transactions import QUIET, WRITE, Table, file, removed

SUPPORTED = Protocol(1, 7, None, ["rowTracking", "domainMetadata", "appendOnly", "invariants"])
ENABLED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


def tracked(**more: Any) -> Table:
    table = Table(MemoryStorage())
    table.create(**{"protocol": SUPPORTED, "properties": ENABLED, **more})
    return table


def ids(table: Table, version: int) -> list[tuple[str, int, int]]:
    return [(a["path"], a["baseRowId"], a["defaultRowCommitVersion"]) for a in table.actions(version, "add")]


def mark(table: Table, version: int) -> int | None:
    found = [d for d in table.actions(version, "domainMetadata") if d["domain"] == "delta.rowTracking"]
    return json.loads(found[0]["configuration"])["rowIdHighWaterMark"] if found else None


# --- numbering


def number(*adds: AddFile, mark: int = -1, version: int = 4) -> Any:
    return number_rows(adds, high_water_mark=mark, version=version, table="/t")


def test_files_get_the_numbers_after_the_mark() -> None:
    done = number(file("a", 3), file("b", 0), file("c", 2), mark=9)
    assert [(a.base_row_id, a.default_row_commit_version) for a in done.adds] == [(10, 4), (13, 4), (13, 4)]
    assert (done.high_water_mark, done.changed) == (14, True)


def test_a_table_starts_at_zero() -> None:
    done = number(file("a", 3))
    assert done.adds[0].base_row_id == 0 and done.high_water_mark == 2


def test_a_file_that_comes_again_keeps_its_numbers() -> None:
    done = number(file("a", 3, base_row_id=2, default_row_commit_version=1), file("b", base_row_id=5), mark=9)
    assert [(a.base_row_id, a.default_row_commit_version) for a in done.adds] == [(2, 1), (5, 4)]
    assert not done.changed


def test_a_file_that_is_not_counted_is_refused() -> None:
    with pytest.raises(ProtocolError, match="numRecords") as error:
        number(file("a", None))
    assert error.value.code == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"


def test_a_number_that_was_never_given_is_refused() -> None:
    with pytest.raises(ProtocolError, match="up to 9"):
        number(file("a", base_row_id=10), mark=9)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(st.integers(0, 1000), max_size=5), max_size=6))
def test_no_two_files_ever_share_a_number(commits: list[list[int]]) -> None:
    given_out: set[int] = set()
    highest = -1
    for version, counts in enumerate(commits):
        done = number(*(file(f"{version}-{i}", n) for i, n in enumerate(counts)), mark=highest, version=version)
        for add, count in zip(done.adds, counts, strict=True):
            rows = set(range(add.base_row_id, add.base_row_id + count))
            assert not rows & given_out
            given_out |= rows
        highest = done.high_water_mark
        assert highest == max(given_out, default=-1)


def test_the_mark_is_read_as_written() -> None:
    assert high_water_domain(12) == DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":12}')
    assert high_water_mark(high_water_domain(12)) == 12
    assert high_water_mark(DomainMetadata("delta.rowTracking", '{"highWaterMark": 3}')) == 3
    assert high_water_mark(None) == -1


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rowIdHighWaterMark":"12"}', '{"rowIdHighWaterMark":null}'])
def test_a_mark_that_cannot_be_read_is_not_guessed(text: str) -> None:
    with pytest.raises(ProtocolError, match="rowIdHighWaterMark"):
        high_water_mark(DomainMetadata("delta.rowTracking", text))


@pytest.mark.parametrize(
    ("protocol", "properties", "expected"),
    [
        (SUPPORTED, ENABLED, True),
        (SUPPORTED, {}, True),
        (SUPPORTED, {"delta.rowTrackingSuspended": "true"}, False),
        (Protocol(1, 2), ENABLED, False),
    ],
)
def test_rows_are_numbered_where_the_feature_is_supported(
    protocol: Protocol, properties: dict[str, str | None], expected: bool
) -> None:
    assert assigns_row_ids(protocol, Metadata(configuration=properties)) is expected


@pytest.mark.parametrize(
    ("stats", "expected"),
    [
        ('{"numRecords":3,"tightBounds":false,"minValues":{"a":1}}', RowCounts(3, False)),
        ('{"minValues":{}}', RowCounts()),
        ('{"numRecords":-1}', RowCounts()),
        ('{"numRecords":"3"}', RowCounts()),
        ("nonsense", RowCounts()),
        (None, RowCounts()),
        ("", RowCounts()),
    ],
)
def test_counts_are_read_out_of_statistics(stats: str | None, expected: RowCounts) -> None:
    assert row_counts(stats) == expected


# --- in transactions


def test_each_commit_goes_on_where_the_last_one_stopped() -> None:
    table = tracked()
    assert mark(table, 0) is None
    transaction = table.start()
    transaction.add([file("a", 3), file("b", 2)])
    transaction.commit(WRITE, policy=QUIET)
    table.append("c")
    assert ids(table, 1) == [("a", 0, 1), ("b", 3, 1)]
    assert ids(table, 2) == [("c", 5, 2)]
    assert (mark(table, 1), mark(table, 2)) == (4, 5)


def test_a_commit_without_new_rows_leaves_the_mark_alone() -> None:
    table = tracked()
    table.append("a")
    transaction = table.start()
    transaction.remove(removed("a", base_row_id=0, default_row_commit_version=1))
    transaction.commit(Operation("DELETE"), policy=QUIET)
    assert mark(table, 2) is None
    table.append("b")
    assert ids(table, 3) == [("b", 1, 3)]


def test_supported_is_enough_to_be_numbered() -> None:
    table = tracked(properties={})
    table.append("a")
    assert ids(table, 1) == [("a", 0, 1)]
    assert "tags" not in table.info(1)


def test_a_table_without_the_feature_is_not_numbered() -> None:
    table = tracked(protocol=Protocol(1, 2), properties={})
    table.append("a")
    assert "baseRowId" not in table.actions(1, "add")[0]


def test_after_a_lost_race_files_are_numbered_anew_and_the_mark_comes_first() -> None:
    table = tracked()
    mine = table.start()
    mine.add([file("mine1", 10), file("mine2", 10)])
    other = table.start()
    other.add(file("x", 5))
    other.commit(WRITE, policy=QUIET)
    table.append("y")
    assert mine.commit(WRITE, policy=QUIET).version == 3
    assert ids(table, 3) == [("mine1", 6, 3), ("mine2", 16, 3)]
    assert mark(table, 3) == 25
    assert table.kinds(3) == ["commitInfo", "domainMetadata", "add", "add"]


def test_after_a_lost_race_the_mark_stands_right_behind_the_commit_info() -> None:
    table = tracked()
    mine = table.start()
    mine.add(file("mine"))
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, description="new"))
    table.append("x")
    mine.commit(WRITE, policy=QUIET)
    assert table.kinds(2) == ["commitInfo", "domainMetadata", "metaData", "add"]


def test_a_winner_that_makes_rows_tracked_has_ours_tracked() -> None:
    table = tracked(protocol=Protocol(1, 7, None, ["appendOnly", "invariants"]), properties={})
    mine = table.start()
    mine.add(file("mine"))
    table.set_properties(SUPPORTED)
    table.append("x")
    mine.commit(WRITE, policy=QUIET)
    assert ids(table, 3) == [("mine", 1, 3)]


def test_a_winner_that_enables_row_tracking_makes_ours_not_preserve_ids() -> None:
    table = tracked(properties={})
    mine = table.start()
    mine.add(file("mine"))
    table.set_properties(**{k.replace(".", "_"): v for k, v in ENABLED.items()})
    done = mine.commit(WRITE, tags={"delta.rowTracking.preserved": "true"}, policy=QUIET)
    assert table.info(done.version)["tags"] == {"delta.rowTracking.preserved": "false"}


def test_a_commit_says_of_row_ids_only_what_its_operation_says() -> None:
    """As the reference: without the tag nobody takes ids for preserved, and only who carried rows knows."""
    table = tracked()
    table.append("a", "b")
    assert "tags" not in table.info(1)
    rewriting = table.start()
    rewriting.remove(removed("a", base_row_id=0, default_row_commit_version=1))
    rewriting.add(file("a2"))
    rewriting.commit(Operation("UPDATE"), policy=QUIET)
    assert "tags" not in table.info(2)
    preserving = table.start()
    preserving.remove(removed("b", base_row_id=1, default_row_commit_version=1))
    preserving.add(file("b2"))
    preserving.commit(Operation("UPDATE"), tags={"delta.rowTracking.preserved": "true", "k": "v"}, policy=QUIET)
    assert table.info(3)["tags"] == {"delta.rowTracking.preserved": "true", "k": "v"}


def test_a_file_that_gets_a_deletion_vector_keeps_its_ids() -> None:
    table = tracked(
        protocol=Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "rowTracking", "domainMetadata"]),
    )
    table.append("first")
    transaction = table.start()
    transaction.add(file("a", 5))
    transaction.commit(WRITE, policy=QUIET)
    vector = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 2)
    transaction = table.start()
    transaction.remove(removed("a", base_row_id=1, default_row_commit_version=2))
    transaction.add(file("a", stats='{"numRecords":5,"tightBounds":false}', deletion_vector=vector))
    transaction.commit(Operation("DELETE"), policy=QUIET)
    assert ids(table, 3) == [("a", 1, 2)]
    assert mark(table, 3) is None


def test_ids_that_a_file_comes_with_are_its_own_whatever_the_remove_says() -> None:
    features = ["deletionVectors", "rowTracking", "domainMetadata"]
    table = tracked(protocol=Protocol(3, 7, ["deletionVectors"], features))
    table.append("a")
    vector = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 1)
    ours = {"base_row_id": 0, "default_row_commit_version": 1}
    transaction = table.start()
    transaction.remove(removed("a"))  # as early writers do
    transaction.add(file("a", stats='{"numRecords":1,"tightBounds":false}', deletion_vector=vector, **ours))
    transaction.commit(Operation("DELETE"), policy=QUIET)
    assert ids(table, 2) == [("a", 0, 1)]


BACKFILL = Operation("ROW TRACKING BACKFILL")


def unnumbered() -> Table:
    """A table that supports row tracking and whose file ``a`` is older than that."""
    table = tracked(protocol=Protocol(1, 7, None, ["appendOnly", "invariants"]), properties={})
    table.append("a")
    table.append("b")
    table.set_properties(SUPPORTED)
    return table


def backfill(table: Table) -> Any:
    transaction = table.start()
    transaction.record_files(["a", "b"])
    transaction.add([file("a", data_change=False), file("b", data_change=False)])
    return transaction


def test_a_file_that_was_numbered_meanwhile_is_removed_with_its_number() -> None:
    table = unnumbered()
    mine = table.start()
    mine.record_files(["a"])
    mine.remove(removed("a"))
    backfill(table).commit(BACKFILL, policy=QUIET)
    mine.commit(Operation("DELETE"), policy=QUIET)
    (gone,) = table.actions(5, "remove")
    assert (gone["path"], gone["baseRowId"], gone["defaultRowCommitVersion"]) == ("a", 0, 4)


def test_a_backfill_does_not_bring_back_what_others_removed() -> None:
    table = unnumbered()
    mine = backfill(table)
    other = table.start()
    other.remove(removed("a"))
    other.commit(Operation("DELETE"), policy=QUIET)
    done = mine.commit(BACKFILL, policy=QUIET)
    assert [path for path, _, _ in ids(table, done.version)] == ["b"]
    assert table.snapshot().totals.num_files == 1


@pytest.mark.parametrize("rewrite", [False, True])
def test_a_backfill_remembers_every_commit_that_came_first(rewrite: bool) -> None:
    table = unnumbered()
    mine = backfill(table)
    other = table.start()
    other.remove(removed("a"))
    if rewrite:
        other.add(file("a2"))
    other.commit(Operation("DELETE"), policy=QUIET)
    table.append("c")
    other = table.start()
    other.add(file("b", data_change=False))
    other.commit(Operation("COMPUTE STATS"), policy=QUIET)
    table.append("d")
    done = mine.commit(BACKFILL, policy=QUIET)
    # a is gone, and b has got its ids with its new statistics
    assert ids(table, done.version) == []
    assert table.snapshot().totals.num_files == (4 if rewrite else 3)


def test_row_ids_of_an_earlier_winner_go_into_a_remove() -> None:
    table = unnumbered()
    mine = table.start()
    mine.record_files(["a", "b"])
    mine.remove(removed(["a", "b"]))
    for path in ("a", "b"):
        other = table.start()
        other.record_files([path])
        other.add(file(path, data_change=False))
        other.commit(BACKFILL, policy=QUIET)
    table.append("c")
    done = mine.commit(Operation("DELETE"), isolation_level="WriteSerializable", policy=QUIET)
    gone = [(r["path"], r["baseRowId"], r["defaultRowCommitVersion"]) for r in table.actions(done.version, "remove")]
    assert gone == [("a", 0, 4), ("b", 1, 5)]


def test_a_file_with_a_new_vector_takes_the_row_ids_of_an_earlier_winner() -> None:
    table = tracked(protocol=Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly"]), properties={})
    table.append("a", "b")
    table.set_properties(
        Protocol(3, 7, ["deletionVectors"], ["deletionVectors", "appendOnly", "rowTracking", "domainMetadata"])
    )
    vector = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 1)
    mine = table.start()
    mine.record_files(["a"])
    mine.remove(removed("a"))
    mine.add(file("a", stats='{"numRecords":1,"tightBounds":false}', deletion_vector=vector))
    mine.add(file("new"))
    backfill(table).commit(BACKFILL, policy=QUIET)
    table.append("c")
    done = mine.commit(Operation("DELETE"), isolation_level="WriteSerializable", policy=QUIET)
    assert ids(table, done.version) == [("a", 0, 3), ("new", 3, 5)]
    assert [r["baseRowId"] for r in table.actions(done.version, "remove")] == [0]


def test_an_enablement_before_the_last_winner_is_not_forgotten() -> None:
    table = tracked(properties={})
    mine = table.start()
    mine.add(file("mine"))
    enabled(table)
    table.append("x")
    done = mine.commit(WRITE, tags={"delta.rowTracking.preserved": "true"}, policy=QUIET)
    assert done.winners == (1, 2)
    assert table.info(done.version)["tags"] == {"delta.rowTracking.preserved": "false"}


def test_the_mark_survives_a_checkpoint() -> None:
    from delta_pyds.table.transaction.transaction import CommitPolicy

    table = tracked(properties={**ENABLED, "delta.checkpointInterval": "2"})
    table.append("a")
    table.append("b", policy=CommitPolicy())
    assert table.snapshot().segment.checkpoint is not None
    table.append("c")
    assert ids(table, 3) == [("c", 2, 3)]


def test_metadata_of_the_table_says_nothing_of_numbers() -> None:
    table = tracked()
    before = table.snapshot().metadata
    table.append("a")
    assert msgspec.structs.asdict(table.snapshot().metadata) == msgspec.structs.asdict(before)


# --- turning it on


def enabled(table: Table) -> None:
    table.set_properties(**{k.replace(".", "_"): v for k, v in ENABLED.items()})


def test_it_is_not_turned_on_while_files_lack_ids() -> None:
    table = unnumbered()
    with pytest.raises(DeltaError, match="2 of its files"):
        enabled(table)
    backfill(table).commit(BACKFILL, policy=QUIET)
    enabled(table)
    assert table.snapshot().configuration.has_row_tracking


def test_it_is_not_turned_on_together_with_the_feature_beside_other_writers() -> None:
    table = tracked(protocol=Protocol(1, 7, None, ["appendOnly", "invariants"]), properties={})
    both = {k.replace(".", "_"): v for k, v in ENABLED.items()}
    with pytest.raises(DeltaError, match="other writers"):
        table.set_properties(SUPPORTED, **both)
    table.set_properties(SUPPORTED)
    enabled(table)


def test_it_may_be_turned_on_in_the_commit_that_numbers_the_files() -> None:
    table = unnumbered()
    mine = backfill(table)
    configuration = {**(table.snapshot().metadata.configuration or {}), **ENABLED}
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, configuration=configuration))
    done = mine.commit(Operation("SET TBLPROPERTIES"), policy=QUIET)
    assert ids(table, done.version) == [("a", 0, 4), ("b", 1, 4)]
    assert table.snapshot().configuration.has_row_tracking


def test_a_replaced_table_may_track_its_rows() -> None:
    table = tracked(protocol=Protocol(1, 7, None, ["appendOnly", "invariants"]), properties={})
    table.append("a")
    mine = table.start()
    mine.record_whole_table()
    mine.remove(removed("a"))
    mine.add(file("b", 4))
    mine.set_protocol(SUPPORTED)
    mine.set_metadata(msgspec.structs.replace(table.snapshot().metadata, configuration=ENABLED))
    done = mine.commit(Operation("CREATE OR REPLACE TABLE"), policy=QUIET)
    assert ids(table, done.version) == [("b", 0, 2)]
    assert mark(table, done.version) == 3


@pytest.mark.parametrize("left_out", [[0], [1], [0, 1]])
def test_it_needs_the_names_of_its_columns(left_out: list[int]) -> None:
    names = list(ENABLED)[1:]
    missing = [names[i] for i in left_out]
    with pytest.raises(DeltaError, match="materialized columns"):
        tracked(properties={k: v for k, v in ENABLED.items() if k not in missing})


def test_metadata_set_where_it_is_on_already_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    table = tracked()
    table.append("a")
    asked: list[object] = []
    monkeypatch.setattr(Snapshot, "adds", lambda _, request: asked.append(request) or iter(()))
    table.set_properties(user_key="v")
    assert asked == []
