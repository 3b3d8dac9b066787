"""Comet, an accelerator of Spark: whether a session uses it, and what it takes of a native read.

Comet replaces Spark's operators by its own, from the scan upwards, while it supports every expression. Found with
Comet 1.2:

- Its Parquet reader takes our scans, except those of row positions. Spark reads these. Comet then takes their rows if
  a setting allows the conversion, and if it supports the first filter above them.
- It supports no array from a subquery and no ``raise_error``. So the filter of ``vectors`` stays in Spark, with all
  operators above it up to the next shuffle. The join of ``word_join`` does not.
- A union of scans is Comet's only if all its parts are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame

from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.settings import (
    COMET,
    COMET_CONVERT_PARQUET,
    COMET_EXEC,
    COMET_LOCAL_TABLES,
    COMET_SCAN,
    EXTENSIONS,
)
from delta_pyds.table.scan.read_report import Acceleration

# Comet's plugin adds it to the settings, if there is off-heap memory for Comet.
_EXTENSION = "org.apache.comet.CometSparkSessionExtensions"
# The settings that matter, with Comet's defaults.
COMET_SETTINGS: Mapping[str, str] = {
    COMET: "true",
    COMET_EXEC: "true",
    COMET_SCAN: "true",
    COMET_CONVERT_PARQUET: "false",
    COMET_LOCAL_TABLES: "false",
}
_NEEDED = (COMET, COMET_EXEC, COMET_SCAN)
_NEEDED_FOR_JOINS = (COMET_CONVERT_PARQUET, COMET_LOCAL_TABLES)
# A line of a plan for a Parquet scan. Numbers and stars stand before operators with generated code.
_SCAN = re.compile(r"^[\s:+\-*()\d]*(\w*Scan) parquet", re.MULTILINE)
_REASONS = re.compile(r"\[COMET: ([^\]]*)\]")
_MOST_REASONS = 10


def is_installed(extensions: str | None) -> bool:
    """Whether the session has Comet. ``extensions``: its setting of this name."""
    return _EXTENSION in {name.strip() for name in (extensions or "").split(",")}


def is_on(settings: Mapping[str, str]) -> bool:
    """Whether Comet runs the scans of a session with these settings."""
    return is_installed(settings.get(EXTENSIONS)) and not _off(settings, _NEEDED)


def takes_word_joins(settings: Mapping[str, str]) -> bool:
    """Whether Comet takes the join of ``word_join`` and the operators above it."""
    return is_on(settings) and not _off(settings, _NEEDED_FOR_JOINS)


def reason_against_positions(settings: Mapping[str, str], num_files: int) -> str:
    """Why Comet's reader does not take files with deletion vectors, as part of a sentence."""
    files = "the file with a deletion vector" if num_files == 1 else f"{num_files} files with deletion vectors"
    reason = f"Spark must read the row positions of {files}"
    if off := _off(settings, _NEEDED_FOR_JOINS):
        verb = "are" if len(off) > 1 else "is"
        return f"{reason}, and Comet does not take their rows, because {' and '.join(off)} {verb} not true"
    return reason


def acceleration(frame: DataFrame, reasons: Iterable[str] = ()) -> Acceleration:
    """The scans of a DataFrame that Comet takes. ``reasons``: those for scans that it does not take.

    Raises: Spark's exception if it cannot plan the DataFrame.
    """
    plan = _plan(frame)
    scans = [name.startswith("Comet") for name in _SCAN.findall(plan)]
    found = [] if all(scans) else list(reasons)
    found += [reason for text in _REASONS.findall(plan) for reason in text.split(", ") if reason]
    return Acceleration("Comet", len(scans), sum(scans), tuple(dict.fromkeys(found))[:_MOST_REASONS])


def _plan(frame: DataFrame) -> str:
    """The plan as text. Only a classic session can ask Comet for its reasons."""
    given: Any = frame
    if is_remote(frame.sparkSession):
        return str(given._explain_string())
    plan = given._jdf.queryExecution().executedPlan()
    try:
        return str(given.sparkSession._jvm.org.apache.comet.ExtendedExplainInfo().generateExtendedInfo(plan))
    except TypeError:  # the class is in JARs that py4j does not see
        return str(plan.toString())


def _off(settings: Mapping[str, str], keys: Iterable[str]) -> list[str]:
    return [key for key in keys if settings.get(key, COMET_SETTINGS[key]).strip().lower() != "true"]
