#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every verb on damaged input. Run I of a seed is the same each time, whatever else runs.

    hostile_runs.py [--seed TEXT] [--runs N] [--only I]

A run fails where a verb ends by a signal, by a status that the manual page does not tell or as an internal error, takes more than 20 s of a processor, a minute, or 2 GiB,
sends a control character to its output, or leaves a file that is not whole, or any file where it says that it failed. What failed is kept, in a folder that is named."""

import argparse
import collections
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import shots
from material import Material, files_below, whole_output

CPU_S, WALL_S, MOST_KB = 20, 60, 2 << 20
SAFETY_BYTES = 12 << 30  # of address space: so that a verb that takes all memory ends before the machine does
STATUSES = {0, 1, 2, 3}
# A tab and an end of line are the only control characters that text for people and programs has.
CONTROLS = {*range(0x20), 0x7F} - {0x09, 0x0A}


def controls_in(output):
    output = output.replace(b"\r\n", b"\n")  # CSV's end of a line, RFC 4180
    found = {byte for byte in output if byte in CONTROLS}
    text = output.decode("utf-8", "replace")
    return sorted(hex(value) for value in found | {ord(letter) for letter in text if 0x80 <= ord(letter) < 0xA0})


class Runs:
    def __init__(self, binary, seed):
        self._binary, self._seed = binary, seed
        self._root = pathlib.Path(tempfile.mkdtemp(prefix="rankscope-hostile-"))
        (self._root / "whole").mkdir()
        self._material = Material(self._root / "whole", binary)
        self.failures = 0
        self.by_verb = collections.Counter()
        self.by_status = collections.Counter()
        self.longest, self.largest = (0.0, ""), (0, "")  # seconds of a processor, kB; of which run

    def close(self):
        shutil.rmtree(self._root / "whole")
        if not self.failures:
            self._root.rmdir()

    def run(self, index):
        draw = random.Random(f"{self._seed}.{index}")
        folder = self._root / str(index)
        folder.mkdir()
        shot = shots.draw(self._material, folder, draw)
        before = files_below(folder)
        told = self._failure(folder, shot, before)
        self.by_verb[shot.words[0] if shot.words[0].isalpha() and len(shot.words[0]) < 12 else "no verb"] += 1
        if told:
            self.failures += 1
            print(f"run {index} of seed {self._seed}: {told}\n  cd {folder}; rankscope {' '.join(shot.words)}\n  what was damaged: {shot.what}", flush=True)
        else:
            shutil.rmtree(folder)

    def _failure(self, folder, shot, before):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("RANKSCOPE_", "OMPI_", "LD_PRELOAD"))}
        environment |= {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "settings"), "QT_QPA_PLATFORM": "offscreen", **shot.environment}

        def limit():
            if not shot.is_virtual:  # whose devices' memory is address space
                resource.setrlimit(resource.RLIMIT_AS, (SAFETY_BYTES, SAFETY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        begin = time.monotonic()
        with open(folder / ".stdout", "wb") as out, open(folder / ".stderr", "wb") as err:
            process = subprocess.Popen([self._binary, *shot.words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limit, start_new_session=True)
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() - begin > WALL_S:
                    os.killpg(process.pid, 9)
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = -9
                    return f"no end within {WALL_S} s"
                time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        code = process.returncode
        self.by_status[code] += 1
        self.longest = max(self.longest, (usage.ru_utime + usage.ru_stime, folder.name))
        self.largest = max(self.largest, (usage.ru_maxrss, folder.name))
        output, errors = (folder / ".stdout").read_bytes(), (folder / ".stderr").read_bytes()
        if code < 0:
            return f"signal {-code}: {errors[-300:]!r}"
        if code not in STATUSES | shot.more_statuses:
            return f"status {code}: {errors[-300:]!r}"
        if usage.ru_utime + usage.ru_stime > CPU_S or usage.ru_maxrss > MOST_KB:
            return f"{usage.ru_utime + usage.ru_stime:.1f} s, {usage.ru_maxrss >> 10} MiB"
        if code in (2, 3) and b"rankscope: error: " not in errors and b"error" not in errors:
            return f"status {code} without a word: {errors[-300:]!r}"
        for name, text in (("stdout", output), ("stderr", errors)):
            if controls_in(text):
                return f"control characters {controls_in(text)} on {name}: {text[:2000]!r}"
        made = files_below(folder) - before - {".stdout", ".stderr"}
        for name in shot.outputs:
            # `compare` writes what it found where it ends with 3, because runs must not be compared.
            if code in (2, 3) and shot.words[0] != "compare" and (folder / name).exists():
                return f"status {code}, and {name} is there"
            if code == 0 and shot.must_write and not (folder / name).exists():
                return f"status 0, and {name} is not there"
            if (folder / name).exists() and (wrong := whole_output(folder / name)):
                return wrong
        strange = [name for name in made if not any(name == known or name.startswith(known) for known in (*shot.outputs, *shot.may_make))]
        if strange:
            return f"files that nobody asked for: {strange[:5]}"
        return None


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seed", default="1")
    words.add_argument("--runs", type=int, default=200)
    words.add_argument("--first", type=int, default=0)
    words.add_argument("--only", type=int)
    words.add_argument("--verbose", action="store_true", help="tell on stderr how far it is")
    words.add_argument("--binary", default=os.environ.get("RANKSCOPE_BINARY", "rankscope"))
    options = words.parse_args()
    runs = Runs(os.path.abspath(options.binary) if "/" in options.binary else options.binary, options.seed)
    for index in [options.only] if options.only is not None else range(options.first, options.first + options.runs):
        runs.run(index)
        if options.verbose and index % 500 == 499:
            print(f"run {index}: {runs.failures} failed so far", file=sys.stderr, flush=True)
    runs.close()
    print(f"{sum(runs.by_verb.values())} runs, {runs.failures} failed; most time: {runs.longest[0]:.1f} s (run {runs.longest[1]}), most memory: {runs.largest[0] >> 10} MiB (run {runs.largest[1]})", flush=True)
    print("verbs:", dict(sorted(runs.by_verb.items())), "\nstatuses:", dict(sorted(runs.by_status.items())))
    sys.exit(1 if runs.failures else 0)


if __name__ == "__main__":
    main()
