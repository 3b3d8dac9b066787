"""Merge by a query of Spark: every kind of clause, which rows meet, what is told of it, in a sound table."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import delta_pyds
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import RowChangeResult
from delta_pyds.errors import DeltaError, UserError
from delta_pyds.spark.row_changes import merge_source
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge import merge_rows

# each takes seconds of Spark: a run takes a part of them, chosen by the commit
pytestmark = pytest.mark.one_test_in(6)

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
UPDATE_ALL = MergeClause("matched", "update")
DELETE = MergeClause("matched", "delete")
INSERT_ALL = MergeClause("not_matched", "insert")
DELETE_OTHERS = MergeClause("not_matched_by_source", "delete")
ON = "t.id = s.id"
KINDS_OF_SOURCE = pytest.mark.usefixtures("source_kind")
COLUMNS = "id long, v string, n int"
Rows = list[tuple[Any, ...]]


@pytest.fixture(autouse=True)
def format_known(spark: SparkSession) -> None:
    delta_pyds.register(spark)


@pytest.fixture(params=["small", "large"])
def source_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the source is kept in this process or on the disks of the executors."""
    if request.param == "large":
        monkeypatch.setattr(merge_source, "_small", lambda *_: None)


def update(condition: Any = None, kind: Any = "matched", **assignments: Any) -> MergeClause:
    return MergeClause(kind, "update", condition, assignments)


def insert(condition: Any = None, **values: Any) -> MergeClause:
    return MergeClause("not_matched", "insert", condition, values)


def made(spark: SparkSession, path: Path, rows: Rows | None = None, schema: str = COLUMNS, **options: Any) -> Path:
    """Rows 0 to 5 in two files, the even ones before the odd ones."""
    rows = [(i, f"v{i}", i * 10) for i in range(6)] if rows is None else rows
    first, *others = [rows[::2], rows[1::2]]
    options.setdefault("properties", VECTORS)
    delta_pyds.write(spark.createDataFrame(first, schema).coalesce(1), path, **options)
    for more in others:
        delta_pyds.write(spark.createDataFrame(more, schema).coalesce(1), path, mode="append")
    return path


def source_of(spark: SparkSession, rows: Rows, schema: str = COLUMNS, alias: str = "s") -> DataFrame:
    return spark.createDataFrame(rows, schema).alias(alias)


def merge(
    spark: SparkSession,
    path: Path,
    source: DataFrame,
    clauses: Sequence[MergeClause],
    on: Any = ON,
    *,
    evolve: bool = False,
    **options: Any,
) -> RowChangeResult:
    handle = TableHandle(spark, str(path), **{"alias": "t", "engine": "spark", **options})
    result = merge_rows(handle, source, on, clauses, schema_evolution=evolve)
    delta_pyds.verify(str(path)).raise_for_errors()
    return result


def rows_of(spark: SparkSession, path: Path) -> Rows:
    rows = [tuple(row) for row in delta_pyds.read(spark, path).collect()]
    return sorted(rows, key=lambda row: tuple((value is not None, str(value)) for value in row))


def changes_of(spark: SparkSession, path: Path, version: int) -> Rows:
    feed = spark.read.format("deltapy").option("readChangeFeed", "true").option("startingVersion", version)
    frame = feed.option("endingVersion", version).load(str(path)).drop("_commit_version", "_commit_timestamp")
    return sorted((tuple(row) for row in frame.collect()), key=str)


def counts(result: RowChangeResult) -> tuple[int, int, int]:
    assert result.num_affected_rows == (result.num_updated_rows + result.num_deleted_rows + result.num_inserted_rows)
    return result.num_updated_rows, result.num_deleted_rows, result.num_inserted_rows


def commit_of(path: Path, version: int) -> list[dict[str, Any]]:
    text = (path / "_delta_log" / f"{version:020}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


SOURCE: Rows = [(1, "a", 100), (2, "b", 200), (7, "c", 700)]
UPSERTED: Rows = [
    (0, "v0", 0), (1, "a", 100), (2, "b", 200), (3, "v3", 30), (4, "v4", 40), (5, "v5", 50), (7, "c", 700),
]  # fmt: skip


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("properties", [{}, VECTORS, CHANGES, {**VECTORS, **CHANGES}], ids=["", "dv", "cdf", "dv-cdf"])
@KINDS_OF_SOURCE
def test_an_upsert(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    path = made(spark, tmp_path / "t", properties=properties)

    result = merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL])

    assert rows_of(spark, path) == UPSERTED
    assert counts(result) == (2, 0, 1)
    info, *actions = commit_of(path, 2)
    parameters = info["commitInfo"]["operationParameters"]
    metrics = info["commitInfo"]["operationMetrics"]
    assert info["commitInfo"]["operation"] == "MERGE"
    assert json.loads(parameters["predicate"]) == [ON]
    assert json.loads(parameters["matchedPredicates"]) == [{"actionType": "update"}]
    assert json.loads(parameters["notMatchedPredicates"]) == [{"actionType": "insert"}]
    assert json.loads(parameters["notMatchedBySourcePredicates"]) == []
    assert metrics["numSourceRows"] == "3"
    assert metrics["numTargetRowsMatchedUpdated"] == metrics["numTargetRowsUpdated"] == "2"
    assert metrics["numTargetRowsInserted"] == "1"
    assert metrics["numTargetDeletionVectorsAdded"] == ("2" if VECTORS.items() <= properties.items() else "0")
    assert metrics["numOutputRows"] == ("3" if VECTORS.items() <= properties.items() else "7")
    assert any("cdc" in action for action in actions) == (CHANGES.items() <= properties.items())
    if CHANGES.items() <= properties.items():
        assert changes_of(spark, path, 2) == [
            (1, "a", 100, "update_postimage"),
            (1, "v1", 10, "update_preimage"),
            (2, "b", 200, "update_postimage"),
            (2, "v2", 20, "update_preimage"),
            (7, "c", 700, "insert"),
        ]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("properties", [{}, {**VECTORS, **CHANGES}], ids=["", "dv-cdf"])
@KINDS_OF_SOURCE
def test_clauses_of_all_kinds_in_order(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    """The first clause that is satisfied takes a row; a condition that is null is not satisfied."""
    path = made(spark, tmp_path / "t", properties=properties)
    source = source_of(spark, [*SOURCE, (3, None, None), (8, "d", 0), (9, "e", None)])

    result = merge(
        spark,
        path,
        source,
        [
            update("s.n > 150", v="s.v || t.v"),
            MergeClause("not_matched_by_source", "update", "t.n > 40", {"n": "t.n + 1", "v": F.lit("by source")}),
            MergeClause("matched", "delete", F.col("s.n") > 50),
            insert("s.n > 1", id="s.id", v="s.v"),
            MergeClause("not_matched_by_source", "delete", "n = 0"),
            insert(F.col("s.n") == 0, id="id * 100"),
        ],
    )

    assert rows_of(spark, path) == [
        (2, "bv2", 20), (3, "v3", 30), (4, "v4", 40), (5, "by source", 51), (7, "c", None), (800, None, None),
    ]  # fmt: skip
    assert counts(result) == (2, 2, 2)
    metrics = commit_of(path, 2)[0]["commitInfo"]["operationMetrics"]
    assert metrics["numTargetRowsNotMatchedBySourceDeleted"] == "1"
    assert metrics["numTargetRowsNotMatchedBySourceUpdated"] == "1"
    assert metrics["numTargetRowsMatchedDeleted"] == metrics["numTargetRowsMatchedUpdated"] == "1"
    parameters = commit_of(path, 2)[0]["commitInfo"]["operationParameters"]
    assert json.loads(parameters["matchedPredicates"])[0] == {"predicate": "s.n > 150", "actionType": "update"}
    if properties:
        assert changes_of(spark, path, 2) == sorted(
            [
                (2, "v2", 20, "update_preimage"), (2, "bv2", 20, "update_postimage"), (1, "v1", 10, "delete"),
                (5, "v5", 50, "update_preimage"), (5, "by source", 51, "update_postimage"), (0, "v0", 0, "delete"),
                (7, "c", None, "insert"), (800, None, None, "insert"),
            ],
            key=str,
        )  # fmt: skip


@KINDS_OF_SOURCE
def test_one_kind_of_clause_alone(spark: SparkSession, tmp_path: Path) -> None:
    source = source_of(spark, SOURCE)
    for n, (clause, expected) in enumerate(
        [
            (UPDATE_ALL, (2, 0, 0)),
            (DELETE, (0, 2, 0)),
            (INSERT_ALL, (0, 0, 1)),
            (DELETE_OTHERS, (0, 4, 0)),
            (update(None, "not_matched_by_source", v="'alone'"), (4, 0, 0)),
        ]
    ):
        path = made(spark, tmp_path / str(n))
        assert counts(merge(spark, path, source, [clause])) == expected
        assert len(rows_of(spark, path)) == 6 - expected[1] + expected[2]


@KINDS_OF_SOURCE
def test_nothing_to_change_is_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    for source, clauses in [
        (source_of(spark, [(1, "a", 1)]), [INSERT_ALL]),
        (source_of(spark, [(9, "a", 1)]), [UPDATE_ALL, DELETE_OTHERS][:1]),
        (source_of(spark, []), [UPDATE_ALL, INSERT_ALL]),
        (source_of(spark, [(1, "a", 1)]), [update("s.n = 2", v="s.v")]),
        (source_of(spark, [(None, "a", 1)]), [UPDATE_ALL]),
    ]:
        assert merge(spark, path, source, clauses).version is None


@KINDS_OF_SOURCE
def test_empty_target(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", [])

    result = merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL, DELETE_OTHERS])

    assert counts(result) == (0, 0, 3)
    assert rows_of(spark, path) == SOURCE


@KINDS_OF_SOURCE
def test_null_keys_meet_nothing_unless_null_safe(spark: SparkSession, tmp_path: Path) -> None:
    rows: Rows = [(None, "null", 1), (1, "one", 1)]
    path = made(spark, tmp_path / "a", rows)
    merge(spark, path, source_of(spark, [(None, "new", 5)]), [UPDATE_ALL, INSERT_ALL])
    assert rows_of(spark, path) == [(None, "new", 5), (None, "null", 1), (1, "one", 1)]

    path = made(spark, tmp_path / "b", rows)
    merge(spark, path, source_of(spark, [(None, "new", 5)]), [UPDATE_ALL, INSERT_ALL], on="t.id <=> s.id")
    assert rows_of(spark, path) == [(None, "new", 5), (1, "one", 1)]


@KINDS_OF_SOURCE
def test_several_source_rows_on_one_row_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """By the merge's condition alone: also where no clause takes the rows, or only one of them."""
    path = made(spark, tmp_path / "t")
    twice = source_of(spark, [*SOURCE, (1, "z", 1)])
    for clauses in (
        [UPDATE_ALL],
        [update("s.v = 'a'", v="s.v")],
        [MergeClause("matched", "delete", "s.n = -1")],
        [INSERT_ALL, DELETE_OTHERS],
        [MergeClause("matched", "delete", "s.n = -1"), DELETE],
    ):
        with pytest.raises(DeltaError, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
            merge(spark, path, twice, clauses)
    assert rows_of(spark, path) == [(i, f"v{i}", i * 10) for i in range(6)]
    # a task that had ended before another one failed may leave its file for vacuum, but no commit names it
    assert delta_pyds.load_snapshot(path).version == 1


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("properties", [VECTORS, CHANGES, {**VECTORS, **CHANGES}], ids=["dv", "cdf", "dv-cdf"])
@KINDS_OF_SOURCE
def test_an_only_unconditional_delete_may_match_often(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    twice = source_of(spark, SOURCE + SOURCE)
    path = made(spark, tmp_path / "a", properties=properties)
    assert counts(merge(spark, path, twice, [DELETE])) == (0, 2, 0)

    path = made(spark, tmp_path / "b", properties=properties)
    assert counts(merge(spark, path, twice, [DELETE, INSERT_ALL])) == (0, 2, 2)
    assert [row[0] for row in rows_of(spark, path)] == [0, 3, 4, 5, 7, 7]

    path = made(spark, tmp_path / "c", properties=properties)
    assert counts(merge(spark, path, twice, [INSERT_ALL])) == (0, 0, 2)

    path = made(spark, tmp_path / "d", properties=properties)
    assert counts(merge(spark, path, twice, [DELETE, INSERT_ALL, DELETE_OTHERS])) == (0, 6, 2)


@KINDS_OF_SOURCE
def test_a_source_is_seen_once(spark: SparkSession, tmp_path: Path) -> None:
    """Which rows match, which do not, and what they bring is one draw of a source that is random."""
    path = made(spark, tmp_path / "t")
    source = spark.range(12).select("id", F.rand().cast("string").alias("v"), (F.rand() * 9).cast("int").alias("n"))
    drawn = source.filter(F.rand() < 0.5).alias("s")

    result = merge(spark, path, drawn, [UPDATE_ALL, INSERT_ALL])

    rows = rows_of(spark, path)
    assert len({row[0] for row in rows}) == len(rows) == 6 + result.num_inserted_rows
    assert sum(not str(row[1]).startswith("v") for row in rows) == result.num_affected_rows


@KINDS_OF_SOURCE
def test_times_without_a_zone_stay_in_any_zone(spark: SparkSession, tmp_path: Path) -> None:
    """As keys, as values, and inside of structs and arrays."""
    schema = "id timestamp_ntz, v struct<at: timestamp_ntz>, n array<timestamp_ntz>, z timestamp"
    utc = dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone.utc)
    old, new = [dt.datetime(2026, 7, day, 12) for day in (1, 2, 3)], dt.datetime(2026, 8, 1)
    path = made(spark, tmp_path / "t", [(day, (day,), [day], utc) for day in old[:2]], schema)
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        source = source_of(spark, [(day, (new,), [new, None], utc) for day in old[1:]], schema)
        assert counts(merge(spark, path, source, [UPDATE_ALL, INSERT_ALL])) == (1, 0, 1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    texts = delta_pyds.read(spark, path).selectExpr("cast(id as string) id", "string(v.at)", "string(n)", "string(z)")
    at_noon, changed = "2026-07-01 12:00:00", ("2026-08-01 00:00:00", "[2026-08-01 00:00:00, null]")
    assert sorted(tuple(row) for row in texts.collect()) == [
        (at_noon, at_noon, f"[{at_noon}]", at_noon),
        ("2026-07-02 12:00:00", *changed, at_noon),
        ("2026-07-03 12:00:00", *changed, at_noon),
    ]


@KINDS_OF_SOURCE
def test_a_source_may_read_the_target(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = delta_pyds.read(spark, path).filter("id < 3").selectExpr("id + 1 AS id", "v", "n").alias("s")

    assert counts(merge(spark, path, source, [UPDATE_ALL, INSERT_ALL])) == (3, 0, 0)
    assert rows_of(spark, path)[:4] == [(0, "v0", 0), (1, "v0", 0), (2, "v1", 10), (3, "v2", 20)]


@KINDS_OF_SOURCE
def test_columns_of_the_users_frames(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    table, changes = delta_pyds.read(spark, path), spark.createDataFrame(SOURCE, COLUMNS)

    result = merge(
        spark,
        path,
        changes,
        [
            MergeClause("matched", "update", changes.n > 150, {"v": changes["v"], "n": table.n + changes.n}),
            MergeClause("not_matched", "insert", None, {"id": changes["id"], "v": F.col("v")}),
        ],
        on=table["id"] == changes["id"],
        known_frames=(table,),
        alias=None,
    )

    assert counts(result) == (1, 0, 1)
    assert (2, "b", 220) in rows_of(spark, path)
    assert (7, "c", None) in rows_of(spark, path)


def test_columns_that_both_frames_share_mean_neither(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    table = delta_pyds.read(spark, path)
    source = table.filter("id < 2").alias("s")

    with pytest.raises(UserError, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
        merge(spark, path, source, [UPDATE_ALL], on=table["id"] == F.col("s.id"), known_frames=(table,))
    assert counts(merge(spark, path, source, [update(n="s.n + 1")], known_frames=(table,))) == (2, 0, 0)


@KINDS_OF_SOURCE
def test_a_function_of_the_user_says_which_rows_meet(spark: SparkSession, tmp_path: Path) -> None:
    """Spark takes one in the condition of an inner join alone; rows that several meet are deleted once."""
    path = made(spark, tmp_path / "t", properties={**VECTORS, **CHANGES})
    same = F.udf(lambda one, other: one == other, "boolean")
    twice = source_of(spark, [*SOURCE, (1, "again", 5)])

    assert counts(merge(spark, path, twice, [DELETE], on=same(F.col("t.id"), F.col("s.id")))) == (0, 2, 0)
    assert [row[0] for row in rows_of(spark, path)] == [0, 3, 4, 5]
    assert len(changes_of(spark, path, 2)) == 2


def test_a_condition_without_a_value_takes_no_row(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = source_of(spark, SOURCE)

    clauses = [update("null", n="1"), update(F.lit(None), n="2"), MergeClause("matched", "delete", "t.id = 1")]
    assert counts(merge(spark, path, source, [*clauses, MergeClause("not_matched", "insert", "null")])) == (0, 1, 0)
    assert counts(merge(spark, path, source, [DELETE, INSERT_ALL], on="null")) == (0, 0, 3)


@KINDS_OF_SOURCE
def test_what_spark_alone_evaluates(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")

    @F.udf("string")
    def shout(text: str | None) -> str | None:
        return None if text is None else text.upper()

    result = merge(
        spark,
        path,
        source_of(spark, SOURCE),
        [
            update("rand() < 2 AND s.id IN (SELECT 1 UNION SELECT 2)", v=shout(F.col("s.v")), n="(SELECT 5)"),
            insert(id="s.id", v=F.concat_ws("-", F.col("s.v"), F.lit("x"))),
        ],
        on="upper(cast(t.id AS string)) = upper(cast(s.id AS string))",
    )

    assert counts(result) == (2, 0, 1)
    assert [row for row in rows_of(spark, path) if row[0] in (1, 2, 7)] == [
        (1, "A", 5), (2, "B", 5), (7, "c-x", None),
    ]  # fmt: skip


@KINDS_OF_SOURCE
def test_a_value_is_computed_only_for_rows_that_get_it(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = source_of(spark, [(1, "a", 0), (7, "b", 7)])

    result = merge(spark, path, source, [update(n="s.n + 1"), insert(id="s.id", n="7 div s.n")])

    assert counts(result) == (1, 0, 1)
    assert (7, None, 1) in rows_of(spark, path)


@KINDS_OF_SOURCE
def test_store_assignment(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    texts = source_of(spark, [("1", 5, "55"), ("7", 6, "66")], "id string, v int, n string")

    merge(spark, path, texts, [UPDATE_ALL, INSERT_ALL])

    assert [row for row in rows_of(spark, path) if row[0] in (1, 7)] == [(1, "5", 55), (7, "6", 66)]
    for value in ("3000000000", "no number"):
        with pytest.raises((PySparkException, DeltaError), match=r"OVERFLOW|CAST_INVALID_INPUT"):
            merge(spark, path, source_of(spark, [(1, "a", value)], "id int, v string, n string"), [UPDATE_ALL])
    assert (1, "5", 55) in rows_of(spark, path)


def test_names_that_are_not_there(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = source_of(spark, SOURCE)
    unresolved: list[tuple[Any, list[MergeClause]]] = [
        (ON, [update(zzz="s.v")]),
        (ON, [MergeClause("matched", "update", None, {"s.v": "s.v"})]),
        (ON, [update(v="s.zzz")]),
        (ON, [update("t.zzz = 1", v="s.v")]),
        (ON, [insert(id="t.id")]),
        (ON, [MergeClause("not_matched_by_source", "update", None, {"v": "s.v"})]),
        ("t.id = s.zzz", [UPDATE_ALL]),
    ]
    for on, clauses in unresolved:
        with pytest.raises(UserError, match="DELTA_MERGE_UNRESOLVED_EXPRESSION"):
            merge(spark, path, source, clauses, on=on)
    for clause in (UPDATE_ALL, INSERT_ALL):
        with pytest.raises(UserError, match=r"DELTA_MERGE_UNRESOLVED_EXPRESSION.*Cannot resolve n in"):
            merge(spark, path, source.drop("n"), [clause])
    with pytest.raises(UserError, match="DELTA_CONFLICT_SET_COLUMN"):
        merge(spark, path, source, [MergeClause("matched", "update", None, {"v": "s.v", "V": "s.v"})])
    with pytest.raises(PySparkException, match="AMBIGUOUS_REFERENCE"):
        merge(spark, path, source, [UPDATE_ALL], on="id = s.id")
    with pytest.raises(UserError, match="FILTER_NOT_BOOLEAN"):
        merge(spark, path, source, [UPDATE_ALL], on="t.id")
    with pytest.raises(UserError, match="DELTA_AGGREGATION_NOT_SUPPORTED"):
        merge(spark, path, source, [update(n="max(s.n)")])


def test_which_clauses_may_stand_where(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t")
    source = source_of(spark, SOURCE)
    for clauses, code in [
        ([], "DELTA_MERGE_MISSING_WHEN"),
        ([update()], "DELTA_MERGE_MISSING_WHEN"),
        ([UPDATE_ALL, DELETE], "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        ([INSERT_ALL, insert("s.id = 1", id="1")], "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION"),
        ([DELETE_OTHERS, DELETE_OTHERS], "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION"),
    ]:
        with pytest.raises(UserError, match=code):
            merge(spark, path, source, clauses)
    assert counts(merge(spark, path, source, [update("s.id = 1")])) == (1, 0, 0)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("properties", [{}, {**VECTORS, **CHANGES}], ids=["", "dv-cdf"])
@KINDS_OF_SOURCE
def test_partitions_and_mapped_columns(spark: SparkSession, tmp_path: Path, properties: dict[str, str]) -> None:
    mapped = {**properties, "delta.columnMapping.mode": "name"}
    path = made(spark, tmp_path / "t", properties=mapped, partition_by=["v"])

    result = merge(spark, path, source_of(spark, [*SOURCE, (3, None, 1)]), [UPDATE_ALL, INSERT_ALL])

    assert counts(result) == (3, 0, 1)
    assert rows_of(spark, path) == [*UPSERTED[:3], (3, None, 1), *UPSERTED[4:]]


@KINDS_OF_SOURCE
def test_row_ids_stay(spark: SparkSession, tmp_path: Path) -> None:
    for name, properties in (("a", {}), ("b", VECTORS)):
        path = made(spark, tmp_path / name, properties={**properties, "delta.enableRowTracking": "true"})

        def ids(path: Path = path) -> dict[int, tuple[int, int]]:
            rows = delta_pyds.read(spark, path, row_ids=True).collect()
            return {row["id"]: (row["_row_id"], row["_row_commit_version"]) for row in rows}

        before = ids()
        merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL, DELETE_OTHERS])
        after = ids()
        assert set(after) == {1, 2, 7}
        assert [after[i][0] for i in (1, 2)] == [before[i][0] for i in (1, 2)]
        assert {version for _, version in after.values()} == {2}
        assert after[7][0] not in {number for number, _ in before.values()}


@KINDS_OF_SOURCE
def test_keys_of_the_source_prune_the_target(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for start in range(0, 100, 10):
        rows = [(i, f"v{i}", i) for i in range(start, start + 10)]
        delta_pyds.write(spark.createDataFrame(rows, COLUMNS).coalesce(1), path, mode="append", properties=VECTORS)

    result = merge(spark, path, source_of(spark, [(42, "x", 1), (47, "y", 2)]), [UPDATE_ALL, INSERT_ALL])
    assert (counts(result), result.num_files_read) == ((2, 0, 0), 1)

    ints = source_of(spark, [(12, "x", 1), (25, "y", 2)], "id int, v string, n int")
    result = merge(spark, path, ints, [UPDATE_ALL, INSERT_ALL], on="s.id = t.id AND t.n < 20")
    assert (counts(result), result.num_files_read) == ((1, 0, 1), 1)

    result = merge(spark, path, source_of(spark, [(5, "x", 1)]), [UPDATE_ALL, DELETE_OTHERS])
    assert counts(result) == (1, 100, 0)  # 25 is there twice


@KINDS_OF_SOURCE
def test_keys_are_found_whatever_the_log_says_of_a_file(spark: SparkSession, tmp_path: Path) -> None:
    """The reference prunes no file by keys: a row that is not found would be inserted a second time."""
    path = tmp_path / "t"
    for start in (0, 10):
        rows = [(i, f"v{i}", i) for i in range(start, start + 10)]
        delta_pyds.write(spark.createDataFrame(rows, COLUMNS).coalesce(1), path, mode="append", properties=VECTORS)
    log = path / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats["minValues"]["id"], stats["maxValues"]["id"] = 15, 16
            action["add"]["stats"] = json.dumps(stats)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))

    source = source_of(spark, [(2, "x", 1), (12, "y", 2), (99, "z", 3)])
    handle = TableHandle(spark, str(path), alias="t", engine="spark")
    result = merge_rows(handle, source, ON, [UPDATE_ALL, INSERT_ALL])
    assert counts(result) == (2, 0, 1)
    assert [row[1] for row in rows_of(spark, path) if row[0] == 12] == ["y"]


@pytest.mark.one_case_in(3)
@KINDS_OF_SOURCE
@pytest.mark.parametrize("beyond", [(10**12,), (-(10**12),), (-(10**12), 10**12)], ids=["above", "below", "both"])
def test_keys_beyond_the_type_of_the_table_hide_no_row(
    spark: SparkSession, tmp_path: Path, beyond: tuple[int, ...]
) -> None:
    path = made(spark, tmp_path / "t", [(i, "old") for i in range(8)], "id int, v string")
    source = source_of(spark, [(2, "new"), (5, "new"), *((key, "new") for key in beyond)], "id long, v string")

    result = merge(spark, path, source, [update(v="s.v"), insert("s.id between 0 and 7", id="s.id", v="s.v")])

    assert counts(result) == (2, 0, 0)
    assert rows_of(spark, path) == [(i, "new" if i in (2, 5) else "old") for i in range(8)]


@KINDS_OF_SOURCE
def test_keys_that_wrap_around_hide_no_row(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", [(i, "old") for i in (-126, 5, 44)], "id long, v string")
    source = source_of(spark, [(5, "new"), (130, "new"), (300, "new")], "id int, v string")
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        result = merge(spark, path, source, [update(v="s.v")], on="t.id = cast(cast(s.id as tinyint) as bigint)")
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(ansi))

    assert counts(result) == (3, 0, 0)


@KINDS_OF_SOURCE
def test_rules_of_the_table_hold(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", properties={**VECTORS, "delta.constraints.few": "n < 1000"})
    for clauses in ([update(n="s.n + 1000")], [insert(id="s.id", n="1000")], [insert(id="s.id")]):
        with pytest.raises(DeltaError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
            merge(spark, path, source_of(spark, SOURCE), clauses)
    assert counts(merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL])) == (2, 0, 1)


def test_append_only_takes_inserts_alone(spark: SparkSession, tmp_path: Path) -> None:
    path = made(spark, tmp_path / "t", properties={"delta.appendOnly": "true"})
    source = source_of(spark, SOURCE)
    with pytest.raises(DeltaError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        merge(spark, path, source, [UPDATE_ALL, INSERT_ALL])
    assert counts(merge(spark, path, source, [INSERT_ALL])) == (0, 0, 1)


def test_where_a_merge_runs(spark: SparkSession, tmp_path: Path) -> None:
    """In this process where our evaluator knows it all and little is to be read; the rows are the same."""
    clauses = [update("s.n > 150", v="s.v"), INSERT_ALL]
    expected = [(0, "v0", 0), (1, "v1", 10), (2, "b", 20), *UPSERTED[3:]]
    unknown = [update(v=F.udf(lambda v: v)(F.col("s.v"))), INSERT_ALL]
    for n, (which, where, options) in enumerate(
        [
            (clauses, "process", {"engine": "auto"}),
            (clauses, "spark", {"engine": "auto", "process_bytes": 0}),
            (clauses, "spark", {"engine": "spark"}),
            (clauses, "process", {"engine": "process", "process_bytes": 0}),
            (unknown, "spark", {"engine": "auto"}),
        ]
    ):
        path = made(spark, tmp_path / str(n))
        result = merge(spark, path, source_of(spark, SOURCE), which, **options)
        assert result.place.where_run == where
        if which is clauses:
            assert rows_of(spark, path) == expected
    with pytest.raises(DeltaError, match="DELTA_OPERATION_NOT_ALLOWED"):
        merge(spark, path, source_of(spark, SOURCE), unknown, engine="process")


def test_a_merge_that_lost_a_race_may_run_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = made(spark, tmp_path / "t")
    keep = merge_source.materialize_source

    def and_somebody_appends(source: DataFrame, level: StorageLevel) -> merge_source.MergeSource:
        monkeypatch.setattr("delta_pyds.spark.row_changes.merge.materialize_source", keep)
        delta_pyds.write(source_of(spark, [(7, "theirs", 0)]), path, mode="append")
        return keep(source, level)

    for runs in (1, 2):
        given: dict[str, Any] = {"max_runs": runs, "row_level_concurrency": False}
        monkeypatch.setattr("delta_pyds.spark.row_changes.merge.materialize_source", and_somebody_appends)
        if runs == 1:
            with pytest.raises(DeltaError, match="DELTA_CONCURRENT_APPEND"):
                merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL], **given)
            merge(spark, path, source_of(spark, [(7, "", 0)]), [DELETE])
        else:
            result = merge(spark, path, source_of(spark, SOURCE), [UPDATE_ALL, INSERT_ALL], **given)
            assert counts(result) == (3, 0, 0)
    assert rows_of(spark, path) == UPSERTED


def test_a_source_of_null_structs_whose_fields_may_not_be_null_is_kept(spark: SparkSession) -> None:
    """PySpark 4.2 cannot bring such rows here as Arrow; then they lie on the disks of the executors."""
    source = spark.sql("SELECT id, IF(id % 2 = 0, NULL, named_struct('x', id)) AS s FROM range(3)")
    kept = merge_source.materialize_source(source)
    found = sorted((row["id"], row["s"] and row["s"]["x"]) for row in kept.frame.select("id", "s").collect())
    assert found == [(0, None), (1, 1), (2, None)]
