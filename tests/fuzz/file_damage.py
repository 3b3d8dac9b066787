"""Damage to the directory instead of a file's content: entries that are not files, missing files, unnamed files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from random import Random


def replace_file(file: Path, random: Random) -> str:
    """Something else in the file's place."""
    kind = random.choice(
        ["fifo", "directory", "zero", "loop", "nowhere", "empty", "removed", "passwd", "full directory"]
    )
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "directory":
        file.mkdir()
    elif kind == "full directory":
        file.mkdir()
        (file / "x").write_bytes(b"x")
    elif kind == "zero":
        file.symlink_to("/dev/zero")
    elif kind == "loop":
        file.symlink_to(file)
    elif kind == "nowhere":
        file.symlink_to("/nonexistent/x")
    elif kind == "passwd":
        file.symlink_to("/etc/passwd")
    elif kind == "empty":
        file.write_bytes(b"")
    return kind


def swap_file(file: Path, others: list[Path], random: Random) -> str:
    """The content of another file of the same kind."""
    other = random.choice(others)
    content = other.read_bytes()
    file.write_bytes(content)
    return f"the content of {other.parent.name}/{other.name}"


def add_file(log: Path, random: Random) -> str:
    """A file in the log that no writer put there."""
    version = random.choice([0, 1, 2, 3, 4, 5, 6, 7, 50])
    name = random.choice(_NAMES).format(v=version, w=random.choice([0, 1, 3, 10**9, 10**19]))
    content = random.choice([b"", b"x", b"{}", b"PAR1", b"null\n", b'{"commitInfo":{}}\n', b"{" * 6_000, b"\0" * 4_096])
    target = log / name if "\udcff" not in name else Path(os.fsdecode(os.fsencode(str(log / name))))
    if target.is_dir():
        target = target / "x.json"
        target.mkdir()
    elif target.exists() or target.is_symlink():
        shutil.copy(target, log / f"{name}.copy")
        name += ".copy"
    elif random.random() < 0.15:
        target.mkdir()
        content = b"(a directory)"
    elif random.random() < 0.1:
        os.mkfifo(target)
        content = b"(a FIFO)"
    else:
        target.write_bytes(content)
    return f"{name!a} added, {content[:20]!r}"


_NAMES = (
    "{v:020d}.checkpoint.0000000001.0100000000.parquet", "{v:020d}.checkpoint.0000000001.9999999999.parquet",
    "{v:020d}.checkpoint.0000000000.0000000000.parquet", "{v:020d}.checkpoint.0000000003.0000000002.parquet",
    "{v:020d}.checkpoint.0000000001.0000000001.parquet", "{v:020d}.checkpoint.1.2.parquet",
    "{v:020d}.checkpoint.parquet", "{v:020d}.checkpoint.00000000-0000-4000-8000-000000000000.json",
    "{v:020d}.checkpoint.00000000-0000-4000-8000-000000000000.parquet", "{v:020d}.checkpoint.x.json",
    "{v:020d}.{w:020d}.compacted.json", "{w:020d}.{v:020d}.compacted.json", "{v:020d}.crc", "{w:020d}.crc",
    "99999999999999999999.json", "09223372036854775807.json", "09223372036854775808.json", "{w:020d}.json",
    "{v:020d}.JSON", "{v:019d}.json", "{v:021d}.json", "-000000000000000001.json", "_last_checkpoint",
    "_last_checkpoint.tmp", "{v:020d}.json.tmp", "\udcff.json", "{v:020d}.\udcff.json", "a\nb.json",
    "{v:020d}.\x1b.crc", "_sidecars", "_commits",
    "09223372036854775807.checkpoint.parquet", "{w:020d}.checkpoint.parquet", "\u0660" * 20 + ".json",
)  # fmt: skip
