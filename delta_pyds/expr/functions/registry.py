"""All functions that general expressions may call, by their names in small letters."""

from __future__ import annotations

from delta_pyds.expr.functions.arithmetic import NUMERIC_FUNCTIONS
from delta_pyds.expr.functions.containers import CONTAINER_FUNCTIONS
from delta_pyds.expr.functions.dates import DATE_FUNCTIONS
from delta_pyds.expr.functions.session_context import Rule
from delta_pyds.expr.functions.text import TEXT_FUNCTIONS

FUNCTIONS: dict[str, Rule] = {**NUMERIC_FUNCTIONS, **TEXT_FUNCTIONS, **DATE_FUNCTIONS, **CONTAINER_FUNCTIONS}
