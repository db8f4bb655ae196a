#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rankscope compare` and `rankscope baseline` say of places, settings and outputs that are not what they should be: each with the file, what is wrong with it and what to do."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

from virtual_run import RANKSCOPE, SMALL, TIMEOUT_S

JOB = dict(SMALL, name="job", steps=4, faults=[])


class CompareInput(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recorded = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-golden-"))
        cls.addClassCleanup(shutil.rmtree, cls.recorded, ignore_errors=True)
        for seed in (1, 2):
            (cls.recorded / "job.json").write_text(json.dumps(dict(JOB, seed=seed)))
            subprocess.run([RANKSCOPE, "-q", "reference", "run", "job.json", "-o", f"run{seed}"], cwd=cls.recorded, check=True, capture_output=True, timeout=TIMEOUT_S)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-golden-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for run in ("run1", "run2"):
            shutil.copytree(self.recorded / run, self.folder / run)

    def expect(self, code, *words, **how):
        result = subprocess.run([RANKSCOPE, "-q", *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **how)
        self.assertEqual(result.returncode, code, (words, result.stdout, result.stderr))
        return result

    def error(self, code, *words):
        return self.expect(code, *words).stderr

    def test_a_baseline_that_cannot_be_read_is_no_missing_one(self):
        os.symlink("loop", self.folder / "loop")
        self.assertRegex(self.error(3, "compare", "--baseline", "loop", "run1"), "loop cannot be read: Too many levels of symbolic links")
        self.assertRegex(self.error(3, "compare", "--baseline", "run1/run.json/x", "run2"), "cannot be read: Not a directory")
        (self.folder / "closed").mkdir(mode=0o000)
        if not os.access(self.folder / "closed", os.X_OK):  # root may read all
            self.assertRegex(self.error(3, "compare", "--baseline", "closed/baseline", "run1"), "closed/baseline cannot be read: Permission denied")
            self.assertRegex(self.error(3, "compare", "--baseline", "closed", "run1"), "closed.*Permission denied")
        self.assertIn("--baseline: the name is empty", self.error(2, "compare", "--baseline", "", "run1", "run2"))
        self.assertIn("no baseline", self.expect(0, "compare", "--baseline", "not/yet", "run1").stdout)

    def test_what_is_no_run_is_told_by_what_it_is(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "other").mkdir()
        (self.folder / "other/notes.txt").touch()
        for place, said in (("pipe", "pipe is a pipe"), ("/dev/null", "/dev/null is a device"), ("other", r"other holds neither a run nor summaries of runs \(\*\.json\)"), ("gone", "there is no run gone")):
            self.assertRegex(self.error(3, "compare", place, "run1"), said)
        self.assertIn("pipe is a pipe", self.error(3, "analyze", "pipe"))

    def test_an_output_never_replaces_what_is_read_and_is_checked_before_the_work(self):
        self.expect(0, "baseline", "save", "run1", "--dir", "base")
        summary, = (self.folder / "base").iterdir()
        (self.folder / "rankscope.toml").write_text("[compare]\n")
        kept = [self.folder / name for name in ("run1/trace.db", "run2/trace.db", f"base/{summary.name}", "rankscope.toml")]
        before = [file.read_bytes() for file in kept]
        os.symlink("run1/trace.db", self.folder / "link")
        for output in ("run1/trace.db", "./run2/../run2/trace.db", "link", f"base/{summary.name}", "rankscope.toml"):
            words = ("compare", "--baseline", "base", "--new", "run1", "run2", "--write", "json=whole.json", "-o", output)
            self.assertRegex(self.error(2, *words), "is what is read.*it would be replaced")
        for verb in (("analyze",), ("recommend",), ("export", "--to", "csv"), ("whatif", "--change", "no-contention")):
            self.assertRegex(self.error(2, *verb, "run1", "-o", "run1/trace.db"), "is what is read", verb)
        self.assertEqual([file.read_bytes() for file in kept], before)
        self.assertEqual(self.error(2, "compare", "run1", "run2", "--write", "json=a", "--write", "md=./a").count("written twice"), 1)
        self.assertRegex(self.error(3, "compare", "run1", "run2", "--write", "json=whole.json", "--write", "md=no/a.md"), "cannot write no/a.md: there is no folder no\n.*hint: mkdir -p no")
        self.assertIn("cannot write run1: it is a folder", self.error(3, "compare", "run1", "run2", "-o", "run1"))
        self.assertFalse((self.folder / "whole.json").exists(), "said before anything is written")
        self.expect(0, "compare", "run1", "run2", "--write", "html=run1/report.html", "--write", "github=/dev/null", "--write", "md=/dev/null")

    def test_a_full_disk_is_an_error_and_leaves_nothing(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        before = sorted(self.folder.iterdir())
        self.assertIn("page.html: File too large", self.expect(3, "compare", "run1", "run2", "--write", "html=page.html", preexec_fn=limit).stderr)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_settings_that_cannot_be_read_are_not_left_out(self):
        settings = self.folder / "rankscope.toml"
        for make, said in ((settings.mkdir, "is a folder"), (lambda: os.mkfifo(settings), "is a pipe"), (lambda: os.symlink("rankscope.toml", settings), "Too many levels"),
                           (lambda: os.symlink("gone", settings), "is a link to nothing")):
            make()
            self.assertRegex(self.error(3, "compare", "run1", "run2"), "rankscope.toml .*" + said)
            settings.rmdir() if said == "is a folder" else settings.unlink()
        for text, said in (('fail-on = []', 'line 2: fail-on is empty'), ('baseline = ""', "line 2: baseline names no folder"), ('threshold.step = 3', "line 2: threshold.step is no share of the step from 0% to 100%"),
                           ('fail-on = "RS301 "', 'line 2: fail-on: "RS301 " is none of')):
            settings.write_text("[compare]\n" + text + "\n")
            self.assertIn(said, self.error(3, "compare", "run1", "run2"))
        settings.write_bytes(b'\xef\xbb\xbf[compare]\r\nfail-on = "never"\r\n')
        self.expect(0, "compare", "run1", "run2")

    def test_names_in_messages_begin_no_line_and_hold_no_escape_sequences(self):
        name = "x\n::error::pwned\x1b[31m\n  ::error::behind blanks"
        (self.folder / "rankscope.toml").write_text('[compare]\n"a\\n::error::pwned\\u001b[31m" = 1\n')
        messages = self.error(3, "compare", "run1", "run2")
        (self.folder / "rankscope.toml").unlink()
        summary = self.expect(0, "baseline", "save", "run1", "--dir", "base") and json.loads(next((self.folder / "base").iterdir()).read_text())
        summary["environment"]["gpu"], other = name, dict(summary, environment=dict(summary["environment"], gpu="H200"))
        for file, contents in (("a.json", summary), ("b.json", other)):
            (self.folder / file).write_text(json.dumps(contents))
        messages += self.error(3, "compare", "a.json", "b.json") + self.error(3, "compare", "--base", "a.json", "b.json", "--new", "run2") + self.error(3, "compare", name, "run1")
        self.assertEqual(messages.count("pwned"), 4, messages)
        self.assertNotRegex(messages, re.compile(r"^\s*::|\x1b", re.MULTILINE))

    def test_one_rank_of_two_jobs_is_compared_as_of_jobs_of_their_size(self):
        for world in (8, 16):
            events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": 1000 + 100 * step, "dur": 100} for step in range(6)]
            for step in range(6):
                call = {"pid": 1, "tid": 1, "ts": 1010 + 100 * step, "dur": 5, "args": {"correlation": step + 1}}
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **call})
                events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1020 + 100 * step, "dur": 70, "args": {"correlation": step + 1, "device": 0, "stream": 7}})
            trace = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": world}, "traceEvents": events}
            (self.folder / f"rank0of{world}.json").write_text(json.dumps(trace))
            self.expect(0, "import", f"rank0of{world}.json", "-o", f"of{world}")
        self.assertIn("not comparable: world size is 8 and 16", self.error(3, "compare", "of8", "of16"))
        self.expect(0, "compare", "of8", "of16", "--across", "world-size")

    def test_a_baseline_is_a_folder_of_its_own_with_labels_that_stay(self):
        self.expect(0, "baseline", "save", "run1", "--dir", "base", "--label", "v1")
        self.expect(0, "baseline", "save", "run1", "--dir", "base")
        self.assertIn("v1", self.expect(0, "baseline", "list", "--dir", "base").stdout)
        for words in (("save", "run1"), ("list",), ("prune",)):
            self.assertIn("run2 is a run, no baseline", self.error(2, "baseline", *words, "--dir", "run2"))
        (self.folder / "empty").mkdir()
        self.assertIn("empty holds no run: nothing to save", self.error(3, "baseline", "save", "empty", "--dir", "base"))
        os.symlink("gone", self.folder / "link")
        for place, said in (("link", "link is a link to nothing"), ("run1/trace.db", "run1/trace.db is no folder")):
            self.assertIn(said, self.error(3, "baseline", "save", "run1", "--dir", place))
        self.assertIn("--dir: the name is empty", self.error(2, "baseline", "save", "run1", "--dir", ""))
        for keep in ("-1", "99999999999999999999", "1.5", "all"):
            self.error(2, "baseline", "prune", "--dir", "base", "--keep", keep)
        self.assertEqual(len(list((self.folder / "base").iterdir())), 1)
        self.expect(0, "baseline", "prune", "--dir", "base", "--keep", "0")
        self.assertIn("no baseline", self.expect(0, "compare", "--baseline", "base", "run1").stdout)


if __name__ == "__main__":
    unittest.main()
