"""Reads files whose footers were changed, and says of each what came of it, in a process that this may end.

``python -m tests.support.footer_process DIRECTORY data|checkpoint SEED COUNT``: a line for each file, with its number
and ``ok`` or the error's class. With the seed ``ends`` one bit of the last bytes is another one, beginning with the
last byte; else one value in the footer, of any kind, is changed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from delta_pyds.data.read.reader import read
from delta_pyds.errors import DeltaError
from delta_pyds.expr.nodes import And, Column, Comparison, IsNull, Literal, Not
from delta_pyds.expr.stats_rewrite import skipping
from delta_pyds.log.checkpoint_part import CheckpointPart
from delta_pyds.protocol.actions import Protocol
from delta_pyds.protocol.schema import LONG, STRING, ArrayType, DecimalType, StructField, StructType
from delta_pyds.spark.native.footers import first_foreign_to_spark
from delta_pyds.storage.local import LocalStorage
from delta_pyds.tasks.scan_state import ScanFile
from tests.support.parquet_footers import mutated, read_footer, with_footer
from tests.support.scans import state_of, struct

SCHEMA = struct(
    StructField("id", LONG, nullable=False),
    ("s", STRING),
    ("d", DecimalType(25, 2)),
    ("l", ArrayType(LONG)),
    ("st", StructType((StructField("x", STRING),))),
)


def data_file() -> bytes:
    """Three row groups of every kind of column."""
    table = pa.table(
        {
            "id": pa.array(range(90), pa.int64()),
            "s": [f"text {i % 7}" for i in range(90)],
            "d": pa.array([Decimal(i) for i in range(90)], pa.decimal128(25, 2)),
            "l": pa.array([[1, 2], None, []] * 30),
            "st": pa.array([{"x": "a"}, None, {"x": None}] * 30),
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=30, write_page_checksum=True)
    return file.getvalue()


def checkpoint_file() -> bytes:
    """A checkpoint of two row groups."""
    add = {"path": "a", "partitionValues": [("p", "1")], "size": 1, "stats": "{}"}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    kinds = pa.schema(
        [
            ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
            (
                "add",
                pa.struct(
                    [
                        ("path", pa.string()),
                        ("partitionValues", pa.map_(pa.string(), pa.string())),
                        ("size", pa.int64()),
                        ("stats", pa.string()),
                    ]
                ),
            ),
        ]
    )
    rows = [{"protocol": protocol, "add": None}, *({"protocol": None, "add": add} for _ in range(20))]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=kinds), file, row_group_size=10)
    return file.getvalue()


def look_at_data(path: Path) -> None:
    """Everything that a reader asks of a data file."""
    file = ScanFile(str(path), path.stat().st_size)
    identity, text = Column(("id",), LONG), Column(("s",), STRING)
    condition = And((Comparison(">", identity, Literal(40, LONG)), Not(IsNull(text))))
    whole = state_of(path.parent, SCHEMA)
    some = state_of(path.parent, SCHEMA, predicate=condition, skip=skipping(condition, ()))
    split = ScanFile(file.path, file.size_bytes, start=0, length=file.size_bytes // 2)
    looks: list[Callable[[], object]] = [
        lambda: list(read(whole, file)),
        lambda: list(read(some, file)),
        lambda: list(read(whole, split)),
        lambda: list(read(state_of(path.parent, struct()), file)),
        lambda: first_foreign_to_spark(LocalStorage(), whole, [file]),
    ]
    _all_of(looks)


def look_at_checkpoint(path: Path) -> None:
    """Everything that replay asks of a checkpoint."""
    part = CheckpointPart(LocalStorage(), str(path))
    _all_of(
        [
            lambda: part.count("add.path"),
            lambda: part.has_in_all("stats", "add"),
            lambda: part.first("protocol", Protocol),
            lambda: [list(part.rows("add", group, ["path", "stats"])) for group in part.row_groups_with("add")],
        ]
    )


def _all_of(looks: list[Callable[[], object]]) -> None:
    failed: DeltaError | None = None
    for look in looks:
        try:
            look()
        except DeltaError as e:
            failed = e
    if failed is not None:
        raise failed


KINDS = {"data": (data_file, look_at_data), "checkpoint": (checkpoint_file, look_at_checkpoint)}


def _with_a_bit_changed(content: bytes, number: int) -> bytes:
    at = len(content) - 1 - number // 8
    return content[:at] + bytes([content[at] ^ 1 << number % 8]) + content[at + 1 :]


def main(directory: str, kind: str, seed: str, count: str) -> None:
    make, look = KINDS[kind]
    content = make()
    footer = read_footer(content)
    assert with_footer(content, footer) == content
    for number in range(int(count)):
        path = Path(directory) / f"{kind}-{number}.parquet"
        if seed == "ends":
            path.write_bytes(_with_a_bit_changed(content, number))
        else:
            path.write_bytes(with_footer(content, mutated(footer, Random(f"{seed}-{number}"))))
        outcome = "ok"
        print(number, end=" ", flush=True)
        try:
            look(path)
        except DeltaError as e:
            outcome = type(e).__name__ if path.name in str(e) else f"an error that does not name the file: {e}"
        path.unlink()
        print(outcome, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
