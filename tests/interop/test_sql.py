"""The same texts of SQL by the reference and by ``delta_pyds.sql``: equal answers, equal errors, equal tables.

Invariants: a text is the same for both but for the place of its tables; after each script both engines read both
tables, and find the same rows. An error that has another code here than there is in ``OTHER_CODES``, with its reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import delta_pyds
from tests.interop.engines import Engines, rows
from tests.support.sql_scripts import ALL, outcome

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
}


@pytest.mark.cell("texts of SQL", "us -> reference")
@pytest.mark.parametrize("script", ALL)
def test_a_text_does_the_same(engines: Engines, tmp_path: Path, script: str) -> None:
    different = []
    for text in ALL[script]:
        theirs = outcome(engines.sql, text, tmp_path / "theirs")
        ours = outcome(lambda found: delta_pyds.sql(engines.spark, found), text, tmp_path / "ours")
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
