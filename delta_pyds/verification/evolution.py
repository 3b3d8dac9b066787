"""Changes from one version's metadata to the next: the allowed ones and the forbidden ones.

Protocol: "Change Metadata", "Writer Requirements for Column Mapping", "Identity Columns", "In-Commit Timestamps";
the RFC "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import (
    IDENTITY_HIGH_WATER_MARK,
    IDENTITY_STEP,
    TIMESTAMP_NTZ,
    TYPE_CHANGES,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    display,
    type_to_json,
)
from delta_pyds.verification.metadata import max_column_id
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.view import FieldAt, TableView, column_id, fields_of

_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
}
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
# writers of the feature's preview required only the digits of the integer type itself
_FIRST_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}


class MetadataHistory:
    """Values that must never change: the table's id, column ids and their physical names.

    ``from_start``: all versions were seen, so an id that is not new is an error.
    """

    def __init__(self, *, from_start: bool) -> None:
        self._from_start = from_start
        self._names: dict[int, tuple[str, ...]] = {}
        self._ids: dict[tuple[str, ...], int] = {}

    def remember(self, view: TableView) -> None:
        if view.mapping_mode == "none":
            # mapping is removed together with all files: the next mapping starts from the beginning
            self._names.clear()
            self._ids.clear()
            return
        for at in fields_of(view.columns):
            number = column_id(at.field)
            if number is not None:
                self._names.setdefault(number, at.physical)
                self._ids.setdefault(at.physical, number)

    def check(self, old: TableView, new: TableView, *, replaced: bool, findings: VersionFindings) -> None:
        """Check a change. ``replaced``: no earlier file is left, so all columns may change."""
        assert old.metadata is not None and new.metadata is not None
        # REPLACE TABLE makes a new table: it keeps nothing of the old one
        if old.metadata.id != new.metadata.id and not replaced:
            findings.error("metadata.id-changed", f"the table's id goes from {old.metadata.id} to {new.metadata.id}.")
        if old.schema is None or new.schema is None:
            return
        if not replaced:
            self._check_partitioning(old, new, findings)
            self._check_types(old, new, findings)
        self._check_mapping(old, new, findings)
        _check_identity(old, new, findings)

    def _check_partitioning(self, old: TableView, new: TableView, findings: VersionFindings) -> None:
        before = [f.physical_name for f in old.partition_fields]
        after = [f.physical_name for f in new.partition_fields]
        if old.mapping_mode == new.mapping_mode and before != after:
            findings.error(
                "schema.partitioning-changed",
                f"the partition columns go from ({', '.join(before)}) to ({', '.join(after)}) while files stay.",
            )

    def _check_types(self, old: TableView, new: TableView, findings: VersionFindings) -> None:
        # without column mapping the name identifies a column, ignoring case
        mapped = old.mapping_mode != "none" and new.mapping_mode != "none"

        def key(at: FieldAt) -> tuple[str, ...]:
            return at.physical if mapped else tuple(p.lower() for p in at.path)

        before = {key(at): at for at in fields_of(old.columns)}
        for at in fields_of(new.columns):
            was = before.get(key(at))
            if was is not None and not _same_shape(was.field.data_type, at.field.data_type):
                self._check_type_change(was, at, new, findings)

    def _check_type_change(self, was: FieldAt, at: FieldAt, view: TableView, findings: VersionFindings) -> None:
        before, after = was.field.data_type, at.field.data_type
        what = f"the column {at.name} goes from {display(before)} to {display(after)}"
        first = view.protocol is not None and "typeWidening-preview" in (view.protocol.writer_features or ())
        if not _may_become(before, after, _FIRST_DIGITS if first else _DIGITS):
            findings.error("schema.type-changed", f"{what} while files stay, which is not a widening.")
        elif before == VOID:
            return  # a void column has no values to lose
        elif not view.supports(Feature.TYPE_WIDENING):
            findings.error("schema.type-changed", f"{what} without the feature typeWidening.")
        elif not _is_recorded(at.field, before, after):
            findings.error("schema.type-changed", f"{what}, which {TYPE_CHANGES} in its metadata does not record.")

    def _check_mapping(self, old: TableView, new: TableView, findings: VersionFindings) -> None:
        if (old.mapping_mode, new.mapping_mode) in (("none", "id"), ("name", "id"), ("id", "name")):
            findings.warning("mapping.mode-changed", f"the mode goes from {old.mapping_mode} to {new.mapping_mode}.")
        if new.mapping_mode == "none":
            return
        before, after = max_column_id(old), max_column_id(new)
        if before is not None and after is not None and after < before:
            findings.error("mapping.max-id", f"delta.columnMapping.maxColumnId goes from {before} to {after}.")
        for at in fields_of(new.columns):
            number = column_id(at.field)
            if number is None:
                continue
            name = self._names.get(number)
            if name is not None and name[-1] != at.physical[-1]:
                findings.error(
                    "mapping.changed",
                    f"the id {number} belonged to the physical name {name[-1]}, and now belongs to {at.physical[-1]}.",
                )
            known = self._ids.get(at.physical)
            if known is not None and known != number:
                findings.error(
                    "mapping.changed", f"the physical name {at.physical[-1]} had the id {known}, and now has {number}."
                )
            if (
                name is None
                and self._from_start
                and before is not None
                and number <= before
                and old.mapping_mode != "none"
            ):
                findings.error(
                    "mapping.id-reused",
                    f"the new column {at.name} has the id {number}, but ids up to {before} are used.",
                )


def _same_shape(before: DataType, after: DataType) -> bool:
    """Whether types are equal except for nullability and the fields of structs, which are compared separately."""
    if isinstance(before, StructType) and isinstance(after, StructType):
        return True
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _same_shape(before.element_type, after.element_type)
    if isinstance(before, MapType) and isinstance(after, MapType):
        return _same_shape(before.key_type, after.key_type) and _same_shape(before.value_type, after.value_type)
    return before == after


def _is_recorded(field: StructField, before: DataType, after: DataType) -> bool:
    """Whether the field's type changes record every changed part. RFC: "Type Widening", "Type Change Metadata"."""
    found = field.metadata.get(TYPE_CHANGES)
    if not isinstance(found, list):
        return False
    history = [(c.get("fieldPath", ""), c.get("fromType"), c.get("toType")) for c in found if isinstance(c, dict)]
    return all(change in history for change in _changed_parts(before, after, ""))


def _changed_parts(before: DataType, after: DataType, path: str) -> Iterator[tuple[str, object, object]]:
    def below(name: str) -> str:
        return f"{path}.{name}" if path else name

    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        yield from _changed_parts(before.element_type, after.element_type, below("element"))
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _changed_parts(before.key_type, after.key_type, below("key"))
        yield from _changed_parts(before.value_type, after.value_type, below("value"))
    elif not _same_shape(before, after) and before != VOID:
        yield path, type_to_json(before), type_to_json(after)


def _may_become(before: DataType, after: DataType, least: Mapping[str, int]) -> bool:
    """Whether this widening is allowed. ``least``: the integer digits that a decimal needs for an integer type."""
    if isinstance(before, ArrayType) and isinstance(after, ArrayType):
        return _may_become(before.element_type, after.element_type, least)
    if isinstance(before, MapType) and isinstance(after, MapType):
        keys = _may_become(before.key_type, after.key_type, least)
        return keys and _may_become(before.value_type, after.value_type, least)
    if isinstance(before, StructType) and isinstance(after, StructType):
        return True
    if before == after:
        return True
    if isinstance(before, DecimalType) and isinstance(after, DecimalType):
        more = after.scale - before.scale
        return more >= 0 and after.precision - before.precision >= more
    if isinstance(before, PrimitiveType) and isinstance(after, DecimalType):
        digits = least.get(before.name)
        return digits is not None and after.precision - after.scale >= digits
    if not isinstance(before, PrimitiveType) or not isinstance(after, PrimitiveType):
        return False
    if before == VOID or (before.name == "date" and after == TIMESTAMP_NTZ):
        return True
    return after.name in _WIDER.get(before.name, ())


def _check_identity(old: TableView, new: TableView, findings: VersionFindings) -> None:
    before = {f.physical_name: f for f in old.columns}
    for f in new.columns:
        was = before.get(f.physical_name)
        if was is None or IDENTITY_STEP not in f.metadata or IDENTITY_STEP not in was.metadata:
            continue
        for key in ("start", "step", "allowExplicitInsert"):
            if f.metadata.get(f"delta.identity.{key}") != was.metadata.get(f"delta.identity.{key}"):
                findings.error("identity.definition", f"the {key} of the identity column {f.name} has changed.")
        mark, step = f.metadata.get(IDENTITY_HIGH_WATER_MARK), f.metadata[IDENTITY_STEP]
        last = was.metadata.get(IDENTITY_HIGH_WATER_MARK)
        if isinstance(last, int) and (not isinstance(mark, int) or (mark < last if step > 0 else mark > last)):
            findings.error(
                "identity.high-water-mark", f"the high water mark of {f.name} goes back from {last} to {mark}."
            )
