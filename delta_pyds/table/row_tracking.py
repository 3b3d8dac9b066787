"""Ids of rows: which file starts at which number, and from which version its rows are.

Invariant: no two files of a table's whole history start ranges that overlap,
however many writers race: numbers are given from the high-water mark of the
version that the commit comes right after.

Protocol: "Row Tracking".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.table.row_counts import row_counts

DOMAIN = "delta.rowTracking"
PRESERVED_TAG = "delta.rowTracking.preserved"
_FEATURE = "rowTracking"
_MARK = "rowIdHighWaterMark"
# the protocol's text has another name for it than the tables that the reference writes
_MARK_IN_THE_PROTOCOL = "highWaterMark"
_NOTHING_YET = -1


@dataclass(frozen=True)
class Numbered:
    """Files with their ids. ``high_water_mark``: the highest id given so far; ``changed``: it rose."""

    adds: tuple[AddFile, ...]
    high_water_mark: int
    changed: bool


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """True where writers must number rows: the feature is supported, enabled or not.

    While a table is being freed of the feature (``delta.rowTrackingSuspended``) nobody gives out new ids.
    """
    if _FEATURE not in (protocol.writer_features or ()):
        return False
    properties = parse_properties(metadata.configuration or {})
    return properties.row_tracking or not properties.row_tracking_suspended


def high_water_mark(domain: DomainMetadata | None) -> int:
    """The highest row id that was ever given; -1 before the first.

    Raises: ProtocolError for a domain that does not say it: going on could give an id twice.
    """
    if domain is None or domain.removed:
        return _NOTHING_YET
    try:
        value = decode_json(domain.configuration)
        mark = value.get(_MARK, value.get(_MARK_IN_THE_PROTOCOL))
    except (ValueError, AttributeError):
        mark = None
    if type(mark) is not int:
        raise ProtocolError(
            f"the metadata domain {DOMAIN} says {domain.configuration!r}, which has no {_MARK}: new rows cannot be "
            "given ids that are certainly new. Restore the domain with the engine that wrote it.",
            domain=DOMAIN,
        )
    return mark


def high_water_domain(mark: int) -> DomainMetadata:
    """The action that records the highest id."""
    return DomainMetadata(DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))


def number_rows(adds: Iterable[AddFile], *, high_water_mark: int, version: int, table: str) -> Numbered:
    """Give ids to the files that have none, and the commit's version as the version of their rows.

    A file that is committed again keeps what it has.

    Raises: ProtocolError for a file whose rows are not counted.
    """
    numbered = []
    mark = high_water_mark
    for add in adds:
        base, commit_version = add.base_row_id, add.default_row_commit_version
        count = row_counts(add.stats).num_records if base is None else 0
        if count is None:
            raise ProtocolError(
                f"the file {add.path} cannot be added to table {table!r}: the table tracks rows, and the statistics of "
                "the file have no numRecords. Collect statistics of the file first.",
                code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                table=table,
                path=add.path,
            )
        if base is None:
            base, mark = mark + 1, mark + count
        elif base > mark:
            raise ProtocolError(
                f"the file {add.path} comes with the base row id {base}, but table {table!r} has given ids up to "
                f"{mark} only. Add the file without an id, or read the table again first.",
                table=table,
                path=add.path,
            )
        numbered.append(
            msgspec.structs.replace(
                add,
                base_row_id=base,
                default_row_commit_version=version if commit_version is None else commit_version,
            )
        )
    return Numbered(tuple(numbered), mark, mark != high_water_mark)
