"""The tables that reports are made of."""

from tests.support.reported_tables import hostile, many_sided

__all__ = ["hostile", "many_sided"]
