"""What the statistics of a file say of its rows as a whole. Protocol: "Per-file Statistics"."""

from __future__ import annotations

import msgspec

from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json_with
from delta_pyds.protocol.integers import Int64


class RowCounts(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """``num_records``: rows in the file, deleted ones included. ``tight_bounds``: None where it is not said."""

    num_records: Int64 | None = None
    tight_bounds: bool | None = None


_decoder = msgspec.json.Decoder(RowCounts)
_NOTHING = RowCounts()


def row_counts(stats: str | None) -> RowCounts:
    """Read them out of ``add.stats``, passing over the columns; statistics that cannot be read say nothing."""
    if not stats:
        return _NOTHING
    try:
        found = decode_json_with(_decoder, stats)
    except InvalidJSONError:
        return _NOTHING
    return _NOTHING if found.num_records is not None and found.num_records < 0 else found
