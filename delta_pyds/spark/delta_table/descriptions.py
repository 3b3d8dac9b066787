"""The history and the detail of a table as DataFrames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_pyds.commands.describe import detail_table, history_table
from delta_pyds.html_table import pairs
from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.schema import display
from delta_pyds.spark.native.files import spark_path
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.detail import TableDetail
from delta_pyds.table.history import CommitRecord
from delta_pyds.table.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


# as Arrow a few rows are a local relation: no job to show them


def history_frame(spark: SparkSession, records: Iterable[CommitRecord]) -> DataFrame:
    """One row for each commit, in the order given."""
    return spark.createDataFrame(history_table(records))


def detail_frame(spark: SparkSession, detail: TableDetail) -> DataFrame:
    """One row."""
    return spark.createDataFrame(detail_table(detail, spark_path(detail.location)))


def detail_html(snapshot: Snapshot) -> str:
    """What a notebook shows of a table: what is known without a look at its list of files."""
    metadata = snapshot.metadata
    columns = ", ".join(f"{field.name} {display(field.data_type)}" for field in snapshot.schema)
    clustering = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    known = [
        ("name", metadata.name), ("description", metadata.description), ("path", snapshot.table_root),
        ("version", snapshot.version), ("columns", columns),
        ("partition columns", ", ".join(metadata.partition_columns or ())),
        ("clustering columns", ", ".join(".".join(path) for path in clustering)),
        ("features", ", ".join(sorted(supported_features(snapshot.protocol)))),
    ]  # fmt: skip
    return pairs([(name, value) for name, value in known if value not in (None, "")], caption="Delta table")
