"""What each command does: a function of its arguments, which prints a result and says how it went.

Invariant: nothing that is printed comes from a log unescaped, but the rows of ``cat`` and what ``--json`` quotes.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from delta_pyds.cli import output

DONE = 0
FOUND = 1

# of a commit, for people
_SHOWN = (
    "version", "timestamp", "operation", "operationParameters", "operationMetrics", "userMetadata", "engineInfo",
)  # fmt: skip


def history(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.describe import history_table
    from delta_pyds.table.history import history as records
    from delta_pyds.table.snapshot import load_snapshot

    snapshot = load_snapshot(arguments.path, storage_options=arguments.storage_options)
    rows = output.rows_of(
        history_table(
            records(
                snapshot.storage,
                snapshot.table_root,
                arguments.limit,
                metadata_configuration_of_latest=snapshot.configuration.configuration,
            )
        )
    )
    if arguments.json:
        for row in rows:
            output.json_line(row)
        return DONE
    names = (
        "version",
        "timestamp",
        "operation",
        "operationParameters",
        "operationMetrics",
        "userMetadata",
        "engineInfo",
    )
    output.columns_of_text(names, [[row[name] for name in names] for row in rows])
    return DONE


def detail(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.describe import detail_table
    from delta_pyds.table.detail import table_detail
    from delta_pyds.table.snapshot import load_snapshot

    snapshot = load_snapshot(arguments.path, storage_options=arguments.storage_options)
    (row,) = output.rows_of(detail_table(table_detail(snapshot)))
    row["version"] = snapshot.version
    if arguments.json:
        output.json_line(row)
    else:
        output.pairs_of_text(row.items())
    return DONE


def explain(arguments: argparse.Namespace) -> int:
    from delta_pyds.api import explain as report_on

    report = report_on(
        arguments.path,
        where=arguments.where,
        columns=arguments.columns,
        version=arguments.version,
        timestamp=arguments.timestamp,
        time_zone=arguments.time_zone,
        storage_options=arguments.storage_options,
    )
    if not arguments.json:
        print(report)
        return DONE
    summary = {
        "version": report.version,
        "where": report.where,
        "files": report.num_files,
        "filesRead": report.num_kept,
    }
    output.json_line({**summary, "bytes": report.total_bytes, "bytesRead": report.kept_bytes})
    output.json_rows(report.files.to_batches())
    return DONE


def verify(arguments: argparse.Namespace) -> int:
    from delta_pyds.verification.verify import verify as verified

    report = verified(
        arguments.path,
        data=not arguments.log_only,
        storage_options=arguments.storage_options,
        time_zone=arguments.time_zone,
    )
    if arguments.json:
        findings = [asdict(finding) for finding in report.findings]
        output.json_line(
            {"ok": report.ok, "version": report.version, "checked": asdict(report.checked), "findings": findings}
        )
    else:
        print(report)
    return DONE if report.ok else FOUND


def checkpoint(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.maintain import checkpoint as write_checkpoint

    version = write_checkpoint(arguments.path, storage_options=arguments.storage_options)
    if arguments.json:
        output.json_line({"version": version})
    else:
        print(f"A checkpoint of version {version} was written.")
    return DONE


def cat(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.scan import scan

    rows = scan(
        arguments.path,
        where=arguments.where,
        columns=arguments.columns,
        version=arguments.version,
        timestamp=arguments.timestamp,
        time_zone=arguments.time_zone,
        storage_options=arguments.storage_options,
    )
    with closing(rows.to_batches()) as stream:
        batches = stream if arguments.limit is None else _first(stream, arguments.limit)
        if arguments.json:
            output.json_rows(batches)
        else:
            output.csv_rows(rows.schema.names, batches)
    return DONE


def _first(batches: Generator[pa.RecordBatch, None, None], limit: int) -> Generator[pa.RecordBatch, Any, None]:
    for batch in batches:
        if limit <= 0:
            return
        yield batch.slice(0, limit)
        limit -= batch.num_rows
