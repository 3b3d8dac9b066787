"""Recreate ``examples/tables/trips`` with the reference: the table that ``examples/quickstart.py`` reads.

Invariants: every file below it comes from this script and the reference's JARs; its rows are the same each time.

Run from the checkout, after ``make interop ARGS=--co`` has set ``.interop`` up::

    .interop/venv/bin/python -m tests.interop.make_example_table
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.interop.reference_session import for_few_rows, reference_session

TABLE = Path(__file__).resolve().parents[2] / "examples" / "tables" / "trips"
DAYS = 4
_ROWS = """
SELECT id AS trip,
       date_add(DATE '2026-01-01', CAST(id % {days} AS INT)) AS day,
       element_at(array('Bern', 'Lyon', 'Oslo'), CAST(id % 3 AS INT) + 1) AS city,
       CAST(id % 17 AS INT) AS minutes,
       CAST(id * 0.25 AS DECIMAL(8, 2)) AS fare
FROM range({first}, {end}, 1, 1)
"""


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    shutil.rmtree(TABLE, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        spark = for_few_rows(reference_session(1, Path(scratch), memory="1g")).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        table = f"delta.`{TABLE}`"
        spark.sql(
            f"CREATE TABLE {table} (trip BIGINT, day DATE, city STRING, minutes INT, fare DECIMAL(8, 2)) USING delta "
            "PARTITIONED BY (day) TBLPROPERTIES ("
            "'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '10')"
        )
        for batch in range(8):
            rows = _ROWS.format(days=DAYS, first=batch * 60, end=(batch + 1) * 60)
            spark.sql(f"INSERT INTO {table} {rows}")
        for minutes in (0, 7, 16):
            spark.sql(f"DELETE FROM {table} WHERE minutes = {minutes} AND city <> 'Oslo'")
        spark.sql(f"UPDATE {table} SET fare = fare + 1 WHERE city = 'Oslo' AND minutes > 12")
        spark.stop()
    # what Hadoop's local file system and the reference leave beside the table, which a store would not have
    for checksum in TABLE.rglob(".*.crc"):
        checksum.unlink()
    shutil.rmtree(TABLE / "_delta_log" / "_staged_commits", ignore_errors=True)


if __name__ == "__main__":
    main()
