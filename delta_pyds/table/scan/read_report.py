"""Reports which engine reads a DataFrame, and why. A report lives as long as its DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from weakref import WeakKeyDictionary

from delta_pyds.errors import OptionError
from delta_pyds.html_table import ShownAsTable
from delta_pyds.redaction import Concealing, shown


@dataclass(frozen=True, repr=False)
class Acceleration(Concealing):
    """The scans of a DataFrame's plan that an accelerator of Spark takes.

    Attributes:
        name: the accelerator.
        num_scans: the scans of Parquet files.
        num_accelerated: those that the accelerator takes.
        reasons: why it does not take other scans and operators, as parts of a sentence.
    """

    name: str
    num_scans: int
    num_accelerated: int
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f" ({'; '.join(self.reasons)})" if self.reasons else ""
        return f"{self.name} takes {self.num_accelerated} of {self.num_scans} scans{why}"


# Returns what an accelerator takes of a DataFrame. It plans the DataFrame.
Accelerator = Callable[[Any], Acceleration]
# Plans a read of changes, and returns its ChangesReport. It reads the log.
Planner = Callable[[], Any]


@dataclass(frozen=True, repr=False)
class ReadReport(ShownAsTable, Concealing):
    """How a DataFrame is read.

    Attributes:
        engine: ``native`` is Spark's own Parquet reader over the planned files; ``arrow`` is the Python source.
        reasons: why not ``native``, as parts of a sentence; empty with ``native``, and if ``arrow`` was requested.
        checked_footers: the number of data files whose footers were read before the DataFrame was made.
        connector: the Spark connector that reads the store, such as S3A.
        version, num_files: None if the Python source determines them later.
        acceleration: the scans that an accelerator of the session takes; None without one.
        changes: of a read of changes, a ChangesReport: how a new read by the same options finds them, and what it
            reads. None on Spark Connect for a path without a scheme, which may be another one here.
    """

    path: str
    engine: Literal["native", "arrow"]
    reasons: tuple[str, ...] = ()
    version: int | None = None
    num_files: int | None = None
    connector: str = ""
    checked_footers: int = 0
    acceleration: Acceleration | None = None
    accelerator: Accelerator | None = field(default=None, repr=False, compare=False)
    changes: Any = field(default=None, repr=False)
    planner: Planner | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        at = "" if self.version is None else f" at version {self.version}"
        files = "" if self.num_files is None else f", {self.num_files} files"
        through = f" through {self.connector}" if self.connector else ""
        footers = f", {self.checked_footers} footers checked" if self.checked_footers else ""
        why = f", because {'; '.join(self.reasons)}" if self.reasons else ""
        taken = "" if self.acceleration is None else f"; {self.acceleration}"
        changes = "" if self.changes is None else f"\n{self.changes}"
        return f"{shown(self.path)}{at}: engine {self.engine}{through}{files}{footers}{why}{taken}{changes}"

    def _repr_html_(self) -> str:
        if self.changes is None:
            return super()._repr_html_()
        return f"{replace(self, changes=None)._repr_html_()}{self.changes._repr_html_()}"


@dataclass(frozen=True, repr=False)
class QueryReport(ShownAsTable, Concealing):
    """How a query reads its Delta tables.

    Attributes:
        reads: one report for each table, and for each set of its files: the query's conditions rule out files. Tables
            whose rows are cached have none.
        acceleration: the scans of the query that an accelerator of the session takes; None without one.
    """

    reads: tuple[ReadReport, ...]
    acceleration: Acceleration | None = None

    @property
    def accelerator(self) -> Accelerator | None:
        """The accelerator of the session, if one of the reads is native."""
        return next((one.accelerator for one in self.reads if one.accelerator is not None), None)

    @property
    def version(self) -> int | None:
        """The version of the only table that is read; None if there are several."""
        read = {(one.path, one.version) for one in self.reads}
        return read.pop()[1] if len(read) == 1 else None

    def __str__(self) -> str:
        lines = [str(one) for one in self.reads] or ["no files of a Delta table are read"]
        return "\n".join([*lines, *([] if self.acceleration is None else [str(self.acceleration)])])


_reports: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def remember(frame: Any, report: Any) -> None:
    """Record the report of a DataFrame: of a read, or of the command that returned it."""
    _reports[frame] = report


def reports() -> list[tuple[Any, ReadReport]]:
    """The DataFrames of reads that still exist, with their reports."""
    return [(frame, report) for frame, report in _reports.items() if isinstance(report, ReadReport)]


def report_of(frame: Any) -> Any:
    """The report of a DataFrame that ``delta_pyds.read``, ``changes``, ``sql`` or a command of ``DeltaTable`` returned.

    Raises: OptionError for any other object.
    """
    may_be_key = type(frame).__hash__ is not None and hasattr(frame, "__weakref__")
    report = _reports.get(frame) if may_be_key else None
    if report is None:
        raise OptionError(
            f"this {type(frame).__name__} was not returned by delta_pyds.read, delta_pyds.changes, a query of "
            "delta_pyds.sql or a command of DeltaTable. explain takes the path of a table, or exactly that DataFrame "
            "and none derived from it.",
            option="path",
        )
    return report


def explained(frame: Any) -> Any:
    """As ``report_of``, with what is known only when the DataFrame is planned.

    That is what an accelerator of the session takes of it, for which Spark plans it, and how changes are found.

    Raises: as ``report_of``; Spark's exception if it cannot plan the DataFrame; DeltaError if changes cannot be read.
    """
    report = report_of(frame)
    if isinstance(report, ReadReport):
        report = _with_changes(report)
    elif isinstance(report, QueryReport):
        report = replace(report, reads=tuple(map(_with_changes, report.reads)))
    if isinstance(report, ReadReport | QueryReport) and report.accelerator is not None:
        return replace(report, acceleration=report.accelerator(frame))
    return report


def _with_changes(report: ReadReport) -> ReadReport:
    if report.planner is None:
        return report
    changes = report.planner()
    return replace(report, version=changes.version, changes=changes)
