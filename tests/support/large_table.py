"""Tables of very many files under one checkpoint, written in bounded memory.

The data files are named but do not exist, except those of ``real_files``.
File ``i`` holds the ids ``[i * ROWS, (i + 1) * ROWS)``, so that ``id = x`` is
in one file alone, and it stands at a scattered place in the checkpoint.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.support import checkpoints
from tests.support.delta_types import schema_of
from tests.support.file_statistics import stats_struct_type

ROWS = 1000
CHECKPOINT_VERSION = 10
ROW_GROUP = 100_000
_DAYS = 365
_EPOCH_DAY = (dt.date(2023, 1, 1) - dt.date(1970, 1, 1)).days
_DAY_MS = 86_400_000
_FILES_PER_JOB = 200
SHORTHAND = {
    "id": "long",
    "customer": "integer",
    "price": "double",
    "city": "string",
    "comment": "string",
    "ts": "timestamp",
    "day": "date",
}
_CITIES = ["Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Hamburg"]
_TABLE_ID = "5f1c2c1e-0f0a-4c39-9a34-6f3c8f9f7a11"


@dataclass(frozen=True)
class LargeTable:
    """The generated table: ``version`` is the latest; ``num_files`` counts the extra commits' files too."""

    path: Path
    num_files: int
    version: int
    partitioned: bool

    def predicate(self, file: int) -> str:
        """A predicate that only rows of file ``file`` satisfy."""
        return f"id = {file * ROWS + ROWS // 2}"


def generate_large(
    path: str | os.PathLike[str],
    num_files: int,
    *,
    partitioned: bool = False,
    stats: str = "json",
    checkpoint: bool = True,
    extra_commits: int = 0,
    real_files: Iterable[int] = (),
) -> LargeTable:
    """Write a table of ``num_files`` files.

    ``stats``: in the checkpoint as "json", "struct" or "both".
    ``partitioned``: by ``day``, with 365 values.
    ``checkpoint`` False: one commit file holds all adds.
    ``extra_commits``: commits after the checkpoint, each adding one file.
    ``real_files``: numbers of the files that are written, with ``ROWS`` rows each.
    """
    root = Path(path)
    log = root / "_delta_log"
    log.mkdir(parents=True)
    partitions = ["day"] if partitioned else []
    schema = schema_of(SHORTHAND)
    data_fields = [f for f in schema["fields"] if f["name"] not in partitions]
    properties = {"delta.checkpoint.writeStatsAsJson": "false"} if stats == "struct" else {}
    if stats != "json":
        properties["delta.checkpoint.writeStatsAsStruct"] = "true"
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    metadata = {
        "id": _TABLE_ID,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema, separators=(",", ":")),
        "partitionColumns": partitions,
        "configuration": properties,
        "createdTime": 1_672_531_200_000,
    }
    maker = _Adds(num_files, partitioned, data_fields, set(real_files), root)
    first: list[dict[str, Any]] = [{"protocol": protocol}, {"metaData": metadata}]
    if checkpoint:
        version = CHECKPOINT_VERSION
        _write_commit(log, version, [])
        file = log / f"{version:020d}.checkpoint.parquet"
        _write_checkpoint(file, maker, first, num_files, stats, partitioned)
        hint: dict[str, Any] = {
            "version": version,
            "size": num_files + 2,
            "sizeInBytes": file.stat().st_size,
            "numOfAddFiles": num_files,
        }
        hint["checksum"] = checkpoints.hint_checksum(hint)
        (log / "_last_checkpoint").write_text(json.dumps(hint))
    else:
        version = 0
        _write_commit(log, 0, first, _json_adds(maker, 0, num_files))
    for number in range(extra_commits):
        version += 1
        _write_commit(log, version, [], _json_adds(maker, num_files + number, num_files + number + 1))
    return LargeTable(root, num_files + extra_commits, version, partitioned)


class _Adds:
    """Makes the ``add`` columns of a range of places in the checkpoint."""

    def __init__(self, total: int, partitioned: bool, data_fields: list[Any], real: set[int], root: Path) -> None:
        self.total, self.partitioned, self.real, self.root = total, partitioned, real, root
        self.stats_type = stats_struct_type(data_fields)
        self._step = next(s for s in (618_971, 7_919, 1) if math.gcd(s, total) == 1)

    def numbers(self, start: int, stop: int) -> pa.Array:
        """The files at these places: a permutation of the numbers below ``total``, the number itself above."""
        return pa.array([n * self._step % self.total if n < self.total else n for n in range(start, stop)], pa.int64())

    def columns(self, number: pa.Array) -> dict[str, pa.Array]:
        """The fields of ``add`` for files ``number``; ``stats`` as text and as struct."""
        days = pc.subtract(number, pc.multiply(pc.divide(number, _DAYS), _DAYS))
        day_text = _text(pc.cast(pc.cast(pc.add(days, _EPOCH_DAY), pa.int32()), pa.date32()))
        names = _names(number, self.total)
        path = pc.binary_join_element_wise("day=", day_text, "/", names, "") if self.partitioned else names
        size = pc.add(25_000_000, pc.subtract(pc.multiply(number, 7919), pc.multiply(pc.divide(number, 1013), 1013)))
        if self.real:
            size = self._write_real(number, path, size)
        stats = _stats_values(number, days)
        pairs = self._maps(day_text if self.partitioned else None, len(number))
        return {
            "path": path,
            "partitionValues": pairs,
            "size": size,
            "modificationTime": pc.add(1_700_000_000_000, number),
            "dataChange": pa.repeat(pa.scalar(False), len(number)),
            "stats": _stats_json(stats, day_text, self.partitioned),
            "stats_parsed": self._stats_struct(stats, len(number)),
            "partitionValues_parsed": pc.cast(pc.cast(pc.add(days, _EPOCH_DAY), pa.int32()), pa.date32()),
        }

    def _maps(self, values: pa.Array | None, length: int) -> pa.Array:
        if values is None:
            empty = pa.array([], pa.string())
            return pa.MapArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), length + 1), empty, empty)
        offsets = pa.array(range(length + 1), pa.int32())
        return pa.MapArray.from_arrays(offsets, pa.repeat(pa.scalar("day"), length), values)

    def _stats_struct(self, stats: dict[str, tuple[pa.Array, pa.Array]], length: int) -> pa.Array:
        bounds = self.stats_type.field("minValues").type
        parts = [
            pa.StructArray.from_arrays([pc.cast(stats[f.name][side], f.type) for f in bounds], fields=list(bounds))
            for side in (0, 1)
        ]
        zero = pa.repeat(pa.scalar(0, pa.int64()), length)
        nulls = self.stats_type.field("nullCount").type
        null_counts = pa.StructArray.from_arrays([zero] * nulls.num_fields, fields=list(nulls))
        rows = pa.repeat(pa.scalar(ROWS, pa.int64()), length)
        children = [rows, *parts, null_counts, pa.nulls(length, pa.bool_())]
        return pa.StructArray.from_arrays(children, fields=list(self.stats_type))

    def _write_real(self, number: pa.Array, path: pa.Array, size: pa.Array) -> pa.Array:
        sizes = size.to_pylist()
        for place, n in enumerate(number.to_pylist()):
            if n in self.real:
                file = self.root / path[place].as_py()
                file.parent.mkdir(parents=True, exist_ok=True)
                rows = rows_of(n)
                pq.write_table(rows.drop_columns(["day"]) if self.partitioned else rows, file, store_schema=False)
                sizes[place] = file.stat().st_size
        return pa.array(sizes, pa.int64())


def rows_of(file: int) -> pa.Table:
    """The rows of a real file, within the statistics that the log has for it."""
    number = pa.array([file], pa.int64())
    days = pa.array([file % _DAYS], pa.int64())
    low = {name: bounds[0].cast(_arrow_type(name))[0] for name, bounds in _stats_values(number, days).items()}
    high = {name: bounds[1].cast(_arrow_type(name))[0] for name, bounds in _stats_values(number, days).items()}
    columns = []
    for name in SHORTHAND:
        if name == "id":
            columns.append(pa.array(range(file * ROWS, (file + 1) * ROWS), pa.int64()))
        else:
            half = ROWS // 2
            columns.append(pa.concat_arrays([pa.repeat(low[name], half), pa.repeat(high[name], ROWS - half)]))
    return pa.table(columns, names=list(SHORTHAND))


def _arrow_type(name: str) -> pa.DataType:
    return stats_struct_type(schema_of(SHORTHAND)["fields"]).field("minValues").type.field(name).type


def _text(values: pa.Array) -> pa.Array:
    return pc.cast(values, pa.string())


def _names(number: pa.Array, total: int) -> pa.Array:
    """Names as Spark gives them: a task number, a UUID per writing job."""
    seeded = random.Random(total)
    key = seeded.getrandbits(122)
    out = []
    for n in number.to_pylist():
        job, task = divmod(n, _FILES_PER_JOB)
        h = f"{(job + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 ^ key:032x}"[-32:]
        out.append(f"part-{task:05d}-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}-c000.snappy.parquet")
    return pa.array(out, pa.string())


def _stats_values(number: pa.Array, days: pa.Array) -> dict[str, tuple[pa.Array, pa.Array]]:
    """Bounds per column: integers, doubles, strings, timestamps in us and dates."""
    place = pc.subtract(number, pc.multiply(pc.divide(number, 97), 97))
    start = pc.add(pc.multiply(pc.add(days, _EPOCH_DAY), _DAY_MS), pc.multiply(place, 7))
    city = pc.cast(pc.subtract(number, pc.multiply(pc.divide(number, 4), 4)), pa.int32())
    cities = pa.array(_CITIES)
    low_comment = pc.binary_join_element_wise("aback ", _text(place), " the delivery was late", "")
    high_comment = pc.binary_join_element_wise("zealous ", _text(place), " customer came back", "")
    stamp = pa.timestamp("us", tz="UTC")
    date = pc.cast(pc.cast(pc.add(days, _EPOCH_DAY), pa.int32()), pa.date32())
    return {
        "id": (pc.multiply(number, ROWS), pc.add(pc.multiply(number, ROWS), ROWS - 1)),
        "customer": (place, pc.add(place, 999_000)),
        "price": (pc.add(pc.cast(place, pa.float64()), 0.25), pc.add(pc.cast(place, pa.float64()), 9_999.75)),
        "city": (cities.take(city), cities.take(pc.add(city, 4))),
        "comment": (pc.utf8_slice_codeunits(low_comment, 0, 32), pc.utf8_slice_codeunits(high_comment, 0, 32)),
        "ts": tuple(pc.cast(pc.multiply(pc.add(start, plus), 1000), stamp) for plus in (0, _DAY_MS // 2)),
        "day": (date, date),
    }


def _stats_json(stats: dict[str, tuple[pa.Array, pa.Array]], day: pa.Array, partitioned: bool) -> pa.Array:
    pieces: list[Any] = [f'{{"numRecords":{ROWS}']
    names = [n for n in stats if not (partitioned and n == "day")]
    for side, title in ((0, "minValues"), (1, "maxValues")):
        for place, name in enumerate(names):
            value = stats[name][side]
            if name == "ts":
                text = pc.binary_join_element_wise(
                    pc.strftime(pc.cast(value, pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%S"), "Z", ""
                )
                quote = '"'
            elif name == "day":
                text, quote = day, '"'
            else:
                text, quote = _text(value), '"' if pa.types.is_string(value.type) else ""
            lead = f',"{title}":{{' if place == 0 else ","
            pieces += [f'{lead}"{name}":{quote}', text, quote]
        pieces.append("}")
    counts = ",".join(f'"{n}":0' for n in names)
    pieces.append(f',"nullCount":{{{counts}}}}}')
    return pc.binary_join_element_wise(*pieces, "")


def _write_checkpoint(
    file: Path, maker: _Adds, first: list[dict[str, Any]], total: int, stats: str, partitioned: bool
) -> None:
    struct = stats in ("struct", "both")
    values = pa.struct([("day", pa.date32())]) if struct and partitioned else None
    add = checkpoints.add_type(stats_json=stats != "struct", stats=maker.stats_type if struct else None, values=values)
    types = {
        "txn": checkpoints.TXN,
        "add": add,
        "remove": checkpoints.REMOVE,
        "metaData": checkpoints.METADATA,
        "protocol": checkpoints.PROTOCOL,
        "domainMetadata": checkpoints.DOMAIN,
    }
    schema = pa.schema(list(types.items()))
    with pq.ParquetWriter(file, schema, store_schema=False) as writer:
        head = [pa.array([_row(a, k) for a in first], t) for k, t in types.items()]
        pending = [pa.Table.from_arrays(head, schema=schema)]
        for start in range(0, total, ROW_GROUP):
            number = maker.numbers(start, min(start + ROW_GROUP, total))
            columns = maker.columns(number)
            if values is not None:
                columns["partitionValues_parsed"] = pa.StructArray.from_arrays(
                    [columns["partitionValues_parsed"]], fields=list(values)
                )
            children = [columns[f.name] if f.name in columns else pa.nulls(len(number), f.type) for f in add]
            body = pa.StructArray.from_arrays(children, fields=list(add))
            arrays = [body if k == "add" else pa.nulls(len(number), t) for k, t in types.items()]
            pending.append(pa.Table.from_arrays(arrays, schema=schema))
            writer.write_table(pa.concat_tables(pending), row_group_size=2 * ROW_GROUP)
            pending = []
        for table in pending:  # a table without files
            writer.write_table(table)


def _row(action: dict[str, Any], kind: str) -> Any:
    body = action.get(kind)
    if body is None or kind != "metaData":
        return body
    return {
        **body,
        "configuration": list(body["configuration"].items()),
        "format": {"provider": "parquet", "options": []},
    }


def _json_adds(maker: _Adds, start: int, stop: int) -> Iterator[dict[str, Any]]:
    for begin in range(start, stop, ROW_GROUP):
        columns = maker.columns(maker.numbers(begin, min(begin + ROW_GROUP, stop)))
        kept = ("path", "partitionValues", "size", "modificationTime", "stats")
        rows = zip(*(columns[k].to_pylist() for k in kept), strict=True)
        for path, values, size, time, stats in rows:
            yield {
                "add": {
                    "path": path,
                    "partitionValues": dict(values),
                    "size": size,
                    "modificationTime": time,
                    "dataChange": True,
                    "stats": stats,
                }
            }


def _write_commit(log: Path, version: int, actions: list[dict[str, Any]], adds: Iterable[dict[str, Any]] = ()) -> None:
    info = {"timestamp": 1_700_000_000_000 + version * 1000, "operation": "WRITE", "operationParameters": {}}
    with (log / f"{version:020d}.json").open("w", encoding="utf-8") as out:
        for action in ({"commitInfo": info}, *actions):
            out.write(json.dumps(action, separators=(",", ":")) + "\n")
        for add in adds:
            out.write(json.dumps(add, separators=(",", ":")) + "\n")
