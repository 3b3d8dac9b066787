"""Decoding of actions from commit files. Protocol: "Delta Log Entries", "Actions"."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from typing import Any

import msgspec

from delta_pyds.errors import CorruptLogError, FileNotFoundInStorageError, MissingLogFilesError
from delta_pyds.log.listing import LogFile
from delta_pyds.protocol.actions import CommitInfo, SingleAction
from delta_pyds.protocol.foreign_json import (
    InvalidJSONError,
    convert_json,
    decode_json,
    decode_json_lines,
    decode_json_with,
)
from delta_pyds.storage.base import Storage

_decoder = msgspec.json.Decoder(SingleAction)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A commit info is a line of a few kilobytes, usually the first.
_HEAD_BYTES = 64 * 1024
# The limit of bytes that are read ahead, besides the file being decoded.
_MAX_BYTES_AHEAD = 64 * 1024 * 1024
# Concurrent requests to a store.
_THREADS = 32


class _CommitInfoLine(msgspec.Struct, rename="camel"):
    """A line; only its commit info is decoded."""

    commit_info: msgspec.Raw = msgspec.Raw(b"null")


_info_decoder = msgspec.json.Decoder(_CommitInfoLine)


def read_commit(storage: Storage, file: LogFile) -> list[SingleAction]:
    """The actions of a commit or log compaction, in the order of the file; blank lines are skipped.

    An action that this release does not know is a ``SingleAction`` without a value.

    Raises: CorruptLogError with the line's number; MissingLogFilesError if the file is missing.
    """
    return decode_commit(_read(storage, file), file.path)


def read_commits(
    storage: Storage, files: Iterable[LogFile], *, threads: int = _THREADS
) -> Iterator[tuple[LogFile, list[SingleAction]]]:
    """Read and decode commits in the given order. ``threads``: as in ``fetch_commits``.

    Raises: as ``read_commit``, when the file's turn comes.
    """
    for file, data in fetch_commits(storage, files, threads=threads):
        yield file, decode_commit(data, file.path)


def fetch_commits(
    storage: Storage, files: Iterable[LogFile], *, threads: int = _THREADS
) -> Iterator[tuple[LogFile, bytes]]:
    """The bytes of commits, in the given order.

    From a store up to ``threads`` files are fetched ahead, in bounded memory.
    The local disk is faster without threads: decoding takes longer than
    reading, and holds the interpreter lock.

    Raises: MissingLogFilesError when a missing file's turn comes.
    """
    if storage.scheme == "file" or threads <= 1:
        for file in files:
            yield file, _read(storage, file)
        return
    yield from _fetch_ahead(storage, files, threads)


def read_commit_info(storage: Storage, file: LogFile) -> CommitInfo | None:
    """The commit's provenance; None if the writer left it out.

    It should be the first line. Some writers put it last, so the whole file is
    read if its first bytes do not contain it.

    Raises: as ``read_commit``.
    """
    head = _read(storage, file, _HEAD_BYTES) if file.size_bytes > _HEAD_BYTES else _read(storage, file)
    complete = head if len(head) >= file.size_bytes else head[: head.rfind(b"\n") + 1]
    found, info = _find_commit_info(complete, file.path)
    if not found and len(head) < file.size_bytes:
        found, info = _find_commit_info(_read(storage, file), file.path)
    return info


def decode_commit(data: bytes, path: str) -> list[SingleAction]:
    """Decode the lines of a commit; ``path`` is for the message.

    Raises: CorruptLogError.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    try:
        return decode_json_lines(_decoder, data)
    except InvalidJSONError:
        return [_decode_line(line, number, path) for number, line in _lines(data)]


def _decode_line(line: bytes, number: int, path: str) -> SingleAction:
    try:
        return decode_json_with(_decoder, line)
    except InvalidJSONError as error:
        action = _with_invalid_commit_info(line)
        if action is None:
            raise _corrupt(path, number, error) from error
        return action


def _with_invalid_commit_info(line: bytes) -> SingleAction | None:
    """The action of a line that is invalid only in its commit info, which is free-form; None for other errors."""
    try:
        value = decode_json(line)
        info = value.pop("commitInfo") if isinstance(value, dict) else None
        if info is None:
            return None
        rest = convert_json(value, SingleAction)
    except (InvalidJSONError, KeyError):
        return None
    return msgspec.structs.replace(rest, commit_info=_lenient_commit_info(info))


def _lenient_commit_info(info: Any) -> CommitInfo:
    """The commit info with its valid fields only."""
    if not isinstance(info, dict):
        return CommitInfo()
    kept = {}
    for field in msgspec.structs.fields(CommitInfo):
        if field.encode_name in info:
            try:
                kept[field.name] = convert_json(info[field.encode_name], field.type)
            except InvalidJSONError:
                continue
    return CommitInfo(**kept)


def _find_commit_info(data: bytes, path: str) -> tuple[bool, CommitInfo | None]:
    data = data.removeprefix(_BYTE_ORDER_MARK)
    for number, line in _lines(data):
        # most lines are files: decode only a line with the key
        if b"commitInfo" not in line:
            continue
        try:
            raw = decode_json_with(_info_decoder, line).commit_info
        except InvalidJSONError as error:
            raise _corrupt(path, number, error) from error
        if bytes(raw) == b"null":
            continue
        try:
            return True, decode_json(bytes(raw), CommitInfo)
        except InvalidJSONError:
            action = _decode_line(line, number, path)
            return True, action.commit_info
    return False, None


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    # lazily: a list of a long commit's lines takes several times its size
    for number, line in enumerate(BytesIO(data), start=1):
        stripped = line.strip()
        if stripped:
            yield number, stripped


def _read(storage: Storage, file: LogFile, length: int | None = None) -> bytes:
    try:
        return storage.read(file.path) if length is None else storage.read(file.path, 0, length)
    except FileNotFoundInStorageError as error:
        raise MissingLogFilesError(
            f"The log file {file.path!r} was listed but no longer exists. If the log has just been cleaned up, load "
            "the table again; else restore the file.",
            path=file.path,
            version=file.version,
        ) from error


def _fetch_ahead(storage: Storage, files: Iterable[LogFile], threads: int) -> Iterator[tuple[LogFile, bytes]]:
    waiting: deque[tuple[LogFile, Future[bytes]]] = deque()
    bytes_ahead = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="delta-commits")
    try:
        for file in files:
            waiting.append((file, pool.submit(_read, storage, file)))
            bytes_ahead += file.size_bytes
            while len(waiting) > threads or (len(waiting) > 1 and bytes_ahead > _MAX_BYTES_AHEAD):
                first, future = waiting.popleft()
                bytes_ahead -= first.size_bytes
                yield first, future.result()
        while waiting:
            first, future = waiting.popleft()
            yield first, future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _corrupt(path: str, number: int, error: Exception) -> CorruptLogError:
    return CorruptLogError(
        f"Line {number} of the log file {path!r} is not a valid action: {str(error).rstrip('.')}. "
        "Restore the file from a backup, or read an earlier version.",
        path=path,
        line=number,
    )
