"""Every Python process that finds this on its path notes its syncs, Spark's workers too: see ``power_cut``."""

import os
from pathlib import Path

if "POWER_CUT_BASE" in os.environ:
    from tests.support.power_cut import Disk, noting_syncs

    # for as long as the process lives
    noting = noting_syncs(Disk(Path(os.environ["POWER_CUT_BASE"]), Path(os.environ["POWER_CUT_RECORD"])))
    noting.__enter__()
