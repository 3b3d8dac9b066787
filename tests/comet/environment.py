"""Spark with Comet: Comet's JAR from Maven, and settings that turn it on in every session of a process.

Comet has a JAR for each minor version of Spark, of 99 MB. 1.2 has none for 4.2 and 4.3 yet.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.interop.setup_env import drop_what_spark_has
from tests.support.store_programs import maven_jar, maven_jars
from tests.versions.environments import HOME
from tests.versions.sparks import spark_environment

SPARK, COMET = "4.1", "1.2.0"
# the newest version of the reference for this Spark
REFERENCE = "4.4.0"
JARS = HOME / "jars"
_OFF_HEAP = "1g"


def comet_environment() -> Path:
    """The Python of the environment with the Spark that Comet supports."""
    return spark_environment(SPARK)


def comet_jar() -> Path:
    """Raises: LookupError if Maven cannot give it."""
    return maven_jar(JARS, "org.apache.datafusion", f"comet-spark-spark{SPARK}_2.13", COMET)


def reference_jars() -> Path:
    """The folder of the reference's JARs for this Spark. Raises: LookupError if Maven cannot give them."""
    jars = maven_jars(JARS, "io.delta", f"delta-spark_{SPARK}_2.13", REFERENCE)
    drop_what_spark_has(jars[0].parent, comet_environment())
    return jars[0].parent


def comet_settings(jar: Path) -> dict[str, str]:
    """The settings of a session with Comet, as the page "works with" names them."""
    return {
        "spark.jars": str(jar),
        "spark.driver.extraClassPath": str(jar),
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": _OFF_HEAP,
        "spark.comet.convert.parquet.enabled": "true",
        "spark.comet.exec.localTableScan.enabled": "true",
    }


@contextmanager
def variables(python: Path, settings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment variables of a process in which each session has the settings."""
    with tempfile.TemporaryDirectory() as folder:
        defaults = "".join(f"{key} {value}\n" for key, value in settings.items())
        (Path(folder) / "spark-defaults.conf").write_text(defaults)
        root = str(Path(__file__).parents[2])
        own = {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_CONF_DIR": folder}
        yield {**os.environ, **own, "PYTHONPATH": root, "SPARK_LOCAL_IP": "127.0.0.1"}


def unavailable(error: LookupError) -> int:
    """Say that Comet cannot be had. Returns: the exit status."""
    print(f"make test-comet: {error}", file=sys.stderr)
    return 69
