"""DESCRIBE HISTORY and DESCRIBE DETAIL, and the HTML of a table for a notebook."""

from __future__ import annotations

from pyspark.sql import DataFrame

from delta_pyds.commands.describe import detail_table, history_table
from delta_pyds.html_table import pairs
from delta_pyds.protocol.features import supported_features
from delta_pyds.protocol.schema import display
from delta_pyds.spark.log_rows import from_log
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.storage.resolve import hadoop_path
from delta_pyds.table.definition.clustering import logical_clustering_columns
from delta_pyds.table.detail import table_detail
from delta_pyds.table.history import history as table_history
from delta_pyds.table.snapshot import Snapshot


def history(handle: TableHandle, limit: int | None) -> DataFrame:
    """One row for each commit that the log still has, newest first, at most ``limit``."""
    snapshot = handle.open()
    records = table_history(
        snapshot.storage, snapshot.table_root, limit, properties_of_latest=snapshot.configuration.properties
    )
    # as Arrow a few rows are a local relation: no job to show them
    return from_log(handle.spark.createDataFrame(history_table(records)))


def detail(handle: TableHandle) -> DataFrame:
    """One row: identity, location, layout, number and size of files, properties, protocol."""
    found = table_detail(handle.open())
    return from_log(handle.spark.createDataFrame(detail_table(found, hadoop_path(found.location))))


def detail_html(snapshot: Snapshot) -> str:
    """The HTML of a table, from its metadata alone: no list of files is read."""
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
