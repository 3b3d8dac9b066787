"""Checks whether a running stream may continue after a change of the table's schema.

A stream reads every commit with the schema that its DataFrame got when it was
loaded. Protocol: "Change Metadata", "Column Mapping", "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from delta_pyds.errors import UserError
from delta_pyds.protocol.features import FEATURES, Feature
from delta_pyds.protocol.schema import (
    COLLATIONS,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    change_fields,
    display,
)
from delta_pyds.protocol.type_changes import can_widen
from delta_pyds.table.change_feed.read_compatibility import incompatibility
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.column_mapping import MAPPING_KEYS

_WIDENING = (Feature.TYPE_WIDENING, Feature.TYPE_WIDENING_PREVIEW)
# what of a field's metadata decides which values are read, and how they compare
_READING_KEYS = MAPPING_KEYS | {COLLATIONS}


@dataclass(frozen=True)
class TypeChange:
    """A column, by its new logical path, whose type became another one."""

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
    """The differences between a schema and a later one that are more than additions.

    Columns are the same if their physical names are; paths are logical names
    with dots, and ``element``, ``key`` and ``value`` inside arrays and maps.
    ``renamed``: old and new path; fields below a renamed one are not named
    again. ``dropped``: old paths; a column that was dropped and added again
    under its name is here, for its values are others.
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

    Without column mapping names are physical names: then a renamed column counts as dropped.
    """
    found = list(_differences(old, new, "", ""))
    return SchemaStep(
        tuple(d for d in found if isinstance(d, tuple)),
        tuple(d for d in found if isinstance(d, str)),
        tuple(d for d in found if isinstance(d, TypeChange)),
    )


def read_alike(left: TableConfiguration, right: TableConfiguration) -> bool:
    """Whether a reader that knows one of the two reads every file as one that knows the other.

    They differ in columns (names, order, types, nullability, ids and names of
    column mapping, collations), in how columns are found in files, in partition
    columns, or in the features that readers must support. What readers do not
    look at does not count: comments, defaults, constraints, generation
    expressions, identity columns, other properties, features of writers.
    """
    return _for_readers(left) == _for_readers(right)


def check_same_table(read: TableConfiguration, found: TableConfiguration) -> None:
    """Refuse a commit of another table than the one that the stream began with.

    Raises: UserError (DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE).
    """
    if found.metadata.id != read.metadata.id:
        raise UserError(
            f"the table {found.table_root} was replaced by another one while it was streamed: its id is "
            f"{found.metadata.id} at version {found.version} and was {read.metadata.id} at version {read.version}. "
            "Rows of the two tables cannot be told apart by their position: start the query with a new checkpoint "
            "location to read the new table.",
            code="DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            table=found.table_root,
            version=found.version,
            old_table_id=read.metadata.id,
            new_table_id=found.metadata.id,
        )


def check_change_data(found: TableConfiguration) -> None:
    """Refuse to read the changes of a version that does not record them.

    Raises: UserError (DELTA_MISSING_CHANGE_DATA).
    """
    if not found.properties.change_data_feed:
        raise UserError(
            f"the table {found.table_root} records no change data at version {found.version}: "
            "delta.enableChangeDataFeed is not true there, so the change feed cannot be read on without losing "
            "changes. Set delta.enableChangeDataFeed=true on the table, and start the query with a new checkpoint "
            "location and a startingVersion after that.",
            code="DELTA_MISSING_CHANGE_DATA",
            table=found.table_root,
            version=found.version,
        )


def check_stream_schema(
    read: TableConfiguration,
    found: TableConfiguration,
    *,
    backfilling: bool,
    change_feed: bool,
    starting_given: bool,
) -> None:
    """Refuse to read rows written under ``found`` with the schema of ``read`` if a value were lost or changed.

    ``read``: what the DataFrame was loaded with. ``found``: of a commit that
    the stream meets, or in force where it starts. ``backfilling``: ``found`` is
    older. ``starting_given``: the query has startingVersion or
    startingTimestamp. ``parameters["retryable"]`` of an error says whether a
    restart of the query, which loads the table anew, gets past the change.

    Raises: UserError with DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE, DELTA_MISSING_CHANGE_DATA,
        DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG, DELTA_SCHEMA_CHANGED_WITH_VERSION or
        DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS.
    """
    check_same_table(read, found)
    if change_feed:
        check_change_data(found)
    old, new = (found, read) if backfilling else (read, found)
    _check_columns(old, new, found, backfilling)
    if read.partition_columns != found.partition_columns:
        # a partition column's values are in the log, any other column's in the files
        change = (
            f"it is partitioned by {_listed(found.partition_columns)} at version {found.version} and by "
            f"{_listed(read.partition_columns)} at version {read.version}"
        )
        raise _not_retryable(read, found, change, starting_given)
    widening = backfilling and _can_widen_types(read)
    difference = incompatibility(found.schema, read.schema, widening=widening)
    if difference is None:
        return
    if backfilling or incompatibility(read.schema, found.schema, widening=False) is not None:
        raise _not_retryable(read, found, difference, starting_given)
    raise UserError(
        f"the schema of table {found.table_root} was changed in version {found.version} (there: "
        f"{display(found.schema)}; the query reads {display(read.schema)}, of version {read.version}), and a running "
        "query cannot change its columns. No row is lost: stop and restart the query, and it will go on with the new "
        "schema. If it writes to a Delta table, give the sink the option mergeSchema=true to take over new columns.",
        code="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        table=found.table_root,
        version=found.version,
        retryable=True,
    )


def _check_columns(
    old: TableConfiguration, new: TableConfiguration, found: TableConfiguration, backfilling: bool
) -> None:
    """Refuse what column mapping and type widening make of columns: changes that no comparison of names shows."""
    step = schema_step(old.schema, new.schema)
    modes = old.column_mapping_mode, new.column_mapping_mode
    changes: list[str] = []
    if modes != ("none", "none"):
        moved = SchemaStep(step.renamed, step.dropped)
        changes += [str(moved)] if moved else []
        # by id and by name different columns of a file are found
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
            "Start the query again with the option schemaTrackingLocation, a directory under its checkpoint location, "
            "where it keeps the schemas that it meets; or start it anew with another checkpoint location."
        )
    else:
        way_on = (
            "A restart of the query goes on with the new type and reads older rows as it. To be asked before such a "
            "change goes downstream, start it with the option schemaTrackingLocation, a directory under its "
            "checkpoint location."
        )
    raise UserError(
        f"columns of table {found.table_root} were changed between version {old.version} and version {new.version} in "
        f"a way that a stream cannot follow by itself: {text}. The query reads the schema of version "
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
        f"rows of {where} cannot be read with the schema that the query has, that of version {read.version}, without "
        f"values lost or changed: {difference}. (There: {display(found.schema)}; the query's: {display(read.schema)}.) "
        "A restart does not help. "
    )
    if starting_given:
        text += (
            "Start the query with a new checkpoint location, and without startingVersion and startingTimestamp, or "
            f"with a start behind this change ({_behind(read, found)}). "
        )
    else:
        text += "Start the query with a new checkpoint location: it begins with the table as it is now. "
    text += (
        "If the target holds rows of the old schema already, overwrite it (overwriteSchema=true) or write to another "
        "one, for the new query reads the table from its start."
    )
    return UserError(
        text,
        code="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS" if starting_given else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        table=found.table_root,
        version=found.version,
        retryable=False,
    )


def _behind(read: TableConfiguration, found: TableConfiguration) -> str:
    if found.version < read.version:
        return f"a later version than {found.version}; {read.version} is one that can be read"
    return f"version {found.version} or later"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _can_widen_types(configuration: TableConfiguration) -> bool:
    return any(configuration.supports(name) for name in _WIDENING)


def _differences(old: DataType, new: DataType, before: str, after: str) -> Iterator[tuple[str, str] | str | TypeChange]:
    """A pair for a renamed column, its old path for a dropped one, for another type what it was and is."""
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
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from _differences(old.element_type, new.element_type, _join(before, "element"), _join(after, "element"))
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from _differences(old.key_type, new.key_type, _join(before, "key"), _join(after, "key"))
        yield from _differences(old.value_type, new.value_type, _join(before, "value"), _join(after, "value"))
    elif old not in (new, VOID):  # a column of type void has no values that could change
        yield TypeChange(after, old, new)


def _for_readers(configuration: TableConfiguration) -> tuple[object, ...]:
    schema = change_fields(
        configuration.schema,
        lambda f: replace(f, metadata={k: v for k, v in f.metadata.items() if k in _READING_KEYS}),
    )
    # column mapping may be implied by a version; what this version does not know it could not read
    features = frozenset(n for n in configuration.features if n in FEATURES and FEATURES[n].for_readers)
    return schema, configuration.partition_columns, configuration.column_mapping_mode, features


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
