#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An export for Perfetto or Chrome, imported again: the recorded runs of traces/ come back with every row, and are judged as they were."""

import gzip
import json
import pathlib
import sqlite3
import tarfile
import unittest

from virtual_run import RANKSCOPE, VirtualRunTest

TRACES = pathlib.Path(__file__).resolve().parents[2] / "traces"

# Rows without ids, which the import gives anew, by what they name.
ROWS = {
    "rank": "SELECT r.rank, r.local_rank, r.state, h.name, h.boot_id, d.ordinal, d.name, d.memory_bytes, p.pid, p.end_kind FROM rank r JOIN host h ON h.id = r.host_id "
            "JOIN process p ON p.id = r.process_id LEFT JOIN device d ON d.id = r.device_id",
    "communicator": "SELECT c.hash, c.identity, c.n_ranks, c.name, m.comm_rank, m.rank, m.create_ns FROM communicator c JOIN communicator_member m ON m.communicator_id = c.id",
    "kernel": "SELECT k.rank, s.native_id, s.handle, s.priority, k.start_ns, k.dur_ns, t.text, k.correlation_id, k.nccl, k.grid_blocks, k.block_threads, k.graph_node "
              "FROM kernel k JOIN stream s ON s.id = k.stream_id JOIN string t ON t.id = k.name_id",
    "memcpy": "SELECT k.rank, s.native_id, k.start_ns, k.dur_ns, k.bytes, k.kind, k.src_memory, k.dst_memory, k.correlation_id FROM memcpy k JOIN stream s ON s.id = k.stream_id",
    "memset": "SELECT k.rank, s.native_id, k.start_ns, k.dur_ns, k.bytes, k.correlation_id FROM memset k JOIN stream s ON s.id = k.stream_id",
    "api_call": "SELECT a.rank, h.tid, h.name, a.start_ns, a.dur_ns, t.text, a.kind, a.source, a.correlation_id, a.argument FROM api_call a JOIN thread h ON h.id = a.thread_id "
                "JOIN string t ON t.id = a.name_id",
    "synchronization": "SELECT y.rank, s.native_id, y.start_ns, y.dur_ns, y.kind, y.event_id, y.correlation_id FROM synchronization y LEFT JOIN stream s ON s.id = y.stream_id",
    "cuda_event": "SELECT e.rank, s.native_id, e.time_ns, e.event_id, e.correlation_id FROM cuda_event e JOIN stream s ON s.id = e.stream_id",
    "nvtx": "SELECT n.rank, h.tid, n.start_ns, n.dur_ns, n.kind, o.text, t.text, n.depth, n.color, n.category, n.payload FROM nvtx n LEFT JOIN thread h ON h.id = n.thread_id "
            "JOIN string t ON t.id = n.name_id LEFT JOIN string o ON o.id = n.domain_id",
    "nccl_call": "SELECT n.rank, h.tid, c.hash, n.start_ns, n.dur_ns, n.op, n.seq, n.count, n.data_type, n.bytes, n.reduce_op, n.peer, s.native_id, n.algorithm, n.protocol, n.channels, "
                 "n.evidence, k.start_ns FROM nccl_call n LEFT JOIN thread h ON h.id = n.thread_id LEFT JOIN communicator c ON c.id = n.communicator_id "
                 "LEFT JOIN stream s ON s.id = n.stream_id LEFT JOIN kernel k ON k.id = n.kernel_id",
    "proxy_op": "SELECT p.rank, c.hash, p.start_ns, p.dur_ns, p.channel, p.peer, p.is_send, p.bytes, p.steps, p.gpu_wait_ns, p.peer_wait_ns, p.network_wait_ns, p.on_behalf_of, n.start_ns "
                "FROM proxy_op p LEFT JOIN communicator c ON c.id = p.communicator_id LEFT JOIN nccl_call n ON n.id = p.call_id",
    "counter": "SELECT c.rank, c.time_ns, t.text, c.value FROM counter c JOIN string t ON t.id = c.name_id",
    "collective": "SELECT c.hash, i.seq, i.op, i.bytes, i.members, i.last_rank, i.transfer_ns, i.complete, i.step FROM collective i JOIN communicator c ON c.id = i.communicator_id",
    "p2p": "SELECT c.hash, i.src_rank, i.dst_rank, i.seq, i.bytes, i.transfer_ns, i.complete FROM p2p i JOIN communicator c ON c.id = i.communicator_id",
    "step": "SELECT * FROM step",
    "meta": "SELECT key, value FROM meta WHERE key NOT IN ('run_name', 'imported_from', 'job_world_size', 'world_size', 'tool_version', 'analysis.verdict', 'analysis.not_judged', 'analysis.places', 'link_peaks', "
            "'command')",
}


class Reimport(VirtualRunTest):
    def recorded(self, name):
        run = self.folder / name
        with tarfile.open(TRACES / name / "run.tar.xz") as archive:
            for member in archive.getmembers():
                self.assertTrue(member.isfile() and ".." not in member.name and not member.name.startswith("/"), member.name)
            archive.extractall(run)
        return run

    def rows(self, run):
        connection = sqlite3.connect(f"file:{self.folder / run / 'trace.db'}?mode=ro", uri=True)
        try:
            return {table: sorted(map(repr, connection.execute(query))) for table, query in ROWS.items()}
        finally:
            connection.close()

    def judged(self, run):
        report = self.report(run)
        findings = [{key: value for key, value in finding.items() if key != "evidence"} for finding in report["findings"]]
        return findings, report["breakdown"], report["run"]["world_size"], report["run"]["steps"], sorted(map(repr, report["not_judged"])) if "not_judged" in report else None

    def test_recorded_runs_come_back_as_they_were(self):
        # An export says of itself that it lacks what ended a job: stacks of threads, and what was under way.
        names = sorted(path.parent.name for path in TRACES.glob("*/expect.json") if json.loads(path.read_text()).get("status", 0) == 0)
        self.assertGreaterEqual(len(names), 15)
        for name in names:
            self.recorded(name)
            judged, rows = self.judged(name), self.rows(name)
            self.assertTrue(rows["kernel"] and rows["nvtx"])
            for to, file in (("chrome", f"{name}.json"), ("perfetto", f"{name}.pftrace"), ("perfetto", f"{name}.pftrace.gz")):
                with self.subTest(trace=name, file=file):
                    self.check_run(RANKSCOPE, "-q", "export", name, "--to", to, "-o", file)
                    again = f"again-{file}"
                    self.check_run(RANKSCOPE, "-q", "import", file, "-o", again)
                    for table, expected in rows.items():
                        self.assertEqual(self.rows(again)[table], expected, table)
                    self.assertEqual(self.judged(again), judged)

    def test_some_ranks_of_a_run_come_back_as_a_part_of_it(self):
        self.recorded("ddp-slow-rank")
        for to, file in (("chrome", "part.json"), ("perfetto", "part.pftrace")):
            self.check_run(RANKSCOPE, "-q", "export", "ddp-slow-rank", "--to", to, "-o", file, "--ranks", "1-2")
            self.check_run(RANKSCOPE, "-q", "import", "--force", file, "-o", "part")
            self.report("ddp-slow-rank")
            whole, part = self.rows("ddp-slow-rank"), self.rows("part")
            for table in ("kernel", "nccl_call", "nvtx", "api_call"):
                self.assertEqual(part[table], [row for row in whole[table] if row.startswith(("(1,", "(2,"))], table)
            report = self.report("part")
            self.assertEqual(report["run"]["world_size"], 4)
            self.assertTrue(any(loss["kind"] == "missing_rank" for loss in report["loss"]), report["loss"])

    def test_damaged_and_empty_exports_are_used_as_far_as_they_go_or_refused(self):
        run = self.recorded("ddp-slow-rank")
        self.check_run(RANKSCOPE, "-q", "export", run.name, "--to", "chrome", "-o", "whole.json")
        self.check_run(RANKSCOPE, "-q", "export", run.name, "--to", "perfetto", "-o", "whole.pftrace")
        for name in ("whole.json", "whole.pftrace"):
            whole = (self.folder / name).read_bytes()
            cut = self.folder / f"cut-{name}"
            cut.write_bytes(whole[:len(whole) * 2 // 3])
            self.check_run(RANKSCOPE, "-q", "import", "--force", cut, "-o", "cut")
            self.assertTrue(any(loss["kind"] == "torn_tail" for loss in self.report("cut")["loss"]), name)
            self.assertLess(len(self.rows("cut")["kernel"]), 4116)
            hurt = bytearray(whole)
            hurt[len(hurt) // 2:len(hurt) // 2 + 40] = b"\0" * 40
            (self.folder / f"hurt-{name}").write_bytes(hurt)
            self.check_run(RANKSCOPE, "-q", "import", "--force", f"hurt-{name}", "-o", "hurt")
            losses = self.report("hurt")["loss"]
            self.assertTrue(any(loss["kind"] in ("bad_block", "torn_tail") for loss in losses), (name, losses))
            (self.folder / f"head-{name}").write_bytes(whole[:400])
            refused = self.run_any(RANKSCOPE, "-q", "import", f"head-{name}", "-o", "head")
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(b"cut off", refused.stderr)
            self.assertFalse((self.folder / "head").exists())
        empty = json.loads((self.folder / "whole.json").read_bytes())
        empty["traceEvents"] = []
        (self.folder / "empty.json").write_text(json.dumps(empty))
        old = dict(empty, otherData={"tool": "rankscope", "run": "x"})
        (self.folder / "old.json").write_text(json.dumps(old))
        for name, why in (("empty.json", b"holds no event"), ("old.json", b"older version")):
            refused = self.run_any(RANKSCOPE, "-q", "import", name, "-o", "none")
            self.assertEqual(refused.returncode, 3, refused.stderr)
            self.assertIn(why, refused.stderr)

    def test_another_program_may_have_laid_the_json_out_anew(self):
        run = self.recorded("tp-healthy")
        self.check_run(RANKSCOPE, "-q", "export", run.name, "--to", "chrome", "-o", "plain.json")
        with gzip.open(self.folder / "pretty.json.gz", "wt") as out:
            json.dump(json.loads((self.folder / "plain.json").read_bytes()), out, indent=1)
        for name in ("plain.json", "pretty.json.gz"):
            self.check_run(RANKSCOPE, "-q", "import", name, "-o", f"from-{name}")
        self.assertEqual(self.rows("from-plain.json"), self.rows("from-pretty.json.gz"))


if __name__ == "__main__":
    unittest.main()
