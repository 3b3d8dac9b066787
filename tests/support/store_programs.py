"""The servers of object stores for tests, and Spark's connectors for them, installed below ``.stores`` from registries.

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

# group, artifact, version, classifier; Spark brings what they need beside those they name
_CONNECTORS = {
    "S3A": ("org.apache.hadoop", "hadoop-aws", "", ""),
    "ABFS": ("org.apache.hadoop", "hadoop-azure", "", ""),
    "hadoop-gcp": ("org.apache.hadoop", "hadoop-gcp", "", ""),
    "GCS": ("com.google.cloud.bigdataoss", "gcs-connector", "4.0.4", "shaded"),
}
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>
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
    return maven_jar(INSTALLED / "s3proxy", "org.gaul", "s3proxy", _S3PROXY, "jar-with-dependencies")


def connector_jars(name: str) -> list[Path]:
    """What a session of the installed Spark needs for the connector: of its Hadoop's version, or of its own."""
    group, artifact, version, classifier = _CONNECTORS[name]
    version = version or _hadoop_of_spark()
    if classifier:  # a JAR that is called shaded brings all that its artifact needs
        return [maven_jar(INSTALLED / f"{artifact}-{version}", group, artifact, version, classifier)]
    return maven_jars(INSTALLED, group, artifact, version)


def maven_jar(folder: Path, group: str, artifact: str, version: str, classifier: str = "") -> Path:
    """One JAR in a folder, without what it needs."""
    jar = folder / f"{'-'.join(filter(None, (artifact, version, classifier)))}.jar"
    named = f"-Dartifact={':'.join(filter(None, (group, artifact, version, 'jar', classifier)))}"
    return _installed(jar, ["mvn", "--quiet", "--batch-mode", "dependency:copy", named, f"-DoutputDirectory={folder}"])


def maven_jars(home: Path, group: str, artifact: str, version: str) -> list[Path]:
    """The JARs of an artifact and of what it needs at run time, in a folder of its own below ``home``."""
    folder = home / f"{artifact}-{version}"
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format(group=group, artifact=artifact, version=version))
        command = ["mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        _installed(folder / f"{artifact}-{version}.jar", command)
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
