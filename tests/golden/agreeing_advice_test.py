#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Advice agrees with the findings of the same run, and with what the trace already has: the same fix gains the same in `analyze` and `recommend`, nothing is advised that is so already, a larger batch is
told by its time per sample, and files of settings name what is advised elsewhere."""

import json
import pathlib
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

SCENARIOS = pathlib.Path(__file__).resolve().parents[2] / "reference/scenarios"
SETTINGS = ("ddp", "fsdp", "deepspeed", "accelerate", "job")


class AgreeingAdvice(VirtualRunTest):
    def record(self, scenario, **changes):
        job = dict(json.loads((SCENARIOS / f"{scenario}.json").read_text()), **changes)
        self.run_scenario(self.write_scenario(job), scenario)
        return self.report(scenario), json.loads(self.text("recommend", scenario, "--format", "json"))

    def text(self, *words):
        return self.check_run(RANKSCOPE, "-q", *words).stdout.decode()

    def test_the_same_fix_gains_the_same_in_findings_and_advice(self):
        report, advice = self.record("hsdp-no-overlap", steps=4)
        finding = next(one for one in report["findings"] if one["id"] == "RS201")
        answer = next(one for one in advice["recommendations"] if "RS201" in one["findings"])
        gain = (answer["alone"] or answer)["predicted_saving_ns"]
        self.assertGreater(finding["saving_ns_per_step"], 0.1 * report["step_time"]["ns"])
        self.assertAlmostEqual(gain / finding["saving_ns_per_step"], 1, delta=0.02)
        self.assertIn("advised elsewhere", self.text("recommend", "hsdp-no-overlap", "--format", "env"))

    def test_nothing_is_advised_that_the_trace_has_already(self):
        report, advice = self.record("ddp-saturated", steps=4)
        finding = next(one for one in report["findings"] if one["id"] == "RS203")
        said = json.dumps([finding["fix"], [one["steps"] for one in advice["recommendations"] if "steps" in one], [one["ddp"] for one in advice["recommendations"]]])
        self.assertNotIn("bf16", said)
        self.assertIn("gradients are bf16 already", finding["evidence"]["facts"])
        # Fewer reductions are fewer bytes of a larger batch, or smaller micro-steps: no gain of the step as it is.
        self.assertTrue(any("every k-th micro-step" in fix and "time per sample" in fix for fix in finding["fix"]), finding["fix"])
        for form in ("env", "deepspeed"):
            self.assertIn("bandwidth saturation", self.text("recommend", "ddp-saturated", "--format", form))
        full, _ = self.record("ddp-fp32-grads", steps=4)
        self.assertIn("bf16", json.dumps([one["fix"] for one in full["findings"]]), "where gradients are fp32 it is advised")

    def test_micro_batches_keep_the_batch_first_and_a_larger_one_says_so(self):
        job = json.loads((SCENARIOS / "pp-few-micro-batches.json").read_text())
        job = dict(job, steps=4, model=dict(job["model"], micro_batch=2))
        report, advice = self.record("pp-few-micro-batches", steps=4, model=job["model"])
        finding = next(one for one in report["findings"] if one["id"] == "RS101")
        self.assertRegex(finding["fix"][0], "^keep the batch, in smaller micro-batches: 8 of half the size")
        smaller = next(one for one in advice["recommendations"] if one["area"] == "micro_batches")
        larger = next(one for one in advice["alternatives"] if one["area"] == "global_batch")
        self.assertEqual((smaller["batch_factor"], smaller["job"]["micro_batches"], larger["batch_factor"], larger["alternative_to"]), (1, 8, 7, smaller["number"]))
        self.assertEqual((larger["predicted_saving_ns"], larger["job"]["micro_batches"]), (finding["saving_ns_per_step"], 28), "the same fix, the same gain")
        told = self.text("recommend", "pp-few-micro-batches")
        self.assertRegex(told, "less time per sample .*a step takes .* for 7 times the samples")
        # Followed, each of them does what it says.
        halved = dict(job, name="halved", parallel=dict(job["parallel"], micro_batches=8), model=dict(job["model"], micro_batch=1))
        more = dict(job, name="more", parallel=dict(job["parallel"], micro_batches=28))
        for scenario in (halved, more):
            self.run_scenario(self.write_scenario(scenario), scenario["name"])
        step = report["step_time"]["ns"]
        self.assertAlmostEqual(self.report("halved")["step_time"]["ns"] / (step - (smaller["alone"] or smaller)["predicted_saving_ns"]), 1, delta=0.05)
        self.assertAlmostEqual(self.report("more")["step_time"]["ns"] / 7 / (step - larger["predicted_saving_ns"]), 1, delta=0.05)
        compared = json.loads(self.text("compare", "pp-few-micro-batches", "more", "--per", "sample=7", "--format", "json"))["step_time"]
        self.assertAlmostEqual(compared["ratio"], 1 - larger["predicted_saving_ns"] / step, delta=0.05)
        self.assertAlmostEqual(compared["new_step_ns"], 7 * compared["new_ns"], delta=10)
        noted = " ".join(json.loads(self.text("compare", "pp-few-micro-batches", "more", "--format", "json"))["notes"])
        self.assertIn("--per sample=7", noted)

    def test_numbers_in_json_settings_are_numbers(self):
        _, advice = self.record("ddp-small-buckets", steps=4)
        values = [value for one in advice["recommendations"] for where in SETTINGS for value in one[where].values()]
        self.assertIn(int, {type(value) for value in values}, values)
        for value in values:
            if isinstance(value, str):
                self.assertFalse(value.replace(".", "").isdigit() or value in ("True", "False", "true", "false"), value)

    def test_sentences_have_single_blanks_and_few_numbers(self):
        advice = [self.record(name, steps=4)[1] for name in ("ddp-small-buckets", "ddp-wrong-algo", "ddp-none-ring")]

        def texts(value):
            if isinstance(value, str):
                yield value
            for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
                yield from texts(part)

        sentences = [text for one in advice for text in texts(one) if "http" not in text]
        self.assertTrue(any("other settings" in text for text in sentences), "what was looked at and left is told")
        for text in sentences:
            self.assertNotRegex(text, r"\S {2,}\S| [.,;:]")
        sweep = next(text for text in sentences if text.startswith("step time by size: "))
        self.assertLessEqual(sweep.count(" MiB "), 5)
        self.assertRegex(sweep, r"; \d\d sizes were tried$")


if __name__ == "__main__":
    unittest.main()
