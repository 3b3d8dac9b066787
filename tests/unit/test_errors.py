from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

from delta_pyds import errors

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, errors.DeltaError)]


@pytest.mark.parametrize("kind", CLASSES)
def test_errors_survive_pickling_with_code_message_and_parameters(kind: type[errors.DeltaError]) -> None:
    error = kind("table t is gone.", code="DELTA_X", table="t", version=3)
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert (back.code, back.message, back.parameters) == ("DELTA_X", "table t is gone.", {"table": "t", "version": 3})
    assert str(back) == "[DELTA_X] table t is gone."


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, delta_pyds; print([m for m in ('pyarrow', 'pyspark', 'msgspec', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_tasks_code_loads_neither_the_log_nor_a_parser() -> None:
    code = "import sys, delta_pyds.data.read.reader, delta_pyds.columnar.scan_files; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("delta_pyds.log", "delta_pyds.table", "delta_pyds.expr.parse", "pyarrow.dataset", "pandas", "fsspec"):
        assert f"'{name}'" not in done.stdout
