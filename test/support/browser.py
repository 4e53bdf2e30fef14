"""A headless Chromium with one page: opens addresses, runs scripts, keeps the console, takes pictures."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
_FLAGS = (  # noqa: SIM905
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --remote-debugging-pipe"
).split()


_PALE = Path(__file__).with_name("pale_texts.js").read_text()


class Browser:
    """Speaks the DevTools protocol over two pipes.

    Attributes:
        console: warnings and errors of the page, its script's and the network's.
    """

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._number, self._buffer, self._session = 0, b"", ""
        self.console: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        self._call("Page.navigate", url=address)

    def look(self, dark: bool = False, phone: bool = False) -> None:
        """How the user's screen is."""
        width, height = (400, 800) if phone else (1280, 900)
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def pale_texts(self) -> list[str]:
        """What cannot be read by all: contrast and words."""
        return self.run(_PALE)

    def wait(self, script: str, seconds: float = 60.0) -> Any:
        """Its value, once it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"never true: {script}; console: {self.console[:3]}"
            time.sleep(0.2)
        return value

    def picture(self, path: Path, whole: bool = False) -> None:
        found = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            asked["sessionId"] = self._session
        os.write(self._to, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == asked["id"]:
                assert "error" not in told, f"{method}: {told['error']}"
                return told["result"]
            self._note(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._back, 1 << 16)
            assert part, "Chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, told: dict[str, Any]) -> None:
        about = told.get("params", {})
        if told["method"] == "Runtime.exceptionThrown":
            self.console.append(json.dumps(about["exceptionDetails"])[:500])
        elif told["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.console.append(json.dumps(about["args"])[:500])
        elif told["method"] == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.console.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Its profile is a new folder."""
    assert CHROMIUM is not None
    pipes = [*os.pipe(), *os.pipe()]
    # Chromium reads from 3 and writes to 4: far from these, one does not overwrite the other
    ours_in, theirs_out, theirs_in, ours_out = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 50) for end in pipes)
    for end in pipes:
        os.close(end)
    command = ["bash", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', CHROMIUM, *_FLAGS]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        process.wait(30)
