"""The ``_last_checkpoint`` file. Protocol: "Last Checkpoint File", "JSON checksum"."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import msgspec

from delta_pyds.errors import FileNotFoundInStorageError, StorageError
from delta_pyds.protocol.foreign_json import convert_json, load_json
from delta_pyds.protocol.integers import Int64
from delta_pyds.protocol.paths import LAST_CHECKPOINT, join, log_directory
from delta_pyds.redaction import safe_logger
from delta_pyds.storage.base import Storage

_logger = safe_logger(__name__)


class V2CheckpointHint(msgspec.Struct, frozen=True, rename="camel"):
    """A V2 checkpoint's top-level file, and what of it the hint repeats. ``path`` is a name in ``_delta_log``."""

    path: str | None = None
    size_in_bytes: Int64 | None = None
    modification_time: Int64 | None = None
    non_file_actions: list[dict[str, Any]] | None = None
    sidecar_files: list[dict[str, Any]] | None = None


class LastCheckpointHint(msgspec.Struct, frozen=True, rename="camel"):
    """What ``_last_checkpoint`` says: a hint, which a newer checkpoint may have overtaken.

    ``size`` counts actions (-1: unknown).
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
    """Read the hint, and None where there is none that can be trusted.

    A hint that is damaged, or contradicts its own checksum, or cannot be read
    is no error: the log can be listed without it. It is logged as a warning.
    """
    path = join(log_directory(table_root), LAST_CHECKPOINT)
    try:
        data = storage.read(path)
    except FileNotFoundInStorageError:
        return None
    except StorageError as error:
        _logger.warning("%s is not used, the log is listed instead: %s", path, error)
        return None
    try:
        return parse_last_checkpoint(data)
    except ValueError as error:
        _logger.warning("%s is damaged and not used, the log is listed instead: %s", path, error)
        return None


def write_last_checkpoint(storage: Storage, table_root: str, hint: LastCheckpointHint) -> None:
    """Point ``_last_checkpoint`` at a checkpoint that exists; one that points at a newer checkpoint stays.

    Two writers at once may still leave the older hint behind, which is no
    more than a longer listing for readers: it names a checkpoint that exists.

    Raises: StorageError. Protocol: "Last Checkpoint File".
    """
    known = read_last_checkpoint(storage, table_root)
    if known is not None and known.version > hint.version:
        return
    storage.put(join(log_directory(table_root), LAST_CHECKPOINT), encode_last_checkpoint(hint))


def encode_last_checkpoint(hint: LastCheckpointHint) -> bytes:
    """The hint as JSON, without its null fields, with its checksum."""
    value = _without_nulls(msgspec.to_builtins(hint))
    value.setdefault("size", -1)  # the reference demands a number
    if "v2Checkpoint" in value:
        value["v2Checkpoint"] = _without_nulls(value["v2Checkpoint"])
    # old readers, who check nothing, must get these from the first bytes
    ordered = {name: value[name] for name in ("version", "size", "parts", *value) if name in value}
    ordered.pop("checksum", None)
    return msgspec.json.encode({**ordered, "checksum": checkpoint_checksum(ordered)})


def _without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if item is not None}


# every look at a log begins here, and the same few hints are met again and again
@lru_cache(maxsize=64)
def parse_last_checkpoint(data: bytes) -> LastCheckpointHint:
    """Decode a hint and verify its checksum where it has one.

    Raises: ValueError saying what is wrong with it.
    """
    value = load_json(data.decode("utf-8-sig"), object_pairs_hook=_object, parse_float=_FloatText)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    hint = convert_json(value, LastCheckpointHint)
    if hint.version < 0:
        raise ValueError(f"its version is {hint.version}")
    if hint.checksum is not None and hint.checksum != (computed := checkpoint_checksum(value)):
        raise ValueError(f"its checksum says {hint.checksum} where its content gives {computed}")
    return hint


def checkpoint_checksum(obj: dict[str, Any]) -> str:
    """The MD5 of the canonical form of a hint; its own ``checksum`` key does not count. Protocol: "JSON checksum"."""
    return hashlib.md5(canonical_form(obj).encode("ascii"), usedforsecurity=False).hexdigest()


def canonical_form(obj: dict[str, Any]) -> str:
    """Every leaf as ``"path"+"to"+0=value``, in the byte order of these texts.

    So the eleventh element of an array (``+10=``) comes before the second (``+1=``): the reference sorts the whole
    texts, where the protocol speaks of the paths.
    """
    leaves: list[str] = []
    for name, value in obj.items():
        if name != "checksum":
            _add_leaves(value, _quoted(name), leaves)
    leaves.sort()
    return ",".join(leaves)


class _FloatText(float):
    """A number that remembers how it was written: a number is its own canonical form."""

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
    # a schema has thousands
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


# the names and values of a schema repeat
@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return '"' + quote(text, safe="") + '"'
