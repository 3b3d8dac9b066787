"""Checks that every column of a schema written by others can be identified without ambiguity.

Invariant: of a schema that is refused here some column would be read with the values of another.

Protocol: "Change Metadata", "Column Mapping", "Partition Value Serialization".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.schema import (
    COLUMN_MAPPING_PHYSICAL_NAME,
    ArrayType,
    MapType,
    StructType,
    structs,
)


def check_sound(schema: StructType, partition_columns: Sequence[str], mapping_mode: str) -> None:
    """Refuse columns that have the name, the physical name or the id of another one, and partitions by what has parts.

    Names count by their exact spelling, for tables with columns ``a`` and ``A`` are about.

    Raises: ProtocolError (DELTA_DUPLICATE_COLUMNS_FOUND, DELTA_MISSING_PHYSICAL_NAME, DELTA_DUPLICATED_PHYSICAL_NAME,
        DELTA_DUPLICATED_COLUMN_ID, DELTA_INVALID_PARTITION_COLUMN_TYPE).
    """
    ids: set[int] = set()
    for struct in structs(schema):
        _check_distinct([f.name for f in struct], "name", "DELTA_DUPLICATE_COLUMNS_FOUND")
        if mapping_mode == "none":
            continue
        physical: list[str] = []
        for f in struct:
            name = f.metadata.get(COLUMN_MAPPING_PHYSICAL_NAME)
            if not isinstance(name, str) or not name:
                raise ProtocolError(
                    f"column mapping is on, but the field '{f.name}' has no physical name: "
                    "the column cannot be found in the data files.",
                    code="DELTA_MISSING_PHYSICAL_NAME",
                    column=f.name,
                )
            physical.append(name)
            number = f.field_id  # refuses what is no id
            if mapping_mode == "id" and number is not None:
                if number in ids:
                    raise ProtocolError(
                        f"two columns have the column mapping id {number}: values of one would be read as the other's. "
                        "Restore the commit that holds this schema.",
                        code="DELTA_DUPLICATED_COLUMN_ID",
                        id=number,
                    )
                ids.add(number)
        _check_distinct(physical, "physical name", "DELTA_DUPLICATED_PHYSICAL_NAME")
    if partition_columns:
        by = set(partition_columns)
        for f in schema:
            if f.name in by and isinstance(f.data_type, StructType | ArrayType | MapType):
                raise ProtocolError(
                    f"the partition column '{f.name}' is of a type with parts, and a partition value is one text.",
                    code="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                    column=f.name,
                )
        _check_distinct(partition_columns, "name among the partition columns", "DELTA_DUPLICATE_COLUMNS_FOUND")


def _check_distinct(names: Sequence[str], what: str, code: str) -> None:
    if len(set(names)) == len(names):
        return
    twice = next(name for name, count in Counter(names).items() if count > 1)
    raise ProtocolError(
        f"two columns have the {what} '{twice}': values of one would be read as the other's. "
        "Restore the commit that holds this schema.",
        code=code,
        name=twice,
    )
