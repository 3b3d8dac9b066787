from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.sail.server import sail_session
from tests.support.table_builder import TableBuilder

SCHEMA = {"id": "long", "x": "double", "at": "timestamp", "p": "string"}
ROWS = [
    {"id": i, "x": float("nan") if i % 3 else i / 2, "at": dt.datetime(2024, 1, i, tzinfo=dt.timezone.utc), "p": "a b"}
    for i in range(1, 7)
]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with sail_session(tmp_path_factory.mktemp("sail")) as session:
        yield session


@pytest.fixture(params=["plain", "partitioned"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> TableBuilder:
    """Three files; the partitioned table has a deletion vector."""
    columns = ["p"] if request.param == "partitioned" else []
    properties = {"delta.enableDeletionVectors": "true"} if columns else {}
    made = TableBuilder(tmp_path / "t", SCHEMA, partition_columns=columns, properties=properties)
    made.create()
    adds = [made.append(ROWS[start : start + 2])[0] for start in (0, 2, 4)]
    if columns:
        made.delete(adds[0], [1])
    return made
