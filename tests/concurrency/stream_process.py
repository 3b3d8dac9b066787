"""Two streams in one Spark session that fill the tables M and T from S, and the supervisor of both.

``python -m tests.concurrency.stream_process FOLDER run|drain rows|changes|applied``: ``run`` goes on
until it is killed, ``drain`` until all that is in S is in M and T. The last word says what is streamed:

- ``rows``: the rows of plain appends, from S to M and from M to T
- ``changes``: the changes of S, which it does not record, to M as rows, and these to T
- ``applied``: the same changes are applied to M, and to T as its history
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from delta_pyds import apply_changes
from delta_pyds.spark.versions import has_admission_control
from tests.concurrency.crashing_source import FORMAT, CrashingDataSource, crashing_commit
from tests.concurrency.stream_writers import SCHEMA
from tests.support.java_options import QUICK_COMPILER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

_CHAIN = (("S", "M"), ("M", "T"))
LINKS = {"rows": _CHAIN, "changes": _CHAIN, "applied": (("S", "M"), ("S", "T"))}
# of a row of changes in M and T: a table may not have the names that the change feed has
CHANGE_NAMES = {"_change_type": "change", "_commit_version": "version"}
# of a key in one commit, the insert comes after the delete
SEQUENCE = "struct(_commit_version AS version, _change_type <> 'delete' AS there)"
# another column came: a restart of the query reads on with it
RETRYABLE = "DELTA_SCHEMA_CHANGED"
# changes were applied while a writer laid the target's rows out again
_CONFLICT = "DELTA_CONCURRENT_"
# Spark's own fault: all streams of a registered Python source share one map, into which each puts these when it
# starts, without a lock. Two that start at once leave a map of which no task can be made any more. Where the keys
# are there from the beginning nothing breaks, and a source that is registered again has a new map.
_PUT_BY_SPARK = ("SPARK_LOCAL_DIRS", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
_BROKEN_MAP = "java.io.OptionalDataException"
_RESTARTS_WITHOUT_A_BATCH = 5


def session(folder: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("delta_pyds crashes")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.pollingDelay", "100ms")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        # a life is too short for the second compiler
        .config("spark.driver.extraJavaOptions", f"{QUICK_COMPILER} -XX:+UseSerialGC -Djava.io.tmpdir={folder}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.sparkContext.environment.update(dict.fromkeys(_PUT_BY_SPARK, ""))
    spark.dataSource.register(CrashingDataSource)
    return spark


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Link:
    """One of the two streams: started again, with a newly loaded DataFrame, each time that a column was added."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str, source: str, target: str) -> None:
        self.spark, self.kind = spark, kind
        self.name = f"{source} to {target}"
        self.source, self.target = folder / source, folder / target
        self.checkpoint = checkpoint(folder, source, target)
        self.query: StreamingQuery | None = None
        self.restarts = 0
        self.seen = 0
        self.before = 0

    def start(self, **trigger: object) -> None:
        rows = self._changes() if self.kind != "rows" and self.source.name == "S" else self._rows()
        writer = rows.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(**trigger)
        self.before = self.batches()
        if self.kind == "applied":
            self.query = writer.foreachBatch(self._apply).start()
        else:
            writer = writer.format(FORMAT).option("mergeSchema", "true").option("delta.checkpointInterval", "3")
            self.query = writer.start(str(self.target))
        say(f"{self.name}: started with the columns {rows.columns}")

    def _rows(self) -> DataFrame:
        return (
            self.spark.readStream.format(FORMAT)
            .option("startingVersion", "0")
            .option("skipChangeCommits", "true")
            .option("maxFilesPerTrigger", "10")
            .load(str(self.source))
        )

    def _changes(self) -> DataFrame:
        found = (
            self.spark.readStream.format(FORMAT)
            .option("startingVersion", "0")
            .option("readChangeFeed", "true")
            .option("maxFilesPerTrigger", "30" if self.kind == "applied" else "8")
            .load(str(self.source))
            .drop("_commit_timestamp")
        )
        if self.kind == "applied":
            return found.where("_change_type <> 'update_preimage'")
        return found.withColumnsRenamed(CHANGE_NAMES)

    def _apply(self, batch: DataFrame, number: int) -> None:
        save = apply_changes(
            self.target,
            keys="id",
            sequence_by=SEQUENCE,
            delete_when="_change_type = 'delete'",
            scd=1 if self.target.name == "M" else 2,
            column_list=list(SCHEMA),
            txn_app_id=self.target.name,
        )
        with crashing_commit(str(self.target), number):
            save(batch, number)

    def batches(self) -> int:
        """The number of batches that the checkpoint has as done."""
        return len(list((self.checkpoint / "commits").glob("[0-9]*")))

    def tend(self, **trigger: object) -> bool:
        """Start the query if it does not run, and say whether it has come to its end."""
        if self.query is None:
            if (self.source / "_delta_log" / f"{0:020d}.json").exists():
                self.start(**trigger)
            return False
        if self.query.isActive:
            return False
        error = self.query.exception()
        batches = self.batches()
        if error is None:
            if has_admission_control() or batches == self.before:
                return True
            # each run has taken one batch
            self.query = None
            return self.tend(**trigger)
        text = str(error)
        self.restarts = self.restarts + 1 if batches == self.seen else 1
        self.seen = batches
        reason = next((reason for reason in (RETRYABLE, _CONFLICT, _BROKEN_MAP) if reason in text), None)
        if reason is None or self.restarts > _RESTARTS_WITHOUT_A_BATCH:
            say(f"{self.name}: FAILED\n{text}")
            raise SystemExit(3)
        if reason == _BROKEN_MAP:
            self.spark.dataSource.register(CrashingDataSource)
        say(f"{self.name}: is restarted after {reason}")
        self.query = None
        return self.tend(**trigger)


def checkpoint(folder: Path, source: str, target: str) -> Path:
    return folder / "checkpoints" / f"{source}-{target}"


def main(folder: Path, mode: str, kind: str) -> None:
    parent = os.getppid()
    say("begins")
    spark = session(folder)
    say("has a session")
    links = [Link(spark, folder, kind, *link) for link in LINKS[kind]]
    waiting = list(links)
    while waiting:
        if os.getppid() != parent:
            raise SystemExit("the process that started this one is gone")
        if mode == "drain":
            # in their order, so that the second finds all that the first has written
            if waiting[0].tend(availableNow=True):
                say(f"{waiting.pop(0).name}: has come to the end")
        else:
            for link in links:
                link.tend(processingTime="0 seconds")
            if links[0].query is not None:
                (folder / "running").touch()
        time.sleep(0.05)
    spark.stop()
    say("ends")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
