#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What somebody meets in the first minutes: the demo, lists, explanations, answers to typos, lines that fit, and settings of one's own."""

import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import fcntl
import termios
import unittest

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest


class FirstMinutes(VirtualRunTest):
    def setUp(self):
        super().setUp()
        self.environment.pop("COLUMNS", None)
        self.environment.update(HOME=str(self.folder), XDG_CONFIG_HOME=str(self.folder / "config"))

    def said(self, *words, status=0, **variables):
        result = self.run_any(RANKSCOPE, *words, environment=variables)
        self.assertEqual(result.returncode, status, f"{words}\n{result.stderr.decode()}")
        return result.stdout.decode(), result.stderr.decode()

    def on_terminal(self, columns, *words):
        """What is said on a terminal of that width, both channels together."""
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen([RANKSCOPE, *words], cwd=self.folder, env=dict(self.environment, TERM="xterm"), stdin=child, stdout=child, stderr=child)
        os.close(child)
        said = b""
        try:
            while data := os.read(parent, 65536):
                said += data
        except OSError:  # the terminal's other side is gone
            pass
        os.close(parent)
        self.assertEqual(process.wait(), 0, said)
        return said.decode().replace("\r\n", "\n")

    def configure(self, text):
        folder = self.folder / "config/rankscope"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)

    def test_the_demo_records_and_diagnoses_and_can_be_repeated(self):
        for _ in range(2):
            report, notes = self.said("demo")
            self.assertIn("RS301 straggler rank", report)
            self.assertIn("next: rankscope view demo-run", notes)
        (self.folder / "mine").mkdir()
        (self.folder / "mine/thesis.txt").write_text("precious")
        _, errors = self.said("demo", "-o", "mine", status=3)
        self.assertIn("is not a run", errors)
        self.assertEqual((self.folder / "mine/thesis.txt").read_text(), "precious")

    def test_runs_of_a_folder_are_listed_with_what_is_known_of_each(self):
        self.assertIn("no run in this folder", self.said("list")[1])
        scenario = self.write_scenario(SMALL)
        self.run_scenario(scenario, "first")
        self.run_scenario(scenario, "second")
        self.report("second")
        (self.folder / "no-run").mkdir()
        (self.folder / "broken").mkdir()
        (self.folder / "broken/run.json").write_text("{")
        listed = {run["name"]: run for run in json.loads(self.said("list", "--format", "json")[0])["runs"]}
        self.assertEqual(set(listed), {"first", "second", "broken"})
        self.assertEqual((listed["first"]["ranks"], listed["first"]["findings"]), (4, None))
        self.assertEqual(listed["second"]["first_finding"], "RS301 straggler rank")
        self.assertEqual(listed["broken"]["problem"], "run.json is damaged")
        self.assertEqual(self.said("list", "--json")[0], self.said("list", "--format", "json")[0])
        self.said("list", "--json", "--format", "text", status=2)
        table, notes = self.said("list")
        self.assertRegex(table, r"(?m)^first  .*  4  .*not analysed$")
        self.assertRegex(table, r"(?m)^second .*RS301 straggler rank")
        self.assertIn("next: rankscope analyze ", notes)
        self.assertIn("there is no folder nowhere", self.said("list", "nowhere", status=3)[1])

    def test_long_lists_are_cut_with_a_count(self):
        for number in range(33):
            folder = self.folder / f"run-{number:02}"
            folder.mkdir()
            (folder / "run.json").write_text(json.dumps({"start_unix_ns": (number + 1) * 10**17, "end_unix_ns": 1, "command": ["true"]}))
        table = self.said("list")[0].splitlines()
        self.assertEqual(len(table), 1 + 30 + 1)
        self.assertTrue(table[1].startswith("run-32"), table[1])
        self.assertEqual(table[-1], "and 3 older: --all shows them")
        self.assertEqual(len(self.said("list", "--all")[0].splitlines()), 1 + 33)

    def test_diagnoses_are_found_by_words_of_their_title(self):
        self.assertTrue(self.said("explain", "straggler", "rank")[0].startswith("RS301 "))
        several, notes = self.said("explain", "straggler")
        self.assertIn("RS301  straggler rank", several)
        self.assertIn("RS302  ", several)
        self.assertIn("next: rankscope explain RS301", notes)
        self.assertIn("did you mean straggler?", self.said("explain", "stragler", status=3)[1])
        listed = self.said("explain")[0]
        self.assertRegex(listed, r"(?s)^Pipelines\n  RS101 .*\n\nCommunication\n  RS201 .*\n\nJobs that hang or die\n  RS501 ")

    def test_a_scenario_is_shown_with_its_fault_its_truth_and_its_repair(self):
        shown, notes = self.said("reference", "show", "ddp-slow-link")
        self.assertRegex(shown, r"(?m)^  fault     slow_link: .*rank 3")
        self.assertRegex(shown, r"(?m)^  expected  RS208 .*, rank 3$")
        self.assertRegex(shown, r"(?m)^  repaired  without the fault$")
        self.assertIn("next: rankscope reference run ddp-slow-link -o ddp-slow-link", notes)

    def test_what_was_meant_is_said_of_every_kind_of_word(self):
        self.run_scenario(self.write_scenario(SMALL), "slow")
        for words, status, meant in ((["analize", "slow"], 2, "analyze"), (["analyze", "slow", "--fromat", "json"], 2, "--format"),
                                     (["analyze", "slow", "--format", "jsno"], 2, "json"), (["reference", "rnu", "x"], 2, "run"),
                                     (["reference", "run", "fsdp-slow-rnak"], 3, "fsdp-slow-rank"), (["analyze", "slwo"], 3, "slow"),
                                     (["whatif", "slow", "--change", "balnce"], 2, "balance"), (["explain", "RS31"], 3, "RS301")):
            _, errors = self.said(*words, status=status)
            lines = errors.splitlines()
            self.assertTrue(lines[0].startswith("rankscope: error: "), errors)
            self.assertIn(f"rankscope: hint: did you mean {meant}? ", errors, words)

    def test_a_forgotten_mark_is_put_where_it_belongs(self):
        _, errors = self.said("run", "-o", "a", "torchrun", "--nproc", "2", "t.py", status=2)
        self.assertIn("torchrun: `--` is missing in front of the job's command", errors)
        self.assertIn("hint: rankscope run -o a -- torchrun --nproc 2 t.py", errors)

    def test_help_has_the_usage_of_each_verb(self):
        self.assertIn("Usage: rankscope run [OPTIONS] -- COMMAND...", self.said("help", "run")[0])
        self.assertEqual(self.said("help", "reference", "run")[0], self.said("reference", "run", "--help")[0])
        self.assertIn("Usage: rankscope analyze [OPTIONS] NAME", self.said("analyze", "--help")[0])

    def test_lines_are_as_wide_as_the_terminal(self):
        for columns in (60, 100):
            for words in (["--help"], ["run", "--help"], ["explain", "RS301"]):
                lines = re.sub(r"\x1b\[[0-9;]*[mK]", "", self.on_terminal(columns, *words)).splitlines()
                # Examples of commands stay on their line, and a single word is not broken.
                prose = [line for line in lines if "rankscope run " not in line and "rankscope demo" not in line and " " in line.strip()]
                longest = max(prose, key=len)
                self.assertLessEqual(len(longest), columns, longest)
                self.assertGreater(len(longest), columns * 0.8)
        wide, narrow = (self.said("explain", "RS301", COLUMNS=columns)[0] for columns in ("200", "70"))
        self.assertGreater(max(map(len, wide.splitlines())), 120)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 70)

    def test_a_persons_settings_count_where_nothing_nearer_is_said(self):
        self.run_scenario(self.write_scenario(SMALL), "slow")
        self.configure('color = "always"\n[view]\ntheme = "dark"\n')
        report = self.said("analyze", "slow")[0]
        self.assertIn("\x1b[", report)
        self.assertNotIn("\x1b[", self.said("--color", "never", "analyze", "slow")[0])
        self.assertNotIn("\x1b[", self.said("--color", "auto", "analyze", "slow")[0])
        self.assertNotIn("\x1b[", self.said("analyze", "slow", NO_COLOR="1")[0])

    def test_a_persons_links_are_those_of_the_runs_that_are_recorded_here(self):
        self.configure('links = "intra:gbps=123"')
        for name, options, variables, links in (("a", [], {}, "intra:gbps=123"), ("b", ["--links", "intra:gbps=9"], {}, "intra:gbps=9"),
                                                ("c", [], {"RANKSCOPE_LINKS": "intra:gbps=8"}, None), ("d", ["--virtual"], {}, None)):
            self.said("-q", "run", "-o", name, *options, "--", "true", **variables)
            self.assertEqual(json.loads((self.folder / name / "run.json").read_text()).get("links"), links, name)

    def test_settings_that_cannot_be_used_are_refused_with_their_line(self):
        for text, line, hint in (('color = "alway"', 1, "did you mean always?"), ("\nlinsk = 3", 2, "did you mean links?"), ("[view]\ntheme = 3", 2, 'write view.theme = "'),
                                 ("color = ", 1, "it is TOML"), ('links = "intra"', 1, "as --links takes it")):
            self.configure(text)
            _, errors = self.said("explain", status=3)
            self.assertIn(f"config.toml, line {line}: ", errors)
            self.assertIn(hint, errors)

    def test_a_job_runs_whatever_is_wrong_with_a_persons_settings(self):
        self.configure('color = "always"\nlinsk = "intra:gbps=123"')
        _, errors = self.said("run", "-o", "a", "--", "sh", "-c", "exit 7", status=7)
        self.assertIn("warning: ", errors)
        self.assertIn("config.toml, line 2: there is no setting linsk", errors)
        self.assertIn("did you mean links?", errors)
        self.assertNotIn("\x1b[", errors, "of a file that cannot be used nothing counts")
        self.assertTrue((self.folder / "a/run.json").is_file())

    def test_usage_lines_say_where_a_command_goes_and_whether_it_must(self):
        for verb, words in (("run", "[OPTIONS] -- COMMAND..."), ("tune", "[OPTIONS] [-- COMMAND...]"), ("doctor", "[OPTIONS] [-- COMMAND...]"), ("list", "[OPTIONS] [FOLDER]")):
            self.assertIn(f"rankscope {verb} {words}\n", self.said(verb, "--help")[0])

    def test_a_trend_takes_its_baseline_as_other_verbs_take_their_runs(self):
        kept = str(pathlib.Path(__file__).parent / "demo-baseline")
        self.assertIn("the step is ", self.said("trend", kept)[0])
        self.assertEqual(self.said("trend", kept)[0], self.said("trend", "--baseline", kept)[0])
        for words in ([kept, "--last", "0"], [kept, "--baseline", kept], ["nowhere"]):
            out, errors = self.said("trend", *words, status=3 if words == ["nowhere"] else 2)
            self.assertEqual(out, "")
            self.assertIn("rankscope: error: ", errors)


if __name__ == "__main__":
    unittest.main()
