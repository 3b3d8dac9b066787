"""A session's settings for compaction after a commit; invalid ones never fail it."""

from __future__ import annotations

import pytest

from delta_pyds.commands.layout.auto_compact import AutoCompaction
from delta_pyds.spark.options.auto_compact import auto_compact_settings, auto_compaction

PREFIX = "spark.databricks.delta.autoCompact."


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, AutoCompaction(small_file_bytes=64 << 20)),
        ({"enabled": "TRUE"}, AutoCompaction(enabled=True, small_file_bytes=64 << 20)),
        (
            {"enabled": " true", "minNumFiles": "3", "maxFileSize": "1000"},
            AutoCompaction(enabled=True, min_files=3, max_file_bytes=1000, small_file_bytes=500),
        ),
        ({"enabled": "false", "minNumFiles": "3"}, AutoCompaction(enabled=False)),
        ({"minFileSize": "7"}, AutoCompaction(small_file_bytes=7)),
        ({"enabled": "legacy", "minNumFiles": "-1", "maxFileSize": "1g"}, AutoCompaction(small_file_bytes=64 << 20)),
    ],
)
def test_settings_make_a_rule(given: dict[str, str], rule: AutoCompaction) -> None:
    settings = {PREFIX + name: value for name, value in given.items()} | {"spark.other": "x"}
    assert auto_compaction(settings.get) == rule
    sent = auto_compact_settings(settings.get)
    assert sent == {name: value for name, value in settings.items() if name.startswith(PREFIX)}
    assert auto_compaction(sent.get) == rule


def test_nothing_else_is_asked_where_nobody_wants_it() -> None:
    asked: list[str] = []
    rule = auto_compaction(lambda name: asked.append(name), table_wants=False)
    assert (rule.wanted(False), asked) == (False, [PREFIX + "enabled"])
