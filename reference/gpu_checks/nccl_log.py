# SPDX-License-Identifier: Apache-2.0
"""What NCCL says it chose for each collective, against what was recorded.

With NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=TUNING, rank 0 of a communicator logs one line a collective (src/enqueue.cc of NCCL 2.24 to 2.28):
`AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}`. The bytes are those of the buffer that one rank passes."""
import collections
import re

from trace_file import opened

LINE = re.compile(r"(\w+): +(\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
OPS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter", "Broadcast": "broadcast", "Reduce": "reduce"}


def logged(texts):
    """Counter of (op, bytes, algorithm, protocol, channels) over the lines of NCCL's log files, given as texts."""
    counts = collections.Counter()
    for text in texts:
        for op, size, algorithm, protocol, low, high in LINE.findall(text):
            counts[OPS.get(op, op), int(size), algorithm.lower(), protocol.lower(), int(high) - int(low) + 1] += 1
    return counts


def recorded(trace):
    """The same Counter from a trace.db: the calls of rank 0 of each communicator. An all-gather's or reduce-scatter's bytes are those of one rank."""
    with opened(trace) as db:
        return collections.Counter(db.execute(
            """SELECT c.op, CASE WHEN c.op IN ('all_gather', 'reduce_scatter') THEN c.bytes / m.n_ranks ELSE c.bytes END, c.algorithm, c.protocol, c.channels
               FROM nccl_call c JOIN communicator m ON m.id = c.communicator_id
               JOIN communicator_member r ON r.communicator_id = m.id AND r.rank = c.rank AND r.comm_rank = 0
               WHERE c.op NOT IN ('send', 'recv') AND m.n_ranks > 1"""))


def compare(said, seen):
    """(equal, text): whether the two Counters agree on everything but the number of channels, of which a collective may use fewer than it was given."""
    def without_channels(counts):
        result = collections.Counter()
        for key, count in counts.items():
            result[key[:4]] += count
        return result

    said, seen = without_channels(said), without_channels(seen)
    if said == seen and said:
        return True, f"{sum(said.values())} collectives: " + ", ".join(f"{op} {algorithm}/{protocol} x{count}" for (op, _, algorithm, protocol), count in said.items())
    return False, f"only NCCL's log has {dict(said - seen)}; only the recording has {dict(seen - said)}"
