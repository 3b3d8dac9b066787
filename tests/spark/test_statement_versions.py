"""One statement reads a table at one version, and changes this version, whatever others commit meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import delta_pyds
from delta_pyds.errors import ConflictError
from delta_pyds.spark import session_write
from delta_pyds.spark.sql import create, frames, insert
from delta_pyds.spark.sql.context import StatementContext
from delta_pyds.spark.table_commands import rows as row_commands
from delta_pyds.table.snapshot import load_snapshot
from tests.support.row_changes import VECTORS, small_table
from tests.support.table_builder import TableBuilder
from tests.support.table_writes import read_rows


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Ten rows in one file at version 1."""
    made = small_table(tmp_path / "t", {"id": "long", "v": "long"}, VECTORS)
    made.append([{"id": i, "v": 0} for i in range(10)])
    return made


@pytest.fixture
def sql(spark: SparkSession, table: TableBuilder) -> Callable[[str], DataFrame]:
    """Runs a statement in which T is the table by path, and LINK the same table by a symbolic link."""
    link = table.path.parent / "link"
    os.symlink(table.path, link)

    def run(text: str) -> DataFrame:
        text = text.replace("<T/>", f"delta.`{table.path}/`").replace("<LINK>", f"delta.`{link}`")
        return delta_pyds.sql(spark, text.replace("<T>", f"delta.`{table.path}`"))

    return run


def before_once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, winner: Callable[[], Any]) -> None:
    """Let another writer commit before the first call of a function."""
    call, waiting = getattr(module, name), [winner]

    def late(*args: Any, **options: Any) -> Any:
        if waiting:
            waiting.pop()()
        return call(*args, **options)

    monkeypatch.setattr(module, name, late)


def after_once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, winner: Callable[[], Any]) -> None:
    """Let another writer commit after the first call of a function."""
    call, waiting = getattr(module, name), [winner]

    def late(*args: Any, **options: Any) -> Any:
        done = call(*args, **options)
        if waiting:
            waiting.pop()()
        return done

    monkeypatch.setattr(module, name, late)


def ids(table: TableBuilder) -> set[int]:
    return {row["id"] for row in read_rows(table.path)}


# --- statements that write the rows of a query


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("CREATE OR REPLACE TABLE <T> USING delta AS", "<T>"),
        ("REPLACE TABLE <T> AS", "<LINK>"),
        ("INSERT OVERWRITE <T>", "(SELECT * FROM <T> UNION ALL SELECT * FROM <T/>)"),
        ("INSERT INTO <T>", "<LINK>"),
    ],
)
def test_rows_of_the_table_are_not_written_after_another_change(
    sql: Callable[[str], DataFrame],
    table: TableBuilder,
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    source: str,
) -> None:
    module = insert if statement.startswith("INSERT") else create
    before_once(monkeypatch, module, "write", lambda: table.append([{"id": 2000, "v": 0}]))
    with pytest.raises(ConflictError):
        sql(f"{statement} SELECT * FROM {source} WHERE id <> 3")
    assert ids(table) == {*range(10), 2000}
    sql(f"{statement} SELECT DISTINCT * FROM {source} WHERE id = 3")
    assert ids(table) == ({3} if not statement.startswith("INSERT INTO") else {*range(10), 2000})


@pytest.mark.parametrize("view", ["v", "shown"])
def test_a_view_over_the_table_counts_as_the_table(
    spark: SparkSession, table: TableBuilder, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    path, name = table.path, f"versions_{view}"
    kind = "TEMP VIEW" if view == "v" else "VIEW"
    text = f"CREATE OR REPLACE TABLE delta.`{path}` AS SELECT * FROM {name} WHERE id <> 3"
    delta_pyds.install(spark, delta=True)
    try:
        spark.sql(f"CREATE OR REPLACE {kind} {name} AS SELECT * FROM delta.`{path}`")
        before_once(monkeypatch, create, "write", lambda: table.append([{"id": 2000, "v": 0}]))
        with pytest.raises(ConflictError):
            spark.sql(text)
        assert ids(table) == {*range(10), 2000}
        spark.sql(text)
        assert ids(table) == {*range(10), 2000} - {3}
    finally:
        delta_pyds.uninstall()
        spark.sql(f"DROP VIEW IF EXISTS {name}")
        # the entries of a view of the catalog
        delta_pyds.remove_orphaned_holders(spark, wait_seconds=0)


def test_a_subquery_of_replace_where_reads_the_table(
    spark: SparkSession, sql: Callable[[str], DataFrame], table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append([{"id": 10 + i, "v": 0} for i in range(10)])
    delta_pyds.create_table(spark, "versions_replaced", str(table.path))
    # the winner changes no row that is replaced, and brings none
    before_once(monkeypatch, session_write, "commit_write", lambda: sql("DELETE FROM <T> WHERE id >= 10"))
    try:
        with pytest.raises(ConflictError):
            sql(
                "INSERT INTO <T> REPLACE WHERE id < 10 AND id + 10 IN (SELECT max(id) FROM versions_replaced) "
                "SELECT 9L AS id, 1L AS v"
            )
    finally:
        sql("DROP TABLE versions_replaced")
    assert ids(table) == set(range(10))


def test_a_table_is_replaced_by_rows_of_elsewhere_after_another_change(
    sql: Callable[[str], DataFrame], table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_once(monkeypatch, create, "write", lambda: table.append([{"id": 2000, "v": 0}]))
    sql("CREATE OR REPLACE TABLE <T> AS SELECT id, id AS v FROM range(2)")
    assert ids(table) == {0, 1}


# --- commands that change rows


COMMANDS = {
    "delete": "DELETE FROM <T> WHERE v = 0 AND NOT EXISTS (SELECT 1 FROM {0} WHERE v = 50)",
    "update": "UPDATE <T> SET v = (SELECT max(v) + 1 FROM {0}) WHERE id = 0",
    "merge": "MERGE INTO <T> t USING (SELECT max(v) + 1 AS v FROM {0}) s ON t.id = 0 "
    "WHEN MATCHED THEN UPDATE SET v = s.v",
}


@pytest.mark.parametrize(("name", "source"), [("delete", "<T>"), ("update", "<LINK>"), ("merge", "<T/>")])
def test_a_command_changes_the_version_that_its_query_reads(
    sql: Callable[[str], DataFrame], table: TableBuilder, monkeypatch: pytest.MonkeyPatch, name: str, source: str
) -> None:
    winner = f"UPDATE delta.`{table.path}` SET v = 50 WHERE id = 2"
    before_once(monkeypatch, row_commands, f"{name}_rows", lambda: sql(winner))
    with pytest.raises(ConflictError):
        sql(COMMANDS[name].format(source))
    assert sorted(row["v"] for row in read_rows(table.path)) == [0] * 9 + [50]


def test_cached_rows_of_another_version_are_not_read(
    sql: Callable[[str], DataFrame], table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    winner = f"UPDATE delta.`{table.path}` SET v = 50 WHERE id = 2"
    sql("CACHE TABLE <T>")
    try:
        after_once(monkeypatch, StatementContext, "target", lambda: sql(winner))
        with pytest.raises(ConflictError):
            sql(COMMANDS["update"].format("<T>"))
    finally:
        sql("UNCACHE TABLE <T>")
    assert sorted(row["v"] for row in read_rows(table.path)) == [0] * 9 + [50]


def test_a_tracked_view_is_not_older_than_the_target(
    spark: SparkSession, table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta_pyds.install(spark, delta=True)
    try:
        spark.sql(f"CREATE OR REPLACE TEMP VIEW tracked_v AS SELECT max(id) AS m FROM delta.`{table.path}`")
        before_once(monkeypatch, StatementContext, "target", lambda: table.append([{"id": 2000, "v": 0}]))
        spark.sql(
            f"MERGE INTO delta.`{table.path}` t USING tracked_v s ON t.id = 0 WHEN MATCHED THEN UPDATE SET v = s.m"
        )
    finally:
        delta_pyds.uninstall()
        spark.sql("DROP VIEW IF EXISTS tracked_v")
    assert {row["v"] for row in read_rows(table.path) if row["id"] == 0} == {2000}


# --- queries


@pytest.mark.parametrize(
    ("other", "condition"),
    [("<T>", " WHERE id >= 0"), ("<T/>", ""), ("<LINK>", " WHERE id >= 0"), ("versions_named", "")],
)
def test_a_query_reads_one_version_in_each_spelling(
    spark: SparkSession,
    sql: Callable[[str], DataFrame],
    table: TableBuilder,
    monkeypatch: pytest.MonkeyPatch,
    other: str,
    condition: str,
) -> None:
    delta_pyds.create_table(spark, "versions_named", str(table.path))
    after_once(monkeypatch, frames, "load", lambda: table.append([{"id": 2000, "v": 0}]))
    try:
        found = sql(f"SELECT (SELECT count(*) FROM <T>), (SELECT count(*) FROM {other}{condition})").collect()
    finally:
        sql("DROP TABLE versions_named")
    assert [tuple(row) for row in found] == [(10, 10)]
    assert load_snapshot(str(table.path)).version == 2
