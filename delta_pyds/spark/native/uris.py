"""Spark's spelling of a table's files.

Invariant: a path of the log is percent-decoded exactly once, and the result is percent-encoded exactly once. Spark
shows a file in ``_metadata.file_path`` as ``spark_uri`` spells it: Java decides which characters are escaped.
"""

from __future__ import annotations

import re

import pyarrow as pa

from delta_pyds.columnar.path_keys import convert_odd_paths
from delta_pyds.errors import ProtocolError
from delta_pyds.protocol.paths import NON_CANONICAL_PATH, resolve_data_path
from delta_pyds.storage.resolve import hadoop_path

# What a path of a URI has unescaped in Java, besides most characters that are not ASCII.
_LEGAL = r"a-zA-Z0-9_\-!.~'()*,;:$&+=@/"
_ODD = rf"[^{_LEGAL}]|{NON_CANONICAL_PATH}"
# Java escapes such characters too: the controls and spaces of Unicode.
_ESCAPED = re.compile(rf"[^{_LEGAL}\u0080-\U0010ffff]|[\u0080-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")


def spark_uri(path: str) -> str:
    """The URI of a resolved path."""
    return _ESCAPED.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), hadoop_path(path))


def spark_uris(table_root: str, paths: pa.StringArray) -> pa.StringArray:
    """The URIs of files that the log names ``paths``; most are made without a Python object for each.

    Raises: ProtocolError for a path with a segment ``..``.
    """

    def uri(path: str) -> str:
        return spark_uri(resolve_data_path(table_root, path))

    try:
        return convert_odd_paths(paths, _ODD, uri, plain_prefix=spark_uri(table_root).rstrip("/") + "/")
    except ProtocolError:
        for path in paths.to_pylist():
            uri(path)  # the error names the whole path
        raise
