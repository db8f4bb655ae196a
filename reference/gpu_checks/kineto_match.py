# SPDX-License-Identifier: Apache-2.0
"""The kernels of one job, recorded once by Rankscope and once by torch.profiler (Kineto): matched by (name, k-th of that name)."""
import collections
import json
import statistics
import subprocess

from trace_file import opened


def plain_names(names):
    """{name: demangled}: CUPTI tells mangled names, Kineto writes plain ones."""
    mangled = sorted(name for name in names if name.startswith("_Z"))
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.split("\n") if mangled else []
    return {**{name: name for name in names}, **dict(zip(mangled, plain))}


def of_rankscope(trace, rank):
    """{name: [duration in ns, in order of start]} of the kernels launched between the first and the last ProfilerStep range of a rank."""
    with opened(trace) as db:
        begin, end = db.execute("SELECT min(n.start_ns), max(n.start_ns + n.dur_ns) FROM nvtx n JOIN string s ON s.id = n.name_id "
                                "WHERE n.rank = ? AND s.text LIKE 'ProfilerStep#%'", (rank,)).fetchone()
        rows = db.execute("SELECT s.text, k.dur_ns FROM kernel k JOIN string s ON s.id = k.name_id WHERE k.rank = ? AND EXISTS (SELECT 1 FROM api_call a "
                          "WHERE a.rank = k.rank AND a.correlation_id = k.correlation_id AND a.start_ns BETWEEN ? AND ?) ORDER BY k.start_ns, k.id",
                          (rank, begin, end)).fetchall()
    plain = plain_names({name for name, _ in rows})
    return grouped((plain[name], duration) for name, duration in rows)


def of_kineto(path):
    """The same from a trace that torch.profiler exported."""
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "kernel" and event.get("ph") == "X"]
    events.sort(key=lambda event: float(event["ts"]))
    plain = plain_names({event["name"] for event in events})
    return grouped((plain[event["name"]], round(float(event["dur"]) * 1e3)) for event in events)


def grouped(pairs):
    result = collections.defaultdict(list)
    for name, duration in pairs:
        result[name].append(duration)
    return result


def compare(ours, theirs):
    """(same count, durations agree, text). Durations agree when the median difference of matched kernels is at most max(1 us, 2 %) of the median kernel."""
    different = {name: (len(ours.get(name, [])), len(theirs.get(name, []))) for name in set(ours) | set(theirs) if len(ours.get(name, [])) != len(theirs.get(name, []))}
    pairs = [pair for name in ours for pair in zip(ours[name], theirs.get(name, []))]
    total = sum(map(len, ours.values())), sum(map(len, theirs.values()))
    if not pairs:
        return False, False, f"{total[0]} kernels here, {total[1]} of Kineto, none in common"
    difference = statistics.median(abs(a - b) for a, b in pairs)
    bound = max(1000.0, 0.02 * statistics.median(b for _, b in pairs))
    some = "; ".join(f"{name[:60]}: {a} / {b}" for name, (a, b) in sorted(different.items())[:5])
    return not different, difference <= bound, (f"{total[0]} kernels here, {total[1]} of Kineto, {len(pairs)} matched; median difference {difference:.0f} ns "
                                                f"(bound {bound:.0f})" + (f"; counts differ for {len(different)} names: {some}" if different else ""))
