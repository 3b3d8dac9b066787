"""The same texts of SQL by the reference and by ``delta_pyds.sql``: equal answers, equal errors, equal tables.

Invariants: a text is the same for both but for the place of its tables; after each script both engines read both
tables, and find the same rows. An error that has another code here than there is in ``OTHER_CODES``, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from tests.interop import by_name
from tests.interop.engines import Engines, rows
from tests.interop.racing import Apart
from tests.support.documented_scripts import DOCUMENTED
from tests.support.drawn_statements import OF_DELTA, STATEMENTS, Parsers, drawn
from tests.support.sampling import exhaustive, part_of, seed
from tests.support.sql_scripts import SCRIPTS, outcome

# ours by theirs, with what it is about
OTHER_CODES: dict[tuple[str | None, str | None], str] = {
    ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "DEFAULT_PLACEMENT_INVALID"): "DEFAULT within an expression",
    ("DELTA_PATH_DOES_NOT_EXIST", "PATH_NOT_FOUND"): "no table: Spark says it before the reference is asked",
    ("DELTA_PATH_DOES_NOT_EXIST", "DELTA_MISSING_DELTA_TABLE"): "no directory",
    ("DELTA_MISSING_DELTA_TABLE", "PATH_NOT_FOUND"): "no table",
    ("DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_ONLY_OPERATION"): "no table",
    ("DELTA_COLUMN_NOT_FOUND", "UNRESOLVED_COLUMN.WITH_SUGGESTION"): "Spark looks for columns before the reference",
    ("DELTA_DUPLICATE_COLUMNS_FOUND.METADATA_UPDATE", "COLUMN_ALREADY_EXISTS"): "Spark looks first",
    ("DELTA_MERGE_UNRESOLVED_EXPRESSION", "INTERNAL_ERROR"): "its text is not among Spark's",
    ("CAST_OVERFLOW", "CAST_OVERFLOW_IN_TABLE_INSERT"): "the cast is made in the query",
    ("DELTA_PARTITION_COLUMN_NOT_FOUND", "_LEGACY_ERROR_TEMP_3060"): "Spark looks first",
    ("DELTA_COLUMN_NOT_FOUND", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"): "one code for a column that is not there",
    (
        "DELTA_NEW_NOT_NULL_VIOLATION",
        "_LEGACY_ERROR_TEMP_2330",
    ): "there no column becomes NOT NULL, whatever rows",
    ("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", "NOT_SUPPORTED_CHANGE_COLUMN"): "Spark looks at types first",
    ("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION"): "no catalog makes it",
    (
        "TABLE_OR_VIEW_ALREADY_EXISTS",
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    ): "of a clone by name: which of two errors goes first",
    ("DELTA_OPERATION_NOT_ALLOWED", "PARSE_SYNTAX_ERROR"): "a deep clone, which only the documentation has",
}
# of a run by name
_START_S, _SCRIPT_S = 180, 60
# how texts begin that we answer in another way on purpose
OTHERWISE = {
    "REORG TABLE <V> APPLY (UPGRADE UNIFORM": "refused: nothing here writes for readers of Iceberg",
    "columns:CREATE OR REPLACE TABLE <U> SHALLOW CLONE <T>": "the clone is a new version, also of a table with rows",
    "columns:CREATE OR REPLACE TABLE <W> SHALLOW CLONE parquet": "refused: a clone is of a Delta table",
    **dict.fromkeys(
        ("SELECT _metadata.", "SELECT id, _metadata.", "SELECT t._metadata.", "SELECT count(_metadata."),
        "refused: row ids are columns of delta_pyds.read(row_ids=True)",
    ),
    "columns:CREATE TABLE IF NOT EXISTS <U> SHALLOW CLONE <T>": "nothing is done, as documented; there only by name",
}


@pytest.mark.cell("texts of SQL", "us -> reference")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_text_does_the_same(engines: Engines, tmp_path: Path, script: str) -> None:
    _check(engines, tmp_path, SCRIPTS[script])


@pytest.mark.cell("texts of SQL", "us -> reference")
@pytest.mark.parametrize("page", DOCUMENTED)
def test_a_text_of_the_documentation_does_the_same(engines: Engines, tmp_path: Path, page: str) -> None:
    _check(engines, tmp_path, DOCUMENTED[page], _made(page))


@pytest.mark.also_bounded
@pytest.mark.cell("texts of SQL by name", "us -> reference")
def test_texts_by_name_do_the_same(engines: Engines, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Ours run in a process without the reference, meanwhile the reference's here."""
    scripts = part_of(by_name.TEXTS, one_in=8 if pytestconfig.getoption("bounded") else 1)
    answers, log, theirs = tmp_path / "answers.json", tmp_path / "ours.log", {}
    try:
        with Apart(["tests.interop.by_name", str(tmp_path / "ours"), str(answers), *scripts], log) as process:
            for script in scripts:
                theirs[script] = by_name.outcomes(engines.spark, engines.sql, script, tmp_path / "theirs")
            assert process.wait(_START_S + _SCRIPT_S * len(scripts)) == 0, log.read_text()[-4000:]
        ours = json.loads(answers.read_text())
        different = [
            f"{script}: {text}\n  theirs: {their}\n  ours:   {our}"
            for script in scripts
            for text, their, our in zip(by_name.TEXTS[script], theirs[script], ours[script], strict=True)
            if their != our and not _known(our, their) and not text.startswith(tuple(OTHERWISE))
        ]
        assert not different, "\n".join(different)
        for script in scripts:
            places = (tmp_path / side / by_name.schema_of(script) for side in ("theirs", "ours"))
            _same_tables(engines, *places, _made(script))
    finally:
        for script in scripts:
            engines.sql(f"DROP SCHEMA IF EXISTS {by_name.schema_of(script)} CASCADE")


def _made(script: str) -> str:
    """The tables of a script that both make: W of the page "clone" is a clone of Parquet files, refused here."""
    return "tuv" if script == "clone" else "tuvw"


def _check(engines: Engines, root: Path, texts: Sequence[str], names: str = "tuvw") -> None:
    different = []
    for text in texts:
        theirs = outcome(engines.sql, text, root / "theirs")
        ours = outcome(lambda found: delta_pyds.sql(engines.spark, found), text, root / "ours")
        if theirs != ours and not _known(ours, theirs) and not text.startswith(tuple(OTHERWISE)):
            different.append(f"{text}\n  theirs: {theirs}\n  ours:   {ours}")
    assert not different, "\n".join(different)
    _same_tables(engines, root / "theirs", root / "ours", names)


def _same_tables(engines: Engines, theirs: Path, ours: Path, names: str = "tuvw") -> None:
    for name in names:
        if not (theirs / name / "_delta_log").exists():
            continue
        found = [rows(read(side / name)) for side in (theirs, ours) for read in (engines.reference, engines.ours)]
        assert found[1:] == found[:-1], theirs / name
        delta_pyds.verify(ours / name).raise_for_errors()


def _known(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    return ours[0] == theirs[0] == "error" and (ours[1], theirs[1]) in OTHER_CODES


@pytest.mark.cell("texts of SQL", "us -> reference")
def test_what_the_references_parser_takes_of_drawn_texts_we_take(engines: Engines) -> None:
    parsers = Parsers(engines.spark, of_reference=True)
    texts = drawn(20_000 if exhaustive() else 1_000, seed() if exhaustive() else "4", (*OF_DELTA, *STATEMENTS))
    assert list(filter(None, map(parsers.disagreement, texts))) == []


# of tables that only the reference writes: with deletion vectors, column mapping and partitions; <O> has none of these
OF_FILES = [
    "SELECT id, _metadata FROM <O>",
    "SELECT *, _metadata.file_path, _metadata.row_index FROM <O> WHERE _metadata.file_size > 0 AND id > 1",
    "SELECT id, _metadata.file_name, _metadata.file_path, _metadata.row_index FROM <T>",
    "SELECT *, _metadata.file_size AS size FROM <T> WHERE p = 1",
    "SELECT t.*, t._metadata.file_block_start, t._metadata.file_block_length FROM <T> AS t WHERE t.id < 4",
    "SELECT t._metadata.file_name, count(*) AS n FROM <T> AS t GROUP BY ALL",
    "SELECT x.id, x._metadata.file_modification_time AS m FROM <T> VERSION AS OF 1 AS x",
    "SELECT count(*) FROM <T> WHERE _metadata.file_name IS NOT NULL AND _METADATA.row_index >= 0",
    "SELECT o.id, t._metadata.row_index FROM <O> o JOIN <T> t ON o.id = t.id",
    "SELECT _metadata.row_index FROM <O> o JOIN <T> t ON o.id = t.id",
    "SELECT id FROM <T> WHERE _metadata.nothing = 1",
]


@pytest.mark.cell("texts of SQL", "us -> reference")
def test_files_of_rows_are_the_same(engines: Engines, tmp_path: Path) -> None:
    for text in (
        "CREATE TABLE <O> USING delta AS SELECT id FROM range(0, 5, 1, 2)",
        (
            "CREATE TABLE <T> (id BIGINT, p INT, s STRUCT<a: INT>) USING delta PARTITIONED BY (p) TBLPROPERTIES "
            "('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
        ),
        "INSERT INTO <T> SELECT id, id % 3, named_struct('a', int(id)) FROM range(12)",
        "DELETE FROM <T> WHERE id IN (1, 5)",
        "INSERT INTO <T> SELECT id, id % 3, null FROM range(12, 15)",
    ):
        engines.sql(_at(text, tmp_path))
    different = []
    for text in OF_FILES:
        found = _at(text, tmp_path)
        theirs, ours = (
            outcome(run, found, tmp_path) for run in (engines.sql, lambda text: delta_pyds.sql(engines.spark, text))
        )
        if theirs != ours:
            different.append(f"{text}\n  theirs: {theirs}\n  ours:   {ours}")
    assert not different, "\n".join(different)


def _at(text: str, root: Path) -> str:
    for name in "OT":
        text = text.replace(f"<{name}>", f"delta.`{root / name}`")
    return text
