"""A merge as a query of Spark, planned before the source is computed: its frames, its Columns, the table's rules.

Protocol: "Change Metadata", "Generated Columns", "Default Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from delta_pyds.commands.row_changes.plan import CommandOptions, files_state
from delta_pyds.commands.row_changes.resolved import MadeColumns, ResolvedCommand
from delta_pyds.errors import UnsupportedOperationError
from delta_pyds.protocol.schema import StructField, StructType
from delta_pyds.spark.empty_frame import empty_frame
from delta_pyds.spark.planning.types import to_spark
from delta_pyds.spark.row_changes.assignment import StoreAssignment
from delta_pyds.spark.row_changes.frame_identity import resolving_columns_of, shared_columns, with_identity_of
from delta_pyds.spark.row_changes.handle import TableHandle
from delta_pyds.spark.row_changes.merge_columns import MergeColumns, merge_columns
from delta_pyds.spark.row_changes.merge_frame import CLAUSE_COLUMN
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.ingest_plan import plan_ingest
from delta_pyds.tasks.write_state import WriteState

# the alias of a table that has no alias, in the texts of resolved expressions
TARGET_ALIAS = "_deltapy_target"


@dataclass(frozen=True)
class MergeQuery:
    """``target``: a frame without rows, with the columns and the alias in which expressions were resolved. ``source``:
    the user's frame, in which expressions were resolved too. ``write``: how rows are written. ``given``: for each
    column that only some written rows bring, the condition for these rows, by position in the schema.
    """

    command: ResolvedCommand[Column | str]
    target: DataFrame
    source: DataFrame
    columns: MergeColumns
    write: WriteState
    given: Mapping[int, Column]


def merge_query(
    handle: TableHandle, command: ResolvedCommand[Column | str], source: DataFrame, options: CommandOptions
) -> MergeQuery:
    """Raises: as ``merge_columns`` and ``plan_ingest``."""
    snapshot, configuration = command.snapshot, command.after.configuration
    target, source = _named(handle, snapshot.schema, source)
    columns = merge_columns(command, target, source, StoreAssignment.of(handle.spark, table=handle.path))
    incoming, given = _brought(columns, configuration, MadeColumns.of(configuration).identity)
    if not any(clause.values for clause in columns.clauses):
        write = files_state(snapshot, options, configuration=configuration)
        return MergeQuery(command, target, source, columns, write, {})
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
    return MergeQuery(command, target, source, columns, write, given)


def _named(handle: TableHandle, schema: StructType, source: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The frames in whose names expressions are resolved."""
    shape = empty_frame(handle.spark, to_spark(schema))
    known = handle.known_frames
    if any(shared_columns(frame, source) for frame in known):
        # a Column of one frame may mean both, so it resolves in neither
        known, source = (), with_identity_of(source, source, known=False)
    return resolving_columns_of(shape, known, handle.alias or TARGET_ALIAS), source


def _brought(
    merge: MergeColumns, configuration: TableConfiguration, identity: frozenset[str]
) -> tuple[list[StructField], dict[int, Column]]:
    """The columns that every written row brings, and those that only some bring."""
    writing = {n: clause for n, clause in enumerate(merge.clauses) if clause.values}
    inserting = [clause for clause in writing.values() if clause.kind == "not_matched"]
    incoming, given = [], {}
    for i, field in enumerate(configuration.schema):
        bringing = [n for n, clause in writing.items() if clause.values[i] is not None]
        if field.name in identity:
            explicit = [clause for clause in inserting if clause.values[i] is not None]
            if explicit and len(explicit) < len(inserting):
                raise UnsupportedOperationError(
                    f"only some clauses of the merge into {configuration.table_root} set the identity column "
                    f"{field.name}. This is not supported yet: merge in two steps.",
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
