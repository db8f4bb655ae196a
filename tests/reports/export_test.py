#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`rankscope export`: every event of the trace with its exact times, arrows that begin and end on events, tracks that viewers can draw, and a bounded memory."""

import csv
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import unittest
from collections import Counter, defaultdict
from decimal import Decimal

RANKSCOPE = os.environ.get("RANKSCOPE_BINARY", "rankscope")
TRACES = pathlib.Path(__file__).resolve().parents[2] / "traces"
HOSTILE = "a\"b\\c\n,\t</script>\u2028\x01é"


def setUpModule():
    global folder, environment
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-export-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKSCOPE_")}


def rankscope(*words, check=True):
    return subprocess.run([RANKSCOPE, "-q", *map(str, words)], check=check, env=environment, cwd=folder, capture_output=True, timeout=120)


def recorded_run(trace):
    run = folder / trace
    if not run.exists():
        run.mkdir()
        subprocess.run(["tar", "-xf", TRACES / trace / "run.tar.xz", "-C", run], check=True)
        rankscope("analyze", run)
    return run


def many_ranks(ranks=64, sequences=20):
    """A trace.db of many ranks, of kernels and one communicator that all of them are in, from the schema of a recorded one."""
    database = folder / f"ranks-{ranks}.db"
    with sqlite3.connect(recorded_run("tp-healthy") / "trace.db") as source, sqlite3.connect(database) as out:
        source.backup(out)
        tables = [name for (name,) in out.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta'")]
        for table in tables:
            out.execute(f"DELETE FROM {table}")
        out.execute("INSERT INTO host (id, name) VALUES (0, 'node0')")
        out.execute("INSERT INTO string VALUES (1, 'ncclDevKernel_AllReduce')")
        out.execute("INSERT INTO communicator (id, hash, identity, n_ranks, node_count) VALUES (1, 1, 'comm_hash', ?, 1)", (ranks,))
        for seq in range(sequences):
            out.execute("INSERT INTO collective (id, communicator_id, seq, op, members, complete) VALUES (?, 1, ?, 'all_reduce', ?, 1)", (seq + 1, seq, ranks))
        kernel = 0
        for rank in range(ranks):
            out.execute("INSERT INTO rank (rank, host_id, state) VALUES (?, 0, 'complete')", (rank,))
            out.execute("INSERT INTO stream (id, rank, context, native_id) VALUES (?, ?, 1, 7)", (rank + 1, rank))
            out.execute("INSERT INTO extent VALUES ('kernel', ?, ?, ?, 500)", (rank, kernel + 1, kernel + sequences))
            for seq in range(sequences):
                kernel += 1
                start = seq * 1000 + (rank * 37 + seq * 11) % 400
                out.execute("INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, nccl) VALUES (?, ?, ?, ?, 500, 1, 1)", (kernel, rank, rank + 1, start))
                out.execute("INSERT INTO collective_member (collective_id, rank, kernel_id, arrival_ns, end_ns, wait_ns) VALUES (?, ?, ?, ?, ?, 3)",
                            (seq + 1, rank, kernel, start, start + 500))
    return database


def fields(message):
    """A protobuf message by its wire format: [(number, value)], numbers as such, what has a length as bytes."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            found.append((number, varint()))
        elif kind == 1:
            found.append((number, int.from_bytes(message[at:at + 8], "little")))
            at += 8
        else:
            assert kind == 2, kind
            length = varint()
            found.append((number, message[at:at + length]))
            at += length
    assert at == len(message)
    return found


def split_varints(data):
    """The varints of a packed field, each as its bytes."""
    parts, start = [], 0
    for at, byte in enumerate(data):
        if byte < 0x80:
            parts.append(data[start:at + 1])
            start = at + 1
    assert start == len(data)
    return parts


class PerfettoTrace:
    """A Perfetto trace read back by the numbers of its fields (perfetto.dev: protos/perfetto/trace): slices as (process, track, start, duration, name)."""

    def __init__(self, run, *options):
        path = folder / f"{pathlib.Path(run).stem}.pftrace"
        rankscope("export", run, "--to", "perfetto", "-o", path, *options)
        processes, tracks, names, open_slices, self.counters = {}, {}, {}, defaultdict(list), defaultdict(list)
        self.slices, self.flows, events = [], defaultdict(list), []
        for number, packet in fields(path.read_bytes()):
            assert number == 1
            packet = dict(fields(packet))
            assert packet[10] == 1 and packet[13] & 2
            if 60 in packet:
                track = dict(fields(packet[60]))
                if 3 in track:
                    processes[track[1]] = dict(fields(track[3]))[6].decode()
                else:
                    tracks[track[1]] = (processes[track[5]], track[2].decode())
            if 12 in packet:
                names.update({(kind, dict(fields(one))[1]): dict(fields(one))[2].decode() for kind, one in fields(packet[12])})
            if 11 in packet:
                events.append((packet[8], fields(packet[11])))
        for time, event in sorted(events, key=lambda one: one[0]):  # as a viewer does: by time, else as they stand
            track, kind = dict(event)[11], dict(event)[9]
            if kind == 4:
                self.counters[tracks[track]].append(dict(event)[30])
            elif kind == 2:
                start, name = open_slices[track].pop()
                self.slices.append((*tracks[track], start, time - start, name))
            else:
                assert kind in (1, 3)
                open_slices[track].append((time, names[2, dict(event)[10]]))
                if kind == 3:
                    open_slices[track].pop()
                for number, flow in event:
                    if number in (47, 48):
                        self.flows[flow].append(time)
        assert not any(open_slices.values()), "all slices end"


class ChromeTrace:
    """A Chrome trace read back, with times as whole nanoseconds."""

    def __init__(self, run, to="chrome", *options):
        path = folder / f"{pathlib.Path(run).stem}.{to}.json"
        rankscope("export", run, "--to", to, "-o", path, *options)
        self.bytes = path.read_bytes()
        document = json.loads(self.bytes, parse_float=lambda text: int(Decimal(text) * 1000), parse_int=int)
        self.events = document["traceEvents"]
        self.slices = [event for event in self.events if event["ph"] == "X"]

    def of(self, category):
        return [event for event in self.slices if event["cat"] == category]

    def flows(self, name):
        found = defaultdict(list)
        for event in self.events:
            if event["ph"] in "stf" and event["name"] == name:
                found[event["id"]].append(event)
        return found


class Exports(unittest.TestCase):
    def assert_can_be_drawn(self, trace):
        """In a thread, slices follow or enclose each other; arrows begin, pass and end on slices, forward in time."""
        threads = defaultdict(list)
        for event in trace.slices:
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        for where, slices in threads.items():
            self.assertEqual([start for start, _ in slices], sorted(start for start, _ in slices), where)
            open_ends = []
            for start, end in slices:
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                self.assertTrue(not open_ends or end <= open_ends[-1], (where, start, end, open_ends[-1:]))
                open_ends.append(end)
        starts = {(event["pid"], event["tid"], event["ts"]) for event in trace.slices}
        for name in ("launch", "collective"):
            for identity, arrows in trace.flows(name).items():
                by_time = sorted(arrows, key=lambda arrow: (arrow["ts"], "stf".index(arrow["ph"])))
                self.assertEqual([a["ph"] for a in by_time], ["s"] + ["t"] * (len(arrows) - 2) + ["f"], identity)
                self.assertLessEqual({(a["pid"], a["tid"], a["ts"]) for a in arrows}, starts)
                self.assertEqual([a.get("bp") for a in by_time], [None] + ["e"] * (len(arrows) - 1))

    def test_every_event_is_there_with_its_exact_times(self):
        for run in ("ddp-slow-rank", "pp-few-micro-batches"):
            trace = ChromeTrace(recorded_run(run))
            with sqlite3.connect(folder / run / "trace.db") as database:
                for category, table, where in (("kernel", "kernel", "nccl = 0"), ("nccl_kernel", "kernel", "nccl <> 0"), ("memcpy", "memcpy", "1"), ("memset", "memset", "1"),
                                               ("api_call", "api_call", "1"), ("nccl_call", "nccl_call", "1"), ("nvtx", "nvtx", "dur_ns IS NOT NULL"), ("step", "step", "1")):
                    rows = Counter(database.execute(f"SELECT rank, start_ns, dur_ns FROM {table} WHERE {where}"))
                    self.assertEqual(Counter((e["pid"], e["ts"], e["dur"]) for e in trace.of(category)), rows, (run, category))
                    self.assertTrue(rows or category in ("memcpy", "memset"), (run, category))
                launches = database.execute("""SELECT count(*) FROM api_call a JOIN
                    (SELECT rank, correlation_id FROM kernel UNION ALL SELECT rank, correlation_id FROM memcpy UNION ALL SELECT rank, correlation_id FROM memset) d
                    ON d.rank = a.rank AND d.correlation_id = a.correlation_id""").fetchone()[0]
            self.assertEqual(len(trace.flows("launch")), launches)
            self.assertGreater(launches, 100)
            self.assert_can_be_drawn(trace)

    def test_collectives_and_messages_tell_what_they_carry(self):
        trace = ChromeTrace(recorded_run("ddp-slow-rank"))
        with sqlite3.connect(folder / "ddp-slow-rank/trace.db") as database:
            rows = Counter(database.execute("""SELECT m.rank, m.arrival_ns, c.op, c.bytes, c.communicator_id, c.seq, m.wait_ns, c.last_rank
                FROM collective_member m JOIN collective c ON c.id = m.collective_id"""))
            steps = dict(database.execute("SELECT start_ns, step FROM step WHERE rank = 0"))
        told = Counter((e["pid"], e["ts"], *(e["args"].get(key) for key in ("op", "bytes", "communicator", "seq", "wait_ns", "last_rank"))) for e in trace.of("nccl_kernel"))
        self.assertEqual(told, rows)
        self.assertTrue(all(len(arrows) == 4 for arrows in trace.flows("collective").values()))
        self.assertEqual({e["ts"]: e["args"]["step"] for e in trace.of("step") if e["pid"] == 0}, steps)
        pipeline = ChromeTrace(recorded_run("pp-few-micro-batches"))
        sends = [e["args"] for e in pipeline.of("nccl_kernel") if e["args"].get("op") == "send"]
        self.assertTrue(sends and all("peer" in args and args["bytes"] > 0 for args in sends))

    def test_perfettos_format_has_what_json_has(self):
        for recorded in ("ddp-slow-rank", "pp-few-micro-batches"):
            run = recorded_run(recorded)
            json_trace, trace = ChromeTrace(run), PerfettoTrace(run)
            process = {event["pid"]: event["args"]["name"] for event in json_trace.events if event["name"] == "process_name"}
            expected = Counter((process[e["pid"]], e["ts"], e["dur"], e["name"]) for e in json_trace.slices)
            parts = Counter()
            for event in json_trace.of("nccl_kernel"):
                wait, transfer = event["args"].get("wait_ns"), event["args"].get("transfer_ns")
                if wait is not None and transfer is not None and wait <= event["dur"]:
                    at = (process[event["pid"]], event["ts"])
                    parts.update([(*at, wait, "waiting for other ranks")] if wait > 0 else [])
                    parts.update([(at[0], event["ts"] + wait, event["dur"] - wait, "transfer")] if event["dur"] > wait else [])
            self.assertTrue(parts)
            self.assertEqual(Counter((slice[0], slice[2], slice[3], slice[4]) for slice in trace.slices), expected + parts)
            self.assertEqual(len(trace.flows), len(json_trace.flows("collective")) + len(json_trace.flows("launch")))
            steps = json_trace.of("step")
            self.assertEqual(sorted(value for values in trace.counters.values() for value in values), sorted(e["dur"] for e in steps))

    def test_a_name_that_ends_with_gz_is_gzip(self):
        run = recorded_run("ddp-slow-rank")
        for to, name in (("chrome", "trace.json"), ("perfetto", "trace.pftrace"), ("csv", "trace.csv")):
            rankscope("export", run, "--to", to, "-o", name)
            rankscope("export", run, "--to", to, "-o", f"{name}.gz")
            self.assertEqual(gzip.decompress((folder / f"{name}.gz").read_bytes()), (folder / name).read_bytes())
            self.assertLess((folder / f"{name}.gz").stat().st_size, (folder / name).stat().st_size / 3)

    def test_findings_stand_above_the_ranks(self):
        trace = ChromeTrace(recorded_run("ddp-slow-rank"), "perfetto")
        self.assertEqual([event["name"] for event in trace.of("finding")], ["RS301 straggler rank"])
        names = {event["args"]["name"]: event["pid"] for event in trace.events if event["name"] == "process_name"}
        self.assertIn("rank 2 (node1, GPU 0)", names)
        order = {event["pid"]: event["args"]["sort_index"] for event in trace.events if event["name"] == "process_sort_index"}
        self.assertEqual(min(order, key=order.get), names["findings"])

    def test_counters_are_curves_and_come_back(self):
        run = folder / "counted"
        if not run.exists():
            shutil.copytree(recorded_run("tp-healthy"), run)
        with sqlite3.connect(run / "trace.db") as database:
            (name,) = database.execute("SELECT max(id) + 1 FROM string").fetchone()
            database.execute("INSERT INTO string VALUES (?, 'SMs Active [%]')", (name,))
            database.execute("""CREATE TABLE IF NOT EXISTS counter (id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, time_ns INTEGER NOT NULL,
                name_id INTEGER NOT NULL REFERENCES string(id), value INTEGER NOT NULL)""")
            rows = [(rank, 1_000_000 * sample, 10 * rank + sample) for rank in (0, 1) for sample in range(5)]
            database.executemany(f"INSERT INTO counter (rank, time_ns, name_id, value) VALUES (?, ?, {name}, ?)", rows)
            database.executemany("INSERT INTO extent VALUES ('counter', ?, ?, ?, 0)", [(0, 1, 5), (1, 6, 10)])
        database.close()
        trace = ChromeTrace(run)
        self.assertEqual([(e["pid"], e["ts"], e["args"]["value"]) for e in trace.events if e["ph"] == "C" and e["name"] == "SMs Active [%]"], rows)
        exported = PerfettoTrace(run)
        self.assertTrue({"SMs Active [%]", "step time"} <= {track for _, track in exported.counters})
        curves = exported.counters
        self.assertEqual(sorted(values for (process, track), values in curves.items() if track == "SMs Active [%]"), [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]])
        for name in ("counted.chrome.json", "counted.pftrace"):
            rankscope("import", "--force", name, "-o", "counted-again")
            with sqlite3.connect(folder / "counted-again/trace.db") as again:
                self.assertEqual(again.execute("SELECT c.rank, c.time_ns, c.value FROM counter c JOIN string s ON s.id = c.name_id WHERE s.text = 'SMs Active [%]' ORDER BY c.id").fetchall(), rows)

    def test_a_part_of_a_run(self):
        run = recorded_run("ddp-slow-rank")
        whole = ChromeTrace(run)
        part = ChromeTrace(run, "chrome", "--ranks", "0,2-3", "--steps", "2-3")
        self.assert_can_be_drawn(part)
        windows = {(e["pid"], e["args"]["step"]): (e["ts"], e["ts"] + e["dur"]) for e in whole.of("step")}
        inside = lambda e: e["pid"] in (0, 2, 3) and windows[e["pid"], 2][0] <= e["ts"] < windows[e["pid"], 3][1]
        for category in ("step", "kernel", "nccl_kernel", "api_call", "nvtx", "nccl_call"):
            expected = Counter((e["pid"], e["ts"], e["name"]) for e in whole.of(category) if inside(e))
            self.assertEqual(Counter((e["pid"], e["ts"], e["name"]) for e in part.of(category)), expected, category)
            self.assertTrue(expected, category)
        self.assertEqual({len(arrows) for arrows in part.flows("collective").values()}, {3})
        for words, code in ((("--steps", "70-80"), 3), (("--ranks", "9"), 3), (("--ranks", "3-1"), 2), (("--steps", "1,3"), 2), (("--ranks", "x"), 2)):
            self.assertEqual(rankscope("export", run, "--to", "csv", "-o", "part.csv", *words, check=False).returncode, code, words)

    def test_sixty_four_ranks(self):
        trace = ChromeTrace(many_ranks())
        self.assertEqual(len({event["pid"] for event in trace.slices}), 64)
        self.assertEqual(len(trace.of("nccl_kernel")), 64 * 20)
        arrows = trace.flows("collective")
        self.assertEqual(sorted(map(len, arrows.values())), [64] * 20)
        self.assert_can_be_drawn(trace)

    def test_overlapping_events_of_a_stream_get_tracks_of_their_own(self):
        database = many_ranks(ranks=2, sequences=6)
        with sqlite3.connect(database) as out:
            out.execute("UPDATE kernel SET dur_ns = 1500")
        trace = ChromeTrace(database)
        self.assert_can_be_drawn(trace)
        self.assertGreater(len({event["tid"] for event in trace.slices if event["pid"] == 0}), 1)

    def test_csv_has_a_line_per_event(self):
        run = recorded_run("ddp-slow-rank")
        rankscope("export", run, "--to", "csv", "-o", folder / "events.csv")
        with open(folder / "events.csv", newline="") as file:
            lines = list(csv.DictReader(file))
        with sqlite3.connect(run / "trace.db") as database:
            kernels = Counter(database.execute("SELECT rank, start_ns, dur_ns, nccl <> 0 FROM kernel"))
        self.assertEqual(Counter((int(l["rank"]), int(l["start_ns"]), int(l["dur_ns"]), int(l["kind"] == "nccl_kernel")) for l in lines if "kernel" in l["kind"]), kernels)
        self.assertTrue(all(None not in line and None not in line.values() for line in lines))
        self.assertEqual({line["host"] for line in lines}, {"node0", "node1"})

    def test_tables_are_written_as_they_are(self):
        run = recorded_run("tp-healthy")
        rankscope("export", run, "--to", "tables", "-o", "tables")
        with sqlite3.connect(run / "trace.db") as trace:
            tables = [name for (name,) in trace.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
            self.assertEqual({file.name for file in (folder / "tables").iterdir()}, {f"{table}.csv" for table in tables})
            for table in tables:
                with open(folder / "tables" / f"{table}.csv", newline="", encoding="utf-8") as file:
                    names, *rows = csv.reader(file)
                cursor = trace.execute(f"SELECT * FROM {table}")
                self.assertEqual(names, [column[0] for column in cursor.description], table)
                expected = [["" if value is None else str(value) for value in row] for row in cursor]
                self.assertEqual(len(rows), len(expected), table)
                if table in ("kernel", "collective", "step", "clock_model"):
                    self.assertGreater(len(rows), 0, table)
                    self.assertEqual(rows, expected, table)
        with sqlite3.connect(folder / "hostile.db") as copy, sqlite3.connect(run / "trace.db") as source:
            source.backup(copy)
            copy.execute("UPDATE clock_model SET offset_ns = -5")
            copy.execute("UPDATE host SET name = '=1+1'")
        rankscope("export", folder / "hostile.db", "--to", "tables", "-o", "hostile-tables")
        self.assertIn(",-5,", (folder / "hostile-tables/clock_model.csv").read_text())
        self.assertIn("'=1+1", (folder / "hostile-tables/host.csv").read_text())
        for words in (["-o", "tables"], ["-o", "-"], ["-o", "more", "--ranks", "0"]):
            self.assertNotEqual(rankscope("export", run, "--to", "tables", *words, check=False).returncode, 0, words)
        self.assertFalse((folder / "more").exists())

    def chakra(self, run, *options):
        """Execution traces read back by the numbers of et_def.proto's fields: (rank, nodes) with their attributes as a dictionary."""
        out = pathlib.Path(tempfile.mkdtemp(dir=folder))
        rankscope("export", run, "--to", "chakra", "-o", out, *options)
        found = {}
        for path in out.iterdir():
            data, at, messages = path.read_bytes(), 0, []
            while at < len(data):
                length = shift = 0
                while True:
                    byte = data[at]
                    at += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        break
                messages.append(data[at:at + length])
                at += length
            self.assertEqual(at, len(data))
            metadata = fields(messages[0])
            self.assertEqual(dict(metadata)[1], b"0.0.4")
            nodes = []
            for message in messages[1:]:
                node = {"attr": {}, 4: [], 5: []}
                for number, value in fields(message):
                    if number == 10:
                        attribute = dict(fields(value))
                        (kind,) = set(attribute) - {1}
                        node["attr"][attribute[1].decode()] = (kind, attribute[kind])
                    elif number in (4, 5):
                        node[number] += [one for _, one in fields(b"".join(b"\x08" + part for part in split_varints(value)))]
                    else:
                        node[number] = value
                nodes.append(node)
            found[int(path.name.split(".")[-2])] = nodes
        return found, out

    def test_chakras_execution_traces(self):
        run = recorded_run("ddp-slow-rank")
        traces, _ = self.chakra(run)
        self.assertEqual(sorted(traces), [0, 1, 2, 3])
        with sqlite3.connect(run / "trace.db") as database:
            kernels = dict(database.execute("SELECT rank, count(*) FROM kernel WHERE nccl = 0 GROUP BY rank"))
            collectives = Counter(database.execute("SELECT m.rank, c.op, c.bytes FROM collective c JOIN collective_member m ON m.collective_id = c.id"))
            compute_ns = dict(database.execute("SELECT rank, sum(dur_ns) FROM kernel WHERE nccl = 0 GROUP BY rank"))
        ops = {"all_reduce": 0, "reduce": 1, "all_gather": 2, "broadcast": 5, "all_to_all": 6, "reduce_scatter": 7}
        for rank, nodes in traces.items():
            seen = set()
            for node in nodes:  # what a node waits for stands in front of it, once
                self.assertLessEqual(set(node[4] + node[5]), seen)
                self.assertEqual(len(node[4] + node[5]), len(set(node[4] + node[5])))
                self.assertNotIn(node[1], seen)
                seen.add(node[1])
            device = [n for n in nodes if n["attr"]["is_cpu_op"] == (27, 0)]
            computing = [n for n in device if n[3] == 4 and n[2] not in (b"copy", b"set")]
            self.assertEqual(len(computing), kernels[rank])
            self.assertEqual(sum(n["attr"]["duration_ns"][1] for n in computing), compute_ns[rank])
            self.assertTrue(all(abs(n.get(7, 0) * 1000 - n["attr"]["duration_ns"][1]) <= 500 for n in computing))
            told = Counter((rank, n["attr"]["comm_type"], n["attr"]["comm_size"]) for n in device if n[3] == 7)
            self.assertEqual(told, Counter({(rank, (9, ops[op]), (9, size)): count for (r, op, size), count in collectives.items() if r == rank}))
            self.assertTrue(told and all(n["attr"]["pg_name"][0] == 29 for n in device if n[3] == 7))
            host = [n for n in nodes if n["attr"]["is_cpu_op"] == (27, 1)]
            self.assertTrue(host and any(n[5] for n in host), "blocking calls wait for the device")
            self.assertTrue(any(n[5] for n in device), "streams wait for each other")
            launched = {n[1] for n in host}
            self.assertTrue(all(launched & set(n[4]) for n in computing), "every kernel was launched")

    def test_messages_in_execution_traces_name_both_ends(self):
        traces, _ = self.chakra(recorded_run("pp-few-micro-batches"))
        ends = {5: Counter(), 6: Counter()}
        for rank, nodes in traces.items():
            for node in nodes:
                if node[3] in ends:
                    attributes = {name: value for name, (kind, value) in node["attr"].items()}
                    self.assertEqual(attributes["comm_src" if node[3] == 5 else "comm_dst"], rank)
                    self.assertEqual(node["attr"]["comm_tag"][0], 7)
                    ends[node[3]][attributes["comm_src"], attributes["comm_dst"], attributes["comm_tag"], attributes["comm_size"]] += 1
        self.assertTrue(ends[5])
        self.assertEqual(ends[5], ends[6])
        self.assertEqual(set(ends[5].values()), {1}, "a tag is of one message")
        some, out = self.chakra(recorded_run("pp-few-micro-batches"), "--ranks", "1")
        self.assertEqual(sorted(some), [1])
        self.assertEqual(some[1], traces[1])
        for words in (["-o", out], ["-o", "-"], ["-o", "others", "--steps", "2-3"]):
            self.assertNotEqual(rankscope("export", recorded_run("pp-few-micro-batches"), "--to", "chakra", *words, check=False).returncode, 0, words)

    @unittest.skipUnless(shutil.which("protoc"), "protoc (protobuf-compiler) is not installed: Chakra's files are checked by the numbers of their fields alone")
    def test_protoc_reads_execution_traces(self):
        _, out = self.chakra(recorded_run("tp-healthy"))
        for path in out.iterdir():
            data = path.read_bytes()
            length, at = data[0], 1
            if length >= 0x80:
                length, at = length & 0x7F | data[1] << 7, 2
            text = subprocess.run(["protoc", "--decode=ChakraProtoMsg.GlobalMetadata", "chakra.proto"], input=data[at:at + length], cwd=pathlib.Path(__file__).parent, check=True,
                                  capture_output=True).stdout.decode()
            self.assertIn('version: "0.0.4"', text)
            self.assertIn('string_val: "rankscope"', text)
            count, at = 0, at + length
            while at < len(data) and count < 50:
                length = shift = 0
                while True:
                    byte = data[at]
                    at += 1
                    length |= (byte & 0x7F) << shift
                    shift += 7
                    if byte < 0x80:
                        break
                text = subprocess.run(["protoc", "--decode=ChakraProtoMsg.Node", "chakra.proto"], input=data[at:at + length], cwd=pathlib.Path(__file__).parent, check=True,
                                      capture_output=True).stdout.decode()
                at += length
                count += 1
                self.assertRegex(text, r'name: ".+"\ntype: COM')
                self.assertNotRegex(text, r"(?m)^\d+:", "every field is known")
            self.assertGreater(count, 20)

    def test_names_may_hold_anything(self):
        run = folder / "hostile"
        shutil.copytree(recorded_run("ddp-slow-rank"), run)
        with sqlite3.connect(run / "trace.db") as database:
            database.execute("UPDATE string SET text = ?", (HOSTILE,))
            database.execute("UPDATE host SET name = CAST(x'ff22' AS TEXT)")
            database.execute("UPDATE meta SET value = ? WHERE key = 'run_name'", (HOSTILE,))
        database.close()
        shown = HOSTILE.replace("\x01", "\ufffd")
        trace = ChromeTrace(run)
        self.assertIn(shown, {event["name"] for event in trace.of("kernel")})
        self.assertIn("rank 0 (\ufffd\", GPU 0)", {event["args"]["name"] for event in trace.events if event["name"] == "process_name"})
        rankscope("export", run, "--to", "csv", "-o", folder / "hostile.csv")
        with open(folder / "hostile.csv", newline="", encoding="utf-8") as file:
            self.assertIn(shown, {line["name"] for line in csv.DictReader(file)})

    def test_memory_does_not_grow_with_the_events(self):
        database = many_ranks(ranks=1, sequences=1)
        with sqlite3.connect(database) as out:
            out.execute("DELETE FROM kernel")
            out.executemany("INSERT INTO kernel (id, rank, stream_id, start_ns, dur_ns, name_id, correlation_id, nccl) VALUES (?, 0, 1, ?, 900, 1, ?, 0)",
                            ((i, i * 1000, i) for i in range(1, 400_001)))
            out.execute("UPDATE extent SET first_id = 1, last_id = 400000 WHERE table_name = 'kernel'")
        out.close()
        path = folder / "large.json"
        limited = 'ulimit -d 32768; exec "$0" "$@"'  # KiB of private memory
        subprocess.run(["bash", "-c", limited, RANKSCOPE, "-q", "export", database, "--to", "chrome", "-o", path], check=True, env=environment, timeout=120)
        self.assertGreater(path.stat().st_size, 50e6)

    def test_nothing_half_written_is_left(self):
        run = recorded_run("ddp-slow-rank")
        for words, said in ((("nowhere", "--to", "csv", "-o", "x.csv"), b"nowhere"), ((run, "--to", "csv", "-o", "missing/x.csv"), b"missing/x.csv")):
            result = rankscope("export", *words, check=False)
            self.assertEqual(result.returncode, 3, words)
            self.assertIn(said, result.stderr)
        for name in ("full.csv", "full.json"):
            limited = 'trap "" XFSZ; ulimit -f 16; exec "$0" "$@"'  # a file may take 16 KiB: as a full disk
            result = subprocess.run(["bash", "-c", limited, RANKSCOPE, "-q", "export", run, "--to", pathlib.Path(name).suffix[1:].replace("json", "chrome"), "-o", folder / name],
                                    capture_output=True, env=environment, timeout=120)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn(f"{name}: File too large".encode(), result.stderr)
            self.assertFalse((folder / name).exists())
        self.assertEqual(rankscope("export", run, "--to", "xls", "-o", "x", check=False).returncode, 2)
        damaged = folder / "damaged.db"
        shutil.copy(run / "trace.db", damaged)
        with open(damaged, "r+b") as file:  # a page in the middle
            file.seek(damaged.stat().st_size // 2 // 4096 * 4096)
            file.write(b"\xff" * 8192)
        result = rankscope("export", damaged, "--to", "chrome", "-o", "damaged.json", check=False)
        if result.returncode != 0:
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertFalse((folder / "damaged.json").exists())
        self.assertEqual([path.name for path in folder.iterdir() if path.name.endswith(".new")], [])


if __name__ == "__main__":
    unittest.main()
