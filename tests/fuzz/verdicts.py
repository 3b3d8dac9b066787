"""What a damage led to, and the summary of many."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.fuzz.damage import Damage
from tests.fuzz.operations import Outcome

# What must not happen.
FAULTS = ("crash", "hang", "exception", "bad message", "wrong rows", "outlived", "verify raised")
# Rows of another table, in a place for which the format has no check.
UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Verdict:
    """Of one operation. ``kind``: "same", "refused", ``UNCHECKED``, or one of ``FAULTS``."""

    operation: str
    kind: str
    text: str = ""


@dataclass(frozen=True)
class Result:
    """Of one damaged table.

    ``verify_names_it``: whether ``verify`` found something; None where nobody asked. ``through``: "core" or "spark".
    """

    number: int
    table: str
    damages: Sequence[Damage]
    verdicts: Sequence[Verdict]
    verify_names_it: bool | None = None
    memory_mb: int = 0
    through: str = "core"

    @property
    def faults(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.kind in FAULTS]

    @property
    def kind(self) -> str:
        """The worst of all verdicts, in a word."""
        kinds = {v.kind for v in self.verdicts}
        return next((k for k in (*FAULTS, UNCHECKED, "refused") if k in kinds), "same")


def verdict(operation: str, outcome: Outcome, expected: Outcome, damages: Sequence[Damage]) -> Verdict:
    """What is to be said of an outcome, given that of the sound table."""
    if outcome.kind in ("exception", "bad message"):
        return Verdict(operation, outcome.kind, outcome.text)
    if outcome.kind == "error":
        raised = operation == "verify" and "DELTA_MISSING_DELTA_TABLE" not in outcome.text
        return Verdict(operation, "verify raised" if raised else "refused", outcome.text)
    if outcome.rows == expected.rows:
        return Verdict(operation, "same")
    # Spark's own reader believes the bounds of a footer, and the reference reads by it
    believed = operation.startswith("native") and any(d.how == "bounds" for d in damages)
    unchecked = believed or any(d.unchecked for d in damages)
    return Verdict(operation, UNCHECKED if unchecked else "wrong rows", _difference(outcome, expected))


def _difference(outcome: Outcome, expected: Outcome) -> str:
    more, fewer = outcome.rows - expected.rows, expected.rows - outcome.rows
    parts = [f"{sum(outcome.rows.values())} rows instead of {sum(expected.rows.values())}"]
    for name, rows in (("more", more), ("missing", fewer)):
        if rows:
            parts.append(f"{name}: {next(iter(rows))[:300]}")
    return "; ".join(parts)


class Summary:
    """Counts of many results, and where the faults are."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.operations: Counter[tuple[str, str]] = Counter()
        self.kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.named: Counter[tuple[str, str]] = Counter()
        self.places: dict[str, list[tuple[Result, Verdict]]] = defaultdict(list)
        self.memory_mb = 0

    def add(self, result: Result) -> None:
        self.counts[result.kind] += 1
        self.memory_mb = max(self.memory_mb, result.memory_mb)
        for v in result.verdicts:
            self.operations[v.operation.split()[0], v.kind] += 1
        for d in result.damages:
            self.kinds[d.kind, d.how][result.kind] += 1
        if result.kind == UNCHECKED and result.verify_names_it:
            for d in result.damages:
                self.named[d.kind, d.how] += 1
        for v in result.faults:
            self.places[_place(v)].append((result, v))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def num_faults(self) -> int:
        """Damaged tables with a fault."""
        return sum(self.counts[k] for k in FAULTS)

    def lines(self) -> Iterable[str]:
        """The summary, to print."""
        yield f"{self.total} damaged tables, at most {self.memory_mb} MB:"
        for kind in ("same", "refused", UNCHECKED, *FAULTS):
            yield f"  {self.counts[kind]:7} {_SAID[kind]}"
        if self.counts[UNCHECKED]:
            yield "Other rows, by what was damaged (file, how): tables, of these named by verify"
            for key, counts in sorted(self.kinds.items()):
                if counts[UNCHECKED]:
                    yield f"  {key[0]:12} {key[1]:14} {counts[UNCHECKED]:5} {self.named[key]:5}"
        for place, found in sorted(self.places.items(), key=lambda item: -len(item[1])):
            yield ""
            yield f"{len(found)} times: {place}"
            for result, v in found[:4]:
                what = "; ".join(f"{d.kind} {d.file}: {d.how}: {d.what}" for d in result.damages)
                through = "" if result.through == "core" else f" --through {result.through}"
                yield f"  --only {result.number}{through}  ({result.table}, {v.operation})  {ascii(what)[:300]}"
            yield "    " + "\n    ".join(found[0][1].text.splitlines()[-_LINES_OF_A_TRACEBACK:])


_LINES_OF_A_TRACEBACK = 16
_SAID = {
    "same": "read as if nothing had happened",
    "refused": "refused with a DeltaError, by one operation at least",
    UNCHECKED: "gave other rows where the format has no check (below)",
    "crash": "ended the process",
    "hang": "did not end",
    "exception": "raised something that is not a DeltaError",
    "bad message": "raised a DeltaError that nobody can read",
    "wrong rows": "gave wrong rows",
    "outlived": "gave wrong rows after the table was whole again",
    "verify raised": "made verify raise",
}


def _place(v: Verdict) -> str:
    """Where a fault is, to tell one fault that was met often from several."""
    if v.kind != "exception":
        said = re.sub(r"/\S*", "FILE", v.text)
        return f"{v.kind}: {re.sub(r'[0-9a-f-]{36}|[0-9]+', 'N', said)[:100]}"
    frames = re.findall(r'File "[^"]*/(delta_pyds/[^"]*)", line (\d+), in (\S+)', v.text)
    where = ":".join(frames[-1]) if frames else "outside"
    last = v.text.strip().splitlines()[-1][:80]
    return f"{v.kind} at {where}: {re.sub(r'[0-9]+', 'N', last)}"
