"""The shells of the JVM: ``spark-sql``, and the Thrift server with a client of HiveServer2.

Tables get their names in a Python session. The shells read them by these names, and by paths.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyspark
from pyhive import hive

_PROGRAMS = Path(pyspark.__file__).parent / "bin"
_SETTINGS = ("--master", "local[1]", "--conf", "spark.ui.enabled=false")
_TABLES = """
from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.enableHiveSupport().getOrCreate()
for text in (
    "CREATE TABLE visits (id INT, city STRING) USING delta PARTITIONED BY (city)",
    "INSERT INTO visits VALUES (1, 'Bern'), (2, 'Zug'), (3, 'Bern')",
    "DELETE FROM visits WHERE id = 3",
    "CREATE VIEW seen AS SELECT city FROM visits",
):
    spark.sql(text)
spark.stop()
"""
# the sentence of Spark's by which each is refused, in one line
_VIEW = r"expects a table but `spark_catalog`.`default`.`visits` is a view\."
_NO_COMMAND = r"The feature is not supported: Table `\S+` does not support {}\."
_REFUSED = {
    "INSERT INTO visits VALUES (9, 'Uri')": f"'INSERT' {_VIEW}",
    "DELETE FROM visits WHERE id = 1": r"Table does not support deletes: deltapy\.",
    "UPDATE visits SET id = 4": _NO_COMMAND.format("UPDATE TABLE"),
    "MERGE INTO visits USING seen ON id = 1 WHEN MATCHED THEN DELETE": _NO_COMMAND.format("MERGE INTO TABLE"),
    "ALTER TABLE visits ADD COLUMNS (more INT)": rf"'ALTER TABLE \.\.\. ADD COLUMNS' {_VIEW}",
    "TRUNCATE TABLE visits": f"'TRUNCATE TABLE' {_VIEW}",
    "SELECT * FROM visits VERSION AS OF 1": r"Time travel on the relation: `spark_catalog`.`default`.`visits`\.",
    "OPTIMIZE visits": r"Syntax error at or near 'OPTIMIZE'\.",
    "VACUUM visits": r"Syntax error at or near 'VACUUM'\.",
    "DESCRIBE HISTORY visits": r"The table or view `HISTORY` cannot be found\.",
    "SELECT * FROM delta.`/data/t`": r"The table or view `delta`.`/data/t` cannot be found\.",
    "SELECT * FROM deltapy.`/data/t`": r"Unsupported data source type for direct query on files: deltapy",
    "CREATE TABLE more USING delta AS SELECT 1 AS id": r"Failed to find the data source: delta\.",
}


def path() -> str:
    return str(Path("spark-warehouse/visits").absolute())


def spark_sql(*statements: str) -> list[str]:
    command = [str(_PROGRAMS / "spark-sql"), *_SETTINGS, "-e", "; ".join(statements)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class ThriftServer:
    """A server on a free port of this machine, and a connection to it."""

    def __enter__(self) -> Any:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(_PROGRAMS / "spark-submit"), *_SETTINGS, "--class"]
        command += ["org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", "spark-internal"]
        for setting in (f"port={port}", "bind.host=127.0.0.1"):
            command += ["--hiveconf", f"hive.server2.thrift.{setting}"]
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(300):
            time.sleep(1)
            assert self._server.poll() is None, "the server ended"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        return hive.connect("127.0.0.1", port=port, username="me")

    def __exit__(self, *_: object) -> None:
        self._server.terminate()
        self._server.wait(60)


def rows(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(statement)
    return sorted(cursor.fetchall()) if cursor.description else []


def refusal(connection: Any, statement: str) -> str:
    try:
        found = rows(connection, statement)
    except hive.OperationalError as error:
        return str(error.args[0].status.errorMessage)
    raise AssertionError((statement, found))


def main() -> None:
    subprocess.run([sys.executable, "-c", _TABLES], check=True)
    found = spark_sql("SELECT id, city FROM visits ORDER BY id", "SELECT city FROM seen ORDER BY city")
    assert found == ["1\tBern", "2\tZug", "Bern", "Zug"], found
    with ThriftServer() as connection:
        assert rows(connection, "SELECT * FROM visits") == [(1, "Bern"), (2, "Zug")]
        assert rows(connection, "SELECT a.id FROM visits a JOIN seen b USING (city) WHERE city = 'Zug'") == [(2,)]
        assert [row[0] for row in rows(connection, "DESCRIBE visits")] == ["city", "id"]
        for statement, sentence in _REFUSED.items():
            lines = refusal(connection, statement).splitlines()
            assert any(re.search(sentence, line) for line in lines), (statement, lines)
        entries = [row[1] for row in rows(connection, "SHOW TABLES")]
        assert entries[1:] == ["seen", "visits"] and entries[0].startswith("_deltapy_visits_"), entries
        [(shown,)] = rows(connection, "SHOW CREATE TABLE visits")
        assert "CREATE VIEW default.visits" in shown and path() in shown, shown
        view = f"CREATE TEMPORARY VIEW {{}} USING deltapy OPTIONS (path '{path()}'{{}})"
        rows(connection, view.format("by_path", ""))
        rows(connection, view.format("before", ", versionAsOf '1'"))
        assert rows(connection, "SELECT id FROM by_path WHERE city = 'Bern'") == [(1,)]
        assert rows(connection, "SELECT id FROM before") == [(1,), (2,), (3,)]
        rows(connection, "INSERT INTO by_path VALUES (5, 'Sion')")
        assert rows(connection, "SELECT id FROM visits") == [(1,), (2,), (5,)]
        rows(connection, f"CREATE TABLE named USING deltapy OPTIONS (path '{path()}')")
        named = f"named WITH (path = '{path()}')"
        rows(connection, f"INSERT OVERWRITE {named} VALUES (6, 'Chur')")
        assert rows(connection, f"SELECT * FROM {named}") == rows(connection, "SELECT * FROM visits") == [(6, "Chur")]
        # a view stays at the version of its creation
        assert rows(connection, "SELECT id FROM by_path") == [(1,), (2,)]
        # only the name goes: the table stays
        rows(connection, "DROP TABLE visits")
        names = [name for _, name, is_temporary in rows(connection, "SHOW TABLES") if not is_temporary]
        assert names == [entries[0], "named", "seen"], names
        rows(connection, view.format("after", ""))
        left = rows(connection, "SELECT id FROM after")
        assert left == [(6,)], left


if __name__ == "__main__":
    main()
