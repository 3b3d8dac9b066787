"""File actions of a commit, compared with the table: keys, paths, partition values, statistics, vectors, row ids.

Protocol: "Add File and Remove File", "Deletion Vectors", "Writer Requirements for Row Tracking", "Clustered Table".
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import msgspec

from delta_pyds.errors import DeltaError, ProtocolError
from delta_pyds.protocol.actions import (
    CLUSTERING_DOMAIN,
    ROW_TRACKING_DOMAIN,
    AddFile,
    DomainMetadata,
    RemoveFile,
    file_key,
)
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.foreign_json import InvalidJSONError, decode_json
from delta_pyds.protocol.partition_values import parse_partition_value
from delta_pyds.protocol.paths import is_absolute, path_key, resolve_data_path
from delta_pyds.verification.actions import Actions
from delta_pyds.verification.report import VersionFindings
from delta_pyds.verification.row_tracking import RowTrackingRules
from delta_pyds.verification.state import TableState, num_records
from delta_pyds.verification.values import leaves, parse_statistics
from delta_pyds.verification.view import TableView, fields_of

_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_CLUSTERING_COLUMNS = 4

# names files of deletion vectors, for vacuums that do not know deletion vectors
_VECTOR_TOMBSTONES = "Deletion Vector Tombstones"


class _Clustering(msgspec.Struct, rename="camel"):
    clustering_columns: list[str | list[str]]


class FileActionRules:
    """The rules for the file actions and the domains of one commit."""

    def __init__(self) -> None:
        self.row_tracking = RowTrackingRules()

    def check(self, actions: Actions, state: TableState, view: TableView, findings: VersionFindings) -> None:
        removed = {file_key(r) for r in actions.removes}
        no_data_files = bool(actions.commit_infos) and actions.commit_infos[0].get("operation") == _VECTOR_TOMBSTONES
        for r in actions.removes:
            self._check_remove(r, state, findings, no_data_file=no_data_files and r.path.endswith(".bin"))
        for a in actions.adds:
            self._check_add(a, removed, state, view, findings)
        self.row_tracking.check(actions, state, view, findings)

    # --- adds

    def _check_add(
        self,
        add: AddFile,
        removed: set[tuple[str, str | None]],
        state: TableState,
        view: TableView,
        findings: VersionFindings,
    ) -> None:
        key = file_key(add)
        live = state.live.get(key)
        if live is not None and live.path != add.path and key not in removed:
            findings.error(
                "log.file-twice",
                f"{live.path} and {add.path} are one file: its rows count twice where paths are compared as text.",
            )
        elif live is not None and add.data_change:
            findings.warning(
                "commit.add-of-live-file", f"{add.path} is in the table already, and is added with dataChange true."
            )
        path = key[0]
        if path in state.live_vectors:
            other = (path, state.live_vectors[path])
            if other != key and other not in removed:
                findings.error(
                    "commit.path-live-twice", f"{add.path} is in the table with another deletion vector already."
                )
        if add.size < 0:
            findings.error("commit.size", f"{add.path} has the size {add.size}.")
        self._check_path(add.path, findings)
        self.check_partition_values(add, view, findings)
        self._check_statistics(add, view, findings)
        if add.deletion_vector is not None:
            self._check_vector(add, add.deletion_vector, state, view, findings)

    def _check_path(self, path: str, findings: VersionFindings) -> None:
        rule = "commit.path"
        if not path:
            findings.error(rule, "the path of a file is empty.")
            return
        if _NO_ESCAPE.search(path):
            findings.error(rule, f"{path} has a percent sign that does not begin an escape.")
            return
        try:
            decoded = unquote_to_bytes(path).decode("utf-8")
        except UnicodeDecodeError:
            findings.error(rule, f"{path} does not decode to UTF-8.")
            return
        if ".." in decoded.split("/"):
            findings.error(rule, f"{path} leads out of the table by .., so delta_pyds does not open it.")
            return
        if is_absolute(path):
            return
        directories = path_key(path).split("/")[:-1]
        hidden = [p for p in directories if p.startswith(("_", ".")) and "=" not in p and p != "_change_data"]
        if hidden:
            findings.warning(rule, f"{path} lies in the hidden directory {hidden[0]}.")

    def check_partition_values(self, file: AddFile | RemoveFile, view: TableView, findings: VersionFindings) -> None:
        """Check that each partition column has a value of its type, and that there are no other values."""
        if view.schema is None:
            return
        values = file.partition_values or {}
        fields = {f.physical_name: f for f in view.partition_fields}
        if values.keys() != fields.keys():
            findings.error(
                "commit.partition-keys",
                f"{file.path} has values for ({', '.join(sorted(values))}), "
                f"but the partition columns are ({', '.join(sorted(fields))}).",
            )
        for name in values.keys() & fields.keys():
            try:
                value = parse_partition_value(values[name], fields[name].data_type)
            except DeltaError as e:
                findings.error("commit.partition-value", f"{file.path}, column {name}: {e.message}")
                continue
            if value is None and not fields[name].nullable:
                findings.error("commit.partition-value", f"{file.path}: the NOT NULL column {name} is null.")

    def _check_statistics(self, add: AddFile, view: TableView, findings: VersionFindings) -> None:
        rule = "commit.statistics"
        count = num_records(add)
        if add.stats is not None and count is None:
            tree = parse_statistics(add.stats)
            if tree is None:
                findings.error(rule, f"the statistics of {add.path} are not a JSON object.")
            elif tree.get("numRecords") is not None:
                findings.error(rule, f"numRecords of {add.path} is {tree['numRecords']!r}.")
        if count is not None and count < 0:
            findings.error(rule, f"the statistics of {add.path} count {count} rows.")
        if count is None:
            if add.deletion_vector is not None:
                findings.error(rule, f"{add.path} has a deletion vector, but no numRecords.")
            elif view.properties.iceberg_compat is not None:
                findings.error(rule, f"{add.path} has no numRecords, which Iceberg compatibility needs.")

    def _check_vector(
        self,
        add: AddFile,
        vector: DeletionVectorDescriptor,
        state: TableState,
        view: TableView,
        findings: VersionFindings,
    ) -> None:
        rule = "commit.deletion-vector"
        if not view.supports(Feature.DELETION_VECTORS):
            findings.error(
                "feature.missing", f"{add.path} has a deletion vector, but the protocol does not support them."
            )
        elif not view.properties.deletion_vectors and file_key(add) not in state.live:
            findings.warning(rule, f"{add.path} has a new deletion vector, but they are not enabled.")
        for problem in _vector_problems(vector):
            findings.error(rule, f"{add.path}: {problem}")
        count = num_records(add)
        if count is not None and vector.cardinality > count:
            findings.error(rule, f"the deletion vector of {add.path} deletes {vector.cardinality} of {count} rows.")

    # --- removes

    def _check_remove(
        self, remove: RemoveFile, state: TableState, findings: VersionFindings, *, no_data_file: bool
    ) -> None:
        live = state.live.get(file_key(remove))
        if live is None and not no_data_file:
            findings.warning("commit.remove-of-unknown-file", f"{remove.path} is removed, but is not in the table.")
        self._check_path(remove.path, findings)
        if remove.extended_file_metadata:
            for name, value in (("partitionValues", remove.partition_values), ("size", remove.size)):
                if value is None:
                    findings.error(
                        "commit.remove-fields", f"the remove of {remove.path} has extendedFileMetadata, but no {name}."
                    )
        if live is None:
            return
        if live.path != remove.path:
            findings.warning(
                "commit.remove-path",
                f"{live.path} is removed as {remove.path}, which removes nothing where paths are compared as text.",
            )
        if remove.size is not None and remove.size != live.size:
            findings.warning(
                "commit.remove-fields", f"{remove.path} is removed with the size {remove.size}, but has {live.size}."
            )
        values = remove.partition_values if remove.extended_file_metadata else None
        if values is not None and _plain(values) != _plain(live.partition_values):
            findings.warning(
                "commit.remove-fields", f"{remove.path} is removed with other partition values than it has."
            )

    def check_live_paths(self, state: TableState, table_root: str, findings: VersionFindings) -> None:
        """Check that no data file is in the table twice under different spellings of its path."""
        spelled: dict[str, str] = {}
        for add in state.live.values():
            try:
                path = resolve_data_path(table_root, add.path)
            except ProtocolError:
                continue  # an invalid path is a finding of its commit and of the file
            other = spelled.setdefault(path, add.path)
            if other is not add.path and other != add.path:
                findings.error("log.file-twice", f"{other} and {add.path} are one file: its rows count twice.")

    # --- domains

    def check_clustering_statistics(self, state: TableState, findings: VersionFindings) -> None:
        """Check that every file has statistics of the clustering columns."""
        domain = state.domains.get(CLUSTERING_DOMAIN)
        if domain is None or domain.removed or not state.view.supports(Feature.CLUSTERING):
            return
        paths = clustering_paths(domain) or []
        for add in state.live.values() if paths else ():
            tree = parse_statistics(add.stats or "") or {}
            known = {path for kind in ("minValues", "maxValues", "nullCount") for path, _ in leaves(tree.get(kind))}
            missing = [".".join(p) for p in paths if p not in known]
            if missing:
                findings.error("clustering.statistics", f"{add.path} has no statistics of {', '.join(missing)}.")

    def check_domain(self, domain: DomainMetadata, view: TableView, findings: VersionFindings) -> None:
        """Check that system domains are known and well-formed."""
        if not domain.domain.startswith("delta.") or domain.removed:
            return
        if domain.domain == CLUSTERING_DOMAIN:
            self._check_clustering(domain, view, findings)
        elif domain.domain != ROW_TRACKING_DOMAIN:
            findings.warning("domain.unknown", f"the system domain {domain.domain} is unknown to delta_pyds.")

    def _check_clustering(self, domain: DomainMetadata, view: TableView, findings: VersionFindings) -> None:
        rule = "clustering.domain"
        if not view.supports(Feature.CLUSTERING):
            findings.error(
                "feature.missing", "there are clustering columns, but the protocol does not support clustering."
            )
        paths = clustering_paths(domain)
        if paths is None:
            findings.error(rule, f"the clustering columns cannot be read: {domain.configuration}.")
            return
        known = {at.physical for at in fields_of(view.columns) if at.in_struct}
        for path in paths:
            if path not in known:
                findings.error(rule, f"the clustering column {path!r} does not exist.")
        if len(paths) > _MAX_CLUSTERING_COLUMNS:
            findings.warning(rule, f"there are {len(paths)} clustering columns.")
        if paths and view.partition_fields:
            findings.error(rule, "the table is both clustered and partitioned.")


def clustering_paths(domain: DomainMetadata) -> list[tuple[str, ...]] | None:
    """The physical paths of the clustering columns; None if they cannot be read.

    The protocol's text has a list of names, the reference writes a list of paths.
    """
    try:
        columns = decode_json(domain.configuration, _Clustering).clustering_columns
    except InvalidJSONError:
        return None
    return [tuple(c) if isinstance(c, list) else (c,) for c in columns]


def _plain(values: dict[str, str | None] | None) -> dict[str, str]:
    """The values without nulls and empty texts: the reference leaves nulls out of a remove."""
    return {k: v for k, v in (values or {}).items() if v}


def _vector_problems(vector: DeletionVectorDescriptor) -> list[str]:
    found = []
    if vector.storage_type not in ("u", "i", "p"):
        found.append(f"the storage type of its deletion vector is {vector.storage_type!r}.")
    if vector.storage_type == "i" and vector.offset is not None:
        found.append("its deletion vector is inline, but has an offset.")
    if vector.size_in_bytes < 0 or vector.cardinality < 0 or (vector.offset or 0) < 0:
        found.append("its deletion vector has a negative size, offset or cardinality.")
    try:
        if vector.storage_type == "u":
            vector.relative_path()
        elif vector.storage_type == "i":
            vector.inline_bytes()
    except DeltaError as e:
        found.append(e.message)
    return found
