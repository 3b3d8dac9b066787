"""``DELTA_PYDS_INSTALL``: real Pythons, with a PySpark that is too old for delta_pyds and one that is ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.installed_programs import CHECKOUT, run_python

DISCOVERY = CHECKOUT / "delta_pyds" / "spark" / "discovery"
# what Python does with the directory where pip puts the wheel's top-level files
_SITE = f"import site; site.addsitedir({str(DISCOVERY)!r}); import sys; "
_OLD_SESSION = """
class SparkSession:
    class Builder:
        def getOrCreate(self):
            return "a session"
    def __init__(self):
        pass
"""


def _run(code: str, *, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return run_python("-c", _SITE + code, path=path, **variables)


@pytest.fixture
def old(tmp_path: Path) -> str:
    """The path of a PySpark without Python data sources."""
    for package in ("pyspark", "pyspark/sql"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "pyspark/sql/session.py").write_text(_OLD_SESSION)
    return str(tmp_path)


def test_without_the_variable_nothing_is_loaded() -> None:
    done = _run("print([name for name in sys.modules if name.startswith(('delta', 'pyspark'))], len(sys.meta_path))")
    plain = _run("print([], len(sys.meta_path))")
    assert done.stdout == plain.stdout and done.stderr == ""


def test_a_process_without_a_session_loads_only_the_hook() -> None:
    """As a worker of Spark, which imports PySpark and creates no session."""
    code = "import pyspark.sql, pyspark.worker; print([m for m in sys.modules if m.startswith('delta_pyds')])"
    done = _run(code, DELTA_PYDS_INSTALL="delta")
    assert done.stderr == ""
    loaded = ["delta_pyds", "delta_pyds.spark", "delta_pyds.spark.install", "delta_pyds.spark.install.startup"]
    assert done.stdout == f"{loaded}\n"


def test_import_delta_installs_and_finds_our_modules() -> None:
    code = (
        "import delta.tables, delta, inspect, pyspark.sql.session as s; "
        "print(delta.tables.DeltaTable.__module__, delta is sys.modules['delta'], len(sys.meta_path)); "
        "print(s.SparkSession.sql.__code__.co_filename, len(inspect.getsource(s)) > 1000)"
    )
    done = _run("before = len(sys.meta_path) - 1; " + code, DELTA_PYDS_INSTALL=" Delta ")
    assert done.returncode == 0, done.stderr
    assert "delta_pyds.spark.delta_table.table True" in done.stdout and "patches.py True" in done.stdout
    assert "ModuleNotFoundError" in _run("import delta.tables", DELTA_PYDS_INSTALL="deltapy").stderr


def test_a_package_delta_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("whose = 'theirs'")
    done = _run("import delta; print(delta.whose)", path=str(tmp_path), DELTA_PYDS_INSTALL="delta")
    assert (done.stdout, done.stderr) == ("theirs\n", "")


def test_a_failure_is_one_sentence_and_the_program_goes_on(old: str) -> None:
    code = (
        "from pyspark.sql.session import SparkSession as S; print([S.Builder().getOrCreate() for _ in range(2)]); S()"
    )
    done = _run(code, path=old, DELTA_PYDS_INSTALL="delta")
    assert done.returncode == 0 and done.stdout == "['a session', 'a session']\n"
    assert (
        done.stderr.startswith("delta_pyds is not installed in this program, because ") and done.stderr.count("\n") == 1
    )
    required = _run(code, path=old, DELTA_PYDS_INSTALL="delta", DELTA_PYDS_INSTALL_REQUIRED="1")
    assert required.returncode == 1 and required.stdout == ""


def test_another_value_is_refused_in_one_sentence() -> None:
    done = _run("print(1)", DELTA_PYDS_INSTALL="yes")
    assert done.stdout == "1\n"
    assert done.stderr == (
        "delta_pyds is not installed in this program, because DELTA_PYDS_INSTALL is 'yes', but must be delta or "
        "deltapy.\n"
    )


def test_the_wheel_has_the_files_at_its_top_level() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text()
    for path in DISCOVERY.iterdir():
        if path.suffix in (".py", ".pth"):
            assert f'"{path.relative_to(CHECKOUT)}" = "{path.name}"\n' in text
