#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a real browser: it needs nothing from anywhere, shows the numbers of the JSON report, sorts by a click, turns dark, and lets no name act."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import chromium

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
TRACES = pathlib.Path(__file__).resolve().parents[2] / "traces"
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>\"'&\u2028\u2029\x01\x1b]0;x\x07"
COLUMN = "[...document.querySelectorAll('#{} tbody tr')].map(row => row.cells[{}].dataset.v ?? null)"


# Of every element with words of its own: [element, contrast with the nearest background].
CONTRASTS = """(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => { const [r, g, b] = parts(colour).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = element => { for (; element; element = element.parentElement) { const back = getComputedStyle(element).backgroundColor; if ((parts(back)[3] ?? 1) > 0) return back; } return 'rgb(255, 255, 255)'; };
  const hasWords = element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  return [...document.body.querySelectorAll(':not(script, style, title)')].filter(hasWords).map(element => {
    const svg = element.closest('svg'), style = getComputedStyle(element);
    const [a, b] = [light(svg ? style.fill : style.color), light(behind(svg ? svg.parentElement : element))];
    return [element.outerHTML.slice(0, 80), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  });
})()"""


def setUpModule():
    global folder, browser, environment
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-page-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE_")}
    browser = unittest.enterModuleContext(chromium.Chromium()) if hasattr(unittest, "enterModuleContext") else start_browser()


def start_browser():
    browser = chromium.Chromium()
    unittest.addModuleCleanup(browser.__exit__, None, None, None)
    return browser


def rankscope(*words):
    return subprocess.run([RANKSCOPE, "-q", *map(str, words)], check=True, env=environment, cwd=folder, capture_output=True, timeout=120).stdout


def recorded_run(trace):
    run = folder / trace
    if not run.exists():
        run.mkdir()
        subprocess.run(["tar", "-xf", TRACES / trace / "run.tar.xz", "-C", run], check=True)
        rankscope("collect", run)
    return run


def reports(run):
    """The JSON report and the page of a run."""
    page = folder / (run.name + ".html")
    rankscope("analyze", run, "--format", "html", "-o", page)
    return json.loads(rankscope("analyze", run, "--format", "json")), page


def back_colour():
    return browser.evaluate("getComputedStyle(document.body).backgroundColor")


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.report, cls.page = reports(recorded_run("ddp-slow-rank"))

    def setUp(self):
        browser.prefer("light")
        browser.open(self.page)
        self.addCleanup(lambda: browser.evaluate("localStorage.clear()"))

    def column(self, table, index):
        return browser.evaluate(COLUMN.format(table, index))

    def test_it_asks_for_nothing_and_complains_of_nothing(self):
        self.assertEqual([url for url in browser.requests() if not url.startswith("data:")], [self.page.resolve().as_uri()])
        self.assertEqual(browser.complaints(), [])
        self.assertNotRegex(self.page.read_text(), r"(?:src|href)=[\"']?(?:https?:)?//|@import|url\(")

    def test_the_json_inside_is_the_json_report(self):
        self.assertEqual(browser.evaluate("JSON.parse(document.getElementById('rankscope-data').textContent)"), self.report)

    def test_it_shows_the_numbers_of_the_json_report(self):
        rows = self.report["breakdown"]
        self.assertEqual([int(v) for v in self.column("breakdown-table", 0)], [row["rank"] for row in rows])
        for index, key in ((3, "compute_ns"), (4, "exposed_wait_ns"), (5, "exposed_transfer_ns"), (7, "idle_ns"), (8, "overlapped_comm_ns")):
            for shown, row in zip(self.column("breakdown-table", index), rows):
                self.assertAlmostEqual(float(shown), 100 * row[key] / row["step_ns"], places=9)
        for index, key in ((5, "wait_ns_per_rank_and_step"), (6, "transfer_ns_per_rank_and_step")):
            for shown, row in zip(self.column("collectives-table", index), self.report["collectives"], strict=True):
                self.assertAlmostEqual(float(shown), row[key], delta=0.5)
        verdict = browser.evaluate("document.querySelector('.verdict').textContent")
        finding = self.report["findings"][0]
        self.assertIn(finding["cause"], verdict)
        card = browser.evaluate("document.querySelector('article.finding').textContent")
        for text in (finding["id"], finding["title"], f"{100 * finding['severity']:.1f} %", *finding["evidence"]["facts"], *finding["fix"]):
            self.assertIn(text, card)

    def test_a_click_on_a_head_sorts_and_a_second_one_turns_it_round(self):
        head = "#breakdown-table th:nth-child(4)"
        before = [float(v) for v in self.column("breakdown-table", 3)]
        self.assertNotEqual(before, sorted(before, reverse=True), "already in the order that is asked for: the test would see nothing")
        browser.click(head + " button")
        self.assertEqual([float(v) for v in self.column("breakdown-table", 3)], sorted(before, reverse=True))
        self.assertEqual(browser.evaluate(f"document.querySelector('{head}').getAttribute('aria-sort')"), "descending")
        slow = max(self.report["breakdown"], key=lambda row: row["compute_ns"] / row["step_ns"])
        self.assertEqual(int(self.column("breakdown-table", 0)[0]), slow["rank"])
        browser.click(head + " button")
        self.assertEqual([float(v) for v in self.column("breakdown-table", 3)], sorted(before))
        self.assertEqual(browser.evaluate(f"document.querySelector('{head}').getAttribute('aria-sort')"), "ascending")

    def test_unknown_values_stay_last_when_sorted(self):
        for _ in range(2):
            browser.click("#collectives-table th:nth-child(8) button")
            shown = self.column("collectives-table", 7)
            known = [v for v in shown if v is not None]
            self.assertEqual(shown, known + [None] * (len(shown) - len(known)))

    def test_it_follows_the_users_colours_and_a_switch_turns_them(self):
        light = back_colour()
        browser.click("#theme")
        dark = back_colour()
        self.assertNotEqual(light, dark)
        self.assertLess(sum(map(int, re.findall(r"\d+", dark)[:3])), sum(map(int, re.findall(r"\d+", light)[:3])))
        browser.click("#theme")
        self.assertEqual(back_colour(), light)
        browser.evaluate("localStorage.clear()")
        browser.prefer("dark")
        browser.open(self.page)
        self.assertEqual(back_colour(), dark)

    def test_a_fix_can_be_copied(self):
        browser.evaluate("window.copied = null; Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}})")
        browser.click("article.finding .fix .copy")
        self.assertEqual(browser.evaluate("new Promise(done => setTimeout(() => done(window.copied), 0))"), self.report["findings"][0]["fix"][0])

    def test_it_can_be_read_without_seeing_it(self):
        count = lambda selector: browser.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")
        self.assertEqual((count("h1"), count("main"), count("html[lang]"), count("head > title")), (1, 1, 1, 1))
        self.assertEqual(count("svg:not([aria-label]):not([aria-hidden])"), 0)
        self.assertEqual(count("th:not([scope])") + count("button:empty"), 0)
        ids = browser.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(count("section:not([aria-labelledby])"), 0)
        # The rank that the finding names is marked, and drawn with the others.
        self.assertEqual(browser.evaluate("[...document.querySelectorAll('.who.named')].map(e => e.textContent)"), ["rank 2"])
        self.assertEqual(count(".lanes svg"), len(self.report["breakdown"]))

    def test_words_stand_out_from_what_is_behind_them(self):
        # WCAG 2.1 AA, 1.4.3: 4.5 to 1.
        for scheme in ("light", "dark"):
            browser.prefer(scheme)
            browser.open(self.page)
            contrasts = browser.evaluate(CONTRASTS)
            self.assertGreater(len(contrasts), 100)
            self.assertEqual([row for row in contrasts if row[1] < 4.5], [], scheme)

    def test_it_can_be_read_on_a_telephone(self):
        browser.call("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
        self.addCleanup(browser.call, "Emulation.clearDeviceMetricsOverride")
        browser.open(self.page)
        self.assertLessEqual(browser.evaluate("document.documentElement.scrollWidth"), 400)
        # Letters of a chart shrink with it.
        heights = browser.evaluate("[...document.querySelectorAll('.chart text')].filter(t => t.getClientRects().length).map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
                                   ".filter(size => size > 0)")
        self.assertGreater(len(heights), 10)
        self.assertGreater(min(heights), 9)

    def test_it_prints(self):
        browser.click("#theme")  # dark on the screen, light on paper
        pdf = browser.call("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pdf), 10_000)
        browser.call("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(browser.call, "Emulation.setEmulatedMedia", media="")
        self.assertEqual(back_colour(), "rgb(255, 255, 255)")
        self.assertEqual(browser.evaluate("getComputedStyle(document.getElementById('theme')).display"), "none")


class HostileNames(unittest.TestCase):
    def test_names_with_markup_are_shown_and_do_nothing(self):
        run = folder / "hostile"
        shutil.copytree(recorded_run("ddp-slow-rank"), run)
        with sqlite3.connect(run / "trace.db") as database:
            database.execute("UPDATE string SET text = text || ?", (HOSTILE,))
            database.execute("UPDATE host SET name = name || ?", (HOSTILE,))
            database.execute("UPDATE communicator SET name = ?", (HOSTILE,))
            database.execute("UPDATE meta SET value = ? WHERE key = 'run_name'", (HOSTILE,))
            database.execute("INSERT INTO loss (kind, severity, count, message) VALUES ('torn_tail', 'warning', 1, ?)", (HOSTILE,))
        database.close()
        report, page = reports(run)
        browser.open(page)
        self.assertIsNone(browser.evaluate("window.pwned ?? null"))
        self.assertEqual(browser.evaluate("document.images.length"), 0)
        self.assertEqual([url for url in browser.requests() if not url.startswith("data:")], [page.resolve().as_uri()])
        self.assertEqual(browser.complaints(), [])
        self.assertEqual(browser.evaluate("JSON.parse(document.getElementById('rankscope-data').textContent)"), report)
        self.assertIn("window.pwned=1", browser.evaluate("document.querySelector('h1').textContent"))
        self.assertIn("window.pwned=1", browser.evaluate("document.querySelector('.losses').textContent"))


if __name__ == "__main__":
    if chromium.browser() is None:
        print("skipped: there is no Chromium")
        sys.exit(77)
    unittest.main()
