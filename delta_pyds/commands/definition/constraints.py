"""CHECK constraints added and dropped.

Invariant: the table has a constraint only if every existing row satisfies it. The caller that adds one has checked the
rows of the version that the change is planned from; the change then depends on them.

Protocol: "CHECK Constraints".
"""

from __future__ import annotations

from delta_pyds.commands.definition.change import DefinitionChange, with_configuration
from delta_pyds.errors import UserError
from delta_pyds.protocol.properties import CONSTRAINT_PREFIX
from delta_pyds.table.snapshot import Snapshot
from delta_pyds.table.transaction.commit_info import Operation


def add_constraint(snapshot: Snapshot, name: str, condition: str) -> DefinitionChange:
    """Add a condition that every row must satisfy from now on.

    Raises: UserError (DELTA_CONSTRAINT_ALREADY_EXISTS) with the existing condition of that name.
    """
    configuration = snapshot.configuration
    lower = check_constraint_name(name)
    for key, text in configuration.configuration.items():
        if key.lower() == CONSTRAINT_PREFIX + lower:
            raise UserError(
                f"table {configuration.table_root} already has a constraint '{lower}': {text}. Drop it first "
                "(dropConstraint), or choose another name.",
                code="DELTA_CONSTRAINT_ALREADY_EXISTS",
                table=configuration.table_root,
                constraint=lower,
            )
    properties = {**configuration.configuration, CONSTRAINT_PREFIX + lower: condition}
    return DefinitionChange(
        Operation("ADD CONSTRAINT", {"name": name, "expr": condition}),
        with_configuration(snapshot.metadata, properties),
        depends_on_rows=True,
    )


def drop_constraint(snapshot: Snapshot, name: str, *, if_exists: bool = False) -> DefinitionChange:
    """Drop a constraint; the table feature stays.

    ``if_exists``: a missing constraint is not an error. As in the reference, a version is committed anyway.

    Raises: UserError (DELTA_CONSTRAINT_DOES_NOT_EXIST) with the names of the existing constraints.
    """
    configuration = snapshot.configuration
    lower = check_constraint_name(name)
    have = {key.lower(): (key, text) for key, text in configuration.configuration.items()}
    found = have.get(CONSTRAINT_PREFIX + lower)
    if found is None and not if_exists:
        names = [key.removeprefix(CONSTRAINT_PREFIX) for key in sorted(have) if key.startswith(CONSTRAINT_PREFIX)]
        raise UserError(
            f"table {configuration.table_root} has no constraint '{name}'. It has: {', '.join(names) or 'none'}.",
            code="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            table=configuration.table_root,
            constraint=name,
        )
    properties = {k: v for k, v in configuration.configuration.items() if found is None or k != found[0]}
    parameters: dict[str, object] = {"name": name}
    if found is not None:
        parameters["expr"] = found[1]
    parameters["existed"] = "true" if found is not None else "false"
    return DefinitionChange(Operation("DROP CONSTRAINT", parameters), with_configuration(snapshot.metadata, properties))


def check_constraint_name(name: str) -> str:
    """The name as it is stored in properties. Raises: UserError for an empty one."""
    if not name.strip():
        raise UserError("a constraint needs a name.", code="DELTA_ADD_CONSTRAINTS")
    return name.strip().lower()
