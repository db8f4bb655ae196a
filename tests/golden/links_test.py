#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the peaks of links come from, as a user sees it: told to any verb, from the machine, or unknown; and what is refused."""

import json
import sqlite3
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

# Too many bytes for the network between the nodes: 2.5 of 40 GB/s is what it has.
SATURATED = {"name": "saturated", "kind": "ddp", "steps": 8, "seed": 3, "cluster": {"nodes": 2, "ranks_per_node": 2, "inter": {"alpha_us": 18, "gbps": 2.5}},
             "model": {"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 2}, "parallel": {"dp": 4}, "faults": [{"kind": "saturated"}]}
TOLD = "intra:gbps=200,alpha_us=6;inter:gbps=2.5,alpha_us=18"


class Links(VirtualRunTest):
    def verdicts(self, report):
        return {finding["id"]: finding["verdict"] for finding in report["findings"]}

    def analyze(self, name, *options, environment=None):
        return json.loads(self.check_run(RANKSCOPE, "-q", "analyze", name, "--format", "json", *options, environment=environment).stdout)

    def kinds(self, report):
        return [link and link["kind"] for link in (report["link_peaks"]["intra"], report["link_peaks"]["inter"])]

    def run_links(self, links):
        scenario = self.write_scenario(SATURATED)
        self.check_run(RANKSCOPE, "-q", "reference", "run", scenario, "-o", links, "--links", links)

    def test_what_is_told_later_decides_like_what_was_told_when_recording(self):
        self.run_links("told")
        told = self.analyze("told")
        self.assertEqual((self.kinds(told), self.verdicts(told)["RS203"]), (["told", "told"], "found"))
        self.run_links("unknown")
        unknown = self.analyze("unknown")
        self.assertNotIn("found", {self.verdicts(unknown).get("RS203")})
        self.assertFalse(set(self.kinds(unknown)) & {"told", "machine"})
        for options, environment in ((("--links", TOLD), None), ((), {"RANKSCOPE_LINKS": TOLD})):
            later = self.analyze("unknown", *options, environment=environment)
            self.assertEqual([(f["id"], f["verdict"], f["severity"]) for f in later["findings"]], [(f["id"], f["verdict"], f["severity"]) for f in told["findings"]])
            self.assertEqual(later["link_peaks"]["inter"]["source"], "--links" if options else "RANKSCOPE_LINKS")
        # The window reads what the last analysis took; the next one forgets it.
        with sqlite3.connect(f"file:{self.folder}/unknown/trace.db?mode=ro", uri=True) as trace:
            self.assertEqual(json.loads(trace.execute("SELECT value FROM meta WHERE key = 'link_peaks'").fetchone()[0])["inter"]["gbps"], 2.5)
        self.assertEqual(self.verdicts(self.analyze("unknown")), self.verdicts(unknown))
        # Collected with them they stay.
        self.check_run(RANKSCOPE, "-q", "collect", "unknown", "--links", TOLD)
        self.assertEqual(self.verdicts(self.analyze("unknown")), self.verdicts(told))
        (self.folder / "unknown/trace.db").unlink()
        self.assertEqual(self.kinds(self.analyze("unknown")), ["told", "told"])
        # Other verbs take them, too.
        self.check_run(RANKSCOPE, "-q", "whatif", "unknown", "--links", TOLD, "--change", "bytes:factor=0.5")
        self.check_run(RANKSCOPE, "-q", "recommend", "unknown", "--links", TOLD)

    def test_a_table_of_nccl_tests_is_measured(self):
        self.run_links("unknown")
        head = "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n"
        devices = "".join(f"#  Rank {rank:2} Group  0 Pid {100 + rank:6} on node{rank // 2} device  {rank % 2} [0x10] NVIDIA H100\n" for rank in range(4))
        columns = "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
        rows = ""
        for power in range(20, 31):
            size = 1 << power
            us = 100 + size * 1.5 / 5e3
            numbers = f"{us:8.2f} {size / us / 1e3:7.2f} {size / us / 1e3 * 1.5:7.2f}      0"
            rows += f"{size:12} {size // 4:12}     float     sum      -1 {numbers} {numbers}\n"
        (self.folder / "all_reduce.txt").write_text(head + devices + columns + rows + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 5\n#\n")
        report = self.analyze("unknown", "--links-table", "all_reduce.txt")
        self.assertEqual(report["link_peaks"]["inter"]["kind"], "measured")
        self.assertAlmostEqual(report["link_peaks"]["inter"]["gbps"], 2.5, delta=0.05)   # two cards a node
        self.assertEqual(self.verdicts(report)["RS203"], "found")

    def test_sources_that_contradict_each_other_are_named_both(self):
        self.run_links("told")
        report = self.analyze("told", "--links", "intra:gbps=200;inter:gbps=40")
        warning, = [loss["what_it_means"] for loss in report["loss"] if loss["kind"] == "link_peaks"]
        for part in ("40 GB/s", "2.5 GB/s", "--links of the run"):
            self.assertIn(part, warning)

    def test_no_peak_that_cannot_be_is_taken(self):
        self.run_links("unknown")
        for links in ("intra:gbps=0", "inter:gbps=-5", "intra:gbps=nan", "intra:gbps=20000", "middle:gbps=5", "200", "intra:gbps=5;intra:gbps=6"):
            for verb in (["analyze", "unknown"], ["whatif", "unknown", "--change", "balance"], ["collect", "unknown"], ["import", "x.json", "-o", "i"], ["run", "--", "true"]):
                result = self.run_any(RANKSCOPE, *verb[:1], "--links", links, *verb[1:])
                self.assertEqual(result.returncode, 2, (links, verb, result.stderr))
        result = self.run_any(RANKSCOPE, "analyze", "unknown", environment={"RANKSCOPE_LINKS": "inter:gbps=lots"})
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"RANKSCOPE_LINKS", result.stderr)


if __name__ == "__main__":
    unittest.main()
