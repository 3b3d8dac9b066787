"""What is asked of a damaged table, and what came of it."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from delta_pyds import explain, report, verify
from delta_pyds.commands.layout.optimize import plan_optimize
from delta_pyds.commands.layout.run import run_layout
from delta_pyds.commands.row_changes.merge import run_merge
from delta_pyds.commands.row_changes.plan import CommandOptions
from delta_pyds.commands.row_changes.resolved import MergeClause
from delta_pyds.commands.row_changes.result import Place
from delta_pyds.commands.task_runner import LocalRunner
from delta_pyds.data.convert.parquet_summary import ParquetSummaries
from delta_pyds.data.read.reader import read
from delta_pyds.errors import DeltaError
from delta_pyds.protocol.schema import LONG, StructField, StructType
from delta_pyds.protocol.stream_offset import StreamOffset
from delta_pyds.spark.native.file_index import log_chunks
from delta_pyds.spark.native.files import list_files, reasons_against_files
from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.storage.local import LocalStorage
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import load_snapshot
from tests.fuzz.tables import BaseTable
from tests.support.change_feed import change_rows
from tests.support.footers import forget_footers
from tests.support.planned_changes import planned_merge
from tests.support.stream_query import Query

# An error is read by a person.
LONGEST_MESSAGE = 10_000
_HERE = Place("process", "a damaged table")
_ALLOWED_CONTROLS = "\n\t"


@dataclass(frozen=True)
class Outcome:
    """The outcome of one operation.

    ``kind``: "rows", "error" (a DeltaError), "bad message" (a DeltaError that nobody can read) or "exception".
    ``rows``: how often each row came. ``text``: of an error its message, of an exception its traceback.
    """

    kind: str
    rows: Counter[str] = field(default_factory=Counter)
    text: str = ""


def operations(table: BaseTable) -> dict[str, Callable[[str], Any]]:
    """Every operation of the core on the table, by name. What returns rows, returns them as texts."""
    found: dict[str, Callable[[str], Any]] = {"read": _read, "verify": _verify, "stream": _stream, "native": _native}
    found |= {"report": _report, "convert": _convert, "optimize": _optimize, "merge": _merge(table)}
    found |= {f"where {p}": _where(p) for p in table.predicates}
    found |= {f"explain {p}": _explain(p) for p in table.predicates}
    found |= {f"version {v}": _version(v) for v in table.versions}
    if table.changes:
        found["changes"] = _changes
        found["stream changes"] = _stream_changes
    return found


def chosen(table: BaseTable, random: Random, most: int = 4) -> dict[str, Callable[[str], Any]]:
    """``read`` and some of the other operations, in any order."""
    all_of_them = operations(table)
    names = random.sample(sorted(set(all_of_them) - {"read"}), min(most - 1, len(all_of_them) - 1))
    names.insert(random.randrange(len(names) + 1), "read")
    return {name: all_of_them[name] for name in names}


def outcome_of(operation: Callable[[str], Any], root: str) -> Outcome:
    """Run one operation; each exception is an outcome."""
    try:
        found = operation(root)
    except DeltaError as error:
        return _of_message(str(error))
    except (Exception, RecursionError):
        return Outcome("exception", text=short(traceback.format_exc()))
    if isinstance(found, str):
        report = _of_message(found, longest=10 * LONGEST_MESSAGE)
        return report if report.kind == "bad message" else Outcome("rows", text=found)
    return Outcome("rows", found)


def _of_message(text: str, longest: int = LONGEST_MESSAGE) -> Outcome:
    faults = []
    if len(text) > longest:
        faults.append(f"it has {len(text)} characters")
    if odd := sorted({c for c in text if not c.isprintable() and c not in _ALLOWED_CONTROLS and _is_control(c)}):
        faults.append(f"it holds {odd[:5]!r}")
    if faults:
        return Outcome("bad message", text=f"{'; '.join(faults)}: {short(ascii(text))}")
    return Outcome("error", text=text)


def _is_control(c: str) -> bool:
    return ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000


def short(text: str, most: int = 6_000) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= most else f"{text[: most // 2]}\n...\n{text[-most // 2 :]}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Warnings of damaged tables are expected."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


# ---- the operations


def _rows(scan: Any) -> Counter[str]:
    return Counter(repr(row) for file in scan.files() for batch in read(scan.state, file) for row in batch.to_pylist())


def _read(root: str) -> Counter[str]:
    return _rows(plan_scan(load_snapshot(root)))


def _where(predicate: str) -> Callable[[str], Counter[str]]:
    return lambda root: _rows(plan_scan(load_snapshot(root), where=predicate))


def _explain(predicate: str) -> Callable[[str], str]:
    return lambda root: str(explain(root, where=predicate))


def _version(version: int) -> Callable[[str], Counter[str]]:
    return lambda root: _rows(plan_scan(load_snapshot(root, version=version)))


def _verify(root: str) -> str:
    return str(verify(root))


def _native(root: str) -> str:
    """All that is asked of the files before Spark's own reader is given them."""
    forget_footers()
    scan = plan_scan(load_snapshot(root))
    files = list_files(scan)
    reasons = list(reasons_against_files(files, scan.state))
    reasons += [str(len(bytes(chunk))) for chunk in log_chunks(files, range(len(files.files)))] if not reasons else []
    reasons.append(first_foreign_to_spark(scan.snapshot.storage, scan.state, files.files) or "")
    return "\n".join(reasons)


def _report(root: str) -> str:
    report(root)
    return ""


def _convert(root: str) -> str:
    """All that a convert asks of the files."""
    summaries = ParquetSummaries(LocalStorage(), root, prefix_length=32, statistics_of=lambda _: None)
    for file in plan_scan(load_snapshot(root)).files():
        summaries.of(file.path)
    return ""


def _optimize(root: str) -> Counter[str]:
    def optimize(copy: str) -> None:
        run_layout(plan_optimize(load_snapshot(copy), (), CommandOptions()), _HERE, LocalRunner(1))

    return _rows_after(optimize, root)


def _merge(table: BaseTable) -> Callable[[str], Counter[str]]:
    """Keys of a source, which rule files out, delete rows."""
    key = "l" if table.name == "types" else "id"
    source = StructType((StructField("id", LONG),))

    def merge(copy: str) -> None:
        rows = pa.table({"id": pa.array([3, 12], pa.int64())})
        plan = planned_merge(
            load_snapshot(copy),
            f"t.{key} = s.id",
            [MergeClause("matched", "delete")],
            rows,
            source,
            CommandOptions(),
            parameters={"predicate": "[]"},
        )
        run_merge(plan, _HERE, LocalRunner(1))

    return lambda root: _rows_after(merge, root)


def _rows_after(command: Callable[[str], None], root: str) -> Counter[str]:
    """The rows of a copy of the table on which the command ran."""
    with tempfile.TemporaryDirectory(prefix="delta_pyds_fuzz_") as folder:
        copy = os.path.join(folder, "t")
        shutil.copytree(root, copy, symlinks=True, copy_function=_copied)
        command(copy)
        return _read(copy)


def _copied(source: str, target: str) -> None:
    if os.path.isfile(source):
        shutil.copy2(source, target, follow_symlinks=False)


def _changes(root: str) -> Counter[str]:
    return Counter(map(repr, change_rows(Path(root))))


def _stream(root: str) -> Counter[str]:
    return _streamed(root)


def _stream_changes(root: str) -> Counter[str]:
    from delta_pyds.table.stream.source import StreamOptions

    return _streamed(root, StreamOptions(read_change_feed=True))


def _streamed(root: str, options: Any = None) -> Counter[str]:
    query = Query(root, options)
    query.run(limit=50)
    source = query.open()
    start, end = source.initial_offset(), StreamOffset.from_json(_last(query))
    return Counter(map(repr, query.rows(start, end)))


def _last(query: Query) -> Mapping[str, Any]:
    import json

    found: Mapping[str, Any] = json.loads(query.offsets[-1])
    return found
