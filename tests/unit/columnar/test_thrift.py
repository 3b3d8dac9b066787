"""Thrift's compact protocol: what is quick says the same as what walks, and little is compiled."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_pyds.columnar.parquet_footer import ParquetFooter
from delta_pyds.columnar.thrift import STRUCT, ThriftError, end_of_plain_column, skip

_COMPILED = """
import dataclasses, logging, re, typing
compile, sizes = re.compile, []
re.compile = lambda pattern, *flags: (sizes.append(len(pattern)), compile(pattern, *flags))[1]
import delta_pyds.columnar.thrift, delta_pyds.redaction
print(len(sizes))
import delta_pyds.data.read.reader, delta_pyds.data.write.task
print(max(sizes, default=0))
sizes.clear()
delta_pyds.columnar.thrift._patterns()
print(sum(sizes))
"""


def test_little_is_compiled_where_a_file_is_read() -> None:
    """Every task imports it. A pattern of 50,000 bytes took a tenth of a second to compile."""
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED], cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    at_import, largest_elsewhere, patterns = map(int, done.stdout.split())
    assert at_import == 0
    assert largest_elsewhere < 4_000
    assert 0 < patterns < 4_000


def _columns(names: list[str], **options: object) -> tuple[bytes, list[int]]:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({n: pa.array([1, None] if i % 2 else ["x", None]) for i, n in enumerate(names)}), sink, **options
    )
    footer = ParquetFooter(pq.ParquetFile(sink).metadata, sink)
    return footer._bytes, footer._positions[0][0]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_statistics": False}])
def test_columns_as_they_mostly_are_are_stepped_over_quickly(options: dict[str, object]) -> None:
    data, starts = _columns(["a", "b" * 100, "c", "d"], **options)
    for start in starts:
        assert end_of_plain_column(data, start) == skip(data, start, STRUCT)


def test_what_is_quick_says_what_walking_says() -> None:
    data, starts = _columns(["a", "b", "long" * 40])
    random, quick = Random(7), 0
    for _ in range(4_000):
        start = random.choice(starts)
        changed = bytearray(data[start : start + random.randrange(20, 140)])
        for _ in range(random.randrange(3)):
            changed[random.randrange(len(changed))] = random.choice(
                (0, 1, 2, 0x15, 0x19, 0x1C, 0x80, random.randrange(256))
            )
        try:
            walked: int | None = skip(bytes(changed), 0, STRUCT)
        except ThriftError:
            walked = None
        found = end_of_plain_column(bytes(changed), 0)
        assert found is None or found == walked, bytes(changed)
        quick += found is not None
    assert quick > 500
