"""The command line: arguments, and the exit status.

Invariants: a failure is one sentence on the standard error, never a stack trace. The exit status is one of these:

| status | |
|---|---|
| 0 | done |
| 1 | ``verify`` found an error in the table |
| 2 | invalid arguments |
| 3 | the table or the version does not exist |
| 4 | the table does not allow the request |
| 5 | another commit was first |
| 6 | the table is damaged, or its store failed |
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from delta_pyds.catalog.address import locate
from delta_pyds.cli import run, verbs
from delta_pyds.errors import (
    ConflictError,
    DeltaError,
    OptionError,
    TableNotFoundError,
    TimeTravelError,
    UnsupportedFeatureError,
    UserError,
)
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.redaction import shown
from delta_pyds.storage.table_path import absolute_table_path

_STATUSES: tuple[tuple[type[DeltaError], int], ...] = (
    (TableNotFoundError, 3),
    (TimeTravelError, 3),
    (OptionError, 2),
    (UserError, 4),
    (UnsupportedFeatureError, 4),
    (ConflictError, 5),
    (DeltaError, 6),
)
# the status of errors whose code says more than their class
_STATUSES_BY_CODE = {"DELTA_CANNOT_RESTORE_TABLE_VERSION": 3}
_BROKEN = 6
_WRONG = 2
# the largest number of rows that Arrow counts
_MOST = 2**63 - 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns: Its status, as listed above.

    >>> main(["history", "/data/events", "--limit", "3"])
    """
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # the terminal may have another encoding than the table's texts
        sys.stdout.reconfigure(errors="backslashreplace")
    given.storage_options = dict(given.storage_options or ())
    try:
        if given.catalog is None and given.path is not None:
            absolute_table_path(given.path)
    except DeltaError as e:
        # the path is invalid: no store was asked
        print(f"deltapy: {e}", file=sys.stderr)
        return _WRONG
    try:
        if given.catalog is not None:
            found = locate(table=given.path, catalog=given.catalog, storage_options=given.storage_options)
            given.path, given.storage_options = found.table_root, dict(found.storage_options)
        status: int = given.verb(given)
        sys.stdout.flush()
        return status
    except DeltaError as e:
        print(f"deltapy: {e}", file=sys.stderr)
        return _STATUSES_BY_CODE.get(e.code or "") or next(status for kind, status in _STATUSES if isinstance(e, kind))
    except BrokenPipeError:
        # `deltapy cat t | head` closes the pipe early: this is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return verbs.DONE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as e:
        # an odd value in the table, or a bug in delta_pyds; not status 1, which means that verify found errors
        print(f"deltapy: {given.path}: {type(e).__name__}: {shown(str(e))}", file=sys.stderr)
        return _BROKEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deltapy",
        description="Inspect and maintain Delta tables, without Spark.",
        epilog="Status: 0 done; 1 verify found errors; 2 invalid arguments; 3 no such table or version; 4 not allowed; "
        "5 another commit was first; 6 damaged table or failing store.",
    )
    # read from the loaded package: an import of its version would load Spark
    parser.add_argument("--version", action="version", version=f"deltapy {sys.modules['delta_pyds'].__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(verb: str, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(verb, help=text, description=f"{text}.")
        added.add_argument("path", metavar="PATH", help="the table: a directory or a URL; with --catalog its name")
        added.add_argument(
            "--catalog", metavar="NAME", help="the catalog that manages the table: its name, or sqlite:///FILE"
        )
        added.add_argument("--json", action="store_true", help="print JSON, one value per line")
        added.add_argument(
            "--storage-option",
            dest="storage_options",
            metavar="KEY=VALUE",
            type=_key_and_value,
            action="append",
            help="an option of the store; put secrets into the environment",
        )
        added.set_defaults(verb=getattr(verbs, verb))
        return added

    command("history", "The commits of the table, newest first").add_argument("--limit", type=_number, metavar="N")
    command("detail", "Identity, size, layout, properties and protocol of the table")
    explain = command("explain", "The files that a read would open, and why it skips the others")
    _selection(explain).add_argument("--since", **_SINCE)
    _range(explain)
    verify = command("verify", "Check the table against every rule of the protocol")
    verify.add_argument("--log-only", action="store_true", help="do not read data files")
    verify.add_argument(
        "--time-zone", metavar="ZONE", type=_zone, help="the time zone of the sessions that wrote the table"
    )
    report = command("report", "One HTML page: files, partitions, clustering, growth, findings, gains of maintenance")
    report.add_argument(
        "-o", "--to", "--output", metavar="FILE", help="write the page to FILE instead of the standard output"
    )
    checks = report.add_mutually_exclusive_group()
    checks.add_argument("--no-verify", action="store_true", help="omit the findings of verify")
    checks.add_argument(
        "--verify", choices=("log", "data"), help="read the log only, or the data too, for any number of files"
    )
    command("checkpoint", "Write a checkpoint of the newest version")
    vacuum = command("vacuum", "Delete the files that no version within the retention needs")
    vacuum.add_argument("--dry-run", action="store_true", help="print the paths and delete nothing")
    vacuum.add_argument(
        "--hours",
        type=float,
        metavar="H",
        help="the retention in hours; the default is the table's own, or a week",
    )
    vacuum.add_argument("--lite", action="store_true", help="delete only files that the log removed, without a listing")
    vacuum.add_argument(
        "--unsafe-retention", action="store_true", help="allow fewer hours than the table's own retention"
    )
    optimize = command("optimize", "Compact small files into larger ones; cluster a clustered table")
    optimize.add_argument(
        "--where", metavar="PREDICATE", action="append", default=[], help="optimize only the partitions that match"
    )
    zone_help = "the time zone of the sessions that wrote timestamp partitions"
    optimize.add_argument("--time-zone", metavar="ZONE", type=_zone, help=zone_help)
    way = optimize.add_mutually_exclusive_group()
    way.add_argument("--zorder-by", metavar="NAMES", type=_names, help="rewrite all files in Z-order of these columns")
    way.add_argument("--purge", action="store_true", help="rewrite the files that have deleted rows")
    way.add_argument("--full", action="store_true", help="cluster all files of a clustered table")
    restore = command("restore", "Restore an earlier version of the table, as a new version")
    which = restore.add_mutually_exclusive_group(required=True)
    which.add_argument("--version", metavar="N", type=_number)
    which.add_argument("--timestamp", metavar="TIME", help="the last version at or before TIME")
    restore.add_argument(
        "--time-zone", metavar="ZONE", type=_zone, default="UTC", help="the time zone of a time that names none (UTC)"
    )
    cat = command("cat", "Print the rows, as CSV or JSON")
    _selection(cat)
    cat.add_argument("--limit", type=_number, metavar="N", help="at most N rows")
    changes = command("changes", "Print the rows that commits inserted, updated and deleted, as CSV or JSON")
    _rows(changes)
    changes.add_argument("--since", required=True, **_SINCE)
    _range(changes)
    changes.add_argument("--keys", metavar="NAMES", type=_names, help="the columns that identify a row: pair updates")
    changes.add_argument("--limit", type=_number, metavar="N", help="at most N rows")
    text = "Run a program with delta_pyds installed in its Spark sessions, such as: deltapy run -- dbt build"
    program = commands.add_parser("run", help=text, description=f"{text}.")
    program.add_argument("--format", choices=("delta", "deltapy"), default="delta", help="the format to handle (delta)")
    program.add_argument("--required", action="store_true", help="let the program fail if the installation fails")
    program.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS", help="the program")
    program.set_defaults(verb=run.run, path=None, catalog=None, storage_options=None)
    return parser


def _rows(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--where", metavar="PREDICATE", help="a predicate in Spark SQL")
    parser.add_argument("--columns", metavar="NAMES", help="names, separated by commas", type=_names)
    parser.add_argument(
        "--time-zone", metavar="ZONE", type=_zone, default="UTC", help="the time zone of times that name none (UTC)"
    )


def _selection(parser: argparse.ArgumentParser) -> argparse._ActionsContainer:
    """Returns: the group of the options that choose a version, of which one may be given."""
    _rows(parser)
    version = parser.add_mutually_exclusive_group()
    version.add_argument("--version", metavar="N", type=_number)
    version.add_argument("--timestamp", metavar="TIME", help="the last version at or before TIME")
    return version


def _range(parser: argparse.ArgumentParser) -> None:
    """The options of a read of changes, without its first commit."""
    parser.add_argument(
        "--until", metavar="N|TIME", type=_end, help="the last commit of changes; by default the newest"
    )
    parser.add_argument("--net", action="store_true", help="only the difference between the ends of the range")
    parser.add_argument(
        "--compute",
        metavar="WAY",
        default="auto",
        help="how changes that were not recorded are computed: auto, rowIds, values or never",
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _end(text: str) -> int | str:
    """A version or a time."""
    return _number(text) if text.isdecimal() else text


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {_MOST}")
    return number


def _zone(text: str) -> str:
    """Check the zone before any work: a table without timestamps would never use it."""
    try:
        TimeZone(text)
    except DeltaError as e:
        raise argparse.ArgumentTypeError(e.message) from None
    return text


def _key_and_value(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found or not key:
        raise argparse.ArgumentTypeError("give KEY=VALUE")
    return key, value


_SINCE: dict[str, Any] = {"metavar": "N|TIME", "type": _end, "help": "the first commit of changes: a version or a time"}


if __name__ == "__main__":
    sys.exit(main())
