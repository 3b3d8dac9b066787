"""The tables that maintenance is measured on: made once, or recreated from those.

Many files are hard links of a few small ones: what is measured looks at names, sizes, footers and the log.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.peers.many_files import table_of
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import made_once, rows
from tests.support.large_table import SHORTHAND
from tests.support.table_builder import TableBuilder

# a file system gives one file no more than some ten thousand names
_NAMES_OF_ONE_FILE = 5_000
_ROWS = 10
_STATS = '{"numRecords":10,"minValues":{"id":0},"maxValues":{"id":9},"nullCount":{"id":0}}'
_OLD_MS = 1_700_000_000_000


def files_without_log(data: Path, num_files: int) -> Path:
    """A directory of Parquet files."""

    def make(path: Path) -> None:
        path.mkdir(parents=True)
        for number in range(num_files):
            name = path / f"part-{number:06d}.parquet"
            first = path / f"part-{number - number % _NAMES_OF_ONE_FILE:06d}.parquet"
            if name == first:
                pq.write_table(rows(0, _ROWS), name, store_schema=False)
            else:
                os.link(first, name)

    return made_once(data / f"files-{num_files}", make)


def directory_of_files(settings: PeerSettings, path: Path) -> Path:
    """The same files under the same names in another directory, which has no log, or has it no longer."""
    original = files_without_log(settings.data, settings.many_files)
    if not path.exists():
        path.mkdir(parents=True)
        for file in original.iterdir():
            os.link(file, path / file.name)
    shutil.rmtree(path / "_delta_log", ignore_errors=True)
    return path


def table_of_files(settings: PeerSettings, path: Path, *, removed: bool) -> Path:
    """A table of these files in version 1; ``removed``: version 2 has none of them."""
    log = made_once(settings.data / f"log-{settings.many_files}-{removed}", partial(_make_log, settings, removed))
    directory_of_files(settings, path)
    shutil.copytree(log, path / "_delta_log")
    return path


def _make_log(settings: PeerSettings, removed: bool, log: Path) -> None:
    files = sorted(files_without_log(settings.data, settings.many_files).iterdir())
    making = log.with_name(f"{log.name}-making")
    shutil.rmtree(making, ignore_errors=True)
    table = TableBuilder(making, SHORTHAND)
    table.create()
    adds = [table.add(file.name, size=file.stat().st_size, stats=_STATS) for file in files]
    table.commit(adds)
    if removed:
        table.commit([table.remove(add) for add in adds])
    table.checkpoint()
    shutil.rmtree(log, ignore_errors=True)
    (making / "_delta_log").rename(log)
    shutil.rmtree(making)


def log_of(original: Path, path: Path) -> Path:
    """The table's log alone: what changes only definitions never looks at a file."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(original / "_delta_log", path / "_delta_log")
    return path


def clustered(data: Path, original: Path, cluster: Callable[[Path], None]) -> Path:
    """A table with the rows of another one, whose new files will be clustered: ``cluster`` says so in its log."""

    def make(path: Path) -> None:
        shutil.copytree(original / "_delta_log", path / "_delta_log")
        for file in original.glob("*.parquet"):
            os.link(file, path / file.name)
        cluster(path)

    return made_once(data / f"{original.parent.parent.name}-{original.name}-clustered", make)


def table_and_inventory(settings: PeerSettings, size: int) -> tuple[Path, Path, int]:
    """A table of so many files, a listing of it as Parquet, and how many files of the listing no version needs."""
    table = table_of(settings, size)
    orphans = min(1_000, size // 10)

    def make(path: Path) -> None:
        path.mkdir(parents=True)
        [checkpoint] = (table / "_delta_log").glob("*.checkpoint.parquet")
        names = pc.struct_field(pq.ParquetFile(checkpoint).read(["add.path"]).column("add").combine_chunks(), "path")
        known = names.drop_null()
        every = pa.concat_arrays([known, pa.array([f"part-{n:05d}-nobody.parquet" for n in range(orphans)])])
        listing = {
            # the reference knows paths by their scheme alone
            "path": pc.binary_join_element_wise(f"file:{table}", every, "/"),
            "length": pa.repeat(pa.scalar(1_000, pa.int64()), len(every)),
            "isDir": pa.repeat(pa.scalar(False), len(every)),
            "modificationTime": pa.repeat(pa.scalar(_OLD_MS, pa.int64()), len(every)),
        }
        pq.write_table(pa.table(listing), path / "part-0.parquet")

    return table, made_once(settings.data / f"inventory-{size}", make), orphans
