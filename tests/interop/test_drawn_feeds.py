"""Drawn histories by both engines in turn: computed changes are those that a twin with the change feed records.

A seed draws a history; a run takes a few by its commit. ``make test-histories`` runs a thousand. The same again:
``make test-histories OF=feeds HISTORIES=1 DELTA_PYDS_FIRST_HISTORY=17``.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from tests.interop.drawn_feeds import FeedHistory, FeedTwins
from tests.interop.engines import Engines
from tests.support.sampling import seed

_HISTORIES, _BOUNDED = int(os.environ.get("DELTA_PYDS_HISTORIES", "8")), 2
_FIRST = int(os.environ.get("DELTA_PYDS_FIRST_HISTORY", str(zlib.crc32(seed().encode()) % 1_000_000)))


@pytest.mark.cell("changes that no table recorded, drawn histories", "ping-pong")
@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.also_bounded] if n < _BOUNDED else []) for n in range(_HISTORIES)]
)
def test_changes_are_those_that_a_twin_records(engines: Engines, tmp_path: Path, number: int) -> None:
    history = FeedHistory.of(_FIRST + number)
    print(history)
    print(FeedTwins(engines, tmp_path, history).run())
