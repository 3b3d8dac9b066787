"""Statistics of columns that the log lacks: the columns are read, and no file is rewritten.

Protocol: "Writer Requirements for Clustered Table", "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec

from delta_pyds.commands.row_changes.plan import CommandOptions, files_state
from delta_pyds.data.read.reader import read
from delta_pyds.data.write.column_statistics import column_statistics
from delta_pyds.progress import step
from delta_pyds.protocol.actions import AddFile
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.schema import StructType
from delta_pyds.redaction import safe_logger
from delta_pyds.table.definition.statistics_columns import Path, physical_path, show_path
from delta_pyds.table.scan.live_files import live_files
from delta_pyds.table.scan.scan import plan_scan
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.scan_file import scan_file
from delta_pyds.tasks.write_state import ColumnSource

logger = safe_logger(__name__)

_THREADS = 8


def with_statistics(snapshot: Snapshot, columns: Sequence[Path], options: CommandOptions) -> list[AddFile]:
    """The live files that lack statistics of one of the columns; they now have statistics of all of them.

    ``columns``: logical paths. The statistics include deleted rows, as wide bounds may. Reads the columns of these
    files, in threads of this process.

    Raises: CorruptDataFileError and other errors that name the file.
    """
    wanted = [physical_path(snapshot.schema, path) for path in columns]
    files = [
        file
        for file in live_files(plan_scan(snapshot, storage_options=options.storage_options))
        if not all(_is_known(file.stats, path) for path in wanted)
    ]
    if not files:
        return []
    names = {path[0] for path in columns}
    schema = StructType(tuple(f for f in snapshot.schema if f.name in names))
    scan = plan_scan(
        snapshot, columns=schema.names, time_zone=options.time_zone, storage_options=options.storage_options
    )
    state = replace(
        files_state(snapshot, options),
        schema=schema,
        columns=tuple(ColumnSource(f, "input", i) for i, f in enumerate(schema)),
        checks=(),
        stats_columns=tuple(columns),
    )

    def one(file: AddFile) -> AddFile:
        found = column_statistics(state, read(scan.state, scan_file(file, scan.state, None)))
        return msgspec.structs.replace(file, data_change=False, stats=_merged(file.stats, found))

    shown = ", ".join(map(show_path, columns))
    with (
        step(f"collect statistics of {shown}", snapshot.table_root, total=len(files), unit="files", log=logger),
        ThreadPoolExecutor(_THREADS, thread_name_prefix="deltapy-statistics") as pool,
    ):
        try:
            return list(pool.map(one, files))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _is_known(stats: str | None, path: Path) -> bool:
    """Whether the statistics have bounds of the column, or show that all its values are null."""
    tree = _tree(stats)
    bounds = (_at(tree.get("minValues"), path), _at(tree.get("maxValues"), path))
    nulls = _at(tree.get("nullCount"), path)
    return any(bound is not None for bound in bounds) or (nulls is not None and nulls == tree.get("numRecords"))


def _tree(stats: str | None) -> Mapping[str, Any]:
    try:
        tree = decode_json(stats) if stats else {}
    except InvalidJSONError:
        return {}
    return tree if isinstance(tree, dict) else {}


def _at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _merged(stats: str | None, found: str) -> str:
    """The statistics with those of the columns added; everything else stays byte by byte, even numbers."""
    old = stats if stats and _tree(stats) else "{}"
    tight = _tree(stats).get("tightBounds")
    new = msgspec.json.decode(found, type=dict[str, msgspec.Raw])
    if tight is not None:
        # tightBounds stays as in the log: the new bounds include rows that a vector deletes
        new.pop("tightBounds", None)
    return bytes(_united(msgspec.Raw(old.encode()), msgspec.Raw(msgspec.json.encode(new)))).decode()


def _united(old: msgspec.Raw, new: msgspec.Raw) -> msgspec.Raw:
    if bytes(old).lstrip()[:1] != b"{" or bytes(new).lstrip()[:1] != b"{":
        return new
    known = msgspec.json.decode(old, type=dict[str, msgspec.Raw])
    for name, value in msgspec.json.decode(new, type=dict[str, msgspec.Raw]).items():
        known[name] = _united(known[name], value) if name in known else value
    return msgspec.Raw(msgspec.json.encode(known))
