# SPDX-License-Identifier: Apache-2.0
"""A recorded run of traces/, collected and analysed, and the program that shows it."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
VIEW = os.environ.get("RANKSCOPE_VIEW_BINARY", "rankscope-view")
TRACES = pathlib.Path(__file__).resolve().parents[2] / "traces"
TIMEOUT_S = 120
# Qt and the font library keep memory to the end; with it the sanitizer would report every run.
QUIET = {"ASAN_OPTIONS": "detect_leaks=0", "XDG_RUNTIME_DIR": tempfile.gettempdir()}


class RecordedRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-window-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        home = cls.folder / "home"
        home.mkdir()
        cls.environment = dict(os.environ, HOME=str(home), XDG_CONFIG_HOME=str(home), XDG_CACHE_HOME=str(home), **QUIET)

    @classmethod
    def run_of(cls, trace):
        run = cls.folder / trace
        if not run.exists():
            with tarfile.open(TRACES / trace / "run.tar.xz") as archive:
                archive.extractall(run)
            for verb in ("collect", "analyze"):
                subprocess.run([RANKSCOPE, "-q", verb, run], check=True, stdout=subprocess.DEVNULL, env=cls.environment, timeout=TIMEOUT_S)
        return run

    def view(self, *arguments, **environment):
        return subprocess.run([VIEW, *map(str, arguments)], env=dict(self.environment, **environment), capture_output=True, text=True, timeout=TIMEOUT_S)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


if shutil.which(RANKSCOPE) is None:
    skip(f"{RANKSCOPE} prepares the runs to look at, and is not built (cmake --preset dev)")
