"""The servers of object stores for tests, and Spark's connector for S3, installed below ``.stores`` from registries.

Invariants: what is there is not fetched again; every client of a registry is given a time, after which it is ended;
none is named here but by its client's own settings.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

INSTALLED = Path(__file__).parents[2] / ".stores"
_AZURITE, _FAKE_GCS_SERVER, _S3PROXY = "3.35.0", "v1.56.1", "4.1.0"
_INSTALL_S = 240.0

# Spark brings what hadoop-aws needs beside the SDK
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>connectors</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>{hadoop}</version></dependency>
  </dependencies>
</project>
"""


def azurite() -> Path:
    """Azurite's program, which ``node`` runs. Raises: LookupError where it cannot be had, and why, as all here."""
    _require("node")
    program = INSTALLED / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(INSTALLED)]
    return _installed(program, ["npm", "install", *options, f"azurite@{_AZURITE}"])


def fake_gcs_server() -> Path:
    """The program."""
    program = INSTALLED / "bin" / "fake-gcs-server"
    command = ["go", "install", f"github.com/fsouza/fake-gcs-server@{_FAKE_GCS_SERVER}"]
    return _installed(program, command, GOBIN=str(program.parent))


def s3proxy() -> Path:
    """The JAR, which ``java`` runs."""
    _require("java")
    kind = "jar-with-dependencies"
    jar = INSTALLED / "s3proxy" / f"s3proxy-{_S3PROXY}-{kind}.jar"
    artifact = f"-Dartifact=org.gaul:s3proxy:{_S3PROXY}:jar:{kind}"
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy", artifact, f"-DoutputDirectory={jar.parent}"]
    return _installed(jar, command)


def s3a_jars() -> list[Path]:
    """What a session of the installed Spark needs for ``s3a://``: hadoop-aws of its Hadoop, and the SDK."""
    hadoop = _hadoop_of_spark()
    folder = INSTALLED / f"s3a-{hadoop}"
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format(hadoop=hadoop))
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        _installed(folder / f"hadoop-aws-{hadoop}.jar", command)
    return sorted(folder.glob("*.jar"))


def _hadoop_of_spark() -> str:
    spec = find_spec("pyspark")
    for folder in (spec and spec.submodule_search_locations) or ():
        for jar in (Path(folder) / "jars").glob("hadoop-client-api-*.jar"):
            return jar.stem.rpartition("-")[2]
    raise LookupError("the installed Spark has no JARs")


def _installed(program: Path, command: Sequence[str], **environment: str) -> Path:
    if program.exists():
        return program
    _require(command[0])
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_INSTALL_S,
        )
    except subprocess.TimeoutExpired as error:
        raise LookupError(f"{command[0]} did not fetch {program.name} in {_INSTALL_S:g} s") from error
    if not program.exists():
        said = re.sub(r"\s+", " ", done.stdout or "").strip()[:300]
        raise LookupError(f"{command[0]} did not fetch {program.name}, with status {done.returncode}: {said}")
    return program


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise LookupError(f"there is no {program} on PATH")
