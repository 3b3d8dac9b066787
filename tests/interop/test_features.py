"""Every kind of table, in both directions: one engine makes and fills it, the other reads, changes and fills it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from tests.interop.engines import Engines, Table, properties_sql, protocol_features, rows
from tests.interop.features import ALL, Feature


def _cells(direction: str) -> list[Any]:
    return [pytest.param(f, id=f.name, marks=pytest.mark.cell(f.name, direction)) for f in ALL]


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


def _create_as_reference(table: Table, feature: Feature) -> None:
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


def _insert_as_reference(table: Table, feature: Feature, first: int, end: int) -> None:
    table.sql(f"INSERT INTO {{t}} BY NAME SELECT {feature.select} FROM range({first}, {end}, 1, 2)")


def create(table: Table, feature: Feature) -> None:
    """We make the table, with its first rows."""
    df = _described(source_of(table.engines, feature, 0, 10), feature)
    table.step(
        lambda: delta_pyds.write(
            df,
            str(table.path),
            partition_by=feature.partition or None,
            cluster_by=feature.cluster or None,
            properties={**feature.properties, **feature.ours},
        )
    )


@pytest.mark.parametrize("feature", _cells("reference -> us"))
def test_we_read_what_the_reference_makes_and_changes(engines: Engines, tmp_path: Path, feature: Feature) -> None:
    table = Table(engines, tmp_path / "t")
    _create_as_reference(table, feature)
    _insert_as_reference(table, feature, 0, 40)
    for command in feature.changes:
        table.sql(command.replace("{select}", feature.select))
    assert protocol_features(table.path).issuperset(feature.has)
    table.finish(feature.where)


@pytest.mark.parametrize("feature", _cells("us -> reference"))
def test_the_reference_reads_and_changes_what_we_write(engines: Engines, tmp_path: Path, feature: Feature) -> None:
    table = Table(engines, tmp_path / "t")
    if feature.made_by_reference:
        _create_as_reference(table, feature)
        table.step(lambda: engines.append(source_of(engines, feature, 0, 10), table.path))
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
    table.step(lambda: engines.append(source_of(engines, feature, 50, 60), table.path))
    if "appendOnly" not in feature.name:
        table.step(
            lambda: engines.append(
                source_of(engines, feature, 55, 65), table.path, mode="overwrite", replaceWhere="id >= 55"
            )
        )
    engines.checkpoint_as_reference(table.path)
    table.finish(feature.where)
