"""The command line: arguments, and the status that a command ends with.

Invariants: a failure is one sentence on the standard error, never a stack trace; the status says what happened:

| status | |
|---|---|
| 0 | done |
| 1 | ``verify`` found an error in the table |
| 2 | the arguments are none |
| 3 | no table is there, or not that version |
| 4 | the table or the request does not allow it |
| 5 | another commit was first |
| 6 | the table is damaged, or its store failed |
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from delta_pyds.catalog.address import locate
from delta_pyds.cli import verbs
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
# of an error whose class says less than its code
_STATUSES_BY_CODE = {"DELTA_CANNOT_RESTORE_TABLE_VERSION": 3}
_BROKEN = 6
_WRONG = 2
# what a count of Arrow's may be
_MOST = 2**63 - 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns: its status.

    >>> main(["history", "/data/events", "--limit", "3"])
    """
    given = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # a terminal of another encoding than the table's texts
        sys.stdout.reconfigure(errors="backslashreplace")
    given.storage_options = dict(given.storage_options or ())
    try:
        if given.catalog is None:
            absolute_table_path(given.path)
    except DeltaError as e:
        # no store was asked yet
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
        # `deltapy cat t | head`: nobody reads on, and nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return verbs.DONE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as e:
        # a value of the table, or a fault of ours: status 1 would say that verify found something
        print(f"deltapy: {given.path}: {type(e).__name__}: {shown(str(e))}", file=sys.stderr)
        return _BROKEN


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deltapy",
        description="Looks at Delta tables and keeps them well, without Spark.",
        epilog="Status: 0 done; 1 verify found errors; 2 wrong arguments; 3 no such table or version; 4 not allowed; "
        "5 another commit was first; 6 damaged table or failing store.",
    )
    # looked at, not imported: the package is loaded by now, and its own module names Spark
    parser.add_argument("--version", action="version", version=f"deltapy {sys.modules['delta_pyds'].__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(verb: str, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(verb, help=text, description=f"{text}.")
        added.add_argument("path", metavar="PATH", help="of the table: a directory or a URL; its name with --catalog")
        added.add_argument("--catalog", metavar="NAME", help="that manages the table: its name, or sqlite:///FILE")
        added.add_argument("--json", action="store_true", help="JSON values, one in a line")
        added.add_argument(
            "--storage-option",
            dest="storage_options",
            metavar="KEY=VALUE",
            type=_key_and_value,
            action="append",
            help="for the store; secrets belong into the environment",
        )
        added.set_defaults(verb=getattr(verbs, verb))
        return added

    command("history", "The commits of the table, newest first").add_argument("--limit", type=_number, metavar="N")
    command("detail", "What the table is: identity, size, layout, properties, protocol")
    _selection(command("explain", "Which files a read would open, and why not the others"))
    verify = command("verify", "Hold the table against every rule of the protocol")
    verify.add_argument("--log-only", action="store_true", help="leave the data files unread")
    verify.add_argument("--time-zone", metavar="ZONE", type=_zone, help="of the sessions that wrote the table")
    report = command("report", "One HTML page: files, partitions, clustering, growth, findings, what upkeep would gain")
    report.add_argument("-o", "--output", metavar="FILE", help="write the page here, and not to the standard output")
    checks = report.add_mutually_exclusive_group()
    checks.add_argument("--no-verify", action="store_true", help="leave the findings of verify out")
    checks.add_argument("--verify", choices=("log", "data"), help="what verify reads, whatever the number of files")
    command("checkpoint", "Write a checkpoint of the newest version")
    vacuum = command("vacuum", "Delete the files that no version within the retention needs")
    vacuum.add_argument("--dry-run", action="store_true", help="print the paths, and delete nothing")
    vacuum.add_argument("--hours", type=float, metavar="H", help="the retention; by default the table's own, a week")
    vacuum.add_argument("--lite", action="store_true", help="look at what the log removed, and list nothing")
    vacuum.add_argument("--unsafe-retention", action="store_true", help="take less hours than the table's own")
    optimize = command("optimize", "Make few files of many small ones; cluster a clustered table")
    optimize.add_argument("--where", metavar="PREDICATE", action="append", default=[], help="of partition columns")
    zone_help = "of the sessions that wrote timestamps as partitions"
    optimize.add_argument("--time-zone", metavar="ZONE", type=_zone, help=zone_help)
    way = optimize.add_mutually_exclusive_group()
    way.add_argument("--zorder-by", metavar="NAMES", type=_names, help="write all files anew, along these columns")
    way.add_argument("--purge", action="store_true", help="write files anew that have deleted rows")
    way.add_argument("--full", action="store_true", help="cluster all files of a clustered table")
    restore = command("restore", "Make the table again what it was, by a new version")
    which = restore.add_mutually_exclusive_group(required=True)
    which.add_argument("--version", metavar="N", type=_number)
    which.add_argument("--timestamp", metavar="TIME", help="the last version that is not after it")
    restore.add_argument("--time-zone", metavar="ZONE", type=_zone, default="UTC", help="of a time without one (UTC)")
    cat = command("cat", "The rows, as CSV or as JSON")
    _selection(cat)
    cat.add_argument("--limit", type=_number, metavar="N", help="at most so many rows")
    return parser


def _selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--where", metavar="PREDICATE", help="in Spark SQL")
    parser.add_argument("--columns", metavar="NAMES", help="with commas between them", type=_names)
    version = parser.add_mutually_exclusive_group()
    version.add_argument("--version", metavar="N", type=_number)
    version.add_argument("--timestamp", metavar="TIME", help="the last version that is not after it")
    parser.add_argument("--time-zone", metavar="ZONE", type=_zone, default="UTC", help="of times that name none (UTC)")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _number(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _MOST:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {_MOST}")
    return number


def _zone(text: str) -> str:
    """Checked before anything is done: a table without a time would never ask for it."""
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


if __name__ == "__main__":
    sys.exit(main())
