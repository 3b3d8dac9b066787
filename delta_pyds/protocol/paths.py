"""Names of a table's files. Only this module encodes, decodes and compares paths of the log.

Protocol: "File Types", "Add File and Remove File" (the path is a URI-encoded string).
"""

from __future__ import annotations

import re
from enum import Enum
from urllib.parse import quote, unquote

import msgspec

from delta_pyds.errors import ProtocolError

LOG_DIRECTORY = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"
SIDECAR_DIRECTORY = "_sidecars"

_LOG_NAME = re.compile(
    r"(?P<version>\d{20})"
    r"(?:(?P<commit>\.json)"
    r"|(?P<checksum>\.crc)"
    r"|\.(?P<end>\d{20})\.compacted\.json"
    r"|\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-fA-F-]{36}))?\.(?P<suffix>parquet|json))"
)
_MAX_VERSION = (1 << 63) - 1
# a scheme must be followed by a slash: a file may be called "a:b"
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):/")
# A path without a match is its own key. RE2 and Python read the pattern alike.
NON_CANONICAL_PATH = r"%|:/|//|^/|/$|(^|/)\.{1,2}(/|$)"
_NON_CANONICAL = re.compile(NON_CANONICAL_PATH)
# The characters that URIs of Java and the reference leave unescaped in a path. Not ":", which Hadoop takes for the end
# of a scheme. Engines that compare paths as text rely on this spelling.
_UNESCAPED = "/!$&'()*+,;=@"


class LogFileKind(Enum):
    COMMIT = "commit"
    CHECKSUM = "checksum"
    COMPACTION = "compaction"
    CHECKPOINT = "checkpoint"


class LogFileName(msgspec.Struct, frozen=True):
    """A parsed file name of the log.

    ``end_version``: the last version of a compaction. ``part``, ``parts``: the number
    of a part of a multi-part checkpoint, from 1, and the number of parts. ``uuid``: that of a UUID-named (V2)
    checkpoint.
    """

    kind: LogFileKind
    version: int
    end_version: int | None = None
    part: int | None = None
    parts: int | None = None
    uuid: str | None = None
    suffix: str | None = None


def parse_log_name(name: str) -> LogFileName | None:
    """Parse a file name of the log directory.

    Returns: None for a name that the protocol does not define, and for a version that does not fit in 64 bits.
    Protocol: "Delta Log Entries", "Checkpoints", "Log Compaction Files", "Version Checksum File".
    """
    match = _LOG_NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if max(version, int(match["end"] or 0)) > _MAX_VERSION:
        return None
    if match["commit"]:
        return LogFileName(LogFileKind.COMMIT, version)
    if match["checksum"]:
        return LogFileName(LogFileKind.CHECKSUM, version)
    if match["end"]:
        return LogFileName(LogFileKind.COMPACTION, version, end_version=int(match["end"]))
    if match["suffix"] == "json" and not match["uuid"]:
        return None
    part, parts = match["part"], match["parts"]
    return LogFileName(
        LogFileKind.CHECKPOINT,
        version,
        part=int(part) if part else None,
        parts=int(parts) if parts else None,
        uuid=match["uuid"],
        suffix=match["suffix"],
    )


def version_prefix(version: int) -> str:
    """The prefix of the names of that version's files; it sorts before all of them."""
    return f"{version:020d}"


def commit_path(table_root: str, version: int) -> str:
    """The path of a version's commit. Protocol: "Delta Log Entries"."""
    return join(log_directory(table_root), f"{version:020d}.json")


def join(directory: str, name: str) -> str:
    """The path of a decoded relative name below a directory."""
    return directory.rstrip("/") + "/" + name


def log_directory(table_root: str) -> str:
    return join(table_root, LOG_DIRECTORY)


def is_absolute(path: str) -> bool:
    """True for a path with a scheme or a leading slash."""
    return path.startswith("/") or _SCHEME.match(path) is not None


def encode_path(path: str) -> str:
    """The URI of a decoded path, as the log stores it. Protocol: "Add File and Remove File".

    It escapes the characters that the reference escapes, and all that are not ASCII.
    """
    return quote(path, safe=_UNESCAPED)


def path_key(path: str) -> str:
    """The key that identifies the file of a file action: one text for all spellings of its ``path``.

    The key is percent-decoded and has no redundant segments (``.``, ``..``, ``//``). ``/a``, ``file:/a`` and
    ``file:///a`` have one key, and the case of schemes and hosts does not count. A relative path stays relative: as in
    the reference, it never names the same file as an absolute one. A key is not for opening files: see
    ``resolve_data_path``.

    Protocol: "Action Reconciliation", "Add File and Remove File".
    """
    if _NON_CANONICAL.search(path) is None:
        return path
    root, rest = _split_root(path)
    parts: list[str] = []
    for part in unquote(rest).split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return root + "/".join(parts)


def _split_root(path: str) -> tuple[str, str]:
    """The root of a path (empty for a relative one), and the rest, still encoded."""
    match = _SCHEME.match(path)
    if match is None:
        return "/" if path.startswith("/") else "", path
    scheme, rest = match[1].lower(), path[match.end() - 1 :]
    authority = ""
    if rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
    if scheme == "file" and not authority:
        return "/", rest
    user, at, host = authority.rpartition("@")
    return f"{scheme}://{user}{at}{host.lower()}/", rest


def resolve_data_path(table_root: str, path: str) -> str:
    """Turn the ``path`` of a file action into one that the storage can open.

    The log's path is a URI: it is percent-decoded exactly once, here. A
    relative path is below the table, an absolute one is used as it is. The
    storage decides whether it may be opened.

    Raises: ProtocolError for a path with a segment ``..``.
    Protocol: "Add File and Remove File".
    """
    decoded = unquote(path)
    if ".." in decoded:
        _refuse_upwards(table_root, decoded)
    return decoded if is_absolute(path) else join(table_root, path_key(path))


def resolve_below(table_root: str, name: str) -> str:
    """The path of a relative name below the table; the name is not percent-encoded.

    Raises: ProtocolError for a name with a segment ``..``.
    """
    if ".." in name:
        _refuse_upwards(table_root, name)
    return join(table_root, name)


def resolve_sidecar_path(table_root: str, path: str) -> str:
    """The path of a sidecar file. It is always in ``_delta_log/_sidecars``: only the file name of ``path`` counts.

    Raises: ProtocolError for a path without a file name.
    Protocol: "Sidecar Files" (they always reside there), "Sidecar File Information".
    """
    name = unquote(path).rsplit("/", 1)[-1]
    if name in ("", ".", ".."):
        raise ProtocolError(
            f"a checkpoint of the table '{table_root}' names the sidecar {path!r}, which has no file name. Delete the "
            "checkpoint if the log still has all its commits; else restore it.",
            code="DELTA_CORRUPT_CHECKPOINT",
            table=table_root,
        )
    return join(join(log_directory(table_root), SIDECAR_DIRECTORY), name)


def _refuse_upwards(table_root: str, decoded: str) -> None:
    """Refuse a segment ``..``; a name such as ``a..b`` is allowed."""
    if ".." in decoded.split("/"):
        raise ProtocolError(
            f"the log of the table '{table_root}' names the file {decoded!r}. It was not opened: a path with '..' "
            "could lead anywhere, and no writer makes one. Remove it from the log with FSCK REPAIR TABLE, a command of "
            "Databricks.",
            table=table_root,
            path=decoded,
        )
