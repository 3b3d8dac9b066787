"""Absolute locations, as other engines and the log spell them."""

from __future__ import annotations

from delta_pyds.protocol.paths import encode_path
from delta_pyds.storage.resolve import normalize_table_root, scheme_of


def hadoop_path(root: str) -> str:
    """A root as Hadoop spells it: with a scheme, and of the store's own connector. Literal, as the root is."""
    scheme = scheme_of(root)
    if scheme == "file":
        return "file:" + normalize_table_root(root)
    return root.replace("s3://", "s3a://", 1) if scheme == "s3" else root


def as_uri(root: str) -> str:
    """The same, percent-encoded for the log. Without a slash at the end."""
    scheme, _, rest = hadoop_path(root).rstrip("/").partition(":")
    # once there is a scheme, later colons are bare in URIs of Java too
    return f"{scheme}:{encode_path(rest).replace('%3A', ':')}"
