"""The actions that a transaction will commit, and the checks of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import islice

import msgspec

from delta_pyds.errors import DeltaError, ProtocolError
from delta_pyds.log.commit_reader import decode_commit
from delta_pyds.log.commit_writer import encode_commit
from delta_pyds.protocol.actions import (
    AddCDCFile,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    file_key,
)
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.paths import path_key
from delta_pyds.protocol.properties import CATALOG_PREFIXES
from delta_pyds.protocol.schema import StructType, display, parse_schema
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.definition.iceberg_rules import check_iceberg_table
from delta_pyds.table.transaction.adoption import dropped_features
from delta_pyds.table.transaction.row_counts import row_counts

_REMOVES_AT_ONCE = 10_000


class EncodedRemoves:
    """``remove`` actions as lines of the commit file: an overwrite may have a million of them.

    ``paths``: the keys of their paths (``path_key``).
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.change_data = False
        self._vectors: dict[str, str] = {}
        self._lines: list[bytes] = []

    def __len__(self) -> int:
        return len(self.paths)

    def extend(self, removes: Iterable[RemoveFile], *, table: str, now_ms: int) -> None:
        """Add removes, also from an iterator; no objects are kept in memory.

        Raises: ProtocolError for a path that is removed twice.
        """
        pending = iter(removes)
        while some := list(islice(pending, _REMOVES_AT_ONCE)):
            dated = []
            for remove in some:
                path, vector = file_key(remove)
                if path in self.paths:
                    raise _duplicate(table, remove.path, "removed twice")
                self.paths.add(path)
                if vector is not None:
                    self._vectors[path] = vector
                self.change_data |= remove.data_change
                dated.append(
                    msgspec.structs.replace(remove, deletion_timestamp=now_ms)
                    if remove.deletion_timestamp is None
                    else remove
                )
            self._lines.append(encode_commit(dated))

    def holds(self, key: tuple[str, str | None]) -> bool:
        """Whether the logical file with that path and deletion vector id is removed."""
        path, vector = key
        return path in self.paths and self._vectors.get(path) == vector

    def find(self, paths: Set[str]) -> dict[str, RemoveFile]:
        """The removes of these paths, decoded, by path key. ``paths``: path keys."""
        wanted = self.paths & paths
        found: dict[str, RemoveFile] = {}
        for lines in self._lines if wanted else ():
            found.update({key: r for r in _decoded(lines) if (key := path_key(r.path)) in wanted})
        return found

    def encoded(self, row_ids: dict[str, AddFile]) -> Iterator[bytes]:
        """The lines. ``row_ids``: row ids that another commit assigned to the files meanwhile, by path key."""
        stale = self.paths & row_ids.keys()
        for lines in self._lines:
            if not stale:
                yield lines
                continue
            yield encode_commit(
                msgspec.structs.replace(
                    r,
                    base_row_id=row_ids[key].base_row_id,
                    default_row_commit_version=row_ids[key].default_row_commit_version,
                )
                if (key := path_key(r.path)) in stale
                else r
                for r in _decoded(lines)
            )


def _decoded(lines: bytes) -> Iterator[RemoveFile]:
    for line in decode_commit(lines, "a commit in the making"):
        if line.remove is not None:
            yield line.remove


class Draft:
    """The actions of a transaction that has not been committed."""

    def __init__(self) -> None:
        self.metadata: Metadata | None = None
        self.protocol: Protocol | None = None
        self.dropped_feature: str | None = None
        self.domains: dict[str, DomainMetadata] = {}
        self.applications: dict[str, SetTransaction] = {}
        self.adds: list[AddFile] = []
        self.change_files: list[AddCDCFile] = []
        self.removes = EncodedRemoves()
        self.row_id_mark = -1

    def without_files(self) -> Draft:
        """The same draft without actions of files."""
        draft = Draft()
        draft.metadata, draft.protocol, draft.dropped_feature = self.metadata, self.protocol, self.dropped_feature
        draft.domains, draft.applications = self.domains, self.applications
        draft.row_id_mark = self.row_id_mark
        return draft

    @property
    def changes_data(self) -> bool:
        return self.removes.change_data or any(a.data_change for a in self.adds) or bool(self.change_files)

    @property
    def only_rearranges(self) -> bool:
        """Whether no file action changes data, and there are no other actions."""
        others = self.metadata, self.protocol, self.domains, self.applications
        return not self.changes_data and not any(others)

    def loses_columns(self, before: Metadata) -> bool:
        """Whether a column or nested field is dropped, gets another physical name, or has another type."""
        if self.metadata is None or self.metadata.schema_string == before.schema_string:
            return False
        return not _columns_of(before) <= _columns_of(self.metadata)


def _columns_of(metadata: Metadata) -> set[tuple[str, ...]]:
    """The physical path of each field, with its type. Arrays and maps are not entered: they cluster no table."""

    def within(struct: StructType, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for f in struct:
            if isinstance(f.data_type, StructType):
                yield from within(f.data_type, (*path, f.physical_name))
            else:
                yield (*path, f.physical_name, display(f.data_type))

    return set(within(parse_schema(metadata.schema_string or ""), ()))


def check_draft(draft: Draft, before: TableConfiguration | None, after: TableConfiguration) -> None:
    """Refuse actions that would damage the table.

    ``before``: None for a table that is being created; ``after``: with the
    draft's own metadata and protocol.

    Raises: UserError (DELTA_ICEBERG_COMPAT_VIOLATION); DeltaError naming the file or the column, with the reference's
        code if it has one.
    """
    table = after.table_root
    if draft.protocol is not None and before is not None:
        _check_no_downgrade(before.protocol, draft.protocol, table, draft.dropped_feature)
    if draft.protocol is not None or draft.metadata is not None:
        check_iceberg_table(before, after)
    if draft.domains and not after.supports(Feature.DOMAIN_METADATA):
        raise DeltaError(
            f"table {table!r} does not support metadata domains, so {', '.join(sorted(draft.domains))} cannot be "
            "written. Add the table feature domainMetadata first.",
            code="DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
            table=table,
        )
    if draft.removes.change_data and before is not None and before.supports(Feature.APPEND_ONLY):
        _check_not_append_only(before)
    if before is not None and before.by_catalog:
        _check_still_managed(before, after)
    _check_files(draft, after)


def _check_no_downgrade(old: Protocol, new: Protocol, table: str, meant: str | None) -> None:
    dropped = dropped_features(old, new)
    if meant is not None and dropped == [meant]:
        return
    lower = new.min_reader_version < old.min_reader_version or new.min_writer_version < old.min_writer_version
    if dropped or lower:
        shown = [f"({p.min_reader_version}, {p.min_writer_version})" for p in (old, new)]
        lost = f", without {', '.join(dropped)}" if dropped else ""
        raise ProtocolError(
            f"the protocol of table {table!r} cannot change from {shown[0]} to {shown[1]}{lost}: a protocol can only "
            "grow. Keep the versions and features of the table.",
            code="DELTA_INVALID_PROTOCOL_DOWNGRADE",
            table=table,
            features=dropped,
        )


def _check_still_managed(before: TableConfiguration, after: TableConfiguration) -> None:
    """A new definition must keep the features and properties of a catalog-managed table.

    Protocol: "Writer Requirements for Catalog-managed tables".
    """
    table = before.table_root
    if not after.properties.in_commit_timestamps:
        if not before.properties.in_commit_timestamps:
            raise ProtocolError(
                f"table {table!r} is managed by a catalog, so it needs in-commit timestamps (the feature "
                "inCommitTimestamp, and delta.enableInCommitTimestamps=true), but does not have them. Nothing was "
                "written; the manager of the table must enable them.",
                code="DELTA_CATALOG_MANAGED_FEATURE_MISSING",
                table=table,
                feature=Feature.IN_COMMIT_TIMESTAMP,
            )
        raise DeltaError(
            f"table {table!r} is managed by a catalog, so its commits need in-commit timestamps: "
            "delta.enableInCommitTimestamps must stay true.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            table=table,
        )
    keys = {key for key in (*before.configuration, *after.configuration) if key.startswith(CATALOG_PREFIXES)}
    changed = sorted(key for key in keys if before.configuration.get(key) != after.configuration.get(key))
    if changed:
        raise DeltaError(
            f"the properties {', '.join(changed)} of table {table!r} belong to its catalog, which identifies the table "
            "by them: they cannot be set, changed or removed.",
            code="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
            table=table,
        )


def _check_not_append_only(before: TableConfiguration) -> None:
    if before.properties.append_only:
        raise DeltaError(
            f"table {before.table_root!r} is append-only (delta.appendOnly=true): rows cannot be deleted or changed. "
            "Set delta.appendOnly=false first to allow it.",
            code="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            table=before.table_root,
        )


def _check_files(draft: Draft, after: TableConfiguration) -> None:
    table = after.table_root
    fields = {f.name: f for f in after.schema}
    wanted = {fields[name].physical_name for name in after.partition_columns}
    why_counted = _why_rows_are_counted(after)
    added: set[str] = set()
    for add in draft.adds:
        path, vector = file_key(add)
        if path in added:
            raise _duplicate(table, add.path, "added twice")
        added.add(path)
        if draft.removes.holds((path, vector)):
            raise _duplicate(table, add.path, "added and removed")
        _check_partition(add.path, add.partition_values, wanted, table)
        if why_counted is not None or add.deletion_vector is not None:
            _check_counts(add, after, why_counted)
    seen: set[str] = set()
    for file in draft.change_files:
        if (path := path_key(file.path)) in seen:
            raise _duplicate(table, file.path, "added twice as a file of changes")
        seen.add(path)
        _check_partition(file.path, file.partition_values, wanted, table)


def _check_partition(path: str, values: dict[str, str | None] | None, wanted: set[str], table: str) -> None:
    if (values or {}).keys() != wanted:
        raise ProtocolError(
            f"the file {path} of table {table!r} has values for the partition columns {sorted(values or {})}, but the "
            f"table is partitioned by {sorted(wanted)} (physical names). Write the file again with these columns.",
            code="DELTA_INVALID_PARTITIONING_SCHEMA",
            table=table,
            path=path,
        )


def _why_rows_are_counted(after: TableConfiguration) -> tuple[str, str] | None:
    """The reason why every new file needs numRecords, and the code of the error; None if files do not need it."""
    if after.supports(Feature.ROW_TRACKING):
        return "the table supports row tracking", "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
    if after.properties.iceberg_compat is not None:
        return "the table is compatible with Iceberg", "DELTA_ICEBERG_COMPAT_VIOLATION"
    if after.supports(Feature.DELETION_VECTORS):
        return "the table supports deletion vectors", "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS"
    return None


def _check_counts(add: AddFile, after: TableConfiguration, why: tuple[str, str] | None) -> None:
    counts = row_counts(add.stats)
    table = after.table_root
    if counts.num_records is None:
        reason, code = why or ("it has a deletion vector", "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS")
        raise ProtocolError(
            f"the file {add.path} cannot be added to table {table!r}: {reason}, and the statistics of the file have "
            "no numRecords. Collect statistics of the file first.",
            code=code,
            table=table,
            path=add.path,
        )
    if add.deletion_vector is None:
        return
    if not after.supports(Feature.DELETION_VECTORS):
        raise ProtocolError(
            f"the file {add.path} cannot be added to table {table!r} with a deletion vector: the table does not "
            "support them. Set delta.enableDeletionVectors=true first.",
            code="DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
            table=table,
            path=add.path,
        )
    if counts.tight_bounds is not False:
        raise ProtocolError(
            f"the file {add.path} cannot be added to table {table!r}: it has a deletion vector, so its statistics "
            "include deleted rows, but they lack tightBounds=false.",
            code="DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
            table=table,
            path=add.path,
        )


def _duplicate(table: str, path: str, what: str) -> ProtocolError:
    return ProtocolError(
        f"one commit to table {table!r} has the file {path} {what}, but a version may have only one action for a file. "
        "This is a fault of the operation, and nothing was written.",
        code="DELTA_DUPLICATE_ACTIONS_FOUND",
        table=table,
        path=path,
    )
