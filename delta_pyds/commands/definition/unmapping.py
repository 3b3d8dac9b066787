"""Column mapping is removed: every file is rewritten, with the columns under the names that users see.

Invariant: no row changes, and none is lost; old versions of the table are still read from the old files. The feature
stays supported: only the mode is removed.

Protocol: "Column Mapping", "Clustered Table", "Row Tracking".
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from delta_pyds.commands.commit import CommandEnd, FileChanges, commit_or_discard
from delta_pyds.commands.definition.change import DefinitionOptions, check_definition
from delta_pyds.commands.row_changes.plan import CommandOptions, files_state, target_files
from delta_pyds.commands.task_runner import TaskRunner, bundles
from delta_pyds.data.row_changes.files import rewrite_files, with_row_ids
from delta_pyds.errors import DeltaError, ProtocolError, UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, AddFile, DomainMetadata
from delta_pyds.protocol.properties import Property
from delta_pyds.protocol.schema import change_fields, schema_to_string
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.clustering import clustering_columns, fields_along
from delta_pyds.table.definition.column_mapping import unmapped_field
from delta_pyds.table.definition.iceberg_rules import check_iceberg_table
from delta_pyds.table.definition.schema_evolution import check_rewritable
from delta_pyds.table.scan.live_files import live_files, removal
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.row_counts import row_counts
from delta_pyds.table.transaction.row_tracking import PRESERVED_TAG
from delta_pyds.table.transaction.transaction import Committed, Transaction
from delta_pyds.tasks.row_changes import RewriteFiles, TableFile
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.write_state import TaskOutput


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
    after = before.redefined(before.version + 1, snapshot.protocol, metadata)
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
        done = _rewrite(snapshot, files, after, runner, command, end)
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
    """The clustering domain with the new physical names of its columns.

    Raises: ProtocolError if the schema lacks one.
    """
    columns = clustering_columns(snapshot.domain_metadata)
    if not columns:
        return ()
    known: dict[str, Any] = {**json.loads(snapshot.domain_metadata[CLUSTERING_DOMAIN].configuration)}
    found = [fields_along(snapshot.schema, path) for path in columns]
    lost = next((path for path, fields in zip(columns, found, strict=True) if len(fields) < len(path)), None)
    if lost is not None:
        raise ProtocolError(
            f"the metadata domain {CLUSTERING_DOMAIN} names the column {'.'.join(lost)}, which the schema does not "
            "have. Choose the clustering columns again.",
            domain=CLUSTERING_DOMAIN,
        )
    known["clusteringColumns"] = [[field.name for field in fields] for fields in found]
    return (DomainMetadata(CLUSTERING_DOMAIN, json.dumps(known, separators=(",", ":"))),)


@dataclass
class _Rewritten:
    """The new files and those that they replace. ``copied_rows``: the number of rows in the new files."""

    changes: FileChanges = field(default_factory=FileChanges)
    outputs: list[TaskOutput] = field(default_factory=list)
    copied_rows: int = 0

    @property
    def metrics(self) -> dict[str, int]:
        """The metrics under the reference's names."""
        removes = self.changes.removes
        return {
            "numRewrittenFiles": len(removes),
            "numOutputBytes": sum(file.size_bytes for output in self.outputs for file in output.files),
            "numRemovedBytes": sum(file.size or 0 for file in removes),
            "numCopiedRows": self.copied_rows,
            "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in removes),
        }


def _rewrite(
    snapshot: Snapshot,
    files: Sequence[AddFile],
    after: TableConfiguration,
    runner: TaskRunner,
    options: CommandOptions,
    end: CommandEnd,
) -> _Rewritten:
    """Write the live rows of ``files``, with all fields of their ``add``, for the table that ``after`` describes.

    Invariant: every live row of the files is in the new ones, once, with its row id; the number of written rows is the
    number in the log. Nothing is committed here.

    ``end``: the end of the command; it gets the outputs of the tasks.

    Raises: DeltaError (DELTA_NUM_RECORDS_MISMATCH) if rows are missing; errors of the tasks.
    """
    target = target_files(snapshot, files, options)
    scan = target.scan
    write = with_row_ids(files_state(snapshot, options, configuration=after), target.row_id_columns)
    handed = [TableFile(n, scan_file(file, scan, file.deletion_vector)) for n, file in enumerate(files)]
    tasks = [
        RewriteFiles(scan, write, some) for some in bundles(handed, runner.parallelism, lambda f: f.scan.size_bytes)
    ]
    outputs = runner.run(rewrite_files, tasks)
    end.add(outputs)
    done = _Rewritten(outputs=outputs, copied_rows=sum(output.copied_rows for output in outputs))
    now_ms = int(time.time() * 1000)
    done.changes.take(outputs, files, now_ms=now_ms)
    done.changes.removes += [removal(file, deletion_timestamp_ms=now_ms, data_change=False) for file in files]
    counts = [row_counts(file.stats).num_records for file in files]
    if all(count is not None for count in counts):
        deleted = sum(f.deletion_vector.cardinality for f in files if f.deletion_vector is not None)
        expected = sum(count or 0 for count in counts) - deleted
        if expected != done.copied_rows:
            raise DeltaError(
                f"{done.copied_rows} rows of the table {snapshot.table_root} were copied to new files instead of "
                f"{expected}: the statistics of a file may have a wrong number of rows. Nothing was committed; verify "
                "the table.",
                code="DELTA_NUM_RECORDS_MISMATCH",
                table=snapshot.table_root,
            )
    return done
