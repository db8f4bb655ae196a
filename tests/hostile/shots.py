# SPDX-License-Identifier: Apache-2.0
"""A shot: a verb with its options in a folder of its own, of whose files one or more are damaged."""

import dataclasses
import pathlib
import shutil

from damage import ESCAPES, NUMBERS, TEXTS, damage_database, damaged_bytes, damaged_capture, damaged_json, damaged_lines

FORMATS = {"analyze": ("text", "json", "md", "html"), "recommend": ("text", "json", "env", "tuner-csv", "deepspeed", "accelerate"), "whatif": ("text", "json"),
           "stats": ("text", "csv", "json"), "trend": ("text", "json", "html", "badge"),
           "compare": ("text", "json", "md", "junit", "sarif", "github", "benchmark", "openmetrics", "html")}
SUFFIX = {"json": ".json", "md": ".md", "html": ".html", "csv": ".csv", "badge": ".svg", "sarif": ".json", "benchmark": ".json"}
EXPORTS = {"perfetto": ("x.json", "x.pftrace", "x.json.gz"), "chrome": ("x.json", "x.json.gz"), "csv": ("x.csv", "x.csv.gz"), "tables": ("x",), "chakra": ("x",)}
CHANGES = ["balance", "balance:what=work", "speed:factor=2", "network", "network:ideal=latency", "algorithm:algo=auto", "algorithm:algo=tree,proto=ll", "bytes:factor=0.5",
           "gradients:dtype=bf16", "reduce-once:micro-steps=2", "launch-early", "no-contention", "no-stalls", "graphs", "steady:steps=1", "buckets:mb=25", "buckets:mb=1,overlap=yes", "overlap",
           "prefetch", "micro-batches:count=8", "schedule:name=1f1b", "schedule:name=interleaved,virtual=2", "layers", "layers:parts=yes", "place", "dp-ranks:count=8"]
PANELS = ["findings", "details", "events", "range", "sql", "stragglers", "step-times", "matrix", "bandwidth", "roofline", "pipeline", "differences"]
LINKS = ["intra:gbps=200,alpha_us=6;inter:gbps=40,alpha_us=18", "unknown", "intra:gbps=200"]


@dataclasses.dataclass
class Shot:
    words: list
    what: str = ""
    outputs: list = dataclasses.field(default_factory=list)
    may_make: list = dataclasses.field(default_factory=list)
    must_write: bool = True
    more_statuses: set = dataclasses.field(default_factory=set)
    environment: dict = dataclasses.field(default_factory=dict)
    is_virtual: bool = False


def _hostile(text, random):
    """An option's value, now and then another."""
    if random.random() < 0.85:
        return text
    value = random.choice([str(random.choice(NUMBERS)), random.choice(TEXTS), damaged_lines(text.encode(), random).decode("utf-8", "replace"), text + random.choice(ESCAPES)])
    return value.encode("utf-8", "replace").decode().replace("\0", "0")[:30_000]  # Linux: an argument has 128 KiB at most


def _format(shot, verb, random):
    """In a format of the verb's, on stdout or in a file."""
    chosen = random.choice(FORMATS[verb])
    shot.words += ["--format", chosen]
    if random.random() < 0.6:
        shot.outputs.append("out" + SUFFIX.get(chosen, ".text"))
        shot.words += ["-o", shot.outputs[0]]
    return shot


def _on_run(run, random, others=()):
    """A verb on a run. `others`: runs to compare it with."""
    verb = random.choices(["analyze", "recommend", "whatif", "stats", "export", "compare", "save", "list", "top", "trigger", "view", "collect", "tune"], [16, 8, 8, 6, 14, 8, 6, 2, 3, 1, 2, 3, 1])[0]
    made = [f"{run}/", f"{run}-", ".cache", "settings"]
    if verb == "analyze":
        shot = _format(Shot([verb, run], more_statuses={5}), verb, random)
    elif verb == "recommend":
        shot = _format(Shot([verb, run]), verb, random)
    elif verb == "whatif":
        shot = Shot([verb, run, *(["--list"] if random.random() < 0.1 else [word for _ in range(random.choice((1, 1, 2))) for word in ("--change", _hostile(random.choice(CHANGES), random))])])
        _format(shot, verb, random) if "--list" not in shot.words else None
    elif verb == "stats":
        shot = _format(Shot([verb, run, "--tables", random.choice(["events", "hta"]), *random.choice([[], ["--per-rank"]]), "--top", _hostile("20", random)]), verb, random)
    elif verb == "export":
        to = random.choice(list(EXPORTS))
        out = random.choice([*EXPORTS[to], "-" if to not in ("tables", "chakra") else EXPORTS[to][0]])
        shot = Shot([verb, run, "--to", to, "-o", out, *random.choice([[], [], ["--ranks", _hostile("0-1", random)], ["--steps", _hostile("1-2", random)]])], outputs=[] if out == "-" else [out])
    elif verb == "compare":
        shot = _format(Shot([verb, *random.sample([run, random.choice(others or [run])], 2)]), verb, random)
        if random.random() < 0.5:
            shot.words += ["--across", "layout", "--across", "world-size", "--across", "hosts", "--across", "gpu", "--across", "virtual", "--across", "steps", "--across", "unfinished"]
    elif verb == "save":
        shot = Shot(["baseline", "save", run, "--dir", "saved", "--label", _hostile("a", random)], may_make=["saved"])
    elif verb == "list":
        shot = Shot([verb, "."])
    elif verb == "top":
        shot = Shot([verb, run, "--once", *random.choice([[], ["--format", "json"]]), "--window", _hostile("60", random)])
    elif verb == "trigger":
        shot = Shot([verb, run])
    elif verb == "view":
        how = random.choice([["--export", "x.csv"], ["--export", "x.svg"], ["--screenshot", "x.png"]])
        shot = Shot([verb, run, *how, "--panel", random.choice(PANELS), *random.choice([[], ["--goto", _hostile("RS301", random)]])], outputs=[how[1]])
    elif verb == "tune":
        shot = Shot([verb, "--sweep", run, "-o", "tuned", "--", "true"], may_make=["tuned"])
    else:
        shot = Shot([verb, run])
    if verb in ("analyze", "recommend", "whatif", "view") and random.random() < 0.25:
        shot.words += ["--links", _hostile(random.choice(LINKS), random)]
    shot.may_make += made
    return shot


def _of_trace(material, folder, random):
    run = random.choice("ab")
    (folder / run).mkdir()
    path = folder / run / "trace.db"
    shutil.copyfile(material.folder / run / "trace.db", path)
    if random.random() < 0.15:
        path.write_bytes(damaged_bytes(path.read_bytes(), random))
    else:
        damage_database(path, random)
    shot = _on_run(run, random, [str(material.folder / "base"), str(material.folder / "a" / "trace.db")])
    if shot.words[0] not in ("collect",) and random.random() < 0.3:
        shot.words = [f"{run}/trace.db" if word == run else word for word in shot.words]
    shot.what = "trace.db"
    return shot


def _of_captures(material, folder, random):
    run = "k" if random.random() < 0.25 else "a"
    shutil.copytree(material.folder / run, folder / run, ignore=lambda _, names: [name for name in names if name.startswith("trace.db")])
    files = sorted((folder / run / "capture").iterdir())
    for path in random.sample(files, random.choice((1, 1, len(files)))):
        whole = path.read_bytes()
        path.write_bytes(damaged_capture(whole, random) if path.suffix == ".cap" and random.random() < 0.8 else damaged_bytes(whole, random))
    if random.random() < 0.2:
        description = folder / run / "run.json"
        description.write_bytes(random.choice((damaged_json, damaged_bytes))(description.read_bytes(), random))
    if random.random() < 0.1:
        for name in ("stacks/x.1.stack", "capture/x.health", "capture/x.0.detail"):
            (folder / run / name).parent.mkdir(exist_ok=True)
            (folder / run / name).write_bytes(damaged_bytes(files[0].read_bytes(), random))
    shot = _on_run(run, random, [str(material.folder / "base")])
    shot.what = "captures"
    return shot


def _of_import(material, folder, random):
    kind = random.random()
    words = []
    if kind < 0.15:
        name = "nsys.sqlite"
        shutil.copyfile(material.folder / name, folder / name)
        damage_database(folder / name, random)
    elif kind < 0.3:
        name = "events.json"
        (folder / name).write_bytes(random.choice((damaged_json, damaged_bytes, lambda whole, _: whole))((material.folder / name).read_bytes(), random))
        (folder / "mapping.json").write_bytes(random.choice((damaged_json, damaged_bytes, lambda whole, _: whole))((material.folder / "mapping.json").read_bytes(), random))
        words = ["--map", "mapping.json"]
    else:
        source = random.choice(material.imports)
        name = source.name if source.suffix else source.name + ".json"
        whole = source.read_bytes()
        how = damaged_json if len(whole) < 400_000 and random.random() < 0.6 else damaged_bytes
        (folder / name).write_bytes(how(whole, random))
    words += random.choice([[], [], ["--all-operations"], ["--links", _hostile(LINKS[0], random)]])
    return Shot(["import", name, "-o", "made", *words], what=name, outputs=["made/trace.db"], may_make=["made"])


def _of_summary(material, folder, random):
    base = folder / "base"
    shutil.copytree(material.folder / "base", base)
    files = sorted(path for path in base.rglob("*") if path.is_file())
    for path in random.sample(files, random.choice((1, len(files)))):
        path.write_bytes(random.choice((damaged_json, damaged_json, damaged_bytes))(path.read_bytes(), random))
    one = next((f"base/{path.name}" for path in files if path.suffix == ".json"), "base")
    shot = random.choice([
        lambda: _format(Shot(["compare", "base", str(material.folder / random.choice("ab"))]), "compare", random),
        lambda: _format(Shot(["compare", one, one]), "compare", random),
        lambda: _format(Shot(["compare", "--baseline", "base", "--new", str(material.folder / "a"), "--label", _hostile("x", random)]), "compare", random),
        lambda: _format(Shot(["trend", "base"]), "trend", random), lambda: _format(Shot(["trend", "base"]), "trend", random),
        lambda: Shot(["baseline", "list", "--dir", "base"]), lambda: Shot(["baseline", "show", one]), lambda: Shot(["baseline", "show", "--dir", "base"]),
        lambda: Shot(["baseline", "accept", "--dir", "base", _hostile("one", random)]), lambda: Shot(["baseline", "remove", "--dir", "base", _hostile("one", random)]),
        lambda: Shot(["baseline", "prune", "--dir", "base", "--keep", _hostile("1", random)]), lambda: Shot(["baseline", "save", one, "--dir", "other"])])()
    shot.what = "summaries"
    shot.may_make += ["base/", "other", ".cache"]
    return shot


def _of_settings(material, folder, random):
    """Configurations, tables of other programs, candidates, tuner rows."""
    what = random.choice(["config.toml", "rankscope.toml", "table.txt", "candidates", "tuner", "options", "environment"])
    run = str(material.folder / "a" / "trace.db")
    shutil.copyfile(run, folder / "trace.db")
    text = random.choice((damaged_lines, damaged_lines, damaged_bytes))
    if what == "config.toml":
        (folder / "settings/rankscope").mkdir(parents=True)
        (folder / "settings/rankscope/config.toml").write_bytes(text((material.folder / what).read_bytes(), random))
        shot = random.choice([lambda: _format(Shot(["analyze", "trace.db"]), "analyze", random), lambda: Shot(["doctor"]), lambda: Shot(["list", "."]), lambda: Shot(["explain", "RS301"])])()
    elif what == "rankscope.toml":
        (folder / what).write_bytes(text((material.folder / what).read_bytes(), random))
        shutil.copytree(material.folder / "base", folder / "base")
        shot = _format(Shot(["compare", "--new", "trace.db"] if random.random() < 0.7 else ["trend"]), "compare", random)
        if shot.words[0] == "trend":
            shot = _format(Shot(["trend"]), "trend", random)
    elif what == "table.txt":
        (folder / what).write_bytes(text((material.folder / what).read_bytes(), random))
        verb, option = random.choice([("analyze", "--links-table"), ("whatif", "--links-table"), ("recommend", "--links-table"), ("recommend", "--evidence")])
        shot = Shot([verb, "trace.db", option, what + random.choice(["", _hostile(":allreduce", random)]), *(["--change", "balance"] if verb == "whatif" else [])], more_statuses={5} if verb == "analyze" else set())
        _format(shot, verb, random)
    elif what == "candidates":
        whole = pathlib.Path(__file__).resolve().parents[1].joinpath("fuzz/corpus/candidates/advice").read_bytes()
        (folder / "advice.json").write_bytes(random.choice((damaged_json, damaged_bytes))(whole, random))
        shot = Shot(["tune", "--candidates", "advice.json", "-o", "tuned", "--rounds", "2", "--limit", "3", "--", "false"], may_make=["tuned"])
    elif what == "tuner":
        whole = pathlib.Path(__file__).resolve().parents[1].joinpath("fuzz/corpus/tuner/rows").read_bytes()
        (folder / "rows.csv").write_bytes(text(whole, random))
        shot = Shot(["run", "--tuner", "rows.csv", "-o", "ran", "--", "true"], may_make=["ran"])
    elif what == "options":
        shot = random.choice([
            lambda: Shot(["explain", _hostile(random.choice(["RS301", "straggler", "--all"]), random)]), lambda: Shot(["completion", _hostile("bash", random)]),
            lambda: Shot(["help", _hostile("run", random)]), lambda: Shot([_hostile("analyze", random), "trace.db"], more_statuses={5}),
            lambda: Shot(["doctor", "--privacy", "--", "x", _hostile("--token=1", random)]),
            lambda: Shot(["run", "-o", _hostile("ran", random).replace("/", "_"), "--trace", _hostile("cuda", random), "--capture-range", _hostile("steps:1-2", random), "--delay", _hostile("0", random), "--", "true"]),
            lambda: Shot(["run", "-o", "ran", "--env", _hostile("A=B", random), "--hang-timeout", _hostile("5m", random), "--max-size", _hostile("2GiB", random), "--links", _hostile(LINKS[0], random), "--", "true"]),
            lambda: Shot(["list", _hostile(".", random)])])()
        shot.may_make += [""]
    else:
        name = random.choice(["RANKSCOPE_LINKS", "COLUMNS", "TERM", "LANG", "LC_ALL", "NO_COLOR", "RANKSCOPE_HOST", "XDG_CACHE_HOME", "TMPDIR", "TZ"])
        shot = _format(Shot(["analyze", "trace.db"], more_statuses={5}, environment={name: _hostile(random.choice(["1", LINKS[0], "xterm", "/nonexistent"]), random)}), "analyze", random)
    if shot.words[0] == "analyze":
        shot.more_statuses.add(5)
    shot.what = what
    shot.may_make += ["trace.db", ".cache", "settings", "base/"]
    return shot


def _of_scenario(material, folder, random):
    whole = random.choice(material.scenarios).read_bytes()
    (folder / "s.json").write_bytes(random.choice((damaged_json, damaged_json, damaged_bytes))(whole, random))
    if random.random() < 0.85:
        return Shot(["reference", "show", "s.json"], what="scenario")
    shot = Shot(["reference", "run", "s.json", "-o", "made"], what="scenario", may_make=["made", ""], is_virtual=True)
    shot.more_statuses = {1, 69}  # of the job, which is refused by the virtual GPUs
    return shot


def draw(material, folder, random):
    """A shot of any kind, whose files lie in the folder."""
    kinds = [(_of_trace, 34), (_of_captures, 18), (_of_import, 22), (_of_summary, 12), (_of_settings, 10), (_of_scenario, 4)]
    kind = random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
    return kind(material, folder, random)
