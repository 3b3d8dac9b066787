"""Row counts in the statistics of a file. Protocol: "Per-file Statistics"."""

from __future__ import annotations

import msgspec

from delta_pyds.protocol.foreign_json import Int64, InvalidJSONError, decode_json_with


class RowCounts(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """``num_records``: rows in the file, including deleted ones. ``tight_bounds``: None if it is missing."""

    num_records: Int64 | None = None
    tight_bounds: bool | None = None


_decoder = msgspec.json.Decoder(RowCounts)
_NOTHING = RowCounts()


def row_counts(stats: str | None) -> RowCounts:
    """Read the row counts of ``add.stats`` without the columns; unreadable statistics give no counts."""
    if not stats:
        return _NOTHING
    try:
        found = decode_json_with(_decoder, stats)
    except InvalidJSONError:
        return _NOTHING
    return _NOTHING if found.num_records is not None and found.num_records < 0 else found
