"""Plain models of ``apply_changes``: the newest row of each key, and the history of each key.

A change is a key, a sequence and values; values of None are a delete. Changes of one key and one sequence are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

Change = tuple[Any, Any, Any]


def newest_of(changes: Iterable[Change]) -> list[tuple[Any, ...]]:
    """SCD 1: key, sequence, values and whether the row is a tombstone, in any order."""
    newest: dict[Any, Change] = {}
    for change in changes:
        if change[0] not in newest or newest[change[0]][1] < change[1]:
            newest[change[0]] = change
    return [(*change, change[2] is None) for change in newest.values()]


def history_of(changes: Iterable[Change]) -> list[tuple[Any, ...]]:
    """SCD 2: key, sequence, values, start and end, in any order; of a tombstone neither sequence nor values."""
    found: list[tuple[Any, ...]] = []
    for _, events in itertools.groupby(sorted(set(changes), key=lambda one: one[:2]), key=lambda one: one[0]):
        of_key = list(events)
        for before, (key, seq, values), after in zip([None, *of_key], of_key, [*of_key[1:], None], strict=False):
            if values is not None:
                found.append((key, seq, values, seq, None if after is None else after[1]))
            elif before is None or before[2] is None:
                found.append((key, None, None, seq, seq))
    return found


def overlapping(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Of rows as of ``history_of``, those that begin before the one before them of the same key has ended."""
    found = []
    in_order = sorted((row for row in rows if row[2] is not None), key=lambda row: (row[0], row[3]))
    for before, row in itertools.pairwise(in_order):
        if before[0] == row[0] and (before[4] is None or row[3] < before[4]):
            found.append(row)
    return found


def from_change_feed(rows: Iterable[Mapping[str, Any]], key: str, values: tuple[str, ...]) -> list[Change]:
    """Changes of a table; of one version, an insert of a key comes after its delete."""
    found = []
    for row in rows:
        kind, version = row["_change_type"], row["_commit_version"]
        if kind != "update_preimage":
            there = kind != "delete"
            found.append((row[key], (version, there), tuple(row[name] for name in values) if there else None))
    return found
