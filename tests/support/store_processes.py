"""Servers of object stores on this machine for tests: Azurite for Azure, fake-gcs-server for Google.

Invariants: they listen on the loopback; each is stopped by its process id. ``make test-stores`` installs them below
``.stores``: Azurite from npm, fake-gcs-server by Go.

Run as ``python -m tests.support.store_processes COMMAND...``. The command finds the servers' URLs in
``DELTA_PYDS_TEST_AZURE`` and ``DELTA_PYDS_TEST_GOOGLE``. Exit status: the command's, or 69 (EX_UNAVAILABLE) where a
server cannot be had.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

INSTALLED = Path(__file__).parents[2] / ".stores"
AZURE, GOOGLE = "DELTA_PYDS_TEST_AZURE", "DELTA_PYDS_TEST_GOOGLE"
EX_UNAVAILABLE = 69
_START_S = 60.0


@contextlib.contextmanager
def azure_server() -> Generator[str, None, None]:
    """A new Azurite; its URL. Raises: LookupError where none can be had, and why."""
    program = INSTALLED / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    port = _free_port()
    # of the services' versions it knows those before its own release; what it does not know of later ones it leaves out
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    command = ["node", str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with _running(command, program, f"http://127.0.0.1:{port}") as url:
        yield url


@contextlib.contextmanager
def google_server() -> Generator[str, None, None]:
    """A new fake-gcs-server; its URL. Raises: LookupError where none can be had, and why."""
    program = INSTALLED / "bin" / "fake-gcs-server"
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-log-level", "error"]
    with _running([str(program), *options, "-external-url", url, "-public-host", f"127.0.0.1:{port}"], program, url):
        yield url


@contextlib.contextmanager
def _running(command: list[str], program: Path, url: str) -> Generator[str, None, None]:
    if shutil.which(command[0]) is None or not program.exists():
        raise LookupError(f"{command[0] if program.exists() else program} is not there: see the messages above")
    directory = Path(tempfile.mkdtemp(prefix="store-"))
    try:
        with open(directory / "log", "wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=directory)
        try:
            _wait(url, process, directory / "log")
            yield url
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(int(_START_S / 0.1)):
        if process.poll() is not None:
            raise LookupError(log.read_text(errors="replace")[-500:])
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return  # an answer
        except OSError:
            time.sleep(0.1)
    raise LookupError(f"the server was not ready after {_START_S:g} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers are stopped then, too
    try:
        with azure_server() as azure, google_server() as google:
            environment = {**os.environ, AZURE: azure, GOOGLE: google}
            status = subprocess.run(sys.argv[1:], env=environment).returncode
    except LookupError as error:
        print(f"Nothing was tested: a store's server cannot be had here ({error}).", file=sys.stderr)
        status = EX_UNAVAILABLE
    sys.exit(status)
