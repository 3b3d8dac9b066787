"""Rules for tables with Iceberg compatibility enabled.

Protocol: "Iceberg Compatibility V1", "Iceberg Compatibility V2".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from delta_pyds.errors import UserError
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.properties import ICEBERG_COMPAT_PROPERTIES, Property
from delta_pyds.protocol.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    change_fields,
    display,
    parse_type,
    parts_of,
)
from delta_pyds.protocol.type_changes import can_widen, recorded_changes
from delta_pyds.table.configuration import TableConfiguration

_PRIMITIVES = frozenset(
    {
        "byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean",
        "timestamp", "timestamp_ntz", "date",
    }
)  # fmt: skip


def complete_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new table; Iceberg compatibility adds column mapping by name if no mode is set.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION) for contradictory properties.
    """
    completed = dict(configuration)
    version = _enabled_version(configuration)
    if version is not None and completed.setdefault(Property.COLUMN_MAPPING_MODE, "name") == "none":
        raise _unmapped(version)
    return completed


def check_iceberg_table(before: TableConfiguration | None, after: TableConfiguration) -> None:
    """Refuse a table definition that violates its Iceberg compatibility.

    Args:
        before: the previous version, whose partitioning must stay; None for a new table.
    Raises:
        UserError: DELTA_ICEBERG_COMPAT_VIOLATION.
    """
    version = after.properties.iceberg_compat
    if version is None:
        return
    _enabled_version(after.configuration)
    if after.column_mapping_mode == "none":
        raise _unmapped(version)
    partitions = after.partition_columns
    check_iceberg(after.schema, version, partitions)
    check_iceberg_features(version, after.features, after.properties.deletion_vectors)
    if before is not None:
        check_iceberg_partitioning(version, before.partition_columns, partitions)


def check_iceberg(schema: StructType, version: int | None, partition_columns: Sequence[str]) -> None:
    """Refuse columns that Iceberg does not support. ``version``: the enabled compatibility's; None if disabled.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION).
    """
    if version not in (1, 2):
        return

    def check(f: StructField) -> StructField:
        refused = _refused(f.data_type, version)
        if refused is not None:
            raise _violation(
                version, f"does not allow the column '{f.name}' of type {display(refused)}", "UNSUPPORTED_DATA_TYPE"
            )
        for change in recorded_changes(f):
            source, target = parse_type(change.get("fromType")), parse_type(change.get("toType"))
            if can_widen(source, target) and not can_widen(source, target, for_iceberg=True):
                raise _violation(
                    version,
                    f"does not allow the column '{f.name}' to change from {display(source)} to {display(target)}",
                    "UNSUPPORTED_TYPE_WIDENING",
                )
        return f

    change_fields(schema, check)
    for name in partition_columns:
        f = schema.find(name)
        if f is not None and isinstance(f.data_type, ArrayType | MapType | StructType):
            raise _violation(version, f"does not allow partitioning by '{name}'", "UNSUPPORTED_PARTITION_DATA_TYPE")


def check_iceberg_features(version: int | None, features: Iterable[str], deletion_vectors: bool) -> None:
    """Refuse deletion vectors. V1 forbids the feature; V2 forbids writing new ones.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION).
    """
    supported = Feature.DELETION_VECTORS in features
    if (version == 1 and supported) or (version == 2 and supported and deletion_vectors):
        raise _violation(
            version,
            "excludes deletion vectors: set delta.enableDeletionVectors=false and do not ask for the feature",
            "DELETION_VECTORS_SHOULD_BE_DISABLED",
        )


def check_iceberg_partitioning(version: int | None, old: Sequence[str], new: Sequence[str]) -> None:
    """Refuse to change the partition columns of a partitioned table.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION).
    """
    if version is not None and old and list(old) != list(new):
        raise _violation(
            version,
            f"does not allow changing the partitioning from ({', '.join(old)}) to ({', '.join(new)})",
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
        )


def _enabled_version(configuration: Mapping[str, str | None]) -> int | None:
    """The version that the properties enable. Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION) for several."""
    enabled = [v for v in (1, 2, 3) if (configuration.get(ICEBERG_COMPAT_PROPERTIES[v]) or "").lower() == "true"]
    if len(enabled) > 1:
        raise _violation(
            enabled[0],
            f"excludes V{enabled[1]}: enable only one of delta.enableIcebergCompatV{enabled[0]} and "
            f"delta.enableIcebergCompatV{enabled[1]}",
            "VERSION_MUTUAL_EXCLUSIVE",
        )
    return enabled[0] if enabled else None


def _unmapped(version: int) -> UserError:
    problem = (
        f"needs column mapping, but {Property.COLUMN_MAPPING_MODE} is 'none': set it to name, or "
        f"{ICEBERG_COMPAT_PROPERTIES[version]} to false"
    )
    return _violation(version, problem, "WRONG_REQUIRED_TABLE_PROPERTY")


def _refused(data_type: DataType, version: int) -> DataType | None:
    """A part of the type that the version does not support. Fields of structs are checked separately."""
    if isinstance(data_type, PrimitiveType):
        return None if data_type.name in _PRIMITIVES else data_type
    parts = parts_of(data_type)
    if parts and version == 1:
        return data_type
    return next((refused for part in parts.values() if (refused := _refused(part, version))), None)


def _violation(version: int, problem: str, kind: str) -> UserError:
    return UserError(
        f"Iceberg compatibility V{version} of the table {problem}.",
        code=f"DELTA_ICEBERG_COMPAT_VIOLATION.{kind}",
        compatibility=version,
    )
