#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of two builds, byte by byte, for changes that must not change any: moves, renames, layout.

    tests/golden/same_answers.py OLD/bin/rankscope NEW/bin/rankscope [--runs DIR]
        [--recommend all|few|none] [--only WORD]

Both read the same traces: those of traces/, and every built-in scenario with its repaired twin, which OLD records into
DIR once.
What differs is named, with the first line of each; the exit status is 1 then. Other formats, `explain` and `export` are
not asked for.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECOMMENDED = 20  # scenarios with advice under `--recommend few`: it takes seconds for each


def answer(program, words, folder):
    result = subprocess.run([program, *words], cwd=folder, capture_output=True)
    return result.returncode, result.stdout, result.stderr


CHANGES = ("network", "speed:factor=2,links=inter", "buckets:mb=25", "overlap", "no-stalls", "layers",
           "micro-batches:count=16", "prefetch:depth=2")


def questions(name, folder, recommend):
    yield ["analyze", name, "--format", "json"]
    yield ["analyze", name]
    yield ["whatif", name, "--list"]
    for change in CHANGES:
        yield ["whatif", name, "--change", change, "--format", "json"]
    if recommend:
        yield ["recommend", name, "--format", "json"]
    if (folder / "fixed").exists() and name == "faulty":
        yield ["compare", "faulty", "fixed", "--format", "json"]


def differences(program, other, run, recommend):
    """How many questions were asked, which the first program answered, and what the two say differently of a run.

    Each gets a copy of it, since analyze keeps its results in the trace."""
    told = []
    with tempfile.TemporaryDirectory() as scratch:
        answers = []
        for side in (program, other):
            folder = pathlib.Path(scratch) / "side"
            shutil.copytree(run, folder, ignore=shutil.ignore_patterns("capture"))
            names = [name for name in ("faulty", "fixed") if (folder / name).exists()]
            asked = [words for name in names for words in questions(name, folder, recommend)]
            answers.append([(words, answer(side, words, folder)) for words in asked])
            shutil.rmtree(folder)
        for (words, one), (_, two) in zip(*answers):
            if one != two:
                pairs = [pair for x, y in zip(one[1:], two[1:]) for pair in zip(x.splitlines(), y.splitlines())]
                lines = [pair for pair in pairs if pair[0] != pair[1]]
                told.append(f"{run.name}: {' '.join(words)}: exit {one[0]} and {two[0]}, first difference {lines[:1]}")
        answered = [" ".join(words[:1] + words[2:]) for words, one in answers[0] if one[0] == 0]
        if not answered:
            told.append(f"{run.name}: nothing was answered")
    return len(answers[0]), answered, told


def unpacked(program, archive, runs):
    """The run of an archive in traces/, collected."""
    folder = runs / f"trace-{archive.parent.name}"
    if not folder.exists():
        shutil.unpack_archive(archive, folder / "faulty")
        subprocess.run([program, "-q", "collect", "faulty"], cwd=folder, check=True)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--runs", type=pathlib.Path, default=pathlib.Path("same-answers-runs"),
                        help="where the scenarios' runs are, or will be kept")
    parser.add_argument("--recommend", choices=("all", "few", "none"), default="all")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    old, new = options.old.resolve(), options.new.resolve()
    if not options.runs.exists():
        unfinished = options.runs.with_name(options.runs.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        subprocess.run([old, "reference", "score", "--keep", unfinished], check=True, stdout=subprocess.DEVNULL)
        unfinished.rename(options.runs)
    traces = [unpacked(old, archive, options.runs) for archive in sorted((ROOT / "traces").glob("*/run.tar.xz"))]
    scenarios = [path for path in sorted(options.runs.iterdir()) if (path / "fixed").exists() or path not in traces]
    stride = {"all": 1, "few": max(1, len(scenarios) // RECOMMENDED), "none": len(scenarios) + 1}[options.recommend]
    few = scenarios[::stride] if options.recommend != "none" else []
    advised = {*traces, *few}
    chosen = [path for path in traces + scenarios if options.only in path.name]
    asked, answered, told = 0, set(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for count, kinds, found in pool.map(lambda run: differences(old, new, run, run in advised), chosen):
            asked += count
            answered.update(kinds)
            told += found
    # Both refusing alike is the same answer, too; a question that nobody answers compares nothing.
    if not options.only:
        told += [f"no run answers: whatif --change {change}" for change in CHANGES
                 if f"whatif --change {change} --format json" not in answered]
    print("\n".join(told + [f"{asked} answers about {len(chosen)} runs: {len(told)} complaints"]))
    return 1 if told or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
