"""A server of Spark Connect: python -m tests.bench.peers.connect_server_process ARGUMENTS. It ends with its input.

ARGUMENTS is JSON: the data directory, and settings of the session. The answer is the address.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.bench.peers.session import start

_SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


def main(data: str, settings: dict[str, str]) -> None:
    # what Spark prints goes elsewhere: the answer alone is on the pipe
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark: Any = start(Path(data), {**settings, **_SETTINGS})
    service = getattr(spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    print(f"ANSWER sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}", file=answers, flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
