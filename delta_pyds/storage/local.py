"""The local disk."""

from __future__ import annotations

import contextlib
import errno
import os
import stat as stat_module
import uuid
from collections.abc import Callable, Iterator, Sequence
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
    outside_store,
    parts_below,
)
from delta_pyds.storage.local_output import LocalOutput, begin_sync_of_names
from delta_pyds.storage.local_sync import make_directory, sync_directories_above, sync_directory, sync_file_systems

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Parquet files up to this size are read into memory: Arrow would read as much to find the footer.
_SHORT_BYTES = TAIL_BYTES
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def local_path(path: str) -> str:
    """Turn ``file:/a``, ``file:///a`` and ``file://localhost/a`` into ``/a``; return other paths unchanged.

    The path of a ``file:`` URI is not percent-decoded, as in Hadoop's ``Path``.
    Raises: StorageError for a NUL character and for a path on another host.
    """
    if "\0" in path:
        raise StorageError(f"{path!r} contains a NUL character, which is not allowed in file names.", path=path)
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
    """Files on this machine, by absolute paths or ``file:`` URIs.

    Only regular files are opened: opening a named pipe would block, and a device
    has no end. Symbolic links to files are followed, except by ``delete``.
    """

    @property
    def scheme(self) -> str:
        return "file"

    def list_from(self, directory: str, start_name: str) -> Iterator[FileStatus]:
        with _translated("listed", directory, directory_not_found), os.scandir(_plain(directory)) as entries:
            # only these names are examined: a log may hold a million files
            names = sorted(entry.name for entry in entries if entry.name >= start_name)
        return self._statuses(directory.rstrip("/"), names)

    def _statuses(self, directory: str, names: list[str]) -> Iterator[FileStatus]:
        base = _plain(directory + "/").rstrip("/")
        for name in names:
            try:
                found = _stat(f"{base}/{name}")
            except FileNotFoundError:
                continue  # deleted since the listing
            except OSError as error:
                raise _failed("examined", f"{directory}/{name}", error) from error
            yield _status(f"{directory}/{name}", found)

    def list_directory(self, directory: str) -> Iterator[DirectoryEntry]:
        with _translated("listed", directory, directory_not_found), os.scandir(_plain(directory)) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # deleted since the listing
                    yield _entry(entry)

    def read(self, path: str, offset: int | None = None, length: int | None = None) -> bytes:
        start = offset or 0
        with _translated("read", path, file_not_found):
            descriptor, size = _open_regular(path)
            with open(descriptor, "rb", buffering=0) as file:
                if length is None and not start:
                    return file.readall()
                # the length may come from a log: allocate no more than the file has
                rest = max(size - start, 0)
                length = rest if length is None else min(length, rest)
                if length <= 0:
                    return b""
                file.seek(start)
                return _read_up_to(file.fileno(), length)

    def parquet_source(self, path: str, tail_bytes: int = TAIL_BYTES, size_bytes: int | None = None) -> Any:  # noqa: ARG002 - the disk needs no hints
        # imported here: listing and reading JSON need no Arrow
        import pyarrow as pa

        plain = _plain(path)
        with _translated("opened", path, file_not_found):
            found = os.stat(plain)
            _require_regular(path, found)
            if found.st_size <= _SHORT_BYTES and (data := _short_file(path, plain)) is not None:
                # one read: Arrow would read the end first, and then each column
                return pa.BufferReader(data)
            # OSFile takes local names only. pyarrow.parquet would take a missing name for a URI and ask the host in it.
            file = pa.OSFile(os.fsencode(plain))
            _require_regular(path, _status_of(file, plain))
            return file

    def exists(self, path: str) -> bool:
        try:
            return stat_module.S_ISREG(os.stat(_plain(path)).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _failed("examined", path, error) from error

    def status(self, path: str) -> FileStatus:
        with _translated("examined", path, file_not_found):
            found = os.stat(_plain(path))
        if stat_module.S_ISDIR(found.st_mode):
            raise file_not_found(path)  # as in object stores, which have no directories
        _require_regular(path, found)
        return _status(path, found)

    def require_put_if_absent(self, directory: str) -> None:
        """Do nothing: a disk supports it, or ``put_if_absent`` fails with a message."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        target = _plain(path)
        directory = os.path.dirname(target)
        if os.path.lexists(target):
            # most lost races end here, without a file that must reach the disk
            raise file_exists(path)
        # hidden and without a version, so that no reader of the log takes it for a commit
        temporary = f"{directory}/.{uuid.uuid4().hex}.tmp"
        try:
            try:
                make_directory(directory, lasting=True)
                _write_new(temporary, data)
            except OSError as error:
                raise NothingWrittenError(_failure("created", path, error), path=path) from error
            # link is atomic: it fails if the target exists
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
        with _translated("written", path):
            make_directory(directory, lasting=True)
            try:
                _write_new(temporary, data)
                os.replace(temporary, target)
            finally:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(temporary)
            sync_directory(directory)

    def open_output(self, path: str) -> BinaryIO:
        with _translated("created", path):
            return cast(BinaryIO, LocalOutput(_plain(path)))

    def make_durable(self, outputs: Sequence[BinaryIO], *, below: str) -> None:
        ours = [output for output in outputs if isinstance(output, LocalOutput)]
        names = begin_sync_of_names(ours, _plain(below))
        for output in ours:
            with _translated("written", output.path):
                output.wait()
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
        """See ``Storage.delete``. Each directory on the way is opened from its parent, and never through a link."""
        try:
            _remove_below(_plain(below), parts_below(_plain(path), _plain(below)), os.unlink)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _failed("deleted", path, error) from error

    def delete_all(self, paths: Sequence[str], *, below: str) -> dict[str, StorageError]:
        return delete_each(self, paths, below=below)

    def delete_empty_directory(self, path: str, *, below: str) -> bool:
        try:
            return _remove_below(_plain(below), parts_below(_plain(path), _plain(below)), os.rmdir)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
                return False
            raise _failed("deleted", path, error) from error


def _plain(path: str) -> str:
    """The path for the operating system.

    Raises: StorageError for a path of another store, and for one that is not a possible file name here.
    """
    plain = local_path(path)
    if not plain.startswith("/"):
        raise outside_store(path, "the local disk")
    if not plain.isascii():
        try:
            os.fsencode(plain)
        except UnicodeEncodeError as error:
            raise StorageError(
                f"{path!r} is not a valid file name: the character {error.object[error.start]!r} cannot be encoded in "
                f"{error.encoding}.",
                path=path,
            ) from None
    return plain


def _short_file(path: str, plain: str) -> bytes | None:
    """All bytes of a file; None if it has become long. Raises: as ``_open_regular``."""
    descriptor, size = _open_checked(path, plain)
    try:
        return _read_up_to(descriptor, size) if size <= _SHORT_BYTES else None
    finally:
        os.close(descriptor)


def _open_regular(path: str) -> tuple[int, int]:
    """Open a file. Returns: its descriptor and its size in bytes.

    Raises: StorageError if it is not a regular file; OSError.
    """
    plain = _plain(path)
    # checked before opening, because that affects some devices, and again after it, because the file may be another one
    _require_regular(path, os.stat(plain))
    return _open_checked(path, plain)


def _open_checked(path: str, plain: str) -> tuple[int, int]:
    """As ``_open_regular``, for a file that was a regular one just before."""
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


def _status_of(file: Any, plain: str) -> os.stat_result:
    """The status of an open file of Arrow. Arrow 18 has no descriptor for it, so its name is asked again."""
    try:
        return os.fstat(file.fileno())
    except AttributeError:
        return os.stat(plain)


def _require_regular(path: str, found: os.stat_result) -> None:
    if not stat_module.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat_module.S_IFMT(found.st_mode), "something else")
        raise StorageError(f"{path!r} could not be read: it is {kind}, not a regular file.", path=path)


def _stat(path: str) -> os.stat_result:
    """The status of the target of symbolic links; of the link itself if it is broken."""
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
    """Create a hard link. Returns: whether it was created, even if the server's answer says otherwise.

    On a network file system the answer may be lost; a repeated request then fails, or says that the target exists. The
    source is ours alone, so if it has a second link, that is the target.
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
                f"{path!r} could not be created: its file system does not support hard links ({error.strerror}), so "
                "two writers could overwrite each other. Keep the table on another disk or in an object store.",
                path=path,
            ) from error
        raise
    return True


def _remove_below(root: str, parts: Sequence[str], remove: Callable[..., None]) -> bool:
    """Remove a file or directory below ``root``, without following a symbolic link below it.

    Args:
        root: a directory; it may itself be a link.
        parts: the names on the path from ``root``.
        remove: ``os.unlink`` or ``os.rmdir``.

    Returns: False if a directory on the path does not exist.
    Raises: StorageError if a name on the path is a symbolic link; errors of ``remove``.
    """
    directory = os.open(root, _DIRECTORY)
    try:
        for i, name in enumerate(parts[:-1]):
            try:
                inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            except NotADirectoryError:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not stat_module.S_ISLNK(found.st_mode):
                    return False  # not a directory: nothing can be below it
                raise StorageError(
                    f"'{'/'.join(parts)}' below '{root}' was not deleted: '{'/'.join(parts[: i + 1])}' is a symbolic "
                    "link, whose target may belong to another program.",
                    path=f"{root}/{'/'.join(parts)}",
                ) from None
            os.close(directory)
            directory = inner
        remove(parts[-1], dir_fd=directory)
    finally:
        os.close(directory)
    return True


@contextlib.contextmanager
def _translated(verb: str, path: str, missing: Callable[[str], StorageError] | None = None) -> Iterator[None]:
    """Raise an OSError as a StorageError. ``missing``: makes the error for a path that does not exist."""
    try:
        yield
    except OSError as error:
        if missing is not None and isinstance(error, FileNotFoundError | NotADirectoryError):
            raise missing(path) from None
        raise _failed(verb, path, error) from error


def _failed(verb: str, path: str, error: OSError) -> StorageError:
    return StorageError(_failure(verb, path, error), path=path)


def _failure(verb: str, path: str, error: OSError) -> str:
    return f"{path!r} could not be {verb}: {error.strerror or error}."


def _status(path: str, found: os.stat_result) -> FileStatus:
    # no tool can set the time of the last status change, and copying or renaming a file changes it
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
    """Whether the name is valid text; Python shows undecodable bytes as surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
