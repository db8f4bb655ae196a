#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice on NCCL_ALGO and NCCL_PROTO on machines that differ from the model: each cluster lies in a drawn world (reference/vgpu/engine/nccl_world.h).

A job runs once with whatever its environment forces. What `rankscope recommend` advises of that alone rests on the model, and must not make the job slower. Then nccl-tests' tables of
that machine, one of NCCL's own choices and one of each algorithm and protocol, are handed over: the advised run is near the best of all settings, NCCL's own choice is kept where
it is within 5 % of the best, and measured gains lie in their intervals. Runs a few clusters; `--clusters 60` more, `--first N` starts behind the first N.
"""

import argparse
import statistics
import sys
import unittest

import algorithm_advice_test as algorithms
import world_tables
from virtual_run import RANKSCOPE

CLUSTERS, FIRST, MODEL_ADVISES = 6, 0, 0
MEAN_REGRET, WORST_REGRET = 0.03, 0.10
KEEP_WITHIN = 0.05   # of the step: so near the best NCCL's own choice is kept
INSIDE = 0.9         # share of measured gains inside their intervals
HALF_WIDTH = 0.1     # of the step: median of half an interval that rests on tables; wider ones would hold any gain
NO_SLOWER = 0.005    # of the step: chance


def draw(number):
    scenario, forced = algorithms.draw(number)
    scenario["world"] = 500 + number
    scenario["name"] = f"world{number}"
    return scenario, forced


class WorldAdvice(algorithms.AlgorithmAdvice):
    COUNTED = ("recommended",)
    test_the_advised_setting_is_near_the_best_of_all = None  # that is of the ideal world

    def outcome(self, path, number, forced, before, options, what):
        """The setting advised, the step with it, and the gain as it was predicted."""
        self.options = options
        setting = self.advised(f"{number}-before", forced)
        predicted = self.predicted_ms(f"{number}-before") if setting != forced else (0, 0, 0)
        after = before if setting == forced else self.step_ms(path, setting, f"{number}-{what}")
        self.assertIsNotNone(after, f"NCCL refuses {setting}")
        return setting, after, predicted

    def recommend_options(self):
        return self.options

    def test_advice_holds_in_drawn_worlds(self):
        regrets, slower = [], []  # the latter of advice by the model alone that was followed
        inside, widths = [], {"model": [], "tables": []}
        for number in range(FIRST, FIRST + CLUSTERS):
            scenario, forced = draw(number)
            with self.subTest(cluster=number, kind=scenario["kind"], forced=forced):
                path = self.write_scenario(scenario)
                before = self.step_ms(path, forced, f"{number}-before")
                tried = [(self.step_ms(path, other, f"{number}-try{i}"), other) for i, other in enumerate(algorithms.settings_of(scenario))]
                best, which = min(((ms, other) for ms, other in tried if ms is not None), key=lambda pair: pair[0])
                best = min(best, before)
                by_model = self.outcome(path, number, forced, before, [], "model")
                by_tables = self.outcome(path, number, forced, before, world_tables.evidence(self, scenario, path, algorithms.OPS[scenario["kind"]], str(number)), "tables")
                regrets.append(by_tables[1] / best - 1)
                if by_model[0] != forced:
                    slower.append(by_model[1] / before - 1)
                for what, (setting, after, (_, low, high)) in (("model", by_model), ("tables", by_tables)):
                    if setting != forced:
                        inside.append(low <= before - after <= high)
                        widths[what].append((high - low) / 2 / before)
                cluster = scenario["cluster"]
                print(f"cluster {number}: {scenario['kind']} {cluster['nodes']}x{cluster['ranks_per_node']} {forced}: {before:.2f} ms, best {best:.2f} ({which})")
                for what, (setting, after, (gain, low, high)) in (("model", by_model), ("tables", by_tables)):
                    print(f"    by {what} {setting}: {after:.2f} ms" + (f", gains {before - after:.2f}, predicted {gain:.2f} ({low:.2f} to {high:.2f})" if setting != forced else ""), flush=True)
                if not forced and before <= best * (1 + KEEP_WITHIN):
                    self.assertEqual(by_tables[0], forced, "NCCL's own choice is near the best, and was changed")
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
