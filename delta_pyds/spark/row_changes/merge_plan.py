"""What a merge will do to a table, decided before the source is computed: its schema, its clauses, its rules.

Protocol: "Change Metadata", "Generated Columns", "Default Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.plan import CommandOptions, files_state
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START, StructField, StructType
from delta_pyds.spark.planning.types import from_spark, to_spark
from delta_pyds.spark.row_changes.assignment import StoreAssignment
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge_clauses import MergeClause
from delta_pyds.spark.row_changes.merge_frame import CLAUSE_COLUMN
from delta_pyds.spark.row_changes.merge_resolution import (
    MergeTables,
    ResolvedMerge,
    assigned_paths,
    resolve_merge,
)
from delta_pyds.spark.row_changes.same_columns import answering_to
from delta_pyds.spark.row_changes.stand_in import shared_columns, stand_in
from delta_pyds.spark.settings import AUTO_MERGE
from delta_pyds.table.configuration import TableConfiguration, load_configuration
from delta_pyds.table.definition.ingest_plan import plan_ingest
from delta_pyds.table.definition.merge_evolution import merged_schema
from delta_pyds.table.definition.protocol_upgrade import upgrade_protocol
from delta_pyds.table.definition.schema_evolution import evolve_metadata
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.write_state import WriteState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# what texts of resolved expressions call a table that the user gave no name
TARGET_ALIAS = "_deltapy_target"


@dataclass(frozen=True)
class AfterMerge:
    """The table as the merge leaves it. ``metadata``, ``protocol``: what the commit says of that; None for nothing."""

    configuration: TableConfiguration
    metadata: Metadata | None = None
    protocol: Protocol | None = None


@dataclass(frozen=True)
class MergePlan:
    """``target``: a frame without rows, with the columns and the alias that the expressions were resolved in.
    ``source``: the user's frame, for the same. ``write``: how rows are written. ``given``: by position in the schema,
    for columns that only some of the written rows bring, which do.
    """

    after: AfterMerge
    target: DataFrame
    source: DataFrame
    merge: ResolvedMerge
    write: WriteState
    given: Mapping[int, Column]


def plan_merge(
    handle: TableHandle,
    snapshot: Snapshot,
    source: DataFrame,
    condition: Column | str,
    clauses: Sequence[MergeClause],
    options: CommandOptions,
    *,
    schema_evolution: bool,
) -> MergePlan:
    """Raises: what ``resolve_merge``, ``merged_schema`` and ``plan_ingest`` raise."""
    evolves = schema_evolution or (handle.spark.conf.get(AUTO_MERGE, None) or "").lower() == "true"
    after = _after(snapshot, source, clauses, handle.alias) if evolves else AfterMerge(snapshot.configuration)
    target, source = _named(handle, snapshot.schema, source)
    configuration = after.configuration
    kinds = {name: _names(configuration, *what) for name, what in _MADE.items()}
    tables = MergeTables(
        handle.path,
        target,
        source,
        handle.alias,
        snapshot.schema,
        configuration.schema,
        evolves,
        StoreAssignment.of(handle.spark, table=handle.path),
        made=frozenset().union(*kinds.values()),
        generated=kinds["generated"],
        identity=kinds["identity"],
    )
    merge = resolve_merge(tables, condition, clauses)
    incoming, given = _brought(merge, configuration, kinds["identity"])
    if not any(clause.values for clause in merge.clauses):
        write = files_state(snapshot, options, configuration=configuration)
        return MergePlan(after, target, source, merge, write, {})
    ingest = plan_ingest(
        configuration.schema,
        configuration=configuration.configuration,
        incoming=StructType(tuple(incoming)),
        time_zone=options.time_zone,
        supports=configuration.supports,
        table=handle.path,
        spark=True,
    )
    write = files_state(snapshot, options, ingest.columns, ingest.checks, configuration=configuration)
    return MergePlan(after, target, source, merge, write, given)


_MADE = {
    "default": (CURRENT_DEFAULT, Feature.ALLOW_COLUMN_DEFAULTS),
    "generated": (GENERATION_EXPRESSION, Feature.GENERATED_COLUMNS),
    "identity": (IDENTITY_START, Feature.IDENTITY_COLUMNS),
}


def _names(configuration: TableConfiguration, key: str, feature: str) -> frozenset[str]:
    return frozenset(f.name for f in configuration.schema if key in f.metadata and configuration.supports(feature))


def _after(snapshot: Snapshot, source: DataFrame, clauses: Sequence[MergeClause], alias: str | None) -> AfterMerge:
    configuration = snapshot.configuration
    adding = [clause for clause in clauses if clause.kind != "not_matched_by_source"]
    schema = merged_schema(
        configuration,
        from_spark(source.schema),
        star=any(clause.is_star for clause in adding),
        assigned=assigned_paths(adding, configuration.schema, alias),
    )
    if schema == configuration.schema:
        return AfterMerge(configuration)
    metadata = evolve_metadata(configuration, schema)
    protocol = upgrade_protocol(snapshot.protocol, metadata, domains=tuple(snapshot.domain_metadata.values()))
    changed = load_configuration(
        snapshot.table_root, snapshot.version, protocol, metadata, by_catalog=configuration.by_catalog
    )
    return AfterMerge(changed, metadata, None if protocol == snapshot.protocol else protocol)


def _named(handle: TableHandle, schema: StructType, source: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The frames in whose names expressions are resolved."""
    shape = handle.spark.createDataFrame([], to_spark(schema))
    known = handle.known_frames
    if any(shared_columns(frame, source) for frame in known):
        # a Column of either may mean both, so it means none
        known, source = (), stand_in(source, source, known=False)
    return answering_to(shape, known, handle.alias or TARGET_ALIAS), source


def _brought(
    merge: ResolvedMerge, configuration: TableConfiguration, identity: frozenset[str]
) -> tuple[list[StructField], dict[int, Column]]:
    """The columns that every written row brings, and those that some bring."""
    writing = {n: clause for n, clause in enumerate(merge.clauses) if clause.values}
    inserting = [clause for clause in writing.values() if clause.kind == "not_matched"]
    incoming, given = [], {}
    for i, field in enumerate(configuration.schema):
        bringing = [n for n, clause in writing.items() if clause.values[i] is not None]
        if field.name in identity:
            explicit = [clause for clause in inserting if clause.values[i] is not None]
            if explicit and len(explicit) < len(inserting):
                raise UnsupportedOperationError(
                    f"some clauses of the merge into {configuration.table_root} give values of the identity column "
                    f"{field.name} and others do not, which is not supported yet: merge in two steps.",
                    table=configuration.table_root,
                    column=field.name,
                )
            if explicit:
                incoming.append(field)
            elif bringing:
                # only inserted rows are numbered: updated ones keep their values
                given[i] = F.col(CLAUSE_COLUMN).isin(bringing)
        elif len(bringing) == len(writing):
            incoming.append(field)
        elif bringing:
            given[i] = F.col(CLAUSE_COLUMN).isin(bringing)
    return incoming, given
