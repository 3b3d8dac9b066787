"""A notebook, run by nbconvert: its kernel is a process that the tool starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat

_CELLS = (
    "from delta.tables import DeltaTable\nfrom pyspark.sql import SparkSession",
    "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()",
    "spark.range(5).write.format('delta').save('table')",
    "DeltaTable.forPath(spark, 'table').delete('id = 1')",
    "print('rows', spark.read.format('delta').load('table').count())",
)


def main() -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in _CELLS])
    nbformat.write(book, "book.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "book.ipynb"]
    subprocess.run([*command, "--output", "done.ipynb"], check=True)
    assert "rows 4" in Path("done.ipynb").read_text()


if __name__ == "__main__":
    main()
