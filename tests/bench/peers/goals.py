"""Who is compared, and the goals: our time or memory over theirs, at most ``limit``. Data, read by ``results``."""

from __future__ import annotations

from dataclasses import dataclass

READ = "delta_pyds.read"
ON_CONNECT = "delta_pyds.read through Spark Connect"
FORMAT = "format deltapy"
CORE = "delta_pyds core"
SCAN = "delta_pyds.scan"
NAMES = "names after install"
STATEMENTS = "delta_pyds.sql"
COMET = "delta_pyds with Comet"
REFERENCE = "format delta"
DELTALAKE = "deltalake"
SAIL = "Sail"
FASTEST = "the faster of Sail and deltalake"
FIFTY_MS = "50 milliseconds"

# ``DeltaTable``, by where its commands run.
AUTO = "DeltaTable"
IN_PROCESS = "DeltaTable in the user's process"
IN_TASKS = "DeltaTable in tasks"
BY_SPARK = "DeltaTable by Spark's query"

# Changes of a table.
COMPUTED = "changes that were computed"
RECORDED = "changes that were recorded"
SUBTRACTED = "both versions, subtracted by Spark"
# A table kept equal to its changes.
APPLIED = "delta_pyds.apply_changes"
MERGED_BY_HAND = "a merge by hand"

# Writers that change one table at once.
OUR_WRITERS = "writers by delta_pyds"
ALONE_AT_IT = "one of them alone"
MEND = "a mend"
FIRST_RUN = "the command's first run"
NO_ABORT = "no abort"
QUIET_TABLE = "the same without other writers"

# Floors: the least that the same work can cost here, with no Delta in it.
PARQUET = "spark.read.parquet"
MINIMAL = "minimal Python source"
PYARROW = "pyarrow"
WRITE_PARQUET = "df.write.parquet"
DRAINED = "rows sent to Python and dropped"
STREAM_PARQUET = "readStream.parquet"
# the rows after the change, by a filter, a projection or a join, all rewritten as Parquet
BY_HAND = "Spark by hand"
# the files of both versions, by the same reader
READ_ONCE = "both versions, read once"
READY_INDEX = "spark.read.parquet with a list of the files"
PLAN_ONE_FILE = "pyarrow reads the checkpoint, Spark plans one Parquet file"


@dataclass(frozen=True)
class Goal:
    """``work`` is the kind of work, as rows name it."""

    work: str
    ours: str
    theirs: str
    unit: str
    limit: float


_SCATTERED = (
    "delete of 1 %, scattered",
    "update of 1 %, scattered",
    "merge of 1 % updates and as many inserts",
)

GOALS = (
    Goal("planning", READ, REFERENCE, "s", 0.5),
    Goal("planning", FORMAT, REFERENCE, "s", 0.5),
    Goal("planning", READ, REFERENCE, "MB", 0.5),
    Goal("planning", FORMAT, REFERENCE, "MB", 0.5),
    Goal("planning", CORE, DELTALAKE, "s", 1.0),
    Goal("planning", CORE, DELTALAKE, "MB", 1.0),
    Goal("load and first aggregate of many files, cold", READ, REFERENCE, "s", 0.4),
    Goal("load and selective query, cold", READ, REFERENCE, "s", 0.1),
    Goal("load and selective query, warm", READ, REFERENCE, "s", 0.3),
    Goal("load of all files", READ, REFERENCE, "s", 0.15),
    Goal("load of all files", READ, REFERENCE, "MB", 0.5),
    Goal("in a store: load and selective query, cold", READ, REFERENCE, "s", 0.5),
    Goal("in a store: full scan", READ, REFERENCE, "s", 1.0),
    Goal("in a store: one column, cold", ON_CONNECT, READ, "s", 1.1),
    Goal("in a store: one column, warm", ON_CONNECT, READ, "s", 1.1),
    Goal("selective scan", READ, REFERENCE, "s", 0.8),
    Goal("full scan", READ, REFERENCE, "s", 1.1),
    Goal("full scan", FORMAT, MINIMAL, "s", 1.05),
    *(
        Goal(f"{suite}: {what}", ours, REFERENCE, "s", limit)
        for suite in ("TPC-H", "TPC-DS")
        for ours in (READ, NAMES)
        for what, limit in (("all queries", 0.85), ("worst query", 1.15))
    ),
    *(Goal(f"TPC-H with Comet, {kind}", COMET, REFERENCE, "s", 0.6) for kind in ("without vectors", "with vectors")),
    Goal("write", FORMAT, REFERENCE, "s", 1.2),
    Goal("commit", FORMAT, REFERENCE, "s", 1.2),
    Goal("micro-batch", FORMAT, REFERENCE, "s", 1.0),
    *(
        Goal(f"{change}, with deletion vectors", ours, REFERENCE, "s", limit)
        for ours in (AUTO, BY_SPARK)
        for change, limit in (
            ("delete of 1 %, scattered", 0.15),
            ("update of 1 %, scattered", 0.25),
            ("merge of 1 % updates and as many inserts", 0.35),
            ("merge into 1 file of 100", 0.15),
        )
    ),
    *(Goal(f"{change}, by rewriting", ours, REFERENCE, "s", 0.6) for ours in (AUTO, BY_SPARK) for change in _SCATTERED),
    *(Goal(f"{change}, with deletion vectors", IN_PROCESS, FASTEST, "s", 1.5) for change in _SCATTERED),
    *(Goal(f"{change}, by rewriting", IN_PROCESS, FASTEST, "s", 1.2) for change in _SCATTERED),
    Goal("delete of one row of a table of one file", AUTO, FIFTY_MS, "s", 1.0),
    Goal("changes of an update", COMPUTED, RECORDED, "s", 2.0),
    Goal("changes of an update", COMPUTED, SUBTRACTED, "s", 0.2),
    Goal("changes of compactions", COMPUTED, FIFTY_MS, "s", 1.0),
    Goal("applied changes", APPLIED, MERGED_BY_HAND, "s", 1.1),
    Goal("scan without Spark", SCAN, DELTALAKE, "s", 1.0),
    Goal("compaction of small files", AUTO, REFERENCE, "s", 0.3),
    Goal("compaction of small files", AUTO, DELTALAKE, "s", 1.2),
    Goal("z-order", AUTO, REFERENCE, "s", 0.8),
    Goal("clustering", AUTO, REFERENCE, "s", 0.8),
    Goal("vacuum planning", AUTO, REFERENCE, "s", 0.3),
    Goal("vacuum planning", AUTO, REFERENCE, "MB", 0.3),
    Goal("restore", AUTO, REFERENCE, "s", 0.5),
    Goal("shallow clone", AUTO, REFERENCE, "s", 0.5),
    Goal("convert", AUTO, REFERENCE, "s", 0.5),
    Goal("adding a column", AUTO, REFERENCE, "s", 0.5),
    *(
        Goal(f"contention {way}", OUR_WRITERS, NO_ABORT, "aborts", 0.0)
        for way in ("with deletion vectors", "by rewriting")
    ),
    # at least 0.7 of the commits a second
    *(
        Goal(f"contention {way}, disjoint rows", OUR_WRITERS, ALONE_AT_IT, "s", 1 / 0.7)
        for way in ("with deletion vectors", "by rewriting")
    ),
    Goal("row changes", AUTO, REFERENCE, "MB", 1.0),
    Goal("row changes", BY_SPARK, REFERENCE, "MB", 1.0),
)


def goal(work: str, ours: str, theirs: str, unit: str) -> float | None:
    """The largest ratio wanted, or None where none was set."""
    for each in GOALS:
        if (each.work, each.ours, each.theirs, each.unit) == (work, ours, theirs, unit):
            return each.limit
    return None
