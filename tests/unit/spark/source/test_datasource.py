"""The source's instance on its way to the processes that Spark starts."""

from __future__ import annotations

import pickle
import site
import subprocess
import sys

from pyspark import cloudpickle

from delta_pyds.spark.source.datasource import DeltaDataSource


def test_a_process_without_the_package_finds_it_where_the_maker_of_the_source_did() -> None:
    """Spark runs a stream's source in a process that does not see what was sent along with the program."""
    pickled = pickle.dumps(DeltaDataSource({"path": "/nothing"}))
    # the places of other packages, without what their .pth files add: this checkout
    program = (
        f"import sys; sys.path += {site.getsitepackages()!r}; import pickle; print(vars(pickle.load(sys.stdin.buffer)))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], input=pickled, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "{'options': {'path': '/nothing'}}"
    assert vars(pickle.loads(pickled)) == {"options": {"path": "/nothing"}}


def test_a_source_of_somebodys_own_travels_as_ever() -> None:
    class Mine(DeltaDataSource):
        pass

    again = pickle.loads(cloudpickle.dumps(Mine({"path": "/nothing"})))
    assert type(again).__name__ == "Mine" and vars(again) == {"options": {"path": "/nothing"}}
