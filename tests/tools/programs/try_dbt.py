"""A dbt project with the method ``session``: built twice, with changed rows in the second run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_FILES = {
    "profiles.yml": """
shop:
  target: dev
  outputs:
    dev:
      type: spark
      method: session
      schema: shop
      host: NA
      server_side_parameters: {spark.master: "local[1]", spark.ui.enabled: "false", spark.sql.shuffle.partitions: "1"}
""",
    "dbt_project.yml": """
name: shop
version: "1.0"
profile: shop
models: {shop: {+file_format: delta}}
seeds: {shop: {+file_format: delta}}
snapshots: {shop: {+file_format: delta}}
flags: {send_anonymous_usage_stats: false}
""",
    "models/orders.sql": """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
SELECT id, city, amount FROM {{ ref('raw') }}
""",
    "models/cities.sql": """
{{ config(materialized='table', partition_by='city') }}
SELECT sum(amount) AS amount, city FROM {{ ref('orders') }} GROUP BY city
""",
    "models/seen.sql": "{{ config(materialized='view') }} SELECT * FROM {{ ref('cities') }}",
    "models/schema.yml": """
models:
  - name: orders
    columns: [{name: id, data_tests: [unique, not_null]}]
  - name: seen
    columns: [{name: city, data_tests: [not_null]}]
""",
    "snapshots/kept.sql": """
{% snapshot kept %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['amount']) }}
SELECT * FROM {{ ref('orders') }}
{% endsnapshot %}
""",
}


def build(rows: str) -> None:
    Path("seeds").mkdir(exist_ok=True)
    Path("seeds/raw.csv").write_text(f"id,city,amount\n{rows}")
    command = [str(Path(sys.executable).parent / "dbt"), "build", "--profiles-dir", "."]
    subprocess.run(command, check=True)


def versions(table: str) -> int:
    log = Path("spark-warehouse/shop.db") / table / "_delta_log"
    return len([path for path in log.iterdir() if path.suffix == ".json"])


def main() -> None:
    for name, text in _FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    build("1,Bern,5\n2,Zug,7\n")
    build("1,Bern,6\n3,Zug,1\n")
    results = json.loads(Path("target/run_results.json").read_text())["results"]
    states = {one["unique_id"].split(".")[2]: one["status"] for one in results}
    assert {"raw", "orders", "cities", "seen", "kept"} <= states.keys(), states
    assert set(states.values()) <= {"success", "pass"}, states
    assert versions("orders") >= 2 and versions("kept") >= 2


if __name__ == "__main__":
    main()
