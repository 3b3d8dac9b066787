"""Where a table is: a path, a name that holds a path, and what Hadoop's settings say of its store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from delta_pyds.errors import DeltaError, OptionError, TableNotFoundError, UnsupportedOperationError
from delta_pyds.log.segment import latest_version
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.resolve import resolve_storage, scheme_of

if TYPE_CHECKING:
    pass

logger = safe_logger(__name__)

_PATH_NAME = re.compile(r"(?:delta|deltapy)\.`((?:[^`]|``)+)`", re.IGNORECASE)
_HADOOP_PREFIXES = ("fs.", "dfs.")
# of the S3 connector of Hadoop, in the words of s3fs
_S3_KEYS = {
    "fs.s3a.access.key": "key",
    "fs.s3a.secret.key": "secret",
    "fs.s3a.session.token": "token",
    "fs.s3a.endpoint": "endpoint_url",
}
_AZURE_KEY = re.compile(r"fs\.azure\.account\.key\.([^.]+)\..+")


def path_if_in_name(name: Any) -> str | None:
    """The path in ``delta.`/data/events```, also with ``deltapy``; None for a name of a catalog."""
    match = _PATH_NAME.fullmatch(name.strip()) if isinstance(name, str) else None
    return None if match is None else match[1].replace("``", "`")


def path_in_name(name: str) -> str:
    """The same. Raises: UnsupportedOperationError for a name of a catalog."""
    path = path_if_in_name(name)
    if path is None:
        raise UnsupportedOperationError(
            f"the table is named {name!r:.200}, and here a path is taken alone: '/data/events', or the name "
            "delta.`/data/events`.",
            name=str(name),
        )
    return path


def storage_options_of(path: str, hadoop_conf: Any, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of the store: those given, which win, and what Hadoop's settings say in its words.

    Taken of ``hadoop_conf``: key, secret, token and endpoint of ``fs.s3a``, and an account's key of ``fs.azure``. For a
    path of the local disk no setting matters.

    Raises: OptionError for a setting that is none of a file system; UnsupportedOperationError for one that is not
        taken: the table might be read with other rights than the user meant.
    """
    given = dict(storage_options or {})
    if not isinstance(hadoop_conf or {}, Mapping):
        raise OptionError("hadoopConf must be a dict of settings, with texts as keys and values.", option="hadoopConf")
    settings = {str(key): str(value) for key, value in (hadoop_conf or {}).items()}
    for key in settings:
        if not key.startswith(_HADOOP_PREFIXES):
            raise OptionError(
                f"DeltaTable.forPath takes settings of Hadoop's file systems only, which begin with fs. or dfs., and "
                f"{key!r} does not.",
                code="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
                option=key,
            )
    if scheme_of(path) == "file":
        if settings:
            logger.info("hadoopConf is not needed for the local path %s.", path)
        return given
    found: dict[str, Any] = {}
    for key, value in settings.items():
        azure = _AZURE_KEY.fullmatch(key)
        if key in _S3_KEYS:
            found[_S3_KEYS[key]] = value
        elif azure is not None:
            found.update(account_name=azure[1], account_key=value)
        else:
            raise UnsupportedOperationError(
                f"the Hadoop setting {key!r} is not known to delta_pyds, which opens files through fsspec. Say the "
                "same with storage_options, in the words of the store's package (s3fs, gcsfs, adlfs).",
                option=key,
            )
    return {**found, **given}


def is_table(path: str, storage_options: Mapping[str, Any]) -> bool:
    """Whether a Delta table is at the absolute path, or above it: a directory of a table's partition counts."""
    storage = resolve_storage(path, storage_options)
    for root in _upwards(path):
        try:
            latest_version(storage, root)
        except TableNotFoundError:
            continue
        except DeltaError:
            return True  # a damaged table is one
        return True
    return False


def partition_of_table(path: str, storage_options: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    """The table whose partition has the directory at the absolute path, and the values in the path; else None."""
    storage = resolve_storage(path, storage_options)
    values: dict[str, str] = {}
    for root in _upwards(path):
        try:
            latest_version(storage, root)
        except TableNotFoundError:
            name, equals, value = root.rpartition("/")[2].partition("=")
            if not equals:
                return None
            values[unquote(name)] = unquote(value)
        else:
            return (root, values) if values else None
    return None


def _upwards(path: str) -> list[str]:
    """The path and the directories above it; a log itself is in no table."""
    start = path.find("://")
    first = path.find("/", start + 3 if start >= 0 else 1)
    found: list[str] = []
    while len(path) > max(first, 1) or not found:
        if path.rsplit("/", 1)[-1] == "_delta_log":
            return []
        found.append(path)
        path = path.rsplit("/", 1)[0]
    return found
