"""The conditions that rows of a table must satisfy, as the text of a statement has them."""

from __future__ import annotations

import pytest

from delta_pyds.statements.kinds import PassThrough, RowConditions, TableReference
from tests.unit.statements.parsed import parsed

A, B = "delta.`/a`", "delta.`/b`"


def conditions(text: str) -> dict[str, RowConditions | None]:
    """By the last letter of the path."""
    found = {}
    for span in parsed(text, PassThrough).tables:
        assert isinstance(span.table, TableReference)
        found[(span.table.path or "")[-1]] = span.conditions
    return found


def texts(text: str) -> dict[str, tuple[str, ...]]:
    return {name: () if one is None else one.texts for name, one in conditions(text).items()}


@pytest.mark.parametrize(
    ("after", "text"),
    [
        ("WHERE x = 1", "x = 1"),
        ("WHERE x AND y IN (SELECT 1 FROM t WHERE z = 2) GROUP BY x", "x AND y IN (SELECT 1 FROM t WHERE z = 2)"),
        ("WHERE x IS NOT DISTINCT FROM 1 -- the end\nORDER BY x", "x IS NOT DISTINCT FROM 1"),
        ("AS t WHERE LEFT(x, 1) = 'a' UNION SELECT 1 WHERE y = 2", "LEFT(x, 1) = 'a'"),
        ("WHERE x = limit AND order < 3 LIMIT 1", "x = limit AND order < 3"),
        ("WHERE x > 1 |> WHERE y = 2", "x > 1"),
        ("WHERE count(*) FILTER (WHERE x = 1) > 2", None),
        ("VERSION AS OF 3 t WHERE t.x = 1;", "t.x = 1"),
        ("LATERAL VIEW OUTER explode(y) z AS k, v WHERE x = 1", "x = 1"),
        ("WHERE x = 1 WINDOW w AS (ORDER BY x)", "x = 1"),
        ("WHERE x = 1 QUALIFY y = 2", "x = 1"),
        # unknown or changed rows
        ("WHERE x = 1 PICK y", None),
        ("PICK y WHERE x = 1", None),
        ("AS t PICK WHERE x = 1", None),
        ("TABLESAMPLE (10 PERCENT) REPEATABLE (3) t WHERE x = 1", None),
        ("AS t (x, y) WHERE x = 1", None),
        ("PIVOT (sum(x) FOR y IN (1, 2)) WHERE x = 1", None),
        ("UNPIVOT (x FOR y IN (a, b)) WHERE x = 1", None),
        ("|> WHERE x = 1", None),
        ("WHERE x = ${y}", None),
        ("WHERE x = '${y}'", None),
        ("WHERE x = :y", None),
        ("WHERE", None),
        ("WHERE x = 1 AND", None),
        ("WHERE (x = 1", None),
    ],
)  # fmt: skip
def test_where(after: str, text: str | None) -> None:
    assert texts(f"SELECT * FROM {A} {after}") == {"a": () if text is None else (text,)}


@pytest.mark.parametrize(
    ("joined", "a", "b"),
    [
        ("a JOIN {b} b ON p WHERE q", ("p", "q"), ("p", "q")),
        ("a INNER JOIN {b} b ON p WHERE q", ("p", "q"), ("p", "q")),
        ("a, {b} b WHERE q", ("q",), ("q",)),
        ("a CROSS JOIN {b} b WHERE q", ("q",), ("q",)),
        ("a LEFT JOIN {b} b ON p WHERE q", ("q",), ("p",)),
        ("a LEFT OUTER JOIN {b} b ON p WHERE q", ("q",), ("p",)),
        ("a RIGHT JOIN {b} b ON p WHERE q", ("p",), ("q",)),
        ("a FULL OUTER JOIN {b} b ON p WHERE q", (), ()),
        ("a SEMI JOIN {b} b ON p WHERE q", ("p", "q"), ("p",)),
        ("a LEFT ANTI JOIN {b} b ON p WHERE q", ("q",), ("p",)),
        ("a NEAREST JOIN {b} b ON p WHERE q", (), ()),
        ("a JOIN {b} b ON p LEFT JOIN t ON r WHERE q", ("p", "q"), ("p", "q")),
        ("a JOIN {b} b ON p RIGHT JOIN t ON r WHERE q", ("p", "r"), ("p", "r")),
        ("a LEFT JOIN (t JOIN {b} b ON r) ON p WHERE q", ("q",), ("r", "p")),
        ("a LEFT JOIN (t LEFT JOIN {b} b ON r) ON p WHERE q", ("q",), ("r",)),
        ("a JOIN (t JOIN {b} b ON r) AS u ON p WHERE q", ("p", "q"), ("r",)),
        ("a, t LEFT JOIN {b} b ON p WHERE q", ("q",), ("p",)),
        ("a LEFT JOIN LATERAL (SELECT * FROM {b} b WHERE r) ON p WHERE q", ("q",), ("r",)),
        ("a JOIN f(1) g ON p JOIN {b} b ON r WHERE q", ("p", "r", "q"), ("r", "q")),
    ],
)
def test_joins(joined: str, a: tuple[str, ...], b: tuple[str, ...]) -> None:
    assert texts(f"SELECT 1 FROM {A} {joined.format(b=B)}") == {"a": a, "b": b}


def test_names_of_a_from_list() -> None:
    found = conditions(
        f"SELECT 1 FROM {A} JOIN s.t ON x = 1 JOIN (SELECT 1) AS `U` LEFT JOIN {B} Bees USING (k, L) "
        "LATERAL VIEW f(z) v"
    )
    assert found["b"] is None
    assert found["a"] == RowConditions(("x = 1",), None, frozenset(("t", "u", "bees", "v", "f")), frozenset(("k", "l")))
    found = conditions(f"SELECT 1 FROM {A} x NATURAL LEFT JOIN {B} y WHERE x.z = 1")
    assert found["a"] == RowConditions(("x.z = 1",), "x", frozenset("xy"), None)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"WITH c AS (SELECT * FROM {A} WHERE p) SELECT * FROM c, {B} WHERE q", {"a": ("p",), "b": ("q",)}),
        (f"SELECT 1 FROM {A} WHERE p UNION ALL (SELECT 1 FROM {B} WHERE q) LIMIT 3", {"a": ("p",), "b": ("q",)}),
        (f"SELECT EXTRACT(DAY FROM d), a IS DISTINCT FROM b FROM {A} WHERE p", {"a": ("p",)}),
        (f"SELECT 1 UNION SELECT 2 FROM {A} WHERE p", {"a": ("p",)}),
        (f"SELECT 1 WHERE EXISTS (SELECT 1 FROM {A} WHERE p) AND q", {"a": ("p",)}),
        (f"FROM {A} SELECT x WHERE p", {"a": ()}),
        (f"SELECT 1 FROM (({A} JOIN {B} ON p)) WHERE q", {"a": ("p", "q"), "b": ("p", "q")}),
        (f"SELECT 1 FROM ((SELECT * FROM {A} WHERE p) x JOIN {B} ON r) WHERE q", {"a": ("p",), "b": ()}),
        (f"EXPLAIN SELECT 1 FROM {A} WHERE p", {"a": ("p",)}),
    ],
)  # fmt: skip
def test_each_select_has_its_own_conditions(text: str, found: dict[str, tuple[str, ...]]) -> None:
    assert texts(text) == found
