# SPDX-License-Identifier: Apache-2.0
"""Jobs on paper whose ranks write dumps as PyTorch's flight recorder does: each rank's calls, and which of them ended. Written down from
torch/csrc/distributed/c10d/FlightRecorder*.hpp; nothing of PyTorch is needed."""

import json
import pickle

SECOND_NS = 1_000_000_000
START_NS = 1_758_000_000 * SECOND_NS
CALL_NS = 1_000_000  # from one call to the next


class Rank:
    def __init__(self, job, rank):
        self.job, self.rank = job, rank
        self.entries, self.seq, self.messages, self.op = [], {}, {}, {}
        self.clock = START_NS
        self.enqueued, self.completed = {}, {}

    def call(self, group, name, state="completed", sizes=((1024,),), dtype="Float", out=None, place=("step", "/job/train.py", 40), same=False):
        """A collective; `same`: it belongs to the batch of the one before."""
        if not same:
            self.seq[group] = self.seq.get(group, 0) + 1
        return self._record(group, "nccl:" + name, state, sizes, out if out is not None else sizes, dtype, place, False)

    def message(self, group, direction, peer, state="completed", sizes=((4096, 4096),), batched=False, place=("pipe", "/job/pipe.py", 7)):
        """`peer` is a global rank."""
        members = self.job.groups[group]["ranks"]
        own, other = members.index(self.rank), members.index(peer)
        if not batched:
            self.messages[group] = self.messages.get(group, 0) + 1
        arrow = f"send {own}->{other}" if direction == "send" else f"recv {own}<-{other}"
        return self._record(group, "nccl:" + arrow, "scheduled" if batched else state, sizes, sizes, "BFloat16", place, True)

    def batch(self, group, messages, state="completed"):
        self.messages[group] = self.messages.get(group, 0) + 1
        for direction, peer in messages:
            self.message(group, direction, peer, batched=True)
        return self._record(group, "nccl:coalesced", state, (), (), None, ("pipe", "/job/pipe.py", 9), True)

    def _record(self, group, name, state, sizes, out, dtype, place, is_p2p):
        self.clock += CALL_NS
        self.op[group] = self.op.get(group, 0) + 1
        seq, messages = self.seq.get(group, 0), self.messages.get(group, 0)
        local = 3 + 2 * sorted((g for g in self.job.groups if self.rank in self.job.groups[g]["ranks"]), key=int).index(group)
        self.enqueued[group] = messages if is_p2p else seq
        if state == "completed":
            self.completed[group] = messages if is_p2p else seq
        done = state == "completed"
        description = self.job.groups[group]["desc"]
        self.entries.append({
            "frames": [{"name": name.split(":")[1].split(" ")[0], "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 2810},
                       {"name": place[0], "filename": place[1], "line": place[2]}, {"name": "<module>", "filename": "/job/train.py", "line": 99}],
            "record_id": len(self.entries), "pg_id": local, "process_group": (group, description), "thread_name": "pt_main", "thread_id": "1",
            "collective_seq_id": seq, "p2p_seq_id": messages, "op_id": self.op[group], "profiling_name": name, "time_created_ns": self.clock,
            "input_sizes": [list(size) for size in sizes], "input_dtypes": [dtype] * len(sizes), "output_sizes": [list(size) for size in out],
            "output_dtypes": [dtype] * len(out), "state": state, "time_discovered_started_ns": self.clock + 1000 if state != "scheduled" else None,
            "time_discovered_completed_ns": self.clock + CALL_NS // 2 if done else None, "retired": done, "timeout_ms": 600_000, "is_p2p": is_p2p})
        return self


class Job:
    def __init__(self, ranks, groups):
        """`groups`: name to (description, global ranks)."""
        self.groups = {str(name): {"desc": description, "ranks": list(members)} for name, (description, members) in groups.items()}
        self.ranks = [Rank(self, rank) for rank in range(ranks)]

    def all_call(self, group, name="all_reduce", **options):
        for rank in self.groups[group]["ranks"]:
            self.ranks[rank].call(group, name, **options)
        return self

    def dump(self, rank, version="2.10", ring=2000, only_active=False, frames=True):
        """What the rank's process hands out."""
        one = self.ranks[rank]
        minor = int(version.split(".")[1])
        entries = one.entries[-ring:]
        if only_active:
            entries = [entry for entry in entries if entry["state"] != "completed"]
        dropped = set() if frames else {"frames"}
        if minor < 4:
            dropped |= {"timeout_ms"}
        if minor < 9:
            dropped |= {"thread_name", "thread_id"}
        entries = [{key: value for key, value in entry.items() if key not in dropped} for entry in entries]
        used = {entry["process_group"][0] for entry in one.entries}
        config = {group: {"name": group, "desc": told["desc"], "ranks": str(told["ranks"])} for group, told in self.groups.items() if group in used}
        status = {}
        for group in used:
            local = next(entry["pg_id"] for entry in one.entries if entry["process_group"][0] == group)
            status[str(local)] = {"last_enqueued_collective": one.enqueued[group], "last_started_collective": -1,
                                  "last_completed_collective": one.completed.get(group, -1)}
        if minor == 0:
            return {"entries": entries, "version": version, "pg_config": config}
        dump = {"version": version, "pg_config": config, "nccl_version" if minor < 10 else "comm_lib_version": "2.27.3"}
        if minor >= 3:
            dump["pg_status"] = status
        return dump | {"entries": entries}

    def write(self, folder, pattern="_dump_{}", protocol=2, json_form=False, skip=(), **options):
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(len(self.ranks)):
            if rank in skip:
                continue
            dump = self.dump(rank, **options)
            path = folder / pattern.format(rank)
            if json_form:
                path.write_text(as_json(dump))
            else:
                path.write_bytes(pickle.dumps(dump, protocol=protocol))
        return folder


def as_json(dump):
    """As _dump_nccl_trace_json: keys sorted, counters as texts, 0 for None, nothing where there is no entry."""
    dump = json.loads(json.dumps(dump))
    for entry in dump["entries"]:
        entry.pop("frames", None)
        for key in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            entry[key] = entry[key] or 0
    if not dump["entries"]:
        del dump["entries"]
    for counters in dump.get("pg_status", {}).values():
        for key in counters:
            counters[key] = str(counters[key])
    return json.dumps(dump, sort_keys=True)
