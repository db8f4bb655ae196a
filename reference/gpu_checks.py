# SPDX-License-Identifier: Apache-2.0
"""Reads what a wrapped job left on a machine with a GPU and says which expectations hold: gpu_checks.py TRACE_DB EXPECTATION…

Prints one line per expectation: name, ok or FAILED, and the numbers seen. Ends with 1 if one failed."""
import sqlite3
import sys


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


CHECKS = {name[len("check_"):]: function for name, function in list(globals().items()) if name.startswith("check_")}


def main() -> int:
    if len(sys.argv) < 3 or any(name not in CHECKS for name in sys.argv[2:]):
        print(f"{__doc__}\nExpectations: {' '.join(CHECKS)}", file=sys.stderr)
        return 2
    failed = 0
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    for name in sys.argv[2:]:
        try:
            good, seen = CHECKS[name](db)
        except sqlite3.Error as error:
            good, seen = False, str(error)
        failed += not good
        print(f"{name}\t{'ok' if good else 'FAILED'}\t{seen}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
