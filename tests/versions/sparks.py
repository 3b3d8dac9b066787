"""The Sparks that the package promises besides the newest one, and the environment of each below ``.sparks``.

An environment has one PySpark with Spark Connect, this checkout and what the core of tests needs. It stays while this
file and ``pyproject.toml`` are as they were.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".sparks"
# the newest patch of each; the newest Spark of all is in .venv, where all tests run
SPARKS = {"4.0": "4.0.5", "4.1": "4.1.4", "4.2": "4.2.1"}
_PACKAGES = ("pandas<3", "chispa>=0.10", "pytest>=8.0", "pytest-xdist>=3.6", "hypothesis>=6.100")


def environment(spark: str) -> Path:
    """The Python of the environment for a Spark such as ``4.1``; made if it is not there or old."""
    folder = HOME / spark
    python, stamp = folder / "bin" / "python", folder / ".ready"
    files = (Path(__file__), CHECKOUT / "pyproject.toml")
    fingerprint = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return python
    print(f"Setting up .sparks/{spark} (once; this downloads PySpark {SPARKS[spark]}) ...", flush=True)
    if not stamp.exists():
        # one that was left half made has no pip
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"pyspark[connect]=={SPARKS[spark]}", *_PACKAGES, "-e", str(CHECKOUT)], check=True)
    stamp.write_text(fingerprint)
    return python
