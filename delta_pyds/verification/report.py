"""Findings of a verification and the report of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from delta_pyds.errors import DeltaError, VerificationError
from delta_pyds.html_table import table
from delta_pyds.redaction import shown

Severity = Literal["error", "warning"]

_SHOWN_IN_ERROR = 10


@dataclass(frozen=True)
class Finding:
    """One rule of the protocol that the table breaks.

    Attributes:
        severity: An ``error`` can give wrong rows, make a reader fail, or break a promise that programs rely on. A
            ``warning`` does not stop readers, or names a rule that could not be checked.
        rule: A stable id such as ``commit.duplicate-key``.
        where: A version or a file.
        message: The rule and how the table breaks it, as a sentence.
    """

    severity: Severity
    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity} {self.rule} at {self.where}: {self.message}"


@dataclass(frozen=True)
class Checked:
    """The numbers of checked parts.

    Attributes:
        commits: The commits of the log.
        checkpoints: The checkpoints of the log.
        compactions: The log compaction files.
        checksums: The version checksum files.
        files: The data files of the latest version.
        rows: The rows of these files.
    """

    commits: int = 0
    checkpoints: int = 0
    compactions: int = 0
    checksums: int = 0
    files: int = 0
    rows: int = 0


@dataclass(frozen=True)
class VerifyReport:
    """The result of ``verify``.

    Attributes:
        table_root: The canonical path of the table.
        version: The newest version in the log; -1 if the log cannot be listed.
        checked: The numbers of checked parts.
        findings: The broken rules, errors and warnings. Beyond ``max_findings``, one finding counts the others.

    >>> report = delta_pyds.verify("/data/events")
    >>> [finding.rule for finding in report.errors]
    """

    table_root: str
    version: int
    checked: Checked
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors."""
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def ok(self) -> bool:
        """Whether there are no errors; there may be warnings."""
        return not self.errors

    def raise_for_errors(self) -> None:
        """Raise an error if the report has errors. Warnings do not raise.

        Raises:
            VerificationError: There is an error; the message names the first ones, and ``parameters["findings"]`` has
                all.

        >>> delta_pyds.verify("/data/events").raise_for_errors()
        """
        errors = self.errors
        if not errors:
            return
        shown = "; ".join(map(str, errors[:_SHOWN_IN_ERROR]))
        more = f"; and {len(errors) - _SHOWN_IN_ERROR} more" if len(errors) > _SHOWN_IN_ERROR else ""
        raise VerificationError(
            f"the table {self.table_root} (version {self.version}) breaks the protocol: {shown}{more}. "
            "Find the cause before you write to the table.",
            table=self.table_root,
            version=self.version,
            findings=errors,
        )

    def __str__(self) -> str:
        c = self.checked
        errors = len(self.errors)
        outcome = (
            f"{shown(self.table_root)}, version {self.version}: {'ok' if self.ok else 'BROKEN'}, "
            f"{errors} errors, {len(self.findings) - errors} warnings"
        )
        checked = (
            f"checked {c.commits} commits, {c.checkpoints} checkpoints, {c.compactions} compactions, "
            f"{c.checksums} checksums, {c.files} files with {c.rows} rows"
        )
        return "\n".join([outcome, checked, *(f"  {finding}" for finding in self.findings)])

    def _repr_html_(self) -> str:
        outcome, checked = str(self).splitlines()[:2]
        rows = [(finding.severity, finding.rule, finding.where, finding.message) for finding in self.findings]
        return table(("", "rule", "where", "what"), rows, caption=f"{outcome}; {checked}")


class Findings:
    """Collects at most ``limit`` findings; a last finding counts the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._findings: list[Finding] = []
        self._dropped_errors = 0
        self._dropped_warnings = 0

    def of(self, version: int) -> VersionFindings:
        return VersionFindings(self, version)

    def error(self, rule: str, where: str | int, message: str) -> None:
        self._add("error", rule, where, message)

    def warning(self, rule: str, where: str | int, message: str) -> None:
        self._add("warning", rule, where, message)

    def _add(self, severity: Severity, rule: str, where: str | int, message: str) -> None:
        if len(self._findings) < self._limit:
            position = f"version {where}" if isinstance(where, int) else where
            self._findings.append(Finding(severity, rule, shown(position), shown(message)))
        elif severity == "error":
            self._dropped_errors += 1
        else:
            self._dropped_warnings += 1

    @contextmanager
    def guard(self, rule: str, where: str | int) -> Iterator[None]:
        """Turn any exception inside into a finding: a table may be broken in any way, and the rest is still checked."""
        try:
            yield
        except DeltaError as e:
            self.error(rule, where, e.message)
        except Exception as e:
            self.error(rule, where, f"it cannot be checked: reading it fails with {type(e).__name__}: {e}.")

    def all(self) -> tuple[Finding, ...]:
        dropped = self._dropped_errors + self._dropped_warnings
        if not dropped:
            return tuple(self._findings)
        severity: Severity = "error" if self._dropped_errors else "warning"
        message = (
            f"{self._dropped_errors} more errors and {self._dropped_warnings} more warnings are not listed: "
            "raise max_findings to see them."
        )
        return (*self._findings, Finding(severity, "verify.truncated", "the report", message))


@dataclass(frozen=True)
class VersionFindings:
    """The findings about one version."""

    findings: Findings
    version: int

    def error(self, rule: str, message: str) -> None:
        self.findings.error(rule, self.version, message)

    def warning(self, rule: str, message: str) -> None:
        self.findings.warning(rule, self.version, message)
