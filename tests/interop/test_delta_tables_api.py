"""Programs written for ``delta.tables``, run with the reference's package and with ours on copies of one table.

A program sees ``DeltaTable`` as ``api``. Equal afterwards: rows, change rows, what history says of each version (but
for times, sizes and the spelling of conditions), what the commands return, and the kind of an error.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds
from tests.interop.changed_alike import BY_LAYOUT, BY_LAYOUT_BEFORE
from tests.interop.engines import rows
from tests.support.reference_api import METHODS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.interop.engines import Engines

pytestmark = pytest.mark.cell("programs of delta.tables", "us -> reference")

Program = Callable[["SparkSession", Any, str], Any]

VARIANTS = {
    "vectors": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "rewriting": {"delta.enableDeletionVectors": "false", "delta.enableChangeDataFeed": "true"},
}
# the version of a program's first command: both copies still have the same files, and later ones need not
_FIRST_COMMAND = 2


def source(spark: SparkSession, first: int = 15, last: int = 25) -> DataFrame:
    return spark.range(first, last).selectExpr(
        "id", "concat('n', id) AS name", "cast(id % 3 AS int) AS p", "named_struct('x', id, 'y', 'new') AS s"
    )


# --- programs


def delete_by_text(spark: SparkSession, api: Any, path: str) -> None:
    api.forPath(spark, path).delete("id > 15 AND p IN (0, 1)")


def delete_by_column(spark: SparkSession, api: Any, path: str) -> None:
    from pyspark.sql.functions import col

    table = api.forPath(spark, path)
    table.delete(col("name") == "7")
    table.delete(table.toDF().id == 3)


def delete_a_partition_and_all(spark: SparkSession, api: Any, path: str) -> None:
    table = api.forPath(spark, path)
    table.delete("p = 1")
    table.delete()


def delete_nothing(spark: SparkSession, api: Any, path: str) -> None:
    table = api.forPath(spark, path)
    table.delete("id > 1000")
    table.update("id > 1000", {"name": "'x'"})


def update_by_text(spark: SparkSession, api: Any, path: str) -> None:
    table = api.forName(spark, f"delta.`{path}`")
    table.update("id % 2 = 0", {"name": "concat(name, '!')", "s.y": "'even'"})
    table.update(set={"p": "p + 1"})


def update_by_columns(spark: SparkSession, api: Any, path: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import StringType

    shout = F.udf(lambda text: text.upper() + "?", StringType())
    table = api.forPath(spark, path).alias("t")
    table.update(F.expr("t.id < 4"), {"name": shout("name"), "ID": F.col("t.id") + 100})


def upsert(spark: SparkSession, api: Any, path: str) -> list[Any]:
    merge = api.forPath(spark, path).alias("t").merge(source(spark).alias("u"), "t.id = u.id")
    return merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()


def merge_with_every_clause(spark: SparkSession, api: Any, path: str) -> list[Any]:
    from pyspark.sql.functions import col, lit

    table = api.forPath(spark, path)
    return (
        table.alias("t")
        .merge(source(spark).alias("u"), col("t.id") == col("u.id"))
        .whenMatchedDelete("u.id = 15")
        .whenMatchedUpdate(col("u.id") < 18, {"name": col("u.name"), "s.x": lit(-1).cast("long")})
        .whenNotMatchedInsert("u.id < 23", {"id": "u.id", "p": "u.p"})
        .whenNotMatchedBySourceUpdate("t.id < 3", {"name": "'left'"})
        .whenNotMatchedBySourceDelete("t.id = 5")
        .execute()
        .collect()
    )


def merge_that_only_inserts(spark: SparkSession, api: Any, path: str) -> list[Any]:
    merge = api.forPath(spark, path).alias("t").merge(source(spark).alias("u"), "t.id = u.id AND u.p = t.p")
    return merge.whenNotMatchedInsertAll("u.id % 2 = 0").execute().collect()


def merge_that_only_deletes(spark: SparkSession, api: Any, path: str) -> list[Any]:
    """Several rows of the source on one of the table: allowed for an only unconditional delete."""
    twice = source(spark).unionAll(source(spark))
    merge = api.forPath(spark, path).alias("t").merge(twice.alias("u"), "t.id = u.id")
    return merge.whenMatchedDelete().execute().collect()


def merge_of_the_table_itself(spark: SparkSession, api: Any, path: str) -> list[Any]:
    table = api.forPath(spark, path)
    updates = table.toDF().filter("id < 5").selectExpr("id + 18 AS id", "name", "p", "s")
    merge = table.alias("t").merge(updates.alias("u"), "t.id = u.id")
    return merge.whenMatchedUpdate(set={"name": "u.name"}).whenNotMatchedInsertAll().execute().collect()


def merge_with_new_columns(spark: SparkSession, api: Any, path: str) -> list[Any]:
    wider = source(spark).selectExpr("*", "id * 2.5D AS extra")
    merge = api.forPath(spark, path).alias("t").merge(wider.alias("u"), "t.id = u.id")
    return merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect()


def merge_under_settings(spark: SparkSession, api: Any, path: str) -> list[Any]:
    wider = source(spark).selectExpr("*", "id * 2.5D AS extra")
    settings = {
        "spark.databricks.delta.schema.autoMerge.enabled": "true",
        "spark.databricks.delta.commitInfo.userMetadata": "by the session",
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        merge = api.forPath(spark, path).alias("t").merge(wider.alias("u"), "t.id = u.id")
        return merge.whenNotMatchedInsertAll().execute().collect()
    finally:
        for key in settings:
            spark.conf.unset(key)


def merge_that_keeps_old_rows(spark: SparkSession, api: Any, path: str) -> list[Any]:
    """Slowly changing rows (SCD type 2): a changed row is marked as old, and inserted again under no key."""
    table, updates = api.forPath(spark, path), source(spark)
    changed = updates.alias("u").join(table.toDF().alias("t"), "id").where("t.name <> u.name")
    staged = changed.selectExpr("CAST(NULL AS BIGINT) AS key", "u.*").unionAll(updates.selectExpr("id AS key", "*"))
    merge = table.alias("t").merge(staged.alias("s"), "t.id = s.key")
    merge = merge.whenMatchedUpdate("t.name <> s.name", {"name": "concat(t.name, ' (old)')"})
    values = {"id": "s.id", "name": "s.name", "p": "s.p", "s": "s.s"}
    return merge.whenNotMatchedInsert(values=values).execute().collect()


def merge_of_the_latest_changes(spark: SparkSession, api: Any, path: str) -> list[Any]:
    """Changes of another system, each with what was done: of every key the last one counts."""
    from pyspark.sql import functions as F  # noqa: N812

    told = spark.createDataFrame(
        [(3, "u", "x", 1), (3, "d", None, 2), (4, "u", "y", 3), (50, "i", "z", 4), (51, "d", None, 5)],
        "id long, op string, name string, time int",
    )
    last = told.groupBy("id").agg(F.max(F.struct("time", "op", "name")).alias("last")).select("id", "last.*")
    merge = api.forPath(spark, path).alias("t").merge(last.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedDelete("s.op = 'd'").whenMatchedUpdate(set={"name": "s.name"})
    return merge.whenNotMatchedInsert("s.op <> 'd'", {"id": "s.id", "name": "s.name", "p": "0"}).execute().collect()


def merge_of_nulls(spark: SparkSession, api: Any, path: str) -> list[Any]:
    """Nulls that are equal: inserted by the first merge, found by the second."""
    table = api.forPath(spark, path).alias("t")
    nulls = source(spark, 4, 6).selectExpr("IF(id = 4, NULL, id) AS id", "name", "p", "s").alias("u")
    merge = table.merge(nulls, "t.id <=> u.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    return [merge.execute().collect(), merge.execute().collect()]


def merge_by_a_function(spark: SparkSession, api: Any, path: str) -> list[Any]:
    """A Python function over both tables says which rows meet; several that meet one delete it once."""
    from pyspark.sql import functions as F  # noqa: N812

    same = F.udf(lambda one, other: one % 10 == other % 10, "boolean")
    merge = api.forPath(spark, path).alias("t").merge(source(spark).alias("u"), same(F.col("t.id"), F.col("u.id")))
    return merge.whenMatchedDelete().execute().collect()


def builders_from_one_beginning(spark: SparkSession, api: Any, path: str) -> list[Any]:
    beginning = api.forPath(spark, path).alias("t").merge(source(spark).alias("u"), "t.id = u.id")
    one, other = beginning.whenMatchedDelete("t.id = 16"), beginning.whenNotMatchedInsertAll("u.id = 22")
    both = one.whenMatchedUpdate(set={"name": "'left'"})
    return [merge.execute().collect() for merge in (one, other, both, one)]


_PROGRAMS: list[Any] = [
    delete_by_text,
    delete_by_column,
    delete_a_partition_and_all,
    delete_nothing,
    update_by_text,
    update_by_columns,
    upsert,
    merge_with_every_clause,
    merge_that_only_inserts,
    merge_that_only_deletes,
    merge_of_the_table_itself,
    merge_with_new_columns,
    merge_under_settings,
    merge_that_keeps_old_rows,
    merge_of_the_latest_changes,
    merge_of_nulls,
    merge_by_a_function,
    builders_from_one_beginning,
]
PROGRAMS: dict[str, Program] = {program.__name__: program for program in _PROGRAMS}


# --- errors


def _two_on_one(spark: SparkSession, api: Any, path: str) -> Any:
    twice = source(spark).unionAll(source(spark))
    merge = api.forPath(spark, path).alias("t").merge(twice.alias("u"), "t.id = u.id")
    return merge.whenMatchedUpdateAll().execute()


MISTAKES: dict[str, Program] = {
    "no table": lambda spark, api, path: api.forPath(spark, path + "-nothing"),
    "no table of that name": lambda spark, api, path: api.forName(spark, f"delta.`{path}-nothing`"),
    "setting": lambda spark, api, path: api.forPath(spark, path, {"x": "1"}),
    "condition": lambda spark, api, path: api.forPath(spark, path).delete("id ="),
    "column": lambda spark, api, path: api.forPath(spark, path).delete("nothing = 1"),
    "column in set": lambda spark, api, path: api.forPath(spark, path).update(set={"nothing": "1"}),
    "value in set": lambda spark, api, path: api.forPath(spark, path).update(set={"name": "nothing"}),
    "column twice": lambda spark, api, path: api.forPath(spark, path).update(set={"p": "1", "P": "2"}),
    "type in set": lambda spark, api, path: api.forPath(spark, path).update(set={"p": "array(1)"}),
    "no condition": lambda spark, api, path: api.forPath(spark, path).delete("id"),
    "no clause": lambda spark, api, path: api.forPath(spark, path).merge(source(spark), "1 = 0").execute(),
    "clause after all": lambda spark, api, path: (
        api.forPath(spark, path)
        .merge(source(spark).alias("u"), "1 = 0")
        .whenMatchedDelete()
        .whenMatchedUpdate(set={"name": "'x'"})
        .execute()
    ),
    "ambiguous": lambda spark, api, path: (
        api.forPath(spark, path).merge(source(spark), "id = id").whenMatchedDelete().execute()
    ),
    "two on one": _two_on_one,
    "value that does not fit": lambda spark, api, path: api.forPath(spark, path).update(set={"p": "id + 3000000000"}),
    "argument": lambda spark, api, path: api.forPath(spark, path).delete(1),
    "no set": lambda spark, api, path: api.forPath(spark, path).update({"name": "'x'"}),
    "no source": lambda spark, api, path: api.forPath(spark, path).merge(None, "1 = 1"),
}


# --- the two sides

# what a bounded run takes, of programs and of mistakes: each program takes half a minute
_BOUNDED_PROGRAMS = ("update_by_text", "upsert", "merge_with_every_clause", "merge_with_new_columns")
_BOUNDED_MISTAKES = ("column", "column twice", "no condition", "clause after all", "two on one")


# without vectors the reference joins by an outer join, of which Spark takes no Python function
_OURS_ALONE = ("rewriting", "merge_by_a_function")


def _on_each_table(names: Sequence[str], bounded: Sequence[str]) -> list[Any]:
    """Each name with each table; a bounded run takes some of them, with the first."""
    pairs = [(variant, name) for variant in VARIANTS for name in names if (variant, name) != _OURS_ALONE]
    chosen = {(next(iter(VARIANTS)), name) for name in bounded}
    return [
        pytest.param(*pair, id="-".join(pair), marks=pytest.mark.also_bounded if pair in chosen else ())
        for pair in pairs
    ]


@pytest.fixture(scope="module")
def apis() -> dict[str, Any]:
    """The class of each side, by its folder."""
    from delta.tables import DeltaTable as Reference

    return {"reference": Reference, "ours": delta_pyds.DeltaTable}


@pytest.fixture(scope="module")
def originals(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each variant: twenty rows in two commits of the reference, partitioned."""
    made = {variant: tmp_path_factory.mktemp(variant) / "original" for variant in VARIANTS}
    for variant, path in made.items():
        for first, last in ((0, 12), (12, 20)):
            rows_of_commit = (
                source(engines.spark, first, last).selectExpr("id", "cast(id AS string) AS name", "p", "s").coalesce(1)
            )
            writer = rows_of_commit.write.format("delta").mode("append").partitionBy("p")
            writer.options(**VARIANTS[variant]).save(str(path))
    return made


@pytest.fixture
def copies(originals: dict[str, Path], variant: str, tmp_path: Path) -> dict[str, Path]:
    made = {side: tmp_path / side for side in ("reference", "ours")}
    for copy in made.values():
        shutil.copytree(originals[variant], copy)
    return made


@pytest.mark.parametrize(("variant", "program"), _on_each_table(list(PROGRAMS), _BOUNDED_PROGRAMS))
def test_a_program_does_the_same(engines: Engines, apis: dict[str, Any], copies: dict[str, Path], program: str) -> None:
    returned = {side: PROGRAMS[program](engines.spark, apis[side], str(path)) for side, path in copies.items()}

    assert returned["ours"] == returned["reference"]
    assert engines.agree(copies["ours"]) == rows(engines.reference(copies["reference"]))
    assert _changes(engines, copies["ours"]) == _changes(engines, copies["reference"])
    ours, theirs = (_history(engines.spark, apis[side], path) for side, path in sorted(copies.items()))
    assert ours == theirs
    engines.assert_sound(copies["ours"])


@pytest.mark.parametrize(("variant", "mistake"), _on_each_table(list(MISTAKES), _BOUNDED_MISTAKES))
def test_a_mistake_is_an_error_of_the_same_kind(
    engines: Engines, apis: dict[str, Any], copies: dict[str, Path], mistake: str
) -> None:
    """Caught by the same ``except``: the class of Spark or Python; where the reference names a class of its own, it."""
    raised = {}
    for side, path in copies.items():
        with pytest.raises(Exception) as found:
            MISTAKES[mistake](engines.spark, apis[side], str(path))
        raised[side] = found.value

    kind = type(raised["reference"])
    public = next(base for base in kind.__mro__ if base.__module__ in ("builtins", "pyspark.errors.exceptions.base"))
    assert isinstance(raised["ours"], public), (raised["ours"], kind.__mro__)
    code = _code(raised["reference"])
    if code is not None and code.startswith("DELTA_"):
        assert _code(raised["ours"]) == code
    assert _history(engines.spark, apis["ours"], copies["ours"])[-1][0] == 1, "a mistake made a version."


@pytest.mark.also_bounded
@pytest.mark.parametrize("variant", ["vectors"])
def test_history_and_detail_are_the_same_frames(
    engines: Engines, apis: dict[str, Any], copies: dict[str, Path]
) -> None:
    """One table, asked by both: schema and rows."""
    path = str(copies["ours"])
    apis["ours"].forPath(engines.spark, path).delete("id = 4")
    for ask in (lambda table: table.history(), lambda table: table.history(1), lambda table: table.detail()):
        ours, theirs = (ask(apis[side].forPath(engines.spark, path)) for side in ("ours", "reference"))
        assert ours.schema == theirs.schema
        assert [row.asDict(True) for row in ours.collect()] == [row.asDict(True) for row in theirs.collect()]
    for place in (path, f"{path}/p=0", f"{path}-nothing"):
        ours, theirs = (apis[side].isDeltaTable(engines.spark, place) for side in ("ours", "reference"))
        assert ours is theirs, place


def _code(error: BaseException) -> str | None:
    return error.getErrorClass() if hasattr(error, "getErrorClass") else None


def _changes(engines: Engines, path: Path) -> list[str]:
    """Since the first command, as the reference reads them, without times."""
    return rows(engines.reference(path, readChangeFeed="true", startingVersion=0).drop("_commit_timestamp"))


def _history(spark: SparkSession, table: Any, path: Path) -> list[tuple[Any, ...]]:
    """Version, operation, parameters, metrics and user metadata, oldest first, as far as they must be equal."""
    told = []
    for row in table.forPath(spark, str(path)).history().collect()[::-1]:
        own = BY_LAYOUT if row.version <= _FIRST_COMMAND else f"{BY_LAYOUT}|{BY_LAYOUT_BEFORE}"
        metrics = {name: "..." if re.search(own, name) else n for name, n in (row.operationMetrics or {}).items()}
        parameters = {name: _shape(value) for name, value in (row.operationParameters or {}).items()}
        told.append((row.version, row.operation, parameters, metrics, row.userMetadata, row.isBlindAppend))
    return told


def _shape(parameter: str | None) -> Any:
    """A parameter with its conditions as their number alone."""
    if parameter is None or not parameter.startswith("["):
        return parameter
    items = json.loads(parameter)
    return [
        {**item, "predicate": "..."} if isinstance(item, dict) and "predicate" in item
        else item if isinstance(item, dict) else "..."
        for item in items
    ]  # fmt: skip


@pytest.mark.parametrize("kind", METHODS)
def test_the_list_of_public_methods_is_the_packages(kind: str) -> None:
    """``tests/unit/test_docs.py`` holds our page for users of delta-spark against the list."""
    from delta import tables

    assert METHODS[kind] == {name for name in vars(getattr(tables, kind)) if not name.startswith("_")}
