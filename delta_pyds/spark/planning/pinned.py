"""The version that a load is pinned to, so that all of its processes read the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pinned:
    """What a load was made at. ``zone_used``: choosing the version depended on the time zone."""

    version: int | None
    table_id: str | None
    zone_used: bool
