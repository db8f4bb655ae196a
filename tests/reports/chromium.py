# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over a pipe by the DevTools protocol: messages are JSON, each ended by a zero byte. Needs nothing but the browser."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser():
    """Path of the installed browser, or None."""
    # Ubuntu's chromium-browser is a stand-in that only tells how to install a snap.
    return next((path for path in map(shutil.which, NAMES) if path and "snap" not in os.path.realpath(path)), None)


class Chromium:
    """Use as `with Chromium() as browser`. Everything it keeps is in a folder that goes with it."""

    def __init__(self, timeout_s=60):
        self._timeout_s = timeout_s
        self._folder = tempfile.mkdtemp(prefix="rankscope-chromium-")
        commands_out, self._commands = os.pipe()
        self._answers, answers_in = os.pipe()
        # The browser reads its file descriptor 3 and writes to 4.
        script = f'exec 3<&{commands_out} 4>&{answers_in}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", script, browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", f"--user-data-dir={self._folder}", "about:blank"],
            pass_fds=(commands_out, answers_in), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands_out)
        os.close(answers_in)
        self._buffer = b""
        self._next_id = 0
        self.events = []
        target = next(t for t in self.call("Target.getTargets", session=None)["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", session=None, targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.close(self._commands)
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._answers)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._answers, 1 << 20)
            if not piece:
                raise EOFError("the browser has gone")
            self._buffer += piece
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session="page", **parameters):
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._next_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Loads a local file; the events of loading it are then in `events`."""
        self.events.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        deadline = time.monotonic() + self._timeout_s
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read(deadline))

    def evaluate(self, expression):
        """Value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def click(self, selector):
        """A real click with the mouse in the middle of an element."""
        place = self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); "
                              "return [b.left + b.width / 2, b.top + b.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def prefer(self, scheme):
        """What the page sees of the user's wish: 'light' or 'dark'."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the page wrote to the console, threw, or had refused."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in kinds]
