#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on a job that sets NCCL_ALGO or NCCL_PROTO itself: run, `recommend --format env`, source that, run the same job again.

The measured gain must lie in the predicted interval, and the second run must get no such advice. Scenarios are drawn (algorithm_advice_test.draw) with a wrong_algo
fault; `--clusters N` tries more of them, `--first N` starts behind the first N.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import unittest

import algorithm_advice_test
from virtual_run import RANKSCOPE, TIMEOUT_S, WORKLOAD, VirtualRunTest

CLUSTERS, FIRST = 10, 0
BUILT_IN = pathlib.Path(__file__).resolve().parents[2] / "reference/scenarios/ddp-wrong-algo.json"
INSIDE = 0.9  # of the measured gains
SCRIPT = """
"$0" -q reference run "$1" -o "$2-before"
"$0" -q recommend "$2-before" --format env > env.sh
. ./env.sh
"$0" -q reference run "$1" -o "$2-after"
"""


def planted(number):
    """A job whose ranks set the variables themselves, whatever they are started with; None where the draw forces nothing."""
    scenario, forced = algorithm_advice_test.draw(number)
    if not forced:
        return None
    fault = {"kind": "wrong_algo"}
    if "NCCL_ALGO" in forced:
        fault["algo"] = forced["NCCL_ALGO"]
    if "NCCL_PROTO" in forced:
        fault["proto"] = forced["NCCL_PROTO"]
    return dict(scenario, name=f"planted{number}", faults=[fault])


class SourcedAdvice(VirtualRunTest):
    def run_source_run(self, scenario, name, environment=None):
        result = subprocess.run(["sh", "-euc", SCRIPT, RANKSCOPE, str(scenario), name], cwd=self.folder, env=dict(self.environment, **(environment or {})),
                                stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return self.step_ns(f"{name}-before"), self.step_ns(f"{name}-after")

    def step_ns(self, name):
        return statistics.median(step["dur_ns"] for step in self.report(name)["steps"] if not step["warm_up"])

    def environment_advice(self, name):
        advice = json.loads(self.check_run(RANKSCOPE, "-q", "recommend", name, "--format", "json").stdout)["recommendations"]
        return [one for one in advice if one["certainty"] == "recommended" and one["env"] and not one["tuner_csv"]]

    def check_gain(self, scenario, name, environment=None):
        """Whether the gain came as predicted; None when nothing was to be set."""
        before, after = self.run_source_run(scenario, name, environment)
        advice = self.environment_advice(f"{name}-before")
        if not advice:
            self.assertEqual(before, after, "nothing was advised, and yet the step changed")
            return None
        self.assertEqual(len(advice), 1)
        alone = advice[0]["alone"]
        low, high = alone["interval_ns"]
        print(f"{name}: {advice[0]['title']}: {before / 1e6:.2f} -> {after / 1e6:.2f} ms; predicted {alone['predicted_saving_ns'] / 1e6:.2f} ({low / 1e6:.2f} to {high / 1e6:.2f}),"
              f" measured {(before - after) / 1e6:.2f}", flush=True)
        self.assertEqual(self.environment_advice(f"{name}-after"), [], "the advice was followed: there is none left")
        return low <= before - after <= high

    def test_the_built_in_fault(self):
        self.assertTrue(self.check_gain("ddp-wrong-algo", "built-in"))
        text = (self.folder / "env.sh").read_text()
        self.assertIn("\nexport NCCL_PROTO=''\n", text)
        self.assertIn("NCCL_PROTO=LL was not in the environment of `rankscope run`", text)

    def test_variables_that_the_job_sets_itself(self):
        verdicts = []
        for number in range(FIRST, FIRST + CLUSTERS):
            scenario = planted(number)
            if scenario is not None:
                with self.subTest(scenario=number):
                    verdicts.append(self.check_gain(self.write_scenario(scenario), scenario["name"]))
        followed = [verdict for verdict in verdicts if verdict is not None]
        print(f"{len(verdicts)} jobs, {len(followed)} with advice: {sum(followed)} gains inside their interval")
        self.assertGreaterEqual(len(followed), len(verdicts) / 3)
        self.assertGreaterEqual(sum(followed), INSIDE * len(followed))

    def test_a_variable_of_the_shells_is_unset_there(self):
        scenario = self.write_scenario(dict(json.loads(BUILT_IN.read_text()), name="healthy", faults=[], expect=[]))
        self.assertTrue(self.check_gain(scenario, "shell", {"NCCL_PROTO": "LL"}))
        text = (self.folder / "env.sh").read_text()
        self.assertIn("\nunset NCCL_PROTO\n", text)
        self.assertIn("NCCL_PROTO=LL is in the environment of `rankscope run`", text)

    def test_a_variable_of_the_option_is_to_be_left_out_there(self):
        self.check_run(RANKSCOPE, "-q", "reference", "run", "ddp-wrong-algo", "-o", "first")
        scenario = str(self.folder / "first" / "scenario.json")
        self.check_run(RANKSCOPE, "-q", "run", "--virtual", "-o", "option", "--links", "intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18", "--env", "NCCL_PROTO=LL", "--", "sh", "-c",
                       f"for rank in 0 1 2 3 4 5 6 7; do RANK=$rank WORLD_SIZE=8 LOCAL_RANK=$((rank % 4)) MASTER_ADDR=localhost MASTER_PORT=29500 '{WORKLOAD}'"
                       f" '{scenario}' & done; wait")
        [advice] = self.environment_advice("option")
        self.assertEqual(advice["env"], {"NCCL_PROTO": None})
        self.assertEqual(advice["notes"], ["NCCL_PROTO=LL was given with --env: change it there"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--first", type=int, default=0)
    arguments, rest = parser.parse_known_args()
    CLUSTERS, FIRST = arguments.clusters, arguments.first
    unittest.main(argv=[sys.argv[0], *rest])
