"""``deltapy run``: the program runs with the environment that installs delta_pyds in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.installed_programs import CHECKOUT, run_python


def _run(*arguments: str, path: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "delta_pyds.cli.main", "run", *arguments, path=path, **variables)


def test_the_program_gets_its_arguments_and_its_status_is_ours() -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ['DELTA_PYDS_INSTALL']); sys.exit(7)"
    done = _run("--", sys.executable, "-c", code, "--version", "a b")
    assert (done.returncode, done.stdout, done.stderr) == (7, "['--version', 'a b'] delta\n", "")
    code = "import sys; print([m for m in sys.modules if m.startswith('delta_pyds')][-1])"
    assert _run(sys.executable, "-c", code).stdout == "delta_pyds.spark.install.startup\n"


def test_options_come_before_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    names = ("DELTA_PYDS_INSTALL", "DELTA_PYDS_INSTALL_REQUIRED")
    program.write_text(f"import os; print([os.environ.get(name) for name in {names}])")
    assert _run(str(program)).stdout == "['delta', None]\n"
    assert _run("--required", "--format", "deltapy", "--", str(program)).stdout == "['deltapy', '1']\n"


def test_a_program_that_is_not_there_is_an_invalid_argument() -> None:
    done = _run("--", "no-such-program")
    assert done.returncode == 2 and "there is no program 'no-such-program' on PATH" in done.stderr
    done = _run("--")
    assert done.returncode == 2 and "deltapy run -- PROGRAM ARGS" in done.stderr


def test_another_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.theirs = __name__")
    done = _run("--", sys.executable, "-c", "print(theirs)", path=str(tmp_path))
    assert (done.stdout, done.stderr) == ("sitecustomize\n", "")


def test_a_python_with_spark_and_without_this_package_says_so(tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").touch()
    (tmp_path / "child.py").write_text("import subprocess, sys; subprocess.run([sys.executable, '-c', ''], check=True)")
    bare = (
        f"import os; os.environ['PYTHONPATH'] = os.environ['PYTHONPATH'].replace({str(CHECKOUT)!r}, {str(tmp_path)!r})"
    )
    folder = CHECKOUT / "delta_pyds" / "cli" / "child"
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{tmp_path}", "DELTA_PYDS_INSTALL": "delta"}
    # -S: no directory of packages; then what site does there
    code = "import site; site.execsitecustomize(); import runpy; runpy.run_path('child.py')"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and bare
    assert "has no package delta_pyds, so nothing is installed there" in done.stderr
    assert done.stderr.count("\n") == 1
