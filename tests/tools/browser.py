"""Open pages of the built book in headless Chromium, by the DevTools protocol over a pipe: no package is needed.

    with Browser() as browser, serve(book) as address:
        page = browser.page(width=390, scheme="dark")
        page.open(f"{address}/book/sgemm.html")
        assert page.run("document.documentElement.scrollWidth") <= 390

The browser reaches no host but this one, so a page cannot look right here thanks to a file from elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

#: Commands that start Chromium, the first that is found.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
#: Chromium reads commands from file descriptor 3 and answers on 4; this puts them there.
_START = "import os, sys; r, w = map(int, sys.argv[1:3]); r = os.dup(r); w = os.dup(w); " \
         "r, w = (os.dup(r), os.dup(w)) if {r, w} & {3, 4} else (r, w); " \
         "os.dup2(r, 3); os.dup2(w, 4); os.execvp(sys.argv[3], sys.argv[3:])"  # fmt: skip
#: Waits for fonts and mathematics.
_SETTLED = """(async () => {
  await document.fonts.ready;
  if (window.MathJax?.startup?.promise) await window.MathJax.startup.promise;
})()"""
#: Waits for two pictures of the page, after which observers of sizes have done their work.
_DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


def executable() -> str | None:
    """The command that starts Chromium, or None where no browser is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; the value is its address, such as ``http://127.0.0.1:40123``."""
    handler = functools.partial(_Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # one connection for many files

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a test says what went wrong."""

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the browser left a page before all its files were sent
            super().handle()


class BrowserError(Exception):
    """Chromium refused a command, a script on a page failed, or an answer did not come in time."""


class Browser:
    """A headless Chromium with a fresh profile. Raises BrowserError if it cannot be started."""

    def __init__(self, timeout: float = 30.0) -> None:
        command = executable()
        if command is None:
            raise BrowserError("no browser is installed: `apt-get install chromium` installs one")
        self.timeout = timeout
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        to_read, self._commands = os.pipe()
        self._answers, to_write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(to_read), str(to_write),
             command, *_FLAGS, f"--user-data-dir={self._profile.name}"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._count, self._buffer = 0, b""
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, width: int = 1280, height: int = 900, scheme: str = "light", cache: bool = True) -> Page:
        """A new, empty page. ``width`` and ``height`` are in CSS pixels; ``scheme`` is "light" or "dark".

        Without ``cache`` each ``open`` fetches every file again, as on a reader's first visit.
        """
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self._pages[session] = Page(self, session, target)
        for domain in ("Page", "Network", "Runtime"):
            page.call(f"{domain}.enable")
        page.call("Network.setCacheDisabled", cacheDisabled=not cache)
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        page.resize(width, height)
        page.colours(scheme)
        return page

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = memoryview(json.dumps(message).encode() + b"\0")
        try:
            while data:
                data = data[os.write(self._commands, data) :]
        except BrokenPipeError:
            raise BrowserError(f"the browser has ended before {method}") from None
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self.receive(deadline, method)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def receive(self, deadline: float, waiting_for: str) -> dict[str, Any]:
        """The next message; an event is kept by its page too. Raises BrowserError after ``deadline`` (monotonic)."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise BrowserError(f"the browser did not answer in {self.timeout:g} s: {waiting_for}")
            more = os.read(self._answers, 1 << 20)
            if not more:
                raise BrowserError(f"the browser ended during {waiting_for}")
            self._buffer += more
        one, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(one)
        if "method" in message and (page := self._pages.get(message.get("sessionId", ""))):
            page.events.append(message)
        return message

    def close(self) -> None:
        """End the browser and remove its profile."""
        with contextlib.suppress(BrowserError, OSError):
            self.call("Browser.close")
        os.close(self._commands)
        os.close(self._answers)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()


@dataclass(frozen=True)
class Request:
    """A file that a page fetched: its address, the status of the answer, and its bytes as they were sent."""

    url: str
    status: int
    bytes: int


class Page:
    """A page in a browser. ``events`` has all events of the DevTools protocol since the last ``open``."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol to this page, such as ``Emulation.setEmulatedMedia``."""
        return self._browser.call(method, self._session, **parameters)

    def open(self, url: str) -> None:
        """Go to an address, and wait until everything is loaded, fonts and mathematics included."""
        self.events.clear()
        answer = self.call("Page.navigate", url=url)
        if answer.get("errorText"):
            raise BrowserError(f"{url}: {answer['errorText']}")
        self.wait_for("Page.loadEventFired", f"loading {url}")
        self.run(_SETTLED)
        self.settle()

    def settle(self) -> None:
        """Wait until the page is laid out and drawn as it now is, and what watches sizes has seen them."""
        self.call("Page.bringToFront")  # a page behind another is not drawn
        self.run(_DRAWN)

    def wait_for(self, event: str, what: str = "") -> None:
        """Wait until an event of this name has come since the last ``open``."""
        deadline = time.monotonic() + self._browser.timeout
        while not any(seen["method"] == event for seen in self.events):
            self._browser.receive(deadline, what or event)

    def wait_until(self, script: str) -> None:
        """Wait until a JavaScript expression is true. Raises BrowserError if it does not become so."""
        deadline = time.monotonic() + self._browser.timeout
        while not self.run(script):
            if time.monotonic() > deadline:
                raise BrowserError(f"not true within {self._browser.timeout:g} s: {script}")
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression, as JSON would carry it; a promise is waited for.

        The script may do what a page may do only when its reader clicks, such as copying.
        """
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if failed := answer.get("exceptionDetails"):
            raise BrowserError(failed.get("exception", {}).get("description") or failed["text"])
        return answer["result"].get("value")

    def resize(self, width: int, height: int = 900) -> None:
        """Set the size of the window in CSS pixels. Under 600 the page is on a phone, with a touch screen."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.settle()

    def colours(self, scheme: str) -> None:
        """Ask pages for "light" or "dark" colours, as an operating system does."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str) -> None:
        """Press and release a key, named as in ``KeyboardEvent.key``: Tab, Enter, ArrowRight, a."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
                "ArrowDown": 40}.get(key) or ord(key.upper()[0])  # fmt: skip
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        both = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **both)
        self.call("Input.dispatchKeyEvent", type="keyUp", **both)

    def requests(self) -> list[Request]:
        """The requests of the page since the last ``open``."""
        sent = {e["params"]["requestId"]: e["params"]["request"]["url"]
                for e in self.events if e["method"] == "Network.requestWillBeSent"}  # fmt: skip
        status = {e["params"]["requestId"]: e["params"]["response"]["status"]
                  for e in self.events if e["method"] == "Network.responseReceived"}  # fmt: skip
        size = {e["params"]["requestId"]: int(e["params"]["encodedDataLength"])
                for e in self.events if e["method"] == "Network.loadingFinished"}  # fmt: skip
        return [Request(url, status.get(i, 0), size.get(i, 0)) for i, url in sent.items()]

    def complaints(self) -> list[str]:
        """Errors of scripts and messages of ``console.error`` since the last ``open``."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error":
                found.append(" ".join(str(one.get("value", one.get("description"))) for one in event["params"]["args"]))
        return found

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write a PNG of the window, or of the ``whole`` page."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Close this page; the browser goes on."""
        self._browser.call("Target.closeTarget", targetId=self._target)
