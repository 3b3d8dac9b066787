"""A PostgreSQL server on this machine for tests: it is started for one command and stopped after it.

Invariants: it listens on a Unix socket in a directory of its own and on no network; it is stopped by its process id.

Run as ``python -m tests.support.postgresql_server COMMAND...``. The command finds the server's URL in
``DELTA_PYDS_TEST_POSTGRESQL``. Exit status: the command's, or 69 (EX_UNAVAILABLE) where no server can be had.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

URL = "DELTA_PYDS_TEST_POSTGRESQL"
EX_UNAVAILABLE = 69
_START_S = 120.0


def places() -> Iterator[Path]:
    """The directories that may have a server's programs: of pgserver, on the path, where Debian puts them."""
    spec = importlib.util.find_spec("pgserver")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "pginstall" / "bin"
    found = shutil.which("initdb")
    if found is not None:
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


@contextlib.contextmanager
def server() -> Generator[str, None, None]:
    """A server that has just been made; its URL. Raises: LookupError where none can be had, and why."""
    directory = Path(tempfile.mkdtemp(prefix="pg-"))
    failed: list[str] = []
    try:
        for place in places():
            data = directory / f"data{len(failed)}"
            made = _run_by_nobody(
                [place / "initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync", "-E", "UTF8"], directory
            )
            if made is None:
                process = _started(place, directory, data)
                break
            failed.append(f"{place}: {made}")
        else:
            raise LookupError(
                "; ".join(failed) or "neither the package pgserver nor a PostgreSQL of this machine is there"
            )
        try:
            url = f"postgresql:///postgres?host={directory}&user=test"
            _wait(url, process, directory)
            yield url
        finally:
            # at once, even with open connections
            process.send_signal(signal.SIGINT)
            process.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def empty_database() -> str:
    """The URL of a place without tables on the server that the environment names."""
    import psycopg

    url, schema = os.environ[URL], f"test_{uuid.uuid4().hex}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{url}&options=-csearch_path%3D{schema}"


def _run_by_nobody(command: list[Any], directory: Path) -> str | None:
    """Why it failed; None if it did not."""
    try:
        done = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, cwd=directory, **_user(directory)
        )
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()[-500:]


def _started(place: Path, directory: Path, data: Path) -> subprocess.Popen[bytes]:
    settings = {"listen_addresses": "", "unix_socket_directories": str(directory), "fsync": "off"}
    command = [str(place / "postgres"), "-D", str(data)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with open(directory / "log", "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, **_user(directory))


def _user(directory: Path) -> dict[str, Any]:
    """A PostgreSQL server does not run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _wait(url: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    import psycopg

    for _ in range(int(_START_S / 0.1)):
        if process.poll() is not None:
            raise LookupError((directory / "log").read_text(errors="replace")[-500:])
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url):
            return
        time.sleep(0.1)
    raise LookupError(f"the server was not ready after {_START_S:g} s")


if __name__ == "__main__":
    try:
        with server() as at:
            status = subprocess.run(sys.argv[1:], env={**os.environ, URL: at}).returncode
    except LookupError as error:
        print(f"Nothing was tested: no PostgreSQL server can be had here ({error}).", file=sys.stderr)
        status = EX_UNAVAILABLE
    sys.exit(status)
