# SPDX-License-Identifier: Apache-2.0
"""Makes a folder for traces/ of a recorded run: its captures packed, and what it holds and what was found in it, for a person to judge."""
import json
import tarfile

from trace_file import opened

TABLES = ("kernel", "memcpy", "api_call", "synchronization", "nvtx", "nccl_call", "collective", "p2p")


def anonymous(member):
    """Whose files these were is nobody's business."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def keep(run, report, folder, description, machine):
    """`run`: a run directory; `report`: its rankscope.report/1; `folder`: where run.tar.xz and expect.json go. Returns the archive's size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "run.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(run / "run.json", "run.json", filter=anonymous)
        for capture in sorted((run / "capture").iterdir()):
            if capture.suffix == ".cap":
                tar.add(capture, f"capture/{capture.name}", filter=anonymous)
    with opened(run / "trace.db") as db:
        rows = {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    expect = {"description": description, "recorded_on": machine, "expect": [{"id": one["id"], "ranks": one["ranks"], "verdict": one["verdict"]} for one in report["findings"]],
              "loss": sorted({row["kind"] for row in report["loss"]}),
              "world_size": report["run"]["world_size"], "hosts": len(report["run"]["hosts"]) if isinstance(report["run"]["hosts"], list) else report["run"]["hosts"],
              "steps": report["run"]["steps"], "rows": rows}
    (folder / "expect.json").write_text(json.dumps(expect, indent=2) + "\n")
    return archive.stat().st_size
