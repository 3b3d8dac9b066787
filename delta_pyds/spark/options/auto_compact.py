"""The session's settings of compaction after a commit, with the reference's names.

Invariant: they are read after the commit, so reading never fails: an invalid value is logged and ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from delta_pyds.redaction import safe_logger
from delta_pyds.spark.settings import AUTO_COMPACT_PREFIX

if TYPE_CHECKING:
    from delta_pyds.commands.layout.auto_compact import AutoCompaction

logger = safe_logger(__name__)

_ENABLED = f"{AUTO_COMPACT_PREFIX}enabled"
_MIN_FILES = f"{AUTO_COMPACT_PREFIX}minNumFiles"
_MAX_BYTES = f"{AUTO_COMPACT_PREFIX}maxFileSize"
_SMALL_BYTES = f"{AUTO_COMPACT_PREFIX}minFileSize"
_NAMES = (_ENABLED, _MIN_FILES, _MAX_BYTES, _SMALL_BYTES)


def auto_compact_settings(setting: Callable[[str], str | None]) -> dict[str, str]:
    """The settings that are set, to be sent to another process. ``setting``: returns one by its name."""
    return {name: text for name in _NAMES if (text := setting(name)) is not None}


def auto_compaction(setting: Callable[[str], str | None], *, table_wants: bool = True) -> AutoCompaction:
    """The session's rule. If the session does not say whether to compact, the table decides.

    ``table_wants``: if neither wants it, sizes are not asked for, because each is a call of a remote session.

    >>> auto_compaction(lambda name: spark.conf.get(name, None))
    """
    # imported here: tasks, which send the settings, import this module too
    from delta_pyds.commands.layout.auto_compact import AutoCompaction

    enabled = (setting(_ENABLED) or "").strip().lower()
    if enabled not in ("", "true", "false"):
        logger.warning("The session sets %s to %.100r, neither true nor false: it is ignored.", _ENABLED, enabled)
        enabled = ""
    if enabled == "false" or not (enabled or table_wants):
        return AutoCompaction(enabled=False)
    default = AutoCompaction()
    most = _number(setting, _MAX_BYTES, default.max_file_bytes)
    return AutoCompaction(
        enabled=True if enabled else None,
        min_files=_number(setting, _MIN_FILES, default.min_files),
        max_file_bytes=most,
        small_file_bytes=_number(setting, _SMALL_BYTES, most // 2),
    )


def session_rule(setting: Callable[[str], str | None], *, table_wants: bool) -> AutoCompaction | None:
    """The same after a commit, when the session may have ended; None if nothing is to be compacted."""
    try:
        rule = auto_compaction(setting, table_wants=table_wants)
    except Exception as error:
        logger.warning("The session does not say whether to compact small files, so they are not: %s", error)
        return None
    return rule if rule.wanted(table_wants) else None


def _number(setting: Callable[[str], str | None], name: str, default: int) -> int:
    text = (setting(name) or "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        logger.warning("The session sets %s to %.100r, which is not a whole number: it is ignored.", name, text)
        return default
    return int(text)
