"""Convert: creates a log for a directory of Parquet files, which makes it a table.

    convert(storage, "/data/events", ConvertOptions(partition_schema))

Invariants: only the footers of data files are read, and no file is changed. Each file that is not hidden becomes part
of the table, with the partition values in its path; the table is created with all of them, or not at all. Links and
other tables cannot become part of it; they are refused, not left out. Memory holds the log entry of each file. For
files with the columns of the first file, its length depends on the columns with statistics, not on all columns.

Protocol: "Add File and Remove File", "Per-file Statistics", "Partition Value Serialization".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace

from delta_pyds.commands.task_runner import TaskRunner
from delta_pyds.data.convert.footers import read_footers, read_footers_from
from delta_pyds.data.write.layout import NULL_DIRECTORY, unescape_path_name
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
from delta_pyds.protocol.paths import LOG_DIRECTORY, encode_path, join
from delta_pyds.protocol.properties import TableProperties, parse_properties
from delta_pyds.protocol.schema import StructField, StructType, display
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.table.definition.create import new_table
from delta_pyds.table.definition.property_rules import read_properties
from delta_pyds.table.definition.statistics_columns import statistics_columns
from delta_pyds.table.snapshot import open_snapshot
from delta_pyds.table.transaction.commit_info import Operation
from delta_pyds.table.transaction.transaction import TableToCreate, Transaction
from delta_pyds.tasks.footers import Columns, FileFooter, FootersRead, ReadFooters

logger = safe_logger(__name__)

_THREADS = 8
# a job of Spark takes as long as reading the footers of some hundred local files
_FEWEST_FILES_FOR_TASKS = 1_000
_FILES_AT_ONCE = 16
# a task returns a few hundred bytes for each file; many tasks even out differences in length
_MOST_FILES_OF_A_TASK = 2_000
_TASKS_PER_WORKER = 4
# a directory beside the files that Spark's streaming sink for files wrote
_LOG_OF_SINK = "_spark_metadata"


@dataclass(frozen=True)
class ConvertOptions:
    """``partition_schema``: the partition columns in the names of directories, in their order; may be empty.

    ``time_zone``: of timestamps in directory names. ``properties``: the new table's. ``check``: called with the
    paths and columns before the commit; raises if the caller expects others, and returns the columns in the order of
    the table. ``catalog_table``: the converted name, for the history.
    """

    partition_schema: StructType = dataclasses.field(default_factory=lambda: StructType(()))
    collect_statistics: bool = True
    time_zone: str = "UTC"
    user_metadata: str | None = None
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    check: Callable[[Sequence[str], StructType], StructType] | None = None
    catalog_table: str | None = None


@dataclass(frozen=True)
class _Found:
    """A file below the root. ``values``: the log's text of each partition column."""

    path: str
    size_bytes: int
    modification_time_ms: int
    values: dict[str, str | None]


def convert(storage: Storage, table_root: str, options: ConvertOptions, runner: TaskRunner | None = None) -> int | None:
    """Create a table from the Parquet files below a directory.

    ``runner``: runs the tasks that read many footers; None for this process.

    Returns: the number of files; None for an existing table, which stays unchanged.
    Raises: UserError for directories that do not match the partition columns
        (DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME, DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME,
        DELTA_FAILED_CAST_PARTITION_VALUE), for files with contradicting columns (DELTA_FAILED_MERGE_SCHEMA_FILE), and
        for a directory without files (DELTA_EMPTY_DIRECTORY); CorruptDataFileError for other files than Parquet;
        UnsupportedOperationError for a type that Delta does not have, for links and other names that are not files, for
        a table below the directory, for files of a streaming sink, and for column mapping, which the files were not
        written with; OptionError for an invalid property; ConflictError if another writer creates the table meanwhile.
    """
    try:
        open_snapshot(storage, table_root)
        return None
    except TableNotFoundError:
        pass
    storage.require_put_if_absent(table_root)
    properties = _parsed_properties(table_root, options.properties)
    files = list(_files(storage, table_root, options))
    if not files:
        raise UserError(
            f"there is no Parquet file in {table_root} to convert. Give the directory of the Parquet files.",
            code="DELTA_EMPTY_DIRECTORY",
            table=table_root,
        )
    columns = _Columns(table_root, options.partition_schema, properties)
    with closing(_footers(storage, table_root, files, options, runner, columns)) as footers:
        adds = [_add(file, footer, read, columns, options) for file, (read, footer) in zip(files, footers, strict=True)]
    schema = columns.schema
    if options.check is not None:
        schema = options.check([file.path for file in files], schema)
    partitions = options.partition_schema.names
    definition = new_table(table_root, schema, partition_columns=partitions, properties=options.properties)
    # the writer of the files may not have synced them to the disk
    storage.make_all_durable([table_root])
    transaction = Transaction(TableToCreate(storage, table_root))
    # the rows existed before, so this is not a blind append
    transaction.record_whole_table()
    transaction.set_metadata(definition.metadata)
    transaction.set_protocol(definition.protocol)
    transaction.add(adds)
    transaction.commit(
        Operation(
            "CONVERT",
            {
                **({"catalogTable": options.catalog_table} if options.catalog_table else {}),
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


def _parsed_properties(root: str, properties: Mapping[str, str]) -> TableProperties:
    """The parsed properties. Raises: UnsupportedOperationError for column mapping: the files lack its names and ids."""
    found = parse_properties(read_properties(properties).configuration)
    if found.column_mapping_mode != "none":
        raise UnsupportedOperationError(
            f"{root} cannot become a table with column mapping, which its properties or the session's setting "
            "spark.databricks.delta.properties.defaults.columnMapping.mode request. Remove the property or the "
            "setting, and set the table's property afterwards.",
            code="DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
            table=root,
        )
    return found


# --- the files


def _files(storage: Storage, root: str, options: ConvertOptions) -> Iterator[_Found]:
    """All files that are not hidden, in the order of their paths. Links are neither followed nor ignored, but refused.

    Raises: UserError; UnsupportedOperationError.
    """
    columns = frozenset(name.lower() for name in options.partition_schema.names)
    waiting = [""]
    found = []
    while waiting:
        directory = waiting.pop()
        prefix = f"{directory}/" if directory else ""
        values: dict[str, str | None] | None = None
        try:
            for entry in storage.list_directory(join(root, directory) if directory else root):
                if directory and entry.name == LOG_DIRECTORY:
                    raise _table_below(root, directory)
                if entry.name == _LOG_OF_SINK and entry.kind == "directory":
                    raise _written_by_a_sink(root, directory)
                if _is_hidden(entry.name, columns):
                    continue
                if entry.kind == "directory":
                    waiting.append(prefix + entry.name)
                elif entry.kind == "file":
                    values = _values(root, directory, options) if values is None else values
                    found.append(_Found(prefix + entry.name, entry.size_bytes, entry.modification_time_ms, values))
                else:
                    raise _not_a_file(root, prefix + entry.name)
        except FileNotFoundInStorageError:
            if not directory:
                return
    yield from sorted(found, key=lambda file: file.path)


def _is_hidden(name: str, columns: Set[str]) -> bool:
    """Whether a name is hidden. ``columns``: the partition columns, in lower case."""
    if name == LOG_DIRECTORY:
        return True
    if not name.startswith(("_", ".")):
        return False
    column, equals, _ = name.partition("=")
    return not equals or unescape_path_name(column).lower() not in columns


def _not_a_file(root: str, path: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{path!r} in {root} cannot be a file of a table: it is a symbolic link, its name is not UTF-8, or it is not a "
        "regular file. Nothing was converted, because its rows would be missing. Replace it by a file with the rows, "
        "or remove it; names that begin with _ or . are ignored.",
        path=path,
    )


def _table_below(root: str, directory: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"another table lies below {root}, at {directory!r}: its log may have removed some of its files, whose rows "
        "would come back. Nothing was converted. Move that table away, or convert the directories separately.",
        path=directory,
    )


def _written_by_a_sink(root: str, directory: str) -> UnsupportedOperationError:
    where = join(root, directory) if directory else root
    return UnsupportedOperationError(
        f"a streaming query of Spark wrote the files in {where}: its log, {_LOG_OF_SINK}, says which of them count. "
        "Others, which a failed batch left, would bring rows twice. Nothing was converted. Read the directory by "
        f"Spark and write a new table; or delete the files that the log does not name, and then {_LOG_OF_SINK}.",
        path=where,
    )


def _values(root: str, directory: str, options: ConvertOptions) -> dict[str, str | None]:
    """The partition values of the files of a directory. Raises: UserError."""
    expected = options.partition_schema.fields
    parsed = [part.partition("=") for part in directory.split("/") if "=" in part]
    names = [unescape_path_name(name) for name, _, _ in parsed]
    if len(names) != len(expected):
        shown = ", ".join(names) or "none"
        wanted = ", ".join(field.name for field in expected) or "none"
        raise UserError(
            f"the directory {directory!r} of {root} names {len(names)} partition columns ({shown}), but "
            f"{len(expected)} are expected ({wanted}). Give convertToDelta the partition schema of the directories, "
            "such as 'day date, city string'.",
            code="DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
            path=directory,
        )
    values: dict[str, str | None] = {}
    for field, name, (_, _, text) in zip(expected, names, parsed, strict=True):
        if name.lower() != field.name.lower():
            raise UserError(
                f"the directory {directory!r} of {root} names the partition column {name}, but {field.name} is "
                "expected there. Give the columns of the partition schema in the order of the directories.",
                code="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                path=directory,
            )
        values[field.name] = _value(root, directory, field, text, options.time_zone)
    return values


def _value(root: str, directory: str, field: StructField, text: str, time_zone: str) -> str | None:
    if text == NULL_DIRECTORY:
        return None
    value = unescape_path_name(text)
    try:
        return format_partition_value(parse_partition_value(value, field.data_type, time_zone), field.data_type)
    except ProtocolError:
        raise UserError(
            f"the directory {directory!r} of {root} has the value {value!r} for the partition column {field.name}, "
            f"which is not a valid {display(field.data_type)}. Give the column another type, such as string.",
            code="DELTA_FAILED_CAST_PARTITION_VALUE",
            path=directory,
        ) from None


# --- the footers


def _footers(
    storage: Storage,
    root: str,
    files: Sequence[_Found],
    options: ConvertOptions,
    runner: TaskRunner | None,
    columns: _Columns,
) -> Generator[tuple[FootersRead, FileFooter], None, None]:
    """Read the files' footers, in the order of the files: a few in this process, many in tasks.

    The first file is read alone. Files with the same columns, usually most, get their statistics in the tasks that read
    their footers.
    """
    # for local files most of the work is in Python, which runs one thread at a time
    threads = 1 if scheme_of(root) == "file" else _THREADS

    def tasks(size: int) -> Iterator[ReadFooters]:
        paths = [join(root, file.path) for file in files]
        for begin in (0, *range(1, len(paths), size)):
            yield ReadFooters(
                root,
                tuple(paths[begin : begin + size] if begin else paths[:1]),
                columns.properties.string_prefix_length,
                columns.first,
                options.collect_statistics,
                threads,
            )

    def each(read: FootersRead) -> Iterator[tuple[FootersRead, FileFooter]]:
        return ((read, footer) for footer in read.files)

    if runner is None or len(files) < _FEWEST_FILES_FOR_TASKS:
        with step("reading of footers", root, total=len(files), log=logger) as advance:
            for task in tasks(_FILES_AT_ONCE):
                yield from each(read_footers_from(storage, task))
                advance(len(task.paths))
        return
    size = max(_FILES_AT_ONCE, min(_MOST_FILES_OF_A_TASK, -(-len(files) // (_TASKS_PER_WORKER * runner.parallelism))))
    waiting = tasks(size)
    yield from each(read_footers_from(storage, next(waiting)))
    rest = list(waiting)
    with step("reading of footers", root, total=len(rest), log=logger):
        answers = runner.run(read_footers, rest)
    for read in answers:
        yield from each(read)


def _add(file: _Found, footer: FileFooter, read: FootersRead, columns: _Columns, options: ConvertOptions) -> AddFile:
    indexed = columns.take(file.path, read.columns[footer.columns])
    stats = footer.stats
    if options.collect_statistics and footer.statistics is not None:
        stats = statistics_json(footer.num_rows, (leaf for leaf in footer.statistics if leaf[0] in indexed))
    return AddFile(
        path=encode_path(file.path),
        partition_values=file.values,
        size=file.size_bytes,
        modification_time=file.modification_time_ms,
        data_change=True,
        stats=stats,
    )


# --- the schema


class _Columns:
    """The columns of the files, in the order of their first occurrence, and which of them get statistics.

    ``take`` decides this file by file. New columns come last. So a column without statistics in one file has none in
    later files. Files with the columns of the first file have statistics of the same columns as that file.
    """

    def __init__(self, root: str, partitions: StructType, properties: TableProperties) -> None:
        self._root = root
        self.properties = properties
        self._partitions = partitions
        self._names = {field.name.lower() for field in partitions}
        self._merged = StructType(())
        # of the first and the previous file: the next file usually has the same columns
        self.first: tuple[Columns, Set[tuple[str, ...]]] | None = None
        self._last: tuple[Columns, Set[tuple[str, ...]]] | None = None

    @property
    def schema(self) -> StructType:
        """The schema of the table, with the partition columns at the end."""
        return StructType((*self._merged.fields, *(replace(field, nullable=True) for field in self._partitions)))

    def take(self, path: str, columns: Columns) -> Set[tuple[str, ...]]:
        """Add the columns of the next file. Returns: the columns with statistics. Raises: UserError."""
        if self._last is not None and self._last[0] == columns:
            return self._last[1]
        own = StructType(tuple(field for field in columns if field.name.lower() not in self._names))
        self._merged = _merged(self._merged, own, self._root, path)
        indexed = frozenset(statistics_columns(self._merged, self.properties, self._partitions.names))
        self._last = columns, indexed
        if self.first is None:
            self.first = self._last
        return indexed


def _merged(left: StructType, right: StructType, root: str, path: str) -> StructType:
    known = {field.name.lower(): index for index, field in enumerate(left.fields)}
    fields = list(left.fields)
    for field in right:
        index = known.get(field.name.lower())
        if index is None:
            fields.append(field)
            continue
        before = fields[index]
        if isinstance(before.data_type, StructType) and isinstance(field.data_type, StructType):
            fields[index] = replace(before, data_type=_merged(before.data_type, field.data_type, root, path))
        elif before.data_type != field.data_type or before.name != field.name:
            raise UserError(
                f"the file {path!r} of {root} has the column {field.name} as {display(field.data_type)}, but other "
                f"files have {before.name} as {display(before.data_type)}: a table cannot have both. Rewrite the "
                "deviating files, or convert them separately.",
                code="DELTA_FAILED_MERGE_SCHEMA_FILE",
                path=path,
                column=field.name,
            )
    return StructType(tuple(fields))
