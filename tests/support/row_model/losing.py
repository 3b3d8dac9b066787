"""Commands that lose races after their tasks have run, and what must hold then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import unquote

import msgspec
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st

from delta_pyds.commands.row_changes.commit_rows import commit_rows
from delta_pyds.protocol.deletion_vector import DeletionVectorDescriptor
from delta_pyds.table.snapshot import load_snapshot
from delta_pyds.table.transaction.commit_encoding import CommitEncoder
from tests.support.commits import actions
from tests.support.row_model.expressions import conditions
from tests.support.row_model.harness import Counts, Engine, Harness, data_files
from tests.support.row_model.steps import (
    DELETES,
    MERGES_IN_PROCESS,
    TASKS,
    UPDATES,
    Append,
    Checkpoint,
    Overwrite,
    Step,
)
from tests.support.row_model.upkeep import Optimize, Purge, Restore, ZOrder

KINDS: dict[str, st.SearchStrategy[Step]] = {
    "delete": DELETES,
    "update": UPDATES,
    "merge": MERGES_IN_PROCESS,
    "overwrite": st.builds(Overwrite, TASKS),
    "replaceWhere": st.builds(Overwrite, TASKS, conditions(None, plain=True)),
    "dynamic overwrite": st.builds(Overwrite, TASKS, dynamic=st.just(True)),
}
# none of these changes the table's definition, which would be a conflict
WINNERS: st.SearchStrategy[Step] = st.one_of(
    *KINDS.values(),
    st.builds(Append, TASKS),
    st.just(Checkpoint()),
    st.just(Optimize()),
    st.just(Purge()),
    st.just(ZOrder(("k",))),
    st.builds(Restore, st.integers(0, 3)),
)


class Races:
    """Races that a command loses before its commit, and again after each mend.

    ``meanwhile``: lets others commit. ``modules``: those that end a command by ``commit_rows``."""

    def __init__(self, meanwhile: Callable[[], None], modules: Sequence[str]) -> None:
        self._meanwhile, self._modules = meanwhile, modules
        self._is_losing = False

    def lose(self) -> None:
        """Let others commit."""
        # the others use the same functions
        if not self._is_losing:
            self._is_losing = True
            self._meanwhile()
            self._is_losing = False

    @contextlib.contextmanager
    def lost(self) -> Iterator[None]:
        """Inside, the command loses races."""
        replace_changes = CommitEncoder.replace_changes

        def late_commit(*given: Any, **more: Any) -> Any:
            self.lose()
            return commit_rows(*given, **more)

        def lost_again(*given: Any, **more: Any) -> None:
            # only if something is left to commit
            replace_changes(*given, **more)
            self.lose()

        with contextlib.ExitStack() as patches:
            for module in self._modules:
                patches.enter_context(mock.patch(f"{module}.commit_rows", late_commit))
            patches.enter_context(mock.patch.object(CommitEncoder, "replace_changes", lost_again))
            yield


class Losing:
    """Commands that lose races after their tasks have run. A base class before that of an engine."""

    _races: Races

    def delete(self, *given: Any) -> Counts:
        with self._races.lost():
            return super().delete(*given)

    def update(self, *given: Any) -> Counts:
        with self._races.lost():
            return super().update(*given)

    def merge(self, *given: Any) -> Counts:
        with self._races.lost():
            return super().merge(*given)


def check_race(
    harness: Harness, step: Step, winners: Sequence[Sequence[Step]], engine: Callable[[Callable[[], None]], Engine]
) -> bool:
    """Run a command after winners, and check the table and its files. Returns: whether there was a race."""
    if currently_in_test_context():
        note(f"{step}, after {winners}")
    raced = harness.race(step, winners, engine)
    check_no_file_is_left(harness)
    harness.finish()
    return raced


def check_no_file_is_left(harness: Harness) -> None:
    """Every data file and vector below the root is named by a commit: a mend deletes what it replaces."""
    assert unnamed_files(harness.path) == set()


def unnamed_files(path: Path) -> set[str]:
    """The data files and vectors below the root that no commit names."""
    named: set[str] = set()
    for version in range(load_snapshot(str(path)).version + 1):
        for action in actions(path, version):
            file = action.get("add") or action.get("cdc")
            if file is not None:
                named.add(unquote(file["path"]))
            vector = (action.get("add") or {}).get("deletionVector")
            if vector is not None and vector["storageType"] == "u":
                named.add(msgspec.convert(vector, DeletionVectorDescriptor).relative_path())
    return data_files(path) - named
