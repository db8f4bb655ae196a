# SPDX-License-Identifier: Apache-2.0
"""Jobs of tensor-, pipeline- and data-parallel ranks, drawn by a seed, that run until a planted fault lets nobody get on."""

from flight_recorder_job import Job

FAULTS = ("host", "device", "no dump", "none")
FORMS = ({}, {"only_active": True}, {"ring": 12}, {"json_form": True, "pattern": "rank_{}.json"}, {"version": "2.0"})


class Layout:
    def __init__(self, tp, pp, dp):
        self.tp, self.pp, self.dp = tp, pp, dp
        self.size = tp * pp * dp
        self.groups = {"0": ("default_pg", range(self.size))}
        self.group_of = {}
        places = [(t, d, p) for p in range(pp) for d in range(dp) for t in range(tp)]
        for kind, others, degree in (("TP", lambda t, d, p: (d, p), tp), ("DP", lambda t, d, p: (t, p), dp), ("PP", lambda t, d, p: (t, d), pp)):
            members = {}
            for place in places:
                members.setdefault(others(*place), []).append(self.rank(*place))
            for ranks in members.values() if degree > 1 else ():
                name = str(len(self.groups))
                self.groups[name] = (kind, ranks)
                self.group_of |= {(kind, rank): name for rank in ranks}

    def rank(self, t, d, p):
        return (p * self.dp + d) * self.tp + t

    def program(self, rank):
        """What the rank calls: (group, collective) or (group, direction, peer)."""
        stage, hop = rank // (self.tp * self.dp), self.tp * self.dp
        calls = []
        for _ in range(2):  # steps, of three micro-batches each
            for _ in range(3):
                if stage > 0:
                    calls.append((self.group_of["PP", rank], "recv", rank - hop))
                if self.tp > 1:
                    calls += [(self.group_of["TP", rank], name) for name in ("all_reduce", "_all_gather_base")]
                if stage < self.pp - 1:
                    calls.append((self.group_of["PP", rank], "send", rank + hop))
            if self.dp > 1:
                calls.append((self.group_of["DP", rank], "_reduce_scatter_base"))
            calls.append(("0", "all_reduce"))
        return calls


class DrawnJob:
    """`culprits`: the ranks at fault. `dumps`: how their dumps are written."""

    def __init__(self, random):
        self.layout = Layout(*random.choice(((2, 2, 2), (1, 4, 2), (2, 1, 4), (4, 2, 1), (2, 4, 2), (1, 1, 8), (2, 2, 4))))
        self.fault = random.choice(FAULTS)
        self.programs = [self.layout.program(rank) for rank in range(self.layout.size)]
        self.culprits = sorted(random.sample(range(self.layout.size), random.choice((1, 1, 2)))) if self.fault != "none" else []
        self.stops = {rank: random.randrange(len(self.programs[rank]) // 2, len(self.programs[rank])) for rank in self.culprits}
        self.ahead = random.choice((1, 4, 12))  # calls that a host makes before it waits for its device
        self.batched, self.timed = random.random() < 0.5, random.random() < 0.5
        self.dumps = dict(random.choice(FORMS))
        if self.fault == "no dump":
            self.dumps["skip"] = self.culprits
        self.ended = [0] * self.layout.size
        while self.advance():
            pass

    def called(self, rank):
        most = len(self.programs[rank]) if rank not in self.stops or self.fault == "device" else self.stops[rank]
        return min(most, self.ended[rank] + self.ahead)

    def runs(self, rank):
        """Whether the rank's device has begun its next call."""
        stands = self.fault == "device" and rank in self.stops and self.ended[rank] >= self.stops[rank]
        return self.ended[rank] < self.called(rank) and not stands

    def advance(self):
        progress = False
        for rank in range(self.layout.size):
            if not self.runs(rank):
                continue
            call = self.programs[rank][self.ended[rank]]
            members = [rank, call[2]] if len(call) == 3 else self.layout.groups[call[0]][1]
            if all(self.runs(other) and self.meets(rank, other) for other in members):
                for other in members:
                    self.ended[other] += 1
                progress = True
        return progress

    def meets(self, rank, other):
        mine, theirs = (self.programs[one][self.ended[one]] for one in (rank, other))
        if len(mine) == 3 and other != rank:
            return len(theirs) == 3 and mine[0] == theirs[0] and theirs[2] == rank and mine[2] == other and mine[1] != theirs[1]
        return mine == theirs

    def job(self):
        job = Job(self.layout.size, self.layout.groups)
        for rank, program in enumerate(self.programs):
            for number in range(self.called(rank)):
                group, what, *peer = program[number]
                begun = self.timed and number == self.ended[rank] and self.runs(rank)
                state = "completed" if number < self.ended[rank] else "started" if begun else "scheduled"
                if not peer:
                    job.ranks[rank].call(group, what, state=state)
                elif self.batched:
                    job.ranks[rank].batch(group, [(what, peer[0])], state=state)
                else:
                    job.ranks[rank].message(group, what, peer[0], state=state)
            if not self.timed:
                for entry in job.ranks[rank].entries:
                    entry["time_discovered_started_ns"] = None
        return job
