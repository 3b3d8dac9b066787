"""Servers of object stores on this machine for tests: s3proxy for S3, Azurite for Azure, fake-gcs-server for Google.

Invariants: they listen on the loopback; each is stopped by its process id. What is missing is installed first (see
``store_programs``), which may take minutes, and never for ever.

Run as ``python -m tests.support.store_processes COMMAND...``. The command finds the servers' URLs in the variables
named here, and tests the stores that there are. Exit status: the command's; where that is 0, 69 (EX_UNAVAILABLE) if a
server could not be had, but 0 with ``STORES=optional``: what a machine lacks is said, and is not an error of the code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from tests.support.store_programs import azurite, fake_gcs_server, s3proxy

S3PROXY, AZURE, GOOGLE = "DELTA_PYDS_TEST_S3PROXY", "DELTA_PYDS_TEST_AZURE", "DELTA_PYDS_TEST_GOOGLE"
EX_UNAVAILABLE = 69
_START_S = 60.0
# No line of its log for each request.
_S3PROXY_SETTINGS = """s3proxy.endpoint={url}
s3proxy.authorization={authorization}
s3proxy.identity={key}
s3proxy.credential={secret}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={directory}
"""


@contextlib.contextmanager
def what_can_be_had() -> Generator[None, None, None]:
    """A test whose server or connector a machine lacks says NOT TESTED with ``STORES=optional``, and fails without."""
    try:
        yield
    except LookupError as error:
        if os.environ.get("STORES") == "optional":
            pytest.skip(f"NOT TESTED: a server, or Spark's connector to it, cannot be had here ({error})")
        raise


@contextlib.contextmanager
def s3_proxy_server(key: str = "", secret: str = "", objects: Path | None = None) -> Generator[str, None, None]:
    """A new s3proxy on a directory; its URL. Raises: LookupError where none can be had, and why, as all here.

    ``key``, ``secret``: by which requests must be signed; without them anybody may ask, as it listens on the loopback.
    ``objects``: an existing directory of buckets; a new one without it.
    """
    program = s3proxy()
    url = f"http://127.0.0.1:{_free_port()}"
    with tempfile.TemporaryDirectory(prefix="s3proxy-", ignore_cleanup_errors=True) as directory:
        settings = Path(directory) / "s3proxy.conf"
        data = objects or Path(directory) / "data"
        data.mkdir(exist_ok=True)
        authorization = "aws-v2-or-v4" if key else "none"
        text = _S3PROXY_SETTINGS.format(url=url, directory=data, authorization=authorization, key=key, secret=secret)
        settings.write_text(text)
        with _running(["java", "-jar", str(program), "--properties", str(settings)], url):
            yield url


@contextlib.contextmanager
def azure_server(certificate: Path | None = None, key: Path | None = None) -> Generator[str, None, None]:
    """A new Azurite; its URL. ``certificate``: which it shows, to be spoken to by https alone."""
    program = azurite()
    port = _free_port()
    # of the services' versions it knows those before its own release; what it does not know of later ones it leaves out
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    scheme = "http" if certificate is None else "https"
    options += [] if certificate is None else ["--cert", str(certificate), "--key", str(key)]
    command = ["node", str(program), "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with _running(command, f"{scheme}://127.0.0.1:{port}") as url:
        yield url


@contextlib.contextmanager
def google_server() -> Generator[str, None, None]:
    """A new fake-gcs-server; its URL."""
    program = fake_gcs_server()
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory", "-log-level", "error"]
    with _running([str(program), *options, "-external-url", url, "-public-host", f"127.0.0.1:{port}"], url):
        yield url


@contextlib.contextmanager
def _running(command: list[str], url: str) -> Generator[str, None, None]:
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
    anybody = ssl._create_unverified_context() if url.startswith("https:") else None
    for _ in range(int(_START_S / 0.1)):
        if process.poll() is not None:
            raise LookupError(log.read_text(errors="replace")[-500:])
        try:
            urllib.request.urlopen(url, timeout=5, context=anybody).close()
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


_SERVERS = {"s3proxy": (S3PROXY, s3_proxy_server), "Azure": (AZURE, azure_server), "Google": (GOOGLE, google_server)}


def run_with_servers(command: Sequence[str]) -> int:
    """Run a command beside all servers that can be had. Returns: the exit status, as above."""
    missing: list[str] = []
    with contextlib.ExitStack() as servers:
        environment = dict(os.environ)
        for name, (variable, server) in _SERVERS.items():
            try:
                environment[variable] = servers.enter_context(server())
            except LookupError as error:
                missing.append(f"NOT TESTED: the server for {name} cannot be had here ({error}).")
        print("\n".join(missing), flush=True)
        status = subprocess.run(command, env=environment).returncode
    # once more, where the last lines are read
    print("\n".join(missing), file=sys.stderr)
    allowed = os.environ.get("STORES") == "optional"
    return EX_UNAVAILABLE if missing and not allowed and status == 0 else status


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # servers are stopped then, too
    sys.exit(run_with_servers(sys.argv[1:]))
