"""Reports which engine reads a DataFrame, and why. A report lives as long as its DataFrame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

from delta_pyds.errors import OptionError
from delta_pyds.html_table import ShownAsTable
from delta_pyds.redaction import Concealing, shown


@dataclass(frozen=True, repr=False)
class ReadReport(ShownAsTable, Concealing):
    """How a DataFrame is read.

    Attributes:
        engine: ``native`` is Spark's own Parquet reader over the planned files; ``arrow`` is the Python source.
        reasons: why not ``native``, as parts of a sentence; empty with ``native``, and if ``arrow`` was requested.
        checked_footers: the number of data files whose footers were read before the DataFrame was made.
        connector: the Spark connector that reads the store, such as S3A.
        version, num_files: None if the Python source determines them later.
    """

    path: str
    engine: Literal["native", "arrow"]
    reasons: tuple[str, ...] = ()
    version: int | None = None
    num_files: int | None = None
    connector: str = ""
    checked_footers: int = 0

    def __str__(self) -> str:
        at = "" if self.version is None else f" at version {self.version}"
        files = "" if self.num_files is None else f", {self.num_files} files"
        through = f" through {self.connector}" if self.connector else ""
        footers = f", {self.checked_footers} footers checked" if self.checked_footers else ""
        why = f", because {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{shown(self.path)}{at}: engine {self.engine}{through}{files}{footers}{why}"


_reports: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def remember(frame: Any, report: Any) -> None:
    """Record the report of a DataFrame: of a read, or of the command that returned it."""
    _reports[frame] = report


def report_of(frame: Any) -> Any:
    """The report of a DataFrame that ``delta_pyds.read`` or a command of ``DeltaTable`` returned.

    Raises: OptionError for any other object.
    """
    report = _reports.get(frame) if _is_hashable(frame) else None
    if report is None:
        raise OptionError(
            f"this {type(frame).__name__} was not returned by delta_pyds.read or a command of DeltaTable: explain "
            "takes the path of a table or exactly that DataFrame, not one derived from it.",
            option="path",
        )
    return report


def _is_hashable(frame: Any) -> bool:
    return type(frame).__hash__ is not None and hasattr(frame, "__weakref__")
