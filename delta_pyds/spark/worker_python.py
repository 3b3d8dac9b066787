"""The check that the Python of Spark's workers has this package, before a worker fails.

Without ``PYSPARK_PYTHON`` it is the first ``python3`` of the PATH. The user's
program may run with another one. Spark then only shows the traceback of a
worker.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from typing import Any

from pyspark.sql import SparkSession

from delta_pyds.errors import WorkerPythonError
from delta_pyds.spark.active_session import is_remote

logger = logging.getLogger(__name__)

# delta_pyds itself, and what its workers import
_MODULES = ("delta_pyds", "pyarrow", "msgspec", "pyroaring", "fsspec")
_ASK = (
    "import importlib.util as u, sys; "
    f"print(sys.version.split()[0], *[n for n in {_MODULES!r} if u.find_spec(n) is None])"
)
_ARCHIVES = (
    " --py-files and addPyFile send only pure Python, such as this package. Its dependencies are not pure Python: send "
    "an environment that has all of them by --archives."
)
# only an interpreter that hangs takes so long; then nothing is refused here
_LIMIT_S = 120
# (interpreter, search path) to the reason against it; a process asks each once
_answers: dict[tuple[str, str], WorkerPythonError | None] = {}


def check_worker_python(spark: SparkSession) -> None:
    """Make sure that the interpreter of the workers can run the source, as far as this machine can tell.

    The driver plans and commits with it on this machine, on every cluster. On Spark Connect the interpreter is the
    server's, so nothing is checked; ``error_of`` says what was missing after a failure.

    Raises: WorkerPythonError naming the interpreter, what it lacks, and what to set.
    """
    if is_remote(spark):
        return
    context = spark.sparkContext
    interpreter = str(context.pythonExec)
    found = shutil.which(interpreter)
    if found == sys.executable:
        return
    search_path = _search_path(context)
    key = interpreter, search_path
    if key not in _answers:
        _answers[key] = _ask(interpreter, found, search_path)
    error = _answers[key]
    if error is not None:
        raise WorkerPythonError(error.message, **error.parameters)


def _search_path(context: Any) -> str:
    """The search path of a worker before its own directories: files that the user has sent, and PYTHONPATH."""
    from pyspark import SparkFiles

    root = SparkFiles.getRootDirectory()
    sent = [os.path.join(root, name) for name in context._python_includes]
    return os.pathsep.join([root, *sent, os.environ.get("PYTHONPATH", "")])


def _ask(interpreter: str, found: str | None, search_path: str) -> WorkerPythonError | None:
    if found is None:
        if os.path.dirname(interpreter) and not os.path.isabs(interpreter):
            return WorkerPythonError(
                f"Spark runs its workers with {interpreter}, also on the driver, to plan and to commit. There is no "
                f"such program in the driver's working directory, {os.getcwd()}. If it comes from an archive for the "
                "executors, unpack that archive in that directory, too, under the same name.",
                interpreter=interpreter,
            )
        return _refusal(interpreter, "there is no such program", interpreter)
    try:
        done = subprocess.run(
            [found, "-c", _ASK],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            env={**os.environ, "PYTHONPATH": search_path},
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        logger.warning("The check whether Spark's Python %s has delta_pyds failed: %s", found, e)
        return None
    words = done.stdout.split()
    if done.returncode != 0 or not words:
        logger.warning("The check whether Spark's Python %s has delta_pyds failed: %s", found, done.stderr[-300:])
        return None
    version, missing = words[0], words[1:]
    if missing:
        more = "" if _MODULES[0] in missing else _ARCHIVES
        return _refusal(interpreter, f"it has no {', '.join(missing)}", found, more)
    if version.split(".")[:2] != [str(part) for part in sys.version_info[:2]]:
        return _refusal(interpreter, f"it is Python {version}, and this is {sys.version.split()[0]}", found)
    return None


def _refusal(interpreter: str, problem: str, found: str, more: str = "") -> WorkerPythonError:
    reason = "by PYSPARK_PYTHON" if os.environ.get("PYSPARK_PYTHON") else "PYSPARK_PYTHON is not set"
    return WorkerPythonError(
        f"Spark runs its workers with {found} ({reason}), but {problem}. Set PYSPARK_PYTHON before the session starts, "
        f"with export PYSPARK_PYTHON={sys.executable} or os.environ['PYSPARK_PYTHON'] = sys.executable, and start "
        f"the session again; or install delta_pyds there.{more}",
        interpreter=interpreter,
    )
