"""Options of ``spark.readStream`` alone: limits, and how changes of rows and of the schema are handled."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delta_pyds.errors import OptionError
from delta_pyds.redaction import Concealing
from delta_pyds.spark.options.read import READ_OPTIONS, STREAM_OPTIONS
from delta_pyds.spark.options.values import boolean_option, bytes_option, count_option

_DEFAULT_MAX_FILES = 1_000
_TRACKING = ("schematrackinglocation", "schemalocation")


@dataclass(frozen=True, repr=False)
class StreamReadOptions(Concealing):
    """The options of a ``readStream`` besides ``ReadOptions``. ``exclude``: matches the paths of files to leave out."""

    max_files: int | None
    max_bytes: int | None
    ignore_deletes: bool
    ignore_changes: bool
    skip_change_commits: bool
    exclude: re.Pattern[str] | None
    fail_on_data_loss: bool
    limit_first_batch: bool
    schema_tracking_location: str | None
    tracking_id: str | None
    allow_rename: str | None
    allow_drop: str | None
    allow_type_change: str | None


def parse_stream_options(options: Mapping[str, str]) -> StreamReadOptions:
    """Check and type the options of a stream.

    Raises: OptionError for an invalid value, and for options that are for batches only.
    """
    given = {k.lower(): v for k, v in options.items()}
    for key in ("versionasof", "timestampasof", "endingversion", "endingtimestamp", "rowids", "rowposition"):
        if key in given:
            raise OptionError(
                f"the option {READ_OPTIONS[key]} is for spark.read: a stream has no end and reads new versions as "
                "they come. startingVersion and startingTimestamp say where it begins.",
                option=READ_OPTIONS[key],
            )
    if "startingversion" in given and "startingtimestamp" in given:
        raise OptionError(
            "startingVersion and startingTimestamp are both given: a stream begins at a version or at a time.",
            code="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        )
    max_files = count_option(given, "maxFilesPerTrigger")
    max_bytes = bytes_option(given, "maxBytesPerTrigger", 0) or None
    if max_files is None and max_bytes is None:
        max_files = _DEFAULT_MAX_FILES
    return StreamReadOptions(
        max_files=max_files,
        max_bytes=max_bytes,
        ignore_deletes=_flag(given, "ignoreDeletes"),
        ignore_changes=_flag(given, "ignoreChanges") or _flag(given, "ignoreFileDeletion"),
        skip_change_commits=_flag(given, "skipChangeCommits"),
        exclude=_pattern(given.get("excluderegex")),
        fail_on_data_loss=_flag(given, "failOnDataLoss", True),
        limit_first_batch=_flag(given, "limitFirstBatch"),
        schema_tracking_location=_first(given, _TRACKING),
        tracking_id=given.get("streamingsourcetrackingid"),
        allow_rename=given.get("allowsourcecolumnrename"),
        allow_drop=given.get("allowsourcecolumndrop"),
        allow_type_change=given.get("allowsourcecolumntypechange"),
    )


def refuse_schema_tracking(options: Mapping[str, str]) -> None:
    """Raises: OptionError if a batch is to keep a log of schemas."""
    if tracks_schema(options):
        raise OptionError(
            "schemaTrackingLocation is for spark.readStream: a batch reads one version, with its own schema.",
            option="schemaTrackingLocation",
        )


def refuse_stream_options(options: Mapping[str, str], engine: str) -> None:
    """Refuse a batch read with options of a stream: the engine runs a stream as one batch read.

    Raises: OptionError naming the first such option.
    """
    given = {key.lower(): value for key, value in options.items()}
    of_streams = set(STREAM_OPTIONS)
    if not any(_flag(given, name) for name in ("readChangeFeed", "readChangeData")):
        of_streams |= {"startingversion", "startingtimestamp"}
    key = next((key for key in given if key in of_streams), None)
    if key is not None:
        name = STREAM_OPTIONS.get(key) or READ_OPTIONS[key]
        raise OptionError(
            f"the option {name} is for streams, and {engine} runs a stream over a Python source as one batch read of "
            "the whole table. Leave the option out to read the table once, or run the stream on Apache Spark.",
            option=name,
        )


def tracks_schema(options: Mapping[str, str]) -> bool:
    """Whether a stream keeps a log of the schemas that it has had."""
    return _first({k.lower(): v for k, v in options.items()}, _TRACKING) is not None


def _first(given: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((given[key] for key in keys if key in given), None)


def _flag(given: Mapping[str, str], name: str, default: bool = False) -> bool:
    value = boolean_option(given, name)
    return default if value is None else value


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as e:
        raise OptionError(
            f"the option excludeRegex is not a regular expression: {e}.", option="excludeRegex", value=text
        ) from None
