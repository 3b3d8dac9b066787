"""Supported names of options, and misspelled ones, which are near to one and no options of other sources.

Invariant: an option of this package, the reference or Spark's own sources is never refused for its name.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta_pyds.errors import OptionError

WRITE_NAMES = (
    "table", "catalog",
    "path", "createMode", "replaceWhere", "partitionOverwriteMode", "mergeSchema", "overwriteSchema", "partitionBy",
    "clusterBy", "comment", "userMetadata", "txnAppId", "txnVersion", "dataChange", "maxRecordsPerFile",
    "targetFileSize", "compression", "timeZone", "isolationLevel", "maxCommitAttempts", "maxCommitBackoffMs",
    "taskParallelism", "readVersion", "readsTable", "readsWhere", "rowLevelConcurrency", "storageOptions",
    "allowedRoots", "writeResult", "tableProperties",
)  # fmt: skip
# of Spark's sources and queries, and of the reference: programs give them to every format
_OF_OTHERS = frozenset(
    name.lower()
    for name in (
        *WRITE_NAMES, "replaceOn", "replaceUsing", "optimizeWrite", "autoCompact", "withEventTimeOrder",
        "pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter", "ignoreCorruptFiles",
        "ignoreMissingFiles", "basePath", "datetimeRebaseMode", "int96RebaseMode", "header", "inferSchema", "multiLine",
        "mode", "sep", "delimiter", "quote", "escape", "encoding", "charset", "codec", "nullValue", "dateFormat",
        "timestampFormat", "locale", "columnNameOfCorruptRecord", "latestFirst", "maxFileAge", "fileNameOnly",
        "cleanSource", "sourceArchiveDir", "maxBytesPerTrigger", "maxFilesPerTrigger", "failOnDataLoss",
        "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "readChangeFeed", "versionAsOf",
        "timestampAsOf", "checkpointLocation", "queryName", "paths",
    )
)  # fmt: skip
# shorter names are near to others by chance
_LONG = 6


def refuse_near(key: str, names: Iterable[str]) -> None:
    """Refuse an unknown option with nearly one of these names.

    Raises: OptionError that names the near one.
    """
    if key in _OF_OTHERS or key.count(".") > 0:
        return
    for name in names:
        if _is_near(key, name.lower(), 1 if len(name) < _LONG else 2):
            raise OptionError(
                f"there is no option '{key}'. Did you mean {name}? Correct it, or leave it out.", option=key
            )


def _is_near(one: str, other: str, most: int) -> bool:
    """Whether at most ``most`` letters were removed, inserted or replaced."""
    if abs(len(one) - len(other)) > most:
        return False
    before = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != wanted)))
        before = row
    return before[-1] <= most
