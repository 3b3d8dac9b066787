"""Environments below ``.sparks``, each with this checkout. One stays while what it installs is the same."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
HOME = CHECKOUT / ".sparks"


def environment(name: str, *packages: str) -> Path:
    """The Python of an environment with these packages; made if it is not there or old."""
    folder = HOME / name
    python, stamp = folder / "bin" / "python", folder / ".ready"
    parts = (sys.version, (CHECKOUT / "pyproject.toml").read_text(), *packages)
    fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return python
    print(f"Setting up .sparks/{name} (once) ...", flush=True)
    if not stamp.exists():
        # one that was left half made has no pip
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages, "-e", str(CHECKOUT)], check=True)
    stamp.write_text(fingerprint)
    return python
