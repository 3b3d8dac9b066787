"""Absolute locations, as other engines and the log spell them."""

from __future__ import annotations

from delta_pyds.protocol.paths import encode_path
from delta_pyds.storage.resolve import hadoop_path


def as_uri(root: str) -> str:
    """A root as Hadoop spells it, percent-encoded for the log, without a slash at the end."""
    scheme, _, rest = hadoop_path(root).rstrip("/").partition(":")
    # after a scheme, Java does not encode colons in URIs either
    return f"{scheme}:{encode_path(rest).replace('%3A', ':')}"
