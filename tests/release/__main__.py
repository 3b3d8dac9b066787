"""``make dist``: the sdist and the wheel of a release, in ``dist``, checked.

Two builds are equal byte for byte. ``twine check`` accepts the metadata. The wheel installs and works on a machine
without git, and Python then reads ``DELTA_PYDS_INSTALL``. Unit tests pass in the unpacked sdist, with the wheel and
nothing beside it: a quarter of their files, chosen by the commit, or all with ``EXHAUSTIVE=1``. ``--no-tests`` leaves
the last step out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.support.sampling import part_of

CHECKOUT = Path(__file__).resolve().parents[2]
DIST = CHECKOUT / "dist"
# the builder and its backend are pinned: another version may build other bytes
_BUILDERS = ("build==1.6.1", "hatchling==1.33.0", "twine==7.0.0")
_ONE_FILE_IN = 4
_USES = """
import os, delta_pyds
import pyspark_deltapy
from pyspark.sql import SparkSession
assert not os.popen("git --version 2>/dev/null").read()
assert delta_pyds.install(delta=True).modules
import delta.tables
print("The wheel of version", delta_pyds.__version__, "works.")
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make dist")
    parser.add_argument("--no-tests", action="store_true", help="do not run the tests of the sdist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        builders = _environment(folder / "builders", *_BUILDERS)
        shutil.rmtree(DIST, ignore_errors=True)
        _build(builders, DIST)
        _build(builders, folder / "again")
        files = sorted(DIST.iterdir())
        if {path.name: _digest(path) for path in files} != {
            path.name: _digest(path) for path in (folder / "again").iterdir()
        }:
            print("Two builds of the same commit differ.", file=sys.stderr)
            return 1
        _run([builders, "-m", "twine", "check", "--strict", *files])
        wheel = next(path for path in files if path.suffix == ".whl")
        sdist = next(path for path in files if path.suffix == ".gz")
        user = _environment(folder / "user", f"{wheel}[spark]", path=_without_git(folder))
        _run([user, "-c", _USES], cwd=folder, path=_without_git(folder))
        _check_start(user, folder)
        if not options.no_tests:
            _test(sdist, wheel, folder)
    for path in files:
        print(f"{_digest(path)}  {path.relative_to(CHECKOUT)}")
    return 0


def _environment(folder: Path, *packages: str, path: str | None = None) -> Path:
    _run([sys.executable, "-m", "venv", folder])
    python = folder / "bin" / "python"
    _run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], path=path)
    return python


def _check_start(python: Path, folder: Path) -> None:
    """Whether the wheel has the ``.pth`` by which Python starts us: a wrong value is refused in words."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment["DELTA_PYDS_INSTALL"] = "yes"
    done = subprocess.run([python, "-c", ""], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    refused = "delta_pyds is not installed in this program, because DELTA_PYDS_INSTALL is 'yes', but must be"
    if refused not in done.stderr:
        raise AssertionError(f"Python did not start delta_pyds: {done.stderr!r}")


def _build(python: Path, folder: Path) -> None:
    """Build the sdist, and the wheel from the sdist."""
    _run([python, "-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT], quiet=True)


def _test(sdist: Path, wheel: Path, folder: Path) -> None:
    """Run unit tests in the unpacked sdist, with the wheel and the packages that its extra ``dev`` names."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    [root] = (folder / "sdist").iterdir()
    python = _environment(folder / "tester", f"{wheel}[dev]")
    files = part_of(sorted(str(path.relative_to(root)) for path in root.glob("tests/unit/**/test_*.py")), _ONE_FILE_IN)
    _run([python, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", *files], cwd=root)


def _without_git(folder: Path) -> str:
    """A PATH of links to the programs of this one, except git."""
    links = folder / "programs"
    if not links.exists():
        links.mkdir()
        for directory in map(Path, os.environ["PATH"].split(os.pathsep)):
            for program in directory.iterdir() if directory.is_dir() else ():
                if not program.name.startswith("git") and not (links / program.name).is_symlink():
                    (links / program.name).symlink_to(program)
    return str(links)


def _run(command: list[object], *, cwd: Path | None = None, path: str | None = None, quiet: bool = False) -> None:
    environment = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    environment.setdefault("SOURCE_DATE_EPOCH", _time_of_commit())
    environment |= {} if path is None else {"PATH": path}
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(list(map(str, command)), cwd=cwd, env=environment, stdout=output, check=True)


def _time_of_commit() -> str:
    """The time of the commit; without git, the same time for every build."""
    try:
        done = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=CHECKOUT, capture_output=True, text=True, check=False
        )
    except OSError:
        return "1580601600"
    return done.stdout.strip() or "1580601600"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
