#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics of running jobs: what is served and written, that a job never suffers from it, and that Prometheus (Debian's package, where it is installed) scrapes it, tells the
late rank of 64 and fires the alert of docs/metrics."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from virtual_run import RANKSCOPE, SMALL, VirtualRunTest, WORKLOAD

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")
SLOW = [{"kind": "straggler", "rank": 1, "factor": 1.5, "throttle": "power"}]
LONG = dict(SMALL, steps=1000000, faults=SLOW)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url, accept=""):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


class Metrics(VirtualRunTest):
    def start(self, name, *options, scenario=None, ranks=4):
        """A job of ranks without a launcher, light, that the test ends."""
        path = self.write_scenario(dict(scenario or LONG, name=f"{name}-scenario"))
        script = self.folder / f"{name}.sh"
        script.write_text(f'for rank in $(seq 0 {ranks - 1}); do RANK=$rank WORLD_SIZE={ranks} LOCAL_RANK=$rank "{WORKLOAD}" "{path}" & done\ntrap \'kill $(jobs -p)\' TERM\nwait\n')
        job = subprocess.Popen([RANKSCOPE, "run", "--virtual", "--light", "--no-collect", "-o", name, *options, "--", "bash", str(script)], cwd=self.folder,
                               env=dict(self.environment, RANKSCOPE_SCENARIO=str(path)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        job.said = []
        job.reader = threading.Thread(target=lambda: job.said.extend(iter(job.stderr.readline, b"")), daemon=True)
        job.reader.start()
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.reader.join, 30)
        self.addCleanup(job.wait)
        self.addCleanup(job.terminate)
        return job

    def until(self, condition, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                result = condition()
            except (OSError, urllib.error.URLError):
                result = None
            if result:
                return result
            time.sleep(0.2)
        self.fail("never came")

    def url_of(self, job):
        return self.until(lambda: next((match[0].decode() for line in job.said if (match := re.search(rb"http://\S+/metrics", line))), None))

    def test_what_is_served_is_openmetrics_with_the_promised_names(self):
        url = self.url_of(self.start("served", "--metrics", "0", "--metrics-file", "served.prom"))
        text = self.until(lambda: (text := fetch(url)[1]) and "rankscope_finding_ratio{" in text and "rankscope_device_throttled{" in text and text)
        self.assertTrue(text.endswith("# EOF\n"))
        promised = set(re.findall(r"`(rankscope_\w+)`", (DOCS / "metrics.md").read_text(encoding="utf-8")))
        for name in re.findall(r"^# TYPE (\S+) (?:gauge|counter)$", text, re.MULTILINE):
            self.assertTrue({name, name + "_total"} & promised, name)
        self.assertRegex(text, r'rankscope_rank_late_ratio\{run="served",rank="2",host="[^"]+"\} 0')
        self.assertRegex(text, r'rankscope_device_throttled\{run="served",rank="1",host="[^"]+",reason="power_cap"\} 1\n')
        self.assertRegex(text, r'rankscope_device_sm_clock_hertz\{run="served",rank="1",host="[^"]+"\} 1320000000')
        self.assertRegex(text, r'rankscope_finding_ratio\{run="served",diagnosis="RS301",ranks="1",verdict="found"\} 0\.\d')
        self.assertIn("openmetrics", fetch(url, "application/openmetrics-text; version=1.0.0")[0])
        self.assertIn("text/plain", fetch(url)[0])
        self.assertIn("rankscope_step_seconds", self.until((self.folder / "served.prom").read_text))
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            return
        self.assertGreater(len(list(text_string_to_metric_families(text))), 20)

    def test_a_job_that_ends_is_itself_whoever_asks_at_that_moment(self):
        script = self.folder / "quick.sh"
        script.write_text(f'RANK=0 WORLD_SIZE=1 "{WORKLOAD}" "{self.alone()}"; sleep 2; exit 7\n')
        job = subprocess.Popen([RANKSCOPE, "run", "--virtual", "-o", "quick", "--metrics", "0", "--metrics-file", "quick.prom", "--", "bash", str(script)], cwd=self.folder, env=self.environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        line = job.stderr.readline()
        while b"http://" not in line:
            line = job.stderr.readline()
        host, port = re.search(rb"http://(\S+):(\d+)/", line).groups()
        asked = socket.create_connection((host, int(port)))  # and never gets on with its request
        asked.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
        self.until((self.folder / "quick.prom").exists)
        job.stderr.read()
        job.stderr.close()
        self.assertEqual(job.wait(60), 7)
        asked.close()
        self.assertFalse((self.folder / "quick.prom").exists())
        self.assertTrue((self.folder / "quick" / "trace.db").exists())

    def test_however_a_job_ends_nothing_of_its_metrics_is_left(self):
        scratch = self.folder / "tmp"
        scratch.mkdir()
        os.mkfifo(self.folder / "pipe")
        pipe = os.open(self.folder / "pipe", os.O_RDWR)
        self.addCleanup(os.close, pipe)
        environment = dict(self.environment, TMPDIR=str(scratch))
        for _ in range(5):  # it has ended before its endpoint has begun to listen
            done = self.run_any(RANKSCOPE, "run", "--metrics", "0", "--metrics-file", "pipe", "--no-collect", "--force", "-o", "short", "--", "true", environment=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(list(scratch.iterdir()), [])
        self.assertTrue((self.folder / "pipe").is_fifo())
        killed = subprocess.Popen([RANKSCOPE, "-q", "run", "--metrics", "0", "--metrics-file", "killed.prom", "--no-collect", "-o", "killed", "--", "sleep", "3"], cwd=self.folder, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.until((self.folder / "killed.prom").exists)
        killed.kill()
        killed.wait()
        self.until(lambda: not (self.folder / "killed.prom").exists() and not list(scratch.iterdir()), 20)

    def alone(self):
        return self.write_scenario(dict(SMALL, name="alone", cluster={"nodes": 1, "ranks_per_node": 1}, parallel={"dp": 1}, faults=[]))

    def test_a_port_that_is_taken_costs_the_metrics_and_not_the_job(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            script = f'RANK=0 WORLD_SIZE=1 "{WORKLOAD}" "{self.alone()}"; sleep 1; exit 3'
            done = self.run_any(RANKSCOPE, "run", "--virtual", "-o", "second", "--metrics", port, "--", "bash", "-c", script)
            self.assertEqual(done.returncode, 3)
            self.assertIn(f"127.0.0.1 port {port} cannot be had".encode(), done.stderr)
            self.assertIn(b"the job goes on without", done.stderr)
            self.assertEqual(self.run_any(RANKSCOPE, "top", "second", "--metrics", port, "--once").returncode, 3)
        done = self.run_any(RANKSCOPE, "run", "--virtual", "-o", "third", "--metrics-file", "no/such/folder.prom", "--", "bash", "-c", script)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"--metrics-file", done.stderr)

    def test_two_jobs_of_a_host_have_a_port_each_and_hostile_requests_end_neither(self):
        urls = [self.url_of(self.start(name, "--metrics", "0")) for name in ("one", "two")]
        self.assertEqual(len(set(urls)), 2)
        port = int(re.search(r":(\d+)/", urls[0])[1])
        for request in (b"", b"\x00\xff" * 5000, b"GET /metrics HTTP/1.1\r\n" + b"X: " + b"a" * 200000, b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"GET /../../etc/passwd HTTP/1.0\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as hostile:
                try:
                    hostile.sendall(request)
                    hostile.shutdown(socket.SHUT_WR)
                    self.assertNotIn(b"root:", hostile.recv(1 << 16))
                except OSError:
                    pass
        for name, url in zip(("one", "two"), urls):
            self.until(lambda name=name, url=url: f'rankscope_run_running{{run="{name}"}} 1' in fetch(url)[1])

    def test_addresses_that_are_none_are_refused_before_anything_is_made(self):
        for address in ("", "-1", "65536", "99999999999999999999", "0x10", "80a", " 80", "a:b", ":80", "::1:80", "host:"):
            done = self.run_any(RANKSCOPE, "run", f"--metrics={address}", "-o", "none", "--", "true")
            self.assertEqual(done.returncode, 2, address)
        self.assertFalse((self.folder / "none").exists())

    @unittest.skipUnless(PROMTOOL, "promtool is not here (package prometheus)")
    def test_the_alert_rules_and_the_dashboard_are_what_prometheus_and_grafana_read(self):
        self.check_run(PROMTOOL, "check", "rules", DOCS / "metrics" / "alerts.yml")
        promised = set(re.findall(r"`(rankscope_\w+)`", (DOCS / "metrics.md").read_text(encoding="utf-8")))
        dashboard = json.loads((DOCS / "metrics" / "grafana.json").read_text(encoding="utf-8"))
        expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]] + [(DOCS / "metrics" / "alerts.yml").read_text(encoding="utf-8")]
        for expression in expressions:
            self.assertLessEqual(set(re.findall(r"rankscope_\w+", expression)), promised, expression)

    @unittest.skipUnless(PROMETHEUS, "prometheus is not here (package prometheus)")
    def test_prometheus_tells_the_late_rank_of_64_and_fires_the_alert(self):
        slow = [{"kind": "straggler", "rank": 37, "factor": 1.5}]
        big = dict(SMALL, steps=1000000, cluster={"nodes": 8, "ranks_per_node": 8}, parallel={"dp": 64}, faults=slow, model={"layers": 2, "hidden": 1024, "seq": 512, "micro_batch": 2})
        url = self.url_of(self.start("big", "--metrics", "0", "--no-health", scenario=big, ranks=64))
        port = free_port()
        rules = (DOCS / "metrics" / "alerts.yml").read_text(encoding="utf-8").replace("for: 2m", "for: 1s")  # of the test's patience
        (self.folder / "alerts.yml").write_text(rules)
        (self.folder / "prometheus.yml").write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yml]\n"
                                                    f"scrape_configs: [{{job_name: rankscope, static_configs: [{{targets: ['{urllib.parse.urlsplit(url).netloc}']}}]}}]\n")
        prometheus = subprocess.Popen([PROMETHEUS, "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data", "--log.level=error"], cwd=self.folder,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(prometheus.wait)
        self.addCleanup(prometheus.send_signal, signal.SIGKILL)

        def asked(query):
            answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query}))[1])
            return answer["data"]["result"]

        late = self.until(lambda: asked("topk(1, max by (run, rank) (rankscope_rank_late_seconds) > 0)"), 200)
        self.assertEqual([(series["metric"]["run"], series["metric"]["rank"]) for series in late], [("big", "37")])
        fired = self.until(lambda: asked('ALERTS{alertname="RankscopeLateRank", alertstate="firing"}'), 60)
        self.assertEqual([series["metric"]["rank"] for series in fired], ["37"])
        self.assertEqual(asked("up")[0]["value"][1], "1")


if __name__ == "__main__":
    unittest.main()
