"""The protocol that a table's metadata needs: for a new table, and for one that changes.

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
    lowest_protocol,
    supported_features,
    with_requirements,
)
from delta_pyds.protocol.schema import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    parse_schema,
    parts_of,
)

# the reference's minimum for a new table
DEFAULT_VERSIONS = (1, 2)


def upgrade_protocol(
    current: Protocol | None,
    metadata: Metadata,
    *,
    domains: Iterable[DomainMetadata] = (),
    features: Iterable[str] = (),
    versions: tuple[int, int] = DEFAULT_VERSIONS,
) -> Protocol:
    """The protocol that supports the features of the metadata, the domains and the user's request.

    Invariant: the result is never below ``current``. No version decreases and no feature is lost. ``current`` itself
    is returned if it is sufficient. Otherwise the result is the weakest protocol that supports exactly the features of
    both, and lists the features that the versions of ``current`` implied.

    Args:
        current: None for a new table, which also gets the features that ``versions`` (reader, writer) imply.
        features: requested by name, as with ``delta.feature.<name>``.
    Raises:
        UserError: an existing table gets this feature only by name (DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT).
        UnsupportedFeatureError: delta_pyds cannot write the feature.
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
            f"the new schema needs the table feature {', '.join(manual)}. It is not enabled automatically for an "
            "existing table, because older readers could then no longer open the table. Add it with "
            f"ALTER TABLE ... SET TBLPROPERTIES ('delta.feature.{manual[0]}' = 'supported'), or write columns of "
            "other types.",
            code="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            features=manual,
            supported=sorted(present),
        )
    return lowest_protocol(present | needed, least=current)


def features_needed(
    metadata: Metadata, present: frozenset[str] = frozenset(), domains: Iterable[DomainMetadata] = ()
) -> frozenset[str]:
    """The features that metadata and domains activate, without the features that those require.

    ``present``: the features that the table already supports. A preview feature among them counts as its successor.
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
    """Every field at every level, and whether it is inside an array or a map."""
    if isinstance(data_type, StructType):
        for f in data_type:
            yield f, inside_collection
            yield from _all_fields(f.data_type, inside_collection)
    for part in parts_of(data_type).values():
        yield from _all_fields(part, True)


def _primitive_names(data_type: DataType) -> Iterator[str]:
    """Names of the primitive types of a field, without those of nested fields."""
    if isinstance(data_type, PrimitiveType):
        yield data_type.name
    for part in parts_of(data_type).values():
        yield from _primitive_names(part)


def _check_writable(names: Iterable[str]) -> None:
    refused = sorted(n for n in names if n not in FEATURES or not FEATURES[n].writable)
    if refused:
        raise UnsupportedFeatureError(
            f"the table would need the table feature {', '.join(refused)}, which delta_pyds does not write. "
            "Leave out the property or the column type that needs it.",
            code="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            features=refused,
        )
