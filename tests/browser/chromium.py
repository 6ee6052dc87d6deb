"""Chromium without a window, driven by the DevTools protocol over two pipes.

https://chromedevtools.github.io/devtools-protocol/ describes the methods and events.
"""

import json
import os
import select
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 60.0
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-pipe",
)


class BrowserError(Exception):
    """Chromium refused a call, ended, or did not answer."""


class Browser:
    """The ends of the two pipes of a running Chromium."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to_browser = to_browser
        self._from_browser = from_browser
        self._received = b""
        self._last_call = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result; events that come before it are kept."""
        self._last_call += 1
        message = {"id": self._last_call, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        deadline_s = time.monotonic() + PATIENCE_S
        while (answer := self._message(deadline_s, method)).get("id") != self._last_call:
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method} failed: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, event: str, session: str) -> None:
        """Wait for an event of a page, which may have come already."""
        deadline_s = time.monotonic() + PATIENCE_S
        while True:
            for each in self.events:
                if each.get("method") == event and each.get("sessionId") == session:
                    return
            self.events.append(self._message(deadline_s, event))

    def _message(self, deadline_s: float, awaited: str) -> dict[str, Any]:
        while b"\0" not in self._received:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([self._from_browser], [], [], left_s)[0]:
                raise BrowserError(f"{awaited} failed: no answer within {PATIENCE_S:.0f} s")
            chunk = os.read(self._from_browser, 2**20)
            if not chunk:
                raise BrowserError(f"{awaited} failed: Chromium has ended")
            self._received += chunk
        first, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message


class Page:
    """One page of the browser."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._target: str = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session: str = attached["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self._browser.events.clear()
        answer = self.call("Page.navigate", url=address)
        if "errorText" in answer:
            raise BrowserError(f"{address} failed: {answer['errorText']}")
        self._browser.wait_for("Page.loadEventFired", self._session)

    def shows(
        self,
        width: int = 1280,
        height: int = 900,
        *,
        media: str = "screen",
        scheme: str = "light",
        forced_colors: str = "none",
    ) -> None:
        """Set the size of the window, in CSS pixels, and what media queries find."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = {"prefers-color-scheme": scheme, "forced-colors": forced_colors}
        self.call(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[{"name": name, "value": value} for name, value in features.items()],
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"script failed: {_raised(answer)}")
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """Press and release a key."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def complaints(self) -> list[str]:
        """Return what the console has said: scripts that failed, what a policy blocked."""
        self.evaluate("0")
        entries = [
            event["params"]["entry"]["text"]
            for event in self._browser.events
            if event.get("method") == "Log.entryAdded" and event.get("sessionId") == self._session
        ]
        return entries + [
            _raised(event["params"])
            for event in self._browser.events
            if event.get("method") == "Runtime.exceptionThrown"
            and event.get("sessionId") == self._session
        ]

    def picture(self) -> bytes:
        """Return the whole page as PNG."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        return b64decode(data)

    def pdf(self) -> bytes:
        """Return the page as a browser prints it with its default settings, without headers."""
        return b64decode(self.call("Page.printToPDF")["data"])

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


def _raised(answer: dict[str, Any]) -> str:
    """Return what a script raised: the error with its stack, or the message of the browser."""
    details = answer["exceptionDetails"]
    text: str = details.get("exception", {}).get("description", details["text"])
    return text


@contextmanager
def running(profile: Path) -> Iterator[Browser]:
    """Run Chromium with a profile of its own."""
    read_here, write_there = os.pipe()
    read_there, write_here = os.pipe()
    # Chromium reads from descriptor 3 and writes to 4.
    started = f'exec chromium "$@" 3<&{read_there} 4>&{write_there}'
    process = subprocess.Popen(
        ["bash", "-c", started, "chromium", *_OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(read_there, write_there),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_there)
    os.close(write_there)
    browser = Browser(write_here, read_here)
    try:
        yield browser
        browser.call("Browser.close")
    finally:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(write_here)
        os.close(read_here)
