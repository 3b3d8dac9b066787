"""Methods of PySpark's classes, replaced and restored.

Invariants: a method is replaced once, however often it is requested. Afterwards the original object is restored. A
replacement that another package has wrapped cannot be removed. After ``restore`` it only calls the original method.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

from delta_pyds.spark.install import pipelines
from delta_pyds.spark.plain_calls import are_plain

Method = Callable[..., Any]
# a function that is called with the original method, and then as that method is
Replacement = Callable[..., Any]


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
    """Replace methods of a class. A name that this version of PySpark lacks is left out."""
    global _active
    with _lock:
        _active = True
        for name, replacement in replacements.items():
            original = owner.__dict__.get(name)
            if original is None or any(patch.owner is owner and patch.name == name for patch in _patches):
                continue
            hook = _guarded(original, partial(replacement, original), pipelines.form_of(name, original))
            _patches.append(_Patch(owner, name, original, hook))
            setattr(owner, name, hook)


def restore() -> None:
    """Restore every replaced method."""
    global _active
    with _lock:
        _active = False
        while _patches:
            patch = _patches.pop()
            if patch.owner.__dict__.get(patch.name) is patch.replacement:
                setattr(patch.owner, patch.name, patch.original)


def are_put() -> bool:
    """Whether methods are replaced now, between ``put`` and ``restore``."""
    return _active


def replaced() -> tuple[type, ...]:
    """The classes that have one of our methods, each once."""
    with _lock:
        return tuple(dict.fromkeys(patch.owner for patch in _patches))


def _guarded(original: Method, replacement: Method, in_pipeline: Method) -> Method:
    @wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        if are_plain() or not _active:
            return original(*args, **kwargs)
        called = in_pipeline if args and pipelines.is_defined(args[0]) else replacement
        return called(*args, **kwargs)

    return method
