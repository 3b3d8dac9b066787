"""One damage to one file of a table, as a seed and a number say.

Invariant: the same seed, number and table mean the same damage.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.byte_damage import damaged as damaged_bytes
from tests.fuzz.byte_damage import footer_start
from tests.fuzz.file_damage import add_file, replace_file, swap_file
from tests.fuzz.footer_damage import damaged_footer
from tests.fuzz.json_damage import damaged_lines
from tests.fuzz.parquet_damage import rewritten
from tests.fuzz.seals import damaged_vector, sealed_hint

_KINDS = (
    ("hint", r"_delta_log/_last_checkpoint"),
    ("checksum", r"_delta_log/\d{20}\.crc"),
    ("compaction", r"_delta_log/.*\.compacted\.json"),
    ("sidecar", r"_delta_log/_sidecars/.*"),
    ("checkpoint", r"_delta_log/\d{20}\.checkpoint\..*"),
    ("commit", r"_delta_log/\d{20}\.json"),
    ("vector", r".*deletion_vector_.*\.bin"),
    ("change file", r"_change_data/.*"),
    ("data file", r".*\.parquet"),
)
# files of the log decide more than the data files, which are many
_WEIGHTS = {"commit": 3, "checkpoint": 4, "sidecar": 4, "hint": 3, "checksum": 2, "compaction": 3, "vector": 4,
            "change file": 3, "data file": 2}  # fmt: skip


@dataclass(frozen=True)
class Damage:
    """The damage that was done.

    ``kind``: of the file. ``how``: "bytes", "footer bytes", "bounds" (swapped in a footer), "json", "parquet", "sealed"
    (changed, with a checksum that fits), "swap", "place" or "name".
    """

    kind: str
    how: str
    file: str
    what: str

    @property
    def unchecked(self) -> bool:
        """Whether the format has no check that could tell the damaged file from a valid other one.

        Commits, compactions and JSON checkpoints are plain text; a Parquet file's pages have checksums and its
        footer has none; a file of the right kind from elsewhere, or rewritten, is valid. Hints and deletion vectors
        have checksums, which a whole vector from elsewhere fits. What is added under another name, or is not a file, is
        not another valid file, unless it is a compaction: its actions stand for those of its commits.
        No hint and no checksum file decides which rows a table has, whatever they say.
        """
        if self.kind == "commit":
            return True
        if self.how == "name":
            return ".compacted.json" in self.what
        if self.kind == "vector":
            return self.how in ("sealed", "swap")
        if self.kind in ("compaction", "checkpoint") and self.file.endswith(".json"):
            return self.how in ("bytes", "json", "swap")
        return self.how in ("footer bytes", "parquet", "swap") and self.kind not in ("hint", "checksum")


def kind_of(file: str) -> str | None:
    """What a file of a table is, by its path below the root."""
    return next((kind for kind, pattern in _KINDS if re.fullmatch(pattern, file)), None)


def files_of(root: Path) -> dict[str, list[str]]:
    """The table's files by kind, in an order that does not change."""
    found: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*")):
        name = str(file.relative_to(root))
        kind = kind_of(name)
        if kind and stat.S_ISREG(file.lstat().st_mode):
            found.setdefault(kind, []).append(name)
    return found


# what ``apply`` can be asked for: anything, or one thing alone
PARTS = ("anything", "footers")


def apply(root: Path, others: Sequence[Path], random: Random, part: str = "anything") -> list[Damage]:
    """Damage the table at ``root``, once or now and then twice. ``others``: roots of tables to take files from.

    ``part``: one of ``PARTS``.
    """
    if part == "footers":
        return [_apply_to_footer(root, random)]
    sound = files_of(root)
    done = [_apply_one(root, sound, others, random)]
    if random.random() < 0.08:
        # without the file that the first damage changed or added
        left = {kind: [name for name in names if name != done[0].file] for kind, names in sound.items()}
        done.append(_apply_one(root, {kind: names for kind, names in left.items() if names}, others, random))
    return done


def _apply_one(root: Path, files: dict[str, list[str]], others: Sequence[Path], random: Random) -> Damage:
    """``files``: the files by kind that may be damaged."""
    kinds = sorted(files)
    if not kinds or random.random() < 0.05:
        return Damage("log", "name", "_delta_log", add_file(root / "_delta_log", random))
    kind = random.choices(kinds, [_WEIGHTS[k] for k in kinds])[0]
    name = random.choice(files[kind])
    file = root / name
    how = random.choices(["bytes", "content", "place", "swap"], [45, 45, 6, 4])[0]
    content = file.read_bytes()
    if how == "place":
        return Damage(kind, how, name, replace_file(file, random))
    if how == "swap":
        like = [o / f for o in (root, *others) for f in files_of(o).get(kind, ()) if o / f != file]
        if like:
            return Damage(kind, how, name, swap_file(file, like, random))
    if how == "content":
        if file.suffix == ".parquet":
            found = rewritten(content, random)
            if found is not None:
                file.write_bytes(found[0])
                return Damage(kind, "parquet", name, found[1])
        elif file.suffix == ".bin":
            new, what = damaged_vector(content, random)
            file.write_bytes(new)
            return Damage(kind, "sealed", name, what)
        else:
            text, what = damaged_lines(content.decode(errors="replace"), random)
            sealed = sealed_hint(text) if kind == "hint" and random.random() < 0.7 else None
            file.write_bytes((sealed or text).encode("utf-8", "surrogatepass"))
            return Damage(kind, "sealed" if sealed else "json", name, what)
    new, what = damaged_bytes(content, random)
    file.write_bytes(new)
    return Damage(kind, _region(content, new), name, what)


def _apply_to_footer(root: Path, random: Random) -> Damage:
    files = {k: found for k, names in files_of(root).items() if (found := [n for n in names if n.endswith(".parquet")])}
    kinds = sorted(files)
    kind = random.choices(kinds, [_WEIGHTS[k] for k in kinds])[0]
    name = random.choice(files[kind])
    new, what, how = damaged_footer((root / name).read_bytes(), random)
    (root / name).write_bytes(new)
    return Damage(kind, how, name, what)


def _region(old: bytes, new: bytes) -> str:
    if old[:4] != b"PAR1" or old[-4:] != b"PAR1" or len(old) != len(new):
        return "bytes"
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b), len(old))
    return "footer bytes" if first >= footer_start(old) else "bytes"
