"""One writer of the workload as a process of its own: path, writer, commits, seed, and storage options as JSON where
there are some; prints its report as JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import asdict

from tests.concurrency.workload import run

if __name__ == "__main__":
    logging.disable(logging.INFO)
    table, number, commits, seed, *more = sys.argv[1:]
    options = json.loads(more[0]) if more else None
    print(json.dumps(asdict(run(table, int(number), int(commits), int(seed), storage_options=options))))
