"""One change of a table's definition, checked as a whole and committed as one version.

    change = add_columns(snapshot, columns)           # or any other function of this package
    committed = commit_change(snapshot, change, DefinitionOptions(user_metadata="..."))

Invariant: the committed table can be written by delta_pyds; the protocol is raised as far as the metadata requires, and
no further.

Protocol: "Change Metadata", "Protocol Evolution".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from delta_pyds.commands.row_changes.commit_rows import run_again
from delta_pyds.protocol.actions import DomainMetadata, Metadata, Protocol
from delta_pyds.redaction import safe_logger
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_rules import check_columns, check_defaults, check_partitioning
from delta_pyds.table.definition.statistics_columns import check_statistics_columns
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Committed, Transaction

T = TypeVar("T")
logger = safe_logger(__name__)


@dataclass(frozen=True)
class DefinitionOptions:
    """The user's options of every change. ``max_runs``: attempts in all; each plans again after a lost race."""

    user_metadata: str | None = None
    isolation_level: str | None = None
    max_runs: int = 1


@dataclass(frozen=True)
class DefinitionChange:
    """``metadata``: the table's after the change. ``features``: requested by name. ``protocol``: the new one; None
    derives it from the metadata and the features.

    ``depends_on_rows``: the change is valid only for the current rows, so no other commit may add or remove files
    before it. ``nothing_to_do``: the table needs no change, and nothing is committed.
    """

    operation: Operation
    metadata: Metadata
    features: tuple[str, ...] = ()
    protocol: Protocol | None = None
    domains: tuple[DomainMetadata, ...] = ()
    depends_on_rows: bool = False
    nothing_to_do: bool = False
    tags: Mapping[str, str] = field(default_factory=dict)


def commit_change(snapshot: Snapshot, change: DefinitionChange, options: DefinitionOptions) -> Committed | None:
    """Commit the change; None if there was nothing to do.

    Raises: UserError and other errors for a schema or properties that the table cannot have; a ConflictError if an
        earlier commit of another writer conflicts with the change; as ``Transaction.commit``.
    """
    before = snapshot.configuration
    before.check_writable()
    snapshot.storage.require_put_if_absent(snapshot.table_root)
    if change.nothing_to_do:
        return None
    protocol = change.protocol or upgrade_protocol(
        snapshot.protocol,
        change.metadata,
        domains=(*snapshot.domain_metadata.values(), *change.domains),
        features=change.features,
    )
    after = before.redefined(before.version + 1, protocol, change.metadata)
    check_definition(before, after)
    transaction = Transaction(snapshot)
    if change.depends_on_rows:
        transaction.record_whole_table()
    transaction.set_metadata(change.metadata)
    transaction.set_protocol(protocol)
    for domain in change.domains:
        transaction.set_domain(domain)
    return transaction.commit(
        change.operation,
        user_metadata=options.user_metadata,
        # the rows that it depends on must not change in between, even if the table allows a weaker isolation level
        isolation_level="Serializable" if change.depends_on_rows else options.isolation_level,
        tags=change.tags,
    )


def check_definition(before: TableConfiguration, after: TableConfiguration) -> None:
    """Refuse a schema and properties that contradict each other; unchanged parts are not checked again.

    Raises: as the rules of ``table.definition``.
    """
    properties, old = after.properties, before.properties
    if after.metadata == before.metadata:
        return
    partitions = after.partition_columns
    if after.schema != before.schema or properties.change_data_feed != old.change_data_feed:
        mapped = after.column_mapping_mode != "none"
        check_columns(after.schema, partitions, mapped=mapped, change_data_feed=properties.change_data_feed)
        check_partitioning(after.schema, partitions)
        check_defaults(after.schema, after.features)
    if after.schema != before.schema or properties.stats_columns != old.stats_columns:
        check_statistics_columns(after.schema, properties.stats_columns, partitions)


def with_configuration(metadata: Metadata, configuration: Mapping[str, str | None]) -> Metadata:
    """The metadata with other properties."""
    return msgspec.structs.replace(metadata, configuration=dict(configuration))


def run_change(
    open_table: Callable[[], Snapshot], plan: Callable[[Snapshot], DefinitionChange], options: DefinitionOptions
) -> Committed | None:
    """Plan and commit, and do both again after a lost race: ``max_runs`` times at most."""

    def once() -> Committed | None:
        snapshot = open_table()
        return commit_change(snapshot, plan(snapshot), options)

    return run_again(options.max_runs, once)
