#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job whose links nobody told is judged by itself: the culprit is that of the same job with told links, and what is promised is no more."""

import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

JOB = {"kind": "fsdp", "steps": 6, "seed": 5, "model": {"layers": 4, "hidden": 4096, "seq": 1024, "micro_batch": 1}, "parallel": {"dp": 6}}
# One group of all ranks: nothing but its own edges to compare with.
SLOW_RANK = {**JOB, "name": "rank", "cluster": {"nodes": 1, "ranks_per_node": 6}, "faults": [{"kind": "slow_link", "rank": 2, "factor": 0.25}]}
SLOW_CARD = {**JOB, "name": "card", "cluster": {"nodes": 3, "ranks_per_node": 2}, "faults": [{"kind": "slow_nic", "node": 1, "factor": 0.25}]}
HEALTHY = {**JOB, "name": "healthy", "cluster": {"nodes": 3, "ranks_per_node": 2}, "faults": []}

# The exchanges of experts are the only ones of their kind: nothing tells how long they should take, but a member's link is known to be slow by other messages.
EXPERTS = {"kind": "ep", "name": "experts", "steps": 6, "seed": 9, "model": {"layers": 4, "hidden": 2048, "seq": 2048, "micro_batch": 4, "experts": 8}, "parallel": {"dp": 4, "ep": 4},
           "cluster": {"nodes": 1, "ranks_per_node": 4}, "faults": [{"kind": "slow_link", "rank": 3, "factor": 0.1}]}


class UnknownLinks(VirtualRunTest):
    def found(self, scenario, links):
        name = f"{scenario['name']}-{links}"
        self.check_run(RANKSCOPE, "-q", "reference", "run", self.write_scenario(scenario), "-o", name, "--links", links)
        return {finding["id"]: finding for finding in self.report(name)["findings"] if finding.get("verdict", "found") == "found"}

    def test_a_slow_link_is_named_and_priced(self):
        for scenario, ranks, least in ((SLOW_RANK, [2], 0.7), (SLOW_CARD, [2, 3], 0.9)):
            told, unknown = self.found(scenario, "told"), self.found(scenario, "unknown")
            self.assertEqual(list(told), ["RS208"], scenario)
            self.assertEqual(list(unknown), ["RS208"], scenario)
            self.assertEqual(unknown["RS208"]["ranks"], ranks)
            self.assertEqual(unknown["RS208"]["saving_source"], "replay")
            promised = unknown["RS208"]["saving_ns_per_step"] / told["RS208"]["saving_ns_per_step"]
            self.assertGreater(promised, least)
            self.assertLess(promised, 1.05)

    def test_what_a_slow_link_may_explain_is_neither_healthy_nor_silent(self):
        for links in ("told", "unknown"):
            self.check_run(RANKSCOPE, "-q", "reference", "run", self.write_scenario(EXPERTS), "-o", links, "--links", links)
            open_transfer = [entry for entry in self.report(links)["unexplained"] if entry["category"] == "transfer"]
            self.assertEqual(len(open_transfer), 1, links)
            self.assertGreater(open_transfer[0]["share"], 0.2)
            self.assertIn("RS208 names (rank 3)", open_transfer[0]["settle"])

    def test_a_healthy_one_is_not(self):
        found = self.found(HEALTHY, "unknown")
        self.assertFalse({"RS204", "RS208"} & set(found), found)


if __name__ == "__main__":
    unittest.main()
