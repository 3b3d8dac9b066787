"""Whether the rows of a DataFrame may depend on a table. If they do, the table must not change between read and write.

Invariant: the answer is "no" only if each source of the rows is certainly another one. An unsupported source may be the
table: a local checkpoint, a name that a server resolves. Functions of Python may read anything, so they do not count.
Neither do rows that a program has collected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.native.scan import TABLE_OPTION
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.storage.local import local_path
from delta_pyds.storage.resolve import scheme_of
from delta_pyds.storage.table_path import absolute_table_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = safe_logger(__name__)

# the alias of rows that this package computed from the log of a table
FROM_LOG = "_deltapy_from_log"
# leaves of a plan of the JVM
_ROWS = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})
# the lineage of rows that a program handed to Spark
_ROW_RDDS = frozenset({"ParallelCollectionRDD", "EmptyRDD", "PythonRDD", "MapPartitionsRDD"})
_RDD = re.compile(r"\b(\w+RDD)\[\d+\]")
# leaves of a plan of Spark Connect
_LOCAL_RELATIONS = frozenset({"local_relation", "cached_local_relation", "chunked_cached_local_relation", "range"})
_RESOLVED_BY_SERVER = frozenset({"sql", "catalog", "extension", "cached_remote_relation", "unknown"})
# of a larger plan, the rows may depend on the table
_MOST_LEAVES = 200


def may_depend_on(frame: DataFrame, root: str) -> bool:
    """Whether rows of ``frame`` may come from the table. ``root``: the absolute path of the table."""
    try:
        leaves = _remote_leaves(frame, root) if is_remote(frame.sparkSession) else _leaves(frame, root)
        return not all(leaves)
    except Exception as error:  # a plan of another version of Spark, or a query with an error, which the write reports
        logger.info("The sources of the rows for %s are unknown: %s", root, error)
        return True


def _leaves(frame: DataFrame, root: str) -> Iterator[bool]:
    """For each leaf of the analyzed plan, whether it is certainly not the table."""
    plan = frame._jdf.queryExecution().analyzed()
    subqueries = plan.subqueriesAll()
    seen = 0
    for some in (plan, *(subqueries.apply(number) for number in range(subqueries.size()))):
        yield f"SubqueryAlias {FROM_LOG}" not in some.toString()
        leaves = some.collectLeaves()
        seen += leaves.size()
        if seen > _MOST_LEAVES:
            yield False
            return
        for number in range(leaves.size()):
            yield _is_apart(leaves.apply(number), root)


def _is_apart(leaf: Any, root: str) -> bool:
    kind = leaf.getClass().getSimpleName()
    if kind == "LogicalRDD":
        # a checkpoint knows the statistics of the plan that it replaces
        checkpointed = leaf.otherCopyArgs().apply(1).isDefined()
        return not checkpointed and set(_RDD.findall(leaf.rdd().toDebugString())) <= _ROW_RDDS
    if kind == "LogicalRelation" and leaf.relation().getClass().getSimpleName() == "HadoopFsRelation":
        relation = leaf.relation()
        table = relation.options().get(TABLE_OPTION.lower())
        if table.isDefined():
            return _are_apart(table.get(), root)
        paths = relation.location().rootPaths()
        return all(_are_apart(paths.apply(number).toString(), root) for number in range(paths.size()))
    if kind == "DataSourceV2Relation" and leaf.table().name() == DeltaDataSource.name():
        path = leaf.options().get("path")
        return path is not None and _is_path_apart(absolute_table_path(path), root)
    return kind in _ROWS


def _remote_leaves(frame: Any, root: str) -> Iterator[bool]:
    """``_leaves`` of a plan of Spark Connect, which the server has not analyzed."""
    for relation, is_leaf in _relations(frame._plan.to_proto(frame.sparkSession.client)):
        kind = relation.WhichOneof("rel_type")
        if kind == "subquery_alias":
            yield relation.subquery_alias.alias != FROM_LOG
        elif kind == "read" and relation.read.HasField("data_source"):
            yield _is_source_apart(relation.read.data_source, root)
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


def _is_source_apart(source: Any, root: str) -> bool:
    options = {name.lower(): text for name, text in source.options.items()}
    if TABLE_OPTION.lower() in options:
        return _are_apart(options[TABLE_OPTION.lower()], root)
    paths = [*source.paths, *([options["path"]] if "path" in options else [])]
    by_path = bool(paths) and not {"table", "catalog", "paths"} & options.keys()
    return by_path and all(_is_path_apart(path, root) for path in paths)


def _is_path_apart(path: str, root: str) -> bool:
    # a path in the options of delta_pyds may end in a version, as in /data/t@v3
    return "@" not in path.rpartition("/")[2] and _are_apart(path, root)


def _are_apart(path: str, root: str) -> bool:
    """Whether neither directory is in the other one. Schemes and buckets do not count: they have aliases."""
    one, other = _names_in(path), _names_in(root)
    shared = min(len(one), len(other))
    return one[:shared] != other[:shared]


def _names_in(path: str) -> list[str]:
    if scheme_of(path) == "file":
        plain = os.path.realpath(local_path(path))
    else:
        plain = path.partition("://")[2].partition("/")[2]
    return [part for part in plain.split("/") if part]
