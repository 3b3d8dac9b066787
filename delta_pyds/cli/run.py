"""``deltapy run -- PROGRAM ARGS``: a program in whose Spark sessions delta_pyds is installed, without a change of it.

The program gets the environment variable that ``delta_pyds.spark.install.startup`` reads. A directory on its
``PYTHONPATH`` makes Python read it, even if Python does not process the ``.pth`` file of the package.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import delta_pyds.cli.child as child
from delta_pyds.errors import OptionError


def run(arguments: argparse.Namespace) -> int:
    """Replace this process with the program. Its exit status is the status of the command.

    Raises: OptionError if the program is missing, or cannot be found.
    """
    given = arguments.program[1:] if arguments.program[:1] == ["--"] else arguments.program
    if not given:
        raise OptionError("the program is missing: write deltapy run -- PROGRAM ARGS.", option="program")
    command = _command(given)
    environment = _environment(arguments)
    if os.name != "nt":  # Windows cannot replace a process
        sys.stdout.flush()
        os.execve(command[0], command, environment)
    return subprocess.call(command, env=environment)


def _command(given: list[str]) -> list[str]:
    """The program with the path of its file, and its arguments. The Python of this process runs a ``.py`` file."""
    program = given[0]
    found = shutil.which(program)
    if found is not None:
        return [found, *given[1:]]
    if program.endswith(".py") and Path(program).is_file():
        return [sys.executable, *given]
    raise OptionError(
        f"there is no program {program!r:.200} on PATH, and it is not a .py file. Write the path of its file.",
        option="program",
    )


def _environment(arguments: argparse.Namespace) -> dict[str, str]:
    folder = str(Path(child.__file__).parent)
    before = os.environ.get("PYTHONPATH", "")
    # an empty entry would be the working directory
    found = {
        **os.environ,
        "DELTA_PYDS_INSTALL": arguments.format,
        "PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else folder,
    }
    if arguments.required:
        found["DELTA_PYDS_INSTALL_REQUIRED"] = "1"
    return found
