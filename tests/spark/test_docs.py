"""The code of the pages runs as it stands, page by page, with ``/data/`` as a folder of the test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import delta_pyds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = Path(delta_pyds.__file__).parent / "docs/pages"
RUN = [
    "../../../README.md",
    *("index.md", "start.md", "delta-spark.md", "catalogs.md", "works-with.md"),
    *sorted(path.relative_to(PAGES).as_posix() for path in (PAGES / "how-to").glob("*.md")),
]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_page_runs(
    page: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(spark), "stop", lambda _: None)
    text = (PAGES / page).read_text()
    blocks = [(match[1], text.count("\n", 0, match.start(1))) for match in _BLOCK.finditer(text)]
    names: dict[str, Any] = {"spark": spark}
    try:
        for code, line in blocks:
            local = code.replace("/data/", f"{tmp_path}/")
            # an error names the page and its line
            exec(compile("\n" * line + local, str(PAGES / page), "exec"), names)
    finally:
        delta_pyds.uninstall()
        for table in spark.catalog.listTables():
            if table.isTemporary:
                spark.catalog.dropTempView(table.name)
            elif not table.name.startswith("_deltapy_"):
                delta_pyds.drop_table(spark, table.name)
    assert blocks
