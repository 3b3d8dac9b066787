"""Row tracking: base row ids and default row commit versions of files.

Invariant: ranges of row ids never overlap between new files in a table's
history, even if writers race: ids are assigned from the high-water mark of the
version right before the commit.

Protocol: "Row Tracking".
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.actions import ROW_TRACKING_DOMAIN, AddFile, DomainMetadata, Metadata, Protocol
from delta_pyds.protocol.features import Feature, supports
from delta_pyds.protocol.foreign_json import decode_json
from delta_pyds.protocol.properties import parse_properties
from delta_pyds.table.transaction.row_counts import row_counts

PRESERVED_TAG = "delta.rowTracking.preserved"
_MARK = "rowIdHighWaterMark"
# the reference's name for it, which differs from the protocol's
_MARK_IN_THE_PROTOCOL = "highWaterMark"
_NOTHING_YET = -1


@dataclass(frozen=True)
class Numbered:
    """Files with their row ids. ``high_water_mark``: the highest id assigned so far; ``changed``: it rose."""

    adds: tuple[AddFile, ...]
    high_water_mark: int
    changed: bool


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether writers must assign row ids: the feature is supported, even if it is not enabled.

    While the feature is being dropped (``delta.rowTrackingSuspended``) no new ids are assigned.
    """
    if not supports(protocol, Feature.ROW_TRACKING):
        return False
    properties = parse_properties(metadata.configuration or {})
    return properties.row_tracking or not properties.row_tracking_suspended


def high_water_mark(domain: DomainMetadata | None) -> int:
    """The highest row id ever assigned; -1 before the first.

    Raises: ProtocolError for a domain without it: ids might be assigned twice.
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
            f"the metadata domain {ROW_TRACKING_DOMAIN} has the configuration {domain.configuration!r} without "
            f"{_MARK}, so it is unknown which row ids are new. Restore the domain with the engine that wrote it.",
            domain=ROW_TRACKING_DOMAIN,
        )
    return mark


def high_water_domain(mark: int) -> DomainMetadata:
    """The action that records the highest id."""
    return DomainMetadata(ROW_TRACKING_DOMAIN, json.dumps({_MARK: mark}, separators=(",", ":")))


def has_same_row_ids(one: AddFile, other: AddFile) -> bool:
    """Whether two entries of one file give its rows the same ids and commit versions."""
    ids, of_other = ((f.base_row_id, f.default_row_commit_version) for f in (one, other))
    return ids == of_other


def number_rows(adds: Iterable[AddFile], *, high_water_mark: int, version: int, table: str) -> Numbered:
    """Assign base row ids to files without an id, and the commit's version as their default row commit version.

    A file that is committed again keeps its ids.

    Raises: ProtocolError for a file with an unknown number of rows.
    """
    numbered = []
    mark = high_water_mark
    for add in adds:
        base, commit_version = add.base_row_id, add.default_row_commit_version
        count = row_counts(add.stats).num_records if base is None else 0
        if count is None:
            raise ProtocolError(
                f"the file {add.path} cannot be added to table {table!r}: the table supports row tracking, and the "
                "statistics of the file have no numRecords. Collect statistics of the file first.",
                code="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                table=table,
                path=add.path,
            )
        if base is None:
            base, mark = mark + 1, mark + count
        elif base > mark:
            raise ProtocolError(
                f"the file {add.path} has the base row id {base}, but table {table!r} has only assigned ids up to "
                f"{mark}. Add the file without an id, or read the table again first.",
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
