#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completions and manual pages that the program writes of itself: shells and roff take them, and they say what --help says."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

RANKSCOPE = pathlib.Path(os.environ.get("RANKSCOPE_BINARY", "rankscope")).resolve()
SHARE = RANKSCOPE.parents[1] / "share"


def run(*command, text=None, environment=None):
    return subprocess.run([str(word) for word in command], input=text, env=environment, capture_output=True, text=True, timeout=60)


def help_of(*verb):
    return run(RANKSCOPE, *verb, "--help").stdout


def verbs():
    return re.findall(r"^  ([a-z]+)  ", help_of(), re.MULTILINE)


class Bash(unittest.TestCase):
    def answers(self, line):
        """What bash offers behind the last word of a command line."""
        words = line.split(" ")
        script = (run(RANKSCOPE, "completion", "bash").stdout + f"COMP_WORDS=({' '.join(json.dumps(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
                  "compopt() { :; }\n_rankscope\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
        result = run("bash", "--norc", text=script)
        self.assertEqual(result.stderr, "", line)
        return result.stdout.split()

    def test_verbs_options_and_values_are_offered_where_they_stand(self):
        self.assertLessEqual({"run", "analyze", "demo"}, set(self.answers("rankscope ")))
        self.assertEqual(self.answers("rankscope anal"), ["analyze"])
        self.assertEqual(self.answers("rankscope analyze job --for"), ["--format"])
        self.assertEqual(set(self.answers("rankscope analyze job --format ")), {"text", "json", "md", "html"})
        self.assertEqual(set(self.answers("rankscope reference ")) & {"run", "show", "list"}, {"run", "show", "list"})
        self.assertEqual(self.answers("rankscope reference run fsdp-slow-ra"), ["fsdp-slow-rank"])
        self.assertIn("RS301", self.answers("rankscope explain RS3"))
        self.assertEqual(self.answers("rankscope --color ne"), ["never"])
        # A value is no verb: the job may be called like one.
        self.assertEqual(self.answers("rankscope run -o analyze --hang-t"), ["--hang-timeout"])

    def test_behind_the_mark_commands_are_offered(self):
        self.assertIn("env", self.answers("rankscope run -o a -- en"))


class OtherShells(unittest.TestCase):
    def check(self, shell, *options):
        if not shutil.which(shell):
            self.skipTest(f"{shell} is not installed")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "completion")
            script.write_text(run(RANKSCOPE, "completion", shell).stdout)
            result = run(shell, *options, script)
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_zsh_takes_it(self):
        self.check("zsh", "-f", "-n")

    def test_fish_takes_it(self):
        self.check("fish", "--no-execute")

    def test_fish_offers_values(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        with tempfile.TemporaryDirectory() as home:
            script = run(RANKSCOPE, "completion", "fish").stdout + "\ncomplete -C 'rankscope analyze job --format '\ncomplete -C 'rankscope reference sh'\n"
            result = run("fish", "--no-config", text=script, environment=dict(os.environ, HOME=home))
        self.assertLessEqual({"text", "json", "md", "html", "show"}, {line.split("\t")[0] for line in result.stdout.splitlines()}, result.stderr)


class ManualPages(unittest.TestCase):
    def test_every_verb_has_a_page_with_its_options(self):
        self.assertIn("run", verbs())
        for verb in verbs():
            if verb == "view":  # written by hand: packaging_test.py
                continue
            page = (SHARE / f"man/man1/rankscope-{verb}.1").read_text().replace("\\-", "-")
            for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", help_of(verb), re.MULTILINE):
                self.assertIn(option, page, verb)
            self.assertIn(".SH SYNOPSIS\nrankscope " + verb, page)

    def test_formatting_raises_no_warning(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        pages = sorted((SHARE / "man/man1").glob("*.1"))
        self.assertGreater(len(pages), 15)
        for page in pages:
            result = run("groff", "-man", "-Tutf8", "-ww", page)
            self.assertEqual((result.returncode, result.stderr), (0, ""), page.name)


if __name__ == "__main__":
    unittest.main()
