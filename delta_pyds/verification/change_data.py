"""The change data files of the commits in the log: each is readable, and each row has a change type.

Protocol: "Change Data Files", "Reader Requirements for AddCDCFile".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from delta_pyds.data.read.change_type import CHANGE_TYPES
from delta_pyds.data.read.reader import read
from delta_pyds.errors import FileNotFoundInStorageError
from delta_pyds.protocol.actions import AddCDCFile
from delta_pyds.protocol.paths import resolve_data_path
from delta_pyds.protocol.schema import STRING, StructField, StructType
from delta_pyds.tasks.scan_state import CHANGE_TYPE_COLUMN, ScanFile, ScanState
from delta_pyds.verification.report import Findings


def check_change_data(
    table_root: str,
    storage_options: Mapping[str, Any],
    change_files: Sequence[tuple[int, AddCDCFile]],
    findings: Findings,
) -> None:
    """Check the change types of each file. A missing file is not a finding, because VACUUM deletes such files.

    ``change_files``: paths with the versions whose commits name them.
    """
    state = ScanState(
        table_root=table_root,
        storage_options=storage_options,
        output=StructType((StructField(CHANGE_TYPE_COLUMN, STRING),)),
        inputs=StructType(()),
        partition_columns=(),
        column_mapping_mode="none",  # this column has one name in every mode
    )
    for version, file in change_files:
        with findings.guard("cdc.unreadable", file.path):
            path = resolve_data_path(table_root, file.path)
            found: set[str] = set()
            try:
                for batch in read(state, ScanFile(path, file.size, change_data=True)):
                    found.update(pc.unique(batch.column(0)).to_pylist())
            except FileNotFoundInStorageError:
                continue
            strange = sorted(found.difference(CHANGE_TYPES))
            if strange:
                shown = ", ".join(map(repr, strange[:5]))
                findings.warning(
                    "cdc.change-type",
                    path,
                    f"the commit {version} has rows with the change type {shown}, which the protocol does not define.",
                )
