#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All recommended settings at once: run a job with several things wrong, follow the whole advice, run it again.

What is measured must lie in the interval that the advice's head tells for all settings together, and no two of them may set the same thing. Scenarios are drawn: `--jobs N`
tries more of them, `--first N` starts behind the first N.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S, VirtualRunTest

JOBS, FIRST = 4, 0
INSIDE = 0.75     # of the measured gains lie in their interval
WORST = 0.05      # of the step, between the predicted and the measured gain
HOLDS = ("ddp", "fsdp", "deepspeed", "accelerate", "env", "job")


def draw(number):
    """A job with small buckets (each third: all of one size) and a forced protocol, and now and then late gradients, gradients in fp32 or reductions in every micro-step."""
    chance = random.Random(77000 + number)
    kind = chance.choice(["ddp", "ddp", "zero1", "zero2"])
    nodes, per_node = chance.choice([(1, 4), (1, 8), (2, 2), (2, 4), (4, 2)])
    cluster = {"nodes": nodes, "ranks_per_node": per_node, "tflops": chance.choice([150, 300, 600]),
               "intra": {"alpha_us": round(chance.uniform(1.5, 10), 2), "gbps": chance.choice([60, 150, 300])},
               "inter": {"alpha_us": round(chance.uniform(4, 40), 2), "gbps": chance.choice([12, 25, 50])}}
    parallel = {"dp": nodes * per_node, "bucket_mb": chance.choice([1, 2, 4, 8])}
    faults = [chance.choice([{"kind": "wrong_algo", "proto": "LL"}, {"kind": "wrong_algo", "proto": "LL"}, {"kind": "wrong_algo", "proto": "Simple"}])]
    if number % 3 == 2:
        faults.append({"kind": "small_buckets", "kb": chance.choice([256, 512, 1024, 2048, 4096])})
    if chance.random() < 0.3:
        faults.append({"kind": "no_overlap"})
    if chance.random() < 0.5:
        faults.append(chance.choice([{"kind": "fp32_grads"}, {"kind": "no_no_sync"}]))
    if any(fault["kind"] == "no_no_sync" for fault in faults):
        parallel["accumulate"] = 2
    return {"name": f"several{number}", "kind": kind, "steps": 6, "seed": number, "noise": round(chance.uniform(0, 0.02), 3), "cluster": cluster,
            "model": {"layers": chance.choice([6, 8]), "hidden": chance.choice([1024, 2048]), "seq": chance.choice([512, 1024]), "micro_batch": chance.choice([1, 2])},
            "parallel": parallel, "faults": faults}


def followed(scenario, settings):
    """The scenario with what the settings say; the environment is for the shell."""
    gone = {"redundancy": "no_no_sync", "precision": "fp32_grads", "overlap": "no_overlap"}
    faults = [fault for fault in scenario["faults"] if fault["kind"] not in [gone.get(one["area"]) for one in settings]]
    parallel = dict(scenario["parallel"])
    for one in settings:
        if "bucket_cap_mb" in one["ddp"]:
            # The job without fp32 holds 16-bit gradients; DDP with a hook goes on to count them in fp32.
            parallel["bucket_mb"] = int(one["ddp"]["bucket_cap_mb"]) / (2 if any(other["area"] == "precision" for other in settings) else 1)
            faults = [fault for fault in faults if fault["kind"] != "small_buckets"]
    return dict(scenario, name=scenario["name"] + "-after", faults=faults, parallel=parallel)


class ComposedAdvice(VirtualRunTest):
    def step_ns(self, name):
        return statistics.median(step["dur_ns"] for step in self.report(name)["steps"] if not step["warm_up"])

    def advice_on(self, name):
        return json.loads(self.check_run(RANKSCOPE, "-q", "recommend", name, "--format", "json").stdout)

    def check_composed(self, advice):
        """Each counts from those before it, and none takes back what another sets."""
        settings = [one for one in advice["recommendations"] if one["kind"] == "setting" and one["certainty"] == "recommended"]
        for i, one in enumerate(settings):
            self.assertEqual(one["on_top_of"], [other["number"] for other in settings[:i]])
            for other in settings[:i]:
                self.assertNotEqual(one["area"], other["area"])
                for part in HOLDS:
                    for key in one[part].keys() & other[part].keys():
                        self.assertEqual(one[part][key], other[part][key], f"{key} is set twice")
        numbers = [one["number"] for one in settings]
        for other in advice["alternatives"]:
            self.assertIn(other["alternative_to"], numbers)
        return settings

    def test_all_settings_together_gain_what_the_head_says(self):
        inside, distances, several = [], [], 0
        for number in range(FIRST, FIRST + JOBS):
            scenario = draw(number)
            with self.subTest(job=number):
                before = scenario["name"]
                self.run_scenario(self.write_scenario(scenario), before)
                advice = self.advice_on(before)
                settings = self.check_composed(advice)
                self.assertTrue(settings, "nothing was advised on a job with faults")
                self.check_run(RANKSCOPE, "-q", "recommend", before, "--format", "env", "-o", f"{before}.env")
                after = followed(scenario, settings)
                result = subprocess.run(["sh", "-euc", f'. ./{before}.env; "$0" -q reference run "$1" -o "$2"', RANKSCOPE, str(self.write_scenario(after)), after["name"]],
                                        cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
                self.assertEqual(result.returncode, 0, result.stderr.decode())
                step, told = self.step_ns(before), advice["together"]
                gain, (low, high) = step - self.step_ns(after["name"]), told["interval_ns"]
                several += len(settings) > 1
                inside.append(low - 0.001 * step <= gain <= high + 0.001 * step)
                distances.append(abs(gain - told["predicted_saving_ns"]) / step)
                print(f"{before}: {scenario['kind']} {[fault['kind'] for fault in scenario['faults']]}: {' + '.join(one['area'] for one in settings)}: predicted"
                      f" {told['predicted_saving_ns'] / 1e6:.3f} ({low / 1e6:.3f} to {high / 1e6:.3f}), measured {gain / 1e6:.3f} of {step / 1e6:.3f} ms"
                      f" ({100 * distances[-1]:.2f} % of the step off){'' if inside[-1] else ' OUTSIDE'}", flush=True)
        print(f"{len(inside)} jobs, {several} with several settings: {sum(inside)} gains in their interval, median {100 * statistics.median(distances):.2f} %, worst {100 * max(distances):.2f} % off")
        self.assertGreaterEqual(several, len(inside) / 2)
        self.assertGreaterEqual(sum(inside), INSIDE * len(inside))
        self.assertLessEqual(max(distances), WORST)

    def test_what_contradicts_is_an_alternative_and_in_no_file(self):
        scenario = dict(draw(0), name="late", kind="ddp", faults=[{"kind": "no_overlap"}], parallel={"dp": 4, "bucket_mb": 25},
                        cluster={"nodes": 1, "ranks_per_node": 4}, model={"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 2})
        self.run_scenario(self.write_scenario(scenario), "late")
        advice = self.advice_on("late")
        [setting] = self.check_composed(advice)
        self.assertEqual(setting["area"], "overlap")
        [other] = [one for one in advice["alternatives"] if one["area"] == "buckets"]
        self.assertLess(other["predicted_saving_ns"], setting["predicted_saving_ns"])
        file = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", "late", "--format", "deepspeed").stdout)["zero_optimization"]
        self.assertEqual(file["reduce_bucket_size"], setting["deepspeed"]["zero_optimization.reduce_bucket_size"])
        self.assertNotEqual(setting["ddp"]["bucket_cap_mb"], other["ddp"]["bucket_cap_mb"])

    def test_a_broken_link_is_to_be_repaired_first(self):
        scenario = dict(draw(0), name="broken", kind="ddp", faults=[{"kind": "slow_link", "rank": 2, "factor": 0.05}], parallel={"dp": 4},
                        cluster={"nodes": 1, "ranks_per_node": 4}, model={"layers": 8, "hidden": 2048, "seq": 1024, "micro_batch": 2})
        self.run_scenario(self.write_scenario(scenario), "broken")
        self.run_scenario(self.write_scenario(dict(scenario, name="whole", faults=[])), "whole")
        advice = self.advice_on("broken")
        first = advice["recommendations"][0]
        self.assertEqual((first["kind"], first["findings"], first["ranks"]), ("repair", ["RS208"], [2]))
        self.assertTrue(first["steps"])
        step = self.step_ns("broken")
        self.assertLess(abs(step - self.step_ns("whole") - first["predicted_saving_ns"]), 0.03 * step)
        text = self.check_run(RANKSCOPE, "-q", "recommend", "broken").stdout.decode()
        self.assertIn("\n1. Repair: slow link or NIC: rank 2", text)
        if any(one["kind"] == "setting" for one in advice["recommendations"]):
            self.assertIn("The settings are judged with that still there", text)

    def test_where_nothing_can_be_judged_it_is_said(self):
        self.run_scenario(self.write_scenario(dict(draw(0), name="short", steps=1)), "short")
        text = self.check_run(RANKSCOPE, "-q", "recommend", "short").stdout.decode()
        self.assertIn("\nNothing could be judged, because:\n  1 analysed step cannot", text)
        self.assertNotIn("Keep", text)
        advice = self.advice_on("short")
        self.assertEqual((advice["judged"], advice["recommendations"], advice["kept"]), (False, [], []))
        for form in ("env", "tuner-csv", "accelerate"):
            self.assertIn("\n# nothing could be judged, because: 1 analysed step", self.check_run(RANKSCOPE, "-q", "recommend", "short", "--format", form).stdout.decode())
        self.assertIn("nothing could be judged", json.loads(self.check_run(RANKSCOPE, "-q", "recommend", "short", "--format", "deepspeed").stdout)["_rankscope"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--first", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    JOBS, FIRST = arguments.jobs, arguments.first
    unittest.main(argv=[sys.argv[0], *rest])
