"""The same source through Spark Connect, by both of its clients: the whole PySpark, and the one without a JVM."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from tests.spark.connect_client import FILES
from tests.support.connect import ROOT, connect_server, run_client
from tests.support.documented_scripts import DOCUMENTED
from tests.support.limits import ONLY_A_HANG_S
from tests.support.sampling import exhaustive, sampled
from tests.support.table_builder import TableBuilder
from tests.versions.sparks import SPARKS

# an older Spark has the client of its own version: 4.0 and 4.1 need it, and the row of 4.2 is about it
VERSION = ".".join(pyspark.__version__.split(".")[:2])
OLD = VERSION if VERSION in SPARKS else None
pytestmark = pytest.mark.one_program_in(4)

THIN = ROOT / ".venv-thin" if OLD is None else ROOT / ".sparks" / f"thin-{OLD}"
# what pip installs there: the client, and what the package itself depends on
CLIENT = "pyspark-client>=4.2" if OLD is None else f"pyspark-client=={OLD}.*"
THIN_PACKAGES = f"{CLIENT}\npandas<3\npyarrow>=18\nmsgspec>=0.19\npyroaring>=1.0\nfsspec>=2024.2.0\ntzdata\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        # the server and its clients know it by this name
        patch.setenv("DELTA_PYDS_CATALOG_PROD_URL", f"sqlite://{directory}/catalog.db")
        with connect_server(directory) as address:
            yield address


def whole_client() -> str:
    return sys.executable


def thin_client() -> str:
    """The Python of an environment with ``pyspark-client``, which has neither py4j nor a JVM; made once."""
    python, ready = THIN / "bin" / "python", THIN / ".ready"
    with open(__file__) as one_at_a_time:
        # the tests run in two processes
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text() != THIN_PACKAGES:
            shutil.rmtree(THIN, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(THIN)], check=True)
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *THIN_PACKAGES.split()], check=True, timeout=ONLY_A_HANG_S)
            ready.write_text(THIN_PACKAGES)
    return str(python)


CLIENTS = pytest.mark.parametrize("client", [whole_client, thin_client])


@pytest.mark.one_case_in(2)
@CLIENTS
def test_reading_and_writing_through_spark_connect(server: str, client: Callable[[], str], tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", {"id": "long"}, features=(["deletionVectors"], ["deletionVectors"]))
    table.create()
    (add,) = table.append([{"id": i} for i in range(20)])
    table.delete(add, [0, 5])
    many_files(tmp_path / "t-many")
    run(client, "connect_client.py", server, table.path)


def many_files(path: Path) -> None:
    """The table of ``connect_client.FILES`` files."""
    features = (["deletionVectors"], ["deletionVectors"])
    table = TableBuilder(path, {"id": "long", "p": "string"}, ["p"], features=features)
    table.create()
    for n in range(FILES):
        ids = [n // 2 * 4 + n % 2 + 2 * k for k in range(2)]
        (add,) = table.append([{"id": i, "p": f"p {n % 2}"} for i in ids])
        if n < 2:
            table.delete(add, [n])


@pytest.mark.one_case_in(2)
@CLIENTS
def test_programs_for_delta_spark_run_after_install(server: str, client: Callable[[], str], tmp_path: Path) -> None:
    run(client, "connect_programs.py", server, tmp_path)


@pytest.mark.one_case_in(2)
@CLIENTS
def test_names_are_read_and_changed_as_by_path(server: str, client: Callable[[], str], tmp_path: Path) -> None:
    # a page of the documentation takes seconds
    pages = sampled(DOCUMENTED, one_in=len(DOCUMENTED))
    run(client, "connect_names.py", server, tmp_path, *(pages if exhaustive() else pages[:1]))


def test_queries_on_drawn_tables_have_one_answer(server: str, tmp_path: Path) -> None:
    run(whole_client, "queries_client.py", server, tmp_path)


def test_lost_races_of_queries(server: str, tmp_path: Path) -> None:
    run(whole_client, "connect_races.py", server, tmp_path / "races")


def run(client: Callable[[], str], program: str, server: str, path: Path, *arguments: str) -> None:
    which = client.__name__.split("_")[0]
    run_client(client(), Path(__file__).with_name(program), server, str(path), which, *arguments, cwd=path.parent)
