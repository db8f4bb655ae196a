#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on NCCL_ALGO and NCCL_PROTO on machines that differ from the model: each cluster lies in a drawn world (reference/vgpu/engine/nccl_world.h).

A job runs once with whatever its environment forces. What `rankscope recommend` advises of that alone rests on the model, and must not make the job slower. Then nccl-tests' tables of
that machine, one of NCCL's own choices and one of each algorithm and protocol, are handed over: the advised run is near the best of all settings, NCCL's own choice is kept where
it is within 5 % of the best, and measured gains lie in their intervals. Advice that stands on top of other settings (buckets) is held to all this on the job with these. Runs a few clusters; `--clusters 60` more, `--first N` starts behind the first N.
"""

import argparse
import dataclasses
import statistics
import sys
import unittest

import algorithm_advice_test as algorithms
import world_tables
from composed_advice_test import followed

CLUSTERS, FIRST, MODEL_ADVISES = 6, 0, 0
MEAN_REGRET, WORST_REGRET = 0.03, 0.10
KEEP_WITHIN = 0.05   # of the step: so near the best NCCL's own choice is kept
INSIDE = 0.9         # share of measured gains inside their intervals
HALF_WIDTH = 0.1     # of the step: median of half an interval that rests on tables; wider ones would hold any gain
NO_SLOWER = 0.005    # of the step: chance


@dataclasses.dataclass
class Outcome:
    beneath: list       # titles of the settings that the advice stands on
    setting: dict       # of NCCL's variables; as they were where nothing is advised
    before_ms: float    # of the job with what is beneath
    best_ms: float      # so, with the best of all settings
    which: dict         # that is
    after_ms: float
    predicted_ms: list  # gain and its interval; None where nothing is advised

    def __str__(self):
        on_top = f" on top of {', '.join(self.beneath)} ({self.before_ms:.2f} ms, best {self.best_ms:.2f}, {self.which})" if self.beneath else ""
        gain = f", gains {self.before_ms - self.after_ms:.2f}, predicted {self.predicted_ms[0]:.2f} ({self.predicted_ms[1]:.2f} to {self.predicted_ms[2]:.2f})" if self.predicted_ms else ""
        return f"{self.setting}{on_top}: {self.after_ms:.2f} ms{gain}"


def draw(number):
    scenario, forced = algorithms.draw(number)
    scenario["world"] = 500 + number
    scenario["name"] = f"world{number}"
    return scenario, forced


class WorldAdvice(algorithms.AlgorithmAdvice):
    COUNTED = ("recommended",)
    test_the_advised_setting_is_near_the_best_of_all = None  # that is of the ideal world

    def measured(self, job, forced, name):
        """The step as it is forced, and the best of all settings of NCCL's variables with which one it is."""
        path = self.write_scenario(job)
        before = self.step_ms(path, forced, f"{name}-before")
        tried = [(self.step_ms(path, other, f"{name}-try{i}"), other) for i, other in enumerate(algorithms.settings_of(job))]
        best, which = min(((ms, other) for ms, other in tried if ms is not None), key=lambda pair: pair[0])
        return before, min(best, before), which

    def outcome(self, scenario, number, forced, measured, options, what):
        """What is advised on the variables, and what it makes of the job that it is advised for: where it stands on top of other settings, that is the job with these."""
        self.options = options
        advice = self.whole_advice(f"{number}-before")
        one = self.of_variables(advice)
        if one is None:
            return Outcome([], forced, *measured, measured[0], None)
        job = scenario
        beneath = [other for other in advice["recommendations"] if other["number"] in one["on_top_of"]] if "alternative_to" not in one else []
        if beneath:
            job = followed(dict(scenario, faults=[]), beneath)
            measured = self.measured(job, forced, f"{number}-{what}-beneath")
        setting = self.advised(f"{number}-before", forced)
        after = self.step_ms(self.write_scenario(job), setting, f"{number}-{what}")
        self.assertIsNotNone(after, f"NCCL refuses {setting}")
        gain = one if beneath else one["alone"]
        return Outcome([other["title"] for other in beneath], setting, *measured, after, [ns / 1e6 for ns in (gain["predicted_saving_ns"], *gain["interval_ns"])])

    def recommend_options(self):
        return self.options

    def test_advice_holds_in_drawn_worlds(self):
        regrets, slower = [], []  # the latter of advice by the model alone that was followed
        inside, widths = [], {"model": [], "tables": []}
        for number in range(FIRST, FIRST + CLUSTERS):
            scenario, forced = draw(number)
            with self.subTest(cluster=number, kind=scenario["kind"], forced=forced):
                before, best, which = measured = self.measured(scenario, forced, str(number))
                path = self.write_scenario(scenario)
                evidence = world_tables.evidence(self, scenario, path, algorithms.OPS[scenario["kind"]], str(number))
                cluster = scenario["cluster"]
                print(f"cluster {number}: {scenario['kind']} {cluster['nodes']}x{cluster['ranks_per_node']} {forced}: {before:.2f} ms, best {best:.2f} ({which})")
                for what, options in (("model", []), ("tables", evidence)):
                    told = self.outcome(scenario, number, forced, measured, options, what)
                    print(f"    by {what} {told}", flush=True)
                    if told.predicted_ms:
                        inside.append(told.predicted_ms[1] <= told.before_ms - told.after_ms <= told.predicted_ms[2])
                        widths[what].append((told.predicted_ms[2] - told.predicted_ms[1]) / 2 / told.before_ms)
                    if what == "model" and told.predicted_ms:
                        slower.append(told.after_ms / told.before_ms - 1)
                    if what == "tables":
                        regrets.append(told.after_ms / told.best_ms - 1)
                        if not forced and told.before_ms <= told.best_ms * (1 + KEEP_WITHIN):
                            self.assertEqual(told.setting, forced, "NCCL's own choice is near the best, and was changed")
        print(f"{len(regrets)} clusters: regret with tables mean {100 * statistics.mean(regrets):.2f} %, worst {100 * max(regrets):.2f} %; {len(slower)} advised by the model alone"
              + (f", slower by {100 * max(slower):.2f} % at worst" if slower else "") + f"; {sum(inside)} of {len(inside)} gains in their intervals; "
              + ", ".join(f"half of these by {what} is median {100 * statistics.median(of):.2f} %, widest {100 * max(of):.2f} % of the step" for what, of in widths.items() if of))
        self.assertTrue(inside, "nothing was advised")
        self.assertLessEqual(statistics.mean(regrets), MEAN_REGRET)
        self.assertLessEqual(max(regrets), WORST_REGRET)
        self.assertGreaterEqual(len(slower), MODEL_ADVISES, "the model alone advised too little to be held to anything")
        self.assertLessEqual(max(slower, default=0), NO_SLOWER)
        self.assertGreaterEqual(sum(inside), INSIDE * len(inside))
        self.assertLessEqual(statistics.median(widths["tables"] or [0]), HALF_WIDTH)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=CLUSTERS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--model-advises", type=int, default=0, help="in so many of these clusters at least")
    arguments, rest = parser.parse_known_args()
    CLUSTERS, FIRST, MODEL_ADVISES = arguments.clusters, arguments.first, arguments.model_advises
    unittest.main(argv=[sys.argv[0], *rest])
