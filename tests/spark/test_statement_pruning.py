"""The conditions of a statement rule out files before Spark gets the list, and never change an answer."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException, PySparkException

import delta_pyds
from delta_pyds.spark import loading
from delta_pyds.table.scan.read_report import QueryReport, ReadReport, report_of
from tests.support.frames import physical
from tests.support.session_settings import SETTINGS, session_with
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

TEN_FILES = 10


pytestmark = pytest.mark.one_test_in(4)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables of ten files with ten rows each: ``id`` ascends over the files, ``v`` is ``id % 7``.

    T has text, dates, times and structs too. U is partitioned by ``p``, with mapped columns. W has deletion vectors.
    """
    root = tmp_path_factory.mktemp("pruned")
    made = {name: root / name.lower() for name in "TUW"}
    t = TableBuilder(
        made["T"],
        {"id": "long", "v": "integer", "s": "string", "d": "date", "ts": "timestamp", "o": {"id": "long"}},
    )
    u = TableBuilder(
        made["U"],
        {"id": "long", "v": "integer", "p": "integer"},
        partition_columns=["p"],
        properties={"delta.columnMapping.mode": "name"},
    )
    w = TableBuilder(made["W"], {"id": "long", "w": "integer"}, properties={"delta.enableDeletionVectors": "true"})
    for table in (t, u, w):
        table.create()
    for n in range(TEN_FILES):
        ids = range(10 * n, 10 * n + 10)
        t.append(
            [
                {
                    "id": i,
                    "v": i % 7,
                    "s": f"{i:03}",
                    "d": dt.date(2026, 1, n + 1),
                    "ts": dt.datetime(2026, 1, n + 1, 12, tzinfo=dt.timezone.utc),
                    "o": {"id": i},
                }
                for i in ids
            ]
        )
        u.append([{"id": i, "v": None if i % 5 == 0 else i % 7, "p": n} for i in ids])
        w.append([{"id": i, "w": i % 7} for i in ids])
    for add in w.active()[::3]:
        w.commit(w.delete_rows(add, [0, 5]))
    return made


class Statements:
    """Runs statements in which ``<T>`` is a table by path."""

    def __init__(self, spark: SparkSession, tables: dict[str, Path]) -> None:
        self.spark = spark
        self.tables = tables

    def by_path(self, text: str) -> str:
        for name, path in self.tables.items():
            text = text.replace(f"<{name}>", f"delta.`{path}`")
        return text

    def sql(self, text: str, args: Any = None) -> DataFrame:
        return delta_pyds.sql(self.spark, self.by_path(text), args)

    def files(self, text: str, args: Any = None) -> list[int]:
        """The number of files that Spark gets for each read."""
        return [read.num_files or 0 for read in reads(self.sql(text, args))]

    def unpruned(self, text: str) -> DataFrame:
        """The same by Spark alone, over views of the whole tables. Of T, Spark reads all files as plain Parquet."""
        for name, path in self.tables.items():
            plain = self.spark.read.parquet(f"{path}/*.parquet") if name == "T" else None
            (plain or delta_pyds.read(self.spark, str(path))).createOrReplaceTempView(f"whole_{name}")
            text = text.replace(f"<{name}>", f"whole_{name}")
        return self.spark.sql(text)


def reads(frame: DataFrame) -> tuple[ReadReport, ...]:
    report = delta_pyds.explain(frame)
    assert isinstance(report, QueryReport)
    return report.reads


@pytest.fixture(scope="module")
def run(spark: SparkSession, tables: dict[str, Path]) -> Iterator[Statements]:
    yield Statements(spark, tables)
    # other modules list the views of this session
    for name in ("pruned", *(f"whole_{name}" for name in tables)):
        spark.catalog.dropTempView(name)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("SELECT * FROM <T> WHERE id >= 85", [2]),
        ("SELECT count(*) FROM <T> WHERE id >= 85", [2]),
        ("SELECT * FROM <T> x WHERE x.id >= 85 AND x.id < 90 -- and so on", [1]),
        ("SELECT * FROM <T> WHERE d = '2026-01-03'", [1]),
        ("SELECT * FROM <T> WHERE ts >= '2026-01-09'", [2]),
        ("SELECT * FROM <T> WHERE o.id = 3", [1]),
        ("SELECT * FROM <T> o WHERE o.id = 3", [1]),
        ("SELECT * FROM <T> WHERE s LIKE '04%' ORDER BY id LIMIT 3", [1]),
        ("SELECT * FROM <T> WHERE id = 3 OR id BETWEEN 20 AND 25", [2]),
        ("SELECT * FROM <T> WHERE id < 5 = true", [1]),
        ("SELECT * FROM <T> WHERE id > 1000", [0]),
        ("SELECT * FROM <T> VERSION AS OF 3 WHERE id > 15", [2]),
        ("SELECT * FROM <U> WHERE p IN (1, 2) AND v = 3", [2]),
        ("SELECT * FROM <W> WHERE id < 30 AND w = 3", [3]),
        ("SELECT id, _metadata.file_name FROM <T> WHERE id = 5", [1]),
        # what is also true for other rows
        ("SELECT * FROM <T> WHERE id < 5 OR rand() > 2", [10]),
        ("SELECT * FROM <T> WHERE abs(id) < 5", [10]),
        # each name means the table's column
        ("SELECT * FROM <T> x, <U> WHERE x.id = 7 AND p = 3", [1, 1]),
        ("SELECT * FROM <T> x JOIN <U> y ON x.id = y.id AND y.id < 20 WHERE x.id > 75 AND y.p = 8", [3, 0]),
        ("SELECT * FROM <T> x JOIN <U> y USING (id) WHERE id = 7 AND x.id < 30 AND p < 5", [3, 5]),
        ("SELECT * FROM <T> x NATURAL JOIN <U> y WHERE id = 7 AND y.id = 7", [10, 1]),
        ("SELECT * FROM <T> o JOIN <W> y ON o.id = y.id WHERE o.o.id = 3", [10, 10]),
        ("SELECT * FROM <T> x CROSS JOIN (SELECT 7 AS k) WHERE x.id = k AND x.id < 30", [3]),
        ("SELECT * FROM <T> AS x (a, b, c, e, f, g) WHERE a = 3", [10]),
        ("SELECT * FROM <T> LATERAL VIEW explode(array(1, 2)) e AS f WHERE id = 3 AND f = 1", [1]),
        # outer joins
        ("SELECT * FROM <T> x LEFT JOIN <U> y ON x.id = y.id AND y.p = 2 AND x.id = 3 WHERE x.id < 15", [2, 1]),
        ("SELECT * FROM <T> x LEFT JOIN <U> y ON x.id = y.id WHERE y.id = 3", [10, 10]),
        ("SELECT * FROM <T> x RIGHT JOIN <U> y ON x.id = y.id AND x.id < 5 WHERE y.p > 7 AND x.id = 3", [1, 2]),
        ("SELECT * FROM <T> x FULL JOIN <U> y ON x.id = y.id AND y.p = 2 WHERE x.id = 3", [10, 10]),
        ("SELECT * FROM <T> x LEFT SEMI JOIN <U> y ON x.id = y.id AND y.p = 2 AND x.v = 1 WHERE x.id > 25", [8, 1]),
        ("SELECT * FROM <T> x LEFT ANTI JOIN <U> y ON x.id = y.id AND y.p = 2 AND x.id = 3 WHERE x.id > 25", [8, 1]),
        ("SELECT * FROM (<T> x LEFT JOIN <U> y ON x.id = y.id) JOIN <W> z ON z.id = x.id WHERE x.id < 5 AND y.p = 1",
         [1, 10, 10]),
        # queries in queries
        ("SELECT * FROM <T> WHERE id IN (SELECT id FROM <U> WHERE p = 3) AND id > 75", [3, 1]),
        ("SELECT * FROM <T> x WHERE NOT EXISTS (SELECT 1 FROM <U> y WHERE y.id = x.id AND y.p < 2 AND x.id = 1)",
         [10, 2]),
        ("SELECT (SELECT max(id) FROM <U> WHERE p = 3) FROM <T> WHERE id = 4", [1, 1]),
        ("SELECT * FROM (SELECT * FROM <T> WHERE id < 5) x WHERE id = 4", [1]),
        ("WITH c AS (SELECT * FROM <T> WHERE id < 15) SELECT * FROM c WHERE id = 4", [2]),
        ("SELECT id FROM <T> WHERE id = 4 UNION ALL SELECT id FROM <T> WHERE id > 75", [1, 3]),
        ("SELECT id FROM <T> WHERE id = 4 EXCEPT SELECT id FROM <U>", [1, 10]),
        ("SELECT * FROM <T> x, LATERAL (SELECT * FROM <U> y WHERE y.id = x.id AND y.p = 4) WHERE x.id < 15", [2, 1]),
        # one frame for equal conditions
        ("SELECT * FROM <T> a, <T> b WHERE a.id = b.id", [10]),
        ("SELECT * FROM <T> a, <T> b WHERE a.id = 3 AND b.id = 3", [1]),
        # clauses that change the rows before WHERE, and those that follow it
        ("SELECT * FROM <T> TABLESAMPLE (5 ROWS) WHERE id = 50", [10]),
        ("SELECT * FROM (SELECT id, v FROM <T>) PIVOT (count(id) FOR v IN (1 AS a, 2 AS b)) WHERE a > 3", [10]),
        ("FROM <T> SELECT id WHERE id = 3", [10]),
        ("FROM <T> |> WHERE id = 3", [10]),
        ("SELECT v, max(id) AS id FROM <T> GROUP BY v HAVING max(id) = 95", [10]),
    ],
)  # fmt: skip
def test_conditions_rule_out_files_of_their_table(run: Statements, text: str, files: list[int]) -> None:
    assert sorted(run.files(text)) == sorted(files)
    if "TABLESAMPLE" not in text and "VERSION" not in text and "_metadata" not in text and "rand" not in text:
        assert answer(run.sql(text)) == answer(run.unpruned(text))


def answer(frame: DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.collect()))


@pytest.mark.parametrize("args", [{"low": 85}, None, "75"])
def test_arguments_rule_out_files(run: Statements, args: Any) -> None:
    if args is None:
        assert run.files("SELECT * FROM <T> WHERE id >= ?", [85]) == [2]
    elif args == "75":
        assert run.files("SELECT * FROM <T> WHERE s > :low", {"low": "075"}) == [3]
    else:
        assert run.files("SELECT * FROM <T> x WHERE x.id >= :low", args) == [2]


def test_queries_of_commands_rule_out_files(run: Statements, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []

    def load(*args: Any, **options: Any) -> Any:
        found = loading.load(*args, **options)
        seen.append(report_of(found).num_files)
        return found

    monkeypatch.setattr("delta_pyds.spark.sql.frames.load", load)
    target, source = f"delta.`{tmp_path}/target`", "(SELECT id, v FROM <U> WHERE p = 9)"
    for text in (
        f"CREATE TABLE {target} USING delta AS SELECT id, v FROM <T> WHERE id < 5",
        f"INSERT INTO {target} SELECT id, v FROM <T> WHERE id BETWEEN 20 AND 35",
        f"MERGE INTO {target} t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        f"DELETE FROM {target} WHERE id IN (SELECT id FROM <T> WHERE id = 33)",
        "CREATE OR REPLACE TEMP VIEW pruned AS SELECT * FROM <T> WHERE id = 1",
        f"EXPLAIN SELECT * FROM {target} WHERE id = 91",
    ):
        run.sql(text)
    assert seen == [1, 2, 1, 1, 1, 1]
    assert sorted(r.id for r in run.sql(f"SELECT id FROM {target}").collect()) == [
        *range(5), *range(20, 33), *range(34, 36), *range(90, 100),
    ]  # fmt: skip
    assert [r.id for r in run.spark.sql("SELECT id FROM pruned").collect()] == [1]


def test_one_statement_reads_one_version(run: Statements, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    table.append([{"id": 1}])

    def load(*args: Any, **options: Any) -> Any:
        found = loading.load(*args, **options)
        table.append([{"id": 2}])  # another writer commits after each read
        return found

    monkeypatch.setattr("delta_pyds.spark.sql.frames.load", load)
    path = f"delta.`{table.path}`"
    found = delta_pyds.sql(
        run.spark, f"SELECT id FROM {path} WHERE id > 0 UNION ALL SELECT id FROM {path} WHERE id >= 1"
    )
    assert [read.version for read in reads(found)] == [1, 1]
    assert [r.id for r in found.collect()] == [1, 1]


@pytest.mark.parametrize(
    ("setting", "value", "text", "files"),
    [
        # a list of texts is compared with numbers and dates as texts
        ("spark.sql.ansi.enabled", "false", "SELECT * FROM <T> WHERE id NOT IN ('01') AND id < 10", 1),
        ("spark.sql.ansi.enabled", "false", "SELECT * FROM <T> WHERE d NOT IN ('2026-1-1') AND d < '2026-01-02'", 1),
        ("spark.sql.ansi.enabled", "false", "SELECT * FROM <T> WHERE d NOT IN ('2026-1-1')", 10),
        ("spark.sql.ansi.enabled", "true", "SELECT * FROM <T> WHERE d NOT IN ('2026-1-1')", 9),
        ("spark.sql.caseSensitive", "false", "SELECT * FROM <T> WHERE ID = 3", 1),
        ("spark.sql.session.timeZone", "America/Los_Angeles", "SELECT * FROM <T> WHERE ts >= '2026-01-09 05:00:00'", 1),
        ("spark.sql.session.timeZone", "America/Los_Angeles", "SELECT * FROM <T> WHERE ts >= '2026-01-09 03:00:00'", 2),
        ("spark.sql.legacy.setopsPrecedence.enabled", "true", "SELECT * FROM <T> WHERE id = 3", 10),
        ("spark.sql.parser.escapedStringLiterals", "true", "SELECT * FROM <T> WHERE s = '003'", 10),
    ],
)
def test_the_sessions_settings_count(run: Statements, setting: str, value: str, text: str, files: int) -> None:
    before = run.spark.conf.get(setting, None)
    run.spark.conf.set(setting, value)
    try:
        assert run.files(text) == [files]
        assert answer(run.sql(text)) == answer(run.unpruned(text))
    finally:
        run.spark.conf.unset(setting) if before is None else run.spark.conf.set(setting, before)


def test_cached_rows_answer_statements_with_conditions(run: Statements) -> None:
    text = "SELECT * FROM <T> WHERE id = 3"
    frame = delta_pyds.read(run.spark, str(run.tables["T"])).cache()
    try:
        assert run.files(text) == [10]
        assert "InMemoryTableScan" in physical(run.sql(text))
    finally:
        frame.unpersist()
    assert run.files(text) == [1]
    run.sql("CACHE TABLE <T>")
    try:
        assert run.files(text) == []
        assert str(delta_pyds.explain(run.sql(text))) == "no files of a Delta table are read"
        assert "InMemoryTableScan" in physical(run.sql(text))
    finally:
        run.sql("UNCACHE TABLE <T>")


def test_files_that_the_python_source_reads_are_ruled_out(spark: SparkSession, tmp_path: Path) -> None:
    # Spark's own reader ignores a file with such a name
    table = TableBuilder(tmp_path / "t", {"id": "long"})
    table.create()
    for n in range(3):
        table.append([{"id": n}], path=f"_{n}.parquet")
    (Path(table.path) / "_2.parquet").unlink()
    found = delta_pyds.sql(spark, f"SELECT * FROM delta.`{table.path}` x WHERE x.id < 2")
    [read] = reads(found)
    assert read.engine == "arrow"
    assert sorted(r.id for r in found.collect()) == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM <T> x JOIN <U> y ON x.id = y.id WHERE id = 3",
        "SELECT * FROM <T> WHERE nothing = 3 AND id = 3",
        "SELECT * FROM <T> x WHERE T.id = 3",
        "SELECT * FROM <T> WHERE id = 'x'",
        "SELECT * FROM <T> WHERE id",
        "SELECT * FROM <T> WHERE id = 3 AND",
        "SELECT * FROM <T> x LEFT SEMI JOIN <U> y ON x.id = y.id WHERE p = 3",
    ],
)
def test_errors_of_spark_stay(run: Statements, text: str) -> None:
    errors = []
    for query in (run.sql, run.unpruned):
        with pytest.raises(PySparkException) as raised:
            query(text).collect()
        errors.append(raised.value.getCondition())
    assert errors[0] == errors[1]


def test_the_report_of_a_query_names_its_reads(run: Statements) -> None:
    found = run.sql("SELECT x.id FROM <T> x JOIN <U> y ON x.id = y.id WHERE x.id < 5")
    report = delta_pyds.explain(found)
    lines = str(report).splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == ["engine native, 1 files", "engine native, 10 files"]
    assert report.version is None
    assert delta_pyds.explain(run.sql("SELECT * FROM <T>")).version == TEN_FILES
    assert "engine native" in report._repr_html_()


@pytest.fixture
def installed(spark: SparkSession) -> Iterator[SparkSession]:
    delta_pyds.install(spark)
    yield spark
    delta_pyds.uninstall()


def test_statements_after_install_rule_out_files(installed: SparkSession, run: Statements, tmp_path: Path) -> None:
    query = f"SELECT * FROM deltapy.`{run.tables['T']}`"
    installed.sql(f"CREATE TABLE pruned_names USING deltapy LOCATION '{tmp_path}/n' AS {query}")
    try:
        for _ in range(2):  # Spark's plan shows the first query that it is ours
            found = installed.sql("SELECT * FROM pruned_names WHERE pruned_names.id = 3 AND v = 3")
            assert len(reads(found)) == 1
            assert [r.id for r in found.collect()] == [3]
        found = installed.sql(f"{query} WHERE id = 3")
        assert [read.num_files for read in reads(found)] == [1]
    finally:
        installed.sql("DROP TABLE pruned_names")


# --- drawn statements

ALIASES = ("a", "b", "c", "v")
COLUMNS = {"T": ("id", "v", "s", "d"), "U": ("id", "v", "p"), "W": ("id", "w")}
JOINS = ("JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", ",",
         "CROSS JOIN", "NATURAL JOIN", "NATURAL LEFT JOIN")  # fmt: skip


@st.composite
def comparisons(draw: st.DrawFn, names: tuple[tuple[str, str], ...]) -> str:
    """A condition on one column of one relation, or of none; with or without its qualifier."""
    alias, table = draw(st.sampled_from(names))
    column = draw(st.sampled_from((*COLUMNS[table], *(("p", "s") if draw(st.integers(0, 9)) == 0 else ()))))
    name = column if draw(st.booleans()) else f"{alias}.{column}"
    number = draw(st.integers(-5, 105))
    if column in ("v", "w", "p"):
        number %= 10
    day = number % 31 + 1
    value = {"s": f"'{number:03}'", "d": f"DATE'2026-01-{day:02}'"}.get(column, str(number))
    if draw(st.integers(0, 3)) == 0:  # of another type, which settings change
        others = {
            "s": (f"'{number}'", str(number), f"CAST({number} AS STRING)", f"'{number:03}' || ''"),
            "d": (f"'2026-1-{day}'", f"TIMESTAMP'2026-01-{day:02} 12:00:00'", f"TIMESTAMP_NTZ'2026-01-{day:02} 00:00'"),
        }
        value = draw(
            st.sampled_from(others.get(column, (f"'{number}'", f"{number}.5", f"{number}.0D", f"{number}.5F")))
        )
        name = name.upper() if draw(st.integers(0, 3)) == 0 else name
    form = draw(st.sampled_from(("{} = {}", "{} < {}", "{} >= {}", "NOT {} > {}", "{} <=> {}", "{} IN ({})",
                                 "{} IS NULL", "{} IS NOT NULL", "({} <> {} OR rand() > 2)")))  # fmt: skip
    return form.format(name, value)


@st.composite
def conditions(draw: st.DrawFn, names: tuple[tuple[str, str], ...], inner: bool = True) -> str:
    parts = [draw(comparisons(names)) for _ in range(draw(st.integers(1, 3)))]
    if draw(st.integers(0, 4)) == 0:
        parts = [f"({' OR '.join(parts)})"]
    if inner and draw(st.integers(0, 3)) == 0:
        alias = names[0][0]
        inside = draw(selects(inner=False, outer=names))
        form = draw(st.sampled_from((f"{alias}.id IN ({inside})", f"NOT EXISTS ({inside})", f"EXISTS ({inside})")))
        parts.append(form)
    return f" {draw(st.sampled_from(('AND', 'AND', 'AND', 'OR')))} ".join(parts)


@st.composite
def selects(draw: st.DrawFn, inner: bool = True, outer: tuple[tuple[str, str], ...] = ()) -> str:
    names: tuple[tuple[str, str], ...] = ()
    text = ""
    for n in range(draw(st.integers(1, 3 if inner else 2))):
        table = draw(st.sampled_from("TUW"))
        alias = ALIASES[n] if inner else f"{ALIASES[n]}{draw(st.sampled_from(('', '2')))}"
        names = (*names, (alias, table))
        relation = f"<{table}> {alias}"
        if inner and draw(st.integers(0, 5)) == 0:
            relation = f"(SELECT * FROM <{table}> x WHERE {draw(comparisons((('x', table),)))}) {alias}"
        if n == 0:
            text = relation
            continue
        join = draw(st.sampled_from(JOINS))
        text += f"{join} {relation}" if join == "," else f" {join} {relation}"
        if join not in (",", "CROSS JOIN") and "NATURAL" not in join:
            on = f"{names[-2][0]}.id = {alias}.id"
            if draw(st.booleans()):
                on += f" AND {draw(conditions(names, inner=False))}"
            text += " USING (id)" if draw(st.integers(0, 5)) == 0 else f" ON {on}"
    where = f" WHERE {draw(conditions((*names, *outer), inner=inner))}" if draw(st.integers(0, 5)) else ""
    tail = draw(st.sampled_from(("", "", " ORDER BY 1", " GROUP BY ALL"))) if inner else ""
    found = f"SELECT {names[0][0]}.id FROM {text}{where}{tail}"
    if inner and draw(st.integers(0, 5)) == 0:
        found = f"({found}) UNION ALL ({draw(selects(inner=False))})"
    return found


def outcome(frame: Any) -> Any:
    """The rows, or the condition of the error of Spark's analysis."""
    try:
        return answer(frame())
    except AnalysisException as error:
        return error.getCondition()


def check(run: Statements, number: int) -> Counter[str]:
    seen: Counter[str] = Counter()

    @settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(selects())
    def every(text: str) -> None:
        wanted = outcome(lambda: run.unpruned(text))
        assert outcome(lambda: run.sql(text)) == wanted, text
        seen["errors" if isinstance(wanted, str) else "rows"] += 1
        if not isinstance(wanted, str):
            seen["pruned"] += any(n < TEN_FILES for n in run.files(text))

    every()
    return seen


def test_drawn_statements_have_the_same_answer(run: Statements) -> None:
    seen = check(run, 25)
    assert seen["pruned"] > 0
    assert seen["rows"] > seen["pruned"]


@pytest.mark.one_case_in(6)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_session_change_no_answer(spark: SparkSession, tables: dict[str, Path], name: str) -> None:
    seen = check(Statements(session_with(spark, name), tables), 8)
    assert seen["rows"] > 0
