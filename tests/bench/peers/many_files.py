"""Tables of very many files, as a writer of today leaves them."""

from __future__ import annotations

from pathlib import Path

from delta_pyds.log.checksum_writer import checksum_path, compute_checksum, write_checksum
from delta_pyds.table.snapshot import load_snapshot
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import data_table, planning_table

ROWS_OF_A_SMALL_FILE = 100


def table_of(settings: PeerSettings, size: int) -> Path:
    """A table of ``size`` files under one checkpoint, of which one exists. See ``_with_checksum``."""
    return _with_checksum(planning_table(settings.data, size, "json"))


def table_of_small_files(data: Path, size: int) -> Path:
    """A table of ``size`` files that exist, each with its range of ids. Otherwise as ``table_of``."""
    return _with_checksum(data_table(data, size * ROWS_OF_A_SMALL_FILE, size))


def _with_checksum(table: Path) -> Path:
    """The table with the checksum of its version.

    The reference takes protocol and metadata from that file and looks for them in the whole state without it, as long
    as it takes; all of its own tables have one.
    """
    snapshot = load_snapshot(str(table))
    if not Path(checksum_path(snapshot.table_root, snapshot.version).removeprefix("file://")).exists():
        checksum = compute_checksum(snapshot.replay)
        write_checksum(snapshot.storage, snapshot.table_root, snapshot.version, checksum)
    return table
