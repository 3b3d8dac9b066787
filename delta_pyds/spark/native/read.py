"""The choice between Spark's own Parquet reader and the Python source.

Invariant: Spark's reader is used only if there is no reason against it. The Python source reports errors of planning,
unless the user demands Spark's reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delta_pyds.errors import DeltaError, UnsupportedOperationError, first_line
from delta_pyds.redaction import safe_logger
from delta_pyds.spark.active_session import is_remote
from delta_pyds.spark.native.comet import COMET_SETTINGS, acceleration, is_installed, is_on, reason_against_positions
from delta_pyds.spark.native.connectors import NoConnectorError, connector_of
from delta_pyds.spark.native.eligibility import (
    REQUIRED_SETTINGS,
    SessionDescription,
    reasons_against,
)
from delta_pyds.spark.native.file_index import NoIndexError
from delta_pyds.spark.native.files import list_files, reasons_against_files, require_allowed_files
from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.spark.native.scan import NativeScanError, native_frame
from delta_pyds.spark.native.server_proof import reason_against_server
from delta_pyds.spark.options.read import ReadOptions
from delta_pyds.spark.planning.driver import open_table, plan
from delta_pyds.spark.planning.pruning import Pruning
from delta_pyds.spark.settings import EXCLUDED_RULES, EXTENSIONS, IGNORE_SINK_LOG, TIME_ZONE, V1_SOURCES
from delta_pyds.table.change_feed.change_scan import ChangeScan
from delta_pyds.table.scan.read_report import ReadReport

logger = safe_logger(__name__)


def _spark_errors() -> tuple[type[Exception], ...]:
    """The exceptions of Spark for files that it cannot take."""
    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # the client of Spark Connect has no JVM beside it
        return (PySparkException,)
    return PySparkException, Py4JJavaError


SPARK_ERRORS = _spark_errors()


# For each classic session all settings that were set, as the JVM's map, and the values of those that matter.
_settings: WeakKeyDictionary[Any, tuple[Any, Mapping[str, str | None]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class NativeAttempt:
    """The result of an attempt. ``frame``: None if ``report`` has reasons."""

    report: ReadReport
    frame: DataFrame | None = None


def describe(spark: SparkSession) -> SessionDescription:
    """The parts of the session that change how it reads Parquet files. On Spark Connect it takes one request."""
    own = {IGNORE_SINK_LOG: "false", V1_SOURCES: "parquet", EXCLUDED_RULES: "", EXTENSIONS: ""}
    known = {**REQUIRED_SETTINGS, **own, **COMET_SETTINGS}
    if is_remote(spark):
        found: Mapping[str, str | None] = _settings_of_server(spark, (*known, TIME_ZONE))
        zone = found.get(TIME_ZONE)
    else:
        found = _classic_settings(spark, known)
        zone = spark.conf.get(TIME_ZONE)
    # an empty setting counts: for instance a list without parquet
    settings = {key: default if (value := found.get(key)) is None else value for key, default in known.items()}
    return SessionDescription({**settings, TIME_ZONE: zone or ""}, is_remote(spark))


def _settings_of_server(spark: SparkSession, keys: Sequence[str]) -> Mapping[str, str | None]:
    """The values of these settings, and Spark's defaults of those that are not set; None for unknown settings.

    They are asked for again in every load, because a statement of the session may have changed them.
    """
    from pyspark.sql.connect.proto import ConfigRequest

    session: Any = spark
    return dict(session.client.config(ConfigRequest.Operation(get_option=ConfigRequest.GetOption(keys=keys))).pairs)


def _classic_settings(spark: SparkSession, known: Mapping[str, str]) -> Mapping[str, str | None]:
    """The values of these settings. They are asked for again only if any setting of the session has changed."""
    session: Any = spark
    changed_to = session.conf._jconf.getAll()
    last = _settings.get(spark)
    if last is None or not changed_to.equals(last[0]):
        found: dict[str, str | None] = {}
        for key, default in known.items():
            if key not in COMET_SETTINGS or is_installed(found[EXTENSIONS]):
                found[key] = spark.conf.get(key, default)
        last = changed_to, found
        _settings[spark] = last
    return last[1]


def read_natively(
    spark: SparkSession,
    session: SessionDescription,
    options: ReadOptions,
    *,
    insist: bool,
    sure_of_files: bool = False,
    with_metadata: bool = False,
    pruning: Pruning | None = None,
    pinned_version: int | None = None,
) -> NativeAttempt:
    """Plan the read for Spark's own reader, if that returns exactly the same rows.

    ``insist``: the user demands Spark's reader. ``sure_of_files``: the user
    guarantees that a remote Spark sees the same files under this path. ``with_metadata``: see ``native_frame``.
    ``pruning``, ``pinned_version``: see ``load``.

    Raises: with ``insist`` UnsupportedOperationError that names the reasons, and any DeltaError of planning. Without it
        nothing, because the Python source reports the error better.
    """
    try:
        attempt = _attempt(spark, session, options, insist or sure_of_files, with_metadata, pruning, pinned_version)
    except DeltaError as e:
        if insist:
            raise
        return NativeAttempt(ReadReport(options.path, "arrow", (f"planning failed: {e}",)))
    if insist and attempt.frame is None:
        raise UnsupportedOperationError(
            f"the table {options.path} cannot be read by Spark's own Parquet reader: "
            f"{'; '.join(attempt.report.reasons)}. Leave out engine='native', or use engine='arrow'.",
            table=options.path,
            reasons=list(attempt.report.reasons),
        )
    logger.info("%s", attempt.report)
    return attempt


def _attempt(
    spark: SparkSession,
    session: SessionDescription,
    options: ReadOptions,
    sure_of_files: bool,
    with_metadata: bool,
    pruning: Pruning | None,
    pinned_version: int | None,
) -> NativeAttempt:
    opened = open_table(options, pinned_version)
    pushed = () if pruning is None else pruning.predicates(opened.snapshot, opened.time_zone)
    scan = plan(opened, options, pushed=pushed)
    version = opened.snapshot.version

    def refused(*reasons: str) -> NativeAttempt:
        return NativeAttempt(ReadReport(options.path, "arrow", reasons, version))

    if isinstance(scan, ChangeScan):
        return refused("the change feed is requested")
    zone = scan.uses_time_zone
    if found := reasons_against(scan.state, session, uses_time_zone=zone, sure_of_files=sure_of_files):
        return refused(*found)
    try:
        connector = connector_of(spark, scan, remote=session.remote)
    except NoConnectorError as e:
        return refused(str(e))
    files = list_files(scan)
    require_allowed_files(scan.snapshot.storage, files)
    if found := tuple(reasons_against_files(files, scan.state)):
        return refused(*found)
    accelerated = is_on(session.settings)
    if options.check_footers and (
        foreign := first_foreign_to_spark(scan.snapshot.storage, scan.state, files.files, rebases=not accelerated)
    ):
        return refused(foreign)
    # a scan without files is a DataFrame of no rows
    if files.files and (unproven := reason_against_server(spark, scan)):
        return refused(unproven)
    try:
        fixed = options.version is not None or options.timestamp is not None
        frame = native_frame(spark, scan, files, session=session, with_metadata=with_metadata, fixed=fixed)
    except (NativeScanError, NoIndexError) as e:
        return refused(str(e))
    except SPARK_ERRORS as e:
        return refused(f"Spark cannot read the files: {first_line(e)}")
    checked = len(files.files) if options.check_footers else 0
    report = ReadReport(options.path, "native", (), version, len(files.files), connector, checked)
    if accelerated:
        deleted = len(files.with_deletions)
        reasons = [reason_against_positions(session.settings, deleted)] if deleted else []
        report = replace(report, accelerator=partial(acceleration, reasons=reasons))
    return NativeAttempt(report, frame)
