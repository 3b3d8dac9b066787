"""The result of a write, sent from the process that commits to the user.

Spark calls ``commit`` in a process of the driver's machine and passes nothing back. So that process writes the answer
to a temporary file of its own user. ``delta_pyds.write`` chooses a random name for each write. No other process can
create the file first, and a file of another user is not read. A classic session reads the file. On Spark Connect the
session loads a schema, which another process of the driver's machine makes from the file, and Spark returns it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import stat
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType

from delta_pyds.errors import OptionError
from delta_pyds.html_table import ShownAsTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from delta_pyds.table.transaction.transaction import Committed

logger = logging.getLogger(__name__)

# of a write: store its result under this name; of a load: return the stored result in the schema
RESULT_OPTION = "writeResult"
_ID = re.compile(r"[0-9a-f]{32}")
_METADATA = "delta_pyds.writeResult"
_UNKNOWN = "the write is done, but its result is unknown; the table's history shows it"


@dataclass(frozen=True)
class WriteResult(ShownAsTable):
    """The result of one ``delta_pyds.write``.

    Attributes:
        version: The version of the commit; None if nothing was committed.
        files: The number of files that were written.
        rows: The number of rows that were written.
        bytes: The size of the written files.
        concurrent_versions: The commits of others since this write read the table; none conflicts with it.
        reason: The reason why nothing was committed, or why the version is unknown; empty otherwise.

    >>> result = delta_pyds.write(df, "/data/events", mode="append")
    >>> result.version, result.rows
    """

    version: int | None
    files: int = 0
    rows: int = 0
    bytes: int = 0
    concurrent_versions: tuple[int, ...] = ()
    reason: str = ""


def result_of(committed: Committed | None, reason: str) -> WriteResult:
    """``reason``: why nothing was committed, if nothing was."""
    if committed is None:
        return WriteResult(None, reason=reason or "there are no rows to write or to delete")
    metrics: Mapping[str, Any] = committed.info.operation_metrics or {}
    files, rows, size = (int(metrics.get(name, 0)) for name in ("numFiles", "numOutputRows", "numOutputBytes"))
    return WriteResult(committed.version, files, rows, size, committed.winners)


def new_result_id() -> str:
    return uuid.uuid4().hex


def leave_result(result_id: str, result: WriteResult) -> None:
    """Store the result, in the process that committed. Never fails: the commit has happened."""
    try:
        path = _file(_checked(result_id))
        partial = f"{path}.partial"
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(asdict(result), file)
        os.replace(partial, path)
    except (OSError, OptionError) as e:
        logger.warning("The result of the write (%s) cannot be sent to the session: %s", result, e)


def take_result(spark: SparkSession, format_name: str, result_id: str) -> WriteResult:
    """Read the result, in the session after the write.

    If it cannot be read, the version is None and ``reason`` says that the write is done.
    """
    text = _taken(result_id) or _asked(spark, format_name, result_id)
    if text is None:
        logger.warning("%s.", _UNKNOWN.capitalize())
        return WriteResult(None, reason=_UNKNOWN)
    fields = json.loads(text)
    return WriteResult(**{**fields, "concurrent_versions": tuple(fields["concurrent_versions"])})


def _asked(spark: SparkSession, format_name: str, result_id: str) -> str | None:
    try:
        field = spark.read.format(format_name).option(RESULT_OPTION, result_id).load().schema.fields[0]
    except PySparkException as e:  # the write has succeeded, and must not appear as failed
        logger.warning("The result of the write could not be read: %s", e)
        return None
    text = field.metadata.get(_METADATA)
    return None if text is None else str(text)


def schema_with_result(result_id: str) -> StructType:
    """The result as the metadata of a column, in a process of the driver's machine.

    Raises: OptionError for an invalid id.
    """
    text = _taken(_checked(result_id))
    return StructType([StructField("result", StringType(), metadata=None if text is None else {_METADATA: text})])


def _taken(result_id: str) -> str | None:
    try:
        # do not follow a link, and do not wait for a pipe: another user may have made it
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with open(os.open(_file(result_id), flags), encoding="utf-8") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            text = file.read()
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        os.unlink(_file(result_id))
    return text


def _is_ours(found: os.stat_result) -> bool:
    """Whether no other user can have written the file."""
    if not stat.S_ISREG(found.st_mode):
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o022)


def _file(result_id: str) -> str:
    return os.path.join(tempfile.gettempdir(), f"delta_pyds-write-result-{result_id}.json")


def _checked(result_id: str) -> str:
    if not _ID.fullmatch(result_id):
        raise OptionError(
            f"the option {RESULT_OPTION} is not for use by hand: delta_pyds.write returns the result.",
            option=RESULT_OPTION,
        )
    return result_id
