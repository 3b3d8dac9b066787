"""Methods of PySpark's classes, replaced and put back.

Invariants: a method is replaced once, however often it is asked for. What is put back is the very object that was
there. A replacement that somebody else has wrapped meanwhile cannot be taken out; it calls the method it replaced and
nothing else from then on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from delta_pyds.spark.plain_calls import are_plain

Method = Callable[..., Any]
# of a method, what replaces it
Replacement = Callable[[Method], Method]


@dataclass(frozen=True)
class _Patch:
    owner: type
    name: str
    original: Any
    replacement: Any


_lock = threading.RLock()
_patches: list[_Patch] = []
_active = False


def put(owner: type, replacements: dict[str, Replacement]) -> None:
    """Replace methods of a class; a name that this version of PySpark has not is left out."""
    global _active
    with _lock:
        _active = True
        for name, replacement in replacements.items():
            original = owner.__dict__.get(name)
            if original is None or any(patch.owner is owner and patch.name == name for patch in _patches):
                continue
            hook = _guarded(original, replacement(original))
            _patches.append(_Patch(owner, name, original, hook))
            setattr(owner, name, hook)


def take_back() -> None:
    """Put every method back that was replaced."""
    global _active
    with _lock:
        _active = False
        while _patches:
            patch = _patches.pop()
            if patch.owner.__dict__.get(patch.name) is patch.replacement:
                setattr(patch.owner, patch.name, patch.original)


def are_put() -> bool:
    """Whether methods are to be replaced now: between ``put`` and ``take_back``."""
    return _active


def replaced() -> tuple[type, ...]:
    """The classes that have a method of ours, each once."""
    with _lock:
        return tuple(dict.fromkeys(patch.owner for patch in _patches))


def _guarded(original: Method, replacement: Method) -> Method:
    @wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        return (original if are_plain() or not _active else replacement)(*args, **kwargs)

    return method
