"""The piece of SQL that an error of Spark quotes."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException


def fragment_of(error: PySparkException) -> tuple[str, int] | None:
    """The piece of SQL that an error is about, and where it begins in the text that Spark was given; None if unknown.

    It is the same on classic sessions and on Spark Connect. Raises nothing: it runs while another error is handled.
    """
    try:
        contexts: list[Any] = list(error.getQueryContext() or ())
        for context in contexts:
            if context.contextType().name == "SQL" and context.fragment():
                return str(context.fragment()), int(context.startIndex())
    except Exception:  # a server that does not answer, or a context without these
        return None
    return None
