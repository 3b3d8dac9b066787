"""Every kind of table, in both directions: one engine makes and fills it, the other reads, changes and fills it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import delta_pyds
from delta_pyds.table.snapshot import load_snapshot
from tests.interop.engines import Engines, Table, code_of, properties_sql, protocol_features, rows
from tests.interop.features import ALL, BOUNDED, Feature


def _cells(direction: str) -> list[Any]:
    """What a DataFrame cannot say of its table the reference says in both directions, and the matrix says that."""
    cells = []
    for f in ALL:
        ours = direction == "us -> reference"
        if ours and not f.written:
            continue
        note = ["on a table that the reference made"] if ours and f.made_by_reference else []
        marks = [pytest.mark.cell(f.name, direction, *note)]
        if f.name in BOUNDED:
            marks.append(pytest.mark.also_bounded)
        cells.append(pytest.param(f, id=f.name, marks=marks))
    return cells


def source_of(engines: Engines, feature: Feature, first: int, end: int) -> Any:
    return engines.spark.range(first, end, 1, 2).selectExpr(*_split(feature.select))


def _split(select: str) -> list[str]:
    """The columns of a select list: at commas outside of brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(select):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"`":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(select[start:i])
            start = i + 1
    return [part.strip() for part in (*parts, select[start:])]


def create_as_reference(table: Table, feature: Feature) -> None:
    if feature.metadata and not feature.made_by_reference:
        engines = table.engines
        empty = _described(source_of(engines, feature, 0, 0), feature)
        engines.append_as_reference(empty, table.path, **feature.properties)
        return
    layout = f"PARTITIONED BY ({', '.join(feature.partition)})" if feature.partition else ""
    layout = f"CLUSTER BY ({', '.join(feature.cluster)})" if feature.cluster else layout
    create = f"CREATE TABLE {{t}} ({feature.columns}) USING delta {layout} {properties_sql(feature.properties)}"
    for command in (create, *feature.then):
        table.engines.sql(command.replace("{select}", feature.select).replace("{t}", table.name)).collect()


def _described(df: Any, feature: Feature) -> Any:
    """The DataFrame, with what its columns have to say of the table."""
    for name, metadata in feature.metadata.items():
        df = df.withMetadata(name, dict(metadata))
    return df


def insert_as_reference(table: Table, feature: Feature, first: int, end: int) -> None:
    table.sql(f"INSERT INTO {{t}} BY NAME SELECT {feature.select} FROM range({first}, {end}, 1, 2)")


def create(table: Table, feature: Feature) -> None:
    """We make the table, with its first rows."""
    delta_pyds.write(
        _described(source_of(table.engines, feature, 0, 10), feature),
        str(table.path),
        partition_by=feature.partition or None,
        cluster_by=feature.cluster or None,
        properties={**feature.properties, **feature.ours},
    )


def _write_again(table: Table, feature: Feature) -> None:
    """An append, and rows that are replaced where that is allowed."""
    engines, path = table.engines, table.path
    engines.append(source_of(engines, feature, 50, 60), path)
    if "appendOnly" not in feature.name:
        engines.append(source_of(engines, feature, 55, 65), path, mode="overwrite", replaceWhere="id >= 55")


def _both_refuse(table: Table, feature: Feature) -> None:
    """Neither engine does what the table forbids, and both say it by one code."""
    engines = table.engines
    if feature.refused:
        bad = engines.spark.range(1).selectExpr(*_split(feature.refused))
        _refused_alike(
            table, lambda: engines.append(bad, table.path), lambda: engines.append_as_reference(bad, table.path)
        )
    if feature.name == "appendOnly":
        df = source_of(engines, feature, 0, 3)
        _refused_alike(
            table,
            lambda: engines.append(df, table.path, mode="overwrite"),
            lambda: engines.append_as_reference(df, table.path, mode="overwrite"),
        )


def _refused_alike(table: Table, ours: Callable[[], None], theirs: Callable[[], None]) -> None:
    before = load_snapshot(str(table.path)).version
    codes = [code_of(action) for action in (ours, theirs)]
    assert codes[0] == codes[1]
    assert load_snapshot(str(table.path)).version == before


@pytest.mark.parametrize("feature", _cells("reference -> us"))
def test_we_read_what_the_reference_makes_and_changes(engines: Engines, tmp_path: Path, feature: Feature) -> None:
    table = Table(engines, tmp_path / "t")
    create_as_reference(table, feature)
    insert_as_reference(table, feature, 0, 40)
    for command in feature.changes:
        table.sql(command.replace("{select}", feature.select))
    assert protocol_features(table.path).issuperset(feature.has)
    assert not feature.in_files or any(
        feature.in_files in str(pq.read_schema(f)) for f in table.path.rglob("*.parquet")
    )
    _both_refuse(table, feature)
    table.finish(feature.where, streamed_by="deltapy")


@pytest.mark.parametrize("feature", _cells("us -> reference"))
def test_the_reference_reads_and_changes_what_we_write(engines: Engines, tmp_path: Path, feature: Feature) -> None:
    table = Table(engines, tmp_path / "t")
    if feature.made_by_reference:
        create_as_reference(table, feature)
        engines.append(source_of(engines, feature, 0, 10), table.path)
    else:
        create(table, feature)
    assert protocol_features(table.path).issuperset(feature.has)
    table.step(lambda: engines.append(source_of(engines, feature, 10, 40), table.path))
    from pyspark.sql.functions import expr

    source = source_of(engines, feature, 0, 40)
    ours = engines.reference(table.path).where("id < 40")
    assert rows(ours.where(f"NOT coalesce({feature.holds}, false)")) == []
    written = ours.selectExpr(*(f"`{c}`" for c in source.columns))
    expected = source.to(written.schema)
    for name in feature.partition:
        if written.schema[name].dataType.typeName() in ("string", "binary"):
            expected = expected.withColumn(name, expr(f"IF(length({name}) = 0, NULL, {name})"))  # as the protocol says
    assert rows(written) == rows(expected)
    engines.assert_sound(table.path)
    for command in feature.changes:
        table.sql(command.replace("{select}", feature.select))
    table.step(lambda: _write_again(table, feature))
    engines.checkpoint_as_reference(table.path)
    _both_refuse(table, feature)
    table.finish(feature.where, streamed_by="delta")
