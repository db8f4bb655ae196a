#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice fits what the job is: experts are balanced as experts, whatever their exchange is made of, and shards stay inside nodes only where nodes have more than one."""

import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

EXPERTS = {"name": "experts", "kind": "ep", "steps": 6, "seed": 5, "cluster": {"nodes": 2, "ranks_per_node": 2},
           "model": {"layers": 4, "hidden": 1024, "seq": 1024, "micro_batch": 2, "experts": 8}, "parallel": {"dp": 4, "ep": 4},
           "faults": [{"kind": "uneven_work", "ranks": [2], "factor": 1.5}]}
LENGTHS = {"name": "lengths", "kind": "ddp", "steps": 6, "seed": 5, "cluster": {"nodes": 2, "ranks_per_node": 2},
           "model": {"layers": 4, "hidden": 1024, "seq": 1024, "micro_batch": 2}, "parallel": {"dp": 4},
           "faults": [{"kind": "uneven_work", "ranks": [2], "factor": 1.5}]}


def shards(nodes, per_node):
    return {"name": f"shards{nodes}x{per_node}", "kind": "fsdp", "steps": 6, "seed": 5,
            "cluster": {"nodes": nodes, "ranks_per_node": per_node, "inter": {"alpha_us": 18, "gbps": 3}},
            "model": {"layers": 6, "hidden": 2048, "seq": 1024, "micro_batch": 2}, "parallel": {"dp": nodes * per_node}, "faults": [{"kind": "saturated"}]}


class PlacedAdvice(VirtualRunTest):
    def fix_of(self, scenario, diagnosis):
        name = scenario["name"]
        self.run_scenario(self.write_scenario(scenario), name)
        found = [finding for finding in self.report(name)["findings"] if finding["id"] == diagnosis]
        self.assertEqual(len(found), 1, self.report(name)["findings"])
        advice = self.check_run(RANKSCOPE, "-q", "recommend", name).stdout.decode()
        for line in found[0]["fix"]:
            self.assertIn(line, advice)
        return "\n".join(found[0]["fix"])

    def test_experts_are_balanced_as_experts(self):
        fix = self.fix_of(EXPERTS, "RS304")
        self.assertIn("balance the experts", fix)
        self.assertNotIn("by length", fix)

    def test_other_uneven_work_is_dealt_by_length(self):
        self.assertIn("by length", self.fix_of(LENGTHS, "RS304"))

    def test_shards_inside_nodes_need_more_than_one_rank_on_each(self):
        self.assertIn("HSDP", self.fix_of(shards(2, 2), "RS203"))
        self.assertNotIn("HSDP", self.fix_of(shards(4, 1), "RS203"))


if __name__ == "__main__":
    unittest.main()
