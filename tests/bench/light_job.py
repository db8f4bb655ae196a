#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What light mode costs a long job: an hour of virtual time on two nodes, recorded with a ring and, a part of it, in full.

    tests/bench/light_job.py build/bin/rankscope [--hours 1]

Prints bytes a rank and step and the helper thread's share of a core, each beside the goal. The helper's time is that of this machine for the records of the whole
job, over the job's own time, and what it takes when nothing is recorded, which is measured over some seconds of a process that sleeps."""

import argparse
import json
import pathlib
import struct
import subprocess
import tempfile

GOAL_BYTES, GOAL_SHARE = 1000, 0.001
# A step of a second: 24 layers, gradients in buckets, two nodes, so that the network's transfers are told, too.
JOB = {"name": "long", "kind": "ddp", "seed": 3, "noise": 0.02, "cluster": {"nodes": 2, "ranks_per_node": 1},
       "model": {"layers": 24, "hidden": 4096, "seq": 4096, "micro_batch": 4}, "parallel": {"dp": 2}, "faults": []}
SLEEP_S = 20
SLEEPER = """
import ctypes, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
time.sleep(float(sys.argv[1]))
"""
FILE_HEADER, BLOCK_HEADER, CELL, METADATA = 4096, 64, 32, 2


def metadata(file):
    """Keys and values of a capture file's metadata records (injector/capture_format/FORMAT.md)."""
    content, found, at = file.read_bytes(), {}, FILE_HEADER
    while at + BLOCK_HEADER <= len(content):
        end = at + BLOCK_HEADER + struct.unpack_from("<I", content, at + 8)[0]
        at += BLOCK_HEADER
        while at < end:
            kind, cells, key_bytes, value_bytes = struct.unpack_from("<BBHI", content, at)
            if kind == METADATA:
                text = content[at + 8:at + 8 + key_bytes + value_bytes]
                found[text[:key_bytes].decode()] = text[key_bytes:].decode()
            at += CELL * max(1, cells)
    return found


class Recorded:
    def __init__(self, run, steps):
        captures = sorted((run / "capture").glob("*.cap"))
        details = [file.stat().st_size for file in (run / "capture").glob("*.detail")]
        self.steps = steps
        self.bytes_a_step = sum(file.stat().st_size - FILE_HEADER for file in captures) / len(captures) / steps
        self.ring_bytes = sum(details) / len(captures)
        self.writer_ns = max(int(metadata(file)["overhead.writer_cpu_ns"]) for file in captures)
        self.records = max(int(metadata(file)["overhead.ring_records"]) for file in captures)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rankscope")
    arguments.add_argument("--hours", type=float, default=1)
    options = arguments.parse_args()
    rankscope = str(pathlib.Path(options.rankscope).resolve())
    with tempfile.TemporaryDirectory(prefix="rankscope-bench-") as folder:
        folder = pathlib.Path(folder)

        def record(name, steps, ring):
            scenario = folder / f"{name}.json"
            scenario.write_text(json.dumps(dict(JOB, steps=steps)))
            subprocess.run([rankscope, "-q", "reference", "run", str(scenario), "--light", "--ring", ring, "--no-collect", "-o", str(folder / name)], check=True, stdout=subprocess.DEVNULL)
            return Recorded(folder / name, steps)

        record("probe", 20, "off")
        report = json.loads(subprocess.run([rankscope, "-q", "analyze", str(folder / "probe"), "--format", "json"], check=True, capture_output=True).stdout)
        step_s = sorted(step["dur_ns"] for step in report["steps"])[len(report["steps"]) // 2] / 1e9
        whole = record("whole", 200, "off")
        light = record("light", max(200, round(options.hours * 3600 / step_s)), "60s")
        subprocess.run([rankscope, "-q", "run", "--virtual", "--light", "--no-collect", "--hang-timeout", "off", "-o", str(folder / "idle"), "--", "python3", "-c", SLEEPER, str(SLEEP_S)], check=True)
        idle = Recorded(folder / "idle", 1).writer_ns / 1e9 / SLEEP_S
    busy = light.writer_ns / 1e9 / (light.steps * step_s)
    print(f"{light.steps} steps of {step_s * 1000:.0f} ms, {light.records / light.steps:.0f} records a rank and step")
    print(f"bytes a rank and step   {light.bytes_a_step:10.0f}   goal <= {GOAL_BYTES}   in full {whole.bytes_a_step:.0f}, {whole.bytes_a_step / light.bytes_a_step:.0f} times that")
    print(f"ring, bytes a rank      {light.ring_bytes:10.0f}")
    print(f"helper thread           {100 * (busy + idle):10.4f} % of a core   goal <= {100 * GOAL_SHARE} %   for records {100 * busy:.4f} %, idle {100 * idle:.4f} %, in full {100 * whole.writer_ns / 1e9 / (whole.steps * step_s):.4f} % for records")


if __name__ == "__main__":
    main()
