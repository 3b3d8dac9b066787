"""Options of a stream."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from delta_pyds.table.stream.commit import StreamRules


@dataclass(frozen=True)
class StreamOptions:
    """The options of a stream, checked; the names are those of the reference's options.

    ``starting_version``, ``starting_timestamp_ms``: where a query without a
    checkpoint begins, at most one of them; with neither it reads the table as
    it is first. ``max_files``, ``max_bytes``: of a batch, at least 1 where
    given. ``exclude``: files in whose path, as the log has it, it is found are not read.
    """

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp_ms: int | None = None
    max_files: int | None = 1000
    max_bytes: int | None = None
    rules: StreamRules = field(default_factory=StreamRules)
    exclude: re.Pattern[str] | None = None
    fail_on_data_loss: bool = True
    read_change_feed: bool = False

    @property
    def starting_given(self) -> bool:
        return self.starting_version is not None or self.starting_timestamp_ms is not None
