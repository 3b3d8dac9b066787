"""Changes through Spark Connect: those of a table are read, and rows of others applied. For ``connect_client``."""

from __future__ import annotations

from functools import partial
from typing import Any

from pyspark.sql.functions import col

import delta_pyds
from delta_pyds import DeltaTable
from delta_pyds.errors import UserError


def read_changes(spark: Any, path: str) -> None:
    """The changes of a table that recorded none: on the server, and as Arrow in this process."""
    delta_pyds.write(spark.range(10).selectExpr("id", "id AS v").coalesce(1), path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"v": "10"})
    table.delete("id = 2")
    delta_pyds.write(spark.range(10, 11).selectExpr("id", "id AS v"), path, mode="append")

    def rows(frame: Any) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in frame.select("id", "v", "_change_type", "_commit_version").collect())

    updated = [(1, 1, "update_preimage", 1), (1, 10, "update_postimage", 1), (2, 2, "delete", 2), (10, 10, "insert", 3)]
    apart = {"update_preimage": "delete", "update_postimage": "insert"}
    for place in (path, "file://" + path):
        changes = partial(delta_pyds.changes, spark, place)
        plain = rows(changes(since=1))
        assert plain == sorted((id_, v, apart.get(kind, kind), version) for id_, v, kind, version in updated), plain
        assert rows(changes(since=1, keys="ID", where="_commit_version < 9")) == updated
        assert rows(changes(since=2, net=True, keys=["id"], where="id > 2")) == [(10, 10, "insert", 3)]
        times = {row.version: row.timestamp for row in table.history().collect()}
        assert rows(changes(since=str(times[2]), until=2)) == [(2, 2, "delete", 2)]
        here = delta_pyds.scan_changes(path, since=1, keys="id", columns="id, v, _change_type, _commit_version")
        assert sorted(tuple(row.values()) for row in here.to_table().to_pylist()) == updated
        report = delta_pyds.explain(changes(since=1, keys="id"))
        # a path without a scheme may be another one on the server
        assert (report.changes and report.changes.ways) == (None if place == path else {"values": 2, "files": 1}), (
            report
        )
        listed = delta_pyds.sql(spark, f"SELECT * FROM table_changes('{place}', 1, 2)")
        assert rows(listed) == [row for row in plain if row[3] < 3]
        for words, wrong in (("latest version is 3", {"since": 77}), ("have no ids", {"since": 1, "compute": "rowIds"}),
                             ("DELTA_MISSING_CHANGE_DATA", {"since": 1, "compute": "never"}),
                             ("DELTA_COLUMN_NOT_FOUND", {"since": 1, "keys": "nope"})):  # fmt: skip
            try:
                changes(**wrong).collect()
            except Exception as error:
                assert words in str(delta_pyds.error_of(error) or error), error
            else:
                raise AssertionError(f"{wrong} was not refused")


def applied(spark: Any, path: str) -> None:
    """Late changes, in a batch from here and in one of a stream, whose function runs on the server."""
    columns = "id INT, seq BIGINT, name STRING, op STRING"
    first = spark.createDataFrame([(1, 1, "a", "U"), (1, 5, "c", "U"), (2, 4, None, "D")], columns)
    late = spark.createDataFrame([(1, 3, "b", "U"), (2, 2, "x", "U")], columns)
    late.write.json(f"file://{path}-late")
    rules: dict[str, Any] = {"keys": "id", "delete_when": col("op") == "D", "except_column_list": "op"}
    of_stream = {**rules, "delete_when": "op = 'D'", "sequence_by": "seq", "txn_app_id": "late"}
    for scd in (1, 2):
        table = f"file://{path}-{scd}"
        done = delta_pyds.apply_changes(table, first, **rules, sequence_by=col("seq"), scd=scd)
        assert done.collect()[0].num_inserted_rows == scd + 1, done.collect()
        save = delta_pyds.apply_changes(table, **of_stream, scd=scd)
        writer = spark.readStream.schema(columns).json(f"file://{path}-late").writeStream.foreachBatch(save)
        writer = writer.option("checkpointLocation", f"file://{path}-late-{scd}").trigger(availableNow=True)
        query = writer.start()
        query.awaitTermination()
        assert query.exception() is None, query.exception()
        again = delta_pyds.apply_changes(table, first.unionByName(late), **rules, sequence_by="seq", scd=scd)
        assert again.collect()[0].num_affected_rows == 0, again.collect()
        delta_pyds.verify(f"{path}-{scd}").raise_for_errors()
    newest = {tuple(row) for row in delta_pyds.read(spark, f"file://{path}-1").collect()}
    assert newest == {(1, 5, "c", False), (2, 4, None, True)}, newest
    history = {tuple(row)[2:] for row in delta_pyds.read(spark, f"file://{path}-2").collect()}
    assert history == {("a", 1, 3), ("b", 3, 5), ("c", 5, None), ("x", 2, 4)}, history
    tie = spark.createDataFrame([(1, 5, "other", "U")], columns)
    for scd in (1, 2):
        try:
            delta_pyds.apply_changes(f"file://{path}-{scd}", tie, **rules, sequence_by="seq", scd=scd)
        except UserError as error:
            assert error.parameters["key"] == "id = 1", error
            continue
        raise AssertionError(scd)
