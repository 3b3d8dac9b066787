"""What the statistics of a file say of its rows as a whole. Protocol: "Per-file Statistics"."""

from __future__ import annotations

import msgspec


class RowCounts(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """``num_records``: rows in the file, deleted ones included. ``tight_bounds``: None where it is not said."""

    num_records: int | None = None
    tight_bounds: bool | None = None


_decoder = msgspec.json.Decoder(RowCounts)
_NOTHING = RowCounts()


def row_counts(stats: str | None) -> RowCounts:
    """Read them out of ``add.stats``, passing over the columns; statistics that cannot be read say nothing."""
    if not stats:
        return _NOTHING
    try:
        found = _decoder.decode(stats)
    except msgspec.DecodeError:
        return _NOTHING
    return _NOTHING if found.num_records is not None and found.num_records < 0 else found
