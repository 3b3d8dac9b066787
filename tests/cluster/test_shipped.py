"""The package comes with the program: executors, and the driver's own processes of Python, do not have it installed.

Each test runs the commands of delta_pyds/docs/pages/clusters.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.clusters import LOCAL_CLUSTER, ROOT, spark_home, wait_for_log
from tests.support.limits import ONLY_A_HANG_S

_PROGRAM = ROOT / "tests" / "cluster" / "shipped_program.py"
_SETTINGS = {
    "spark.executor.memory": "768m",
    "spark.driver.memory": "768m",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@dataclass(frozen=True)
class Shipped:
    """``zip``: the package. ``archive``: an environment that has it. ``without``: the Python of one that has all that
    it needs, but not the package itself. ``bare``: of one that has nothing."""

    directory: Path
    zip: Path
    archive: Path
    without: Path
    bare: Path


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    directory = tmp_path_factory.mktemp("shipped")
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory), str(ROOT)])
    [wheel] = directory.glob("*.whl")
    package = directory / "delta_pyds.zip"
    shutil.copy(wheel, package)
    environment, without = directory / "environment", directory / "without"
    _run([sys.executable, "-m", "venv", str(environment)])
    _run([str(environment / "bin" / "pip"), "install", "--quiet", "--no-compile", f"{wheel}"])
    archive = directory / "environment.tar.gz"
    _run(["tar", "-czf", str(archive), "-C", str(environment), "."])
    environment.rename(without)
    pip = [str(without / "bin" / "python"), "-m", "pip"]
    _run([*pip, "uninstall", "--quiet", "--yes", "delta-pyds"])
    bare = directory / "bare"
    _run([sys.executable, "-m", "venv", "--without-pip", str(bare)])
    return Shipped(directory, package, archive, without / "bin" / "python", bare / "bin" / "python")


def test_by_py_files(shipped: Shipped, tmp_path: Path) -> None:
    said = _submit(tmp_path, ["--py-files", str(shipped.zip)], shipped.without)
    assert said["places"] and all(".zip/delta_pyds/" in place for place in said["places"])


def test_by_an_archive(shipped: Shipped, tmp_path: Path) -> None:
    # the driver's own processes run the same Python, by the same name
    (tmp_path / "environment").mkdir()
    _run(["tar", "-xzf", str(shipped.archive), "-C", str(tmp_path / "environment")])
    said = _submit(tmp_path, ["--archives", f"{shipped.archive}#environment"], Path("./environment/bin/python"))
    assert said["places"] and all("/environment/lib/" in place for place in said["places"])


@contextmanager
def connect_server(directory: Path, python: Path) -> Iterator[str]:
    """A server of Spark Connect over a cluster, whose environment knows nothing of this checkout."""
    log = directory / "server.log"
    command = [
        *_spark_submit(directory),
        *("--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.connect.grpc.binding.port=0"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"),
    ]
    with log.open("w") as file:
        server = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=_environment(directory, python),
        )
    try:
        yield f"sc://127.0.0.1:{wait_for_log(server, log, 'Spark Connect server started at: .*?:([0-9]+)')}"
    finally:
        server.terminate()
        server.wait(ONLY_A_HANG_S)


def test_by_artifacts_of_connect(shipped: Shipped, tmp_path: Path) -> None:
    with connect_server(tmp_path, shipped.without) as url:
        said = _client(url, tmp_path, str(shipped.zip))
        assert said.get("places") and all(".zip/delta_pyds/" in place for place in said["places"]), said


def test_what_is_missing_is_said(shipped: Shipped, tmp_path: Path) -> None:
    said = _submit(tmp_path, ["--py-files", str(shipped.zip)], shipped.bare, driver=shipped.without)
    assert said["error"] == "WorkerPythonError"
    assert all(name in said["message"] for name in ("pyarrow", "msgspec", "pyroaring", "--archives"))
    both = ["--archives", f"{shipped.archive}#environment", "--py-files", str(shipped.zip)]
    said = _submit(tmp_path, both, Path("./environment/bin/python"), driver=shipped.without)
    assert said["error"] == "WorkerPythonError" and "unpack" in said["message"]


# --- processes


def _submit(directory: Path, arguments: list[str], python: Path, *, driver: Path | None = None) -> dict[str, Any]:
    """The output of the program. ``python``: of the executors; ``driver``: of the driver, by default the same."""
    command = [*_spark_submit(directory), *arguments, str(_PROGRAM), str(directory)]
    done = _run(command, cwd=directory, env=_environment(directory, python, driver))
    return _said(done)


def _client(url: str, directory: Path, shipped: str) -> dict[str, Any]:
    given = {**os.environ, "SPARK_REMOTE": url, "PYTHONPATH": str(ROOT)}
    return _said(_run([sys.executable, str(_PROGRAM), str(directory), shipped], cwd=directory, env=given))


def _spark_submit(directory: Path) -> list[str]:
    settings = [text for key, value in _SETTINGS.items() for text in ("--conf", f"{key}={value}")]
    return [str(spark_home(directory) / "bin" / "spark-submit"), "--master", LOCAL_CLUSTER, *settings]


def _environment(directory: Path, python: Path, driver: Path | None = None) -> dict[str, str]:
    """Nothing of this checkout is in it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV"))}
    return {
        **kept,
        "SPARK_HOME": str(spark_home(directory)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(driver or python),
    }


def _run(command: list[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=ONLY_A_HANG_S
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def _said(out: str) -> dict[str, Any]:
    [line] = re.findall(r"^\{.*\}$", out, re.MULTILINE)
    said: dict[str, Any] = json.loads(line)
    return said
