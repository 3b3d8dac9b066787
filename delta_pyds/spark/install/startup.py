"""``DELTA_PYDS_INSTALL=delta``: ``delta_pyds.install`` for a program that does not call it.

Python calls ``start`` before the program, by ``delta_pyds_install.pth`` or by ``deltapy run``. Only the program's first
session, or its ``import delta``, runs ``install``. So workers of Spark, which create no session, stay as they are.

Invariants: without the variable, this module is not loaded. An error of ``install`` is logged as one sentence, and the
program goes on, unless ``DELTA_PYDS_INSTALL_REQUIRED`` is set. This module imports nothing at its top that costs time.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

VARIABLE = "DELTA_PYDS_INSTALL"
REQUIRED = "DELTA_PYDS_INSTALL_REQUIRED"
_FORMATS = ("delta", "deltapy")
_CLASSIC = "pyspark.sql.session"
_CONNECT = "pyspark.sql.connect.session"
_lock = RLock()
_started = False
_done = False
# the methods that this module replaced: class, name, original, replacement
_hooks: list[tuple[type, str, Any, Any]] = []


def start() -> None:
    """Prepare the installation that the environment asks for. A second call does nothing."""
    global _started
    wanted = os.environ.get(VARIABLE, "").strip().lower()
    if _started or not wanted:
        return
    _started = True
    if wanted not in _FORMATS:
        _report(f"{VARIABLE} is {wanted!r:.100}, but must be {' or '.join(_FORMATS)}")
        return
    sys.meta_path.insert(0, _Finder(delta=wanted == "delta"))
    for name in (_CLASSIC, _CONNECT):
        if name in sys.modules:
            _hook(sys.modules[name], delta=wanted == "delta")


def _report(reason: str) -> None:
    """Say why nothing is installed. Raises: RuntimeError if the installation is required."""
    from delta_pyds.redaction import safe_logger, shown

    text = f"delta_pyds is not installed in this program, because {shown(reason).rstrip('.')}."
    if os.environ.get(REQUIRED):
        raise RuntimeError(text)
    safe_logger(__name__).warning("%s", text)


def _install(*, delta: bool, spark: Any = None) -> bool:
    """Run ``delta_pyds.install`` once. Returns: whether this call did so."""
    global _done
    with _lock:
        if _done:
            return False
        _done = True
        _remove_hooks()
        try:
            from delta_pyds.spark.install.installation import install

            install(spark, delta=delta)
        except Exception as error:
            if os.environ.get(REQUIRED):
                raise
            from delta_pyds.errors import first_line

            _report(f"{type(error).__name__}: {first_line(error)}")
        return True


class _Finder:
    """Finds PySpark's modules of sessions, and ``delta`` if no package has this name."""

    def __init__(self, *, delta: bool) -> None:
        self._delta = delta

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if _done or name not in (_CLASSIC, _CONNECT, "delta"):
            return None
        found = _found_by_others(self, name, path, target)
        if name != "delta":
            if found is not None and found.loader is not None:
                found.loader = _LoaderWithHook(found.loader, delta=self._delta)
            return found
        # a directory without modules is not a package
        if not self._delta or (found is not None and found.origin is not None):
            return found
        _install(delta=True)
        module = sys.modules.get(name)
        if module is None or module.__spec__ is None:
            return found
        # Python loads the module by its own spec
        module.__spec__.loader = _OurModule(module)
        return module.__spec__


def _found_by_others(own: Any, name: str, path: Sequence[str] | None, target: Any) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        found = None if finder is own or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
        if found is not None:
            return found
    return None


class _LoaderWithHook(Loader):
    """A loader that replaces methods of the module's sessions after it has loaded the module."""

    def __init__(self, loader: Any, *, delta: bool) -> None:
        self._loader = loader
        self._delta = delta

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        # others, such as inspect, must find the module's own loader
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _hook(module, delta=self._delta)


class _OurModule(Loader):
    """The loader of the module ``delta`` that ``install`` has already made."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: the module is complete."""


def _hook(module: ModuleType, *, delta: bool) -> None:
    """Have the creation of a session install delta_pyds first."""
    sessions = module.SparkSession
    remote = module.__name__ == _CONNECT
    owners = [(sessions.Builder, "getOrCreate"), (sessions.Builder, "create")]
    # programs create a classic session by SparkSession(sparkContext) too
    for owner, name in owners if remote else [*owners, (sessions, "__init__")]:
        original = owner.__dict__.get(name)
        if original is not None:
            replacement = (
                _connect_method(original, delta=delta)
                if remote
                else _classic_method(original, owner, name, delta=delta)
            )
            _hooks.append((owner, name, original, replacement))
            setattr(owner, name, replacement)


def _classic_method(original: Callable[..., Any], owner: type, name: str, *, delta: bool) -> Callable[..., Any]:
    from functools import wraps

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        # the installation replaces this method
        called = getattr(owner, name) if _install(delta=delta) else original
        return called(self, *args, **kwargs)

    return method


def _connect_method(original: Callable[..., Any], *, delta: bool) -> Callable[..., Any]:
    """A builder of Connect's own class: ``install`` learns from the session that it is a remote one."""
    from functools import wraps

    @wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        _install(delta=delta, spark=made)
        return made

    return method


def _remove_hooks() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    while _hooks:
        owner, name, original, replacement = _hooks.pop()
        if owner.__dict__.get(name) is replacement:
            setattr(owner, name, original)
