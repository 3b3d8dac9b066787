"""The choice of files of a clustered table to cluster again, by the tags that both engines write.

A ZCube is the set of files that one bin of one run has written. Their tags have the same ZCUBE_ID and the clustering
columns. Large ZCubes stay; small ones are clustered again, together with unclustered files.

Protocol: "Clustered Table" (the provider); the tags are the reference's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from delta_pyds.commands.layout.bins import Sizes
from delta_pyds.protocol.actions import AddFile

PROVIDER = "liquid"
ID_TAG = "ZCUBE_ID"
COLUMNS_TAG = "ZCUBE_ZORDER_BY"


@dataclass(frozen=True)
class Cube:
    """A ZCube. ``columns``: logical names, as SQL writes them."""

    id: str
    columns: tuple[str, ...]


def new_cube_tags(columns: Sequence[str]) -> dict[str, str]:
    """The tags of the files of one new cube."""
    return {
        ID_TAG: str(uuid.uuid4()),
        COLUMNS_TAG: json.dumps(list(columns), separators=(",", ":"), ensure_ascii=False),
    }


def cube_of(file: AddFile) -> Cube | None:
    """The cube of a file; None if its tags name no cube."""
    tags = file.tags or {}
    cube, columns = tags.get(ID_TAG), tags.get(COLUMNS_TAG)
    if cube is None or columns is None:
        return None
    try:
        names = json.loads(columns)
    except (ValueError, RecursionError):
        return None
    return Cube(cube, tuple(names)) if isinstance(names, list) and all(isinstance(n, str) for n in names) else None


def files_to_cluster(files: Sequence[AddFile], columns: Sequence[str], sizes: Sizes, *, full: bool) -> list[AddFile]:
    """The files that a run rewrites, cube after cube.

    ``full``: also the files that were clustered by other columns, or by another provider. A single small cube stays.
    """
    ordered = sorted(
        files, key=lambda file: ((file.tags or {}).get(ID_TAG) is not None, (file.tags or {}).get(ID_TAG) or "")
    )
    ours: list[AddFile] = []
    others: list[AddFile] = []
    for file in ordered:
        (ours if _is_ours(file, tuple(columns)) else others).append(file)
    totals: dict[str, int] = {}
    for file in ours:
        cube = cube_of(file)
        if cube is not None:
            totals[cube.id] = totals.get(cube.id, 0) + file.size
    large = {cube for cube, total in totals.items() if total >= sizes.min_cube_bytes}
    taken = [file for file in ours if (cube := cube_of(file)) is None or cube.id not in large]
    if full and others:
        return [*taken, *others]
    known = [cube_of(file) for file in taken]
    if known and known[0] is not None and all(cube == known[0] for cube in known):
        return []
    return taken


def _is_ours(file: AddFile, columns: tuple[str, ...]) -> bool:
    if file.clustering_provider not in (None, PROVIDER):
        return False
    cube = cube_of(file)
    return cube is None or cube.columns == columns
