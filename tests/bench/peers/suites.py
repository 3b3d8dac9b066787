"""TPC-H and TPC-DS: data and query texts from packages, and the Delta tables that the reference writes of them.

TPC-H's data come from ``tpchgen-cli``, TPC-DS's from DuckDB's extension; the query texts of both from DuckDB's
extensions, adapted by ``dialect``. The packages bring all files, so nothing is downloaded at run time.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.peers.dialect import spark_sql
from tests.bench.peers.settings import PeerSettings
from tests.bench.tables import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE_BYTES = 8 << 20
_MOST_FILES = 16


@dataclass(frozen=True)
class Query:
    """``original``: DuckDB's text; ``sql``: Spark's; ``rules``: of ``dialect``; ``tables``: those it names."""

    number: int
    original: str
    sql: str
    rules: tuple[str, ...]
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Suite:
    """``extension``: of DuckDB; ``keys``: the tables, and the column by which their files are sorted."""

    name: str
    extension: str
    keys: Mapping[str, str]

    def queries(self) -> list[Query]:
        """All of the suite, by number."""
        with _duckdb(self.extension) as connection:
            texts = connection.execute(f"SELECT query_nr, query FROM {self.extension}_queries()").fetchall()
        return [self._query(number, text) for number, text in sorted(texts)]

    def _query(self, number: int, text: str) -> Query:
        sql, rules = spark_sql(text)
        named = tuple(table for table in self.keys if re.search(rf"\b{table}\b", sql, re.IGNORECASE))
        return Query(number, text, sql, tuple(rules), named)

    def tables(self, spark: SparkSession, settings: PeerSettings) -> dict[str, Path]:
        """Delta tables that the reference wrote, each sorted by its key, in files of some 8 MB."""
        folder = settings.data / f"{self.extension}-{settings.scale:g}"
        generated = self.generated(settings)

        def make(name: str, path: Path) -> None:
            source = generated / f"{name}.parquet"
            files = num_files(source)
            frame = spark.read.parquet(str(source)).repartitionByRange(files, self.keys[name])
            frame.sortWithinPartitions(self.keys[name]).write.format("delta").mode("append").save(str(path))

        return {name: made_once(folder / "reference" / name, partial(make, name)) for name in self.keys}

    def generated(self, settings: PeerSettings) -> Path:
        """The folder of the Parquet files, one for each table."""
        folder = settings.data / f"{self.extension}-{settings.scale:g}"
        return made_once(folder / "generated", partial(self._generate, settings.scale))

    def _generate(self, scale: float, folder: Path) -> None:
        folder.mkdir(parents=True)
        if self.extension == "tpch":
            generator = Path(sys.executable).with_name("tpchgen-cli")
            options = ["-s", f"{scale:g}", "--tables", ",".join(self.keys), "--output-dir", str(folder)]
            subprocess.run([str(generator), "parquet", *options], check=True, stdout=subprocess.DEVNULL)
            return
        with _duckdb(self.extension) as connection:
            connection.execute(f"CALL dsdgen(sf={scale:g})")
            for name in self.keys:
                connection.execute(f"COPY {name} TO '{folder / name}.parquet' (FORMAT parquet)")


def num_files(source: Path) -> int:
    """The number of files of the Delta table of a Parquet file."""
    return max(1, min(_MOST_FILES, source.stat().st_size // _FILE_BYTES))


def _duckdb(extension: str) -> Any:
    """A connection with the extension, whose package has it as a file."""
    connection = importlib.import_module("duckdb").connect()
    package = Path(str(importlib.import_module(f"duckdb_extension_{extension}").__file__)).parent
    (file,) = package.glob(f"extensions/*/{extension}.duckdb_extension")
    connection.load_extension(str(file))
    return connection


TPCH = Suite(
    "TPC-H",
    "tpch",
    {
        "lineitem": "l_orderkey", "orders": "o_orderkey", "customer": "c_custkey", "part": "p_partkey",
        "partsupp": "ps_partkey", "supplier": "s_suppkey", "nation": "n_nationkey", "region": "r_regionkey",
    },
)  # fmt: skip
TPCDS = Suite(
    "TPC-DS",
    "tpcds",
    {
        "call_center": "cc_call_center_sk", "catalog_page": "cp_catalog_page_sk",
        "catalog_returns": "cr_returned_date_sk",
        "catalog_sales": "cs_sold_date_sk", "customer": "c_customer_sk", "customer_address": "ca_address_sk",
        "customer_demographics": "cd_demo_sk", "date_dim": "d_date_sk", "household_demographics": "hd_demo_sk",
        "income_band": "ib_income_band_sk", "inventory": "inv_date_sk", "item": "i_item_sk",
        "promotion": "p_promo_sk", "reason": "r_reason_sk", "ship_mode": "sm_ship_mode_sk", "store": "s_store_sk",
        "store_returns": "sr_returned_date_sk", "store_sales": "ss_sold_date_sk", "time_dim": "t_time_sk",
        "warehouse": "w_warehouse_sk", "web_page": "wp_web_page_sk", "web_returns": "wr_returned_date_sk",
        "web_sales": "ws_sold_date_sk", "web_site": "web_site_sk",
    },
)  # fmt: skip
