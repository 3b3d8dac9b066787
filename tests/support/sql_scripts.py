"""Scripts of SQL, each text with ``<T>``, ``<U>``, ``<V>`` and ``<W>`` for tables, ``<P>`` for the path of ``<T>``, and
``<D>`` for the directory that they are in.

Who runs them says what the tables are: by path or by name, by the reference or by us.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# SKIP before a text runs it without a look at its answer, which has times, sizes or paths; ONLY looks at some columns
SKIP, COLUMNS, ONLY = "skip:", "columns:", "only "
OPERATIONS = f"{ONLY}version,operation,userMetadata:DESCRIBE HISTORY <T>"
# the high-water marks that the schemas in the log have had
MARKS = (
    "SELECT DISTINCT explode(regexp_extract_all(value, 'highWaterMark[^0-9-]*(-?[0-9]+)', 1)) AS mark "
    "FROM text.`<P>/_delta_log` WHERE value LIKE '{\"metaData%'"
)
PEOPLE = [
    "CREATE TABLE <T> (id BIGINT NOT NULL, name STRING, p INT) USING delta PARTITIONED BY (p)",
    "INSERT INTO <T> VALUES (1, 'a', 0), (2, 'b', 1), (3, NULL, 1)",
]
SCRIPTS: dict[str, list[str]] = {
    "queries": [
        *PEOPLE,
        "SELECT * FROM <T>",
        "SELECT t.p, count(*) AS n FROM <T> AS t WHERE t.id > 1 GROUP BY t.p HAVING count(*) > 0",
        "WITH few AS (SELECT id FROM <T> WHERE p = 1) SELECT a.id, b.name FROM few a JOIN <T> b USING (id)",
        "SELECT count(*), min(id), max(id), min(p) FROM <T>",
        "SELECT * FROM <T> VERSION AS OF 0",
        "SELECT * FROM delta.`<P>@v1` WHERE name IS NULL",
        "SELECT * FROM <T> VERSION AS OF 9",
        "SELECT nothing FROM <T>",
        "SELECT * FROM <U>",
        "SELECT * FROM <T> TIMESTAMP AS OF '2001-01-01'",
        "SELECT (SELECT max(id) FROM <T>) AS most, x FROM VALUES (1), (2) AS v(x) WHERE x IN (SELECT id FROM <T>)",
        "TABLE <T>",
        "FROM <T> SELECT id WHERE p = 0",
        "SELECT upper(name) FROM <T> LATERAL VIEW explode(array(1, 2)) e AS x WHERE x = 1",
        "DESCRIBE <T>",
        "DESC TABLE EXTENDED <T>",
        "DESCRIBE <T> name",
        "DESCRIBE <T> nothing",
        "SHOW TBLPROPERTIES <T>",
        "SHOW CREATE TABLE <T>",
    ],
    "insert": [
        *PEOPLE,
        "INSERT INTO <T> (p, id) VALUES (7, 4)",
        "INSERT INTO <T> (id) SELECT 5",
        "INSERT INTO <T> BY NAME SELECT 1 AS p, 6L AS id, 'six' AS name",
        "INSERT INTO <T> PARTITION (p = 8) SELECT 7, 'seven'",
        "INSERT INTO <T> PARTITION (p) SELECT 8, 'eight', 9",
        "INSERT OVERWRITE <T> PARTITION (p = 8) VALUES (9, 'nine')",
        "INSERT INTO <T> REPLACE WHERE p = 7 SELECT 10, 'ten', 7",
        "INSERT INTO <T> REPLACE WHERE p = 7 SELECT 11, 'odd', 6",
        "INSERT INTO TABLE <T> SELECT id + 100, name, p FROM <T> WHERE p = 1",
        "INSERT INTO <T> VALUES (1)",
        "INSERT INTO <T> VALUES (1, 2, 3, 4)",
        "INSERT INTO <T> (nothing) VALUES (1)",
        "INSERT INTO <T> VALUES (NULL, 'x', 1)",
        "INSERT INTO <T> VALUES ('no number', 'x', 1)",
        "INSERT INTO <T> VALUES (1L, 'x', 3000000000)",
        "INSERT INTO <T> (id, id) VALUES (1, 2)",
        "INSERT INTO <U> VALUES (1)",
        "SELECT * FROM <T>",
        "INSERT OVERWRITE <T> SELECT 1, 'all', 1",
        "SELECT * FROM <T>",
    ],
    "defaults": [
        ("CREATE TABLE <T> (id INT, name STRING DEFAULT 'nobody', n INT DEFAULT 1 + 1) USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"),
        "INSERT INTO <T> VALUES (1, DEFAULT, DEFAULT), (2, 'b', 3)",
        "INSERT INTO <T> (id) VALUES (3)",
        "INSERT INTO <T> SELECT 4, DEFAULT, 4",
        "INSERT INTO <T> SELECT id + 10, DEFAULT, n FROM <T> WHERE id = 2 ORDER BY id",
        "INSERT INTO <T> SELECT id + 20, `default`, n FROM (SELECT id, n, 'own' AS default FROM <T> WHERE id = 2)",
        "INSERT INTO <T> SELECT id + 30, DEFAULT, n FROM (SELECT id, n, 'own' AS default FROM <T> WHERE id = 2)",
        "INSERT INTO <T> SELECT 5, DEFAULT, 1 UNION ALL SELECT 6, 'x', 2",
        "INSERT INTO <T> SELECT DISTINCT 5, DEFAULT, 1",
        "INSERT INTO <T> SELECT max(id), DEFAULT, 1 FROM <T> GROUP BY n",
        "INSERT INTO <T> VALUES (7, concat(DEFAULT, 'x'), 1)",
        "INSERT INTO <T> (n, id) VALUES (DEFAULT, DEFAULT)",
        "UPDATE <T> SET n = DEFAULT WHERE id = 2",
        "ALTER TABLE <T> ALTER COLUMN n SET DEFAULT 7",
        "INSERT INTO <T> (id) VALUES (5)",
        "ALTER TABLE <T> ALTER COLUMN name DROP DEFAULT",
        "INSERT INTO <T> (id) VALUES (6)",
        "SELECT * FROM <T>",
    ],
    "row changes": [
        *PEOPLE,
        "UPDATE <T> SET name = concat(name, '!'), p = p + 1 WHERE id < 3",
        "DELETE FROM <T> WHERE id = 99",
        "UPDATE <T> SET nothing = 1",
        "UPDATE <T> SET id = NULL",
        "UPDATE <T> SET name = 'x', name = 'y'",
        "DELETE FROM <T> WHERE p = 2",
        "DELETE FROM <T> WHERE nothing = 1",
        "DELETE FROM <T> WHERE id",
        "DELETE FROM <U>",
        "SELECT * FROM <T>",
        "TRUNCATE TABLE <T>",
        "SELECT count(*) FROM <T>",
        "DELETE FROM <T>",
    ],
    "merge": [
        *PEOPLE,
        ("CREATE TABLE <U> USING delta AS "
        "SELECT * FROM VALUES (1L, 'one', 0, true), (9L, 'nine', 5, false) AS s(id, name, p, vip)"),
        ("MERGE INTO <T> t USING <U> s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.name = s.name "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (s.id, s.name, s.p)"),
        "MERGE INTO <T> t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        ("MERGE INTO <T> t USING <U> s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN "
        "UPDATE SET name = 'gone' WHEN NOT MATCHED BY SOURCE THEN DELETE"),
        ("MERGE WITH SCHEMA EVOLUTION INTO <T> t USING <U> s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"),
        ("MERGE INTO <T> t USING (SELECT * FROM <U> UNION ALL SELECT * FROM <U>) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET t.name = concat(s.name, '2')"),
        "MERGE INTO <T> t USING <U> s ON t.nothing = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO <T> t USING <U> s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1",
        "SELECT * FROM <T>",
    ],
    "create": [
        ("CREATE TABLE <T> (a INT COMMENT 'one', b STRING NOT NULL) USING delta COMMENT 'a table' "
        "TBLPROPERTIES (my = 'own', delta.appendOnly = false)"),
        "CREATE TABLE <T> (a INT) USING delta",
        "CREATE TABLE IF NOT EXISTS <T> (a INT) USING delta",
        "SHOW COLUMNS IN <T>",
        "SHOW TBLPROPERTIES <T> (my)",
        "SHOW TBLPROPERTIES <T> (nothing)",
        ("CREATE TABLE <W> (a INT, d DATE GENERATED ALWAYS AS (CAST(at AS DATE)), at TIMESTAMP) USING delta "
        "CLUSTER BY (a)"),
        "INSERT INTO <W> (a, at) VALUES (1, TIMESTAMP'2026-01-31 12:00:00')",
        "INSERT INTO <W> VALUES (1, DATE'2020-01-01', TIMESTAMP'2026-01-31 12:00:00')",
        "SELECT * FROM <W>",
        "DESCRIBE EXTENDED <W>",
        "CREATE TABLE <U> LIKE <T>",
        "SELECT * FROM <U>",
        "REPLACE TABLE <U> USING delta PARTITIONED BY (p) AS SELECT 1 AS a, 2 AS p",
        "SELECT * FROM <U>",
        "CREATE TABLE <V> (a INT, a STRING) USING delta",
        "CREATE TABLE <V> (a INT) USING delta PARTITIONED BY (b)",
        "CREATE TABLE <V> (a INT) USING delta TBLPROPERTIES (delta.nothing = 1)",
        "REPLACE TABLE <V> (a INT) USING delta",
    ],
    "alter": [
        *PEOPLE,
        "ALTER TABLE <T> ADD COLUMNS (s STRUCT<x: INT> COMMENT 'inner', first INT FIRST)",
        "ALTER TABLE <T> ADD COLUMN s.y STRING AFTER x",
        "ALTER TABLE <T> ADD COLUMN id INT",
        "ALTER TABLE <T> RENAME COLUMN name TO called",
        "ALTER TABLE <T> DROP COLUMN name",
        "ALTER TABLE <T> SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE <T> RENAME COLUMN name TO called",
        "ALTER TABLE <T> DROP COLUMNS (first, s.x)",
        "ALTER TABLE <T> ALTER COLUMN id COMMENT 'number'",
        "ALTER TABLE <T> ALTER COLUMN id DROP NOT NULL",
        "ALTER TABLE <T> ALTER COLUMN called AFTER p",
        "ALTER TABLE <T> ADD CONSTRAINT positive CHECK (id > 0)",
        "ALTER TABLE <T> ADD CONSTRAINT large CHECK (id > 100)",
        "INSERT INTO <T> (id, p) VALUES (-1, 1)",
        "ALTER TABLE <T> DROP CONSTRAINT positive",
        "ALTER TABLE <T> DROP CONSTRAINT positive",
        "ALTER TABLE <T> DROP CONSTRAINT IF EXISTS positive",
        "ALTER TABLE <T> ALTER COLUMN id TYPE STRING",
        "ALTER TABLE <T> DROP COLUMN nothing",
        "ALTER TABLE <T> ALTER COLUMN id COMMENT 'key', p FIRST",
        "ALTER TABLE <T> ALTER COLUMN id COMMENT 'key', ID FIRST",
        "ALTER TABLE <T> ALTER COLUMN p FIRST, nothing COMMENT 'key'",
        "ALTER TABLE <T> UNSET TBLPROPERTIES IF EXISTS ('my')",
        "COMMENT ON TABLE <T> IS 'people'",
        "SHOW COLUMNS FROM <T>",
        "SELECT * FROM <T>",
    ],
    "maintenance": [
        *PEOPLE,
        "INSERT INTO <T> VALUES (4, 'd', 1)",
        f"{COLUMNS}OPTIMIZE <T> WHERE p = 1",
        f"{COLUMNS}OPTIMIZE <T> ZORDER BY (id, name)",
        "OPTIMIZE <T> WHERE id = 1",
        "OPTIMIZE <T> ZORDER BY (p)",
        f"{COLUMNS}VACUUM <T> RETAIN 200 HOURS DRY RUN",
        f"{COLUMNS}VACUUM <T> RETAIN 200 HOURS",
        f"{COLUMNS}RESTORE TABLE <T> TO VERSION AS OF 1",
        "RESTORE TABLE <T> TO VERSION AS OF 99",
        f"{COLUMNS}CREATE TABLE <U> SHALLOW CLONE <T> VERSION AS OF 1",
        f"{COLUMNS}REORG TABLE <T> APPLY (PURGE)",
        f"{COLUMNS}DESCRIBE HISTORY <T>",
        f"{COLUMNS}DESCRIBE DETAIL <T>",
        "GENERATE symlink_format_manifest FOR TABLE <T>",
        "OPTIMIZE <V>",
        "DESCRIBE HISTORY <V>",
        "SELECT * FROM <U>",
        "SELECT * FROM <T>",
    ],
    "sync identity": [
        ("CREATE TABLE <T> (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5), "
        "down BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -10 INCREMENT BY -4), v INT) USING delta"),
        "ALTER TABLE <T> ALTER COLUMN id SYNC IDENTITY",
        "INSERT INTO <T> VALUES (1, -1, 1), (9, -9, 2)",
        "ALTER TABLE <T> ALTER COLUMN id SYNC IDENTITY",
        "ALTER TABLE <T> ALTER down SYNC IDENTITY",
        MARKS,
        "INSERT INTO <T> VALUES (31, -12, 3), (22, -31, 4)",
        "ALTER TABLE <T> CHANGE COLUMN id SYNC IDENTITY",
        "ALTER TABLE <T> CHANGE DOWN SYNC IDENTITY",
        MARKS,
        "INSERT INTO <T> (v) VALUES (5)",
        "DELETE FROM <T> WHERE v > 2",
        "ALTER TABLE <T> ALTER COLUMN id SYNC IDENTITY",
        MARKS,
        "INSERT INTO <T> (v) VALUES (6)",
        "SELECT * FROM <T>",
        "ALTER TABLE <T> ALTER COLUMN v SYNC IDENTITY",
        "ALTER TABLE <T> ALTER COLUMN nothing SYNC IDENTITY",
        "ALTER TABLE <T> ALTER COLUMN id TYPE STRING",
        "ALTER TABLE <T> ALTER COLUMN id SET DEFAULT 1",
        "ALTER TABLE <T> ALTER COLUMN id COMMENT 'number'",
        OPERATIONS,
    ],
    "structs by place": [
        ("CREATE TABLE <T> (s STRUCT<x: INT, y: INT>, a ARRAY<STRUCT<x: INT, y: INT>>, "
        "m MAP<STRING, STRUCT<x: INT, y: INT>>) USING delta"),
        ("INSERT INTO <T> SELECT named_struct('y', 1, 'x', 2), array(named_struct('y', 1, 'x', 2)), "
        "map('k', named_struct('y', 1, 'x', 2))"),
        "INSERT INTO <T> (s) SELECT named_struct('y', 3, 'x', 4)",
        "INSERT INTO <T> (a) SELECT array(named_struct('y', 5, 'other', 6))",
        "INSERT INTO <T> BY NAME SELECT named_struct('y', 7, 'x', 8) AS s",
        "INSERT INTO <T> (s) SELECT named_struct('x', 9)",
        "INSERT INTO <T> (s) SELECT named_struct('x', 9, 'y', 9, 'z', 9)",
        "INSERT INTO <T> REPLACE WHERE s.x = 3 SELECT named_struct('y', 3, 'x', 4), null, null",
        "UPDATE <T> SET s = named_struct('y', 10, 'x', 11) WHERE s.x = 7",
        "SELECT * FROM <T>",
        "INSERT WITH SCHEMA EVOLUTION INTO <T> (s) SELECT named_struct('y', 12, 'x', 13, 'z', 14)",
        "INSERT WITH SCHEMA EVOLUTION INTO <T> (s) SELECT named_struct('z', 15, 'x', 16, 'other', 17)",
        "INSERT WITH SCHEMA EVOLUTION INTO <T> BY NAME SELECT named_struct('w', 0, 'z', 3, 'y', 2, 'x', 1) AS s",
        "SELECT s, a FROM <T>",
        "CREATE TABLE <U> (s STRUCT<x: INT, y: STRUCT<p: INT, q: INT>>) USING delta",
        "INSERT INTO <U> SELECT named_struct('y', 1, 'x', named_struct('q', 2, 'p', 3))",
        "SELECT * FROM <U>",
    ],
    "before the verb": [
        *PEOPLE,
        "WITH x AS (SELECT 400L AS a) INSERT INTO <T> SELECT a, 'with', 4 FROM x",
        ("WITH x (a) AS (SELECT 401L), y AS (SELECT 4 AS b) INSERT INTO <T> (p, id) "
        "WITH z AS (TABLE x) SELECT b, a FROM z, y"),
        "WITH x AS (SELECT 402L AS a) INSERT OVERWRITE TABLE <T> PARTITION (p = 4) SELECT a, 'over' FROM x",
        ("WITH s AS (SELECT 1L AS id, 'merged' AS name) MERGE INTO <T> AS t USING s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name"),
        ("WITH s AS (SELECT 500L AS id, 'new' AS name) MERGE INTO <T> AS t USING (SELECT * FROM s) q ON t.id = q.id "
        "WHEN NOT MATCHED THEN INSERT (id, name, p) VALUES (q.id, q.name, 5)"),
        "WITH x AS (SELECT 1L AS a) INSERT INTO <T> SELECT nothing, 'with', 4 FROM x",
        f"{SKIP}EXPLAIN UPDATE <T> SET p = 2 WHERE id = 1",
        f"{SKIP}EXPLAIN DELETE FROM <T>",
        f"{SKIP}EXPLAIN MERGE INTO <T> t USING <T> s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "SELECT * FROM <T>",
    ],
    "clauses": [
        "CREATE TABLE <T> (id INT, v INT, none VOID, m MAP<STRING, INT>, p INT) USING delta PARTITIONED BY (p)",
        "INSERT INTO <T> VALUES (1, 1, null, map('a', 1), 1)",
        "ALTER TABLE <T> ALTER COLUMN none TYPE INT",
        "INSERT INTO <T> VALUES (2, 2, 2, null, 2)",
        "UPDATE <T> SET v = max(id) OVER ()",
        "UPDATE <T> SET v = max(id)",
        "UPDATE <T> SET m.a = 3",
        "MERGE INTO <T> t USING (SELECT 7 AS k) s ON t.id = s.k WHEN NOT MATCHED THEN INSERT (id, id) VALUES (k, 1)",
        "TRUNCATE TABLE <T> PARTITION (p = 1)",
        "ALTER TABLE <T> ADD COLUMNS (z STRUCT<a: LONG, b: STRING NOT NULL>)",
        "ALTER TABLE <T> SET TBLPROPERTIES ('location' = '/some/new/path')",
        "ALTER TABLE <T> SET TBLPROPERTIES ('owner' = 'me', 'a' = 'b')",
        "ALTER TABLE <T> UNSET TBLPROPERTIES ('nothing')",
        "ALTER TABLE <T> UNSET TBLPROPERTIES ('provider')",
        "CREATE TABLE <U> (a INT) USING delta TBLPROPERTIES ('provider' = 'json')",
        "CREATE TABLE <U> (id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)) USING delta",
        "CREATE TABLE <U> (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 1 START WITH 2)) USING delta",
        "CREATE TABLE <U> (a INT) USING delta CLUSTERED BY (a) INTO 4 BUCKETS",
        "CREATE TABLE <U> (a INT, at TIMESTAMP) USING delta PARTITIONED BY (days(at))",
        "SELECT * FROM <T>",
    ],
    "changes": [
        "CREATE TABLE <T> (id INT, v STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO <T> VALUES (1, 'a'), (2, 'b')",
        "UPDATE <T> SET v = 'c' WHERE id = 1",
        "DELETE FROM <T> WHERE id = 2",
        "SELECT id, v, _change_type, _commit_version FROM table_changes_by_path('<P>', 0)",
        "SELECT id, v, _change_type FROM table_changes_by_path('<P>', 2, 2)",
        "SELECT * FROM table_changes_by_path('<P>', 9)",
    ],
    "scripts": [
        *PEOPLE,
        "columns:BEGIN INSERT INTO <T> VALUES (4, 'd', 2); UPDATE <T> SET name = 'z' WHERE id = 1; END",
        "BEGIN DELETE FROM <T> WHERE id = 2; SELECT id, name FROM <T>; END",
        # without USING, whose arguments the reference does not find
        "columns:EXECUTE IMMEDIATE 'INSERT INTO <T> VALUES (' || '5L, \"e\", 3)'",
        "EXECUTE IMMEDIATE 'SELECT max(id) AS most FROM <T> WHERE p < 3'",
        "BEGIN DELETE FROM <T> WHERE id = 3; SELECT nothing FROM <T>; DELETE FROM <T>; END",
        "SELECT * FROM <T>",
    ],
    "syntax": [
        *PEOPLE,
        "UPDATE <T> WHERE id = 1",
        "DELETE <T>",
        "MERGE INTO <T> USING <T> s ON true",
        "MERGE INTO <T> USING <T> s ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DELETE",
        "MERGE INTO <T> USING <T> s ON true WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED THEN INSERT *",
        ("MERGE INTO <T> USING <T> s ON true WHEN NOT MATCHED BY SOURCE THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE"),
        "MERGE INTO <T> USING <T> s ON true WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE",
        "MERGE INTO <T> USING <T> s ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)",
        "MERGE INTO <T> USING <T> s (a, b) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO <T> USING <T> s ON true WHEN MATCHED THEN INSERT *",
        "DELETE /*+ COALESCE(1) */ FROM <T>",
        "DELETE FROM <T> t (a)",
        "INSERT INTO <T> PARTITION (p = 1, p = 2) SELECT 1",
        "CREATE TABLE <U> (a INT NOT NULL NOT NULL) USING delta",
        "CREATE TABLE <U> (a INT) USING delta COMMENT 'a' COMMENT 'b'",
        "ALTER TABLE <T> SET TBLPROPERTIES (a = 1, a = 2)",
        "INSERT <T> VALUES (1)",
        "OPTIMIZE <T> ZORDER (id)",
        "VACUUM <T> RETAIN x HOURS",
        "ALTER TABLE <T> FROB",
        "SELECT * FROM <T> WHERE",
        "DELETE FROM <T> WHERE id = = 1",
    ],
}  # fmt: skip


def outcome(run: Callable[[str], DataFrame], text: str, root: Path, schema: str | None = None) -> tuple[Any, ...]:
    """``("rows", columns, rows)``, or ``("error", code)``. The tables have names in ``schema``, whose place is
    ``root``; without one they are named by their paths below it."""

    def table(match: re.Match[str]) -> str:
        letter = match[1].lower()
        return f"{schema}.{letter}" if schema else f"delta.`{root / letter}`"

    found = re.sub(r"<([TUVW])>", table, text.replace("<P>", str(root / "t")).replace("<D>", str(root)))
    kind = next((k for k in (SKIP, COLUMNS) if found.startswith(k)), "")
    names, _, only = found.removeprefix(ONLY).partition(":") if found.startswith(ONLY) else ("", "", found)
    try:
        frame = run(only.removeprefix(kind))
        if names:
            frame = frame.select(*names.split(","))
        answer = [] if kind else sorted(repr(tuple(map(_ordered, row))) for row in frame.collect())
    except Exception as e:
        known = delta_pyds.error_of(e)
        return "error", condition_of(e) if known is None else known.code
    shown = [line.replace(str(root), "<root>").replace(schema or "<schema>", "<schema>") for line in answer]
    return "rows", None if kind == SKIP else frame.columns, shown


def _ordered(value: Any) -> Any:
    return sorted(value.items()) if isinstance(value, dict) else value


def condition_of(error: Exception) -> str | None:
    """The class of an error of Spark's, or of the reference."""
    given = error.getCondition() if hasattr(error, "getCondition") else None
    if given is None:
        named = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
        given = named[1] if named else type(error).__name__
    return str(given)
