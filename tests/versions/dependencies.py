"""The oldest and the newest of each dependency that ``pyproject.toml`` promises, without Spark.

The oldest environment has pandas 2. The newest one has the newest pandas.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.versions.environments import CHECKOUT, environment

# extras whose packages a process of the core may load
_EXTRAS = ("s3", "gcs", "azure", "progress", "unity")
# without moto, whose boto3 needs another botocore than s3fs
_TESTS = ("pytest>=8.0", "pytest-xdist>=3.6", "hypothesis>=6.100", "deltalake>=1.1", "duckdb>=1.1", "polars>=1.20")
# the tests name types of PySpark, and start no session
_BESIDE = {"oldest": ("pyspark", "pandas<3"), "newest": ("pyspark", "pandas")}
AGES = tuple(_BESIDE)
_NEEDS_MOTO = (
    "storage/test_s3.py",
    "storage/test_requests.py",
    "table/stream/test_commit_poller.py",
    "table/transaction/test_log_continuity.py",
    "catalog/test_unity.py",
)
UNITS = ("tests/unit", *(f"--ignore=tests/unit/{name}" for name in ("spark", *_NEEDS_MOTO)))


def dependencies_environment(age: str) -> Path:
    """The Python of the environment with the ``oldest`` or the ``newest`` packages, of the running Python's version."""
    found = promised()
    packages = [name if age == "newest" else f"{name}=={version}" for name, version in found.items()]
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return environment(f"{python}-{age}", *packages, *_BESIDE[age], *_TESTS)


def promised() -> dict[str, str]:
    """The oldest version of each package. Python 3.10 has no reader of TOML, and each list stands in its own lines."""
    text = (CHECKOUT / "pyproject.toml").read_text()
    lists = [re.search(rf"^{re.escape(key)} = \[(.*?)\]$", text, re.M | re.S) for key in ("dependencies", *_EXTRAS)]
    assert all(lists), "pyproject.toml has other lists"
    entries = [entry for found in lists if found for entry in re.findall(r'"([\w-]+)>=([\d.]+)"', found[1])]
    assert len(entries) >= len(lists), entries
    return dict(entries)
