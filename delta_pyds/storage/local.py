"""The local disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat as stat_module
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, Literal, cast

from delta_pyds.errors import NothingWrittenError, StorageError
from delta_pyds.storage.base import (
    TAIL_BYTES,
    DirectoryEntry,
    FileStatus,
    delete_each,
    directory_not_found,
    file_exists,
    file_not_found,
    of_another_store,
    parts_below,
)
from delta_pyds.storage.local_output import LocalOutput, begin_sync_of_names
from delta_pyds.storage.local_removal import remove_below
from delta_pyds.storage.local_sync import make_directory, sync_directories_above, sync_directory, sync_file_systems

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
    """Files on this machine, under plain absolute paths or ``file:`` URIs.

    Only regular files are opened: opening a named pipe would wait for ever, and
    a device has no end. Symbolic links to files are followed, except by ``delete``.
    """

    @property
    def scheme(self) -> str:
        return "file"

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        try:
            with os.scandir(_plain(directory)) as entries:
                # only the names that count are looked at further: a log may hold a million files
                names = sorted(entry.name for entry in entries if entry.name >= start_name)
        except (FileNotFoundError, NotADirectoryError):
            raise directory_not_found(directory) from None
        except OSError as error:
            raise _failed("listed", directory, error) from error
        return self._statuses(directory.rstrip("/"), names)

    def _statuses(self, directory: str, names: list[str]) -> Iterator[FileStatus]:
        base = _plain(directory + "/").rstrip("/")
        for name in names:
            try:
                found = _examined(f"{base}/{name}")
            except FileNotFoundError:
                continue  # gone since the listing
            except OSError as error:
                raise _failed("examined", f"{directory}/{name}", error) from error
            yield _status(f"{directory}/{name}", found)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        try:
            with os.scandir(_plain(directory)) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):  # gone since the listing
                        yield _entry(entry)
        except (FileNotFoundError, NotADirectoryError):
            raise directory_not_found(directory) from None
        except OSError as error:
            raise _failed("listed", directory, error) from error

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        start = offset or 0
        try:
            descriptor, size = _open_regular(path)
            with open(descriptor, "rb", buffering=0) as file:
                if length is None and not start:
                    return file.readall()
                # what a caller asks for may come from a log: memory is taken for what is there
                rest = max(size - start, 0)
                length = rest if length is None else min(length, rest)
                if length <= 0:
                    return b""
                file.seek(start)
                return _read_up_to(file.fileno(), length)
        except (FileNotFoundError, NotADirectoryError):
            raise file_not_found(path) from None
        except OSError as error:
            raise _failed("read", path, error) from error

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:  # noqa: ARG002 - nothing waits
        # imported here: who only lists and reads JSON needs no Arrow
        import pyarrow as pa

        plain = _plain(path)
        try:
            _require_regular(path, os.stat(plain))
            # Takes a name of this machine and nothing else. Where pyarrow.parquet is given the name instead,
            # it takes one that is not there for a URI, and asks the host that this names.
            file = pa.OSFile(os.fsencode(plain))
            _require_regular(path, os.fstat(file.fileno()))
        except (FileNotFoundError, NotADirectoryError):
            raise file_not_found(path) from None
        except OSError as error:
            raise _failed("opened", path, error) from error
        return file

    def exists(self, path: str) -> bool:
        try:
            return stat_module.S_ISREG(os.stat(_plain(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _failed("examined", path, error) from error

    def status(self, path: str) -> FileStatus:
        try:
            found = os.stat(_plain(path))
        except (FileNotFoundError, NotADirectoryError):
            raise file_not_found(path) from None
        except OSError as error:
            raise _failed("examined", path, error) from error
        if stat_module.S_ISDIR(found.st_mode):
            raise file_not_found(path)  # as in a store, which has no directories
        _require_regular(path, found)
        return _status(path, found)

    def require_put_if_absent(self, directory: str) -> None:
        """Every disk keeps it, or says at the create that it cannot."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        target = _plain(path)
        directory = os.path.dirname(target)
        # hidden and without a version, so that no reader of the log takes it for a commit
        temporary = f"{directory}/.{uuid.uuid4().hex}.tmp"
        try:
            try:
                make_directory(directory, lasting=True)
                _write_new(temporary, data)
            except OSError as error:
                raise NothingWrittenError(_failure("created", path, error), path=path) from error
            # link fails if the target exists, and makes the whole file visible at once
            created = _link(temporary, target, path)
            if created:
                sync_directory(directory)
        except OSError as error:
            raise _failed("created", path, error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not created:
            raise file_exists(path)

    def put(self, path: str, data: bytes) -> None:
        target = _plain(path)
        directory = os.path.dirname(target)
        temporary = f"{directory}/.{uuid.uuid4().hex}.tmp"
        try:
            make_directory(directory, lasting=True)
            try:
                _write_new(temporary, data)
                os.replace(temporary, target)
            finally:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(temporary)
            sync_directory(directory)
        except OSError as error:
            raise _failed("written", path, error) from error

    def open_output(self, path: str) -> BinaryIO:
        try:
            return cast(BinaryIO, LocalOutput(_plain(path)))
        except OSError as error:
            raise _failed("created", path, error) from error

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        ours = [output for output in outputs if isinstance(output, LocalOutput)]
        names = begin_sync_of_names(ours, _plain(below))
        for output in ours:
            try:
                output.wait()
            except OSError as error:
                raise _failed("written", output.path, error) from error
        try:
            for done in names:
                done.result()
        except OSError as error:
            raise _failed("written", error.filename or below, error) from error

    def make_all_durable(self, directories: Sequence[str]) -> None:
        try:
            sync_file_systems([_plain(directory) for directory in directories])
        except OSError as error:
            raise _failed("written", error.filename or directories[0], error) from error

    def make_directory(self, directory: str) -> None:
        plain = _plain(directory)
        try:
            make_directory(plain, lasting=False)
            sync_directories_above(plain)
        except OSError as error:
            raise NothingWrittenError(_failure("created", directory, error), path=directory) from error

    def delete(self, path: str, *, below: str) -> None:
        """See ``Storage.delete``. Each directory on the way is opened from the one before, and never through a link."""
        try:
            remove_below(_plain(below), parts_below(_plain(path), _plain(below)), os.unlink)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("deleted", path, error) from error

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        return delete_each(self, paths, below=below)

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        try:
            return remove_below(_plain(below), parts_below(_plain(path), _plain(below)), os.rmdir)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                return False
            raise _failed("deleted", path, error) from error


def _plain(path: str) -> str:
    """The path as the system takes it.

    Raises: StorageError for a path of another store, and for one that no file of this machine can have.
    """
    plain = local_path(path)
    if not plain.startswith("/"):
        raise of_another_store(path, "the local disk")
    if not plain.isascii():
        try:
            os.fsencode(plain)
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{path!r} can be the name of no file: the character {error.object[error.start]!r} has no bytes in "
                f"{error.encoding}.",
                path=path,
            ) from None
    return plain


def _open_regular(path: str) -> tuple[int, int]:
    """An open file descriptor, and the file's size.

    Raises: StorageError for what is no regular file; OSError.
    """
    plain = _plain(path)
    # before opening, which would do something to some devices, and after it, for then nobody can exchange the file
    _require_regular(path, os.stat(plain))
    descriptor = os.open(plain, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        found = os.fstat(descriptor)
        _require_regular(path, found)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


_KINDS = {
    stat_module.S_IFDIR: "a directory",
    stat_module.S_IFIFO: "a named pipe",
    stat_module.S_IFSOCK: "a socket",
    stat_module.S_IFCHR: "a device",
    stat_module.S_IFBLK: "a device",
}


def _require_regular(path: str, found: os.stat_result) -> None:
    if not stat_module.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat_module.S_IFMT(found.st_mode), "something else")
        raise StorageError(f"{path!r} could not be read: it is {kind}, and not a regular file.", path=path)


def _examined(path: str) -> os.stat_result:
    """What is at the end of the links; of links that lead nowhere, the first."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR):
            raise
        return os.lstat(path)


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
    """Whether the link was made, whatever the server answered.

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


def _failed(verb: str, path: str, error: OSError) -> StorageError:
    return StorageError(_failure(verb, path, error), path=path)


def _failure(verb: str, path: str, error: OSError) -> str:
    return f"{path!r} could not be {verb}: {error.strerror or error}."


def _status(path: str, found: os.stat_result) -> FileStatus:
    # no tool sets the time of the last status change, and a copied or renamed file gets a new one
    generation = f"{found.st_ino}-{found.st_ctime_ns}"
    regular = stat_module.S_ISREG(found.st_mode)
    return FileStatus(path, found.st_size, found.st_mtime_ns // 1_000_000, generation, regular)


def _entry(entry: os.DirEntry[str]) -> DirectoryEntry:
    found = entry.stat(follow_symlinks=False)
    regular, directory = stat_module.S_ISREG(found.st_mode), stat_module.S_ISDIR(found.st_mode)
    if not _is_text(entry.name):
        regular = directory = False  # no log can name it
    kind: Literal["file", "directory", "other"] = "file" if regular else "directory" if directory else "other"
    return DirectoryEntry(entry.name, kind, found.st_size, found.st_mtime_ns // 1_000_000)


def _is_text(name: str) -> bool:
    """False for bytes that are none, which the system shows as surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
