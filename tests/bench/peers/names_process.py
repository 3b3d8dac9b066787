"""The process of a session that has no JAR of the reference: tables have names, and ``install`` is on.

In the session of the reference our names cannot be made: its catalog refuses sources in Python. Run by ``queries``:
``python -m tests.bench.peers.names_process SCRATCH``. It answers as ``sail_process.serve`` says.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path

import delta_pyds
from tests.bench.peers.sail_process import serve
from tests.bench.peers.session import start_without_reference


def main() -> None:
    # what Spark prints goes elsewhere: answers alone are on the pipe
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = answers
    spark = start_without_reference(Path(sys.argv[1]))
    delta_pyds.install(spark, delta=True)
    serve(importlib.metadata.version("delta-pyds"), spark.sql)


if __name__ == "__main__":
    main()
