"""Columns that become wider, and what commands say of themselves: the same statement by both engines on two copies.

Equal are schemas, rows (each copy read by each engine), the feed of the version where there is one, and what
``commitInfo`` says, but for predicates' words and sizes. ``fails``: both refuse, with this code.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.engines import Engines
from tests.interop.statement_twins import run_on_both

_NESTED = (
    """CREATE TABLE {t} (id INT, p SMALLINT, a ARRAY<INT>, m MAP<SMALLINT, INT>,
    s STRUCT<x: INT, a: ARRAY<SMALLINT>>, n ARRAY<ARRAY<INT>>, e ARRAY<STRUCT<y: INT>>)
    USING delta PARTITIONED BY (p) TBLPROPERTIES ('delta.enableTypeWidening' = 'true')""",
    """INSERT INTO {t} VALUES (1, 1, array(1, 2), map(1S, 2), named_struct('x', 1, 'a', array(3S)), array(array(1)),
    array(named_struct('y', 1))), (2, NULL, NULL, NULL, NULL, NULL, NULL)""",
)
_PLAIN = (
    """CREATE TABLE {t} (id BIGINT, p INT, v STRING) USING delta PARTITIONED BY (p)
    TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')""",
    "INSERT INTO {t} VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c')",
    "INSERT INTO {t} VALUES (4, 2, 'd'), (5, 3, 'e')",
)
_STRUCTS = (
    """CREATE TABLE {t} (id INT, s STRUCT<x: INT>, a ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>, v INT)
    USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')""",
    "INSERT INTO {t} VALUES (1, named_struct('x', 1), array(named_struct('x', 1)), map('k', named_struct('x', 1)), 1)",
    "INSERT INTO {t} VALUES (2, NULL, NULL, NULL, 2)",
)
_SOURCE = (
    "(SELECT explode(array(1, 3)) id, named_struct('x', 10, 'y', 11) s, array(named_struct('x', 3, 'y', 4)) a, "
    "map('k', named_struct('x', 6, 'y', 7)) m, 9 w)"
)
_CHARS = (
    """CREATE TABLE {t} (id INT, c CHAR(5), v VARCHAR(5), s STRUCT<c: CHAR(3)>, p CHAR(3))
    USING delta PARTITIONED BY (p)""",
    "INSERT INTO {t} VALUES (1, 'ab', 'ab', named_struct('c', 'x'), 'p')",
)
_IDENTITY = (
    "CREATE TABLE {t} (id BIGINT GENERATED {kind} AS IDENTITY, v STRING) USING delta",
    "INSERT INTO {t} (v) VALUES ('a'), ('b')",
)
_BY_DEFAULT, _ALWAYS = (tuple(text.replace("{kind}", kind) for text in _IDENTITY) for kind in ("BY DEFAULT", "ALWAYS"))


@dataclass(frozen=True)
class Case:
    before: tuple[str, ...]
    statement: str
    fails: str | None = None
    also: tuple[str, ...] = ()


def _altered(what: str, then: str) -> Case:
    """``then``: of a row that only the wider type can hold."""
    values = {
        "id": "3", "p": "1", "a": "NULL", "m": "NULL", "s": "NULL", "n": "NULL", "e": "NULL",
    } | dict([then.split("=")])  # fmt: skip
    wide = f"INSERT INTO {{t}} VALUES ({', '.join(values.values())})"
    return Case(_NESTED, f"ALTER TABLE {{t}} ALTER COLUMN {what}", also=(wide, "DELETE FROM {t} WHERE id = 1"))


def _merged(clause: str) -> Case:
    return Case(_STRUCTS, f"MERGE WITH SCHEMA EVOLUTION INTO {{t}} t USING {_SOURCE} s ON t.id = s.id {clause}")


_CASES = {
    "element": _altered("a.element TYPE BIGINT", "a=array(5000000000)"),
    "key": _altered("m.key TYPE INT", "m=map(70000, 1)"),
    "value": _altered("m.value TYPE DOUBLE", "m=map(1S, 1.5D)"),
    "element in a struct": _altered("s.a.element TYPE INT", "s=named_struct('x', 1, 'a', array(70000))"),
    "element of an element": _altered("n.element.element TYPE BIGINT", "n=array(array(5000000000))"),
    "field of an element": _altered("e.element.y TYPE BIGINT", "e=array(named_struct('y', 5000000000))"),
    "partition column": _altered("p TYPE BIGINT", "p=5000000000"),
    "partition column to double": _altered("p TYPE DOUBLE", "p=1.0D"),
    "the type it has": Case(_NESTED, "ALTER TABLE {t} ALTER COLUMN a.element TYPE INT"),
    "comment of an element": Case(
        _NESTED, "ALTER TABLE {t} ALTER COLUMN a.element COMMENT 'x'", "DELTA_UNSUPPORTED_COMMENT_MAP_ARRAY"
    ),
    "nested name with another expression": _merged("WHEN MATCHED THEN UPDATE SET t.s = named_struct('x', 7)"),
    "nested name with its own": _merged("WHEN MATCHED THEN UPDATE SET t.s = named_struct('y', 8, 'x', 7)"),
    "array of another expression": _merged("WHEN MATCHED THEN UPDATE SET T.a = array(named_struct('x', 1, 'y', 2))"),
    "map of the source": _merged("WHEN MATCHED THEN UPDATE SET t.m = s.m"),
    "nothing of the source": _merged("WHEN MATCHED THEN UPDATE SET t.s = t.s, t.v = 3"),
    "insert of a struct": _merged("WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, named_struct('y', 8))"),
    "columns and rows in one version": _merged(
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
    ),
    "restored columns": Case(
        (*_PLAIN, "ALTER TABLE {t} ADD COLUMN n INT", "INSERT INTO {t} VALUES (7, 7, 'z', 8)"),
        "RESTORE TABLE {t} TO VERSION AS OF 2",
    ),
    "restore to the current version": Case(_PLAIN, "RESTORE TABLE {t} TO VERSION AS OF 2"),
    "truncate": Case(_PLAIN, "TRUNCATE TABLE {t}"),
    "truncate of nothing": Case(_PLAIN[:1], "TRUNCATE TABLE {t}"),
    "replaced partition": Case(_PLAIN, "INSERT INTO {t} REPLACE WHERE p = 1 SELECT 9L, 1, 'z'"),
    "replaced partition without rows": Case(_PLAIN, "INSERT INTO {t} REPLACE WHERE p = 77 SELECT 9L, 77, 'z'"),
    "replaced by nothing": Case(_PLAIN, "INSERT INTO {t} REPLACE WHERE p = 1 SELECT 9L, 1, 'z' WHERE false"),
    "default of an identity column": Case(_BY_DEFAULT, "INSERT INTO {t} VALUES (DEFAULT, 'c'), (77, 'd')"),
    "default of an identity column that is always given": Case(
        _ALWAYS, "INSERT INTO {t} VALUES (DEFAULT, 'c')", "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    ),
    **{
        f"insert of the table's own rows, {how}": Case(_PLAIN, f"INSERT {query}")
        for how, query in (
            ("all", "INTO {t} SELECT id + 10, p, v FROM {t}"),
            ("some", "INTO {t} SELECT id + 10, p, v FROM {t} WHERE p = 1"),
            ("none of them", "INTO {t} SELECT 10L, 1, 'x' WHERE 1 NOT IN (SELECT id FROM {t})"),
            ("in a subquery", "INTO {t} SELECT 10L, 1, 'x' WHERE 10 NOT IN (SELECT id FROM {t})"),
            ("in WITH", "INTO {t} WITH w AS (SELECT * FROM {t}) SELECT id + 10, p, v FROM w"),
            ("of a version", "INTO {t} SELECT id + 10, p, v FROM {t} VERSION AS OF 1"),
            ("by name", "INTO {t} BY NAME SELECT v, id FROM {t}"),
            ("in their place", "OVERWRITE {t} SELECT id + 10, p, v FROM {t}"),
            ("in a partition's place", "INTO {t} REPLACE WHERE p = 1 SELECT id + 10, 1, v FROM {t}"),
        )
    },
    "texts as they came": Case(
        _CHARS,
        "INSERT INTO {t} VALUES (2, 'b', 'b ', named_struct('c', 'y '), 'q')",
    ),
    **{
        f"text of too many characters, {column}": Case(
            _CHARS,
            f"INSERT INTO {{t}} SELECT 3, {', '.join(value if name == column else short for name, short in pairs)}",
            "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        )
        for pairs in [(("c", "'c'"), ("v", "'v'"), ("s", "named_struct('c', 'x')"), ("p", "'p'"))]
        for column, value in (
            ("c", "'abc   '"), ("v", "'ab      '"), ("s", "named_struct('c', 'xyzz')"), ("p", "'pqrs'"),
        )
    },
}  # fmt: skip
_BOUNDED = (
    "element",
    "partition column",
    "nested name with another expression",
    "restored columns",
    "truncate",
    "insert of the table's own rows, in a subquery",
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.cell("columns and what is said of them", "us -> reference"),
                *[pytest.mark.also_bounded] * (name in _BOUNDED),
            ],
        )
        for name in _CASES
    ],
)
def test_a_statement_does_the_same(engines: Engines, tmp_path: Path, name: str) -> None:
    case = _CASES[name]
    answers = run_on_both(engines, tmp_path, case.before, (case.statement, *case.also))
    assert case.fails is None or answers[0] == case.fails
