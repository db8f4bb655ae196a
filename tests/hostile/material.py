# SPDX-License-Identifier: Apache-2.0
"""Whole inputs of every kind that a verb reads, made once: by Rankscope itself from the recorded runs of traces/, and from the inputs of the fuzz targets."""

import gzip
import json
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import tarfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CORPUS = SOURCE / "tests/fuzz/corpus"

CONFIG = """color = "never"
links = "intra:gbps=200"
[view]
theme = "dark"
"""
PROJECT = """[compare]
baseline = "base"
threshold = "step=3%"
resolution = "step=10%"
fail-on = ["regression", "new-finding"]
allow = ["RS301"]
across = ["hosts"]
drop = ["x"]
"""
LINKS_TABLE = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    54.21   19.34   33.85      0    53.90   19.45   34.04      0
    16777216       4194304     float     sum      -1   180.10   93.15  163.02      0   180.00   93.21  163.11      0
  1073741824     268435456     float     sum      -1   7805.0  137.57  240.75      0   7800.0  137.66  240.90      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 140.00
"""


def _sql_of(fuzz_target):
    """The statements of tests/fuzz/NAME_fuzz.cpp that make its whole file."""
    text = (SOURCE / f"tests/fuzz/{fuzz_target}_fuzz.cpp").read_text()
    begin = text.index(".execute(")
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text[begin:text.index(");\n    return", begin)]))


class Material:
    """`folder`: where it is kept; `binary`: the rankscope that makes it."""

    def __init__(self, folder, binary):
        self.folder, self._binary = folder, binary
        self._collect("ddp-slow-rank", "a")
        self._collect("pp-few-micro-batches", "b")
        self.captures = sorted((folder / "a/capture").glob("*.cap"))
        self._killed()
        self._make("export", "a", "--to", "chrome", "-o", "chrome.json")
        self._make("export", "a", "--to", "perfetto", "-o", "a.pftrace")
        self._make("baseline", "save", "a", "--dir", "base", "--label", "one")
        self._make("baseline", "save", "b", "--dir", "base", "--label", "two")
        self.summary = sorted((folder / "base").glob("*.json"))[0]
        for name, text in {"config.toml": CONFIG, "rankscope.toml": PROJECT, "table.txt": LINKS_TABLE}.items():
            (folder / name).write_text(text)
        self.imports = [folder / "chrome.json", folder / "a.pftrace"]
        for kind in ("kineto", "flight", "inspector", "nccl_profiler", "rocprof", "xplane", "export"):
            self.imports += sorted((CORPUS / kind).iterdir())
        database = sqlite3.connect(folder / "nsys.sqlite", isolation_level=None)
        database.executescript(_sql_of("nsys"))
        database.close()
        (folder / "chrome.json.gz").write_bytes(gzip.compress((folder / "chrome.json").read_bytes()))
        self.imports.append(folder / "chrome.json.gz")
        mapping, events = (CORPUS / "mapped/pipeline").read_bytes().split(b"\0", 1)
        (folder / "mapping.json").write_bytes(mapping)
        (folder / "events.json").write_bytes(events)
        self.scenarios = sorted((SOURCE / "reference/scenarios").glob("*.json"))

    def _make(self, *words):
        done = subprocess.run([self._binary, "-q", *words], cwd=self.folder, capture_output=True, text=True)
        if done.returncode not in (0, 5):
            raise SystemExit(f"rankscope {' '.join(words)}: {done.returncode}\n{done.stderr}")

    def _collect(self, trace, name):
        with tarfile.open(SOURCE / "traces" / trace / "run.tar.xz") as archive:
            archive.extractall(self.folder / name)
        self._make("collect", name)

    def _killed(self):
        """A run whose process was killed: a capture with its ring."""
        whole = (CORPUS / "capture/killed").read_bytes()
        length = struct.unpack_from("<I", whole)[0]
        capture = self.folder / "k/capture"
        capture.mkdir(parents=True)
        (capture / "host.1.2.cap").write_bytes(whole[4:4 + length])
        (capture / "host.1.2.ring").write_bytes(whole[4 + length:])
        (self.folder / "k/run.json").write_bytes((self.folder / "a/run.json").read_bytes())


def whole_output(path):
    """None where a file that a verb left under the name it was given is whole; else what is wrong with it."""
    if path.is_dir():
        wrong = [whole_output(below) for below in path.iterdir()]
        return next((told for told in wrong if told), None)
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            return f"{path.name}: {error}"
    suffix = path.suffixes[0] if path.suffixes else ""
    if suffix == ".json":
        try:
            json.loads(content)
        except ValueError as error:
            return f"{path.name}: {error}"
    if suffix == ".html" and not content.rstrip().endswith(b"</html>"):
        return f"{path.name}: no end"
    if suffix == ".svg" and not content.rstrip().endswith(b"</svg>"):
        return f"{path.name}: no end"
    if suffix in (".csv", ".txt", ".md") and content and not content.endswith(b"\n"):
        return f"{path.name}: the last line has no end"
    if suffix == ".db":
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            told = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            told = str(error)
        finally:
            database.close()
        return None if told == "ok" else f"{path.name}: {told}"
    return None


def files_below(folder):
    return {str(pathlib.Path(place, name).relative_to(folder)) for place, _, names in os.walk(folder) for name in names}
