"""DESCRIBE and SHOW: the statements that only query information about a table."""

from __future__ import annotations

from dataclasses import dataclass

from delta_pyds.statements.kinds import SqlText, Statement


@dataclass(frozen=True)
class DescribeHistory(Statement):
    limit: int | None


@dataclass(frozen=True)
class DescribeDetail(Statement):
    pass


@dataclass(frozen=True)
class Describe(Statement):
    """``column``: the path of the requested column. ``extended``: EXTENDED and FORMATTED."""

    column: tuple[str, ...] | None
    extended: bool
    as_json: bool = False


@dataclass(frozen=True)
class ShowProperties(Statement):
    key: str | None


@dataclass(frozen=True)
class ShowColumns(Statement):
    pass


@dataclass(frozen=True)
class ShowPartitions(Statement):
    """``partition``: names to literals."""

    partition: tuple[tuple[str, SqlText], ...]


@dataclass(frozen=True)
class ShowCreate(Statement):
    pass
