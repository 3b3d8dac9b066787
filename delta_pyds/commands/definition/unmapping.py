"""Column mapping is removed: every file is rewritten, with the columns under the names that users see.

Invariant: no row changes, and none is lost; old versions of the table are still read from the old files. The feature
stays supported: only the mode is removed.

Protocol: "Column Mapping", "Clustered Table", "Row Tracking".
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from delta_pyds.commands.commit import commit_or_discard
from delta_pyds.commands.definition.change import DefinitionOptions, check_definition, clustered_by
from delta_pyds.commands.definition.rewrite import rewrite
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.errors import ProtocolError, UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import StructType, change_fields, schema_to_string
from delta_pyds.table.configuration import load_configuration
from delta_pyds.table.definition.column_mapping import unmapped_field
from delta_pyds.table.definition.iceberg_rules import check_iceberg_table
from delta_pyds.table.definition.schema_evolution import check_rewritable
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.row_tracking import PRESERVED_TAG
from delta_pyds.table.transaction.transaction import Committed, Transaction


def remove_mapping(
    snapshot: Snapshot,
    runner: TaskRunner,
    options: DefinitionOptions,
    command: CommandOptions,
    *,
    keep_mode: bool = True,
) -> Committed:
    """Rewrite all files and commit them with a schema without ids and physical names.

    ``keep_mode``: set the property to ``none``; else remove it.

    Raises: UserError for names that a table without column mapping cannot have, and for Iceberg compatibility, which
        needs it; a ConflictError if another commit changed rows meanwhile; errors of the tasks.
    """
    before = snapshot.configuration
    before.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)
    check_rewritable(before)
    configuration = {k: v for k, v in before.configuration.items() if k != Property.COLUMN_MAPPING_MAX_COLUMN_ID}
    configuration[Property.COLUMN_MAPPING_MODE] = "none"
    if not keep_mode:
        del configuration[Property.COLUMN_MAPPING_MODE]
    metadata = msgspec.structs.replace(
        snapshot.metadata,
        schema_string=schema_to_string(change_fields(before.schema, unmapped_field)),
        configuration=configuration,
    )
    after = load_configuration(
        snapshot.table_root, before.version + 1, snapshot.protocol, metadata, by_catalog=before.by_catalog
    )
    # before anything is rewritten
    check_iceberg_table(before, after)
    try:
        check_definition(before, after)
    except UserError as e:
        if e.code != "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES":
            raise
        code = "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING"
        raise UserError(f"{e.message} Rename the columns first.", code=code, **e.parameters) from None
    domains = _clustering(snapshot)
    scan = plan_scan(snapshot, storage_options=command.storage_options)
    files = list(live_files(scan))
    with commit_or_discard(snapshot.table_root, command.storage_options) as end:
        done = rewrite(snapshot, files, after, runner, command, end)
        transaction = Transaction(snapshot)
        transaction.record_whole_table()
        transaction.set_metadata(metadata)
        for domain in domains:
            transaction.set_domain(domain)
        done.changes.put_into(transaction, data_change=False)
        return end.commit(
            transaction,
            Operation("REMOVE COLUMN MAPPING", {}, done.metrics),
            user_metadata=options.user_metadata,
            isolation_level="Serializable",
            tags={PRESERVED_TAG: "true"} if before.has_row_tracking else None,
        )


def _clustering(snapshot: Snapshot) -> tuple[DomainMetadata, ...]:
    """The clustering domain with the new physical names of its columns."""
    columns = clustered_by(snapshot)
    if not columns:
        return ()
    known: dict[str, Any] = {**json.loads(snapshot.domain_metadata[CLUSTERING_DOMAIN].configuration)}
    known["clusteringColumns"] = [list(_logical_path(snapshot.schema, path)) for path in columns]
    return (DomainMetadata(CLUSTERING_DOMAIN, json.dumps(known, separators=(",", ":"))),)


def _logical_path(schema: StructType, physical: tuple[str, ...]) -> tuple[str, ...]:
    """The logical names along a path of physical ones. Raises: ProtocolError if the schema lacks the column."""
    names: list[str] = []
    data_type: object = schema
    for name in physical:
        fields = data_type if isinstance(data_type, StructType) else ()
        found = next((f for f in fields if f.physical_name == name), None)
        if found is None:
            raise ProtocolError(
                f"the metadata domain {CLUSTERING_DOMAIN} names the column {'.'.join(physical)}, which the schema does "
                "not have. Choose the clustering columns again.",
                domain=CLUSTERING_DOMAIN,
            )
        names.append(found.name)
        data_type = found.data_type
    return tuple(names)
