"""Log compaction: one file in place of several commits. Protocol: "Log Compaction Files"."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import msgspec

from delta_pyds.errors import FileExistsInStorageError, MissingLogFilesError, UnsupportedOperationError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.listing import by_version, list_log
from delta_pyds.protocol.actions import SingleAction, file_key
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.paths import join, log_directory
from delta_pyds.storage.base import Storage

_K = TypeVar("_K", bound=Hashable)

_KINDS = frozenset(field.encode_name for field in msgspec.structs.fields(SingleAction))
# They say what a commit did, not what the table is.
_LEFT_OUT = frozenset({"commitInfo", "cdc"})
# in place of commits that change nothing: an empty file would be an unfinished write
_NOTHING = b'{"commitInfo":{}}\n'


def write_compaction(storage: Storage, table_root: str, first_version: int, last_version: int) -> str:
    """Write the reconciled actions of the versions from first to last, both included, and return the file's path.

    The newest action of each key is kept as its writer wrote it, unknown fields included; so are tombstones of files
    and of domains, since they speak of earlier versions. A compaction that exists is left as it is: it says the same.

    Raises: ValueError for less than two versions; MissingLogFilesError for one
        without a commit file; UnsupportedOperationError where a commit holds an
        action that only a later protocol knows how to reconcile.
    """
    if not 0 <= first_version < last_version:
        raise ValueError(f"A compaction is of two versions or more, not of {first_version} to {last_version}.")
    path = join(log_directory(table_root), f"{first_version:020d}.{last_version:020d}.compacted.json")
    commits = by_version(list_log(storage, table_root, first_version, last_version).commits)
    kept: dict[tuple[object, ...], bytes] = {}
    for version in range(last_version, first_version - 1, -1):
        if version not in commits:
            raise MissingLogFilesError(
                f"Versions {first_version} to {last_version} of table {table_root!r} cannot be compacted: the commit "
                f"of version {version} is missing. Compact versions that the log still has.",
                table=table_root,
                version=last_version,
                missing_version=version,
            )
        source = commits[version].path
        data = storage.read(source)
        actions = decode_commit(data, source)
        # the later line wins, as it does in a replay
        for line, action in reversed(list(zip(_lines(data), actions, strict=True))):
            key = _key(line, action, source)
            if key is not None:
                kept.setdefault(key, line)
    # protocol and metadata, which readers want first, in front; the rest in the order of the log
    in_order = list(reversed(kept.items()))
    lines = sorted(in_order, key=lambda item: item[0][0] not in ("protocol", "metaData"))
    try:
        storage.put_if_absent(path, b"".join(line + b"\n" for _, line in lines) or _NOTHING)
    except FileExistsInStorageError:
        return path
    return path


def doubled_key(actions: Sequence[SingleAction]) -> str | None:
    """Of what a compaction holds more than one action, for messages; None where it is reconciled, as it must be.

    Two actions of one key, such as an add and a remove of one file, do not tell which of them came later.
    """
    files = [file_key(file) for action in actions if (file := action.add or action.remove) is not None]
    doubled = _first_doubled(files)
    if doubled is not None:
        path, vector = doubled
        return f"the file {path!r}" + (f" with the deletion vector {vector!r}" if vector else "")
    transactions = [action.txn.app_id for action in actions if action.txn is not None]
    domains = [action.domain_metadata.domain for action in actions if action.domain_metadata is not None]
    for what, keys in (("the application", transactions), ("the metadata domain", domains)):
        if (key := _first_doubled(keys)) is not None:
            return f"{what} {key!r}"
    if sum(action.meta_data is not None for action in actions) > 1:
        return "the metadata"
    return "the protocol" if sum(action.protocol is not None for action in actions) > 1 else None


def _first_doubled(keys: Sequence[_K]) -> _K | None:
    if len(set(keys)) == len(keys):
        return None
    seen: set[_K] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return None


def _lines(data: bytes) -> list[bytes]:
    return [line for line in map(bytes.strip, data.removeprefix(b"\xef\xbb\xbf").split(b"\n")) if line]


def _key(line: bytes, action: SingleAction, path: str) -> tuple[object, ...] | None:
    """The key of the line's action; None for a line that a compaction leaves out."""
    file = action.add or action.remove
    if file is not None:
        return ("file", *file_key(file))
    if action.txn is not None:
        return ("txn", action.txn.app_id)
    if action.domain_metadata is not None:
        return ("domainMetadata", action.domain_metadata.domain)
    if action.meta_data is not None:
        return ("metaData",)
    if action.protocol is not None:
        return ("protocol",)
    kinds = decode_json(line, dict[str, msgspec.Raw]).keys()
    if kinds and kinds <= _LEFT_OUT:
        return None
    raise UnsupportedOperationError(
        f"{path!r} holds an action of a kind that is not known here ({', '.join(sorted(kinds - _KINDS) or kinds)}), "
        "so it cannot be compacted without losing it. The table can be read without a compaction.",
        path=path,
    )
