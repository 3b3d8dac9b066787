"""Whether Spark's own Parquet reader is certain to return the rows of a scan.

Invariant: what is not known to be read the same is a reason against it. The
decision needs no Spark: a session comes in as a ``SessionDescription``. Reasons
are parts of a sentence ("the table has variant columns"), for people.

Protocol: "Column Mapping", "Variant Data Type", "Row Tracking".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import (
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.tasks.scan_state import ScanState

# Spark lists each file by itself, and keeps what it finds: measured up to that many on a disk, 0.2 ms of CPU each. The
# Python source needs more than that to read the least file. In a store nothing was measured, and answers are slow.
MAX_FILES = 100_000
MAX_FILES_IN_A_STORE = 1_000

# Types whose values Spark reads as we do, or fails, whatever the file holds.
_LEAVES = frozenset(
    (
        "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
        "timestamp_ntz",
    )
)  # fmt: skip
_CHAR = re.compile(r"(?<!var)char\s*\(", re.IGNORECASE)
# Under such names Spark, or this package, keeps what is known of the file itself.
_METADATA_COLUMN = "_metadata"
RESERVED_PREFIX = "_deltapy_"
_INTERNAL_PREFIXES = ("_tmp_metadata_", RESERVED_PREFIX)

# Settings that no option of a single read can stand in for, and what they must be for the result to be the table's.
# `spark.sql.parquet.fieldId.read.enabled` is none of them, which the reference turns on in every session that it is
# used in: Spark matches by id those fields alone that are asked for with one, and ours never are.
REQUIRED_SETTINGS: Mapping[str, str] = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "false",
    "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "false",
    "spark.sql.sources.validatePartitionColumns": "true",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
}
V1_SOURCES = "spark.sql.sources.useV1SourceList"
TIME_ZONE = "spark.sql.session.timeZone"


@dataclass(frozen=True)
class SessionDescription:
    """What of a session can change what its Parquet reader returns.

    ``settings``: of ``REQUIRED_SETTINGS``, ``V1_SOURCES`` and ``TIME_ZONE``, as the session has them;
    one that is missing has its default. ``remote``: Spark Connect, where files are read by another
    machine than the one that plans.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    remote: bool = False


def reasons_against(
    scan: ScanState, session: SessionDescription, *, uses_time_zone: bool, sure_of_files: bool
) -> tuple[str, ...]:
    """Why this scan is not for Spark's own reader, as far as schema, options and session tell; empty if it is.

    ``uses_time_zone``: the predicate's meaning depends on ``scan.time_zone``. ``sure_of_files``: somebody
    vouches that a remote Spark sees the same files under the same paths.
    """
    return (*_of_options(scan, uses_time_zone, session), *_of_session(scan, session, sure_of_files), *_of_columns(scan))


def _of_options(scan: ScanState, uses_time_zone: bool, session: SessionDescription) -> Iterator[str]:
    if scan.row_position:
        yield "row positions are asked for"
    if scan.row_ids is not None:
        yield "row ids are asked for"
    zone = session.settings.get(TIME_ZONE, scan.time_zone)
    if uses_time_zone and zone != scan.time_zone:
        yield f"where is meant in the time zone {scan.time_zone}, and the session's is {zone}"


def _of_session(scan: ScanState, session: SessionDescription, sure_of_files: bool) -> Iterator[str]:
    for key, required in REQUIRED_SETTINGS.items():
        found = session.settings.get(key, required)
        if found.strip().lower() != required:
            yield f"{key} is {found}"
    sources = session.settings.get(V1_SOURCES, "parquet").lower().split(",")
    if "parquet" not in {name.strip() for name in sources}:
        yield f"{V1_SOURCES} is without parquet"
    if session.remote and not sure_of_files and scheme_of(scan.table_root) == "file":
        yield "through Spark Connect, a local path may be another table on the server"


def _of_columns(scan: ScanState) -> Iterator[str]:
    if scan.column_mapping_mode == "id":
        yield "columns are mapped by id, which Spark does only for a whole session"
    folded: dict[str, str] = {}
    for f in unique_fields(scan):
        name = f.physical_name
        if name.lower().startswith(_INTERNAL_PREFIXES) or name.lower() == _METADATA_COLUMN:
            yield f"the column '{f.name}' has a name that is used for something else"
        if name.lower() in folded:
            yield f"the columns '{folded[name.lower()]}' and '{f.name}' differ in case only"
        folded[name.lower()] = f.name
        if name in scan.partition_columns:
            yield from _of_char(f, f.name)
            continue
        if f.data_type == VOID:
            continue  # it is null in every row, and not read
        yield from _of_field(f, f.name)


def most_files(scan: ScanState) -> int:
    """How many files Spark's own reader is given at most."""
    return MAX_FILES if scheme_of(scan.table_root) == "file" else MAX_FILES_IN_A_STORE


def unique_fields(scan: ScanState) -> tuple[StructField, ...]:
    """The columns that are returned or that the predicate looks at, each once, those returned first."""
    names = set(scan.output.names)
    return (*scan.output, *(f for f in scan.inputs if f.name not in names))


def _of_char(field: StructField, path: str) -> Iterator[str]:
    if _CHAR.search(str(field.metadata.get(CHAR_VARCHAR_TYPE, ""))):
        yield f"the column '{path}' is of type char, whose values Spark pads for a Python source only"


def _of_field(field: StructField, path: str) -> Iterator[str]:
    yield from _of_char(field, path)
    yield from _of_type(field.data_type, path)


def _of_type(data_type: DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, PrimitiveType):
        if data_type.name not in _LEAVES:
            yield f"the column '{path}' is of type {data_type.name}"
    elif isinstance(data_type, ArrayType):
        yield from _of_type(data_type.element_type, f"{path}.element")
    elif isinstance(data_type, MapType):
        yield from _of_type(data_type.key_type, f"{path}.key")
        yield from _of_type(data_type.value_type, f"{path}.value")
    elif isinstance(data_type, StructType):
        yield from _of_struct(data_type, path)
    else:
        assert isinstance(data_type, DecimalType)


def _of_struct(data_type: StructType, path: str) -> Iterator[str]:
    if not data_type.fields:
        yield f"the column '{path}' is a struct without fields"
    folded: set[str] = set()
    for f in data_type:
        name = f.physical_name.lower()
        if name in folded:
            yield f"the column '{path}' has fields that differ in case only"
        folded.add(name)
        yield from _of_field(f, f"{path}.{f.name}")
