"""A server of Sail, for as long as a block or this process runs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.limits import ONLY_A_HANG_S

ROOT = Path(__file__).parents[2]


@contextmanager
def sail_session(directory: Path) -> Iterator[SparkSession]:
    """A session of a new server that runs in ``directory``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [str(Path(sys.executable).with_name("sail")), "spark", "server", "--port", str(port)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": "UTC"},
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + ONLY_A_HANG_S
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None and time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.1)
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        yield session
        session.stop()
    finally:
        server.terminate()
        server.wait(ONLY_A_HANG_S)
