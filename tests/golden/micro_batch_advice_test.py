#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on micro-batches and virtual stages against sweeps of the job itself, on pipelines drawn at random.

A pipeline runs once; the number of micro-batches `rankscope recommend` gives (or the present one, where it says keep) is within 5 % of the best time per token of a
sweep of the job over one to eight times as many, and the virtual stages it gives are within 5 % of the best of those the job's layers can be cut into. Runs a
few; `--clusters 12` more, `--first N` starts behind the first N, `--also N` takes one more by its number.
"""

import argparse
import json
import random
import statistics
import sys
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

CLUSTERS, FIRST, ALSO = 2, 0, []
WITHIN = 0.05
FACTORS = [1, 2, 3, 4, 6, 8]
VIRTUAL = [1, 2, 4]


def draw(number):
    chance = random.Random(3000 + number)
    pp = chance.choice([2, 2, 4, 4, 8])
    dp, tp = chance.choice([(1, 1), (1, 1), (2, 1), (1, 2)]) if pp < 8 else (1, 1)
    world = pp * dp * tp
    per_node = chance.choice([count for count in (1, 2, 4, 8) if world % count == 0 and count >= tp])
    cluster = {"nodes": world // per_node, "ranks_per_node": per_node, "tflops": chance.choice([150, 300]),
               "intra": {"alpha_us": round(chance.uniform(2, 10), 2), "gbps": chance.choice([60, 150, 300])},
               "inter": {"alpha_us": round(chance.uniform(8, 40), 2), "gbps": chance.choice([6, 12, 25, 50])}}
    schedule = chance.choice(["1f1b", "1f1b", "1f1b", "gpipe"])
    return {"name": f"pipe{number}", "kind": "3d" if tp > 1 else "pp", "steps": 6, "seed": number, "noise": round(chance.uniform(0, 0.02), 3), "cluster": cluster,
            "model": {"layers": pp * chance.choice([2, 4]), "hidden": chance.choice([1024, 2048]), "seq": chance.choice([512, 1024]), "micro_batch": chance.choice([1, 2])},
            "parallel": {"dp": dp, "tp": tp, "pp": pp, "schedule": schedule, "micro_batches": pp * chance.choice([1, 1, 2, 4]), "bucket_mb": 25}}


class MicroBatchAdvice(VirtualRunTest):
    def token_ms(self, scenario, count, virtual=1):
        """Mean step with `count` micro-batches over their number: micro-batches keep their size. From first to last, since the stages' steps overlap."""
        run = f"{scenario['name']}-{count}-{virtual}"
        changed = dict(scenario, name=run, parallel=dict(scenario["parallel"], micro_batches=count))
        if virtual > 1:
            changed["parallel"].update(schedule="interleaved", virtual_stages=virtual)
        self.run_scenario(self.write_scenario(changed), run)
        steps = [step for step in self.report(run)["steps"] if not step["warm_up"]]
        return (steps[-1]["start_ns"] + steps[-1]["dur_ns"] - steps[0]["start_ns"]) / len(steps) / 1e6 / count

    def advised(self, run):
        """(micro-batches, virtual stages), None where nothing is to be changed."""
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", run, "--format", "json").stdout)
        # More micro-batches of the present size are another batch, so an alternative. Smaller ones are told where they gain, too; else the finding itself stands for the larger batch, or they are
        # kept. Virtual stages gain less, or nothing, on top of more micro-batches: by themselves they are then an alternative, too.
        every = advice["alternatives"] + advice["recommendations"]
        told = {one["area"]: one["job"] for one in every if one["certainty"] == "recommended" and one["area"] in ("global_batch", "virtual_stages")}
        kept = [one["area"] for one in advice["kept"]]
        smaller = [one for one in every if one["area"] == "micro_batches"]
        self.assertTrue(smaller or "micro_batches" in kept or any("RS101" in one["findings"] for one in advice["recommendations"]), "micro-batches were not judged")
        self.assertTrue("virtual_stages" in told or "virtual_stages" in kept, "virtual stages were not judged")
        self.assertTrue("global_batch" in told or not smaller, "smaller micro-batches gain, but not as many of the present size?")
        return int(told.get("global_batch", {}).get("micro_batches", 0)) or None, int(told.get("virtual_stages", {}).get("virtual_stages", 0)) or None

    def compare(self, what, tried, given, present):
        best = min(tried, key=tried.get)
        distance = tried[given] / tried[best] - 1
        print(f"  {what} {present} -> {given}: {tried[present]:.3f} -> {tried[given]:.3f} ms a micro-batch, best {tried[best]:.3f} ({best}), {100 * distance:.2f} % from it", flush=True)
        self.assertLessEqual(tried[given], tried[best] * (1 + WITHIN), what)
        return distance

    def test_the_advised_pipeline_is_near_the_best_of_a_sweep(self):
        distances = {"micro-batches": [], "virtual stages": []}
        for number in [*range(FIRST, FIRST + CLUSTERS), *ALSO]:
            scenario = draw(number)
            parallel, layers = scenario["parallel"], scenario["model"]["layers"]
            present = parallel["micro_batches"]
            with self.subTest(cluster=number, parallel=parallel):
                counts = {present: self.token_ms(scenario, present)}
                count, virtual = self.advised(f"{scenario['name']}-{present}-1")
                counts.update((factor * present, self.token_ms(scenario, factor * present)) for factor in FACTORS[1:])
                if count and count not in counts:
                    counts[count] = self.token_ms(scenario, count)
                print(f"pipeline {number}: {parallel['schedule']} {parallel['pp']} stages x dp {parallel['dp']} x tp {parallel['tp']} on {scenario['cluster']['nodes']} nodes", flush=True)
                stages = {1: counts[present]}
                stages.update((v, self.token_ms(scenario, present, v)) for v in VIRTUAL[1:] if layers % (parallel["pp"] * v) == 0)
                distances["virtual stages"].append(self.compare("virtual stages", stages, virtual or 1, 1))
                distances["micro-batches"].append(self.compare("micro-batches", counts, count or present, present))
        for what, shares in distances.items():
            print(f"{what}: {len(shares)} pipelines, advised against best median {100 * statistics.median(shares):.2f} %, worst {100 * max(shares):.2f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--also", type=int, nargs="*", default=[])
    arguments, rest = parser.parse_known_args()
    CLUSTERS, FIRST, ALSO = arguments.clusters, arguments.first, arguments.also
    unittest.main(argv=[sys.argv[0], *rest])
