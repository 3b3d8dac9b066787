"""One metaData action and its protocol: schema, properties, column mapping, Iceberg compatibility.

Protocol: "Change Metadata", "Schema Serialization Format", "Column Mapping", "Identity Columns",
"Iceberg Compatibility".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.properties import COLUMN_MAPPING_MODES, ICEBERG_COMPAT_PROPERTIES, Property
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_ID,
    COLUMN_MAPPING_NESTED_IDS,
    COLUMN_MAPPING_PHYSICAL_NAME,
    IDENTITY_ALLOW_EXPLICIT_INSERT,
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_START,
    IDENTITY_STEP,
    LONG,
    VARIANT,
    VOID,
    ArrayType,
    MapType,
    StructField,
    StructType,
)
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.view import TableView, fields_of

# the name in the protocol, and the name that the reference uses
_NESTED_IDS = ("parquet.field.nested.ids", COLUMN_MAPPING_NESTED_IDS)
_ILLEGAL_CHARACTERS = frozenset(" ,;{}()\n\t=")


def check_metadata(view: TableView, findings: VersionFindings) -> None:
    """Check the action by itself."""
    metadata = view.metadata
    if metadata is None:
        return
    if not metadata.id:
        findings.error("metadata.id", "the table has no id.")
    if metadata.format is not None and metadata.format.provider != "parquet":
        findings.error("metadata.format", f"the format of data files is '{metadata.format.provider}'.")
    if view.property_problem:
        findings.error("metadata.property", view.property_problem)
    if view.schema is None:
        findings.error("schema.unreadable", view.schema_problem or "the schema cannot be read.")
        return
    _check_names(view.schema, "", view, findings)
    _check_partitioning(view, findings)
    _check_mapping(view, findings)
    _check_identity(view.schema, findings)
    _check_iceberg(view, findings)
    _check_row_tracking_columns(view, findings)


def _check_names(schema: StructType, prefix: str, view: TableView, findings: VersionFindings) -> None:
    counts = Counter(f.name.lower() for f in schema)
    for name, count in counts.items():
        if count > 1:
            findings.error("schema.duplicate-column", f"there are {count} columns named {prefix}{name}.")
    for f in schema:
        if view.mapping_mode == "none" and _ILLEGAL_CHARACTERS & set(f.name):
            findings.warning(
                "schema.column-name", f"the column name '{prefix}{f.name}' needs column mapping, which is off."
            )
        for inner, part in _structs(f):
            _check_names(inner, f"{prefix}{part}.", view, findings)


def _structs(f: StructField) -> Iterator[tuple[StructType, str]]:
    """The structs directly in a field, also in its arrays and maps."""
    waiting: list[tuple[Any, str]] = [(f.data_type, f.name)]
    while waiting:
        data_type, name = waiting.pop()
        if isinstance(data_type, StructType):
            yield data_type, name
        elif isinstance(data_type, ArrayType):
            waiting.append((data_type.element_type, f"{name}.element"))
        elif isinstance(data_type, MapType):
            waiting += [(data_type.key_type, f"{name}.key"), (data_type.value_type, f"{name}.value")]


def _check_partitioning(view: TableView, findings: VersionFindings) -> None:
    assert view.metadata is not None and view.schema is not None
    names = view.metadata.partition_columns or []
    for name, count in Counter(names).items():
        if count > 1:
            findings.error("schema.partition-column", f"{name} is a partition column {count} times.")
        if name not in view.schema.names:
            findings.error("schema.partition-column", f"the partition column {name} is not in the schema.")
    for f in view.partition_fields:
        if isinstance(f.data_type, (StructType, ArrayType, MapType)) or f.data_type in (VARIANT, VOID):
            findings.error(
                "schema.partition-column", f"{f.name} cannot be a partition column: its type is not a primitive type."
            )
    if names and len(view.partition_fields) == len(view.schema.fields):
        findings.warning("schema.partition-column", "all columns are partition columns: data files have no columns.")


def _check_mapping(view: TableView, findings: VersionFindings) -> None:
    raw_mode = view.configuration.get(Property.COLUMN_MAPPING_MODE, "none").lower()
    if raw_mode not in COLUMN_MAPPING_MODES or view.mapping_mode == "none":
        return
    ids: Counter[int] = Counter()
    names: Counter[tuple[str, ...]] = Counter()
    for at in fields_of(view.columns):
        found = at.field.metadata.get(COLUMN_MAPPING_ID)
        if not isinstance(found, int) or isinstance(found, bool) or not -(1 << 31) <= found < 1 << 31:
            findings.error("mapping.id", f"the column {at.name} has the id {found!r}, which is not a 32-bit integer.")
        else:
            ids[found] += 1
        physical = at.field.metadata.get(COLUMN_MAPPING_PHYSICAL_NAME)
        if not isinstance(physical, str) or not physical:
            findings.error("mapping.physical-name", f"the column {at.name} has no physical name.")
        else:
            names[at.physical] += 1
        for nested in _nested_ids(at.field).values():
            ids[nested] += 1
    for number, count in ids.items():
        if count > 1:
            findings.error("mapping.id", f"{count} columns have the id {number}.")
    for name, count in names.items():
        if count > 1:
            findings.error("mapping.physical-name", f"{count} columns have the physical name {'.'.join(name)}.")
    largest = max_column_id(view)
    if largest is None:
        findings.error(
            "mapping.max-id", f"the property {Property.COLUMN_MAPPING_MAX_COLUMN_ID} is missing or not a number."
        )
    elif ids and max(ids) > largest:
        findings.error(
            "mapping.max-id", f"{Property.COLUMN_MAPPING_MAX_COLUMN_ID} is {largest}, but the largest id is {max(ids)}."
        )


def max_column_id(view: TableView) -> int | None:
    try:
        return int(view.configuration[Property.COLUMN_MAPPING_MAX_COLUMN_ID])
    except (KeyError, ValueError):
        return None


def _nested_ids(f: StructField) -> dict[str, int]:
    found = next((f.metadata[key] for key in _NESTED_IDS if key in f.metadata), None)
    return {k: v for k, v in found.items() if isinstance(v, int)} if isinstance(found, dict) else {}


def _check_identity(schema: StructType, findings: VersionFindings) -> None:
    for f in schema:
        start, step = f.metadata.get(IDENTITY_START), f.metadata.get(IDENTITY_STEP)
        if start is None and step is None:
            continue
        if not isinstance(start, int) or not isinstance(step, int) or step == 0:
            findings.error("identity.definition", f"the identity column {f.name} has start {start} and step {step}.")
            continue
        if f.data_type != LONG:
            findings.error("identity.definition", f"the identity column {f.name} is not of type long.")
        mark = f.metadata.get(IDENTITY_HIGH_WATER_MARK)
        if mark is None:
            continue
        if not isinstance(mark, int):
            findings.error("identity.high-water-mark", f"the high water mark of {f.name} is {mark!r}.")
        elif not f.metadata.get(IDENTITY_ALLOW_EXPLICIT_INSERT) and (
            (mark - start) % step or (mark - start) // step < 0
        ):
            findings.error(
                "identity.high-water-mark",
                f"the high water mark {mark} of {f.name} is not reached from {start} by steps of {step}.",
            )


def _check_iceberg(view: TableView, findings: VersionFindings) -> None:
    on = [n for n in (1, 2, 3) if view.configuration.get(ICEBERG_COMPAT_PROPERTIES[n], "").lower() == "true"]
    if not on:
        return
    rule = "iceberg.compatibility"
    if len(on) > 1:
        findings.error(rule, "more than one version of Iceberg compatibility is enabled.")
    if view.mapping_mode == "none":
        findings.error(rule, "Iceberg compatibility needs column mapping, which is off.")
    if 1 in on and view.supports(Feature.DELETION_VECTORS):
        findings.error(rule, "Iceberg compatibility V1 excludes the feature deletionVectors.")
    if 2 in on and view.supports(Feature.DELETION_VECTORS) and view.properties.deletion_vectors:
        findings.error(rule, "Iceberg compatibility V2 excludes delta.enableDeletionVectors.")
    for at in fields_of(view.columns):
        if 1 in on and (isinstance(at.field.data_type, (ArrayType, MapType)) or at.field.data_type == VOID):
            findings.error(rule, f"the type of the column {at.name} is not allowed under V1.")
        if 2 in on and at.field.data_type in (VOID, VARIANT):
            findings.error(rule, f"the type of the column {at.name} is not allowed under V2.")
        if 2 in on or 3 in on:
            ids = _nested_ids(at.field)
            missing = set(_nested_names(at.field, at.field.name)) - set(ids)
            missing = missing and set(_nested_names(at.field, at.field.physical_name)) - set(ids)
            if missing:
                findings.error(rule, f"the column {at.name} has no id for {', '.join(sorted(missing))}.")


def _nested_names(f: StructField, prefix: str) -> Iterator[str]:
    """The names of elements, keys and values directly in a field that need ids. Protocol: "IcebergCompatV2"."""
    waiting: list[tuple[Any, str]] = [(f.data_type, prefix)]
    while waiting:
        data_type, name = waiting.pop()
        if isinstance(data_type, ArrayType):
            yield f"{name}.element"
            waiting.append((data_type.element_type, f"{name}.element"))
        elif isinstance(data_type, MapType):
            yield from (f"{name}.key", f"{name}.value")
            waiting += [(data_type.key_type, f"{name}.key"), (data_type.value_type, f"{name}.value")]


def _check_row_tracking_columns(view: TableView, findings: VersionFindings) -> None:
    p = view.properties
    if not p.row_tracking:
        return
    names = (p.materialized_row_id_column, p.materialized_row_commit_version_column)
    for key, name in zip(("materializedRowIdColumnName", "materializedRowCommitVersionColumnName"), names, strict=True):
        if not name:
            findings.error("row-tracking.columns", f"row tracking is on without delta.rowTracking.{key}.")
        elif any(name in (f.name, f.physical_name) for f in view.columns):
            findings.error("row-tracking.columns", f"delta.rowTracking.{key} is the name of a column: {name}.")
    if names[0] and names[0] == names[1]:
        findings.error("row-tracking.columns", "row ids and row commit versions have the same column name.")
    if p.row_tracking_suspended:
        findings.error("row-tracking.columns", "row tracking is both on and suspended.")
