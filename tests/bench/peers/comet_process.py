"""One side of ``comet`` in a session of its own: python -m tests.bench.peers.comet_process '[SIDE, SCRATCH, JAR]'.

JAR: Comet's JAR, or the folder of the reference's JARs. The process answers as ``sail_process.serve`` says.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.peers.goals import COMET
from tests.bench.peers.sail_process import serve
from tests.bench.peers.settings import WORKERS
from tests.comet.environment import COMET as COMET_VERSION
from tests.comet.environment import comet_settings
from tests.interop.reference_session import WITHOUT_REFERENCE, reference_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY = "1500m"


def main(side: str, scratch: Path, jar: Path) -> None:
    # what Spark prints goes elsewhere: answers alone are on the pipe
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = answers
    spark = _builder(side, scratch, jar).config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    version = f"Spark {spark.version}"
    if side == COMET:
        import delta_pyds

        delta_pyds.install(spark, delta=True)
        version = f"{version}, Comet {COMET_VERSION}, delta_pyds {importlib.metadata.version('delta-pyds')}"
    serve(version, spark.sql)


def _builder(side: str, scratch: Path, jar: Path) -> SparkSession.Builder:
    from pyspark.sql import SparkSession

    if side != COMET:
        return reference_session(WORKERS, scratch, _MEMORY, jars=jar)
    return (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.driver.memory", _MEMORY)
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.local.dir", str(scratch / "local"))
        .config(map=WITHOUT_REFERENCE | comet_settings(jar))
    )


if __name__ == "__main__":
    given_side, given_scratch, given_jar = json.loads(sys.argv[1])
    main(given_side, Path(given_scratch), Path(given_jar))
