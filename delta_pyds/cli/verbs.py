"""The commands: each is a function of its arguments that prints a result and returns a status.

Invariant: text of a table or its log is printed escaped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from delta_pyds.cli import output

if TYPE_CHECKING:
    from delta_pyds.commands.arrow_stream import ArrowStream

DONE = 0
FOUND = 1

# the columns of a commit that text output shows
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
                properties_of_latest=snapshot.configuration.properties,
            )
        )
    )
    if arguments.json:
        for row in rows:
            output.json_line(row)
        return DONE
    output.columns_of_text(_SHOWN, [[row[name] for name in _SHOWN] for row in rows])
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

    report: Any = report_on(arguments.path, **_selection(arguments), **_range(arguments))
    if not arguments.json:
        print(report)
        return DONE
    if arguments.since is None:
        rows = report.files
        summary = {
            "version": report.version,
            "where": report.where,
            "files": report.num_files,
            "filesRead": report.num_kept,
            "bytes": report.total_bytes,
            "bytesRead": report.kept_bytes,
        }
    else:
        rows = report.commits
        summary = {
            "since": report.first,
            "until": report.last,
            "net": report.net,
            "where": report.where,
            "ways": report.ways,
            "changeFilesRead": report.num_change_files,
            "dataFilesRead": report.num_data_files,
            "vectorsRead": report.num_vectors,
            "bytesRead": report.size_bytes,
            "filesRuledOut": report.num_ruled_out,
        }
    output.json_line(summary)
    output.json_rows(rows.rename_columns([_camel(name) for name in rows.column_names]).to_batches())
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


def report(arguments: argparse.Namespace) -> int:
    from delta_pyds.api import report as made
    from delta_pyds.errors import OptionError

    how = False if arguments.no_verify else arguments.verify or True
    if arguments.json and arguments.to is None:
        raise OptionError(
            "the report is an HTML page, not JSON: give --to FILE with --json, or leave --json out.", option="json"
        )
    try:
        page = made(arguments.path, to=arguments.to, verify=how, storage_options=arguments.storage_options)
    except OSError as error:
        raise OptionError(f"the page cannot be written to {arguments.to}: {error}.", option="to") from error
    if arguments.to is None:
        sys.stdout.buffer.write(page.encode(errors="backslashreplace"))
    elif arguments.json:
        output.json_line({"output": arguments.to, "bytes": len(page.encode(errors="backslashreplace"))})
    else:
        output.text_line(f"The report is in {arguments.to}.")
    return DONE


def checkpoint(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.maintain import checkpoint as write_checkpoint

    version = write_checkpoint(arguments.path, storage_options=arguments.storage_options)
    if arguments.json:
        output.json_line({"version": version})
    else:
        print(f"A checkpoint of version {version} was written.")
    return DONE


def vacuum(arguments: argparse.Namespace) -> int:
    from delta_pyds.catalog.opening import table_storage
    from delta_pyds.commands.maintenance.vacuum import VacuumOptions, plan_vacuum, run_vacuum
    from delta_pyds.storage.table_path import absolute_table_path

    root = absolute_table_path(arguments.path)
    options = VacuumOptions(
        retention_hours=arguments.hours, check_retention=not arguments.unsafe_retention, lite=arguments.lite
    )
    plan = plan_vacuum(table_storage(root, arguments.storage_options), root, options)
    if arguments.dry_run:
        # directories come last and have no size
        sizes = plan.files.column("size").to_pylist()
        for path, size in zip_longest(plan.paths.to_pylist(), sizes):
            if arguments.json:
                output.json_line({"path": path, "size": size})
            else:
                output.text_line(path)
        if not len(plan.paths) and not arguments.json:
            # not on the standard output, which has only paths
            print("Nothing would be deleted.", file=sys.stderr)
        return DONE
    return _print_result(arguments, run_vacuum(plan))


def optimize(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.layout.optimize import plan_optimize, plan_purge, plan_zorder
    from delta_pyds.commands.layout.run import run_layout
    from delta_pyds.commands.row_changes.plan import CommandOptions
    from delta_pyds.commands.row_changes.result import Place
    from delta_pyds.errors import OptionError
    from delta_pyds.protocol.schema import TIMESTAMP
    from delta_pyds.table.snapshot import load_snapshot

    snapshot = load_snapshot(arguments.path, storage_options=arguments.storage_options)
    columns = snapshot.configuration.partition_columns
    if arguments.time_zone is None and any(f.name in columns and f.data_type == TIMESTAMP for f in snapshot.schema):
        # a value without a zone could mean another time after the rewrite
        raise OptionError(
            f"the table {snapshot.table_root} is partitioned by a timestamp: give --time-zone, the one of the sessions "
            "that wrote it.",
            option="time-zone",
        )
    options = CommandOptions(storage_options=arguments.storage_options, time_zone=arguments.time_zone or "UTC")
    if arguments.purge:
        plan = plan_purge(snapshot, arguments.where, options)
    elif arguments.zorder_by:
        plan = plan_zorder(snapshot, arguments.zorder_by, arguments.where, options)
    else:
        plan = plan_optimize(snapshot, arguments.where, options, full=arguments.full)
    result = run_layout(plan, Place("process", "the command line has no Spark"))
    if arguments.json:
        output.json_line({"version": result.version, "metrics": result.metrics})
    else:
        output.text_line(str(result))
    return DONE


def restore(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.maintenance.restore import RestoreOptions
    from delta_pyds.commands.maintenance.restore import restore as restored
    from delta_pyds.table.snapshot import load_snapshot

    options = RestoreOptions(arguments.version, arguments.timestamp, arguments.time_zone)
    snapshot = load_snapshot(arguments.path, storage_options=arguments.storage_options)
    result = restored(snapshot, options)
    if result is not None:
        return _print_result(arguments, result)
    if arguments.json:
        output.json_line({"version": snapshot.version, "numRestoredFiles": 0, "numRemovedFiles": 0})
    else:
        output.text_line(f"the table is at version {snapshot.version} already: nothing was restored")
    return DONE


def _print_result(arguments: argparse.Namespace, result: Any) -> int:
    if arguments.json:
        output.json_line({_camel(name): value for name, value in asdict(result).items()})
    else:
        output.text_line(str(result))
    return DONE


def _camel(name: str) -> str:
    """The name in camel case, as the reference's history spells names: all of ``--json`` does."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def cat(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.scan import scan

    return _print_rows(arguments, scan(arguments.path, **_selection(arguments)))


def changes(arguments: argparse.Namespace) -> int:
    from delta_pyds.commands.scan_changes import scan_changes

    return _print_rows(
        arguments, scan_changes(arguments.path, keys=arguments.keys, **_rows(arguments), **_range(arguments))
    )


def _print_rows(arguments: argparse.Namespace, rows: ArrowStream) -> int:
    with closing(rows.to_batches()) as stream:
        batches = stream if arguments.limit is None else _first(stream, arguments.limit)
        if arguments.json:
            output.json_rows(batches)
        else:
            output.csv_rows(rows.schema.names, batches)
    return DONE


def _selection(arguments: argparse.Namespace) -> dict[str, Any]:
    return {**_rows(arguments), "version": arguments.version, "timestamp": arguments.timestamp}


def _rows(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("where", "columns", "time_zone", "storage_options")}


def _range(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("since", "until", "net", "compute")}


def _first(batches: Generator[pa.RecordBatch, None, None], limit: int) -> Generator[pa.RecordBatch, Any, None]:
    while limit > 0 and (batch := next(batches, None)) is not None:
        yield batch.slice(0, limit)
        limit -= batch.num_rows
