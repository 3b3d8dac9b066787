"""Streams over each other's tables, into each other's tables, and the change feed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, Table, finish, properties_sql, rows

_SELECT = ("id", "CAST(id % 3 AS INT) AS p", "concat('v', id) AS v")
_LAYOUTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "partitioned": ({}, ("p",)),
    "deletion vectors": ({"delta.enableDeletionVectors": "true"}, ()),
    "column mapping": ({"delta.columnMapping.mode": "name"}, ("p",)),
}


def _source(engines: Engines, first: int, end: int) -> Any:
    return engines.spark.range(first, end, 1, 2).selectExpr(*_SELECT)


def _marks(name: str, feature: str, direction: str) -> list[pytest.MarkDecorator]:
    cell = pytest.mark.cell(feature, direction)
    return [cell, pytest.mark.also_bounded] if name == "deletion vectors" else [cell]


def _layouts(feature: str, direction: str) -> list[Any]:
    return [pytest.param(*layout, id=name, marks=_marks(name, feature, direction)) for name, layout in _LAYOUTS.items()]


def _make_as_reference(engines: Engines, path: Path, properties: dict[str, str], partition: tuple[str, ...]) -> Table:
    table = Table(engines, path)
    layout = f"PARTITIONED BY ({', '.join(partition)})" if partition else ""
    engines.sql(
        f"CREATE TABLE {table.name} (id BIGINT, p INT, v STRING) USING delta {layout} {properties_sql(properties)}"
    )
    engines.append_as_reference(_source(engines, 0, 10), path)
    return table


@pytest.mark.parametrize(("properties", "partition"), _layouts("streaming source", "reference -> us"))
def test_our_stream_over_the_reference_s_table(
    engines: Engines, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...]
) -> None:
    table = _make_as_reference(engines, tmp_path / "t", properties, partition)
    _stream_twice(engines, table, tmp_path, engines.append_as_reference)


@pytest.mark.parametrize(("properties", "partition"), _layouts("streaming source", "us -> reference"))
def test_the_reference_s_stream_over_our_table(
    engines: Engines, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...]
) -> None:
    table = Table(engines, tmp_path / "t")
    delta_pyds.write(_source(engines, 0, 10), str(table.path), partition_by=partition or None, properties=properties)
    _stream_twice(engines, table, tmp_path, engines.append)


def _stream_twice(engines: Engines, table: Table, scratch: Path, put: Any) -> None:
    """Both engines' streams deliver the same rows: the first snapshot, then appends without the changes."""
    options = {"skipChangeCommits": "true", "maxFilesPerTrigger": "3"}

    def both() -> list[str]:
        theirs = engines.stream("delta", table.path, scratch / "theirs", **options)
        assert engines.stream("deltapy", table.path, scratch / "ours", **options) == theirs
        return theirs

    table.sql("DELETE FROM {t} WHERE id % 7 = 3")
    assert both() == engines.agree(table.path)
    put(_source(engines, 10, 20), table.path)
    table.sql("UPDATE {t} SET v = 'u' WHERE id % 5 = 1")
    table.sql("OPTIMIZE {t}")
    put(_source(engines, 20, 25), table.path)
    assert len(both()) == len([i for i in range(10) if i % 7 != 3]) + 15


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param("delta", marks=pytest.mark.cell("streaming sink", "reference -> us")),
        pytest.param("deltapy", marks=pytest.mark.cell("streaming sink", "us -> reference")),
    ],
)
@pytest.mark.parametrize("source", ["delta", "deltapy"])
def test_streams_from_table_to_table(engines: Engines, tmp_path: Path, source: str, sink: str) -> None:
    """Any engine's source with any engine's sink: once each, also when it begins again."""
    start, target, checkpoint = tmp_path / "from", tmp_path / "to", tmp_path / "checkpoint"
    for first in (0, 10):
        engines.append(_source(engines, first, first + 5), start)
        engines.append_as_reference(_source(engines, first + 5, first + 10), start)
        query = (
            engines.spark.readStream.format(source)
            .option("maxFilesPerTrigger", 1)
            .load(str(start))
            .writeStream.format(sink)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(target))
        )
        finish(query)
        assert engines.agree(target) == rows(engines.reference(start))
    engines.assert_sound(target)
    # both sinks remember the query by one transaction id
    [(app, batch)] = [(t.app_id, t.version) for t in load_snapshot(str(target)).transactions.values()]
    assert batch >= 3 and app


# ---- the change feed


@pytest.mark.parametrize(("properties", "partition"), _layouts("change feed", "reference -> us"))
def test_the_change_feed_of_the_reference(
    engines: Engines, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...]
) -> None:
    properties = {**properties, "delta.enableChangeDataFeed": "true"}
    table = _make_as_reference(engines, tmp_path / "t", properties, partition)
    _change(table)
    _compare_changes(engines, table.path, tmp_path)


@pytest.mark.parametrize(("properties", "partition"), _layouts("change feed", "us -> reference"))
def test_the_change_feed_of_ours(
    engines: Engines, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...]
) -> None:
    properties = {**properties, "delta.enableChangeDataFeed": "true"}
    table = Table(engines, tmp_path / "t")
    delta_pyds.write(_source(engines, 0, 10), str(table.path), partition_by=partition or None, properties=properties)
    engines.append(_source(engines, 10, 20), table.path)
    engines.append(_source(engines, 8, 12), table.path, mode="overwrite", replaceWhere="id >= 8 AND id < 12")
    engines.append(_source(engines, 15, 25), table.path, mode="overwrite", replaceWhere="p >= 0 AND id >= 15")
    _change(table)
    engines.append(_source(engines, 50, 53), table.path, mode="overwrite")
    _compare_changes(engines, table.path, tmp_path)


def _change(table: Table) -> None:
    table.sql("DELETE FROM {t} WHERE id % 7 = 3")
    table.sql("UPDATE {t} SET v = 'u', p = p + 1 WHERE id % 5 = 1")
    table.sql(
        "MERGE INTO {t} t USING (SELECT id, 1 AS p, 'm' AS v FROM range(8, 30)) s ON t.id = s.id "
        "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    table.sql("OPTIMIZE {t}")


def _compare_changes(engines: Engines, path: Path, scratch: Path) -> None:
    options = {"readChangeFeed": "true", "startingVersion": "0"}
    theirs = rows(engines.reference(path, **options))
    some = {**options, "startingVersion": "1", "endingVersion": "2"}
    for given in (options, some):
        assert_df_equality(
            engines.ours(path, **given), engines.reference(path, **given), ignore_row_order=True, ignore_nullable=True
        )
    assert engines.stream("deltapy", path, scratch / "feed", **options) == theirs
    assert engines.stream("delta", path, scratch / "their-feed", **options) == theirs
    engines.assert_sound(path)
