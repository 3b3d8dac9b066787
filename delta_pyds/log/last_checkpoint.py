"""The ``_last_checkpoint`` file. Protocol: "Last Checkpoint File", "JSON checksum"."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from delta_pyds.errors import FileNotFoundInStorageError, StorageError
from delta_pyds.protocol.foreign_json import Int64, convert_json, load_json
from delta_pyds.protocol.paths import LAST_CHECKPOINT, join, log_directory
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage

_logger = safe_logger(__name__)


class V2CheckpointHint(msgspec.Struct, frozen=True, rename="camel"):
    """A V2 checkpoint's top-level file, with a copy of its actions. ``path`` is a name in ``_delta_log``."""

    path: str | None = None
    size_in_bytes: Int64 | None = None
    modification_time: Int64 | None = None
    non_file_actions: list[dict[str, Any]] | None = None
    sidecar_files: list[dict[str, Any]] | None = None


class LastCheckpointHint(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``_last_checkpoint``. It is a hint: a newer checkpoint may exist.

    ``size``: the number of actions (-1: unknown).
    """

    version: Int64
    size: Int64 | None = None
    parts: Int64 | None = None
    size_in_bytes: Int64 | None = None
    num_of_add_files: Int64 | None = None
    checkpoint_schema: Any = None
    tags: dict[str, str | None] | None = None
    v2_checkpoint: V2CheckpointHint | None = None
    checksum: str | None = None


def read_last_checkpoint(storage: Storage, table_root: str) -> LastCheckpointHint | None:
    """Read the hint.

    Returns: None if it is missing, and (with a logged warning) if it is damaged, contradicts its own checksum, or
        cannot be read: the log can be listed without it.
    """
    path = join(log_directory(table_root), LAST_CHECKPOINT)
    try:
        data = storage.read(path)
    except FileNotFoundInStorageError:
        return None
    except StorageError as error:
        _logger.warning("%s is ignored, and the log is listed instead: %s", path, error)
        return None
    try:
        return parse_last_checkpoint(data)
    except ValueError as error:
        _logger.warning("%s is damaged and ignored, and the log is listed instead: %s", path, error)
        return None


def write_last_checkpoint(storage: Storage, table_root: str, hint: LastCheckpointHint) -> None:
    """Write a hint to an existing checkpoint; a hint to a newer checkpoint stays.

    The older hint of two concurrent writers may win. It still names an existing checkpoint, so readers only list more
    of the log.

    Raises: StorageError.
    Protocol: "Last Checkpoint File".
    """
    known = read_last_checkpoint(storage, table_root)
    if known is not None and known.version > hint.version:
        return
    storage.put(join(log_directory(table_root), LAST_CHECKPOINT), encode_last_checkpoint(hint))


def encode_last_checkpoint(hint: LastCheckpointHint) -> bytes:
    """The hint as JSON, without its null fields, with its checksum."""
    value = _without_nulls(msgspec.to_builtins(hint))
    value.setdefault("size", -1)  # the reference requires a number
    if "v2Checkpoint" in value:
        value["v2Checkpoint"] = _without_nulls(value["v2Checkpoint"])
    # old readers parse only the first bytes, and do not compare the checksum
    ordered = {name: value[name] for name in ("version", "size", "parts", *value) if name in value}
    ordered.pop("checksum", None)
    return msgspec.json.encode({**ordered, "checksum": checkpoint_checksum(ordered)})


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if item is not None}


# cached: every read of a log starts here, with the same few hints
@lru_cache(maxsize=64)
def parse_last_checkpoint(data: bytes) -> LastCheckpointHint:
    """Decode a hint and verify its checksum, if it has one.

    Raises: ValueError with the reason.
    """
    value = load_json(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_float=_FloatText)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    hint = convert_json(value, LastCheckpointHint)
    if hint.version < 0:
        raise ValueError(f"its version is {hint.version}")
    if hint.checksum is not None and hint.checksum != (computed := checkpoint_checksum(value)):
        raise ValueError(f"its checksum is {hint.checksum}, but that of its content is {computed}")
    return hint


def checkpoint_checksum(obj: dict[str, Any]) -> str:
    """The MD5 of the canonical form of a hint, without its key ``checksum``. Protocol: "JSON checksum"."""
    return hashlib.md5(canonical_form(obj).encode("ascii"), usedforsecurity=False).hexdigest()


def canonical_form(obj: dict[str, Any]) -> str:
    """All leaves as ``"path"+"to"+0=value``, in the byte order of these texts. Protocol: "JSON checksum".

    The eleventh element of an array (``+10=``) comes before the second (``+1=``): the reference sorts the whole texts.
    The protocol says that paths are sorted.
    """
    leaves: list[str] = []
    for name, value in obj.items():
        if name != "checksum":
            _add_leaves(value, _quoted(name), leaves)
    leaves.sort()
    return ",".join(leaves)


class _FloatText(float):
    """A number with its original text, which is its canonical form."""

    def __new__(cls, text: str) -> _FloatText:
        self = super().__new__(cls, text)
        self.text = text
        return self

    text: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice")
    return value


def _add_leaves(value: Any, path: str, leaves: list[str]) -> None:
    # performance matters: a schema has thousands of leaves
    if isinstance(value, dict):
        for name, item in value.items():
            _add_leaves(item, f"{path}+{_quoted(name)}", leaves)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _add_leaves(item, f"{path}+{position}", leaves)
    elif isinstance(value, str):
        leaves.append(f"{path}={_quoted(value)}")
    elif isinstance(value, _FloatText):
        leaves.append(f"{path}={value.text}")
    elif isinstance(value, bool):
        leaves.append(f"{path}={'true' if value else 'false'}")
    else:
        leaves.append(f"{path}={json.dumps(value)}")


# cached: the names and values of a schema repeat
@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return '"' + quote(text, safe="") + '"'
