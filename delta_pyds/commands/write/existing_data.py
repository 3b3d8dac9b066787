"""Checks of the path of a write: an existing table with other properties, or files that belong to no table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from delta_pyds.errors import FileNotFoundInStorageError, UserError
from delta_pyds.log.segment import is_local_file
from delta_pyds.protocol.paths import LOG_DIRECTORY
from delta_pyds.protocol.properties import Property
from delta_pyds.storage.base import FileStatus, Storage
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.property_rules import read_properties

# data of another format is among the first names; a million more need not be listed
_MOST_LISTED = 1_000
# Our own writes leave such files before their commit, or if it fails: another writer may be at work.
# Spark's Parquet files right in a directory have a dash before the c.
_OUR_FILE = re.compile(r"part-\d{5}-[0-9a-f-]{36}\.c\d{3,}\..*parquet")
# Spark writes this file beside data of other formats, and into directories of partitions
_DONE_BY_SPARK = "_SUCCESS"


def check_no_other_format(storage: Storage, table_root: str) -> None:
    """Refuse to create a table in a directory with data of another format, whose rows would not be in the table.

    Names that begin with a dot or an underscore (but ``_SUCCESS``) are not data: a stream's checkpoint may be there.
    Only a bounded part of the directory itself is listed.
    Raises: UserError (DELTA_MISSING_TRANSACTION_LOG) naming the file, also if the path itself is a file, or lies in
        the log of a table.
    """
    if is_local_file(storage, table_root):
        raise _unusable_path(table_root, "is a file, but a table is a directory")
    if LOG_DIRECTORY in table_root.split("/"):
        raise _unusable_path(table_root, f"lies in the {LOG_DIRECTORY} of a table, which is for that table's log alone")
    try:
        files = storage.list_from(table_root, "")
    except FileNotFoundInStorageError:
        return
    found = next(
        (file.name for file in islice(files, _MOST_LISTED) if file.regular and _is_of_another_format(file)), None
    )
    if found is None:
        return
    raise UserError(
        f"there is no Delta table at {table_root}, but data of another format: the file {found}. A table created there "
        "would not have its rows, and readers of that format would also read the table's files. Nothing was written: "
        "write to another path (spark.read.parquet of this one reads the existing rows), or move the files away.",
        code="DELTA_MISSING_TRANSACTION_LOG",
        table=table_root,
        file=found,
    )


def _unusable_path(table_root: str, reason: str) -> UserError:
    return UserError(
        f"no table can be created at {table_root}: this path {reason}. Nothing was written: give the path of a "
        "directory of its own.",
        code="DELTA_MISSING_TRANSACTION_LOG",
        table=table_root,
    )


def _is_of_another_format(file: FileStatus) -> bool:
    name = file.name
    if name.startswith(("_", ".")):
        return name == _DONE_BY_SPARK
    return name.endswith(".parquet") and not _OUR_FILE.fullmatch(name)


def check_properties(asked: Mapping[str, str], configuration: TableConfiguration) -> None:
    """Refuse other properties than the table has: only the write that creates a table sets them.

    Raises: UserError (DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY) naming the first that differs; OptionError for an
        invalid property.
    """
    if not asked:
        return
    request = read_properties(asked)
    have = configuration.configuration
    for key, value in request.configuration.items():
        if have.get(key) != value:
            raise _different(configuration, key, value, have.get(key) or "not set")
    for name in request.features:
        if not configuration.supports(name):
            raise _different(configuration, f"delta.feature.{name}", "supported", "not supported")
    protocol = configuration.protocol
    versions = (
        (Property.MIN_READER_VERSION, request.reader_version, protocol.min_reader_version),
        (Property.MIN_WRITER_VERSION, request.writer_version, protocol.min_writer_version),
    )
    for key, wanted, stands in versions:
        if wanted is not None and wanted > stands:
            raise _different(configuration, key, str(wanted), str(stands))


def check_comment(asked: str | None, configuration: TableConfiguration) -> None:
    """Refuse another comment than the table has: only the write that creates a table sets it.

    Raises: UserError (DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY) if the table's description differs.
    """
    stands = configuration.metadata.description
    if asked is not None and asked != (stands or ""):
        raise _different(configuration, "comment", repr(asked), repr(stands) if stands else "not set")


def _different(configuration: TableConfiguration, key: str, asked: str, stands: str) -> UserError:
    return UserError(
        f"the write sets {key}={asked}, but the table {configuration.table_root} already exists with the value "
        f"{stands}. Only the write that creates a table sets it. Nothing was written: leave the option out, "
        "or write to a new path.",
        code="DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
        table=configuration.table_root,
        property=key,
    )
