"""TPC-H data: made by a generator from PyPI, then written once by the reference and once by us, alike.

``customer`` is there because queries 3 and 18 need it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {"lineitem": "l_orderkey", "orders": "o_orderkey", "customer": "c_custkey"}
FORMATS = {"reference": "delta", "ours": "deltapy"}
_LARGEST_ORDER = 6_000_000  # at scale 1

QUERIES = {
    1: """
        SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
            sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
            avg(l_quantity) AS avg_qty, avg(l_extendedprice) AS avg_price, avg(l_discount) AS avg_disc,
            count(*) AS count_order
        FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'
        GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    3: """
        SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority
        ORDER BY revenue DESC, o_orderdate, l_orderkey LIMIT 10""",
    6: """
        SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    12: """
        SELECT l_shipmode,
            sum(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS high_line_count,
            sum(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS low_line_count
        FROM orders, lineitem
        WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
            AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
        GROUP BY l_shipmode ORDER BY l_shipmode""",
    18: """
        SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
        FROM customer, orders, lineitem
        WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
            AND c_custkey = o_custkey AND o_orderkey = l_orderkey
        GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
        ORDER BY o_totalprice DESC, o_orderdate, o_orderkey LIMIT 100""",
}


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
