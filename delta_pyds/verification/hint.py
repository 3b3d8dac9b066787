"""``_last_checkpoint``, compared with the checkpoint that it points to.

Protocol: "Last Checkpoint File".
"""

from __future__ import annotations

from collections.abc import Mapping

from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.log.last_checkpoint import LastCheckpointHint, parse_last_checkpoint
from delta_pyds.protocol.actions import SingleAction
from delta_pyds.protocol.foreign_json import InvalidJSONError, convert_json
from delta_pyds.protocol.paths import LAST_CHECKPOINT, join, log_directory
from delta_pyds.storage.base import Storage
from delta_pyds.verification.checkpoint_content import CheckpointContent
from delta_pyds.verification.report import Findings


def check_hint(
    storage: Storage,
    table_root: str,
    contents: Mapping[int, list[tuple[CheckpointContent, int]]],
    last_version: int,
    findings: Findings,
) -> None:
    """Check the hint. ``contents``: every complete checkpoint by version, with its number of adds."""
    path = join(log_directory(table_root), LAST_CHECKPOINT)
    try:
        data = storage.read(path)
    except FileNotFoundInStorageError:
        return
    except Exception as e:
        findings.warning("hint.unreadable", path, f"it cannot be read: {e}.")
        return
    try:
        hint = parse_last_checkpoint(data)
    except ValueError as e:
        findings.warning("hint.unreadable", path, f"it is damaged, so readers ignore it and list the log: {e}.")
        return
    if hint.version > last_version:
        findings.error(
            "hint.version", path, f"it points to version {hint.version}, but the last one is {last_version}."
        )
        return
    candidates = contents.get(hint.version, [])
    if not candidates:
        findings.error("hint.version", path, f"there is no complete checkpoint of version {hint.version}.")
        return
    newer = max(contents)
    if newer > hint.version:
        findings.warning(
            "hint.stale", path, f"it points to version {hint.version}, but there is a checkpoint of version {newer}."
        )
    problems = [_problems(hint, content, adds) for content, adds in candidates]
    if all(problems):
        for problem in problems[0]:
            findings.warning("hint.content", path, problem)


def _problems(hint: LastCheckpointHint, content: CheckpointContent, adds: int) -> list[str]:
    found = []
    files = content.files.files
    if hint.parts is not None and hint.parts != len(files):
        found.append(f"it states {hint.parts} parts, but the checkpoint has {len(files)}.")
    if hint.size is not None and hint.size >= 0 and hint.size != content.num_actions:
        found.append(f"it states {hint.size} actions, but the checkpoint has {content.num_actions}.")
    if hint.num_of_add_files is not None and hint.num_of_add_files != adds:
        found.append(f"it states {hint.num_of_add_files} files, but the checkpoint has {adds}.")
    size = sum(f.size_bytes for f in files)
    sidecars = sum(s.size_in_bytes for s in content.actions.sidecars)
    if hint.size_in_bytes is not None and hint.size_in_bytes not in (size, size + sidecars):
        found.append(f"it states {hint.size_in_bytes} bytes, but the checkpoint has {size + sidecars}.")
    v2 = hint.v2_checkpoint
    if v2 is None:
        return found
    if v2.path is not None and v2.path != files[0].path.rsplit("/", 1)[-1]:
        found.append(f"it names {v2.path}, but the checkpoint is {files[0].path}.")
    if v2.size_in_bytes is not None and v2.size_in_bytes != files[0].size_bytes:
        found.append(f"it states {v2.size_in_bytes} bytes for {v2.path}, but it has {files[0].size_bytes}.")
    if v2.sidecar_files is not None:
        named = sorted(str(s.get("path")) for s in v2.sidecar_files)
        if named != sorted(s.path for s in content.actions.sidecars):
            found.append("it names other sidecars than the checkpoint.")
    if v2.non_file_actions is not None:
        found += _non_file_actions(v2.non_file_actions, content)
    return found


def _non_file_actions(listed: list[dict[str, object]], content: CheckpointContent) -> list[str]:
    try:
        actions = convert_json(listed, list[SingleAction])
    except InvalidJSONError as e:
        return [f"its nonFileActions cannot be parsed: {e}."]
    own = content.actions
    pairs = (
        ("protocol", [a.protocol for a in actions if a.protocol], own.protocols),
        ("metaData", [a.meta_data.id for a in actions if a.meta_data], [m.id for m in own.metadata]),
        ("txn", sorted(a.txn.app_id for a in actions if a.txn), sorted(t.app_id for t in own.transactions)),
        (
            "domainMetadata",
            sorted(a.domain_metadata.domain for a in actions if a.domain_metadata),
            sorted(d.domain for d in own.domains),
        ),
    )
    return [f"its nonFileActions and the checkpoint differ in {kind}." for kind, one, other in pairs if one != other]
