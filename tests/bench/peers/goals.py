"""Who is compared, and the goals: our time or memory over theirs, at most ``limit``. Data, read by ``results``."""

from __future__ import annotations

from dataclasses import dataclass

READ = "delta_pyds.read"
FORMAT = "format deltapy"
CORE = "delta_pyds core"
REFERENCE = "format delta"
DELTALAKE = "deltalake"

# Floors: the least that the same work can cost here, with no Delta in it.
PARQUET = "spark.read.parquet"
MINIMAL = "minimal Python source"
PYARROW = "pyarrow"
WRITE_PARQUET = "df.write.parquet"
DRAINED = "rows sent to Python and dropped"
STREAM_PARQUET = "readStream.parquet"
PLAN_ONE_FILE = "pyarrow reads the checkpoint, Spark plans one Parquet file"


@dataclass(frozen=True)
class Goal:
    """``work`` is the kind of work, as rows name it."""

    work: str
    ours: str
    theirs: str
    unit: str
    limit: float


GOALS = (
    Goal("planning", READ, REFERENCE, "s", 0.5),
    Goal("planning", FORMAT, REFERENCE, "s", 0.5),
    Goal("planning", READ, REFERENCE, "MB", 0.5),
    Goal("planning", FORMAT, REFERENCE, "MB", 0.5),
    Goal("planning", CORE, DELTALAKE, "s", 1.0),
    Goal("planning", CORE, DELTALAKE, "MB", 1.0),
    Goal("selective scan", READ, REFERENCE, "s", 0.8),
    Goal("full scan", READ, REFERENCE, "s", 1.1),
    Goal("full scan", FORMAT, MINIMAL, "s", 1.05),
    Goal("TPC-H", READ, REFERENCE, "s", 1.1),
    Goal("write", FORMAT, REFERENCE, "s", 1.2),
    Goal("commit", FORMAT, REFERENCE, "s", 1.2),
    Goal("micro-batch", FORMAT, REFERENCE, "s", 1.0),
)


def goal(work: str, ours: str, theirs: str, unit: str) -> float | None:
    """The largest ratio wanted, or None where none was set."""
    for each in GOALS:
        if (each.work, each.ours, each.theirs, each.unit) == (work, ours, theirs, unit):
            return each.limit
    return None
