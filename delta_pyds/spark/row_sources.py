"""Whether the rows of a DataFrame may depend on a table. If they do, the table must not change between read and write.

Invariant: the answer is "no" only if each source of the rows is certainly another one. An unsupported source may be the
table: a local checkpoint, a name that a server resolves. Functions of Python may read anything, so they do not count.
Neither do rows that a program has collected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.log_rows import FROM_LOG
from delta_pyds.spark.native.scan import TABLE_OPTION
from delta_pyds.spark.plan_text import whole_text
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.storage.local import local_path
from delta_pyds.storage.resolve import authority_of, has_scheme, scheme_of
from delta_pyds.storage.table_path import absolute_table_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = safe_logger(__name__)

# the rows of a log in the text of a plan of the JVM: those with the alias, and those of ``table_functions``
_OF_LOG = re.compile(rf"SubqueryAlias {FROM_LOG}\b|\bdelta_(?:history|detail)\(")
# leaves of a plan of the JVM
_ROWS = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})
# the lineage of rows that a program handed to Spark
_ROW_RDDS = frozenset({"ParallelCollectionRDD", "EmptyRDD", "PythonRDD", "MapPartitionsRDD"})
_RDD = re.compile(r"\b(\w+RDD)\[\d+\]")
# leaves of a plan of Spark Connect
_LOCAL_RELATIONS = frozenset({"local_relation", "cached_local_relation", "chunked_cached_local_relation", "range"})
# sources that read the files of their paths, and no others
_BY_PATH = frozenset({"parquet", "orc", "csv", "json", "text", "binaryfile", "deltapy", "delta"})
_RESOLVED_BY_SERVER = frozenset({"sql", "catalog", "extension", "cached_remote_relation", "unknown"})
# object stores, in which a key is the name of one object
_STORES = frozenset({"s3", "gs", "abfs", "abfss", "az"})
# OneLake has a number for each name, and shortcuts
_HAS_ALIASES = re.compile(r"onelake|fabric", re.IGNORECASE)
# parts that Hadoop resolves, and HDFS's other names of its directories
_RELATIVE = frozenset({".", "..", ".reserved"})
# Spark takes such a path for the files that it matches
_PATTERN = re.compile(r"[*?\[\]{}\\]")
# of a larger plan, the rows may depend on the table
_MOST_LEAVES = 200


def may_depend_on(frame: DataFrame, root: str, *, sure_of_files: bool = True) -> bool:
    """Whether rows of ``frame`` may come from the table. ``root``: the absolute path of the table.

    ``sure_of_files``: the server of Spark Connect has the same files under this path.
    """

    def is_apart(path: str) -> bool:
        return _are_apart(path, root)

    def is_apart_on_server(path: str) -> bool:
        if scheme_of(path) == scheme_of(root) == "file":
            # the server may have links that this process does not see
            return sure_of_files and os.path.exists(local_path(path)) and os.path.exists(root) and is_apart(path)
        return is_apart(path)

    try:
        remote = is_remote(frame.sparkSession)
        leaves = _remote_leaves(frame, is_apart_on_server) if remote else _leaves(frame, is_apart)
        return not all(leaves)
    except Exception as error:  # a plan of another version of Spark, or a query with an error, which the write reports
        logger.info("The sources of the rows for %s are unknown: %s", root, error)
        return True


def _leaves(frame: DataFrame, is_apart: Callable[[str], bool]) -> Iterator[bool]:
    """For each leaf of the analyzed plan, whether it is certainly not the table."""
    plan = frame._jdf.queryExecution().analyzed()
    subqueries = plan.subqueriesAll()
    seen = 0
    for some in (plan, *(subqueries.apply(number) for number in range(subqueries.size()))):
        text = whole_text(some)
        yield text is not None and _OF_LOG.search(text) is None
        leaves = some.collectLeaves()
        seen += leaves.size()
        if seen > _MOST_LEAVES:
            yield False
            return
        for number in range(leaves.size()):
            yield _is_leaf_apart(leaves.apply(number), is_apart)


def _is_leaf_apart(leaf: Any, is_apart: Callable[[str], bool]) -> bool:
    kind = leaf.getClass().getSimpleName()
    if kind == "LogicalRDD":
        # a checkpoint knows the statistics of the plan that it replaces
        checkpointed = leaf.otherCopyArgs().apply(1).isDefined()
        return not checkpointed and set(_RDD.findall(leaf.rdd().toDebugString())) <= _ROW_RDDS
    if kind == "LogicalRelation" and leaf.relation().getClass().getSimpleName() == "HadoopFsRelation":
        relation = leaf.relation()
        table = relation.options().get(TABLE_OPTION.lower())
        if table.isDefined():
            return is_apart(table.get())
        paths = relation.location().rootPaths()
        # an index of another library may name no path
        return paths.size() > 0 and all(is_apart(paths.apply(number).toString()) for number in range(paths.size()))
    if kind == "DataSourceV2Relation" and leaf.table().name() == DeltaDataSource.name():
        path = leaf.options().get("path")
        return path is not None and _names_no_version(path) and is_apart(absolute_table_path(path))
    return kind in _ROWS


def _remote_leaves(frame: Any, is_apart: Callable[[str], bool]) -> Iterator[bool]:
    """``_leaves`` of a plan of Spark Connect, which the server has not analyzed."""
    for relation, is_leaf in _relations(frame._plan.to_proto(frame.sparkSession.client)):
        kind = relation.WhichOneof("rel_type")
        if kind == "subquery_alias":
            yield relation.subquery_alias.alias != FROM_LOG
        elif kind == "read" and relation.read.HasField("data_source"):
            yield _is_source_apart(relation.read.data_source, is_apart)
        elif is_leaf or kind in _RESOLVED_BY_SERVER:
            yield kind in _LOCAL_RELATIONS


def _relations(message: Any) -> Iterator[tuple[Any, bool]]:
    """The relations in a message, and whether each has no others in it."""
    found = [below for part in _messages_in(message) for below in _relations(part)]
    yield from found
    if message.DESCRIPTOR.name == "Relation":
        yield message, not found


def _messages_in(message: Any) -> Iterator[Any]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            yield from (part for part in value.values() if hasattr(part, "ListFields"))
        elif hasattr(value, "ListFields"):
            yield value
        else:
            yield from value


def _is_source_apart(source: Any, is_apart: Callable[[str], bool]) -> bool:
    options = {name.lower(): text for name, text in source.options.items()}
    if TABLE_OPTION.lower() in options:
        return is_apart(options[TABLE_OPTION.lower()])
    paths = [*source.paths, *([options["path"]] if "path" in options else [])]
    # another source may find its table by more than a path, or read this one's files
    by_path = bool(paths) and source.format.lower() in _BY_PATH and not {"table", "catalog", "paths"} & options.keys()
    return by_path and all(
        # a path without a scheme is the server's, and a pattern names many
        has_scheme(path) and not _PATTERN.search(path) and _names_no_version(path) and is_apart(path)
        for path in paths
    )


def _names_no_version(path: str) -> bool:
    # a path in the options of delta_pyds may end in a version, as in /data/t@v3
    return "@" not in path.rpartition("/")[2]


def _are_apart(path: str, root: str) -> bool:
    """Whether neither directory is in the other one, for certain. Buckets do not count: they have aliases."""
    scheme = scheme_of(path)
    if scheme != scheme_of(root):
        return False  # s3 may be a server of this disk, and viewfs a name of hdfs
    if scheme == "file":
        return _are_directories_apart(os.path.realpath(local_path(path)), os.path.realpath(local_path(root)))
    authorities = authority_of(path), authority_of(root)
    if scheme == "hdfs":
        if authorities[0] != authorities[1]:
            return False  # a router has other names for the directories of a cluster
    elif scheme not in _STORES or any(map(_HAS_ALIASES.search, authorities)):
        return False
    one, other = _parts_below_authority(path), _parts_below_authority(root)
    return not _RELATIVE.intersection([*one, *other]) and not _has_prefix(one, other)


def _are_directories_apart(one: str, other: str) -> bool:
    """``_are_apart`` of resolved paths. One directory may have several, as with bind mounts, or without case."""
    if _has_prefix(_names_in(one), _names_in(other)):
        return False
    (first, *above_one), (second, *above_other) = _identities(one), _identities(other)
    return (first is None or first not in (second, *above_other)) and (second is None or second not in above_one)


def _identities(path: str) -> Iterator[tuple[int, int] | None]:
    """Device and inode of a local path and of each directory above it; None if it does not exist. Raises: OSError."""
    while True:
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            yield None
        else:
            yield found.st_dev, found.st_ino
        if path == os.path.dirname(path):
            return
        path = os.path.dirname(path)


def _has_prefix(one: list[str], other: list[str]) -> bool:
    """Whether one of the paths begins with the other one."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _parts_below_authority(url: str) -> list[str]:
    return _names_in(url.partition("://")[2].partition("/")[2])


def _names_in(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
