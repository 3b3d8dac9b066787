"""How a JVM runs best when it answers thousands of queries on a few rows."""

from __future__ import annotations

# Optimising compilers cost more than they save. The quick one alone gets a small cache for its code by default, which
# fills up: then a thread sweeps it all the time.
QUICK_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
