# SPDX-License-Identifier: Apache-2.0
"""Tables as nccl-tests print them, of the collectives of virtual GPUs: what a user would measure on the machine of a scenario."""

import collections
import os
import sqlite3
import statistics

from virtual_run import RANKSCOPE, WORKLOAD

COLLECTIVES = WORKLOAD.with_name("rankscope-collectives")
SIZES = [1 << n for n in range(12, 29)]  # 4 KiB to 256 MiB
TIMES = 5                                # the first does not count
PROGRAMS = {"allreduce": "all_reduce_perf", "allgather": "all_gather_perf", "reducescatter": "reduce_scatter_perf"}

LAUNCH = """
rank=0
while [ $rank -lt $RANKS ]; do
  RANK=$rank WORLD_SIZE=$RANKS LOCAL_RANK=$((rank % PER_NODE)) LOCAL_WORLD_SIZE=$PER_NODE RANKSCOPE_HOST=node$((rank / PER_NODE)) MASTER_ADDR=localhost MASTER_PORT=29500 "$@" &
  rank=$((rank + 1))
done
wait
"""


def bus_factor(op, ranks):
    return (2 if op == "allreduce" else 1) * (ranks - 1) / ranks


def table_text(op, hosts, times_us):
    """`hosts`: that of each rank; `times_us`: by size in bytes."""
    lines = [f"# Collective test starting: {PROGRAMS[op]}", "# nThread 1 nGpus 1 minBytes 4096 maxBytes 268435456 step: 2(factor) warmup iters: 1 iters: 4 agg iters: 1 validation: 1 graph: 0",
             "#", "# Using devices"]
    lines += [f"#  Rank {rank:2d} Group  0 Pid {1000 + rank:6d} on {host:>10s} device {hosts[:rank].count(host):2d} [0x00] Virtual GPU" for rank, host in enumerate(hosts)]
    lines += ["#", "#                                                              out-of-place                       in-place          ",
              "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
              "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "]
    redop = "none" if op == "allgather" else "sum"
    busiest = []
    for size, us in sorted(times_us.items()):
        algbw = size / us / 1000
        busiest.append(algbw * bus_factor(op, len(hosts)))
        half = f"{us:8.2f} {algbw:7.2f} {busiest[-1]:7.2f}      0"
        count = size // 4 if op == "allreduce" else size // 4 // len(hosts)
        lines.append(f"{size:12d} {count:13d}     float  {redop:>6s}      -1 {half} {half}")
    lines += ["# Out of bounds values : 0 OK", f"# Avg bus bandwidth    : {statistics.mean(busiest):g}", "#"]
    return "\n".join(lines) + "\n"


def measure(test, scenario, path, groups, ops, environment, name):
    """What nccl-tests would measure on the scenario's machine under an environment: {(op, (ranks, nodes)): {bytes: us}}; nothing where NCCL refuses the environment. `groups`: per shape
    a list with each rank's group."""
    plan = test.folder / "plan.txt"
    lines = []
    for ranks_groups in groups:
        lines.append("groups " + " ".join(map(str, ranks_groups)))
        lines += [f"{op} {size} {TIMES}" for op in ops for size in SIZES]
    plan.write_text("\n".join(lines) + "\n")
    launcher = test.folder / "launch_world.sh"
    launcher.write_text(LAUNCH)
    cluster = scenario["cluster"]
    told = dict(environment, RANKSCOPE_SCENARIO=str(path), RANKS=str(cluster["nodes"] * cluster["ranks_per_node"]), PER_NODE=str(cluster["ranks_per_node"]))
    result = test.run_any(RANKSCOPE, "-q", "run", "--virtual", "-o", name, "--", "sh", launcher, COLLECTIVES, plan, environment=told)
    trace = test.folder / name / "trace.db"
    if result.returncode != 0 or not trace.exists():
        return {}
    times = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    with sqlite3.connect(trace) as database:
        shapes = {row[0]: (row[1], row[2]) for row in database.execute(
            "SELECT communicator_id, count(*), count(DISTINCT host_id) FROM communicator_member JOIN rank USING (rank) GROUP BY communicator_id")}
        for communicator, op, size, ns in database.execute("SELECT communicator_id, op, bytes, transfer_ns FROM collective WHERE transfer_ns IS NOT NULL ORDER BY communicator_id, seq"):
            times[(op.replace("_", ""), shapes[communicator])][size][communicator].append(ns / 1000)
    # The first of each communicator does not count.
    return {key: {size: statistics.median(us for all_us in of.values() for us in all_us[1:]) for size, of in sizes.items()} for key, sizes in times.items()}


def write_tables(test, measured, label):
    """Files of the tables, each with its operation: [(path, op)]."""
    files = []
    for (op, (ranks, nodes)), times_us in measured.items():
        file = test.folder / f"{label}-{op}-{ranks}x{nodes}.txt"
        hosts = [f"node{rank * nodes // ranks}" for rank in range(ranks)]
        file.write_text(table_text(op, hosts, times_us))
        files.append((os.fspath(file), op))
    return files


def groups_of(scenario):
    """The groups of ranks in which the job communicates, per shape."""
    world, tp = scenario["cluster"]["nodes"] * scenario["cluster"]["ranks_per_node"], scenario["parallel"].get("tp", 1)
    groups = []
    if world > tp:
        groups.append([rank % tp for rank in range(world)])
    if tp > 1:
        groups.append([rank // tp for rank in range(world)])
    return groups


def evidence(test, scenario, path, ops, label):
    """Options of `rankscope recommend`: a table of NCCL's own choices, and one of each algorithm and protocol, for each of the operations and shapes of groups."""
    options = []
    settings = [(None, None), *((a, p) for a in ("ring", "tree") for p in ("ll", "ll128", "simple")), ("pat", "simple")]
    for algorithm, protocol in settings:
        asked = [op for op in ops if algorithm in (None, "ring") or (op == "allreduce") == (algorithm == "tree")]
        if not asked:
            continue
        environment = {}
        if algorithm:
            environment = {"NCCL_ALGO": ";".join(f"{op}:{algorithm}" for op in asked), "NCCL_PROTO": ";".join(f"{op}:{protocol}" for op in asked)}
        name = f"{label}-{algorithm or 'own'}-{protocol or 'own'}"
        for file, op in write_tables(test, measure(test, scenario, path, groups_of(scenario), asked, environment, name), name):
            options += ["--evidence", f"{file}:{op}" + (f":{algorithm}/{protocol}" if algorithm else "")]
    return options
