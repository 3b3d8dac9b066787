"""Whether Spark's own Parquet reader returns exactly the rows of a scan.

Invariant: everything that Spark is not known to read the same is a reason against its reader. The decision needs no
Spark: a session is given as a ``SessionDescription``. It opens no file: ``footers`` checks files, on request. A reason
is part of a sentence ("the table has variant columns").

Protocol: "Column Mapping", "Variant Data Type", "Row Tracking".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from delta_pyds.protocol.char_types import CHAR_VARCHAR_TYPE
from delta_pyds.protocol.schema import (
    COLLATIONS,
    VOID,
    DataType,
    PrimitiveType,
    StructField,
    StructType,
    parts_of,
)
from delta_pyds.spark.settings import (
    CASE_SENSITIVE,
    EXCLUDED_RULES,
    IGNORE_INVALID_PARTITION_PATHS,
    IGNORE_SINK_LOG,
    PARQUET_BINARY_AS_STRING,
    PARQUET_INFER_TIMESTAMP_NTZ,
    PARQUET_INT96_AS_TIMESTAMP,
    PARQUET_INT96_CONVERSION,
    PARQUET_NANOS_AS_LONG,
    PARQUET_NULL_STRUCT,
    TIME_ZONE,
    V1_SOURCES,
    VALIDATE_PARTITION_COLUMNS,
)
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.tasks.scan_state import ScanState

# Types that Spark reads as delta_pyds does, or fails to read, for any content of a file.
_LEAVES = frozenset(
    (
        "string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary", "date", "timestamp",
        "timestamp_ntz",
    )
)  # fmt: skip
CHAR = re.compile(r"(?<!var)char\s*\(", re.IGNORECASE)
# Names of columns that Spark or this package uses for metadata of the file.
METADATA_COLUMN = "_metadata"
RESERVED_PREFIX = "_deltapy_"
# The temporary views that hold file indexes on servers of Spark Connect (`server_index`).
FILES_VIEW_PREFIX = f"{RESERVED_PREFIX}files_"
_INTERNAL_PREFIXES = ("_tmp_metadata_", RESERVED_PREFIX)

# Settings that no option of a read can replace, with the values that give the table's rows.
# `spark.sql.parquet.fieldId.read.enabled`, which the reference turns on in every session, does not matter: Spark
# matches only those fields by id that are requested with an id, and delta_pyds requests none.
REQUIRED_SETTINGS: Mapping[str, str] = {
    CASE_SENSITIVE: "false",
    PARQUET_BINARY_AS_STRING: "false",
    PARQUET_INT96_AS_TIMESTAMP: "true",
    PARQUET_INT96_CONVERSION: "false",
    PARQUET_INFER_TIMESTAMP_NTZ: "true",
    PARQUET_NANOS_AS_LONG: "false",
    PARQUET_NULL_STRUCT: "false",
    VALIDATE_PARTITION_COLUMNS: "true",
    IGNORE_INVALID_PARTITION_PATHS: "false",
}


@dataclass(frozen=True)
class SessionDescription:
    """The parts of a session that can change the rows of its Parquet reader.

    ``settings``: the session's values of ``REQUIRED_SETTINGS``, ``IGNORE_SINK_LOG``, ``V1_SOURCES``, ``TIME_ZONE``,
    ``EXCLUDED_RULES`` and those of ``comet``; a missing one has its default. ``remote``: whether the session is one of
    Spark Connect, where another machine reads the files.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    remote: bool = False

    @property
    def ignores_sink_logs(self) -> bool:
        """Whether Spark ignores an index of files (``native.file_index``)."""
        return self.settings.get(IGNORE_SINK_LOG, "false").strip().lower() != "false"

    @property
    def optimizes_whole(self) -> bool:
        """Whether Spark's optimizer runs all its rules."""
        return not self.settings.get(EXCLUDED_RULES, "").strip()


def reasons_against(
    scan: ScanState, session: SessionDescription, *, uses_time_zone: bool, sure_of_files: bool
) -> tuple[str, ...]:
    """The reasons against Spark's own reader in schema, options and session; empty if it can read the scan.

    ``uses_time_zone``: whether the predicate depends on ``scan.time_zone``. ``sure_of_files``: whether the caller
    guarantees that a remote Spark sees the same files under the same paths.
    """
    return (*_of_options(scan, uses_time_zone, session), *_of_session(scan, session, sure_of_files), *_of_columns(scan))


def _of_options(scan: ScanState, uses_time_zone: bool, session: SessionDescription) -> Iterator[str]:
    if scan.row_position:
        yield "row positions are requested"
    if scan.row_ids is not None:
        yield "row ids are requested"
    zone = session.settings.get(TIME_ZONE, scan.time_zone)
    if uses_time_zone and zone != scan.time_zone:
        yield f"where depends on the time zone {scan.time_zone}, but the session's is {zone}"


def _of_session(scan: ScanState, session: SessionDescription, sure_of_files: bool) -> Iterator[str]:
    for key, required in REQUIRED_SETTINGS.items():
        found = session.settings.get(key, required)
        if found.strip().lower() != required:
            yield f"{key} is {found}"
    sources = session.settings.get(V1_SOURCES, "parquet").lower().split(",")
    if "parquet" not in {name.strip() for name in sources}:
        yield f"{V1_SOURCES} does not list parquet"
    if session.remote and not sure_of_files and scheme_of(scan.table_root) == "file":
        yield "through Spark Connect, a local path may be another table on the server"


def _of_columns(scan: ScanState) -> Iterator[str]:
    if scan.column_mapping_mode == "id":
        yield "columns are mapped by id, which Spark can do only for a whole session"
    folded: dict[str, str] = {}
    for f in unique_fields(scan):
        name = f.physical_name
        if name.lower().startswith(_INTERNAL_PREFIXES) or name.lower() == METADATA_COLUMN:
            yield f"the column '{f.name}' has a reserved name"
        if name.lower() in folded:
            yield f"the columns '{folded[name.lower()]}' and '{f.name}' differ in case only"
        folded[name.lower()] = f.name
        if name in scan.partition_columns:
            yield from _of_text(f, f.name)
            continue
        if f.data_type == VOID:
            continue  # a void column is null in every row and not read
        yield from _of_field(f, f.name)


def unique_fields(scan: ScanState) -> tuple[StructField, ...]:
    """The columns of the output and of the predicate, each once, those of the output first."""
    names = set(scan.output.names)
    return (*scan.output, *(f for f in scan.inputs if f.name not in names))


def _of_text(field: StructField, path: str) -> Iterator[str]:
    if CHAR.search(str(field.metadata.get(CHAR_VARCHAR_TYPE, ""))):
        yield f"the column '{path}' is of type char, whose values Spark pads for a Python source only"
    if COLLATIONS in field.metadata:
        # columns of files and partitions are read without it, and would be compared by bytes
        yield f"the column '{path}' has a collation"


def _of_field(field: StructField, path: str) -> Iterator[str]:
    yield from _of_text(field, path)
    yield from _of_type(field.data_type, path)


def _of_type(data_type: DataType, path: str) -> Iterator[str]:
    if isinstance(data_type, PrimitiveType):
        if data_type.name not in _LEAVES:
            yield f"the column '{path}' is of type {data_type.name}"
    elif isinstance(data_type, StructType):
        yield from _of_struct(data_type, path)
    for name, part in parts_of(data_type).items():
        yield from _of_type(part, f"{path}.{name}")


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
