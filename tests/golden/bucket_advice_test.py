#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on gradient buckets against a sweep of the job itself, on clusters drawn at random.

A job runs once with some bucket size; the size `rankscope recommend` gives (or the present one, where it says keep) is within 5 % of the best step time of a
sweep over 1 to 400 MB. Runs a few clusters; `--clusters 12` more, `--first N` starts behind the first N.
"""

import argparse
import json
import random
import statistics
import sys
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

CLUSTERS, FIRST = 2, 0
WITHIN = 0.05
SIZES_MB = [1, 2, 4, 8, 16, 25, 50, 100, 200, 400]


def draw(number):
    chance = random.Random(2000 + number)
    nodes, per_node = chance.choice([(1, 4), (1, 8), (2, 2), (2, 4), (4, 1), (4, 2), (8, 1)])
    cluster = {"nodes": nodes, "ranks_per_node": per_node, "tflops": chance.choice([150, 300]),
               "intra": {"alpha_us": round(chance.uniform(2, 15), 2), "gbps": chance.choice([60, 150, 300])},
               "inter": {"alpha_us": round(chance.uniform(10, 60), 2), "gbps": chance.choice([12, 25, 50])}}
    return {"name": f"drawn{number}", "kind": chance.choice(["ddp", "ddp", "zero1", "zero2"]), "steps": 6, "seed": number, "noise": round(chance.uniform(0, 0.02), 3), "cluster": cluster,
            "model": {"layers": chance.choice([8, 16]), "hidden": chance.choice([512, 1024, 2048]), "seq": chance.choice([512, 1024, 2048]), "micro_batch": chance.choice([1, 2])},
            "parallel": {"dp": nodes * per_node, "bucket_mb": chance.choice([1, 1, 5, 25, 100, 400])}}


class BucketAdvice(VirtualRunTest):
    def step_ms(self, scenario, size):
        """Median step with buckets of `size` MB."""
        run = f"{scenario['name']}-{size}"
        changed = dict(scenario, name=run, parallel=dict(scenario["parallel"], bucket_mb=size))
        self.run_scenario(self.write_scenario(changed), run)
        return statistics.median(step["dur_ns"] for step in self.report(run)["steps"] if not step["warm_up"]) / 1e6

    def advised(self, run, present):
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", run, "--format", "json").stdout)
        sizes = [int(one["ddp"]["bucket_cap_mb"]) for one in advice["recommendations"] if one["area"] == "buckets" and one["certainty"] == "recommended"]
        if not sizes:
            self.assertIn("buckets", [kept["area"] for kept in advice["kept"]], "buckets were not judged")
        return sizes[0] if sizes else present

    def test_the_advised_size_is_near_the_best_of_a_sweep(self):
        distances = []
        for number in range(FIRST, FIRST + CLUSTERS):
            scenario = draw(number)
            present = scenario["parallel"]["bucket_mb"]
            with self.subTest(cluster=number, kind=scenario["kind"], present=present):
                before = self.step_ms(scenario, present)
                size = self.advised(f"{scenario['name']}-{present}", present)
                sweep = {mb: self.step_ms(scenario, mb) for mb in SIZES_MB if mb != present}
                sweep[present] = before
                after = sweep[size] if size in sweep else self.step_ms(scenario, size)
                best = min(sweep, key=sweep.get)
                distances.append(after / sweep[best] - 1)
                print(f"cluster {number}: {scenario['kind']} {scenario['cluster']['nodes']}x{scenario['cluster']['ranks_per_node']} {present} -> {size} MB:"
                      f" {before:.2f} -> {after:.2f} ms, best {sweep[best]:.2f} ({best} MB), {100 * distances[-1]:.2f} % from it", flush=True)
                self.assertLessEqual(after, sweep[best] * (1 + WITHIN))
        print(f"{len(distances)} clusters: advised against best median {100 * statistics.median(distances):.2f} %, worst {100 * max(distances):.2f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--first", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    CLUSTERS, FIRST = arguments.clusters, arguments.first
    unittest.main(argv=[sys.argv[0], *rest])
