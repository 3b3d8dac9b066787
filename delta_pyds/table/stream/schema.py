"""Checks whether a running stream may continue after a change of the table's schema.

A stream reads every commit with the schema that its DataFrame had when it was loaded.
Protocol: "Change Metadata", "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from delta_pyds.errors import UserError
from delta_pyds.protocol.features import FEATURES, Feature
from delta_pyds.protocol.schema import (
    COLLATIONS,
    VOID,
    DataType,
    StructType,
    change_fields,
    common_parts,
    display,
)
from delta_pyds.protocol.type_changes import can_widen
from delta_pyds.table.change_feed.computed import ComputeChanges, check_change_feed
from delta_pyds.table.change_feed.read_compatibility import incompatibility, listed
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.column_mapping import MAPPING_KEYS

_WIDENING = (Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW)
# the keys of a field's metadata that decide which values are read, and how they compare
_READING_KEYS = MAPPING_KEYS | {COLLATIONS}


@dataclass(frozen=True)
class TypeChange:
    """A column, by its new logical path, with a changed type."""

    column: str
    old: DataType
    new: DataType

    @property
    def widens(self) -> bool:
        return can_widen(self.old, self.new)

    def __str__(self) -> str:
        return f"'{self.column}' from {display(self.old)} to {display(self.new)}"


@dataclass(frozen=True)
class SchemaStep:
    """The differences between a schema and a later one, except for additions.

    Columns are the same if their physical names are. Paths are logical names joined by dots, with ``element``, ``key``
    and ``value`` inside arrays and maps.

    Attributes:
        renamed: old and new paths; fields inside a renamed field are not listed.
        dropped: old paths, including columns that were dropped and added again under the same name.
    """

    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    retyped: tuple[TypeChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.renamed or self.dropped or self.retyped)

    def __str__(self) -> str:
        parts = [f"'{old}' was renamed to '{new}'" for old, new in self.renamed]
        parts += [f"'{column}' was dropped" for column in self.dropped]
        parts += [f"the type of {change} was changed" for change in self.retyped]
        return ", ".join(parts)


def schema_step(old: StructType, new: StructType) -> SchemaStep:
    """Compare two schemas of ``load_configuration``, the earlier one first.

    Without column mapping names are physical names, so a renamed column counts as dropped.
    """
    found = list(_differences(old, new, "", ""))
    return SchemaStep(
        tuple(d for d in found if isinstance(d, tuple)),
        tuple(d for d in found if isinstance(d, str)),
        tuple(d for d in found if isinstance(d, TypeChange)),
    )


def same_for_readers(left: TableConfiguration, right: TableConfiguration) -> bool:
    """Whether readers with either of the two configurations read every file in the same way.

    This compares columns (names, order, types, nullability, column mapping ids and names, collations), the column
    mapping mode, partition columns, and reader features. It ignores what readers do not use: comments, defaults,
    constraints, generation expressions, identity columns, other properties, writer features.
    """
    return _for_readers(left) == _for_readers(right)


def check_same_table(read: TableConfiguration, found: TableConfiguration) -> None:
    """Refuse a commit of another table than the one that the stream began with.

    Raises: UserError (DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
    """
    if found.metadata.id != read.metadata.id:
        raise UserError(
            f"the table {found.table_root} was replaced by another one during the stream: its id is "
            f"{found.metadata.id} at version {found.version} but was {read.metadata.id} at version {read.version}. "
            "Offsets do not distinguish the rows of the two tables: to read the new table, start the query with a "
            "new checkpoint location.",
            code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=found.table_root,
            version=found.version,
            old_table_id=read.metadata.id,
            new_table_id=found.metadata.id,
        )


def check_stream_schema(
    read: TableConfiguration,
    found: TableConfiguration,
    *,
    backfilling: bool,
    compute_changes: ComputeChanges | None,
    starting_given: bool,
) -> None:
    """Refuse to read rows written under ``found`` with the schema of ``read`` if a value would be lost or changed.

    Args:
        read: the configuration that the DataFrame was loaded with.
        found: the configuration of a commit in the stream, or at its start.
        backfilling: ``found`` is older than ``read``.
        starting_given: the query has startingVersion or startingTimestamp.
    Raises:
        UserError: DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, DELTA_MISSING_CHANGE_DATA,
            DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG, DELTA_SCHEMA_CHANGED_WITH_VERSION or
            DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS. ``parameters["retryable"]`` says whether a restart of the query,
            which loads the table again, gets past the change.
    """
    check_same_table(read, found)
    if compute_changes is not None:
        check_change_feed(found, compute_changes)
    old, new = (found, read) if backfilling else (read, found)
    _check_columns(old, new, found, backfilling)
    if read.partition_columns != found.partition_columns:
        # the values of a partition column are in the log, those of other columns in the files
        change = (
            f"it is partitioned by {listed(found.partition_columns)} at version {found.version} and by "
            f"{listed(read.partition_columns)} at version {read.version}"
        )
        raise _not_retryable(read, found, change, starting_given)
    widening = backfilling and _can_widen_types(read)
    difference = incompatibility(found.schema, read.schema, widening=widening)
    if difference is None:
        return
    if backfilling or incompatibility(read.schema, found.schema, widening=False) is not None:
        raise _not_retryable(read, found, difference, starting_given)
    raise UserError(
        f"the schema of table {found.table_root} was changed in version {found.version} (to "
        f"{display(found.schema)}; the query reads {display(read.schema)}, of version {read.version}), and a running "
        "query cannot change its columns. No row is lost: restart the query, and it continues with the new "
        "schema. If it writes to a Delta table, set the sink's option mergeSchema=true to add new columns there.",
        code="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        table=found.table_root,
        version=found.version,
        retryable=True,
    )


def _check_columns(
    old: TableConfiguration, new: TableConfiguration, found: TableConfiguration, backfilling: bool
) -> None:
    """Refuse changes by column mapping and type widening, which a comparison of names does not show."""
    step = schema_step(old.schema, new.schema)
    modes = old.column_mapping_mode, new.column_mapping_mode
    changes: list[str] = []
    if modes != ("none", "none"):
        moved = SchemaStep(step.renamed, step.dropped)
        changes += [str(moved)] if moved else []
        # a reader by id and a reader by name may find different columns in a file
        if modes[0] != modes[1] and "id" in modes:
            changes.append(f"the column mapping mode was changed from {modes[0]} to {modes[1]}")
    widened: tuple[TypeChange, ...] = ()
    if not backfilling and _can_widen_types(new) and all(change.widens for change in step.retyped):
        widened = step.retyped
    if not changes and not widened:
        return
    text = ", ".join(changes + ([str(SchemaStep(retyped=widened))] if widened else []))
    if changes:
        way_on = (
            "Restart the query with the option schemaTrackingLocation, a directory under its checkpoint location, "
            "in which it records table schemas; or start it with another checkpoint location."
        )
    else:
        way_on = (
            "After a restart the query continues with the new type, and reads older rows with it. To approve such "
            "changes before they reach the target, restart it with the option schemaTrackingLocation, a directory "
            "under its checkpoint location."
        )
    raise UserError(
        f"columns of table {found.table_root} were changed between version {old.version} and version {new.version} in "
        f"a way that a stream cannot follow automatically: {text}. The query reads the schema of version "
        f"{new.version if backfilling else old.version}. {way_on}",
        code="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
        table=found.table_root,
        version=found.version,
        changes=text,
        retryable=not changes,
    )


def _not_retryable(
    read: TableConfiguration, found: TableConfiguration, difference: str, starting_given: bool
) -> UserError:
    where = f"version {found.version} of table {found.table_root}"
    text = (
        f"rows of {where} cannot be read with the query's schema, of version {read.version}, without losing or "
        f"changing values: {difference}. (Their schema: {display(found.schema)}; the query's: {display(read.schema)}.) "
        "A restart does not help. "
    )
    if starting_given:
        text += (
            "Start the query with a new checkpoint location, and either without startingVersion and startingTimestamp "
            f"or with a start after this change ({_readable_start(read, found)}). "
        )
    else:
        text += "Start the query with a new checkpoint location: it begins with the current table. "
    text += (
        "The new query reads the table from its start. If the target already has rows of the old schema, overwrite it "
        "(overwriteSchema=true) or write to another one."
    )
    return UserError(
        text,
        code="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" if starting_given else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        table=found.table_root,
        version=found.version,
        retryable=False,
    )


def _readable_start(read: TableConfiguration, found: TableConfiguration) -> str:
    if found.version < read.version:
        return f"a later version than {found.version}, such as {read.version}"
    return f"version {found.version} or later"


def _can_widen_types(configuration: TableConfiguration) -> bool:
    return any(configuration.supports(name) for name in _WIDENING)


def _differences(old: DataType, new: DataType, before: str, after: str) -> Iterator[tuple[str, str] | str | TypeChange]:
    """Yield a pair of paths for a renamed column, the old path for a dropped one, a TypeChange for another type."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        by_physical = {f.physical_name: f for f in new}
        for field in old:
            now = by_physical.get(field.physical_name)
            if now is None:
                yield _join(before, field.name)
                continue
            paths = _join(before, field.name), _join(after, now.name)
            if field.name != now.name:
                yield paths
            yield from _differences(field.data_type, now.data_type, *paths)
    elif parts := common_parts(old, new):
        for name, one, other in parts:
            yield from _differences(one, other, _join(before, name), _join(after, name))
    elif old not in (new, VOID):  # a column of type void has no values to change
        yield TypeChange(after, old, new)


def _for_readers(configuration: TableConfiguration) -> tuple[object, ...]:
    schema = change_fields(
        configuration.schema,
        lambda f: replace(f, metadata={k: v for k, v in f.metadata.items() if k in _READING_KEYS}),
    )
    # column mapping may be implied by a version; a table with unknown features is not loaded at all
    features = frozenset(n for n in configuration.features if n in FEATURES and FEATURES[n].for_readers)
    return schema, configuration.partition_columns, configuration.column_mapping_mode, features


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
