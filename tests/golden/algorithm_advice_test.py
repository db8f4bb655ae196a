#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on NCCL_ALGO and NCCL_PROTO against the best of all settings, on clusters drawn at random.

A job runs once with whatever its environment forces, `rankscope recommend --format env` is sourced in front of a second run, and every setting is tried as well:
the advised run is within 3 % of the best of them, and where the first one was the best, nothing is advised. Runs a few clusters; `--clusters 30` runs
them all, `--first N` starts behind the first N.
"""

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import unittest

from virtual_run import RANKSCOPE, TIMEOUT_S, VirtualRunTest

CLUSTERS, FIRST = 4, 0
WITHIN = 0.03
MEDIAN_ERROR, WORST_ERROR = 0.03, 0.08  # of the step, between predicted and measured gain
INSIDE, HALF_WIDTH = 0.9, 0.2           # share of measured gains inside their interval; median of half an interval, of the step: what the model does not know of a machine
FORCED = [{}, {}, {"NCCL_PROTO": "LL"}, {"NCCL_PROTO": "Simple"}, {"NCCL_PROTO": "LL128"}, {"NCCL_ALGO": "tree"}, {"NCCL_ALGO": "ring"}, {"NCCL_ALGO": "allreduce:tree", "NCCL_PROTO": "LL"},
          {"NCCL_ALGO": "ring", "NCCL_PROTO": "LL"}]
OPS = {"ddp": ["allreduce"], "zero1": ["allreduce", "allgather"], "zero2": ["reducescatter", "allgather"], "fsdp": ["reducescatter", "allgather"], "tp": ["allreduce"]}


def draw(number):
    """A scenario and what its environment forces."""
    chance = random.Random(1000 + number)
    kind = chance.choice(["ddp", "ddp", "zero1", "zero2", "fsdp", "tp"])
    nodes, per_node = chance.choice([(1, 4), (1, 8), (2, 2), (2, 4), (4, 1), (4, 2), (8, 1), (2, 8), (4, 4), (16, 1)])
    world = nodes * per_node
    cluster = {"nodes": nodes, "ranks_per_node": per_node, "tflops": chance.choice([150, 300, 600]),
               "intra": {"alpha_us": round(chance.uniform(1.5, 10), 2), "gbps": chance.choice([25, 60, 150, 300])},
               "inter": {"alpha_us": round(chance.uniform(4, 40), 2), "gbps": chance.choice([6, 12, 25, 50])}}
    tp = per_node if kind == "tp" and per_node > 1 else 1
    scenario = {"name": f"drawn{number}", "kind": kind, "steps": 6, "seed": number, "noise": round(chance.uniform(0, 0.03), 3), "cluster": cluster,
                "model": {"layers": chance.choice([4, 8]), "hidden": chance.choice([512, 1024, 2048]), "seq": chance.choice([512, 2048]), "micro_batch": chance.choice([1, 2])},
                "parallel": {"dp": world // tp, "tp": tp, "bucket_mb": chance.choice([1, 5, 25])}}
    if kind == "tp" and tp == 1:
        scenario["kind"] = "ddp"
    forced = chance.choice(FORCED)
    if any(value == "tree" for value in forced.values()) and OPS[scenario["kind"]] != ["allreduce"]:
        forced = {"NCCL_ALGO": "allreduce:tree"} if "allreduce" in OPS[scenario["kind"]] else {"NCCL_PROTO": "LL"}
    return scenario, forced


def settings_of(scenario):
    """Every setting worth the name: for each function NCCL's choice, or one algorithm and protocol that it has."""
    nodes, world = scenario["cluster"]["nodes"], scenario["cluster"]["nodes"] * scenario["cluster"]["ranks_per_node"]
    choices = []
    for op in OPS[scenario["kind"]]:
        pairs = [("ring", p) for p in ("ll", "ll128", "simple")]
        if op == "allreduce":
            pairs += [("tree", p) for p in ("ll", "ll128", "simple")]
        elif nodes == world:
            pairs.append(("pat", "simple"))
        choices.append([None] + [(op, *pair) for pair in pairs])
    for combination in itertools.product(*choices):
        named = [choice for choice in combination if choice]
        yield {} if not named else {"NCCL_ALGO": ";".join(f"{op}:{a}" for op, a, _ in named), "NCCL_PROTO": ";".join(f"{op}:{p}" for op, _, p in named)}


class AlgorithmAdvice(VirtualRunTest):
    COUNTED = ("recommended", "try")  # where the machine is as the model has it trials are right, too

    def recommend_options(self):
        return []

    def step_ms(self, scenario, environment, name):
        """Median step of a run, which is what a predicted gain is of; None where NCCL refuses the setting."""
        result = subprocess.run([RANKSCOPE, "-q", "reference", "run", scenario, "-o", name], cwd=self.folder, env=dict(self.environment, **environment),
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        if result.returncode != 0:
            return None
        return statistics.median(step["dur_ns"] for step in self.report(name)["steps"] if not step["warm_up"]) / 1e6

    def whole_advice(self, name):
        return json.loads(self.check_run(RANKSCOPE, "-q", "recommend", name, *self.recommend_options(), "--format", "json").stdout)

    def of_variables(self, advice):
        """What is recommended of NCCL's variables; None when there is nothing. Beside other buckets it may gain nothing more, and is then an alternative to them;
        what gains on top of other buckets only, and nothing by itself, is no advice on the variables alone."""
        for one in advice["recommendations"] + advice["alternatives"]:
            if one["certainty"] in self.COUNTED and one["env"] and not one["tuner_csv"] and one["alone"]["predicted_saving_ns"] > 0:
                return one
        return None

    def advice_on(self, name):
        return self.of_variables(self.whole_advice(name))

    def predicted_ms(self, name):
        """Gain with its interval; zeros when there is none."""
        one = self.advice_on(name)
        return (one["alone"]["predicted_saving_ns"] / 1e6, *(ns / 1e6 for ns in one["alone"]["interval_ns"])) if one else (0, 0, 0)

    def advised(self, name, environment):
        """The environment with the advice; where the file holds it, after sourcing that by a real shell."""
        one = self.advice_on(name)
        told = one["env"] if one else {}
        after = dict(environment, **{key: value or "" for key, value in told.items()})
        if one and "alternative_to" not in one and one["certainty"] == "recommended":
            self.check_run(RANKSCOPE, "-q", "recommend", name, *self.recommend_options(), "--format", "env", "-o", f"{name}.env")
            shown = self.check_run("sh", "-euc", f". ./{name}.env; env", environment=environment).stdout.decode()
            after = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        return {key: after[key] for key in ("NCCL_ALGO", "NCCL_PROTO") if after.get(key)}

    def test_the_advised_setting_is_near_the_best_of_all(self):
        distances, wrong, widths, kept, inside = [], [], [], 0, 0
        for number in range(FIRST, FIRST + CLUSTERS):
            scenario, forced = draw(number)
            with self.subTest(cluster=number, kind=scenario["kind"], forced=forced):
                path = self.write_scenario(scenario)
                before = self.step_ms(path, forced, f"{number}-before")
                self.assertIsNotNone(before, "the job does not run as drawn")
                setting = self.advised(f"{number}-before", forced)
                after = before if setting == forced else self.step_ms(path, setting, f"{number}-after")
                self.assertIsNotNone(after, f"NCCL refuses {setting}")
                tried = [(self.step_ms(path, other, f"{number}-try{i}"), other) for i, other in enumerate(settings_of(scenario))]
                best, which = min(((ms, other) for ms, other in tried if ms is not None), key=lambda pair: pair[0])
                best = min(best, before)
                distances.append(after / best - 1)
                kept += setting == forced
                gain, low, high = self.predicted_ms(f"{number}-before") if setting != forced else (0, 0, 0)
                if setting != forced:
                    wrong.append(abs(before - after - gain) / before)
                    inside += low <= before - after <= high
                    widths.append((high - low) / 2 / before)
                print(f"cluster {number}: {scenario['kind']} {scenario['cluster']['nodes']}x{scenario['cluster']['ranks_per_node']} {forced} -> {setting}:"
                      f" {before:.2f} -> {after:.2f} ms, best {best:.2f} ({which}), {100 * distances[-1]:.2f} % from it"
                      + (f"; predicted {gain:.2f} ({low:.2f} to {high:.2f}), measured {before - after:.2f}" if setting != forced else ""), flush=True)
                self.assertLessEqual(after, best * (1 + WITHIN))
                if before <= best * 1.001:
                    self.assertEqual(setting, forced, "the best setting was changed")
        print(f"{len(distances)} clusters, {kept} kept as they were: advised against best median {100 * statistics.median(distances):.2f} %, worst {100 * max(distances):.2f} %")
        if wrong:
            print(f"gain predicted against measured: median error {100 * statistics.median(wrong):.2f} % of the step, worst {100 * max(wrong):.2f} %; {inside} of {len(wrong)} inside their interval,"
                  f" of which half is median {100 * statistics.median(widths):.2f} %, widest {100 * max(widths):.2f} % of the step")
            self.assertGreaterEqual(inside, INSIDE * len(wrong))
            self.assertLessEqual(statistics.median(widths), HALF_WIDTH)
            self.assertLessEqual(max(wrong), WORST_ERROR)
            self.assertLessEqual(statistics.median(wrong), MEDIAN_ERROR)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--first", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    CLUSTERS, FIRST = arguments.clusters, arguments.first
    unittest.main(argv=[sys.argv[0], *rest])
