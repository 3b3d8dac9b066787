"""Clusters of Spark on this machine: executors in JVMs of their own, on loopback, ended by their process ids.

- ``standalone``: a master and two workers; ``local-cluster[2,1,1024]`` needs nothing but the session
- ``session_on``: a session of a cluster; ``whole``: waits until both executors are there
- ``tasks_begun``: how many tasks each executor was given, by Spark's own count
- ``Trap``: one task of a query stops in the middle, and its executor is killed there
- ``kills_a_writer``: an executor is killed while it writes a data file
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from tests.support.java_options import QUICK_COMPILER
from tests.support.limits import ONLY_A_HANG_S

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
EXECUTORS = 2
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"


def spark_home(directory: Path) -> Path:
    """PySpark's files under another name, beside which a cluster leaves its logs: it writes below ``SPARK_HOME``."""
    home = directory / "spark_home"
    if not home.exists():
        home.mkdir()
        for entry in Path(pyspark.__file__).parent.iterdir():
            if entry.name != "work":
                (home / entry.name).symlink_to(entry)
    return home


@contextmanager
def standalone(directory: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The address of a master with two workers of one core each, on free ports of two addresses.

    Spark runs the second attempt of a slow task on another host alone.
    """
    free = ["--port", "0", "--webui-port", "0"]
    given = {
        **environment,
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": f"{QUICK_COMPILER} -XX:+UseSerialGC",
    }
    with ExitStack() as stack:
        url = stack.enter_context(
            _daemon(
                [_MASTER, "--host", "127.0.0.1", *free], r"Starting Spark master at (spark://\S+)", directory, given
            )
        )
        for number in range(EXECUTORS):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(directory / f"worker-{number}")]
            worker = [_WORKER, "--host", f"127.0.0.{number + 1}", *free, *size, url]
            stack.enter_context(_daemon(worker, "(Successfully registered) with master", directory, given))
        yield url


@contextmanager
def _daemon(command: Sequence[str], sign: str, directory: Path, given: Mapping[str, str]) -> Iterator[str]:
    """A process of Spark's. Gives: what its log says when it is ready."""
    log = directory / f"{len(list(directory.glob('*.log')))}.log"
    start = [os.path.join(given["SPARK_HOME"], "bin", "spark-class"), *command]
    with log.open("w") as file:  # spark-class becomes the process
        process = subprocess.Popen(
            start, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=directory, env={**given}
        )
    try:
        yield wait_for_log(process, log, sign)
    finally:
        process.terminate()
        process.wait(ONLY_A_HANG_S)


def wait_for_log(process: subprocess.Popen[bytes], log: Path, sign: str) -> str:
    """The value in a process's log that shows that it is ready: the first group of the expression ``sign``."""
    _until(lambda: bool(re.search(sign, log.read_text())) or process.poll() is not None, f"{log} says nothing")
    found = re.search(sign, log.read_text())
    assert found is not None, log.read_text()[-6000:]
    return found[1]


def session_on(master: str, scratch: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session whose two executors have one core and 768 MB each; ``SPARK_HOME`` and the Python are the caller's."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("delta_pyds on a cluster")
    given = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.executor.cores": "1",
        "spark.cores.max": str(EXECUTORS),
        "spark.driver.extraJavaOptions": f"{QUICK_COMPILER} -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": f"{QUICK_COMPILER} -XX:+UseSerialGC",
        # a task goes to the executor that is free, and not to the one that has its data
        "spark.locality.wait": "0s",
        # Spark's own count of tasks is up to date
        "spark.ui.liveUpdate.period": "0s",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        **(settings or {}),
    }
    for key, value in given.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    whole(spark)
    return spark


def whole(spark: SparkSession) -> None:
    """Wait until all executors are there."""
    context = spark.sparkContext._jsc.sc()
    _until(lambda: context.getExecutorMemoryStatus().size() == EXECUTORS + 1, "an executor did not come")


def tasks_begun(spark: SparkSession) -> dict[str, int]:
    """By executor, those that are gone too: how many tasks it was given.

    Spark counts no attempt as completed that it killed because a second one was faster: an executor that has just
    started loses each such race.
    """
    return {executor.id(): executor.totalTasks() for executor in _summaries(spark)}


def _summaries(spark: SparkSession) -> list[Any]:
    """Spark's counts for each executor."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().executorList(False)
    executors = (listed.apply(i) for i in range(listed.size()))
    return [executor for executor in executors if executor.id() != "driver"]


@contextmanager
def in_both_executors(spark: SparkSession) -> Iterator[None]:
    """Require that the work within is handed out to two executors at least."""
    whole(spark)
    # an attempt that lost to a second one may go on for seconds, and its executor takes no other task meanwhile
    _until(
        lambda: not any(executor.isActive() and executor.activeTasks() for executor in _summaries(spark)),
        "an executor does not end its task",
    )
    before = tasks_begun(spark)
    yield
    after = tasks_begun(spark)
    worked = [name for name, begun in after.items() if begun > before.get(name, 0)]
    assert len(worked) >= EXECUTORS, f"of the executors {sorted(after)} only {worked} had a task"


@dataclass(frozen=True)
class Trap:
    """A place in a query where one task stops, of all that come there the first. ``sign``: a file that does not exist.

    All others pass; with ``until_copy`` the task goes on when the second attempt of it has come as far.
    """

    sign: Path
    until_copy: bool = False

    def before(self, frame: DataFrame, *, rows: int = 0) -> DataFrame:
        """The same rows; a task stops when it has handed over more than so many."""
        wait = self._wait()

        def stop(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            handed_over = 0
            for batch in batches:
                yield batch
                handed_over += batch.num_rows
                if handed_over > rows:
                    wait()

        return frame.mapInArrow(stop, frame.schema)

    def at(self, column: Column) -> Column:
        """The same values of a column of texts, by a function in Python in which a task stops."""
        from pyspark.sql.functions import udf

        wait = self._wait()

        def stop(value):  # Spark takes type hints for its own
            wait()
            return value

        return udf(stop, "string")(column)

    def _wait(self) -> Callable[[], None]:
        sign, until_copy = str(self.sign), self.until_copy

        # pickled as it is: executors do not have the tests
        def wait() -> None:
            import os
            import time

            from pyspark import TaskContext

            context = TaskContext.get()
            me = f"{context.stageId()} {context.partitionId()} {context.attemptNumber()}"
            release = f"{sign}.release"
            if not os.path.exists(sign):
                # the parent of this process is Python's daemon, and its parent the executor
                with open(f"/proc/{os.getppid()}/stat") as stat:
                    executor = stat.read().rpartition(")")[2].split()[1]
                partial = f"{sign}.{os.getpid()}"
                with open(partial, "w") as file:
                    file.write(f"{executor} {me}")
                try:
                    os.link(partial, sign)
                except FileExistsError:
                    pass
                else:
                    while not os.path.exists(release):
                        time.sleep(0.02)
                    return
            if until_copy:
                with open(sign) as file:
                    _, *stopped = file.read().split()
                if stopped[:2] == me.split()[:2] and stopped != me.split():
                    open(release, "w").close()

        return wait

    def has_begun_a_file(self, directory: Path) -> bool:
        """Whether the executor whose task stopped has a data file below a directory open."""
        stopped = int(self.sign.read_text().split()[0])
        opened = {file for pid in descendants(stopped) for file in _open_files(pid)}
        return any(file.startswith(f"{directory}/") and file.endswith(".parquet") for file in opened)

    def release(self) -> None:
        """Let the task go on."""
        Path(f"{self.sign}.release").touch()

    @contextmanager
    def kills(self, *, others: bool = False, once: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """The executor whose task stops is killed, and its Python with it, as if its machine went down.

        ``others``: the other ones are, and the task goes on. ``once``: what must have come before.
        """
        done: list[int] = []
        given_up = threading.Event()
        watcher = threading.Thread(target=lambda: done.extend(self._kill(given_up, others, once)))
        watcher.start()
        try:
            yield
        finally:
            given_up.set()
            watcher.join()
            self.release()
        assert done, "no task came to the place where an executor was to be killed"

    def _kill(self, given_up: threading.Event, others: bool, once: Callable[[], bool]) -> Iterator[int]:
        while not (self.sign.exists() and once()):
            if given_up.wait(0.02):
                return
        stopped = int(self.sign.read_text().split()[0])
        running = executors()
        assert stopped in running, f"{stopped} is not an executor of this cluster"
        for executor in running:
            if (executor == stopped) != others:
                kill_executor(executor)
                yield executor
        if others:
            self.release()


@contextmanager
def kills_a_writer(directory: Path) -> Iterator[None]:
    """Of the executors the first one that is seen to have a new data file below a directory open is killed."""
    before, done, given_up = set(directory.rglob("*.parquet")), [], threading.Event()

    def watch() -> None:
        while not given_up.wait(0.002):
            new = {str(file) for file in set(directory.rglob("*.parquet")) - before}
            for executor in executors() if new else ():
                if not _has_open(executor, new):
                    continue
                # it may have closed the file since, and its answer may be with the driver
                stop_executor(executor)
                if _has_open(executor, new):
                    kill_executor(executor)
                    done.append(executor)
                    return
                for pid in (*descendants(executor), executor):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        given_up.set()
        watcher.join()
    assert done, "no executor was seen to write a data file"


def _has_open(executor: int, files: set[str]) -> bool:
    return any(files & _open_files(pid) for pid in descendants(executor))


def _open_files(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(entry.readlink()))
    return found


def stop_executor(executor: int) -> None:
    """SIGSTOP for it and its Python."""
    for pid in (executor, *descendants(executor)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)


def kill_executor(executor: int) -> None:
    """SIGKILL for an executor and its Python, of which none does anything after the first was hit."""
    stop_executor(executor)
    for pid in (*descendants(executor), executor):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def unnamed_files(path: Path) -> list[str]:
    """The data files that lie in a table's directory and are not in its latest version."""
    from delta_pyds.table.scan.scan import plan_scan
    from delta_pyds.table.snapshot import load_snapshot

    named = {file.path for file in plan_scan(load_snapshot(path)).files()}
    log = path / "_delta_log"
    return sorted(str(f) for f in path.rglob("*.parquet") if str(f) not in named and log not in f.parents)


def executors() -> list[int]:
    """The JVMs of executors that this process has started, itself or through a driver or a worker."""
    found = []
    for pid in descendants(os.getpid()):
        with suppress(OSError):
            if _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(pid)
    return found


def descendants(ancestor: int) -> list[int]:
    """The processes that a process has started, and those that they have."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # the name of the program comes before, in parentheses, and may hold anything
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, waiting = [], [ancestor]
    while waiting:
        next_ones = children.get(waiting.pop(), [])
        found += next_ones
        waiting += next_ones
    return found


def vacuum_all(spark: SparkSession, path: str) -> None:
    """Delete all files of a table that it does not need now, however young they are."""
    from delta_pyds import DeltaTable

    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(check, "false")
    try:
        DeltaTable.forPath(spark, path).vacuum(0)
    finally:
        spark.conf.unset(check)


def each_row_once(spark: SparkSession, path: Path, rows: int) -> None:
    """The table has the ids below ``rows``, and ``verify`` finds nothing."""
    import delta_pyds

    found = delta_pyds.read(spark, path).selectExpr("count(*)", "count(DISTINCT id)", "sum(id)").collect()[0]
    assert tuple(found) == (rows, rows, rows * (rows - 1) // 2)
    delta_pyds.verify(path).raise_for_errors()


def vacuum_until_clean(spark: SparkSession, path: Path) -> None:
    """The same until nothing is left: an attempt of a task that lost may end its file later than the query."""

    def clean() -> bool:
        vacuum_all(spark, str(path))
        return not unnamed_files(path)

    _until(clean, f"vacuum leaves {unnamed_files(path)}")


def environment(directory: Path, python: str = sys.executable) -> dict[str, str]:
    """What a driver or a worker needs in its environment: this checkout, one Python, loopback."""
    return {
        **os.environ,
        "SPARK_HOME": str(spark_home(directory)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "delta_pyds" / "spark" / "discovery")]),
    }


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + ONLY_A_HANG_S
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.05)
