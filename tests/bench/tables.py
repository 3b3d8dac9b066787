"""The tables that are measured; made once, kept in the data directory."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.bench.measure import say
from tests.support.file_statistics import stats_to_json
from tests.support.large_table import SHORTHAND, generate_large
from tests.support.table_builder import Action, TableBuilder

_CITIES = pa.array(["Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Hamburg"])
_FIRST_DAY = 19_358  # 2023-01-01
_FIRST_MICROS = _FIRST_DAY * 86_400_000_000


def made_once(path: Path, make: Callable[[Path], object]) -> Path:
    """``path``, made by ``make`` unless an earlier run finished it."""
    done = path.with_name(path.name + ".done")
    if not done.exists():
        say(f"making {path}")
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)
        done.touch()
    return path


def planning_table(data: Path, num_files: int, stats: str, extra_commits: int = 0) -> Path:
    """A table of very many files, of which the one that is looked for exists."""
    name = f"planning-{num_files}-{stats}" + (f"-{extra_commits}-commits" if extra_commits else "")

    def make(path: Path) -> None:
        generate_large(path, num_files, stats=stats, extra_commits=extra_commits, real_files=[wanted(num_files)])

    return made_once(data / name, make)


def wanted(num_files: int) -> int:
    """The number of the file that planning looks for."""
    return num_files // 3


def rows(start: int, stop: int) -> pa.Table:
    """Rows ``start`` to ``stop`` of an endless table of 7 columns; ``id`` is the row's number."""
    number = pa.array(range(start, stop), pa.int64())
    customer = _modulo(pc.multiply(number, 7919), 1_000_003)
    columns = {
        "id": number,
        "customer": pc.cast(customer, pa.int32()),
        "price": pc.multiply(pc.cast(customer, pa.float64()), 0.01),
        "city": _CITIES.take(_modulo(customer, 8)),
        "comment": pc.binary_join_element_wise("order of customer ", pc.cast(customer, pa.string()), ""),
        "ts": pc.cast(pc.add(pc.multiply(number, 1000), _FIRST_MICROS), pa.timestamp("us", tz="UTC")),
        "day": pc.cast(pc.cast(pc.add(_modulo(customer, 365), _FIRST_DAY), pa.int32()), pa.date32()),
    }
    return pa.table(columns)


def _modulo(values: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(values, pc.multiply(pc.divide(values, divisor), divisor))


def data_table(data: Path, num_rows: int, num_files: int) -> Path:
    """``num_rows`` rows in ``num_files`` files, each with its range of ids."""

    def make(path: Path) -> None:
        table = TableBuilder(path, SHORTHAND)
        table.create()
        step = num_rows // num_files
        table.commit([_write(table, i, rows(i * step, (i + 1) * step)) for i in range(num_files)])
        table.checkpoint()

    return made_once(data / f"rows-{num_rows}-{num_files}", make)


def table_with_vectors(data: Path, plain: Path, share: float) -> Path:
    """The files of ``plain``, with ``share`` of their rows deleted, scattered, by deletion vectors."""

    def make(path: Path) -> None:
        table = TableBuilder(path, SHORTHAND, properties={"delta.enableDeletionVectors": "true"})
        table.create()
        seeded = random.Random(5)
        work: list[tuple[Action, list[int]]] = []
        for file in sorted(plain.glob("*.parquet")):
            os.link(file, path / file.name)
            count = pq.read_metadata(file).num_rows
            stats = stats_to_json({"numRecords": count})
            add = table.add(file.name, size=file.stat().st_size, stats=stats)
            work.append((add, seeded.sample(range(count), int(count * share))))
        table.commit([add for add, _ in work])
        table.commit([action for pair in table.delete_rows_of_many(work) for action in pair])
        table.checkpoint()

    return made_once(data / f"{plain.name}-without-{share}", make)


def table_in_partitions(data: Path, plain: Path) -> Path:
    """The files of ``plain``, each a partition of its own, in Hive directories."""

    def make(path: Path) -> None:
        schema = {**SHORTHAND, "part": "integer"}
        table = TableBuilder(path, schema, partition_columns=["part"])
        table.create()
        adds = []
        for number, file in enumerate(sorted(plain.glob("*.parquet"))):
            name = f"part={number}/{file.name}"
            (path / name).parent.mkdir()
            os.link(file, path / name)
            adds.append(table.add(name, size=file.stat().st_size, partitionValues={"part": str(number)}))
        table.commit(adds)
        table.checkpoint()

    return made_once(data / f"{plain.name}-in-partitions", make)


def _write(table: TableBuilder, number: int, content: pa.Table) -> Action:
    name = f"part-{number:05d}.snappy.parquet"
    file = table.path / name
    pq.write_table(content, file, store_schema=False)
    low, high = {}, {}
    for column in content.column_names:
        bounds = pc.min_max(content[column]).as_py()
        low[column], high[column] = bounds["min"], bounds["max"]
    nulls = dict.fromkeys(content.column_names, 0)
    stats = {"numRecords": content.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    return table.add(name, size=file.stat().st_size, stats=stats_to_json(stats))


def table_of_tiny_files(data: Path, num_files: int) -> Path:
    """Ten rows in each of so many files."""

    def make(path: Path) -> None:
        table = TableBuilder(path, {"id": "long", "customer": "integer"})
        table.create()
        first = path / "part-0.parquet"
        pq.write_table(rows(0, 10).select(["id", "customer"]), first)
        adds = []
        for number in range(num_files):
            file = path / f"part-{number}.parquet"
            if number:
                shutil.copyfile(first, file)
            adds.append(table.add(file.name, size=first.stat().st_size, stats='{"numRecords":10}'))
        table.commit(adds)

    return made_once(data / f"tiny-{num_files}", make)
