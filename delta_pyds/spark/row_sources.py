"""Whether the rows of a DataFrame depend on a table. If they do, the table must not change between read and write.

Invariant: the answer is False only if each source of the rows is certainly another one. An unsupported source may be
the table, and gives None: a local checkpoint, a name that a server resolves. Reads inside a Python function cannot be
seen, and do not count. Neither do rows that a program has collected, nor those of a stream.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import ExpressionError
from delta_pyds.expr.parser.lexer import tokenize
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.built_in_functions import calls_only_built_in
from delta_pyds.spark.jvm_plans import analyzed, items, subqueries, whole_text
from delta_pyds.spark.log_rows import FROM_LOG, log_alias
from delta_pyds.spark.native.scan import FIXED_OPTION, TABLE_OPTION
from delta_pyds.spark.native.server_index import options_of_view
from delta_pyds.spark.options.read import PINNED_OPTION
from delta_pyds.spark.source.datasource import DeltaDataSource
from delta_pyds.storage.local import local_path
from delta_pyds.storage.resolve import authority_of, has_scheme, scheme_of
from delta_pyds.storage.table_path import absolute_table_path

logger = safe_logger(__name__)

# words that only a query has in an expression; USING is of a script: (MAP id USING 'script' FROM t)
_SUBQUERY_WORDS = frozenset(("SELECT", "EXISTS", "USING"))
# words with which a subquery may begin, after its bracket
_BEGIN_OF_SUBQUERY = frozenset(("FROM", "TABLE", "VALUES", "WITH"))
# the rows of a log in the text of a plan of the JVM: those with the alias, and those of ``table_functions``
OF_LOG = re.compile(rf"SubqueryAlias ({FROM_LOG}\w*)|\bdelta_(?:history|detail)\(")
# leaves of a plan of the JVM that read no table; the definition of a CTE is another part of the plan
_NO_TABLE = frozenset({"LocalRelation", "OneRowRelation", "Range", "CTERelationRef"})
# the lineage of rows that a program handed to Spark
_ROW_RDDS = frozenset({"ParallelCollectionRDD", "EmptyRDD", "PythonRDD", "MapPartitionsRDD"})
_RDD = re.compile(r"\b(\w+RDD)\[\d+\]")
# a property of the thread in which a streaming query calls a function of ``foreachBatch``
_QUERY_ID = "sql.streaming.queryId"
# leaves of a plan of Spark Connect that read no table
_LOCAL_RELATIONS = frozenset({"local_relation", "cached_local_relation", "chunked_cached_local_relation", "range"})
# options by which a user chooses the version
_VERSION_OPTIONS = ("versionasof", "timestampasof")
# sources that read the files of their paths, and no others
_BY_PATH = frozenset({"parquet", "orc", "csv", "json", "text", "binaryfile", "deltapy", "delta"})
_RESOLVED_BY_SERVER = frozenset({"sql", "catalog", "extension", "cached_remote_relation", "unknown"})
# object stores, in which a key is the name of one object
_STORES = frozenset({"s3", "gs", "abfs", "abfss", "az"})
# a directory of OneLake has further names: an identifier, and shortcuts
_HAS_ALIASES = re.compile(r"onelake|fabric", re.IGNORECASE)
# parts of a path that Hadoop resolves, and HDFS's other names for its directories
_RELATIVE = frozenset({".", "..", ".reserved"})
# with these characters a path is a pattern for Spark
_PATTERN = re.compile(r"[*?\[\]{}\\]")
# each leaf costs some calls to Spark's driver, so further leaves are not read: they may be the table
MOST_LEAVES = 200


def depends_on_table(frame: DataFrame, root: str, *, sure_of_files: bool = True) -> bool | None:
    """Whether rows of ``frame`` come from the table; None if that is unknown. ``root``: the table's absolute path.

    ``sure_of_files``: the server of Spark Connect has the same files under this path.
    """

    def is_table(path: str) -> bool | None:
        return _overlap(path, root)

    def is_table_on_server(path: str) -> bool | None:
        here = is_table(path)
        if here is False and scheme_of(root) == "file":
            # the server may have links that this process does not see
            known = sure_of_files and os.path.exists(local_path(path)) and os.path.exists(root)
            return False if known else None
        return here

    try:
        if is_remote(frame.sparkSession):
            relation = _relation(frame)
            found = any_depends(_remote_leaves(relation, root, is_table_on_server))
            hidden = found is False and (
                _has_query_in_text(relation) or _may_call_functions_of_session(frame.sparkSession, relation)
            )
            return None if hidden else found
        plan = analyzed(frame)
        return any_depends(_leaves([plan, *subqueries(plan)], root, is_table))
    except Exception as error:  # a plan of another version of Spark, or a query with an error, which the write reports
        logger.info("The sources of the rows for %s are unknown: %s", root, error)
        return None


def subqueries_depend_on_table(frame: Any, root: str) -> bool | None:
    """``depends_on_table`` for the subqueries of a query alone. On Spark Connect it is True for any subquery."""
    try:
        if is_remote(frame.sparkSession):
            relation = _relation(frame)
            if _has_subquery(relation):
                return True
            return None if _may_call_functions_of_session(frame.sparkSession, relation) else False
        plans = subqueries(analyzed(frame))
        return any_depends(_leaves(plans, root, lambda path: _overlap(path, root))) if plans else False
    except Exception as error:  # a plan of another version of Spark
        logger.info("The subqueries of a command on %s are unknown: %s", root, error)
        return None


def is_another(leaf: Any, root: str) -> bool:
    """Whether a leaf certainly has no rows of the table."""
    return _has_rows_of_table(leaf, lambda path: _overlap(path, root)) is False


def _relation(frame: Any) -> Any:
    """The plan of a DataFrame of Spark Connect. It is not compressed, as a large one is in a request."""
    return frame._plan.plan(frame.sparkSession.client)


def any_depends(found: Iterable[bool | None]) -> bool | None:
    """Whether any source is the table: True if one is, False if each certainly is another one, else None.

    Without any source it is None.
    """
    seen = set()
    for one in found:
        if one:
            return True
        seen.add(one)
    return False if seen == {False} else None


def _leaves(plans: Iterable[Any], root: str, is_table: Callable[[str], bool | None]) -> Iterator[bool | None]:
    """For each leaf of the analyzed plans, and for rows from a log, whether it is the table."""
    seen = 0
    for plan in plans:
        text = whole_text(plan)
        if text is None:
            yield None
        else:
            yield from (_is_log_of(found[1], root) for found in OF_LOG.finditer(text))
        leaves = plan.collectLeaves()
        for number in range(leaves.size()):
            seen += 1
            if seen > MOST_LEAVES:
                yield None
                return
            leaf = leaves.apply(number)
            micro_batch = _micro_batch_of(leaf)
            if micro_batch is None:
                yield _has_rows_of_table(leaf, is_table)
            else:
                yield from _leaves([micro_batch, *subqueries(micro_batch)], root, is_table)


def _micro_batch_of(leaf: Any) -> Any | None:
    """The plan of a micro-batch, if the leaf has its rows: those that Spark gives to a function of ``foreachBatch``."""
    if leaf.getClass().getSimpleName() != "LogicalRDD":
        return None
    session = leaf.otherCopyArgs().apply(0)
    query = session.sparkContext().getLocalProperty(_QUERY_ID)
    if query is None:
        return None
    for execution in session.sharedState().activeStreamingQueries().values():
        if execution.id().toString() == query:
            last = execution.lastExecution()
            return last.analyzed() if last.toRdd().id() == leaf.rdd().id() else None
    return None


def _has_rows_of_table(leaf: Any, is_table: Callable[[str], bool | None]) -> bool | None:
    """Whether a leaf of a plan of the JVM has rows of the table; None if that is unknown. ``is_table``: of a path."""
    kind = leaf.getClass().getSimpleName()
    if leaf.isStreaming():
        return False  # its offsets say which rows it has, and no commit changes these
    if kind == "DataSourceV2ScanRelation":
        # as an optimized plan has it
        leaf, kind = leaf.relation(), "DataSourceV2Relation"
    if kind == "LogicalRDD":
        # a checkpoint knows the statistics of the plan that it replaces
        checkpointed = leaf.otherCopyArgs().apply(1).isDefined()
        of_rows = not checkpointed and set(_RDD.findall(leaf.rdd().toDebugString())) <= _ROW_RDDS
        return False if of_rows else None
    if kind == "LogicalRelation" and leaf.relation().getClass().getSimpleName() == "HadoopFsRelation":
        relation = leaf.relation()
        table = relation.options().get(TABLE_OPTION.lower())
        if table.isDefined():
            return False if relation.options().contains(FIXED_OPTION.lower()) else is_table(table.get())
        # an index of another library may name no path
        return any_depends(is_table(one.toString()) for one in items(relation.location().rootPaths()))
    if kind == "DataSourceV2Relation" and leaf.table().name() == DeltaDataSource.name():
        options = leaf.options()
        if any(map(options.containsKey, _VERSION_OPTIONS)) and not options.containsKey(PINNED_OPTION):
            return False
        path = options.get("path")
        return (
            None if path is None else any_depends(is_table(absolute_table_path(one)) for one in _without_version(path))
        )
    return False if kind in _NO_TABLE else None


def _is_log_of(alias: str | None, root: str) -> bool | None:
    """Whether rows from a log belong to this table; None for another alias, which may mean the same table."""
    return True if alias == log_alias(root) else None


def _remote_leaves(plan: Any, root: str, is_table: Callable[[str], bool | None]) -> Iterator[bool | None]:
    """``_leaves`` of a plan of Spark Connect, which the server has not analyzed."""
    for relation, is_leaf in _relations(plan):
        kind = relation.WhichOneof("rel_type")
        if kind == "subquery_alias":
            if relation.subquery_alias.alias.startswith(FROM_LOG):
                yield _is_log_of(relation.subquery_alias.alias, root)
        elif kind == "read" and relation.read.HasField("data_source"):
            yield _is_source_table(relation.read.data_source, is_table)
        elif kind == "read" and relation.read.HasField("named_table"):
            options = options_of_view(relation.read.named_table.unparsed_identifier)
            yield None if options is None else _is_native_table(options, is_table)
        elif is_leaf or kind in _RESOLVED_BY_SERVER:
            yield False if kind in _LOCAL_RELATIONS else None


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


def text_has_subquery(text: str) -> bool:
    """Whether the text of an expression may contain a query."""
    try:
        tokens = tokenize(text)
    except ExpressionError:
        return True
    return any(one.is_word(*_SUBQUERY_WORDS) for one in tokens) or any(
        bracket.is_symbol("(") and one.is_word(*_BEGIN_OF_SUBQUERY) for bracket, one in pairwise(tokens)
    )


def _has_subquery(message: Any) -> bool:
    if message.DESCRIPTOR.name == "SubqueryExpression" or _is_text_with_subquery(message):
        return True
    return any(map(_has_subquery, _messages_in(message)))


def _has_query_in_text(message: Any) -> bool:
    """Whether the text of an expression has a query, whose relations only the server knows."""
    return _is_text_with_subquery(message) or any(map(_has_query_in_text, _messages_in(message)))


def _may_call_functions_of_session(spark: SparkSession, plan: Any) -> bool:
    """Whether a plan of Spark Connect may call a SQL function of a session or a catalog. It may read any table."""
    return not calls_only_built_in(spark, *_calls(plan))


def _calls(message: Any) -> tuple[set[str], set[str]]:
    """The texts of expressions in a message, and the names of functions that it calls outside of texts."""
    texts, names = set(), set()
    waiting = [message]
    while waiting:
        one = waiting.pop()
        kind = one.DESCRIPTOR.name
        if kind == "ExpressionString":
            texts.add(one.expression)
        elif kind == "CallFunction" or (kind == "UnresolvedFunction" and not one.is_internal):
            names.add(one.function_name.lower())
        waiting += _messages_in(one)
    return texts, names


def _is_text_with_subquery(message: Any) -> bool:
    return message.DESCRIPTOR.name == "ExpressionString" and text_has_subquery(message.expression)


def _is_source_table(source: Any, is_table: Callable[[str], bool | None]) -> bool | None:
    if TABLE_OPTION in source.options:
        return _is_native_table(source.options, is_table)
    options = {name.lower(): text for name, text in source.options.items()}
    ours = source.format.lower() == DeltaDataSource.name()
    if ours and any(name in options for name in _VERSION_OPTIONS) and PINNED_OPTION.lower() not in options:
        return False
    paths = [*source.paths, *([options["path"]] if "path" in options else [])]
    found = any_depends(_is_path_of_table(path, is_table) for path in paths)
    # another source may find its rows by more than a path, or read the files of this table
    by_path = bool(paths) and source.format.lower() in _BY_PATH and not {"table", "catalog", "paths"} & options.keys()
    return found if found or by_path else None


def _is_native_table(options: Mapping[str, str], is_table: Callable[[str], bool | None]) -> bool | None:
    """``options``: those of a scan by Spark's own reader, as ``native.scan`` gives them."""
    return False if FIXED_OPTION in options else is_table(options[TABLE_OPTION])


def _is_path_of_table(path: str, is_table: Callable[[str], bool | None]) -> bool | None:
    found = any_depends(
        is_table(one if has_scheme(one) else absolute_table_path(one)) for one in _without_version(path)
    )
    # a path without a scheme is the server's, and a pattern names many
    return found if found or (has_scheme(path) and not _PATTERN.search(path)) else None


def _without_version(path: str) -> list[str]:
    """The paths that a path in an option of delta_pyds may mean: it may end in a version, as in /data/t@v3."""
    folder, slash, name = path.rpartition("/")
    return [path, f"{folder}{slash}{name.rpartition('@')[0]}"] if "@" in name else [path]


def _overlap(path: str, root: str) -> bool | None:
    """Whether one directory is the other one or lies in it; None if that is unknown.

    One bucket may have several names.
    """
    scheme = scheme_of(path)
    if scheme != scheme_of(root):
        return None  # a server of s3 may store on this disk, and viewfs is another name of hdfs
    if scheme == "file":
        return not _are_directories_apart(os.path.realpath(local_path(path)), os.path.realpath(local_path(root)))
    authorities = authority_of(path), authority_of(root)
    same = authorities[0] == authorities[1]
    one, other = _parts_below_authority(path), _parts_below_authority(root)
    if _RELATIVE.intersection([*one, *other]):
        return None
    if _has_prefix(one, other):
        return True if same else None
    # a router has other names for the directories of an HDFS cluster
    plain = same if scheme == "hdfs" else scheme in _STORES and not any(map(_HAS_ALIASES.search, authorities))
    return False if plain else None


def _are_directories_apart(one: str, other: str) -> bool:
    """Whether neither of two directories is the other one or lies in it. ``one``, ``other``: resolved paths.

    A directory may have several paths: by bind mounts, or on a file system that ignores case.
    """
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
