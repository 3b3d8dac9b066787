"""How long to wait between two attempts at what others compete for."""

from __future__ import annotations

import random


def pause_s(attempt: int, *, first_s: float, longest_s: float) -> float:
    """A random time in seconds to wait after ``attempt``, which counts from 1.

    Invariant: never longer than ``longest_s``, nor than ``first_s`` doubled with each attempt after the first; at
    least three tenths of that. It is random so that those who met once do not meet again.

    >>> time.sleep(pause_s(attempt, first_s=0.02, longest_s=2.0))
    """
    longest = min(longest_s, first_s * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.3, 1.0)
