# SPDX-License-Identifier: Apache-2.0
"""What must hold of a recording made on a real GPU, read from its trace.db alone."""
import sqlite3

from trace_file import opened


def one(db, query, *values):
    return db.execute(query, values).fetchone()[0]


def per_rank(db, query):
    """{rank: number}, with every rank of the run in it."""
    found = dict(db.execute(query).fetchall())
    return {rank: found.get(rank, 0) for (rank,) in db.execute("SELECT rank FROM rank ORDER BY rank")}


def all_ranks(counts):
    return bool(counts) and all(count > 0 for count in counts.values()), f"per rank {counts}"


def check_ranks(db):
    states = dict(db.execute("SELECT rank, state FROM rank ORDER BY rank").fetchall())
    return bool(states) and set(states.values()) == {"complete"}, f"{states}"


def check_kernels(db):
    return all_ranks(per_rank(db, "SELECT rank, count(*) FROM kernel WHERE nccl = 0 AND dur_ns > 0 GROUP BY rank"))


def check_launches(db):
    """Every kernel joins the runtime or driver call that launched it."""
    kernels = one(db, "SELECT count(*) FROM kernel")
    joined = one(db, "SELECT count(*) FROM kernel k WHERE EXISTS "
                     "(SELECT 1 FROM api_call a WHERE a.rank = k.rank AND a.correlation_id = k.correlation_id)")
    names = db.execute("SELECT s.text, count(*) FROM api_call a JOIN string s ON s.id = a.name_id WHERE a.kind = 1 GROUP BY 1 ORDER BY 2 DESC LIMIT 4")
    return kernels > 0 and joined == kernels, f"{joined} of {kernels}; launches: {dict(names.fetchall())}"


def check_order(db):
    """No kernel starts before the call that launched it (one clock for host and device), to 1 us."""
    early = one(db, "SELECT count(*) FROM kernel k JOIN api_call a ON a.rank = k.rank AND a.correlation_id = k.correlation_id "
                    "WHERE k.start_ns < a.start_ns - 1000")
    return early == 0, f"{early} kernels start before their launch"


def check_steps(db):
    source = db.execute("SELECT value FROM meta WHERE key = 'step_source'").fetchone()
    counts = per_rank(db, "SELECT rank, count(*) FROM step GROUP BY rank")
    good, text = all_ranks(counts)
    return good and source is not None and source[0].startswith("nvtx:"), f"{source[0] if source else 'none'}, {text}"


def check_nvtx(db):
    return all_ranks(per_rank(db, "SELECT n.rank, count(*) FROM nvtx n JOIN string s ON s.id = n.name_id WHERE s.text LIKE 'ProfilerStep#%' GROUP BY 1"))


def check_calls(db):
    ops = db.execute("SELECT op, count(*) FROM nccl_call GROUP BY op ORDER BY op").fetchall()
    good, text = all_ranks(per_rank(db, "SELECT rank, count(*) FROM nccl_call WHERE bytes > 0 GROUP BY rank"))
    return good, f"{dict(ops)}, {text}"


def check_joined(db):
    """Every collective call found its kernel, and every member its instance."""
    collectives = one(db, "SELECT count(*) FROM collective")
    lacking = one(db, "SELECT count(*) FROM collective_member WHERE kernel_id IS NULL")
    unequal = one(db, "SELECT count(*) FROM collective c JOIN communicator m ON m.id = c.communicator_id WHERE c.members <> m.n_ranks")
    return collectives > 0 and lacking == 0 and unequal == 0, f"{collectives} collectives, {lacking} members without kernel, {unequal} incomplete"


def check_plugin(db):
    algorithms = db.execute("SELECT coalesce(algorithm, '?') || '/' || coalesce(protocol, '?'), count(*) FROM collective GROUP BY 1").fetchall()
    known = one(db, "SELECT count(*) FROM collective WHERE algorithm IS NOT NULL AND protocol IS NOT NULL")
    return known > 0, f"{dict(algorithms)}"


def check_network(db):
    """Every rank's proxy told what it sent over sockets, tied to its calls, and for how long that was on the network."""
    lacking = one(db, "SELECT count(*) FROM proxy_op WHERE call_id IS NULL OR bytes <= 0 OR network_wait_ns <= 0 OR network_wait_ns > dur_ns")
    good, text = all_ranks(per_rank(db, "SELECT rank, count(*) FROM proxy_op WHERE is_send = 1 AND call_id IS NOT NULL GROUP BY rank"))
    return good and lacking == 0, f"{text}, {lacking} without call, bytes or time"


def check_hash(db):
    kinds = dict(db.execute("SELECT identity, count(*) FROM communicator GROUP BY identity").fetchall())
    return set(kinds) == {"comm_hash"}, f"{kinds}"


def check_sources(db):
    rows = db.execute("SELECT source, state, count(*) FROM source_status GROUP BY 1, 2").fetchall()
    return bool(rows) and all(state in ("live", "shut_down", "not_asked") for _, state, _ in rows), "; ".join(f"{a} {b} x{c}" for a, b, c in rows)


def check_loss(db):
    rows = db.execute("SELECT kind, severity, sum(count) FROM loss GROUP BY 1, 2").fetchall()
    return all(severity != "error" for _, severity, _ in rows), "; ".join(f"{a} ({b}) {c}" for a, b, c in rows) or "none"


def check_graphs(db):
    """Kernels of CUDA graphs are recorded node by node, and every replay is a call that launches them."""
    nodes = one(db, "SELECT count(*) FROM kernel WHERE graph_node IS NOT NULL")
    launches = one(db, "SELECT count(*) FROM api_call WHERE kind = 8")
    orphans = one(db, "SELECT count(*) FROM kernel k WHERE graph_node IS NOT NULL AND NOT EXISTS "
                      "(SELECT 1 FROM api_call a WHERE a.rank = k.rank AND a.correlation_id = k.correlation_id AND a.kind = 8)")
    return nodes > 0 and launches > 0 and orphans == 0, f"{nodes} kernels of graphs in {launches} launches, {orphans} without their launch"


def check_external(db):
    """Collective calls are tied to their kernels by external correlation (evidence bit 8), not by a guess."""
    counts = dict(db.execute("SELECT evidence & 8 <> 0, count(*) FROM nccl_call WHERE kernel_id IS NOT NULL GROUP BY 1").fetchall())
    return counts.get(1, 0) > 0 and counts.get(0, 0) == 0, f"{counts.get(1, 0)} calls by correlation, {counts.get(0, 0)} otherwise"


def check_records(db):
    """Every kind of record we ask CUPTI for arrives."""
    counts = {table: one(db, f"SELECT count(*) FROM {table}") for table in ("kernel", "memcpy", "api_call", "synchronization")}
    return all(counts.values()), f"{counts}"


def check_overhead(db):
    """CUPTI tells what it cost the job (overhead records)."""
    row = db.execute("SELECT value FROM meta WHERE key = 'overhead_ns'").fetchone()
    return row is not None and int(row[0]) >= 0, f"{row[0] if row else 'none'} ns"


CHECKS = {name[len("check_"):]: function for name, function in list(globals().items()) if name.startswith("check_")}


def check(trace, names):
    """Yields (name, holds, what was seen) for each expectation of CHECKS that is named; `trace` is a trace.db."""
    for name in names:
        try:
            with opened(trace) as db:
                yield name, *CHECKS[name](db)
        except sqlite3.Error as error:
            yield name, False, f"{trace}: {error}"
