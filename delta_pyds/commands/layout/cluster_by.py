"""Changes of a table's clustering columns. Existing files are not rewritten until the table is optimized.

Invariant: every file of the table has statistics of the columns; they are computed for files without them.

Protocol: "Clustered Table", "Domain Metadata".
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_pyds.commands.layout.file_statistics import with_statistics
from delta_pyds.commands.layout.plan import check_may_lay_out
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.errors import UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN
from delta_pyds.table.definition.clustering import clustering_domain, logical_clustering_columns
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.statistics_columns import show_path
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction


def cluster_by(snapshot: Snapshot, columns: Sequence[str], options: CommandOptions) -> int | None:
    """Set the clustering columns; an empty list ends the clustering.

    ``columns``: texts such as ``a.b``. The required features are added to the table.

    Returns: the version; None if nothing was committed.
    Raises: UserError (DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED, and as ``clustering_domain``);
        a ConflictError.
    """
    check_may_lay_out(snapshot)
    configuration, root = snapshot.configuration, snapshot.table_root
    if configuration.partition_columns:
        raise UserError(
            f"the table {root} is partitioned by ({', '.join(configuration.partition_columns)}), so it cannot be "
            "clustered.",
            code="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            table=root,
        )
    if not columns and CLUSTERING_DOMAIN not in snapshot.domain_metadata:
        return None
    before = logical_clustering_columns(snapshot.schema, snapshot.domain_metadata)
    domain = clustering_domain(root, snapshot.schema, columns, configuration.properties)
    after = logical_clustering_columns(snapshot.schema, {CLUSTERING_DOMAIN: domain})
    transaction = Transaction(snapshot)
    transaction.set_protocol(upgrade_protocol(snapshot.protocol, snapshot.metadata, domains=(domain,)))
    transaction.set_domain(domain)
    # a reader may skip any file by any clustering column
    files = with_statistics(snapshot, after, options)
    transaction.record_files(file.path for file in files)
    transaction.add(files)
    parameters = {
        "oldClusteringColumns": ",".join(map(show_path, before)),
        "newClusteringColumns": ",".join(map(show_path, after)),
    }
    committed = transaction.commit(
        Operation("CLUSTER BY", parameters),
        user_metadata=options.user_metadata,
        isolation_level=options.isolation_level,
    )
    return committed.version
