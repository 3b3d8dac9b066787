"""Files are opened and deleted in one place: what else could is not called anywhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import delta_pyds

# what takes a name of a file, and the one module that may call it
MAY_CALL = {
    "OSFile": {"storage/local.py"},
    "memory_map": {"data/spill.py"},  # of a file that it has just made itself
    # the last one: what a write did, which it has told itself and nobody's table has
    "unlink": {"storage/local.py", "data/spill.py", "spark/source/write_result.py"},
    # a directory that this process has made for itself, or that a client of Spark Connect had the server make
    "rmtree": {"catalog/objects.py", "spark/native/server_index.py"},
    **{name: set() for name in ("input_stream", "read_table", "read_metadata", "read_schema", "read_pandas", "remove",
                                "removedirs", "rmdir", "ParquetDataset", "from_uri", "S3FileSystem",
                                "LocalFileSystem", "read_csv", "open_csv")},
}  # fmt: skip
MODULES = {"os", "shutil", "pa", "pq", "fs", "pyarrow", "dataset", "ds", "pc", "csv"}


def test_nothing_else_opens_or_deletes_by_name() -> None:
    root = Path(delta_pyds.__file__).parent
    calls = []
    for file in root.rglob("*.py"):
        module = str(file.relative_to(root))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                assert not {"pyarrow.fs", "pyarrow.dataset", "pyarrow.csv"} & set(names), module
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in MODULES and node.func.attr in MAY_CALL:
                calls.append((node.func.attr, module))
            if node.func.attr == "ParquetFile":
                # an open file of a storage, or bytes in memory: never a path
                assert isinstance(node.args[0], ast.Name) and node.args[0].id in ("source", "out"), module
    assert {module for name, module in calls if module not in MAY_CALL[name]} == set()
    assert ("OSFile", "storage/local.py") in calls and ("unlink", "storage/local.py") in calls
