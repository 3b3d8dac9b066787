"""The columns with statistics.

Protocol: "Per-file Statistics", "Clustered Table"; the properties are the reference's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from delta_pyds.errors import OptionError
from delta_pyds.protocol.properties import Property, TableProperties
from delta_pyds.protocol.quoting import quote_name
from delta_pyds.protocol.schema import DataType, StructType, has_minimum

Path = tuple[str, ...]

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^\s`.,]+))\s*")


def statistics_columns(
    schema: StructType,
    properties: TableProperties,
    partition_columns: Sequence[str],
    clustering_columns: Sequence[Path] = (),
) -> tuple[Path, ...]:
    """The leaf columns with statistics, as paths of logical names.

    ``delta.dataSkippingStatsColumns`` lists them if it is set: a struct means all its leaves, and unknown names are
    ignored. Otherwise they are the first ``delta.dataSkippingNumIndexedCols`` leaves in the table's order (-1: all).
    Leaves are counted through structs; an array or a map is one leaf. Partition columns are excluded.

    Args:
        clustering_columns: physical paths; always included, at the end if not listed otherwise.
    """
    partitions = {name.lower() for name in partition_columns}
    data = StructType(tuple(f for f in schema if f.name.lower() not in partitions))
    leaves = tuple(_leaves(data, ()))
    if properties.stats_columns is not None:
        named = [lower_path(path) for path in parse_columns(properties.stats_columns)]
        chosen = [leaf for leaf in leaves if any(lower_path(leaf)[: len(path)] == path for path in named)]
    else:
        limit = properties.num_indexed_columns
        chosen = list(leaves if limit < 0 else leaves[:limit])
    if clustering_columns:
        clustering = set(clustering_columns)
        chosen += [leaf for leaf in leaves if physical_path(schema, leaf) in clustering and leaf not in chosen]
    return tuple(chosen)


def check_statistics_columns(schema: StructType, stats_columns: str | None, partition_columns: Sequence[str]) -> None:
    """Refuse a value of ``delta.dataSkippingStatsColumns`` that is invalid for the schema.

    Raises:
        OptionError: DELTA_COLUMN_NOT_FOUND, DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS,
            DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN or
            DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE.
    """
    if stats_columns is None:
        return
    partitions = {name.lower() for name in partition_columns}
    seen: set[Path] = set()
    for path in parse_columns(stats_columns):
        shown = show_path(path)
        if len(path) == 1 and path[0].lower() in partitions:
            raise _refusal(
                f"the table property {Property.DATA_SKIPPING_STATS_COLUMNS} names '{shown}', which is a partition "
                "column: files are skipped by its values without statistics. Leave it out.",
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN",
                shown,
            )
        found = find_path(schema, path)
        if found is None:
            raise _refusal(
                f"the table property {Property.DATA_SKIPPING_STATS_COLUMNS} names '{shown}', which the table does "
                f"not have. Its columns are: {', '.join(schema.names)}.",
                "DELTA_COLUMN_NOT_FOUND",
                shown,
            )
        name, data_type = found
        if len(name) == 1 and not isinstance(data_type, StructType) and not has_minimum(data_type):
            raise _refusal(
                f"the table property {Property.DATA_SKIPPING_STATS_COLUMNS} names '{shown}', whose type has no "
                "minimum and maximum.",
                "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
                shown,
            )
        leaves = set(_leaves(data_type, name)) if isinstance(data_type, StructType) else {name}
        if leaves & seen:
            raise _refusal(
                f"the table property {Property.DATA_SKIPPING_STATS_COLUMNS} names '{shown}' twice: name each "
                "column once.",
                "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
                shown,
            )
        seen |= leaves


def parse_columns(text: str) -> tuple[Path, ...]:
    """A list such as ``a, b.c, `d.e`.f`` as paths; the empty string is an empty list.

    Raises: OptionError (DELTA_INVALID_TABLE_PROPERTY) for an invalid list.
    """
    paths: list[Path] = []
    parts: list[str] = []
    position, end = 0, len(text)
    while text.strip():
        match = _NAME.match(text, position)
        if match is None:
            break
        parts.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        position = match.end()
        if position == end or text[position] == ",":
            paths.append(tuple(parts))
            parts = []
        elif text[position] != ".":
            break
        if position == end:
            return tuple(paths)
        position += 1
    if not text.strip():
        return ()
    raise OptionError(
        f"'{text}' is not a list of columns: separate names by commas and fields of structs by dots, "
        "and put names with characters other than letters, digits and underscores into backticks.",
        code="DELTA_INVALID_TABLE_PROPERTY",
        property=Property.DATA_SKIPPING_STATS_COLUMNS,
        value=text,
    )


def find_path(schema: StructType, path: Path) -> tuple[Path, DataType] | None:
    """A column or field of a struct by its path, compared without case: its path in the table's spelling, its type."""
    found: list[str] = []
    data_type: DataType = schema
    for name in path:
        field = data_type.find(name) if isinstance(data_type, StructType) else None
        if field is None:
            return None
        found.append(field.name)
        data_type = field.data_type
    return tuple(found), data_type


def physical_path(schema: StructType, path: Path) -> Path:
    """The physical names along a path of logical names in the schema's own spelling."""
    names: list[str] = []
    data_type: DataType = schema
    for name in path:
        assert isinstance(data_type, StructType)
        field = next(f for f in data_type if f.name == name)
        names.append(field.physical_name)
        data_type = field.data_type
    return tuple(names)


def show_path(path: Path) -> str:
    """The path as SQL writes it."""
    return ".".join(p if re.fullmatch(r"\w+", p) else quote_name(p) for p in path)


def _leaves(schema: StructType, parent: Path) -> Iterator[Path]:
    for f in schema:
        if isinstance(f.data_type, StructType):
            yield from _leaves(f.data_type, (*parent, f.name))
        else:
            yield (*parent, f.name)


def lower_path(path: Path) -> Path:
    return tuple(p.lower() for p in path)


def _refusal(message: str, code: str, column: str) -> OptionError:
    return OptionError(message, code=code, property=Property.DATA_SKIPPING_STATS_COLUMNS, column=column)
