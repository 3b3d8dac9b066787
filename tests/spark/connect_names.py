"""Names of Spark's catalog on Spark Connect, from whatever Python runs it. Arguments: a server, a directory, which
client it is, and pages of the documentation.

Names are read as by path, and what is asked of the server for them is counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import delta_pyds
from delta_pyds.errors import UnsupportedOperationError, UserError
from delta_pyds.spark.versions import has_changes
from tests.support.delta_programs import ids, refused
from tests.support.documented_queries import make, wrong_answers
from tests.support.documented_scripts import DOCUMENTED
from tests.support.frames import rows
from tests.support.sql_scripts import outcome

NATIVE, SOURCE, KEPT = "FileScan parquet", "BatchScan deltapy", "InMemoryTableScan"


class Questions:
    """Counts what a client asks its server for."""

    def __init__(self, spark: Any) -> None:
        self._stub = spark.client._stub
        self._asked: list[str] = []
        spark.client._stub = self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        ask = getattr(self._stub, name)

        def counted(*args: Any, **named: Any) -> Any:
            if name != "ReleaseExecute":  # of an answer that has come
                self._asked.append(name)
            return ask(*args, **named)

        return counted

    def of(self, call: Callable[[], Any]) -> list[str]:
        self._asked.clear()
        call()
        return list(self._asked)


def main(server: str, directory: str, which: str, *pages: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    schema = f"names_{which}"
    spark.sql(f"CREATE SCHEMA {schema}")
    spark.sql(f"USE {schema}")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        tables(spark, schema, directory)
        reads(spark, schema)
        inserts_of_own_rows(spark, directory)
        rows_that_are_kept(spark, directory)
        documented = f"file://{directory}/documented"
        make(lambda text: delta_pyds.sql(spark, text), "documented", documented)
        for table, is_name in (("documented", True), (f"delta.`{documented}`", False)):
            wrong = wrong_answers(lambda text: delta_pyds.sql(spark, text), table, documented, is_name=is_name)
            assert wrong == [], "\n".join(wrong)
        delta_pyds.install(spark, delta=True)
        installed(spark, schema)
        catalog(spark, schema, directory)
        wrong = []
        for number, page in enumerate(pages):
            wrong += by_name_as_by_path(spark, f"{schema}_page", f"{directory}/{number}", page)
        assert wrong == [], "\n".join(wrong)
    finally:
        delta_pyds.uninstall()
        spark.sql("USE default")
        spark.sql(f"DROP SCHEMA {schema} CASCADE")
    print("all is well", flush=True)
    spark.stop()


def tables(spark: Any, schema: str, directory: str) -> None:
    """``t`` without a scheme, ``u`` with one, and ``plain``, which is Spark's."""
    for text in (
        f"CREATE TABLE t (id BIGINT, p INT) USING deltapy PARTITIONED BY (p) LOCATION '{directory}/t'",
        "ALTER TABLE t SET TBLPROPERTIES (delta.enableDeletionVectors = true)",
        "INSERT INTO t SELECT id, id % 3 FROM range(9)",
        "DELETE FROM t WHERE id = 4",
        f"CREATE TABLE {schema}.u USING deltapy LOCATION 'file://{directory}/u' AS SELECT id, id AS t FROM range(2, 5)",
        "CREATE TABLE plain USING parquet AS SELECT id FROM range(3)",
    ):
        delta_pyds.sql(spark, text)


def plan(frame: Any) -> str:
    return str(frame._explain_string())


def reads(spark: Any, schema: str) -> None:
    """The rows are Spark's own for the same text."""
    for text, native in (
        ("SELECT * FROM t WHERE p = 1 AND id > 2", 1),
        ("SELECT t.id, x.id FROM t JOIN `U` AS x ON t.id = x.t WHERE t.p IN (SELECT min(p) FROM `T`)", 3),
        (f"WITH c AS (SELECT id FROM {schema}.t) SELECT c.id, plain.id FROM c JOIN plain USING (id)", 1),
        ("SELECT count(*), min(p), max(p) FROM t", 0),
        ("WITH t AS (SELECT 77 AS id) SELECT * FROM t", 0),
        (f"SELECT {schema}.t.id FROM t", 0),
        ("SELECT id FROM u UNION ALL SELECT id FROM plain", 1),
    ):
        found, wanted = delta_pyds.sql(spark, text), spark.sql(text)
        assert rows(found) == rows(wanted) != [], (text, rows(found))
        assert plan(found).count(NATIVE) >= native, (text, plan(found))
        assert native == 0 or SOURCE not in plan(found), (text, plan(found))
    counted = delta_pyds.sql(spark, "SELECT count(*), min(p), max(p) FROM t")
    assert "LocalTableScan" in plan(counted) and rows(counted) == [(8, 0, 2)], plan(counted)
    spark.sql("CREATE TEMPORARY VIEW hidden AS SELECT 5L AS id")
    delta_pyds.sql(spark, "CREATE TABLE IF NOT EXISTS kept USING deltapy AS SELECT 1L AS id")
    spark.sql("CREATE TEMPORARY VIEW kept AS SELECT 6L AS id")
    try:
        assert rows(delta_pyds.sql(spark, "SELECT * FROM hidden UNION ALL SELECT * FROM kept")) == [(5,), (6,)]
        assert rows(delta_pyds.sql(spark, f"SELECT * FROM {schema}.kept")) == [(1,)]
    finally:
        for name in ("hidden", "kept"):
            spark.catalog.dropTempView(name)
    report: Any = delta_pyds.explain(delta_pyds.read(spark, table="t"))
    assert report.engine == "native", report


def inserts_of_own_rows(spark: Any, directory: str) -> None:
    """An INSERT that reads its table by its name, or through a view of Spark's, is not a blind append."""
    delta_pyds.sql(spark, f"CREATE TABLE own USING deltapy LOCATION '{directory}/own' AS SELECT 1L AS id")
    spark.sql("CREATE VIEW of_own AS SELECT id + 1 AS id FROM own")
    for source, blind in (("own", False), ("of_own", False), ("plain", True)):
        delta_pyds.sql(spark, f"INSERT INTO own SELECT id + 10 FROM {source}")
        log = max(Path(directory, "own", "_delta_log").glob("*.json")).read_text()
        assert f'"isBlindAppend":{str(blind).lower()}' in log, (source, log)


def rows_that_are_kept(spark: Any, directory: str) -> None:
    def sql(text: str) -> Any:
        return delta_pyds.sql(spark, text)

    sql("CACHE TABLE t")
    assert KEPT in plan(sql("SELECT id FROM t")) and KEPT in plan(sql(f"SELECT id FROM delta.`file://{directory}/t`"))
    sql("DELETE FROM t WHERE id = 8")
    delta_pyds.write(spark.sql("SELECT 10L AS id, 1 AS p"), f"file://{directory}/t", mode="append")
    for _ in range(2):
        found = sql("SELECT id FROM t WHERE id > 6")
        assert rows(found) == [(10,), (7,)] and KEPT in plan(found), plan(found)
    assert rows(sql("SELECT max(id) FROM t VERSION AS OF 2")) == [(8,)]
    sql("UNCACHE TABLE t")
    assert KEPT not in plan(sql("SELECT id FROM t"))


def installed(spark: Any, schema: str) -> None:
    """The requests of ``spark.sql`` and ``spark.table`` to the server, and that they read natively."""
    spark.range(2).createOrReplaceTempView("passing")
    asked = Questions(spark)
    _ = [spark.sql(f"SELECT * FROM {name}") for name in ("t", "passing")]  # the session is looked at once
    own = ["ExecutePlan"]  # of Spark's ``sql``
    for text, more in (
        ("SELECT 1", 0),
        ("SELECT * FROM range(3)", 0),
        ("SELECT * FROM plain", 1),
        ("SELECT * FROM plain a JOIN passing b USING (id) JOIN nowhere.plain c USING (id)", 3),
        ("SELECT * FROM passing", 1),
    ):
        found = asked.of(partial(_or_error, partial(spark.sql, text)))
        queries = [name for name in found if name in ("ExecutePlan", "AnalyzePlan")]
        assert len(queries) <= len(own) + more, (text, found)
    assert asked.of(lambda: spark.table("plain")) == asked.of(lambda: spark.table("passing")) == own
    for text, names in (("SELECT id FROM t WHERE p = 1", 1), ("SELECT x.id FROM t x JOIN u USING (id)", 2)):
        found = asked.of(partial(spark.sql, text))
        # what a name is, where it is, the columns of what is joined for deleted rows, and the query
        assert len([name for name in found if name != "Config"]) <= 2 * names + 2, (text, found)
        assert NATIVE in plan(spark.sql(text)) and SOURCE not in plan(spark.sql(text))
    found = asked.of(lambda: spark.table("u"))
    assert len([name for name in found if name != "Config"]) == 2, found
    for frame in (spark.table("t"), spark.read.table(f"{schema}.t"), spark.sql("TABLE t")):
        assert NATIVE in plan(frame) and SOURCE not in plan(frame)
    assert ids(spark.sql("SELECT t.id FROM t WHERE p = 0")) == [0, 3, 6]
    streamed = spark.sql("SELECT t.id FROM STREAM t WITH (startingVersion = 1) WHERE t.p = 0")
    assert streamed.isStreaming and streamed.columns == ["id"], streamed
    if has_changes():
        text = "SELECT t.id, _change_type FROM t CHANGES FROM VERSION 0 TO VERSION 3 EXCLUSIVE"
        reader = spark.read.option("startingVersion", 0).option("endingVersion", 3)
        read = reader.option("endingBoundInclusive", "false").changes("t").select("t.id", "_change_type")
        assert sorted(rows(read)) == sorted(rows(spark.sql(text))) != [], text
        streamed = spark.readStream.option("startingVersion", 1).changes(f"{schema}.t")
        assert streamed.isStreaming and streamed.columns[-1] == "_commit_timestamp", streamed
        assert "CDC" in str(_or_error(lambda: spark.read.option("startingVersion", 0).changes("plain").schema))
    assert ids(spark.sql("SELECT * FROM {x} WHERE id IN (SELECT id FROM t)", x=spark.range(3))) == [0, 1, 2]
    spark.catalog.dropTempView("passing")
    # what another writer adds is in what only a view is sure to be, and in a view
    place = str(spark.sql("DESCRIBE DETAIL u").collect()[0].location)
    for column, text in (
        ("a", f"SELECT {schema}.u.a FROM {schema}.u WHERE a > 0"),
        ("b", "CREATE TEMPORARY VIEW later AS SELECT b FROM u WHERE b > 0"),
    ):
        more = spark.sql(f"SELECT 9L AS id, 9L AS t, 7L AS {column}")
        delta_pyds.write(more, place, mode="append", merge_schema=True)
        found = spark.sql(text)
        assert rows(spark.table("later") if column == "b" else found) == [(7,)], text
    spark.catalog.dropTempView("later")


def _or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def catalog(spark: Any, schema: str, directory: str) -> None:
    here = spark.catalog
    for name, again in (("t", f"spark_catalog.{schema}.t"), (f"delta.`file://{directory}/u`", "u")):
        assert not here.isCached(name)
        here.cacheTable(name)
        assert here.isCached(again) and KEPT in plan(spark.sql(f"SELECT id FROM {again}"))
        here.uncacheTable(again)
        assert not here.isCached(name) and KEPT not in plan(spark.sql(f"SELECT id FROM {name}"))
    here.cacheTable("t")
    here.cacheTable("plain")
    here.clearCache()
    assert not here.isCached("t") and not here.isCached("plain")
    found = {table.name: (table.tableType, table.isTemporary) for table in here.listTables()}
    assert found["t"] == ("EXTERNAL", False) and found["kept"] == found["plain"] == ("MANAGED", False), found
    assert not [name for name in found if name.startswith("_")], found
    assert sorted(table.name for table in here.listTables(schema, "t|u")) == ["t", "u"]
    assert here.getTable("u").tableType == "EXTERNAL" and here.getTable(f"{schema}.plain").tableType == "MANAGED"
    paths = [f"delta.`{directory}/{name}`" for name in ("t", "nothing")]
    assert [here.tableExists(name) for name in ("t", f"{schema}.u", "plain", "nothing", *paths)] == [
        *(True, True, True, False),
        *(True, False),
    ]
    made = here.createTable("made", f"file://{directory}/made", "delta", spark.range(1).schema, "words")
    assert made.collect() == [] and here.getTable("made").description == "words"
    spark.sql("INSERT INTO made VALUES (1)")
    here.truncateTable("made")
    assert spark.table("made").count() == 0
    assert "Delta table" in refused(lambda: here.dropView("made"), UserError)
    here.dropTable("made")
    assert not here.tableExists("made")
    catalog_answers(spark)
    spark.sql("CREATE TABLE ran (id INT, s STRING) USING delta")
    script = "BEGIN INSERT INTO ran VALUES (1, 'a'), (2, :s); DELETE FROM ran WHERE id = 1; TABLE ran; END"
    assert rows(spark.sql(script, {"s": "b"})) == [(2, "b")]
    spark.sql("EXECUTE IMMEDIATE 'INSERT INTO ran VALUES (?, ?)' USING 3, 'c'")
    assert rows(spark.sql("EXECUTE IMMEDIATE 'SELECT * FROM ran WHERE id > ?' USING 2")) == [(3, "c")]
    spark.table("t").createTempView("passing")
    assert here.dropTempView("passing") and not here.dropTempView("passing")


def catalog_answers(spark: Any) -> None:
    """The methods of ``spark.catalog`` say of ``t`` what SQL says."""
    here = spark.catalog
    columns = [(one.name, one.dataType, one.isPartition) for one in here.listColumns("t")]
    assert columns == [("id", "bigint", False), ("p", "int", True)], columns
    here.refreshTable("t")
    assert "does not apply to" in refused(lambda: here.recoverPartitions("t"), UnsupportedOperationError)
    if hasattr(here, "getTableProperties"):
        wanted = {row.key: row.value for row in spark.sql("SHOW TBLPROPERTIES t").collect()}
        assert here.getTableProperties("t") == wanted and wanted["delta.enableDeletionVectors"] == "true", wanted
        partitions = sorted(one.partition for one in here.listPartitions("t"))
        assert partitions == ["p=0", "p=1", "p=2"], partitions
        assert "does not apply to" in refused(lambda: here.analyzeTable("t"), UnsupportedOperationError)


def by_name_as_by_path(spark: Any, schema: str, directory: str, page: str) -> list[str]:
    """The texts of a page of the documentation that do not come to the same by name and by path, with both."""
    wrong = []
    Path(directory, "path").mkdir(parents=True)
    spark.sql(f"CREATE SCHEMA {schema} LOCATION 'file://{directory}/name'")
    try:
        for text in DOCUMENTED[page]:
            by_name = outcome(spark.sql, text, Path(directory, "name"), schema)
            by_path = outcome(spark.sql, text, Path(directory, "path"))
            of_name = by_name in OF_NAMES and by_path[0] == "error"
            if by_name != by_path and not (of_name or text.startswith(OTHERWISE)):
                wrong.append(f"{page}: {text}\n  by name {by_name}\n  by path {by_path}")
    finally:
        for table in spark.catalog.listTables(schema):
            if not table.isTemporary:
                spark.sql(f"DROP TABLE IF EXISTS {schema}.{table.name}")
        spark.sql(f"DROP SCHEMA {schema} CASCADE")
    return wrong


# what tells a name, or a path, in its answer
OTHERWISE = ("DESCRIBE EXTENDED",)
# what Spark's catalog says before anybody looks at a table; of a path the reference has other codes
OF_NAMES = (("error", "TABLE_OR_VIEW_NOT_FOUND"), ("error", "TABLE_OR_VIEW_ALREADY_EXISTS"))


if __name__ == "__main__":
    main(*sys.argv[1:])
