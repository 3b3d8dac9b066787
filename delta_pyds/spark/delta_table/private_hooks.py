"""Private attributes of the reference's Python classes: objects of its JAR, which delta_pyds does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# the attributes with such objects in ``delta.tables``
_OF_JVM = frozenset(("_jdt", "_jbuilder", "_jmatchedBuilder", "_jnotMatchedBuilder", "_jotherBuilder"))


class WithoutJvm:
    """Base class: access to such an attribute raises an AttributeError that explains it."""

    if not TYPE_CHECKING:  # mypy must find misspelled names

        def __getattr__(self, name: str) -> Any:
            kind = type(self).__name__
            if name in _OF_JVM:
                raise AttributeError(
                    f"{kind}.{name} is an object of the reference's JAR, which delta_pyds does not need: use the "
                    f"methods of {kind}, or SQL.",
                    name=name,
                    obj=self,
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}", name=name, obj=self)
