"""Two tables of TPC-H to scan and to write: made by a generator from PyPI, written by the reference or by us, alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {"lineitem": "l_orderkey", "customer": "c_custkey"}
FORMATS = {"reference": "delta", "ours": "deltapy"}
_LARGEST_ORDER = 6_000_000  # at scale 1


def generated(settings: PeerSettings, name: str) -> Path:
    """The Parquet file of one table, as the generator writes it."""

    def make(folder: Path) -> None:
        folder.mkdir(parents=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        tables = ",".join(KEYS)
        options = ["-s", f"{settings.scale:g}", "--tables", tables, "--output-dir", str(folder)]
        subprocess.run([str(generator), "parquet", *options], check=True, stdout=subprocess.DEVNULL)

    return made_once(_folder(settings) / "generated", make) / f"{name}.parquet"


def table(spark: SparkSession, settings: PeerSettings, maker: str, name: str) -> Path:
    """A Delta table that ``maker`` wrote, sorted by its key, ``lineitem`` in ``settings.data_files`` files."""
    source, key = generated(settings, name), KEYS[name]
    files = settings.data_files if name == "lineitem" else max(2, settings.data_files // 4)

    def make(path: Path) -> None:
        frame = spark.read.parquet(str(source)).repartitionByRange(files, key).sortWithinPartitions(key)
        frame.write.format(FORMATS[maker]).mode("append").save(str(path))

    return made_once(_folder(settings) / maker / name, make)


def few_orders(settings: PeerSettings) -> tuple[int, int]:
    """The first order of a fraction of one file of ``lineitem``, and the first one after it."""
    largest = int(_LARGEST_ORDER * settings.scale)
    low = largest // 3
    return low, low + max(1, largest // settings.data_files // 8)


def _folder(settings: PeerSettings) -> Path:
    return settings.data / f"tpch-{settings.scale:g}-{settings.data_files}"
