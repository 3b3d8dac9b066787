"""The same texts of SQL by the reference and by ``delta_pyds.sql``: equal answers, equal errors, equal tables.

Invariants: a text is the same for both but for the place of its tables; after each script both engines read both
tables, and find the same rows. An error that has another code here than there is in ``OTHER_CODES``, with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds
from tests.interop.engines import Engines, rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# T and U are tables, and SKIP before a text runs it without a look at its answer, which has times, sizes or paths
SKIP, COLUMNS = "skip:", "columns:"
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
    "changes": [
        "CREATE TABLE <T> (id INT, v STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
        "INSERT INTO <T> VALUES (1, 'a'), (2, 'b')",
        "UPDATE <T> SET v = 'c' WHERE id = 1",
        "DELETE FROM <T> WHERE id = 2",
        "SELECT id, v, _change_type, _commit_version FROM table_changes_by_path('<P>', 0)",
        "SELECT id, v, _change_type FROM table_changes_by_path('<P>', 2, 2)",
        "SELECT * FROM table_changes_by_path('<P>', 9)",
    ],
    "syntax": [
        *PEOPLE,
        "UPDATE <T> WHERE id = 1",
        "DELETE <T>",
        "MERGE INTO <T> USING <T> s ON true",
        "INSERT <T> VALUES (1)",
        "OPTIMIZE <T> ZORDER (id)",
        "VACUUM <T> RETAIN x HOURS",
        "ALTER TABLE <T> FROB",
        "SELECT * FROM <T> WHERE",
        "DELETE FROM <T> WHERE id = = 1",
    ],
}  # fmt: skip
# ours by theirs, with what it is about
OTHER_CODES: dict[tuple[str | None, str | None], str] = {
    ("DELTA_PATH_DOES_NOT_EXIST", "PATH_NOT_FOUND"): "no table: Spark says it before the reference is asked",
    ("DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE"): "no directory",
    ("DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND"): "no table",
    ("DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_ONLY_OPERATION"): "no table",
    ("DELTA_COLUMN_NOT_FOUND", "UNRESOLVED_COLUMN.WITH_SUGGESTION"): "Spark looks for columns before the reference",
    ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "INTERNAL_ERROR"): "its text is not among Spark's",
    ("CAST_OVERFLOW", "CAST_OVERFLOW_IN_TABLE_INSERT"): "the cast is made in the query",
    ("DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE", "COLUMN_ALREADY_EXISTS"): "Spark looks first",
    ("DELTA_PARTITION_COLUMN_NOT_FOUND", "_LEGACY_ERROR_TEMP_3060"): "Spark looks first",
    ("PARSE_SYNTAX_ERROR", "MERGE_WITHOUT_WHEN"): "a syntax error too",
}


@pytest.mark.cell("texts of SQL", "us -> reference")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_does_the_same(engines: Engines, tmp_path: Path, script: str) -> None:
    different = []
    for text in SCRIPTS[script]:
        theirs = _outcome(engines.sql, text, tmp_path / "theirs")
        ours = _outcome(lambda found: delta_pyds.sql(engines.spark, found), text, tmp_path / "ours")
        if theirs != ours and not _known(ours, theirs):
            different.append(f"{text}\n  theirs: {theirs}\n  ours:   {ours}")
    assert not different, "\n".join(different)
    for name in "TUVW":
        if not (tmp_path / "theirs" / name).exists():
            continue
        found = [
            rows(read(tmp_path / side / name))
            for side in ("theirs", "ours")
            for read in (engines.reference, engines.ours)
        ]
        assert found[1:] == found[:-1], name
        delta_pyds.verify(tmp_path / "ours" / name).raise_for_errors()


def _known(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    return ours[0] == theirs[0] == "error" and (ours[1], theirs[1]) in OTHER_CODES


def _outcome(run: Callable[[str], DataFrame], text: str, root: Path) -> tuple[Any, ...]:
    """``("rows", columns, rows)``, or ``("error", code)``."""
    found = re.sub(r"<([TUVW])>", lambda m: f"delta.`{root / m[1]}`", text.replace("<P>", str(root / "T")))
    kind = next((k for k in (SKIP, COLUMNS) if found.startswith(k)), "")
    try:
        frame = run(found.removeprefix(kind))
        answer = [] if kind else sorted(map(_shown, frame.collect()))
    except Exception as e:
        known = delta_pyds.error_of(e)
        code = _condition(e) if known is None else known.code
        return "error", code
    return "rows", None if kind == SKIP else frame.columns, [line.replace(str(root), "<root>") for line in answer]


def _shown(row: Any) -> str:
    return repr(tuple(row))


def _condition(error: Exception) -> str | None:
    given = error.getCondition() if hasattr(error, "getCondition") else None
    if given is None:
        named = re.search(r"\[([A-Z][A-Z0-9_.]+)\]", str(error))
        given = named[1] if named else type(error).__name__
    return str(given)
