"""Checkpoints, compared with the replay of the commits that they cover.

Protocol: "Checkpoints", "Checkpoint Specs", "Action Reconciliation".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from delta_pyds.log.segment import CheckpointFiles
from delta_pyds.protocol.actions import AddFile, Metadata, Protocol, RemoveFile, file_key
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json, short
from delta_pyds.protocol.schema import DOUBLE, FLOAT, TIMESTAMP, DataType
from delta_pyds.protocol.temporal import lacks_zone
from delta_pyds.storage.base import Storage
from delta_pyds.verification.actions import Actions
from delta_pyds.verification.checkpoint_content import CheckpointAdd, CheckpointContent, CheckpointReader
from delta_pyds.verification.report import Findings
from delta_pyds.verification.state import TableState
from delta_pyds.verification.values import leaves, parse_statistics, same, to_json, typed
from delta_pyds.verification.view import TableView

_FIELDS = (
    ("partitionValues", "partition_values"),
    ("size", "size"),
    ("modificationTime", "modification_time"),
    ("deletionVector", "deletion_vector"),
    ("baseRowId", "base_row_id"),
    ("defaultRowCommitVersion", "default_row_commit_version"),
    ("clusteringProvider", "clustering_provider"),
    ("tags", "tags"),
)


def seed_state(
    storage: Storage, table_root: str, files: CheckpointFiles, findings: Findings
) -> tuple[TableState | None, CheckpointContent]:
    """The state of a checkpoint as the start of the replay; None if it cannot be read.

    The checkpoint is checked for contradictions in itself.
    """
    reader = CheckpointReader(storage, table_root, files, findings)
    state = TableState()
    state.version = files.version
    state.all_tombstones_known = False
    content = reader.content
    for item in reader.read():
        if isinstance(item, RemoveFile):
            state.tombstones[file_key(item)] = item
            continue
        add = item.add
        if file_key(add) in state.live:
            findings.error("checkpoint.duplicate-key", reader.where, f"{add.path} is in the checkpoint more than once.")
        if add.stats is None and item.parsed:
            add = msgspec.structs.replace(add, stats=to_json(item.parsed, content.kinds))
        if file_key(add) in state.tombstones:
            findings.error("checkpoint.tombstones", reader.where, f"{add.path} is both in the table and removed.")
        state.enter(add)
    actions = content.actions
    state.protocol = actions.protocols[0] if actions.protocols else None
    state.metadata = actions.metadata[0] if actions.metadata else None
    state.transactions = {t.app_id: t for t in actions.transactions}
    state.domains = {d.domain: d for d in actions.domains}
    if not reader.damaged:
        _check_shape(content, state.view, reader.where, findings)
    damaged = reader.damaged or state.protocol is None or state.metadata is None
    return (None if damaged else state), content


def check_checkpoint(
    storage: Storage, table_root: str, files: CheckpointFiles, state: TableState, findings: Findings
) -> tuple[CheckpointContent, int]:
    """Compare a checkpoint with the state at its version. Returns: its content and its number of adds."""
    reader = CheckpointReader(storage, table_root, files, findings)
    comparison = _Comparison(reader, state, findings)
    for item in reader.read():
        if isinstance(item, RemoveFile):
            comparison.remove(item)
        else:
            comparison.add(item)
    if not reader.damaged:
        comparison.finish()
    return reader.content, comparison.num_adds


def _check_shape(content: CheckpointContent, view: TableView, where: str, findings: Findings) -> None:
    """Check that the content fits the kind of the checkpoint, and that it has one protocol and one metaData action."""
    actions, kind = content.actions, content.files.kind
    for name, count in (("protocol", len(actions.protocols)), ("metaData", len(actions.metadata))):
        if count != 1:
            findings.error("checkpoint.definition", where, f"it holds {count} {name} actions, but must hold one.")
    for name, keys in (
        ("txn", [t.app_id for t in actions.transactions]),
        ("domainMetadata", [d.domain for d in actions.domains]),
    ):
        if len(set(keys)) != len(keys):
            findings.error("checkpoint.duplicate-key", where, f"it holds several {name} actions for one key.")
    found = [m.version for m in actions.checkpoint_metadata]
    is_v2 = bool(found)
    if kind.startswith("v2") and not is_v2:
        findings.error("checkpoint.metadata", where, "it has the name of a V2 checkpoint but no checkpointMetadata.")
    if is_v2 and (len(found) > 1 or found[0] != content.files.version):
        findings.error("checkpoint.metadata", where, f"its checkpointMetadata says version {found}.")
    if kind == "multipart" and is_v2:
        findings.error("checkpoint.metadata", where, "it is multi-part and holds checkpointMetadata.")
    if actions.sidecars and not is_v2:
        findings.error("checkpoint.metadata", where, "it refers to sidecars but holds no checkpointMetadata.")
    supported = view.supports(Feature.V2_CHECKPOINT)
    if is_v2 and not supported:
        findings.error(
            "feature.missing", where, "it is a V2 checkpoint, but the protocol does not support v2Checkpoint."
        )
    if kind == "multipart" and supported:
        findings.error("checkpoint.multi-part", where, "it is multi-part, which the feature v2Checkpoint forbids.")


class _Comparison:
    def __init__(self, reader: CheckpointReader, state: TableState, findings: Findings) -> None:
        self._reader = reader
        self._state = state
        self._findings = findings
        self._seen: set[Any] = set()
        self._removed: set[Any] = set()
        self._types = {f.physical_name: f.data_type for f in state.view.partition_fields}
        self._stats_lost = 0

    @property
    def num_adds(self) -> int:
        return len(self._seen)

    def _error(self, rule: str, message: str) -> None:
        self._findings.error(rule, self._reader.where, message)

    def add(self, item: CheckpointAdd) -> None:
        add, key = item.add, file_key(item.add)
        if key in self._seen:
            self._error("checkpoint.duplicate-key", f"{add.path} is in the checkpoint more than once.")
            return
        self._seen.add(key)
        live = self._state.live.get(key)
        if live is None:
            self._error("checkpoint.files", f"{add.path} is in the checkpoint, but not in the table by replay.")
            return
        for name, attribute in _FIELDS:
            recorded, replayed = getattr(add, attribute), getattr(live, attribute)
            if recorded != replayed and _plain(name, recorded) != _plain(name, replayed):
                report = self._findings.warning if name == "tags" else self._findings.error
                report(
                    "checkpoint.file-fields",
                    self._reader.where,
                    f"{add.path} has {name} {short(recorded)} in the checkpoint, but {short(replayed)} by replay.",
                )
        self._statistics(item, live)
        if item.partition_values is not None:
            self._partition_values(item, live)

    def _statistics(self, item: CheckpointAdd, live: AddFile) -> None:
        recorded = item.add.stats
        if live.stats is None:
            if recorded is not None or item.parsed:
                self._error(
                    "checkpoint.statistics", f"{live.path} has statistics in the checkpoint, but none by replay."
                )
            return
        if recorded is None and not item.parsed:
            self._stats_lost += 1
            return
        if recorded is not None and recorded != live.stats:
            one, other = parse_statistics(recorded), parse_statistics(live.stats)
            if one is None or other is None or dict(leaves(one)) != dict(leaves(other)):
                self._error(
                    "checkpoint.statistics", f"{live.path} has other statistics in the checkpoint than by replay."
                )
                return
        if item.parsed:
            self._parsed_statistics(item.parsed, live)

    def _parsed_statistics(self, parsed: dict[tuple[str, ...], Any], live: AddFile) -> None:
        tree = parse_statistics(live.stats or "")
        replayed = dict(leaves(tree or {}))
        for path, value in parsed.items():
            wanted = replayed.get(path)
            if wanted is None or not same(wanted, value):
                self._error(
                    "checkpoint.statistics",
                    (
                        f"{live.path} has {'.'.join(path)} {short(value)} in stats_parsed, "
                        f"but {short(wanted)} by replay."
                    ),
                )
                return
        lost = [p for p in replayed if p[0] in ("numRecords",) and p not in parsed]
        if lost:
            self._error("checkpoint.statistics", f"{live.path} has no {'.'.join(lost[0])} in stats_parsed.")

    def _partition_values(self, item: CheckpointAdd, live: AddFile) -> None:
        parsed = item.partition_values or {}
        for name, text in (live.partition_values or {}).items():
            data_type, value = self._types.get(name), parsed.get(name)
            if data_type is None:
                continue
            if data_type == TIMESTAMP and text and lacks_zone(text):
                continue  # its instant depends on the time zone of the writer's session, which is unknown
            try:
                wanted = _of_text(text, data_type) if text else None
            except ValueError:
                # an invalid text is a finding of its commit; binary values have no other form
                continue
            if wanted is None and value is None:
                continue
            if wanted is None or value is None or not same(wanted, value):
                self._error(
                    "checkpoint.partition-values",
                    f"{live.path} has {name} {short(value)} in partitionValues_parsed, but '{text}' by replay.",
                )

    def remove(self, remove: RemoveFile) -> None:
        key = file_key(remove)
        if key in self._removed:
            self._error("checkpoint.duplicate-key", f"the remove of {remove.path} is in the checkpoint more than once.")
        self._removed.add(key)
        if key in self._state.live:
            self._error(
                "checkpoint.tombstones", f"{remove.path} is removed by the checkpoint, but is in the table by replay."
            )
            return
        known = self._state.tombstones.get(key)
        if known is None:
            if self._state.all_tombstones_known:
                self._error("checkpoint.tombstones", f"{remove.path} is removed by the checkpoint, but by no commit.")
            return
        if remove.deletion_timestamp != known.deletion_timestamp:
            self._error(
                "checkpoint.tombstones",
                (
                    f"{remove.path} was removed at {known.deletion_timestamp}, but the checkpoint "
                    f"says {remove.deletion_timestamp}."
                ),
            )
        if remove.stats is not None or remove.tags is not None:
            self._findings.warning(
                "checkpoint.tombstones", self._reader.where, f"the tombstone of {remove.path} has statistics or tags."
            )

    def finish(self) -> None:
        content, state = self._reader.content, self._state
        _check_shape(content, state.view, self._reader.where, self._findings)
        missing = state.live.keys() - self._seen
        for path, _ in sorted(missing, key=repr):
            self._error("checkpoint.files", f"{path} is in the table by replay, but not in the checkpoint.")
        configuration = state.view.properties
        if self._stats_lost and (configuration.checkpoint_stats_as_json or state.num_vectors):
            self._error("checkpoint.statistics", f"{self._stats_lost} files have lost their statistics.")
        self._check_tombstones()
        _compare_definition(content.actions, state, self._reader.where, self._findings)
        self._check_transactions(content.actions)
        self._check_domains(content.actions)

    def _check_tombstones(self) -> None:
        """Check that the checkpoint has all tombstones that had not expired."""
        written = self._reader.content.files.files[0].modification_time_ms
        kept_since = written - self._state.view.properties.deleted_file_retention_ms
        for key, remove in self._state.tombstones.items():
            if (remove.deletion_timestamp or 0) > kept_since and key not in self._removed:
                self._error(
                    "checkpoint.tombstones", f"the tombstone of {key[0]} is missing, although it has not expired."
                )

    def _check_transactions(self, actions: Actions) -> None:
        recorded = {t.app_id: t for t in actions.transactions}
        may_expire = self._state.view.properties.transaction_retention_ms is not None
        for app_id, t in self._state.transactions.items():
            found = recorded.pop(app_id, None)
            if found is None and not may_expire:
                self._error("checkpoint.transactions", f"the transaction of the application {app_id} is missing.")
            if found is not None and found != t:
                self._error(
                    "checkpoint.transactions",
                    f"the application {app_id} is at version {t.version}, not {found.version}.",
                )
        for app_id in recorded:
            self._error("checkpoint.transactions", f"the application {app_id} has no transaction by replay.")

    def _check_domains(self, actions: Actions) -> None:
        recorded = {d.domain: d.configuration for d in actions.domains if not d.removed}
        replayed = {d.domain: d.configuration for d in self._state.live_domains().values()}
        for name in sorted(recorded.keys() | replayed.keys()):
            if recorded.get(name) != replayed.get(name):
                self._error(
                    "checkpoint.domains",
                    f"the domain {name} is {short(recorded.get(name))} in the checkpoint, "
                    f"but {short(replayed.get(name))} by replay.",
                )


def _compare_definition(actions: Actions, state: TableState, where: str, findings: Findings) -> None:
    pairs: list[tuple[str, Any, Any]] = []
    if actions.protocols and state.protocol is not None:
        pairs.append(("protocol", actions.protocols[0], state.protocol))
    if actions.metadata and state.metadata is not None:
        pairs.append(("metaData", actions.metadata[0], state.metadata))
    for kind, recorded, replayed in pairs:
        for name in differences(recorded, replayed):
            findings.error("checkpoint.definition", where, f"its {kind} differs from the replayed one in {name}.")


def differences(recorded: Metadata | Protocol, replayed: Metadata | Protocol) -> list[str]:
    """The fields in which two actions differ. Absent, null and empty are equal, and features have no order."""
    found = []
    for attribute, name in _names(type(recorded)):
        one, other = getattr(recorded, attribute), getattr(replayed, attribute)
        if one == other or _plain(name, one) == _plain(name, other):
            continue
        if name == "schemaString" and _same_json(one, other):
            continue
        found.append(name)
    return found


@lru_cache(maxsize=4)
def _names(kind: type[Metadata] | type[Protocol]) -> tuple[tuple[str, str], ...]:
    """Attributes and their names in the log, cached because the lookup is slower than a comparison."""
    return tuple((f.name, f.encode_name) for f in msgspec.structs.fields(kind))


def _same_json(one: Any, other: Any) -> bool:
    try:
        return bool(decode_json(one) == decode_json(other))
    except (InvalidJSONError, TypeError):
        return False


def _plain(name: str, value: Any) -> Any:
    if name == "partitionValues":
        return {k: v or None for k, v in (value or {}).items()}
    if name in ("readerFeatures", "writerFeatures"):
        return None if value is None else sorted(value)
    if name == "format" and value is not None:
        return value.provider, value.options or None
    if name == "deletionVector" and value is not None:
        return value.unique_id, value.size_in_bytes, value.cardinality
    return value or None if isinstance(value, (dict, list, str)) else value


def _of_text(text: str, data_type: DataType) -> Any:
    """A partition value, which is text where statistics have a number. Raises: ValueError for an invalid value."""
    return float(text) if data_type in (FLOAT, DOUBLE) else typed(text, data_type)
