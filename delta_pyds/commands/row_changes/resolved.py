"""A command with its names resolved, for both engines.

Expressions stay as the user gave them, SQL text or a Column of Spark: Spark's analyzer resolves those. If our evaluator
supports all expressions of a merge, ``rules`` has them bound. A Column is resolved only by its text: a classic
Column is an object of the JVM without a tree in Python. One way serves classic sessions and Spark Connect.

Protocol: "Change Metadata", "Generated Columns", "Default Columns", "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from delta_pyds.commands.row_changes.plan import CommandKind
from delta_pyds.protocol.actions import Metadata, Protocol
from delta_pyds.protocol.features import Feature
from delta_pyds.protocol.schema import CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START, DataType, StructType
from delta_pyds.table.configuration import TableConfiguration
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.tasks.changed_rows import Action
from delta_pyds.tasks.merge import ClauseKind, MergeRules

# an expression as the user gave it: SQL text, or a Column of Spark
E = TypeVar("E")
F = TypeVar("F")
ClauseAction = Literal["update", "delete", "insert"]
Path = tuple[str, ...]


@dataclass(frozen=True)
class MergeClause(Generic[E]):
    """A clause as the user gave it: the change to the rows of one kind that satisfy a condition.

    ``condition``: None means every row of the kind. ``assignments``: new values by (nested) column name of the table;
    None means ``*``, all columns. Empty for a delete.
    """

    kind: ClauseKind
    action: ClauseAction
    condition: E | None = None
    assignments: Mapping[str, E] | None = None

    @property
    def is_star(self) -> bool:
        """Whether all columns are assigned from the source's columns of the same names."""
        return self.action != "delete" and self.assignments is None


@dataclass(frozen=True)
class Assignment(Generic[E]):
    """``path``: names from the top, in the table's spelling. ``data_type``: that of the assigned column or field."""

    path: Path
    data_type: DataType
    value: E


@dataclass(frozen=True)
class ResolvedClause(Generic[E]):
    """A clause with the names in the table's spelling.

    ``star``: for ``*``, the source's column for each column of the schema after the command, by position. None at a
    position: the source has no column of that name.
    """

    kind: ClauseKind
    action: Action
    condition: E | None = None
    assignments: tuple[Assignment[E], ...] = ()
    star: tuple[str | None, ...] | None = None

    @property
    def updates(self) -> bool:
        return self.action in (Action.UPDATE, Action.UPDATE_NOT_MATCHED_BY_SOURCE)

    @property
    def deletes(self) -> bool:
        return self.action in (Action.DELETE, Action.DELETE_NOT_MATCHED_BY_SOURCE)

    @property
    def title(self) -> str:
        """The name of the clause in messages."""
        return f"{'UPDATE' if self.updates else 'DELETE' if self.deletes else 'INSERT'} clause"

    def expressions(self) -> Iterator[E]:
        if self.condition is not None:
            yield self.condition
        yield from (one.value for one in self.assignments)

    def with_expressions(self, change: Callable[[E], F]) -> ResolvedClause[F]:
        condition = None if self.condition is None else change(self.condition)
        values = tuple(Assignment(one.path, one.data_type, change(one.value)) for one in self.assignments)
        return ResolvedClause(self.kind, self.action, condition, values, self.star)


@dataclass(frozen=True)
class TableAfter:
    """The table after the command. ``metadata``, ``protocol``: the new ones; None if they do not change."""

    configuration: TableConfiguration
    metadata: Metadata | None = None
    protocol: Protocol | None = None


@dataclass(frozen=True)
class ResolvedCommand(Generic[E]):
    """``condition``: the search condition of a merge; otherwise the condition on changed rows, None for all.

    ``source``: the columns of a merge's source; None for types that only Spark has. ``parameters``:
    ``commitInfo.operationParameters``. ``rules``: the expressions of a merge, bound for our evaluator; None if Spark
    must evaluate them, and ``refusal`` says why.
    """

    kind: CommandKind
    snapshot: Snapshot
    after: TableAfter
    condition: E | None
    clauses: tuple[ResolvedClause[E], ...]
    target_alias: str | None = None
    source_alias: str | None = None
    evolves: bool = False
    source: StructType | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rules: MergeRules | None = None
    refusal: str = ""

    @property
    def schema(self) -> StructType:
        return self.after.configuration.schema

    @property
    def one_match(self) -> bool:
        """Whether duplicate source matches are an error.

        They are not if matched rows stay unchanged, or if all matched rows are deleted. Reference: MERGE.
        """
        if all(clause.kind == "not_matched" for clause in self.clauses):
            return False
        matched = [clause for clause in self.clauses if clause.kind == "matched"]
        return not (len(matched) == 1 and matched[0].deletes and matched[0].condition is None)

    def expressions(self) -> Iterator[E]:
        """All conditions and values."""
        if self.condition is not None:
            yield self.condition
        for clause in self.clauses:
            yield from clause.expressions()

    def with_expressions(self, change: Callable[[E], F]) -> ResolvedCommand[F]:
        """The same command with each condition and value changed."""
        command: Any = self
        return replace(
            command,
            condition=None if self.condition is None else change(self.condition),
            clauses=tuple(clause.with_expressions(change) for clause in self.clauses),
        )


@dataclass(frozen=True)
class MadeColumns:
    """Names of columns whose values are computed for rows that lack them."""

    default: frozenset[str]
    generated: frozenset[str]
    identity: frozenset[str]

    @property
    def all(self) -> frozenset[str]:
        return self.default | self.generated | self.identity

    @staticmethod
    def of(configuration: TableConfiguration) -> MadeColumns:
        def names(key: str, feature: str) -> frozenset[str]:
            if not configuration.supports(feature):
                return frozenset()
            return frozenset(f.name for f in configuration.schema if key in f.metadata)

        return MadeColumns(
            names(CURRENT_DEFAULT, Feature.ALLOW_COLUMN_DEFAULTS),
            names(GENERATION_EXPRESSION, Feature.GENERATED_COLUMNS),
            names(IDENTITY_START, Feature.IDENTITY_COLUMNS),
        )
