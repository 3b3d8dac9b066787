"""Each rule of the log and its commits, broken alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from delta_pyds import verify
from tests.support.table_builder import BASE_TIME_MS, Action, TableBuilder
from tests.support.verification import messages, rules

SCHEMA = {"id": "long", "p": "string"}
INFO = '{"commitInfo":{"operation":"WRITE"}}'


def make(path: Path, **options: Any) -> TableBuilder:
    t = TableBuilder(path, SCHEMA, partition_columns=["p"], **options)
    t.create()
    t.append([{"id": 1, "p": "x"}, {"id": 2, "p": "y"}])
    return t


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return make(tmp_path)


def file(t: TableBuilder, **fields: Any) -> Action:
    return t.write_file([{"id": 7}], {"p": "x"}, **fields)


def without(action: Action, *names: str) -> Action:
    ((kind, body),) = action.items()
    return {kind: {k: v for k, v in body.items() if k not in names}}


# --- one commit by itself


def twice(t: TableBuilder) -> list[Any]:
    add = file(t)
    return [add, add]


def removed_twice(t: TableBuilder) -> list[Any]:
    remove = t.remove(t.active()[0])
    return [remove, remove]


def added_and_removed(t: TableBuilder) -> list[Any]:
    live = t.active()[0]
    return [{"add": {**live["add"], "dataChange": False}}, t.remove(live)]


TXN = {"txn": {"appId": "a", "version": 1}}

COMMITS: list[tuple[str, Callable[[TableBuilder], list[Any]], list[str]]] = [
    ("two metadata", lambda t: [t.metadata(), t.metadata()], ["error commit.duplicate-metadata"]),
    ("two protocols", lambda t: [t.protocol(), t.protocol()], ["error commit.duplicate-protocol"]),
    ("two txn of one application", lambda _: [TXN, TXN], ["error commit.duplicate-txn"]),
    ("two commit infos", lambda _: [INFO], ["warning commit.duplicate-commitinfo"]),
    ("an add twice", twice, ["error commit.duplicate-key"]),
    ("a remove twice", removed_twice, ["error commit.duplicate-key"]),
    ("add and remove of one key", added_and_removed, ["error commit.add-and-remove"]),
    ("a sidecar", lambda _: [{"sidecar": {"path": "a", "sizeInBytes": 1, "modificationTime": 1}}],
     ["error commit.checkpoint-action"]),
    ("checkpoint metadata", lambda _: [{"checkpointMetadata": {"version": 1}}], ["error commit.checkpoint-action"]),
    ("a line that is not JSON", lambda _: ['{"add":'], ["error commit.unreadable", "warning files.not-checked"]),
    ("a line that is not an object", lambda _: ["7"], ["error commit.unreadable", "warning files.not-checked"]),
    ("a line of two actions", lambda t: [json.dumps({**file(t), **TXN})], ["error commit.many-actions"]),
    ("a line of no action", lambda _: ["{}"], ["error commit.no-action"]),
    ("an add without size", lambda t: [without(file(t), "size")], ["error commit.field", "error file.size"]),
    ("an add without a path", lambda t: [without(file(t), "path")], ["error commit.field", ("warning "
    "files.not-checked")]),
    ("an add without dataChange", lambda t: [without(file(t), "dataChange")], ["error commit.field"]),
    ("an add without modificationTime", lambda t: [without(file(t), "modificationTime")], ["warning commit.field"]),
    ("a size that is text", lambda t: [file(t, size="9")], ["error commit.field", "warning files.not-checked"]),
    ("a txn without a version", lambda _: [without(TXN, "version")], ["error commit.field", ("warning "
    "files.not-checked")]),
    ("a commit info that is not an object", lambda _: ['{"commitInfo":7}'],
     ["error commit.field", "warning commit.duplicate-commitinfo"]),
    ("a version beyond 64 bits", lambda _: ['{"txn":{"appId":"a","version":9223372036854775808}}'],
     ["error commit.field", "warning files.not-checked"]),
]  # fmt: skip


@pytest.mark.parametrize(("actions", "expected"), [c[1:] for c in COMMITS], ids=[c[0] for c in COMMITS])
def test_a_commit_that_breaks_a_rule_by_itself(
    table: TableBuilder, actions: Callable[[TableBuilder], list[Any]], expected: list[str]
) -> None:
    table.commit(actions(table))
    assert rules(table) == expected


def test_unknown_actions_and_unknown_fields_are_no_findings(table: TableBuilder) -> None:
    table.commit(['{"futureAction":{"x":1}}', json.dumps({**TXN, "alongside": 1}), file(table, futureField=3)])
    assert rules(table) == []


def test_two_domain_metadata_of_one_domain(tmp_path: Path) -> None:
    t = make(tmp_path, features=([], ["domainMetadata"]))
    domain = {"domainMetadata": {"domain": "d", "configuration": "", "removed": False}}
    t.commit([domain, domain])
    assert rules(t) == ["error commit.duplicate-domain"]


def test_one_path_added_with_two_deletion_vectors(tmp_path: Path) -> None:
    t = make(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    add = t.active()[0]
    (remove, one), (_, other) = t.delete_rows(add, [0]), t.delete_rows(add, [])
    t.commit([remove, one, other])
    assert rules(t) == ["error commit.duplicate-path"]


def test_an_empty_commit_file(table: TableBuilder) -> None:
    table.commit([], commit_info=False)
    assert rules(table) == ["warning commit.empty"]


def test_the_first_commit_needs_protocol_and_metadata(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, SCHEMA)
    t.commit([{"metaData": t.metadata()["metaData"]}])
    assert rules(t) == ["error commit.first"]


# --- the versions


def test_a_gap(table: TableBuilder) -> None:
    table.append([{"id": 3, "p": "x"}])
    table.commit_file(1).unlink()
    assert rules(table) == ["error log.gap", "warning files.not-checked"]
    assert "the commit of version 1 is missing" in messages(table)


def test_a_gap_before_a_checkpoint_hides_nothing_after_it(table: TableBuilder) -> None:
    table.append([{"id": 3, "p": "x"}])
    table.append([{"id": 4, "p": "x"}])
    table.checkpoint(3)
    table.commit_file(2).unlink()
    table.commit([table.remove(table.active()[0]), file(table, size=1)])
    assert rules(table) == ["error file.size", "error log.gap"]


def test_a_gap_of_absurd_width_is_found_at_once(table: TableBuilder) -> None:
    table.commit(version=9_999_999_999_999_999)
    assert rules(table) == ["error log.gap", "warning files.not-checked"]


def test_a_checkpoint_whose_commit_is_missing_in_the_middle(table: TableBuilder) -> None:
    table.append([{"id": 3, "p": "x"}])
    table.checkpoint(1)
    table.commit_file(1).unlink()
    assert rules(table) == ["error log.gap"]


def test_a_log_that_starts_late_without_a_checkpoint(table: TableBuilder) -> None:
    table.cleanup_log(1)
    assert rules(table) == ["error log.no-start", "warning files.not-checked"]


def test_only_an_incomplete_checkpoint(table: TableBuilder) -> None:
    first, _ = table.checkpoint(kind="multipart", write_hint=False)
    first.unlink()
    for version in (0, 1):
        table.commit_file(version).unlink()
    assert rules(table) == ["error log.no-start", "warning checkpoint.incomplete", "warning files.not-checked"]


def test_commits_that_no_checkpoint_begins(table: TableBuilder) -> None:
    table.append([{"id": 3, "p": "x"}])
    table.checkpoint(2)
    table.cleanup_log(1)
    assert rules(table) == ["warning log.unreachable"]


def test_a_damaged_commit_is_skipped_by_the_next_checkpoint(table: TableBuilder) -> None:
    table.append([{"id": 3, "p": "x"}])
    table.checkpoint(2)
    table.truncate(table.commit_file(1), 300)
    report = verify(str(table.path))
    assert {f.rule for f in report.findings} == {"commit.unreadable"}
    assert report.checked.rows == 3


def test_a_commit_that_is_binary_rubbish(table: TableBuilder) -> None:
    table.commit_file(1).write_bytes(bytes(range(256)) * 4)
    assert rules(table) == ["error commit.unreadable", "warning files.not-checked"]


# --- against the state


def test_a_remove_of_what_is_not_there(table: TableBuilder) -> None:
    table.commit([table.remove(table.add("nowhere.parquet"), partitionValues={"p": "x"})])
    assert rules(table) == ["warning commit.remove-of-unknown-file"]


def test_an_add_of_what_is_there(table: TableBuilder) -> None:
    table.commit([table.active()[0]])
    assert rules(table) == ["warning commit.add-of-live-file"]
    table.commit([{"add": {**table.active()[0]["add"], "dataChange": False, "tags": {"a": "b"}}}])
    assert rules(table) == ["warning commit.add-of-live-file"]


def test_a_path_that_is_live_with_two_vectors(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"}, properties={"delta.enableDeletionVectors": "true"})
    t.create()
    [add] = t.append([{"id": i} for i in range(5)])
    t.commit([t.delete_rows(add, [1])[1]])
    assert rules(t) == ["error commit.path-live-twice"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("p=x/%zz.parquet", "error commit.path"),
        ("p=x/%ff%fe.parquet", "error commit.path"),
        ("../outside.parquet", "error commit.path"),
        ("_hidden/a.parquet", "warning commit.path"),
        ("_p=x/a.parquet", None),
        ("file:/tmp/elsewhere.parquet", None),
    ],
)
def test_paths(table: TableBuilder, path: str, expected: str | None) -> None:
    table.commit([table.add(path, partitionValues={"p": "x"})])
    assert rules(table, data=False) == ([expected] if expected else [])


def test_an_empty_path(table: TableBuilder) -> None:
    table.commit([table.add("", partitionValues={"p": "x"})])
    assert rules(table, data=False) == ["error commit.path"]


def test_a_negative_size(table: TableBuilder) -> None:
    table.commit([table.add("a.parquet", size=-1, partitionValues={"p": "x"})])
    assert rules(table, data=False) == ["error commit.size"]


@pytest.mark.parametrize("values", [{}, {"q": "x"}, {"p": "x", "q": "x"}])
def test_partition_values_that_are_not_those_of_the_partition_columns(
    table: TableBuilder, values: dict[str, str]
) -> None:
    table.commit([table.add("a.parquet", partitionValues=values)])
    assert rules(table, data=False) == ["error commit.partition-keys"]


def test_a_partition_value_that_is_no_value_of_its_type(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long", "d": "date"}, partition_columns=["d"])
    t.create()
    t.append([{"id": 1}], partition_values={"d": "2024-02-30"})
    assert rules(t) == ["error commit.partition-value"]


def test_a_null_partition_value_in_a_not_null_column(tmp_path: Path) -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "p", "type": "string", "nullable": False, "metadata": {}},
        ],
    }
    t = TableBuilder(tmp_path, schema, partition_columns=["p"])
    t.create()
    t.append([{"id": 1, "p": None}])
    assert rules(t) == ["error commit.partition-value", "error rows.null"]


@pytest.mark.parametrize("stats", ["{", "[1]", '{"numRecords":-1}', '{"numRecords":"x"}'])
def test_statistics_that_cannot_be_read(table: TableBuilder, stats: str) -> None:
    table.commit([table.add("a.parquet", stats=stats, partitionValues={"p": "x"})])
    assert rules(table, data=False) == ["error commit.statistics"]


def test_a_remove_that_promises_more_than_it_has(table: TableBuilder) -> None:
    table.commit([without(table.remove(table.active()[0]), "size")])
    assert rules(table) == ["error commit.remove-fields"]


@pytest.mark.parametrize("change", [{"size": 5}, {"partitionValues": {"p": "z"}}])
def test_a_remove_that_says_otherwise_than_the_add(table: TableBuilder, change: dict[str, Any]) -> None:
    table.commit([table.remove(table.active()[0], **change)])
    assert rules(table) == ["warning commit.remove-fields"]


def test_a_remove_may_leave_out_partition_values_that_are_null(table: TableBuilder) -> None:
    table.commit([table.add("null.parquet", stats=None, partitionValues={"p": None})])
    [added] = [line for line in table.active() if line["add"]["path"] == "null.parquet"]
    table.commit([table.remove(added, partitionValues={})])
    assert rules(table, data=False) == []


def test_a_transaction_that_goes_back(table: TableBuilder) -> None:
    for version in (5, 4):
        table.commit([{"txn": {"appId": "a", "version": version}}])
    assert rules(table) == ["warning commit.txn-version"]


def test_a_remove_from_an_append_only_table(tmp_path: Path) -> None:
    t = make(tmp_path, properties={"delta.appendOnly": "true"})
    [first, second] = t.active()
    t.commit([t.remove(first)])
    assert rules(t) == ["error commit.append-only"]
    t2 = make(tmp_path / "moved", properties={"delta.appendOnly": "true"})
    t2.commit([t2.remove(t2.active()[0], dataChange=False), file(t2, dataChange=False)])
    assert rules(t2) == []
    assert second


def test_append_only_may_be_switched_off_with_the_removal(tmp_path: Path) -> None:
    t = make(tmp_path, properties={"delta.appendOnly": "true"})
    t.commit([t.metadata(properties={"delta.appendOnly": "false"}), t.remove(t.active()[0])])
    assert rules(t) == []


def test_cdc_actions(tmp_path: Path) -> None:
    t = make(tmp_path, properties={"delta.enableChangeDataFeed": "true"}, protocol=(1, 4))
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {"p": "x"}, "size": 1, "dataChange": False}
    t.commit([{"cdc": cdc}])
    assert rules(t) == []
    t.commit([{"cdc": {**cdc, "dataChange": True}}])
    assert rules(t) == ["error commit.cdc"]
    off = make(tmp_path / "off")
    off.commit([{"cdc": cdc}])
    assert rules(off) == ["warning commit.cdc"]


def test_rearranged_rows_come_from_somewhere(table: TableBuilder) -> None:
    [first, second] = table.active()
    both = table.write_file([{"id": 1}, {"id": 2}], {"p": "x"}, dataChange=False)
    table.commit([table.remove(first, dataChange=False), table.remove(second, dataChange=False), both])
    assert rules(table) == []
    table.commit([file(table, dataChange=False)])
    assert rules(table) == ["error commit.data-change"]


def test_rearranging_that_adds_rows(table: TableBuilder) -> None:
    more = table.write_file([{"id": 1}, {"id": 2}], {"p": "x"}, dataChange=False)
    table.commit([table.remove(table.active()[0], dataChange=False), more])
    assert rules(table) == ["error commit.data-change"]


def test_rearranging_that_loses_rows(tmp_path: Path) -> None:
    t = TableBuilder(tmp_path, {"id": "long"})
    t.create()
    [add] = t.append([{"id": 1}, {"id": 2}])
    t.commit([t.remove(add, dataChange=False), t.write_file([{"id": 1}], dataChange=False)])
    assert rules(t) == ["error commit.data-change"]


def test_a_transaction_that_was_committed_twice(table: TableBuilder) -> None:
    for number in range(2):
        table.commit([{"txn": {"appId": "a", "version": number}}], commit_info={"txnId": "the same"})
    assert rules(table) == ["error commit.duplicate-transaction"]


def test_one_file_under_two_spellings_of_its_path(table: TableBuilder) -> None:
    add = file(table, path="p=x/one file.parquet")
    table.commit([add])
    assert rules(table) == []
    table.commit([{"add": {**add["add"], "path": "p=x/one file.parquet"}}])
    assert rules(table) == ["error log.file-twice"]


# --- in-commit timestamps

ICT = {"delta.enableInCommitTimestamps": "true"}


def test_in_commit_timestamps_in_order_are_clean(tmp_path: Path) -> None:
    t = make(tmp_path, properties=ICT)
    t.checksum()
    assert rules(t) == []


def test_a_missing_in_commit_timestamp(tmp_path: Path) -> None:
    t = make(tmp_path, properties=ICT)
    t.commit([TXN], commit_info={"inCommitTimestamp": None})
    assert rules(t) == ["error commit.in-commit-timestamp"]


def test_a_commit_without_commit_info(tmp_path: Path) -> None:
    t = make(tmp_path, properties=ICT)
    t.commit_file(2).write_text(json.dumps(TXN) + "\n")
    assert rules(t) == ["error commit.in-commit-timestamp"]


def test_an_in_commit_timestamp_that_does_not_grow(tmp_path: Path) -> None:
    t = make(tmp_path, properties=ICT)
    t.commit([TXN], in_commit_timestamp=BASE_TIME_MS + 60_000)
    assert rules(t) == ["error commit.in-commit-timestamp"]


def test_commit_info_that_is_not_first(tmp_path: Path) -> None:
    t = make(tmp_path, properties=ICT)
    lines = t.commit_file(1).read_text().splitlines()
    t.commit_file(1).write_text("\n".join([*lines[1:], lines[0]]) + "\n")
    assert rules(t) == ["error commit.info-first"]


def enabled_later(path: Path, **properties: str) -> TableBuilder:
    t = make(path, features=([], ["inCommitTimestamp"]))
    t.commit([t.metadata(properties={**ICT, **properties})], in_commit_timestamp=BASE_TIME_MS + 9)
    t.commit([TXN], in_commit_timestamp=BASE_TIME_MS + 10)
    return t


PREFIX = "delta.inCommitTimestampEnablement"


def test_timestamps_enabled_later_say_when(tmp_path: Path) -> None:
    right = {f"{PREFIX}Version": "2", f"{PREFIX}Timestamp": str(BASE_TIME_MS + 9)}
    assert rules(enabled_later(tmp_path / "right", **right)) == []
    for number, wrong in enumerate(({}, {**right, f"{PREFIX}Version": "1"}, {**right, f"{PREFIX}Timestamp": "7"})):
        t = enabled_later(tmp_path / str(number), **wrong)
        assert rules(t) == ["error commit.in-commit-timestamp-enablement"]


# --- deletion vectors and domains


def vectors(path: Path, **options: Any) -> tuple[TableBuilder, Action]:
    t = TableBuilder(path, {"id": "long"}, **options)
    t.create()
    [add] = t.append([{"id": i} for i in range(5)])
    return t, add


def test_a_deletion_vector_without_num_records(tmp_path: Path) -> None:
    t, add = vectors(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    remove, new = t.delete_rows(add, [1])
    t.commit([remove, without(new, "stats")])
    assert rules(t) == ["error commit.statistics"]


def test_a_deletion_vector_without_the_feature(tmp_path: Path) -> None:
    t, add = vectors(tmp_path)
    t.delete(add, [1])
    assert rules(t) == ["error feature.missing"]


def test_a_new_deletion_vector_where_they_are_not_enabled(tmp_path: Path) -> None:
    t, add = vectors(tmp_path, features=(["deletionVectors"], []))
    t.delete(add, [1])
    assert rules(t) == ["warning commit.deletion-vector"]


@pytest.mark.parametrize(
    "change",
    [
        {"storageType": "x"},
        {"storageType": "i", "pathOrInlineDv": "0000000000"},
        {"pathOrInlineDv": "short"},
        {"cardinality": 6},
        {"sizeInBytes": -1},
    ],
)
def test_a_descriptor_that_is_wrong(tmp_path: Path, change: dict[str, Any]) -> None:
    t, add = vectors(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    remove, new = t.delete_rows(add, [1])
    new["add"]["deletionVector"] |= change
    t.commit([remove, new])
    assert rules(t, data=False) == ["error commit.deletion-vector"]


def domain(name: str, configuration: Any, removed: bool = False) -> Action:
    text = configuration if isinstance(configuration, str) else json.dumps(configuration)
    return {"domainMetadata": {"domain": name, "configuration": text, "removed": removed}}


def test_domains(tmp_path: Path) -> None:
    t = make(tmp_path, features=([], ["domainMetadata"]))
    t.commit([domain("mine", "anything")])
    t.commit([domain("mine", "anything", removed=True)])
    assert rules(t) == []
    t.commit([domain("mine", "anything", removed=True)])
    assert rules(t) == ["warning domain.unknown-removed"]


def test_domain_metadata_without_the_feature(table: TableBuilder) -> None:
    table.commit([domain("mine", "x")])
    assert rules(table) == ["error feature.missing"]


def test_a_domain_of_the_system_that_nobody_knows(tmp_path: Path) -> None:
    t = make(tmp_path, features=([], ["domainMetadata"]))
    t.commit([domain("delta.future", "x")])
    assert rules(t) == ["warning domain.unknown"]


def clustered(path: Path, configuration: Any, **options: Any) -> TableBuilder:
    t = TableBuilder(
        path,
        {"id": "long", "s": {"x": "long"}, "a": "long", "b": "long"},
        features=([], ["domainMetadata", "clustering"]),
        **options,
    )
    t.create([domain("delta.clustering", configuration)])
    return t


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"clusteringColumns": [["id"], ["s", "x"]]}, []),
        ({"clusteringColumns": ["id"]}, []),
        ({"clusteringColumns": []}, []),
        ({"clusteringColumns": [["nope"]]}, ["error clustering.domain"]),
        ({"clusteringColumns": 7}, ["error clustering.domain"]),
        ("not json", ["error clustering.domain"]),
        ({"clusteringColumns": [["id"], ["s", "x"], ["a"], ["b"], ["s"]]}, ["warning clustering.domain"]),
    ],
)
def test_clustering_columns(tmp_path: Path, configuration: Any, expected: list[str]) -> None:
    assert rules(clustered(tmp_path, configuration)) == expected


def test_a_table_that_is_clustered_and_partitioned(tmp_path: Path) -> None:
    t = clustered(tmp_path, {"clusteringColumns": [["id"]]}, partition_columns=["a"])
    assert rules(t) == ["error clustering.domain"]


def test_a_file_without_statistics_of_the_clustering_columns(tmp_path: Path) -> None:
    t = clustered(tmp_path, {"clusteringColumns": [["id"]]})
    t.append([{"id": 1}])
    assert rules(t) == []
    t.append([{"id": 1}], stats={"numRecords": 1})
    assert rules(t) == ["error clustering.statistics"]


def test_clustering_without_the_feature(tmp_path: Path) -> None:
    t = make(tmp_path, features=([], ["domainMetadata"]))
    t.commit([domain("delta.clustering", {"clusteringColumns": []})])
    assert rules(t) == ["error feature.missing"]
