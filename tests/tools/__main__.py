"""``make test-tools``: programs of tools above Spark, each in its own environment, with ``DELTA_PYDS_INSTALL=delta``.

An environment has the wheel of this checkout, because Python reads the variable by a file of the wheel. If all tools
ran, the table of the page "Works with" is written. ``--tool dbt``: only this one, and no table.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.written_tables import replace_rows
from tests.tools.tools import TOOLS, Tool

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".tools"
PAGE = CHECKOUT / "delta_pyds" / "docs" / "pages" / "works-with.md"
BEGIN = "<!-- make test-tools writes this table -->"
_LIMIT_S = 900


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-tools")
    parser.add_argument("--tool", action="append", choices=list(TOOLS), help="only this tool")
    chosen = parser.parse_args().tool or list(TOOLS)
    outcomes = {}
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _wheel(Path(scratch))
        for name in chosen:
            print(f"== {TOOLS[name].version}", flush=True)
            outcomes[name] = _works(_environment(name, TOOLS[name], wheel), name)
            print("It works." if outcomes[name] else "It does not work.", flush=True)
    if chosen == list(TOOLS):
        write_table(outcomes)
    return 0 if all(outcomes.values()) else 1


def _wheel(folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(CHECKOUT)], check=True)
    return next(folder.glob("*.whl"))


def _environment(name: str, tool: Tool, wheel: Path) -> Path:
    """The Python of the tool's environment below ``.tools``, with the newest wheel."""
    folder = HOME / name
    python, stamp = folder / "bin" / "python", folder / ".ready"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not stamp.exists() or stamp.read_text() != repr(tool.packages):
        print(f"Setting up .tools/{name} (once) ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([*pip, *tool.packages, str(wheel)], check=True)
        stamp.write_text(repr(tool.packages))
    else:
        subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)], check=True)
    return python


def _works(python: Path, name: str) -> bool:
    """Whether the program of the tool ends well."""
    program = Path(__file__).parent / "programs" / f"try_{name}.py"
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    environment |= {
        "DELTA_PYDS_INSTALL": "delta",
        "DELTA_PYDS_INSTALL_REQUIRED": "1",
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # tools read settings of the user there
        "HOME": tempfile.gettempdir(),
    }
    with tempfile.TemporaryDirectory() as work:
        try:
            done = subprocess.run([str(python), str(program)], cwd=work, env=environment, timeout=_LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            print("The program did not end in time.", file=sys.stderr)
            return False
    return done.returncode == 0


def write_table(outcomes: dict[str, bool]) -> None:
    """Replace the table of tools."""
    rows = ["| tool | tested | works |", "|---|---|---|"]
    for name, works in outcomes.items():
        rows.append(f"| {TOOLS[name].version} | {TOOLS[name].tried} | {'yes' if works else 'no'} |")
    replace_rows(PAGE, BEGIN, rows)


if __name__ == "__main__":
    sys.exit(main())
