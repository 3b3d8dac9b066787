"""The page of a report: one HTML file that loads nothing else.

Invariants: the page has no script, font or picture from elsewhere, and its policy forbids them. All content of the
table is escaped text. The page is as long for a thousand files as for a million.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from delta_pyds.commands.report import pictures
from delta_pyds.commands.report.blocks import (
    above,
    advice,
    beside,
    card,
    count,
    figure,
    grid,
    moment,
    scrolling,
    share,
    size,
    tags,
    tile,
)  # fmt: skip
from delta_pyds.commands.report.measure import TableMeasures
from delta_pyds.commands.report.style import STYLE
from delta_pyds.commands.report.versions import Version
from delta_pyds.html_table import Quantity, pairs, table, text
from delta_pyds.redaction import is_secret_name, shown, without_credentials

_MOST_FINDINGS = 50
_LAST_COMMITS = 15
_BUCKETS = 40
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Checks:
    """The findings of ``verify``.

    ``findings``: severity, rule, position and message of each. ``reason``: why it did not run. ``data``: whether it
    read data files, or the log alone.
    """

    findings: tuple[tuple[str, str, str, str], ...] = ()
    checked: str = ""
    reason: str = ""
    data: bool = False

    @property
    def num_errors(self) -> int:
        return sum(severity == "error" for severity, *_ in self.findings)


class ReportPage(str):
    """The HTML of a report, which a notebook shows.

    The page is shown in a frame of its own, because its style and its policy are for a whole document.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self)}" sandbox="" loading="lazy" title="Report of a Delta table" '
            'style="width: 100%; height: 48rem; border: 0"></iframe>'
        )


def page(measures: TableMeasures, checks: Checks, writer: str) -> ReportPage:
    """The HTML. ``writer``: the program that made it, with its version."""
    detail = measures.detail
    location = shown(without_credentials(detail.location))
    name = detail.name or location.rstrip("/").rpartition("/")[2] or location
    description = f"<p>{text(detail.description)}</p>" if detail.description else ""
    sections = (
        _gains(measures), _findings(checks), _files(measures), _deletions(measures), _partitions(measures),
        _clustering(measures), _history(measures), _definition(measures),
    )  # fmt: skip
    return ReportPage(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">'
        f"<title>{text(name, 100)}: a table report</title><style>{STYLE}</style></head><body>"
        f'<header><h1>{text(name, 100)}</h1><p class="path soft">{text(location, 1000)}</p>{description}'
        f'<p class="soft">Version {measures.version}, {_last(measures)}. Read on {moment(measures.now_ms)}.</p>'
        f"</header><main>{_tiles(measures, checks)}{''.join(sections)}</main>"
        f"<footer>Made by {text(writer)} from the table's log.</footer></body></html>\n"
    )


def _last(measures: TableMeasures) -> str:
    shown = measures.versions.shown
    return f"committed on {moment(shown[-1].timestamp_ms)}" if shown else "whose commit is no longer in the log"


def _tiles(measures: TableMeasures, checks: Checks) -> str:
    files, parts = measures.files, measures.partitions
    uncounted = f"without those of {count(files.num_uncounted)} files" if files.num_uncounted else ""
    errors = checks.num_errors
    if checks.reason:
        state = ("not checked", "", "")
    elif errors:
        state = (f"{errors} error{'s' if errors > 1 else ''}", "found by verify", "bad")
    else:
        warnings = len(checks.findings)
        counted = f"{warnings} warning{'' if warnings == 1 else 's'}"
        note = counted if checks.data else f"{counted}; data files were not read"
        state = ("sound" if checks.data else "sound log", note, "warn" if warnings else "good")
    tiles = [
        tile("Size", size(files.size_bytes)),
        tile("Files", f"{files.num_files:,}", f"median {size(files.median_bytes)}" if files.num_files else ""),
        tile("Rows", count(files.num_rows), uncounted),
        tile("Deleted rows", share(files.deletion_ratio), f"{count(files.num_vectors)} deletion vectors"),
        tile("Partitions", f"{parts.number:,}" if parts else "none", ", ".join(parts.columns) if parts else ""),
        tile("State", *state),
    ]
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _gains(measures: TableMeasures) -> str:
    optimize, purge, vacuum = measures.optimize, measures.purge, measures.vacuum
    if optimize.reason:
        headline, note = "Cannot be done", optimize.reason
    elif optimize.taken:
        headline = f"{optimize.before:,} → {'about ' if optimize.verb == 'clustering' else ''}{optimize.after:,} files"
        note = f"{optimize.verb.capitalize()} would rewrite {size(optimize.taken_bytes)} of {optimize.taken:,} files."
    else:
        headline, note = "Nothing to do", f"No file needs {optimize.verb}."
    first = advice("optimize", headline, note)
    if vacuum.reason:
        second = advice("vacuum", "Unknown", vacuum.reason)
    else:
        second = advice(
            "vacuum",
            f"{size(vacuum.size_bytes)} in {vacuum.num_files:,} files" if vacuum.num_files else "Nothing to delete",
            f"Files that no version within {vacuum.retention_hours:g} hours needs; "
            f"{vacuum.num_directories:,} empty directories.",
        )
    third = advice(
        "purge of deleted rows",
        f"{count(measures.files.num_deleted)} rows in {purge.taken:,} files" if purge.taken else "Nothing to do",
        optimize.reason
        or (f"It would rewrite {size(purge.taken_bytes)}." if purge.taken else "No file has a deletion vector."),
    )
    return card("Gains of maintenance", "A plan: nothing was changed.", grid(first, second, third))


def _findings(checks: Checks) -> str:
    if checks.reason:
        return card("Findings of verify", checks.reason)
    if not checks.findings:
        return card("Findings of verify", f"None. {checks.checked}")
    ordered = sorted(checks.findings, key=lambda finding: finding[0] != "error")
    found = table(("", "rule", "where", "what"), ordered, most=_MOST_FINDINGS)
    return card("Findings of verify", checks.checked, scrolling("Findings of verify", found))


def _files(measures: TableMeasures) -> str:
    files = measures.files
    if not files.num_files:
        return card("Files", "The table has no files.")
    parts = []
    for title, bars in (("Files by size", files.sizes), ("Files by age", files.ages)):
        notes = [f"{number:,} files, {size(weight)}" for number, weight in zip(bars.counts, bars.weights, strict=True)]
        rows = zip(bars.labels, bars.counts, map(size, bars.weights), strict=True)
        drawn = pictures.upright(title, bars.labels, bars.counts, notes, count)
        parts.append(figure(title, drawn, ("bin", "files", "bytes"), rows))
    return card("Files", f"{files.num_files:,} files, half of them at most {size(files.median_bytes)}.", grid(*parts))


def _deletions(measures: TableMeasures) -> str:
    files = measures.files
    if not files.num_vectors:
        return card("Deleted rows", "No file has a deletion vector.")
    bars = files.deletions
    notes = [f"{n:,} files, {rows:,} deleted rows" for n, rows in zip(bars.counts, bars.weights, strict=True)]
    title = "Files by the share of deleted rows"
    drawn = pictures.upright(title, bars.labels, bars.counts, notes, count)
    rows = zip(bars.labels, bars.counts, bars.weights, strict=True)
    counted, uncounted = files.num_deleted_counted, files.num_deleted - files.num_deleted_counted
    sentence = (
        f"{counted:,} of {files.num_rows + counted:,} rows ({share(files.deletion_ratio)}) are deleted but "
        f"still in the files. There are {files.num_vectors:,} deletion vectors."
    )
    if uncounted:
        sentence += f" {uncounted:,} more are deleted in files whose number of rows is unknown."
    return card("Deleted rows", sentence, beside(title, drawn, ("deleted", "files", "deleted rows"), rows))


def _partitions(measures: TableMeasures) -> str:
    parts = measures.partitions
    if parts is None:
        return card("Partitions", "The table is not partitioned.")
    if not parts.number:
        return card("Partitions", f"By {', '.join(parts.columns)}; it has no partition yet.")
    title = "Largest partitions" if parts.number > len(parts.largest) else "Partitions by size"
    drawn = pictures.lying(title, [(p.name, p.size_bytes, size(p.size_bytes)) for p in parts.largest], "bar2")
    rows = [
        (p.name, p.num_files, size(p.size_bytes), "unknown" if p.num_rows is None else p.num_rows)
        for p in parts.largest
    ]
    sentence = (
        f"{parts.number:,} by {', '.join(parts.columns)}: half of them have at most {size(parts.median_bytes)} and "
        f"{parts.median_files:,} files; the largest is {parts.skew:.1f} times the average."
    )
    return card("Partitions", sentence, beside(title, drawn, ("partition", "files", "bytes", "rows"), rows))


def _clustering(measures: TableMeasures) -> str:
    depths = measures.depths
    known = [d for d in depths if d.average is not None and d.worst is not None]
    by = ", ".join(measures.detail.clustering_columns)
    about = f"The table is clustered by {by}. " if by else ""
    if not known:
        return card("Clustering depth", f"{about}No file has minima and maxima of a column.")
    shown = [
        (f"{d.column}{' (clustered by)' if d.clustering else ''}", d.average or 0.0, f"{d.average:,.1f} files")
        for d in known
    ]
    title = "Files that a search for one value opens, on average"
    rows = [
        (
            d.column,
            "yes" if d.clustering else "",
            "unknown" if d.average is None else Quantity(f"{d.average:,.1f}"),
            "unknown" if d.worst is None else d.worst,
            d.num_files,
            d.num_unknown,
        )
        for d in depths
    ]
    names = ("column", "clustered by", "on average", "at worst", "files with statistics", "without")
    note = (
        f"{about}Measured by the minima and maxima in the statistics, within a partition. 1 is best; the number of "
        "files means that no file can be skipped."
    )
    drawn = pictures.lying(title, shown)
    return card(
        "Clustering depth",
        note,
        above(title, drawn, names, rows),
    )


def _history(measures: TableMeasures) -> str:
    versions = measures.versions.shown
    if not versions:
        return card("Versions", "The log has no readable commits.")
    first, last = f"v{versions[0].version}", f"v{versions[-1].version}"
    note = f"{len(versions):,} commits from version {versions[0].version} to {versions[-1].version}"
    note += "; the log has older ones, too." if measures.versions.more else "."
    note += " Earlier sizes are computed from the files that commits add and remove."
    names = ("version", "time", "operation", "files added", "removed", "files", "size", "by")
    rows = [_version_row(v) for v in reversed(versions[-_LAST_COMMITS:])]
    left = len(versions) - len(rows)
    return card(
        "Versions",
        note,
        grid(*_growth(versions), _operations(versions, measures.versions.operations, (first, last))),
        f"<details open><summary>The last commits</summary>"
        f"{scrolling('The last commits', table(names, rows, more=left))}</details>",
    )


def _growth(versions: Sequence[Version]) -> Iterator[str]:
    for title, form, values in (
        ("Size by version", size, [(v.version, v.size_bytes) for v in versions if v.size_bytes is not None]),
        ("Files by version", count, [(v.version, v.num_files) for v in versions if v.num_files is not None]),
    ):
        if values:
            ends = f"v{values[0][0]}", f"v{values[-1][0]}"
            drawn = pictures.curve(title, ends, [value for _, value in values], form, 1024 if form is size else 1000)
            rows = [(version, form(value)) for version, value in values[-_BUCKETS:]]
            yield figure(title, drawn, ("version", "after it"), reversed(rows))


def _operations(versions: Sequence[Version], operations: Sequence[tuple[str, int]], ends: tuple[str, str]) -> str:
    """The number of commits of each operation, over the versions."""
    named = [name for name, _ in operations[: pictures.MOST_SERIES - 1]]
    has_others = len(operations) > len(named)
    width = -(-len(versions) // _BUCKETS)
    number = -(-len(versions) // width)
    buckets: list[Counter[str | None]] = [Counter() for _ in range(number)]
    labels = [""] * number
    for index, version in enumerate(versions):
        bucket = index // width
        labels[bucket] = labels[bucket] or f"v{version.version}"
        buckets[bucket][version.operation if version.operation in named else None] += 1
    series = [(name, [bucket[name] for bucket in buckets]) for name in named]
    if has_others:
        series.append(("other operations", [bucket[None] for bucket in buckets]))
    title = f"Operations, {ends[0]} to {ends[1]}"
    drawn = pictures.stacked(title, labels, series, count)
    return figure(title, drawn, ("operation", "commits"), operations, pictures.legend([name for name, _ in series]))


def _version_row(version: Version) -> tuple[object, ...]:
    return (
        str(version.version),
        moment(version.timestamp_ms),
        version.operation,
        _known(version.files_added),
        _known(version.files_removed),
        _known(version.num_files),
        "unknown" if version.size_bytes is None else size(version.size_bytes),
        version.engine,
    )


def _known(value: int | None) -> object:
    return "unknown" if value is None else value


def _definition(measures: TableMeasures) -> str:
    detail = measures.detail
    identity = [
        ("id", detail.id), ("created", moment(detail.created_ms)), ("last modified", moment(detail.last_modified_ms)),
        ("partition columns", ", ".join(detail.partition_columns) or "none"),
        ("clustering columns", ", ".join(detail.clustering_columns) or "none"),
        ("protocol", f"reader {detail.min_reader_version}, writer {detail.min_writer_version}"),
    ]  # fmt: skip
    properties = sorted(
        (key, "***" if is_secret_name(key) else value or "") for key, value in detail.properties.items()
    )
    columns = [(name, kind, "" if nullable else "NOT NULL") for name, kind, nullable in measures.columns]
    return card(
        "Definition",
        "",
        grid(
            scrolling("Identity of the table", pairs(identity, caption="Identity")),
            scrolling("Properties", table(("property", "value"), properties, caption="Properties"))
            if properties
            else "<h3>Properties</h3><p>No property is set.</p>",
            f"<h3>Features</h3>{tags(detail.features)}",
        ),
        f"<details><summary>{len(columns):,} columns</summary>"
        f"{scrolling('Columns', table(('column', 'type', ''), columns, most=200))}</details>",
    )
