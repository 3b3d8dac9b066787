"""Identifiers of tables: paths, names that hold a path, and Hadoop's settings of a store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from delta_pyds.errors import DeltaError, OptionError, TableNotFoundError, UnsupportedOperationError
from delta_pyds.log.segment import latest_version
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.resolve import resolve_storage, scheme_of

logger = safe_logger(__name__)

_PATH_NAME = re.compile(r"(?:delta|deltapy)\.`((?:[^`]|``)+)`", re.IGNORECASE)
_HADOOP_PREFIXES = ("fs.", "dfs.")
# settings of Hadoop's S3 connector to options of s3fs
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
    """``path_if_in_name``. Raises: UnsupportedOperationError for a name of a catalog."""
    path = path_if_in_name(name)
    if path is None:
        raise UnsupportedOperationError(
            f"the table is named {name!r:.200}, but only a path is taken here: '/data/events', or the name "
            "delta.`/data/events`.",
            name=str(name),
        )
    return path


def storage_options_of(path: str, hadoop_conf: Any, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of the store: the given ones, which win, and those of Hadoop's settings.

    ``hadoop_conf`` may have key, secret, token and endpoint of ``fs.s3a``, and an account's key of ``fs.azure``. For a
    local path no setting matters.

    Raises: OptionError for a setting that does not belong to a file system; UnsupportedOperationError for one that is
        not supported: the table might be read with other rights than the user meant.
    """
    given = dict(storage_options or {})
    if not isinstance(hadoop_conf or {}, Mapping):
        raise OptionError("hadoopConf must be a dict of settings, with texts as keys and values.", option="hadoopConf")
    settings = {str(key): str(value) for key, value in (hadoop_conf or {}).items()}
    for key in settings:
        if not key.startswith(_HADOOP_PREFIXES):
            raise OptionError(
                f"DeltaTable.forPath takes only settings of Hadoop's file systems, which begin with fs. or dfs.: "
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
                f"delta_pyds does not support the Hadoop setting {key!r}, because it opens files through fsspec. Give "
                "storage_options of the store's package (s3fs, gcsfs, adlfs) instead.",
                option=key,
            )
    return {**found, **given}


def is_table(path: str, storage_options: Mapping[str, Any]) -> bool:
    """Whether a Delta table is at the absolute path, or above it, as for the directory of a partition."""
    storage = resolve_storage(path, storage_options)
    for root in _upwards(path):
        try:
            latest_version(storage, root)
        except TableNotFoundError:
            continue
        except DeltaError:
            return True  # a damaged table counts
        return True
    return False


def partition_of_table(path: str, storage_options: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
    """The table that has a partition at the absolute path, and the partition's values in the path; else None."""
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
    """The path and the directories above it; none for a path within a log."""
    start = path.find("://")
    first = path.find("/", start + 3 if start >= 0 else 1)
    found: list[str] = []
    while len(path) > max(first, 1) or not found:
        if path.rsplit("/", 1)[-1] == "_delta_log":
            return []
        found.append(path)
        path = path.rsplit("/", 1)[0]
    return found
