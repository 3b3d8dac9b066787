"""What protocol a table's metadata needs: for a new table, and for one that changes.

Protocol: "Table Features for New and Existing Tables".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from delta_pyds.errors import UnsupportedFeatureError, UserError
from delta_pyds.protocol.actions import CLUSTERING_DOMAIN, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.features import (
    FEATURES,
    Feature,
    TableFeature,
    implied_features,
    supported_features,
    weakest_protocol,
    with_requirements,
)
from delta_pyds.protocol.schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
)

# what the reference gives to a new table, whatever its metadata
DEFAULT_VERSIONS = (1, 2)


def upgrade_protocol(
    current: Protocol | None,
    metadata: Metadata,
    *,
    domains: Iterable[DomainMetadata] = (),
    features: Iterable[str] = (),
    versions: tuple[int, int] = DEFAULT_VERSIONS,
) -> Protocol:
    """The protocol that supports what the metadata, the domains and the user ask for.

    Never below ``current``: no version falls and no feature leaves, and
    ``current`` itself is returned where it is enough. What it is raised to is
    the weakest protocol that supports exactly the features of both; features
    that its versions implied are then listed. ``current`` None: for a new
    table, which also gets the features that the reader and writer ``versions`` imply.
    ``features``: asked for by name, as ``delta.feature.<name>`` does.

    Raises: UserError (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT) for a feature that an
        existing table gets by name only; UnsupportedFeatureError for one that this software cannot write.
    Protocol: "Table Features for New and Existing Tables", "Supported Features".
    """
    asked = frozenset(features)
    present = implied_features(*versions) if current is None else supported_features(current)
    needed = with_requirements(asked | features_needed(metadata, present, domains))
    missing = needed - present
    if current is not None and not missing:
        return current
    _check_writable(missing)
    manual = sorted(n for n in missing - asked if n in FEATURES and FEATURES[n].manual)
    if current is not None and manual:
        raise UserError(
            f"the new schema needs the table feature {', '.join(manual)}, which an existing table does not get on "
            f"its own, because older readers could then not open the table any more. Add it with "
            f"ALTER TABLE ... SET TBLPROPERTIES ('delta.feature.{manual[0]}' = 'supported'), or write columns of "
            "other types.",
            code="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            features=manual,
            supported=sorted(present),
        )
    return weakest_protocol(present | needed, least=current)


def features_needed(
    metadata: Metadata, present: frozenset[str] = frozenset(), domains: Iterable[DomainMetadata] = ()
) -> frozenset[str]:
    """The features that metadata and domains make active, without what those require.

    ``present``: those that the table supports already; a preview among them stands in for its feature.
    """
    names = {f.name for f in FEATURES.values() if f.instead not in present and _is_needed(f, metadata)}
    if metadata.schema_string is not None:
        fields = tuple(_all_fields(parse_schema(metadata.schema_string)))
        names |= {f.name for f in FEATURES.values() if f.instead not in present and _schema_needs(f, fields)}
    for domain in domains:
        names.add(Feature.DOMAIN_METADATA)
        if domain.domain == CLUSTERING_DOMAIN and not domain.removed:
            names.add(Feature.CLUSTERING)
    return frozenset(names)


def _is_needed(feature: TableFeature, metadata: Metadata) -> bool:
    configuration = metadata.configuration or {}
    if any((configuration.get(key) or "").strip().lower() == value for key, value in feature.properties):
        return True
    prefix = feature.property_prefix
    return prefix is not None and any(key.startswith(prefix) for key in configuration)


def _schema_needs(feature: TableFeature, fields: tuple[tuple[StructField, bool], ...]) -> bool:
    for field, inside_collection in fields:
        if any(key in field.metadata for key in feature.field_keys):
            return True
        if feature.not_null and not field.nullable and not inside_collection:
            return True
        if any(name in feature.types for name in _primitive_names(field.data_type)):
            return True
    return False


def _all_fields(data_type: DataType, inside_collection: bool = False) -> Iterator[tuple[StructField, bool]]:
    """Every field at every level, and whether it is within an array or a map."""
    if isinstance(data_type, StructType):
        for f in data_type:
            yield f, inside_collection
            yield from _all_fields(f.data_type, inside_collection)
    elif isinstance(data_type, ArrayType):
        yield from _all_fields(data_type.element_type, True)
    elif isinstance(data_type, MapType):
        yield from _all_fields(data_type.key_type, True)
        yield from _all_fields(data_type.value_type, True)


def _primitive_names(data_type: DataType) -> Iterator[str]:
    """Names of the primitive types of a field itself: what is in fields of its own is theirs."""
    if isinstance(data_type, PrimitiveType):
        yield data_type.name
    elif isinstance(data_type, ArrayType):
        yield from _primitive_names(data_type.element_type)
    elif isinstance(data_type, MapType):
        yield from _primitive_names(data_type.key_type)
        yield from _primitive_names(data_type.value_type)


def _check_writable(names: Iterable[str]) -> None:
    refused = sorted(n for n in names if n not in FEATURES or not FEATURES[n].writable)
    if refused:
        raise UnsupportedFeatureError(
            f"the table would need the table feature {', '.join(refused)}, which this software does not write. "
            "Leave out the property or the column type that asks for it.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            features=refused,
        )
