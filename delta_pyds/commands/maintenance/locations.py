"""Absolute locations, as other engines and the log spell them."""

from __future__ import annotations

from delta_pyds.protocol.paths import encode_path
from delta_pyds.storage.resolve import normalize_table_root, scheme_of


def hadoop_path(root: str) -> str:
    """A root as Hadoop spells it: with the scheme of Hadoop's connector. It is literal, like the root."""
    scheme = scheme_of(root)
    if scheme == "file":
        return "file:" + normalize_table_root(root)
    return root.replace("s3://", "s3a://", 1) if scheme == "s3" else root


def as_uri(root: str) -> str:
    """A root as Hadoop spells it, percent-encoded for the log, without a slash at the end."""
    scheme, _, rest = hadoop_path(root).rstrip("/").partition(":")
    # after a scheme, Java does not encode colons in URIs either
    return f"{scheme}:{encode_path(rest).replace('%3A', ':')}"
