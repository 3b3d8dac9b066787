"""Delete, update and merge on every kind of table, by each engine: two copies of one table stay alike.

On one copy the reference begins, on the other one we do, and then they take turns: after each command both copies have
the same rows, changes, row ids and accounts of the commit, and each engine goes on with what the other one wrote.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.interop.changed_alike import assert_alike, files, identity_values, row_ids
from tests.interop.commands import kind_of, run_as_us
from tests.interop.engines import Engines, Table, core_rows
from tests.interop.features import ALL, Feature
from tests.interop.matrix import COMMANDS, WAYS, Cell
from tests.interop.test_deltalake import REFUSED, their_rows
from tests.interop.test_features import create_as_reference, insert_as_reference

_DVS = {"delta.enableDeletionVectors": "true"}
# it reads a timestamp of the reference's files, of 96 bits, as nanoseconds, which the year 1 overflows
_WRONG_IN_DELTALAKE = ("type date, timestamp and timestamp_ntz",)
# a bounded run takes these: each takes a minute
_BOUNDED = [("changeDataFeed", "rewriting"), ("all features together", "vectors")]


def _commands(feature: Feature) -> list[str]:
    """The feature's commands that change rows, each once of its kind and in every order of engines."""
    found = {kind_of(text): text for text in reversed(feature.changes) if kind_of(text) in COMMANDS}
    return [found[kind] for kind in COMMANDS if kind in found]


def _pairs() -> list[tuple[Feature, str]]:
    """Each feature whose rows we change, and each way that a table with it allows."""
    pairs = []
    for feature in ALL:
        for way in WAYS:
            with_vectors = feature.properties.get("delta.enableDeletionVectors") == "true"
            # the name says it, or the table may not have them
            refused = (with_vectors and way == "rewriting") or ("iceberg" in feature.name and way == "vectors")
            if feature.written and _commands(feature) and not refused:
                pairs.append((feature, way))
    return pairs


def _cells() -> list[Any]:
    pairs = _pairs()
    cells = []
    for feature, way in pairs:
        marks = [pytest.mark.cell(feature.name, f"{kind_of(text)} by {way}") for text in _commands(feature)]
        if (feature.name, way) in _BOUNDED:
            marks.append(pytest.mark.also_bounded)
        cells.append(pytest.param(feature, way, id=f"{feature.name}, {way}", marks=marks))
    return cells


@pytest.mark.parametrize(("feature", "way"), _cells())
def test_both_change_rows_alike(engines: Engines, tmp_path: Path, feature: Feature, way: str, cell: Cell) -> None:
    if way == "vectors":
        feature = replace(feature, properties={**feature.properties, **_DVS})
    first = Table(engines, tmp_path / "first")
    create_as_reference(first, feature)
    insert_as_reference(first, feature, 0, 40)
    second = Table(engines, Path(shutil.copytree(first.path, tmp_path / "second")))
    tracked = "delta.enableRowTracking" in feature.properties
    for turn, text in enumerate(_commands(feature)):
        command = text.replace("{select}", feature.select)
        by_reference, by_us = (first, second) if turn % 2 == 0 else (second, first)
        known = {id_: row_id for id_, (row_id, _) in row_ids(engines, by_us.path).items()} if tracked else None
        numbers = identity_values(engines, by_us.path) if "identityColumns" in feature.has else None
        same_files = files(engines, by_reference.path) == files(engines, by_us.path)
        assert same_files or turn > 0
        by_reference.sql(command)
        by_us.step(lambda by_us=by_us, command=command: run_as_us(engines.spark, by_us.path, command))
        assert_alike(
            engines, by_reference.path, by_us.path, same_files=same_files, known_ids=known, known_numbers=numbers
        )
        if feature.name not in (*REFUSED, *_WRONG_IN_DELTALAKE) and not feature.made_by_reference:
            assert their_rows(by_us.path) == core_rows(by_us.path)
        cell.passed(f"{kind_of(text)} by {way}")
    for table in (first, second):
        table.finish(feature.where)
