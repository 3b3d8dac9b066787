"""Checkpoints of a table and clean-up of its log, according to its properties.

Protocol: "Checkpoints", "Metadata Cleanup".
"""

from __future__ import annotations

from functools import partial

from delta_pyds.catalog.managed import CLEAN_UP, ManagedStorage, allows, is_catalog_managed
from delta_pyds.log.checkpoint_writer import CheckpointSettings, write_checkpoint
from delta_pyds.log.cleanup import clean_log
from delta_pyds.log.last_checkpoint import LastCheckpointHint, write_last_checkpoint
from delta_pyds.log.replay import LogReplay
from delta_pyds.storage.base import Storage
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.clustering import clustering_columns
from delta_pyds.table.definition.statistics_columns import statistics_columns


def checkpoint_and_clean(storage: Storage, replay: LogReplay, *, now_ms: int) -> LastCheckpointHint:
    """Write the checkpoint of the replay's version, and the hint to it. Then clean the log if the table enables that.

    The log of a catalog-managed table is not cleaned while the catalog returns commits that the checkpoint covers:
    other readers may then ignore the checkpoint. The catalog may forbid ``CLEAN UP``.

    Raises: errors of writing and deleting; the table stays valid after any error.
    """
    root, version = replay.segment.table_root, replay.segment.version
    configuration = load_configuration(
        root, version, replay.protocol, replay.metadata, by_catalog=is_catalog_managed(storage)
    )
    hint = write_checkpoint(storage, replay, checkpoint_settings(configuration, replay, now_ms=now_ms))
    write_last_checkpoint(storage, root, hint)
    if isinstance(storage, ManagedStorage) and (not allows(storage, CLEAN_UP) or storage.stores_up_to(version)):
        return hint
    if configuration.properties.expired_log_cleanup:
        clean_log(
            storage,
            root,
            retention_ms=configuration.properties.log_retention_ms,
            now_ms=now_ms,
            configuration=configuration.configuration,
            protocol=configuration.protocol,
            cleaned_before=partial(storage.clean_staged, now_ms=now_ms)
            if isinstance(storage, ManagedStorage)
            else None,
        )
    return hint


def checkpoint_settings(configuration: TableConfiguration, replay: LogReplay, *, now_ms: int) -> CheckpointSettings:
    """The settings of a checkpoint, from the table's properties."""
    properties = configuration.properties
    kept_ms = properties.transaction_retention_ms
    return CheckpointSettings(
        schema=configuration.schema,
        partition_columns=configuration.partition_columns,
        statistics_columns=statistics_columns(
            configuration.schema, properties, configuration.partition_columns, clustering_columns(replay.domains)
        ),
        policy="v2" if properties.checkpoint_policy == "v2" else "classic",
        stats_as_json=properties.checkpoint_stats_as_json,
        stats_as_struct=properties.checkpoint_stats_as_struct,
        tombstones_since_ms=now_ms - properties.deleted_file_retention_ms,
        transactions_since_ms=None if kept_ms is None else now_ms - kept_ms,
    )
