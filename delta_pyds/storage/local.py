"""The local disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat as stat_module
import uuid
from collections.abc import Iterator
from typing import BinaryIO

from delta_pyds.errors import NothingWrittenError, StorageError
from delta_pyds.storage.base import FileStatus, directory_not_found, file_exists, file_not_found

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def local_path(path: str) -> str:
    """Turn ``file:/a``, ``file:///a`` and ``file://localhost/a`` into ``/a``; other paths are returned as they are.

    The path of a ``file:`` URI is literal, as Hadoop's ``Path`` has it: no percent-decoding.
    """
    if "\0" in path:
        raise StorageError(f"{path!r} holds a NUL character, which no file name can have.", path=path)
    if path[:6].lower() != "file:/":
        return path
    rest = path[5:]
    if rest.startswith("//") and not rest.startswith("///"):
        host, slash, below = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise StorageError(
                f"{path!r} names the host {host!r}, but a file: path must be on this machine. "
                "Write it as file:///path.",
                path=path,
            )
        rest = slash + below
    return "/" + rest.lstrip("/")


class LocalStorage:
    """Files on this machine, under plain absolute paths or ``file:`` URIs."""

    @property
    def scheme(self) -> str:
        return "file"

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        try:
            with os.scandir(local_path(directory)) as entries:
                # only the names that count are looked at further: a log may hold a million files
                names = sorted(entry.name for entry in entries if entry.name >= start_name)
        except (FileNotFoundError, NotADirectoryError):
            raise directory_not_found(directory) from None
        except OSError as error:
            raise _failed("listed", directory, error) from error
        return self._statuses(directory.rstrip("/"), names)

    def _statuses(self, directory: str, names: list[str]) -> Iterator[FileStatus]:
        base = local_path(directory + "/").rstrip("/")
        for name in names:
            try:
                found = os.stat(f"{base}/{name}")
            except FileNotFoundError:
                continue  # gone since the listing
            except OSError as error:
                raise _failed("examined", f"{directory}/{name}", error) from error
            if stat_module.S_ISREG(found.st_mode):
                yield _status(f"{directory}/{name}", found)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        try:
            with open(local_path(path), "rb", buffering=0) as file:
                if offset:
                    file.seek(offset)
                if length is None:
                    return file.readall()
                return _read_up_to(file.fileno(), length)
        except (FileNotFoundError, NotADirectoryError):
            raise file_not_found(path) from None
        except OSError as error:
            raise _failed("read", path, error) from error

    def parquet_source(self, path: str) -> str:
        return local_path(path)

    def exists(self, path: str) -> bool:
        return os.path.isfile(local_path(path))

    def status(self, path: str) -> FileStatus:
        try:
            found = os.stat(local_path(path))
        except (FileNotFoundError, NotADirectoryError):
            raise file_not_found(path) from None
        except OSError as error:
            raise _failed("examined", path, error) from error
        if not stat_module.S_ISREG(found.st_mode):
            raise file_not_found(path)
        return _status(path, found)

    def require_put_if_absent(self, directory: str) -> None:
        """Every disk keeps it, or says at the create that it cannot."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        target = local_path(path)
        directory = os.path.dirname(target)
        # hidden and without a version, so that no reader of the log takes it for a commit
        temporary = f"{directory}/.{uuid.uuid4().hex}.tmp"
        try:
            try:
                os.makedirs(directory, exist_ok=True)
                _write_new(temporary, data)
            except OSError as error:
                raise NothingWrittenError(_failure("created", path, error), path=path) from error
            # link fails if the target exists, and makes the whole file visible at once
            created = _link(temporary, target, path)
            if created:
                _sync_directory(directory)
        except OSError as error:
            raise _failed("created", path, error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not created:
            raise file_exists(path)

    def put(self, path: str, data: bytes) -> None:
        target = local_path(path)
        temporary = f"{os.path.dirname(target)}/.{uuid.uuid4().hex}.tmp"
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            try:
                _write_new(temporary, data)
                os.replace(temporary, target)
            finally:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(temporary)
        except OSError as error:
            raise _failed("written", path, error) from error

    def open_output(self, path: str) -> BinaryIO:
        target = local_path(path)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            return open(target, "xb")
        except OSError as error:
            raise _failed("created", path, error) from error

    def delete(self, path: str) -> None:
        try:
            os.unlink(local_path(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("deleted", path, error) from error


def _read_up_to(descriptor: int, length: int) -> bytes:
    parts = []
    while length > 0 and (part := os.read(descriptor, length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _write_new(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _link(source: str, target: str, path: str) -> bool:
    """True if the link was made, whatever the answer says.

    Over a network the answer may be lost; asked again, the server says that the target exists, or fails. The
    source is ours alone, so a second link of it is the target.
    """
    try:
        os.link(source, target)
    except OSError as error:
        if os.stat(source).st_nlink > 1:
            return True
        if isinstance(error, FileExistsError):
            return False
        if error.errno in _NO_LINKS:
            raise NothingWrittenError(
                f"{path!r} could not be created: its file system has no hard links ({error.strerror}), so two writers "
                "could overwrite each other. Keep the table on another disk, or in an object store.",
                path=path,
            ) from error
        raise
    return True


def _sync_directory(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(verb: str, path: str, error: OSError) -> StorageError:
    return StorageError(_failure(verb, path, error), path=path)


def _failure(verb: str, path: str, error: OSError) -> str:
    return f"{path!r} could not be {verb}: {error.strerror or error}."


def _status(path: str, found: os.stat_result) -> FileStatus:
    # no tool sets the time of the last status change, and a copied or renamed file gets a new one
    generation = f"{found.st_ino}-{found.st_ctime_ns}"
    return FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000, generation)
