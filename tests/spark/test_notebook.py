"""``%%deltapy`` in a real IPython."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_pyds.errors import OptionError, TableNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    made = import_module("IPython.core.interactiveshell").InteractiveShell()
    yield made
    made.history_manager.end_session()


def test_a_cell_of_statements_shows_the_last_ones_answer(spark: SparkSession, shell: Any, tmp_path: Path) -> None:
    shell.run_line_magic("load_ext", "delta_pyds")
    table = f"delta.`{tmp_path}/t`"
    with pytest.raises(OptionError, match="no statement"):
        shell.run_cell_magic("deltapy", "", "-- nothing; here\n;\n")
    made = f"CREATE TABLE {table} (id BIGINT, s STRING) USING delta"

    assert shell.run_line_magic("deltapy", made) is None
    shell.user_ns |= {"spark": spark, "wanted": {"least": 1}}
    shown = shell.run_cell_magic(
        "deltapy",
        "--into df --args wanted --limit 2",
        f"INSERT INTO {table} SELECT id, '<b>;' FROM range(4) WHERE id >= :least; -- rows\n"
        f"SELECT * FROM {table} WHERE id >= :least ORDER BY id;\n",
    )

    assert shell.user_ns["df"].count() == 3
    assert shown.rows == ((1, "<b>;"), (2, "<b>;")) and shown.more
    assert "&lt;b&gt;;" in shown._repr_html_() and "the first 2 rows" in shown._repr_html_()
    assert repr(shown) == "id | s\n1 | <b>;\n2 | <b>;\n(the first 2 rows)"
    history = shell.run_cell_magic("deltapy", "", f"DESCRIBE HISTORY {table} LIMIT 1")
    assert "WRITE" in history._repr_html_() and not history.more
    with pytest.raises(TableNotFoundError):
        shell.run_line_magic("deltapy", f"DELETE FROM delta.`{tmp_path}/nothing`")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--into", "must be: %%deltapy"),
        ("into df", "must be: %%deltapy"),
        ("--out df", "no option"),
        ("--into df --into df", "twice"),
        ("--into 1", "name of a variable"),
        ("--args nobody", "no such variable"),
        ("--limit many", "number of rows"),
        ("--into 'df", "cannot be read"),
    ],
)
def test_a_line_that_is_none_is_refused(shell: Any, line: str, message: str) -> None:
    shell.run_line_magic("load_ext", "delta_pyds")
    with pytest.raises(OptionError, match=message):
        shell.run_cell_magic("deltapy", line, "SELECT 1")
