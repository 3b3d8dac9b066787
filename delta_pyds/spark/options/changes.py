"""Options of Spark's own reads of changes, as options of our change feed.

Spark has them in ``spark.read.changes``, ``readStream.changes`` and the clause CHANGES. Invariant: each of Spark's
options is mapped or refused. ``none`` and ``dropCarryovers`` give the same rows: our feed never has the pairs of equal
rows that Spark calls carry-overs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from delta_pyds.errors import OptionError
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.spark.options.read import SPARK_CHANGES_OPTIONS, version_option
from delta_pyds.spark.options.values import boolean_option, choice_option
from delta_pyds.table.time_travel import instant_text, time_to_ms
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN

End = Literal["starting", "ending"]

_MODES = ("none", "dropCarryovers", "netChanges")
_OPTION = "INVALID_CDC_OPTION."


@dataclass(frozen=True)
class ChangesRead:
    """A read of changes.

    Attributes:
        options: those of our format.
        images: whether updates are shown as pre- and post-images; else as deletes and inserts.
        where: a condition on the shown rows, which the options do not have.
    """

    options: Mapping[str, str]
    images: bool
    where: str | None


def changes_read(given: Mapping[str, str], time_zone: str, *, stream: bool = False) -> ChangesRead:
    """The read that Spark's options mean. ``time_zone``: the session's.

    Raises: OptionError for an invalid value, for options that contradict each other, and for a stream with an end.
    """
    options = {key.lower(): text for key, text in given.items()}
    mode = choice_option(options, "deduplicationMode", _MODES, code=f"{_OPTION}INVALID_DEDUPLICATION_MODE")
    images = boolean_option(options, "computeUpdates") or False
    if "netchanges" in options:
        raise OptionError(
            "netChanges is an option of readChangeFeed. A read of changes has deduplicationMode=netChanges instead.",
            option="netChanges",
        )
    if stream and mode == "netChanges":
        raise OptionError(
            "deduplicationMode=netChanges compares the two ends of a range of versions, but a stream has no end. Leave "
            "it out, or read the changes with spark.read.",
            option="deduplicationMode",
        )
    for name in ("endingVersion", "endingTimestamp"):
        if stream and name.lower() in options:
            raise OptionError(f"the option {name} is for spark.read: a stream has no end. Leave it out.", option=name)
    by_version = _is_by_version(options, stream)
    options.setdefault("timezone", time_zone)
    for end in ("starting", "ending"):
        if boolean_option(options, f"{end}BoundInclusive") is False:
            name = f"{end}Version" if by_version else f"{end}Timestamp"
            if name.lower() in options:
                options[name.lower()] = _next(end, name, options[name.lower()], options["timezone"])
    if images:
        # other changes would show an update as a delete and an insert
        options.setdefault("computechanges", "rowIds")
    where = None
    if not images and CHANGE_TYPE_COLUMN in options.get("where", "").lower():
        where = options.pop("where")
    for key in (*SPARK_CHANGES_OPTIONS, "readchangedata"):
        options.pop(key, None)
    options["readchangefeed"] = "true"
    if mode == "netChanges":
        options["netchanges"] = "true"
    return ChangesRead(options, images, where)


def _is_by_version(options: Mapping[str, str], stream: bool) -> bool:
    """Whether versions bound the range, not times. Raises: OptionError for both, and for an end without a start."""
    versions = "startingversion" in options or "endingversion" in options
    times = "startingtimestamp" in options or "endingtimestamp" in options
    if versions and times:
        raise OptionError(
            "the range of the changes has a version and a time. Give startingVersion and endingVersion, or "
            "startingTimestamp and endingTimestamp.",
            code=f"{_OPTION}CONFLICTING_RANGE_TYPES",
        )
    kind = "Version" if versions else "Timestamp"
    if (versions or times) and f"starting{kind}".lower() not in options:
        raise OptionError(
            f"the range of the changes ends at ending{kind}, but has no start: give starting{kind} too.",
            code=f"{_OPTION}MISSING_STARTING_{kind.upper()}",
            option=f"starting{kind}",
        )
    if not (versions or times or stream):
        raise OptionError(
            "a read of changes needs a start: give startingVersion or startingTimestamp.",
            code="DELTA_CHANGELOG_UNBOUNDED_RANGE",
        )
    return versions


def _next(end: End, name: str, text: str, time_zone: str) -> str:
    """The bound next to one that is excluded: the range begins after it, or ends before it."""
    if name.endswith("Version"):
        version = version_option(text, name) + (1 if end == "starting" else -1)
        if version < 0:
            raise OptionError(
                f"{name} is 0 and is excluded, so the range has no version.",
                code="DELTA_INVALID_CDC_RANGE",
                option=name,
            )
        return str(version)
    zone = TimeZone(time_zone)
    if end == "starting":
        return instant_text((time_to_ms(text, zone) + 1) * 1000)
    return instant_text((time_to_ms(text, zone, up=True) - 1) * 1000)
