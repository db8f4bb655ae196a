#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `rankscope compare` writes for other programs, read by those programs' parsers and schemas: of an ordinary comparison, one whose names hold everything that ends or
starts something in some format, one of 10,000 findings, and an empty one."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

import chromium

SAMPLE = os.environ.get("RANKSCOPE_SAMPLE_COMPARISON", "rankscope_sample_comparison")
SCHEMAS = pathlib.Path(__file__).resolve().parent / "schemas"
SAMPLES = ("plain", "hostile", "many", "empty")
FINDINGS = {"plain": 5, "hostile": 5, "many": 10_000, "empty": 0}
cache = {}


def rendered(sample, form):
    """As text; that it is UTF-8 is part of every test."""
    if (sample, form) not in cache:
        cache[sample, form] = subprocess.run([SAMPLE, sample, form], check=True, capture_output=True, timeout=60).stdout
    return cache[sample, form].decode("utf-8")


def comparison(sample):
    return json.loads(rendered(sample, "json"))


class EveryFormat(unittest.TestCase):
    def test_is_text_without_control_characters_that_would_act(self):
        for form in ("md", "junit", "sarif", "github", "benchmark", "openmetrics", "html"):
            for sample in SAMPLES:
                with self.subTest(form=form, sample=sample):
                    text = rendered(sample, form)
                    self.assertTrue(text.endswith("\n"))
                    # Escapes that terminals obey, and controls that turn the order of what follows.
                    self.assertEqual(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", text)[:3], [])


class Junit(unittest.TestCase):
    def suite(self, sample):
        return xml.etree.ElementTree.fromstring(rendered(sample, "junit").encode()).find("testsuite")

    def test_counts_what_is_in_it(self):
        for sample in SAMPLES:
            suite = self.suite(sample)
            for attribute, kind in (("tests", "testcase"), ("failures", "testcase/failure"), ("skipped", "testcase/skipped")):
                self.assertEqual(int(suite.get(attribute)), len(suite.findall(kind)), (sample, attribute))

    def test_what_fails_the_gate_fails(self):
        cases = {case.get("name"): case for case in self.suite("plain").findall("testcase")}
        failed = {name for name, case in cases.items() if case.find("failure") is not None}
        self.assertEqual(failed, {"step time", "RS301 straggler rank, rank 3 (dp 3)"})
        self.assertEqual(cases["step time"].get("time"), "0.450000000")
        self.assertIn("+147 ms  rank 3 computes longer", cases["step time"].find("failure").text)
        self.assertIn("move the rank", cases["RS301 straggler rank, rank 3 (dp 3)"].find("failure").text)
        self.assertEqual([case.get("name") for case in self.suite("empty") if case.find("skipped") is not None], ["step time"])

    def test_ten_thousand_findings_are_cut_and_it_says_so(self):
        suite = self.suite("many")
        self.assertEqual(len(suite.findall("testcase")), 1001)
        self.assertIn("9000 of 10000 findings are left out", suite.find("system-out").text)
        self.assertLess(len(rendered("many", "junit")), 5e6)

    @unittest.skipUnless(shutil.which("xmllint"), "xmllint is not here")
    def test_is_valid_after_the_schema(self):
        for sample in SAMPLES:
            result = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", SCHEMAS / "junit.xsd", "-"], input=rendered(sample, "junit").encode(), capture_output=True)
            self.assertEqual(result.returncode, 0, result.stderr[:2000])
        broken = rendered("plain", "junit").replace("<testcase ", "<testcase nonsense='1' ", 1)
        self.assertNotEqual(subprocess.run(["xmllint", "--noout", "--schema", SCHEMAS / "junit.xsd", "-"], input=broken.encode(), capture_output=True).returncode, 0)


class Sarif(unittest.TestCase):
    def run_of(self, sample):
        return json.loads(rendered(sample, "sarif"))["runs"][0]

    def test_is_valid_after_the_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not here")
        validator = jsonschema.Draft7Validator(json.loads((SCHEMAS / "sarif-2.1.0-part.schema.json").read_text()))
        for sample in SAMPLES:
            self.assertEqual([error.message for error in validator.iter_errors(json.loads(rendered(sample, "sarif")))][:3], [], sample)
        broken = json.loads(rendered("plain", "sarif"))
        broken["runs"][0]["results"][0]["level"] = "fatal"
        self.assertNotEqual(list(validator.iter_errors(broken)), [])

    def test_results_are_findings_with_their_rules_and_states(self):
        for sample in SAMPLES:
            run = self.run_of(sample)
            for result in run["results"]:
                self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
                # The standard: a result that is no failure has no level.
                self.assertEqual(result["level"] == "none", result.get("kind", "fail") != "fail")
        results = self.run_of("plain")["results"]
        self.assertEqual([(r["ruleId"], r["level"], r["baselineState"]) for r in results],
                         [("step-time", "error", "new"), ("RS301", "error", "new"), ("RS203", "note", "updated"), ("RS202", "note", "updated"), ("RS401", "none", "absent"),
                          ("RS101", "note", "unchanged")])
        self.assertEqual(["suppressions" in r for r in results], [False, False, True, False, False, False])
        self.assertEqual(self.run_of("empty")["results"], [])

    def test_fingerprints_tell_findings_apart_and_stay(self):
        prints = [r["partialFingerprints"]["rankscope/v1"] for r in self.run_of("many")["results"]]
        self.assertEqual(len(set(prints)), len(prints))
        same = [r["partialFingerprints"] for r in self.run_of("plain")["results"]]
        cache.pop(("plain", "sarif"))
        self.assertEqual([r["partialFingerprints"] for r in self.run_of("plain")["results"]], same)

    def test_ten_thousand_findings_are_cut_and_it_says_so(self):
        run = self.run_of("many")
        self.assertEqual(len(run["results"]), 1001)
        self.assertIn("9000 of 10000 findings are left out", json.dumps(run["invocations"]))
        self.assertLess(len(rendered("many", "sarif")), 10e6)


class Annotations(unittest.TestCase):
    LINE = re.compile(r"::(error|warning|notice) title=([^:,\n]*)::([^\n]*)\n")

    def lines(self, sample):
        text = rendered(sample, "github")
        found = self.LINE.findall(text)
        self.assertEqual("".join(f"::{kind} title={title}::{message}\n" for kind, title, message in found), text)
        unescape = lambda words: re.sub("%([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), words)
        return [(kind, unescape(title), unescape(message)) for kind, title, message in found]

    def test_every_line_is_one_command(self):
        for sample in SAMPLES:
            for kind, title, message in self.lines(sample):
                self.assertTrue(title and message)
        self.assertEqual([(kind, title) for kind, title, _ in self.lines("plain")],
                         [("error", "Rankscope: regression, label of new-1 to label of new-2 against label of base-1 to label of base-3"), ("error", "RS301 straggler rank, rank 3 (dp 3)"), ("notice", "Rankscope")])
        self.assertIn("50.0 % slower", self.lines("plain")[0][2])

    def test_names_come_back_as_they_were(self):
        self.assertIn("]]> -->\"'&amp;`|*_[a](http://b)\\ @all %0A::error::x ${{x}} $(x) \n# EOF\n::error::y", self.lines("hostile")[0][2])

    def test_no_more_of_a_kind_than_are_shown(self):
        kinds = [kind for kind, _, _ in self.lines("many")]
        self.assertEqual(kinds.count("error"), 10)
        self.assertIn("4990 more of this kind", [message for kind, _, message in self.lines("many") if kind == "error"][-1])


class Markdown(unittest.TestCase):
    def test_stays_under_what_a_step_summary_takes(self):
        for sample in SAMPLES:
            self.assertLess(len(rendered(sample, "md").encode()), 1 << 20, sample)
        self.assertIn("9960 of 10000 findings are left out", rendered("many", "md"))

    def test_rows_have_the_columns_of_their_table(self):
        for sample in SAMPLES:
            columns = None
            for line in rendered(sample, "md").splitlines():
                if not line.startswith("|"):
                    columns = None
                    continue
                count = len(re.findall(r"(?<!\\)\|", line)) - 1
                columns = columns or count
                self.assertEqual(count, columns, line[:300])

    def test_names_are_no_markup(self):
        text = rendered("hostile", "md")
        own = re.sub(r"</?(?:details|summary)>", "", text)
        self.assertNotRegex(own, r"<|(?<!\\)\[a\]|(?<!\\)`|@all|http://")
        self.assertNotRegex(own, r"(?m)^(::|# EOF)")
        self.assertIn("RS301 straggler rank", text)


class Benchmark(unittest.TestCase):
    def test_has_the_keys_that_compare_py_reads(self):
        for sample in SAMPLES:
            document = json.loads(rendered(sample, "benchmark"))
            self.assertEqual(set(document), {"context", "benchmarks"})
            for one in document["benchmarks"]:
                self.assertIn(one["run_type"], ("iteration", "aggregate"))
                self.assertEqual(one["time_unit"], "ns")
                self.assertTrue(isinstance(one["name"], str) and one["real_time"] >= 0 and one["cpu_time"] >= 0 and one["iterations"] >= 1)
                self.assertEqual("aggregate_name" in one, one["run_type"] == "aggregate")

    def test_nothing_but_the_step_is_found_as_step(self):
        names = [b["name"] for b in json.loads(rendered("plain", "benchmark"))["benchmarks"]]
        self.assertIn("exposed communication/new", names)
        self.assertEqual({name for name in names if re.search("step/new", name)}, {"step/new", "step/new_mean", "step/new_stddev"})

    def test_runs_are_repetitions(self):
        benchmarks = json.loads(rendered("plain", "benchmark"))["benchmarks"]
        steps = [b for b in benchmarks if b["run_name"] == "step/new" and b["run_type"] == "iteration"]
        self.assertEqual([(b["real_time"], b["repetition_index"], b["repetitions"]) for b in steps], [(451e6, 0, 3), (449e6, 1, 3), (450e6, 2, 3)])
        aggregates = {b["name"]: b["real_time"] for b in benchmarks if b["run_type"] == "aggregate"}
        self.assertEqual(aggregates["step/new_mean"], 450e6)
        self.assertAlmostEqual(aggregates["step/new_stddev"], 1e6)


class OpenMetrics(unittest.TestCase):
    def test_is_read_by_the_reference_parser(self):
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("python3-prometheus-client is not here")
        for sample in SAMPLES:
            families = {family.name: family for family in text_string_to_metric_families(rendered(sample, "openmetrics"))}
            self.assertTrue(all(family.type == "gauge" for family in families.values()))
            for family in families.values():
                labels = [tuple(sorted(s.labels.items())) for s in family.samples]
                self.assertEqual(len(labels), len(set(labels)), family.name)
            self.assertEqual(sum(s.value for s in families["rankscope_verdict"].samples), 1)
        families = {family.name: family for family in text_string_to_metric_families(rendered("plain", "openmetrics"))}
        value = lambda name, **labels: next(s.value for s in families[name].samples if labels.items() <= s.labels.items())
        self.assertEqual(value("rankscope_step_seconds", side="new"), 0.45)
        self.assertEqual(value("rankscope_gate_failed"), 1)
        self.assertEqual(value("rankscope_findings", status="new"), 1)
        self.assertAlmostEqual(sum(s.value for s in families["rankscope_attribution_seconds"].samples), 0.15)
        with self.assertRaises(ValueError):
            list(text_string_to_metric_families(rendered("plain", "openmetrics").replace("# EOF\n", "")))

    def test_parts_of_the_change_are_bounded_and_add_up(self):
        values = [float(line.rsplit(" ", 1)[1]) for line in rendered("many", "openmetrics").splitlines() if line.startswith("rankscope_attribution_seconds{")]
        self.assertEqual(len(values), 101)
        self.assertAlmostEqual(sum(values), 0.15)


@unittest.skipUnless(chromium.browser(), "there is no Chromium")
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-formats-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.__exit__, None, None, None)

    def open(self, sample):
        path = self.folder / f"{sample}.html"
        path.write_text(rendered(sample, "html"))
        self.browser.open(path)
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("data:")], [path.resolve().as_uri()])
        self.assertEqual(self.browser.complaints(), [])
        self.assertIsNone(self.browser.evaluate("window.pwned ?? null"))
        self.assertEqual(self.browser.evaluate("document.images.length"), 0)
        return self.browser

    def column(self, table, index):
        return self.browser.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map(row => row.cells[{index}].dataset.v ?? null)")

    def test_shows_the_numbers_of_the_json(self):
        browser = self.open("plain")
        expected = comparison("plain")
        self.assertEqual(browser.evaluate("JSON.parse(document.getElementById('rankscope-data').textContent)"), expected)
        self.assertEqual([float(v) for v in self.column("attribution-table", 0)], [row["ns"] for row in expected["attribution"]])
        self.assertEqual([None if v is None else float(v) for v in self.column("metrics-table", 2)], [m["new"] for m in expected["metrics"]])
        self.assertIn(expected["step_time"]["reason"], browser.evaluate("document.querySelector('.verdict').textContent"))
        self.assertEqual(browser.evaluate("document.querySelector('.verdict').classList.contains('bad')"), True)

    def test_the_breakdown_shows_both_sides_of_each_rank(self):
        browser = self.open("plain")
        rows = comparison("plain")["breakdown"]
        self.assertEqual([int(v) for v in self.column("breakdown-table", 0)], [row["rank"] for row in rows])
        for index, side, key in ((3, "base", "compute_ns"), (4, "new", "compute_ns"), (5, "base", "exposed_wait_ns"), (6, "new", "exposed_wait_ns"), (8, "new", "exposed_transfer_ns")):
            self.assertEqual([float(v) for v in self.column("breakdown-table", index)], [row[side][key] for row in rows])
        # Bars of both sides are on one scale: the base, which takes two thirds as long, fills two thirds.
        self.assertEqual(browser.evaluate("document.querySelectorAll('#breakdown-table td.bar svg').length"), 2 * len(rows))
        filled = "[...document.querySelector('#breakdown-table td.bar svg:nth-of-type({})').querySelectorAll('rect')].reduce((sum, r) => sum + r.width.baseVal.value, 0)"
        self.assertAlmostEqual(browser.evaluate(filled.format(1)), 1000 * 300 / 450, delta=1)
        self.assertAlmostEqual(browser.evaluate(filled.format(2)), 1000, delta=1)

    def test_a_step_is_drawn_before_and_after_on_one_scale(self):
        browser = self.open("plain")
        widths = browser.evaluate("[...document.querySelectorAll('#overview .lanes')].map(lanes => lanes.querySelector('svg').getBoundingClientRect().width)")
        self.assertEqual(len(widths), 2)
        self.assertAlmostEqual(widths[0] / widths[1], 300 / 450, delta=0.02)
        self.assertEqual(browser.evaluate("[...document.querySelectorAll('#overview .who.named')].map(e => e.textContent)"), ["rank 3", "rank 3"])

    def test_tables_sort_by_a_click(self):
        browser = self.open("plain")
        before = [float(v) for v in self.column("runs-table", 4)]
        self.assertNotEqual(before, sorted(before, reverse=True))
        browser.click("#runs-table th:nth-child(5) button")
        self.assertEqual([float(v) for v in self.column("runs-table", 4)], sorted(before, reverse=True))

    def test_hostile_names_do_nothing(self):
        browser = self.open("hostile")
        self.assertEqual(browser.evaluate("JSON.parse(document.getElementById('rankscope-data').textContent)"), comparison("hostile"))

    def test_ten_thousand_findings_are_cut_and_it_says_so(self):
        browser = self.open("many")
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), browser.evaluate("window.innerWidth"), "a name of 2,000 letters widens nothing but its table")
        self.assertEqual(len(self.column("findings-table", 0)), 500)
        self.assertIn("9500 of 10000 findings are left out", browser.evaluate("document.getElementById('findings-left-out').textContent"))
        self.assertLess(len(rendered("many", "html")), 10e6)

    def test_an_empty_comparison_is_a_page_too(self):
        self.assertIn("no base", self.open("empty").evaluate("document.querySelector('.verdict').textContent"))


if __name__ == "__main__":
    unittest.main()
