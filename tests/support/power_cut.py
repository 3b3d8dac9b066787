"""What a power cut leaves of a directory, as the syncs tell that are really made.

A file has the bytes that it had at its last sync, and none where it had no sync. A name is there if its directory was
synced since it was made; one that is removed is gone at once. That is the least that file systems promise. Nothing has
to know how files are written: bytes that no sync covers are lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from delta_pyds.storage import local_sync


class Disk:
    """The durable state of the directory ``base``; ``record``: another directory, which several processes may share.

    Nothing lasts but ``base`` itself before ``keep_all``.
    """

    def __init__(self, base: Path, record: Path) -> None:
        self.base, self._record = base, record
        for kind in ("files", "directories"):
            (record / kind).mkdir(parents=True, exist_ok=True)
        # as long as its file is open no other one gets its number
        self._open: dict[str, int] = {}

    def keep_all(self) -> None:
        """All that is there now lasts."""
        for directory, _, names in os.walk(self.base):
            self._keep_directory(directory)
            for name in names:
                path = f"{directory}/{name}"
                if os.path.isfile(path):
                    self._keep_file(path, os.path.getsize(path))

    def keep(self, descriptor: int, size: int, names: dict[str, str] | None) -> None:
        """Note a sync of an open file, or directory, that had so many bytes, or these names, when it began."""
        path = f"/proc/self/fd/{descriptor}"
        if names is not None:
            self._put("directories", _number(os.stat(path)), json.dumps(names).encode())
        else:
            number = self._keep_file(path, size)
            if number not in self._open:
                self._open[number] = os.dup(descriptor)

    def left_after_power_cut(self, to: Path) -> None:
        """Make ``to`` what is left of ``base``."""
        to.mkdir(parents=True)
        self._restore(self.base, self._names(_number(self.base.stat())), to)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other process notes a directory meanwhile: an older list of names would replace a newer one."""
        with open(self._record / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def _restore(self, live: Path, names: dict[str, str], to: Path) -> None:
        for name, number in names.items():
            path = live / name
            if not path.exists():
                continue
            if path.is_dir():
                (to / name).mkdir()
                self._restore(path, self._names(number), to / name)
            else:
                (to / name).write_bytes(self._bytes(path, number))

    def _bytes(self, path: Path, number: str) -> bytes:
        try:
            kept = (self._record / "files" / number).read_bytes()
        except FileNotFoundError:
            return b""
        # the number of a file that another process deleted may be another file's now
        return kept if _number(path.stat()) != number or path.read_bytes().startswith(kept) else b""

    def _names(self, number: str) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self._record / "directories" / number).read_bytes())
        except FileNotFoundError:
            return {}
        return found

    def _keep_directory(self, path: str) -> None:
        self._put("directories", _number(os.stat(path)), json.dumps(names_in(path)).encode())

    def _keep_file(self, path: str, size: int) -> str:
        number = _number(os.stat(path))
        with open(path, "rb") as file:
            self._put("files", number, file.read(size))
        return number

    def _put(self, kind: str, number: str, data: bytes) -> None:
        new = self._record / f"{kind}-{number}-{os.getpid()}-{threading.get_ident()}"
        new.write_bytes(data)
        new.replace(self._record / kind / number)


def names_in(directory: str | int) -> dict[str, str]:
    """The names, and the numbers of what they are of."""
    found = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found[entry.name] = _number(entry.stat(follow_symlinks=False))
    return found


def _number(found: os.stat_result) -> str:
    return f"{found.st_dev}-{found.st_ino}"


@contextlib.contextmanager
def noting_syncs(disk: Disk, changed: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Note the syncs of this process; ``changed`` is called whenever there is less or more that a cut would leave."""
    lock = threading.RLock()
    real = {name: getattr(os, name) for name in ("fsync", "fdatasync", "sync", "unlink")}
    sync_file_system = local_sync._sync_file_system

    def note(make: Callable[[], Any], keep: Callable[[], None]) -> Any:
        result = make()
        with lock:
            keep()
            changed()
        return result

    def of_file(name: str) -> Callable[[int], None]:
        def call(descriptor: int) -> None:
            found = os.fstat(descriptor)
            if not stat.S_ISDIR(found.st_mode):
                note(lambda: real[name](descriptor), lambda: disk.keep(descriptor, found.st_size, None))
                return
            with disk.alone():
                names = names_in(descriptor)
                note(lambda: real[name](descriptor), lambda: disk.keep(descriptor, found.st_size, names))

        return call

    replaced: dict[str, Any] = {
        "fsync": of_file("fsync"),
        "fdatasync": of_file("fdatasync"),
        "sync": lambda: note(real["sync"], disk.keep_all),
        "unlink": lambda *args, **kwargs: note(lambda: real["unlink"](*args, **kwargs), lambda: None),
    }
    for name, function in replaced.items():
        setattr(os, name, function)
    # what the C library does is not seen otherwise
    local_sync._sync_file_system = lambda directory: note(lambda: sync_file_system(directory), disk.keep_all)
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
        local_sync._sync_file_system = sync_file_system
        disk.close()
