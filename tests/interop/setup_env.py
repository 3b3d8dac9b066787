"""``.interop/``: the newest Spark that the reference supports, the reference's JARs, and this checkout.

Invariants: what is there already is not made again while ``versions.toml`` and ``pyproject.toml`` are as they were;
Maven and pip are used with whatever settings this machine has, and no repository is named here.

Run as ``python setup_env.py``. Exit status: 0, or 69 (EX_UNAVAILABLE) where the JARs cannot be had.
"""

from __future__ import annotations

import ast
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".interop"
VENV = HOME / "venv"
JARS = HOME / "jars"
PYTHON = VENV / "bin" / "python"
VERSIONS = Path(__file__).with_name("versions.toml")

EX_UNAVAILABLE = 69
_MAVEN_SECONDS = 900
_NOT_THERE = r"was not found|Could not find artifact"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>interop</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>io.delta</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""


class UnavailableError(Exception):
    """The JARs cannot be had on this machine now."""


def versions() -> dict[str, Any]:
    """The content of ``versions.toml``."""
    lines = (line.partition("=") for line in VERSIONS.read_text().splitlines() if line and not line.startswith("#"))
    return {name.strip(): ast.literal_eval(value.strip()) for name, _, value in lines}


def main() -> int:
    wanted = versions()
    try:
        _make_environment(wanted)
        _fetch_jars(wanted)
        _install_python_package()
    except UnavailableError as e:
        print(f"make interop: {e}", file=sys.stderr)
        return EX_UNAVAILABLE
    return 0


def _make_environment(wanted: dict[str, Any]) -> None:
    """The virtual environment, with this checkout as an editable package and only what the checks need beside it."""
    stamp = VENV / ".ready"
    fingerprint = _fingerprint(VERSIONS, CHECKOUT / "pyproject.toml", Path(__file__))
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    print("Setting up .interop/venv (once; this downloads PySpark) ...", flush=True)
    HOME.mkdir(exist_ok=True)
    if not stamp.exists():
        # one that was left half made has no pip
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    peers = [f"pyspark[connect]=={wanted['pyspark']}", f"deltalake=={wanted['deltalake']}"]
    packages = [
        *peers,
        "pandas<3",
        "chispa>=0.10",
        "pytest>=8.0",
        "pytest-xdist>=3.6",
        "hypothesis>=6.100",
        "s3fs>=2024.2.0",
    ]
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*pip, *packages, "-e", str(CHECKOUT)], check=False).returncode:
        raise UnavailableError(f"pip cannot install {', '.join(peers)} (see above).")
    stamp.write_text(fingerprint)


def _fetch_jars(wanted: dict[str, Any]) -> None:
    """The newest of the wanted versions that the repository has, with what it needs and Spark does not bring."""
    stamp = JARS / ".ready"
    fingerprint = _fingerprint(VERSIONS)
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("there is no mvn on PATH, and the reference's JARs come through Maven.")
    print("Fetching the reference's JARs (once) ...", flush=True)
    artifact = f"delta-spark_{wanted['spark']}_{wanted['scala']}"
    fetched = HOME / "fetched"
    for version in wanted["delta"]:
        shutil.rmtree(fetched, ignore_errors=True)
        complaint = _copy_dependencies(maven, artifact, version, fetched)
        if not complaint:
            drop_what_spark_has(fetched, PYTHON)
            (fetched / stamp.name).write_text(fingerprint)
            shutil.rmtree(JARS, ignore_errors=True)
            fetched.rename(JARS)
            return
        if not re.search(_NOT_THERE, complaint):
            break  # an older version would hide that the newest one could not be reached now
    raise UnavailableError(f"Maven cannot give io.delta:{artifact}:{version}: {complaint}")


def _copy_dependencies(maven: str, artifact: str, version: str, folder: Path) -> str:
    """Fetch one version into ``folder``. Returns: what Maven complained of, or nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format(artifact=artifact, version=version))
        command = [
            maven, "--quiet", "--batch-mode", "--file", str(pom),
            "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_MAVEN_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"it did not answer for {_MAVEN_SECONDS} seconds."
    if done.returncode == 0:
        return ""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
    return lines[0].partition("ERROR]")[2].strip() if lines else f"it ended with status {done.returncode}."


def _install_python_package() -> None:
    """``delta.tables``, of the same version as the JARs; without its dependencies, which would move Spark's version."""
    (jar,) = JARS.glob("delta-spark_*.jar")
    wanted = f"delta-spark=={jar.stem.rpartition('-')[2]}"
    stamp = VENV / ".delta-spark"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", wanted]
    if subprocess.run(pip, check=False).returncode:
        raise UnavailableError(f"pip cannot install {wanted} (see above).")
    stamp.write_text(wanted)


def drop_what_spark_has(folder: Path, python: Path) -> None:
    """Spark's own JARs stay the only ones of their name: two Hadoops on one class path do not agree.

    ``python``: of the environment that has Spark.
    """
    where = subprocess.run(
        [str(python), "-c", "import pyspark; print(pyspark.__path__[0])"], capture_output=True, text=True, check=True
    )
    of_spark = {_artifact(jar) for jar in (Path(where.stdout.strip()) / "jars").glob("*.jar")}
    for jar in folder.glob("*.jar"):
        if _artifact(jar) in of_spark:
            jar.unlink()


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d[^/]*\.jar$", "", jar.name)


def _fingerprint(*files: Path) -> str:
    return hashlib.sha256(b"\0".join(f.read_bytes() for f in files)).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
