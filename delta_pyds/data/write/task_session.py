"""The Spark session of a task, and the meaning of expressions in it."""

from __future__ import annotations

from dataclasses import dataclass

from delta_pyds.errors import ExpressionError, OptionError
from delta_pyds.expr.nodes import Expr
from delta_pyds.protocol.temporal import TimeZone
from delta_pyds.tasks.write_state import SessionExpression, WriteState


@dataclass(frozen=True)
class TaskSession:
    """``ansi``: ``spark.sql.ansi.enabled``. ``time_zone``: ``spark.sql.session.timeZone``, None if unknown."""

    partition_id: int
    ansi: bool = True
    time_zone: str | None = None


def meaning(expression: SessionExpression, session: TaskSession, owner: str) -> Expr:
    """The expression as bound for the session's ANSI mode. ``owner``: the owner of the expression, for messages.

    Raises: ExpressionError if it cannot be bound without ANSI mode and the session has none.
    """
    tree: Expr | None = expression.ansi if session.ansi else expression.legacy
    if tree is None:
        raise ExpressionError(
            f"{owner}, {expression.sql}, cannot be evaluated while spark.sql.ansi.enabled is false: "
            f"{expression.legacy_refusal or 'it needs ANSI mode'} Set spark.sql.ansi.enabled to true for this write.",
            expression=expression.sql,
            unknown_expression=expression.sql,
        )
    return tree


def check_time_zone(state: WriteState, session: TaskSession) -> None:
    """Refuse expressions that were bound for another time zone than the session's.

    Raises: OptionError naming the option to set.
    """
    owner = _user_of_another_zone(state, session)
    if owner is not None:
        raise OptionError(
            f"the session's time zone is {session.time_zone}, but Spark does not pass it to a Python data source "
            f"during planning, so {state.time_zone} was used. The value of {owner} of table {state.table_root} "
            f'depends on it. Nothing was written: add .option("timeZone", "{session.time_zone}").',
            option="timeZone",
            table=state.table_root,
        )


def check_same_time_zone(state: WriteState, session: TaskSession) -> None:
    """The same for a command that took the session's time zone when it began.

    Raises: OptionError if the time zone was changed since then.
    """
    owner = _user_of_another_zone(state, session)
    if owner is not None:
        raise OptionError(
            f"the session's time zone was {state.time_zone} when this command began, and is {session.time_zone} now. "
            f"The value of {owner} of table {state.table_root} depends on it. Nothing was committed. Run the command "
            "again, and do not change spark.sql.session.timeZone meanwhile.",
            option="timeZone",
            table=state.table_root,
        )


def _user_of_another_zone(state: WriteState, session: TaskSession) -> str | None:
    if session.time_zone is None or TimeZone(session.time_zone).same_as(TimeZone(state.time_zone)):
        return None
    return time_zone_user(state)


def time_zone_user(state: WriteState) -> str | None:
    """The first column or constraint whose expression depends on the time zone, for a sentence; None without one."""
    for column in state.columns:
        if column.expression is not None and column.expression.uses_time_zone:
            return f"the column '{column.field.name}', {column.expression.sql},"
    for check in state.checks:
        if isinstance(check.expression, SessionExpression) and check.expression.uses_time_zone:
            return f"the constraint '{check.name}', {check.expression.sql},"
    return None
