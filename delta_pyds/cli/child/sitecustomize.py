"""Python imports this module when it starts in a program of ``deltapy run``.

Invariant: another ``sitecustomize``, which this one hides, runs as before.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_VARIABLE = "DELTA_PYDS_INSTALL"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _run_hidden() -> None:
    """Run the ``sitecustomize`` that Python would have found without this one."""
    rest = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    spec = PathFinder.find_spec("sitecustomize", rest)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _start() -> None:
    try:
        startup = importlib.import_module("delta_pyds.spark.install.startup")
    except ImportError:
        if importlib.util.find_spec("pyspark") is None:
            return  # this Python runs no Spark
        text = (
            f"deltapy run: the Python {sys.executable} has no package delta_pyds, so nothing is installed there. "
            "Run pip install delta-pyds in its environment."
        )
        if os.environ.get("DELTA_PYDS_INSTALL_REQUIRED"):
            sys.exit(text)
        print(text, file=sys.stderr)
        os.environ[_VARIABLE] = ""  # processes of this one do not say it again
    else:
        startup.start()


if __name__ == "sitecustomize":
    if os.environ.get(_VARIABLE):
        _start()
    _run_hidden()
