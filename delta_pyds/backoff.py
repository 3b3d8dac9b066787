"""Pauses between attempts, with exponential backoff and jitter."""

from __future__ import annotations

import random


def pause_s(attempt: int, *, first_s: float, longest_s: float) -> float:
    """A random pause in seconds after an attempt.

    Invariant: at most ``longest_s`` and ``first_s`` doubled for each attempt after the first, and at least three tenths
    of that. It is random so that processes which collided once do not collide again.

    Args:
        attempt: the number of the attempt, from 1.
        first_s: the limit after the first attempt.
        longest_s: the limit after any attempt.

    >>> time.sleep(pause_s(attempt, first_s=0.02, longest_s=2.0))
    """
    longest = min(longest_s, first_s * 2.0 ** min(attempt - 1, 30))
    return longest * random.uniform(0.3, 1.0)
