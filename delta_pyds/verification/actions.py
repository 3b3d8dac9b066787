"""Lines of the log as actions, checked field by field against the protocol's schemas.

Invariant: this parser is strict where the reader is tolerant. A required field that is missing, and a field of another
type, is a finding.

Protocol: "Actions".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_pyds.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from delta_pyds.protocol.foreign_json import InvalidJSONError, convert_json, decode_json, short
from delta_pyds.verification.report import Findings

_LONG = 1 << 63
_INT = 1 << 31

# name: (type, required)
Fields = Mapping[str, tuple[str, bool]]

_VECTOR: Fields = {
    "storageType": ("string", True),
    "pathOrInlineDv": ("string", True),
    "offset": ("int", False),
    "sizeInBytes": ("int", True),
    "cardinality": ("long", True),
}
_FORMAT: Fields = {"provider": ("string", True), "options": ("map", False)}
_FIELDS: dict[str, Fields] = {
    "add": {
        "path": ("string", True),
        "partitionValues": ("map", True),
        "size": ("long", True),
        "modificationTime": ("long", True),
        "dataChange": ("boolean", True),
        "stats": ("string", False),
        "tags": ("map", False),
        "deletionVector": ("vector", False),
        "baseRowId": ("long", False),
        "defaultRowCommitVersion": ("long", False),
        "clusteringProvider": ("string", False),
    },
    "remove": {
        "path": ("string", True),
        "deletionTimestamp": ("long", False),
        "dataChange": ("boolean", True),
        "extendedFileMetadata": ("boolean", False),
        "partitionValues": ("map", False),
        "size": ("long", False),
        "stats": ("string", False),
        "tags": ("map", False),
        "deletionVector": ("vector", False),
        "baseRowId": ("long", False),
        "defaultRowCommitVersion": ("long", False),
    },
    "metaData": {
        "id": ("string", True),
        "name": ("string", False),
        "description": ("string", False),
        "format": ("format", True),
        "schemaString": ("string", True),
        "partitionColumns": ("strings", True),
        "createdTime": ("long", False),
        "configuration": ("map", True),
    },
    "protocol": {
        "minReaderVersion": ("int", True),
        "minWriterVersion": ("int", True),
        "readerFeatures": ("strings", False),
        "writerFeatures": ("strings", False),
    },
    "txn": {"appId": ("string", True), "version": ("long", True), "lastUpdated": ("long", False)},
    "domainMetadata": {"domain": ("string", True), "configuration": ("string", True), "removed": ("boolean", True)},
    "cdc": {
        "path": ("string", True),
        "partitionValues": ("map", True),
        "size": ("long", True),
        "dataChange": ("boolean", True),
        "tags": ("map", False),
    },
    "sidecar": {
        "path": ("string", True),
        "sizeInBytes": ("long", True),
        "modificationTime": ("long", True),
        "tags": ("map", False),
    },
    "checkpointMetadata": {"version": ("long", True), "tags": ("map", False)},
}
_CLASSES: dict[str, type[Action]] = {
    "add": AddFile,
    "remove": RemoveFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "cdc": AddCDCFile,
    "sidecar": Sidecar,
    "checkpointMetadata": CheckpointMetadata,
}
# fields that the protocol's text omits and no reader needs
_BARELY_REQUIRED = {("domainMetadata", "configuration"), ("metaData", "configuration"), ("add", "modificationTime")}


@dataclass
class Actions:
    """The actions of one file of the log, in its order, by kind.

    ``commit_infos``: unparsed, because they are free-form. ``first_kind``: the kind of the first line. ``damaged``:
    an important line could not be parsed.
    """

    adds: list[AddFile] = field(default_factory=list)
    removes: list[RemoveFile] = field(default_factory=list)
    metadata: list[Metadata] = field(default_factory=list)
    protocols: list[Protocol] = field(default_factory=list)
    transactions: list[SetTransaction] = field(default_factory=list)
    domains: list[DomainMetadata] = field(default_factory=list)
    cdcs: list[AddCDCFile] = field(default_factory=list)
    sidecars: list[Sidecar] = field(default_factory=list)
    checkpoint_metadata: list[CheckpointMetadata] = field(default_factory=list)
    commit_infos: list[dict[str, Any]] = field(default_factory=list)
    first_kind: str | None = None
    damaged: bool = False

    def lists(self) -> dict[str, list[Any]]:
        """The lists, by the name of their actions in the log."""
        return {
            "add": self.adds,
            "remove": self.removes,
            "metaData": self.metadata,
            "protocol": self.protocols,
            "txn": self.transactions,
            "domainMetadata": self.domains,
            "cdc": self.cdcs,
            "sidecar": self.sidecars,
            "checkpointMetadata": self.checkpoint_metadata,
            "commitInfo": self.commit_infos,
        }


def parse_actions(data: bytes, where: str, findings: Findings, *, prefix: str) -> Actions:
    """Read a commit, a compaction or a JSON checkpoint; ``prefix`` begins the rules' names."""
    actions = Actions()
    lists = actions.lists()
    for number, line in _lines(data):
        try:
            value = decode_json(line)
        except InvalidJSONError as e:
            findings.error(f"{prefix}.unreadable", where, f"line {number} is not JSON: {e}.")
            actions.damaged = True
            continue
        if not isinstance(value, dict):
            findings.error(f"{prefix}.unreadable", where, f"line {number} is not a JSON object.")
            actions.damaged = True
            continue
        present = [kind for kind, body in value.items() if body is not None]
        known = [kind for kind in present if kind in lists]
        if len(known) > 1:
            findings.error(
                f"{prefix}.many-actions", where, f"line {number} holds {', '.join(known)}, but must hold one action."
            )
        if not present:
            findings.error(f"{prefix}.no-action", where, f"line {number} holds no action.")
        if actions.first_kind is None and present:
            actions.first_kind = present[0]
        for kind in known:
            action = typed_action(kind, value[kind], f"line {number} of {where}", findings, prefix=prefix)
            if action is None:
                actions.damaged = True
            else:
                lists[kind].append(action)
    return actions


def typed_action(kind: str, body: Any, where: str, findings: Findings, *, prefix: str) -> Any:
    """The action, or None if it cannot be parsed. Each problem is a finding."""
    if kind == "commitInfo":
        if isinstance(body, dict):
            return body
        findings.error(f"{prefix}.field", where, "its commitInfo is not an object.")
        return {}
    problems = list(_problems(kind, body, _FIELDS[kind]))
    for name, problem in problems:
        report = findings.warning if (kind, name) in _BARELY_REQUIRED else findings.error
        report(f"{prefix}.field", where, f"{kind}.{name} {problem}." if name else f"{kind} {problem}.")
    try:
        return convert_json(body, _CLASSES[kind])
    except InvalidJSONError as e:
        if not problems:
            findings.error(f"{prefix}.field", where, f"{kind} cannot be parsed: {e}.")
        return None


def _problems(kind: str, body: Any, fields: Fields) -> Iterator[tuple[str, str]]:
    if not isinstance(body, dict):
        yield "", f"is {type(body).__name__}, not an object"
        return
    for name, (wanted, required) in fields.items():
        value = body.get(name)
        if value is None:
            if required:
                yield name, "is missing"
            continue
        if wanted == "vector":
            for inner, problem in _problems(kind, value, _VECTOR):
                yield f"deletionVector.{inner}", problem
        elif wanted == "format":
            for inner, problem in _problems(kind, value, _FORMAT):
                yield f"format.{inner}", problem
        elif not _is(value, wanted):
            yield name, f"is {short(value)}, but must be of type {wanted}"


def _is(value: Any, wanted: str) -> bool:
    if wanted == "string":
        return isinstance(value, str)
    if wanted == "boolean":
        return isinstance(value, bool)
    if wanted in ("long", "int"):
        limit = _LONG if wanted == "long" else _INT
        return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
    if wanted == "strings":
        return isinstance(value, list) and all(isinstance(v, str) for v in value)
    return isinstance(value, dict) and all(v is None or isinstance(v, str) for v in value.values())


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, line
