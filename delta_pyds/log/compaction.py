"""Log compactions: one file that replaces several commits for readers. Protocol: "Log Compaction Files"."""

from __future__ import annotations

from collections import Counter
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
# These describe a commit, not the state of the table.
_LEFT_OUT = frozenset({"commitInfo", "cdc"})
# for commits that change nothing: an empty file would look like an unfinished write
_NOTHING = b'{"commitInfo":{}}\n'


def write_compaction(storage: Storage, table_root: str, first_version: int, last_version: int) -> str:
    """Write the reconciled actions of the versions from ``first_version`` to ``last_version``, both included.

    The newest action of each key is kept as it was written, with unknown fields. Tombstones of files and domains are
    kept too, because they refer to earlier versions. An existing compaction stays: its content is the same.

    Returns: the path of the file.
    Raises: ValueError for less than two versions; MissingLogFilesError for a version without a commit file;
        UnsupportedOperationError for an action that this release cannot reconcile.
    """
    if not 0 <= first_version < last_version:
        raise ValueError(f"A compaction needs at least two versions, not {first_version} to {last_version}.")
    path = join(log_directory(table_root), f"{first_version:020d}.{last_version:020d}.compacted.json")
    commits = by_version(list_log(storage, table_root, first_version, last_version).commits)
    kept: dict[tuple[object, ...], bytes] = {}
    for version in range(last_version, first_version - 1, -1):
        if version not in commits:
            raise MissingLogFilesError(
                f"Versions {first_version} to {last_version} of table {table_root!r} cannot be compacted: the commit "
                f"of version {version} is missing. Choose versions whose commits still exist.",
                table=table_root,
                version=last_version,
                missing_version=version,
            )
        source = commits[version].path
        data = storage.read(source)
        actions = decode_commit(data, source)
        # the later line wins, as in a replay
        for line, action in reversed(list(zip(_lines(data), actions, strict=True))):
            key = _key(line, action, source)
            if key is not None:
                kept.setdefault(key, line)
    # protocol and metadata first, because readers need them first; the rest in the order of the log
    in_order = list(reversed(kept.items()))
    lines = sorted(in_order, key=lambda item: item[0][0] not in ("protocol", "metaData"))
    try:
        storage.put_if_absent(path, b"".join(line + b"\n" for _, line in lines) or _NOTHING)
    except FileExistsInStorageError:
        return path
    return path


def duplicate_key(actions: Sequence[SingleAction]) -> str | None:
    """A key with more than one action in a compaction, described for messages; None if all keys are unique.

    Keys must be unique: otherwise it is unknown which action for a file, such as an add or a remove, is the later one.
    """
    files = [file_key(file) for action in actions if (file := action.add or action.remove) is not None]
    duplicate = _first_duplicate(files)
    if duplicate is not None:
        path, vector = duplicate
        return f"the file {path!r}" + (f" with the deletion vector {vector!r}" if vector else "")
    transactions = [action.txn.app_id for action in actions if action.txn is not None]
    domains = [action.domain_metadata.domain for action in actions if action.domain_metadata is not None]
    for what, keys in (("the application", transactions), ("the metadata domain", domains)):
        if (key := _first_duplicate(keys)) is not None:
            return f"{what} {key!r}"
    if sum(action.meta_data is not None for action in actions) > 1:
        return "the metadata"
    return "the protocol" if sum(action.protocol is not None for action in actions) > 1 else None


def _first_duplicate(keys: Sequence[_K]) -> _K | None:
    return next((key for key, count in Counter(keys).items() if count > 1), None)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in map(bytes.strip, data.removeprefix(b"\xef\xbb\xbf").split(b"\n")) if line]


def _key(line: bytes, action: SingleAction, path: str) -> tuple[object, ...] | None:
    """The key of a line's action; None for a line that a compaction leaves out."""
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
        f"{path!r} contains an action of an unknown kind ({', '.join(sorted(kinds - _KINDS) or kinds)}), which a "
        "compaction would lose. Nothing was written; the table can be read without a compaction.",
        path=path,
    )
