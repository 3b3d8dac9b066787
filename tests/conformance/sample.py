"""The tables of a sampled conformance run, as arguments of the runner: ``--only NAME`` for each.

Run as ``python -m tests.conformance.sample GOLDEN [ONE_IN]``. Every table with a feature that no other table of the
sample has is in it too, so that no feature goes unread.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.support.sampling import sampled


def tables(manifest: Path, one_in: int) -> list[str]:
    """Names of a sample that covers every group (feature tag) of the manifest."""
    groups = {t["name"]: frozenset(t.get("group", ())) for t in json.loads(manifest.read_text())["tables"]}
    names = sampled(groups, one_in)
    seen = frozenset().union(*(groups[name] for name in names))
    for name, tags in groups.items():
        if tags - seen:
            names.append(name)
            seen |= tags
    return names


def main() -> None:
    golden = Path(sys.argv[1])
    one_in = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    print(" ".join(f"--only {name}" for name in tables(golden / "expected.json", one_in)))


if __name__ == "__main__":
    main()
