"""The cost of work as a number of calls, which no busy machine changes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest


def count_calls(work: Callable[[], object]) -> int:
    """The number of functions, of Python and of C, that ``work`` calls in this thread."""
    count = 0

    def counting(_frame: FrameType, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.collect()
    gc.disable()  # finalizers of other tests' objects are calls, too
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def count_calls_to_the_jvm(work: Callable[[], object]) -> int:
    """The number of methods of Spark's driver that ``work`` calls, in a classic session."""
    from py4j.clientserver import JavaClient
    from py4j.java_gateway import GatewayClient
    from py4j.protocol import CALL_COMMAND_NAME

    count = 0

    def counted(send: Callable[..., Any]) -> Callable[..., Any]:
        def ask(self: Any, command: str, *args: Any, **named: Any) -> Any:
            nonlocal count
            count += command.startswith(CALL_COMMAND_NAME)
            return send(self, command, *args, **named)

        return ask

    with pytest.MonkeyPatch.context() as patch:
        for client in (GatewayClient, JavaClient):
            send = client.__dict__.get("send_command")
            if send is not None:
                patch.setattr(client, "send_command", counted(send))
        gc.collect()
        gc.disable()  # the JVM is told of collected objects, too
        try:
            work()
        finally:
            gc.enable()
    return count
