"""Convert: a log for a directory of Parquet files, which then are a table.

    convert(storage, "/data/events", ConvertOptions(partition_schema))

Invariants: no data file is read beyond its footer, and none is changed; each file that is not hidden is in the table,
with the partition values that its path says; either the table is there with all of them, or nothing is. What is there
and cannot be in the table, a link or another table, is refused and not left out.

Protocol: "Add File and Remove File", "Per-file Statistics", "Partition Value Serialization".
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from delta_pyds.commands.maintenance.parquet_summary import ParquetSummary, summarize
from delta_pyds.data.write.layout import NULL_DIRECTORY, encode_path
from delta_pyds.data.write.statistics import statistics_json
from delta_pyds.errors import (
    FileNotFoundInStorageError,
    ProtocolError,
    TableNotFoundError,
    UnsupportedOperationError,
    UserError,
)
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.partition_values import format_partition_value, parse_partition_value
from delta_pyds.protocol.paths import LOG_DIRECTORY, join
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.protocol.schema import StructField, StructType, display
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.table.definition.create import new_table
from delta_pyds.table.definition.statistics_columns import statistics_columns
from delta_pyds.table.snapshot import open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import Transaction

logger = safe_logger(__name__)

_THREADS = 8
_ESCAPE = re.compile("%([0-9a-fA-F]{2})")


@dataclass(frozen=True)
class ConvertOptions:
    """``partition_schema``: the columns that directories name, in their order; empty where they name none.

    ``time_zone``: of timestamps in names of directories.
    """

    partition_schema: StructType = dataclasses.field(default_factory=lambda: StructType(()))
    collect_statistics: bool = True
    time_zone: str = "UTC"
    user_metadata: str | None = None


@dataclass(frozen=True)
class _Found:
    """A file below the root. ``values``: the log's text of each partition column."""

    path: str
    size_bytes: int
    modification_time_ms: int
    values: dict[str, str | None]


def convert(storage: Storage, table_root: str, options: ConvertOptions) -> int | None:
    """Make a table of the Parquet files below a directory.

    Returns: how many files; None where a table is there already, which stays as it is.
    Raises: UserError for directories that are not those of the partition columns
        (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME, DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
        DELTA_FAILED_CAST_PARTITION_VALUE), for files whose columns do not go together
        (DELTA_FAILED_MERGE_SCHEMA_FILE), and where there is no file (DELTA_EMPTY_DIRECTORY); CorruptDataFileError for
        what is no Parquet file; UnsupportedOperationError for a type that no table has, for links and other names that
        are no files, and for a table below the directory; a ConflictError.
    """
    try:
        open_snapshot(storage, table_root)
        return None
    except TableNotFoundError:
        pass
    storage.require_put_if_absent(table_root)
    files = list(_files(storage, table_root, options))
    if not files:
        raise UserError(
            f"there is no file in {table_root} that a table could be made of. Give the directory of the Parquet files.",
            code="DELTA_EMPTY_DIRECTORY",
            table=table_root,
        )
    prefix_length = parse_properties({}).string_prefix_length

    def summary(file: _Found) -> ParquetSummary:
        found = summarize(
            storage,
            table_root,
            join(table_root, file.path),
            prefix_length=prefix_length,
            with_statistics=options.collect_statistics,
        )
        advance(1)
        return found

    with (
        step("reading of footers", table_root, total=len(files), log=logger) as advance,
        ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-footer") as pool,
    ):
        try:
            summaries = list(pool.map(summary, files))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    partitions = options.partition_schema.names
    schema = _schema(table_root, files, summaries, options.partition_schema)
    definition = new_table(table_root, schema, partition_columns=partitions, properties={})
    wanted = set(statistics_columns(schema, parse_properties({}), partitions))
    transaction = Transaction(storage, table_root, None)
    # the rows were there before: no append
    transaction.record_whole_table()
    transaction.set_metadata(definition.metadata)
    transaction.set_protocol(definition.protocol)
    transaction.add(_add(file, one, wanted, options) for file, one in zip(files, summaries, strict=True))
    transaction.commit(
        Operation(
            "CONVERT",
            {
                "numFiles": len(files),
                "partitionedBy": list(partitions),
                "collectStats": options.collect_statistics,
                "sourceFormat": "parquet",
            },
            {"numConvertedFiles": len(files)},
        ),
        user_metadata=options.user_metadata,
    )
    logger.info("%d files of %s are a table now.", len(files), table_root)
    return len(files)


def _add(file: _Found, summary: ParquetSummary, wanted: set[tuple[str, ...]], options: ConvertOptions) -> AddFile:
    statistics = [column for column in summary.statistics if column[0] in wanted]
    return AddFile(
        path=encode_path(file.path),
        partition_values=file.values,
        size=file.size_bytes,
        modification_time=file.modification_time_ms,
        data_change=True,
        stats=statistics_json(summary.num_rows, statistics) if options.collect_statistics else None,
    )


# --- the files


def _files(storage: Storage, root: str, options: ConvertOptions) -> Iterator[_Found]:
    """All files that are not hidden, in the order of their paths. No link is followed, and none is passed over.

    Raises: UserError; UnsupportedOperationError.
    """
    columns = frozenset(name.lower() for name in options.partition_schema.names)
    waiting = [""]
    found = []
    while waiting:
        directory = waiting.pop()
        prefix = f"{directory}/" if directory else ""
        try:
            for entry in storage.list_directory(join(root, directory) if directory else root):
                if directory and entry.name == LOG_DIRECTORY:
                    raise _table_below(root, directory)
                if _is_hidden(entry.name, columns):
                    continue
                if entry.kind == "directory":
                    waiting.append(prefix + entry.name)
                elif entry.kind == "file":
                    values = _values(root, directory, options)
                    found.append(_Found(prefix + entry.name, entry.size_bytes, entry.modification_time_ms, values))
                else:
                    raise _no_file(root, prefix + entry.name)
        except FileNotFoundInStorageError:
            if not directory:
                return
    yield from sorted(found, key=lambda file: file.path)


def _is_hidden(name: str, columns: Set[str]) -> bool:
    """``columns``: of the partitioning, in small letters."""
    if name == LOG_DIRECTORY:
        return True
    if not name.startswith(("_", ".")):
        return False
    column, equals, _ = name.partition("=")
    return not equals or _unescaped(column).lower() not in columns


def _no_file(root: str, path: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{path!r} in {root} is no file that a table can name: it is a symbolic link, its name is no UTF-8, or it has "
        "no bytes of its own. Nothing was converted, as its rows would be missing. Put a file with the rows in its "
        "place, or take it away; names that begin with _ or . are not looked at.",
        path=path,
    )


def _table_below(root: str, directory: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"another table lies below {root}, at {directory!r}: among its files are such as its log has removed, whose "
        "rows would come back. Nothing was converted. Move that table away, or convert the directories apart.",
        path=directory,
    )


def _values(root: str, directory: str, options: ConvertOptions) -> dict[str, str | None]:
    """The partition values of the files of a directory. Raises: UserError."""
    expected = options.partition_schema.fields
    parsed = [part.partition("=") for part in directory.split("/") if "=" in part]
    names = [_unescaped(name) for name, _, _ in parsed]
    if len(names) != len(expected):
        shown = ", ".join(names) or "none"
        wanted = ", ".join(field.name for field in expected) or "none"
        raise UserError(
            f"the directory {directory!r} of {root} names {len(names)} partition columns ({shown}), and "
            f"{len(expected)} are expected ({wanted}). Give convertToDelta the partition schema that the directories "
            "have, such as 'day date, city string'.",
            code="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            path=directory,
        )
    values: dict[str, str | None] = {}
    for field, name, (_, _, text) in zip(expected, names, parsed, strict=True):
        if name.lower() != field.name.lower():
            raise UserError(
                f"the directory {directory!r} of {root} names the partition column {name}, and {field.name} is "
                "expected there. Give the columns of the partition schema in the order of the directories.",
                code="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                path=directory,
            )
        values[field.name] = _value(root, directory, field, text, options.time_zone)
    return values


def _value(root: str, directory: str, field: StructField, text: str, time_zone: str) -> str | None:
    if text == NULL_DIRECTORY:
        return None
    value = _unescaped(text)
    try:
        return format_partition_value(parse_partition_value(value, field.data_type, time_zone), field.data_type)
    except ProtocolError:
        raise UserError(
            f"the directory {directory!r} of {root} has the value {value!r} for the partition column {field.name}, "
            f"which is no {display(field.data_type)}. Give the column another type, such as string.",
            code="DELTA_FAILED_CAST_PARTITION_VALUE",
            path=directory,
        ) from None


def _unescaped(text: str) -> str:
    """As Spark and Hive read a name of a directory."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


# --- the schema


def _schema(
    root: str, files: Sequence[_Found], summaries: Sequence[ParquetSummary], partitions: StructType
) -> StructType:
    """The columns of all files, in the order in which they come first, and the partition columns at the end."""
    names = {field.name.lower() for field in partitions}
    merged = StructType(())
    seen: tuple[StructField, ...] | None = None
    for file, summary in zip(files, summaries, strict=True):
        if summary.columns == seen:
            continue  # mostly all of them
        seen = summary.columns
        own = StructType(tuple(field for field in seen if field.name.lower() not in names))
        merged = _merged(merged, own, root, file.path)
    return StructType((*merged.fields, *(replace(field, nullable=True) for field in partitions)))


def _merged(left: StructType, right: StructType, root: str, path: str) -> StructType:
    known = {field.name.lower(): place for place, field in enumerate(left.fields)}
    fields = list(left.fields)
    for field in right:
        place = known.get(field.name.lower())
        if place is None:
            fields.append(field)
            continue
        before = fields[place]
        if isinstance(before.data_type, StructType) and isinstance(field.data_type, StructType):
            fields[place] = replace(before, data_type=_merged(before.data_type, field.data_type, root, path))
        elif before.data_type != field.data_type or before.name != field.name:
            raise UserError(
                f"the file {path!r} of {root} has the column {field.name} as {display(field.data_type)}, and other "
                f"files have {before.name} as {display(before.data_type)}: no table has both. Rewrite the files that "
                "are odd, or convert them apart.",
                code="DELTA_FAILED_MERGE_SCHEMA_FILE",
                path=path,
                column=field.name,
            )
    return StructType(tuple(fields))
