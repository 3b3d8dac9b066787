"""What is asked of each side that changes rows: a delete, an update, merges; each in the words of each engine.

Rows are those of ``tables.rows``: ``id`` is the row's number, so of a file each id is in one range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.functions import col, expr, when

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from delta_pyds import DeltaTable

_SCATTERED = "id % 100 = 7"
_MERGED = "t.id = s.id"


@dataclass(frozen=True)
class Change:
    """One change of a table, by each side.

    ``sql``: for the reference and Sail, with ``{table}`` and, where it has a source, the view ``s``. ``ours`` and
    ``deltalake`` get a table and the source. ``by_hand``: of all rows of the table and the source, the rows after it.
    """

    name: str
    sql: str
    ours: Callable[[DeltaTable, DataFrame], Any]
    deltalake: Callable[[Any, pa.Table], Any]
    by_hand: Callable[[DataFrame, DataFrame], DataFrame]


def _update_by_hand(rows: DataFrame, _: DataFrame) -> DataFrame:
    return rows.withColumn("price", when(expr(_SCATTERED), expr("price + 1")).otherwise(col("price")))


def _merge_by_hand(rows: DataFrame, source: DataFrame) -> DataFrame:
    """Values of the source where it has the row."""
    new = source.select(*(col(name).alias(f"new_{name}") for name in source.columns))
    joined = rows.join(new, rows["id"] == new["new_id"], "full_outer")
    there = col("new_id").isNotNull()
    return joined.select(*(when(there, col(f"new_{n}")).otherwise(col(n)).alias(n) for n in source.columns))


def _merge(table: DeltaTable, source: DataFrame) -> Any:
    merging = table.alias("t").merge(source.alias("s"), _MERGED)
    return merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _merge_of_deltalake(table: Any, source: pa.Table) -> Any:
    merging = table.merge(source, _MERGED, source_alias="s", target_alias="t")
    return merging.when_matched_update_all().when_not_matched_insert_all().execute()


DELETE = Change(
    "delete of 1 %, scattered",
    f"DELETE FROM {{table}} WHERE {_SCATTERED}",
    lambda table, _: table.delete(_SCATTERED),
    lambda table, _: table.delete(_SCATTERED),
    lambda rows, _: rows.where(f"NOT ({_SCATTERED})"),
)
UPDATE = Change(
    "update of 1 %, scattered",
    f"UPDATE {{table}} SET price = price + 1 WHERE {_SCATTERED}",
    lambda table, _: table.update(_SCATTERED, {"price": "price + 1"}),
    lambda table, _: table.update(updates={"price": "price + 1"}, predicate=_SCATTERED),
    _update_by_hand,
)
_MERGE_SQL = (
    f"MERGE INTO {{table}} AS t USING s ON {_MERGED} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)
MERGE = Change("merge of 1 % updates and as many inserts", _MERGE_SQL, _merge, _merge_of_deltalake, _merge_by_hand)
MERGE_INTO_ONE = Change("merge into 1 file of 100", _MERGE_SQL, _merge, _merge_of_deltalake, _merge_by_hand)
DELETE_ONE = Change(
    "delete of one row of a table of one file",
    "DELETE FROM {table} WHERE id = 77",
    lambda table, _: table.delete("id = 77"),
    lambda table, _: table.delete("id = 77"),
    lambda rows, _: rows.where("id <> 77"),
)
