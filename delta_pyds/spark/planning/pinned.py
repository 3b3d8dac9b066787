"""The version of a load, so that all of its processes read the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pinned:
    """The version of a load. ``zone_used``: whether the version depends on the time zone."""

    version: int | None
    table_id: str | None
    zone_used: bool
