"""A real Chromium, asked over its debugging pipe: what a page looks like, asks for and complains about.

    with Chromium() as browser:
        view = browser.open(file, width=390, dark=True)

No driver and no socket: messages of the DevTools protocol go through two pipes, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.limits import ONLY_A_HANG_S

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# requests that a browser makes by itself are not the page's
_QUIET = (
    "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-sync", "--no-first-run",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
# a child gives the pipes the numbers that Chromium expects
_EXEC = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


@dataclass
class View:
    """``requests``: URLs that the page asked for, itself too. ``complaints``: of the console and of the policy.

    ``widths``: of the content and of the window. ``clipped``: tables that are wider than the room for them.
    ``picture``: a PNG. ``text``: what a reader sees. ``measured``: the value of the script that the caller gave.
    """

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    widths: tuple[int, int] = (0, 0)
    clipped: list[str] = field(default_factory=list)
    picture: bytes = b""
    text: str = ""
    elements: int = 0
    measured: Any = None


class Chromium:
    """One browser; each page is opened in a tab of its own."""

    def __enter__(self) -> Chromium:
        self._stack = contextlib.ExitStack()
        self._number = 0
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        profile = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True))
        to_read, self._to = _pipe()
        self._from, to_write = _pipe()
        command = [_chromium(), *_QUIET, f"--user-data-dir={profile}"]
        if os.getuid() == 0:
            command.append("--no-sandbox")  # which root cannot have
        self._process = subprocess.Popen(
            [sys.executable, "-c", _EXEC, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._call("Browser.close")
        for end in (self._to, self._from):
            os.close(end)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stack.close()

    def open(
        self,
        page: Path,
        *,
        width: int,
        height: int = 900,
        dark: bool = False,
        script: str | None = None,
        whole: bool = True,
    ) -> View:
        """Show a file, and describe it after it has loaded.

        ``script``: its value is JSON, or a promise of it. ``whole``: the picture goes beyond the window.
        """
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self._call(f"{domain}.enable", session)
        self._call(
            "Emulation.setDeviceMetricsOverride", session,
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", session, features=[scheme])
        self._events.clear()
        self._call("Page.setLifecycleEventsEnabled", session, enabled=True)
        loader = self._call("Page.navigate", session, url=page.as_uri())["loaderId"]
        while not any(_is_loaded(event, loader) for event in self._events):
            self._events.append(self._message())
        view = View()
        sizes = (
            "JSON.stringify([document.documentElement.scrollWidth, window.innerWidth, document.body.innerText,"
            " document.querySelectorAll('svg *').length, [...document.querySelectorAll('table')].filter("
            "t => t.offsetWidth > t.parentElement.clientWidth).map(t => t.innerText.slice(0, 80))])"
        )
        value = self._call("Runtime.evaluate", session, expression=sizes)["result"]["value"]
        content, window, view.text, view.elements, view.clipped = json.loads(value)
        view.widths = content, window
        if script is not None:
            answer = self._call("Runtime.evaluate", session, expression=script, returnByValue=True, awaitPromise=True)
            view.measured = answer["result"]["value"]
        picture = self._call("Page.captureScreenshot", session, captureBeyondViewport=whole)
        view.picture = base64.b64decode(picture["data"])
        for event in self._events:
            if event["method"] == "Network.requestWillBeSent":
                view.requests.append(event["params"]["request"]["url"])
            elif event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                view.complaints.append(json.dumps(event["params"]))
        self._call("Target.closeTarget", targetId=target)
        return view

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") != self._number:
                self._events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return dict(answer["result"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], ONLY_A_HANG_S)
            if not ready:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self._from, 1 << 16)
            if not more:
                raise EOFError("Chromium has ended")
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))


def _is_loaded(event: dict[str, Any], loader: str) -> bool:
    """Whether this is the page that was asked for, and not the empty one before."""
    told = event.get("params", {})
    return event.get("method") == "Page.lifecycleEvent" and (told["name"], told["loaderId"]) == ("load", loader)


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise RuntimeError("No Chromium was found: run `make chromium`.")
    return found


def _pipe() -> tuple[int, int]:
    """Both ends above the numbers that the child gives out."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD, 10))
        os.close(end)
    return ends[0], ends[1]


def png_size(picture: bytes) -> Iterator[int]:
    """Width and height."""
    assert picture.startswith(b"\x89PNG")
    yield int.from_bytes(picture[16:20], "big")
    yield int.from_bytes(picture[20:24], "big")
