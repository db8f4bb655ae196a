# SPDX-License-Identifier: Apache-2.0
"""A real window under Xvfb, driven by xdotool as a hand would; the window tells what it shows in a file."""

import json
import os
import shutil
import subprocess
import tempfile
import time

from recorded_run import RecordedRunTest, VIEW, skip

PATIENCE_S = 60   # for a loaded machine; nothing here measures time


def skip_without_display():
    for tool in ("Xvfb", "xdotool"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")


class RealWindowTest(RecordedRunTest):
    scale = 1   # pixels of the screen for one of the window

    def start_display(self):
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", f"{1600 * self.scale}x{1000 * self.scale}x24", "-nolisten", "tcp"], pass_fds=[write],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        self.addCleanup(self.stop, self.server)
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        self.assertTrue(number, "Xvfb did not start")
        self.state_file = self.folder / "state.json"
        self.display = dict(self.environment, DISPLAY=f":{number}", RANKSCOPE_VIEW_STATE=str(self.state_file), QT_QPA_PLATFORM="xcb")
        self.forget_settings()

    def forget_settings(self):
        """What one test chooses is not the next one's."""
        self.display["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="settings-", dir=self.folder)

    def open_window(self, *arguments):
        """Shows the runs and gives the keyboard to the lanes."""
        self.start_window(*arguments)
        self.wait(lambda state: state["loaded"] and state["rows"])
        self.hold_window()

    def start_window(self, *arguments):
        self.state_file.unlink(missing_ok=True)
        self.window = subprocess.Popen([VIEW, *map(str, arguments), "--size", "1500x900"], env=self.display, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop, self.window)

    def hold_window(self):
        found = self.xdotool("search", "--sync", "--onlyvisible", "--pid", str(self.window.pid)).split()
        self.id = found[-1]
        self.xdotool("windowmove", "--sync", self.id, "0", "0")
        self.hover(0.5, 0.5)
        self.xdotool("click", "1")

    def close_window(self):
        """As a user does: the window may keep what it wants to keep."""
        # The window may be gone before the key is let go, which xdotool takes for an error.
        subprocess.run(["xdotool", "key", "--window", self.id, "ctrl+q"], env=self.display, capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(self.window.wait(PATIENCE_S), 0)

    @staticmethod
    def stop(process):
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()

    def xdotool(self, *words):
        return subprocess.run(["xdotool", *map(str, words)], env=self.display, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    def wait(self, condition):
        """The state once it fulfils `condition`."""
        deadline = time.monotonic() + PATIENCE_S
        state = None
        while time.monotonic() < deadline:
            if self.window.poll() is not None:
                self.fail(f"the window is gone ({self.window.returncode}): {self.window.stderr.read()}")
            try:
                state = json.loads(self.state_file.read_text())
                if condition(state):
                    return state
            except (FileNotFoundError, json.JSONDecodeError):
                pass
            time.sleep(0.03)
        self.fail(f"the window did not get there: {json.dumps(state)[:2000]}")

    def state(self):
        return self.wait(lambda state: True)

    def hover(self, x, y):
        """To a place of the lanes, as shares of their width and height."""
        left, top, width, height = self.state()["lanes"]
        self.move_to(left + int(x * width), top + int(y * height))
        return left + x * width

    def move_to(self, x, y):
        """To a place of the window."""
        self.xdotool("mousemove", "--window", self.id, x * self.scale, y * self.scale)

    def click_on(self, area):
        x, y, width, height = area
        self.move_to(x + width // 2, y + height // 2)
        self.xdotool("click", "1")

    def key(self, *names):
        self.xdotool("key", "--window", self.id, *names)

    @staticmethod
    def span(state):
        return state["visible"][1] - state["visible"][0]

    def time_at(self, state, share):
        return state["visible"][0] + share * self.span(state)
