// SPDX-License-Identifier: Apache-2.0
#include "analyzer/facts/job_end.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "analyzer/facts/trace_facts.h"
#include "analyzer/text/plain_text.h"
#include "collector/store/reader.h"

namespace rankscope::facts {
namespace {

/// Calls without a kernel that are kept of a rank: those of a few steps. Where CUPTI was refused all calls are such.
constexpr size_t kMostUnfinished = 20'000;
/// Collectives whose calls are compared: the first ones that do not fit are what matters.
constexpr size_t kMostCompared = 20'000;

bool isMessage(store::Op op) {
    return op == store::Op::send || op == store::Op::recv;
}

bool hasRoot(store::Op op) {
    return op == store::Op::broadcast || op == store::Op::reduce || op == store::Op::gather || op == store::Op::scatter;
}

bool sizesMayDiffer(store::Op op) {
    return op == store::Op::allToAll || op == store::Op::gather || op == store::Op::scatter;
}

/// What is not told contradicts nothing.
bool sameCall(const EndedCall& a, const EndedCall& b) {
    if (a.op == store::Op::unknown || b.op == store::Op::unknown) return true;
    if (a.op != b.op) return false;
    if (a.dataType != b.dataType && a.dataType != store::DataType::unknown && b.dataType != store::DataType::unknown)
        return false;
    if (hasRoot(a.op) && a.peer != b.peer && a.peer >= 0 && b.peer >= 0) return false;
    return a.bytes == b.bytes || a.bytes < 0 || b.bytes < 0 || sizesMayDiffer(a.op);
}

class Reader {
  public:
    Reader(store::TraceReader& trace, const TraceFacts& facts) : m_trace(trace), m_facts(facts) {}

    std::optional<JobEnd> read();

  private:
    std::optional<JobEnd> readDumps();
    void readRecorder();
    void doubtOldDumps();
    bool readProcesses();
    void readMembers();
    void readCalled();
    void readCalls(RankEnd& rank);
    void readLastActs(RankEnd& rank);
    void readFailedAllocations();
    void readStacks();
    bool wentOnAfter(const RankEnd& rank, int64_t ns) const;
    void compare();
    void compareMessages();
    void readProgress();
    std::optional<int64_t> metaNumber(const char* key) const;

    store::TraceReader& m_trace;
    const TraceFacts& m_facts;
    JobEnd m_end;
    std::map<std::pair<int64_t, int>, int> m_rankOf;  // global rank by (communicator, rank in it)
    std::set<std::pair<int64_t, int64_t>> m_open;     // (communicator, seq) of collectives that are not whole
    std::map<std::pair<int64_t, int64_t>, Contradiction> m_compared;
    std::map<int64_t, store::RecorderCall> m_recorded;  // by call
    std::map<int64_t, int64_t> m_synchronized;          // last that all came to, by communicator
    std::map<int64_t, int64_t> m_calledByAll;           // the fewest that a member is recorded to have called

    /// Whether the call is known to have ended.
    bool hasEnded(const store::NcclCall& row) const {
        if (row.kernelId) return true;
        const auto told = m_recorded.find(row.id);
        return told != m_recorded.end() && told->second.state == "completed";
    }

    /// Whether the kernel's end is that of a communicator that was aborted: a member never called what takes all.
    bool wasAborted(const EndedCall& call) const {
        const auto all = m_calledByAll.find(call.communicator);
        return store::isSynchronizing(call.op) && all != m_calledByAll.end() && call.seq >= all->second;
    }
};

std::optional<int64_t> Reader::metaNumber(const char* key) const {
    const std::string text = m_facts.text(key);
    return text.empty() ? std::nullopt : std::optional<int64_t>(std::atoll(text.c_str()));
}

/// False where nobody failed.
bool Reader::readProcesses() {
    std::map<int64_t, store::Process> processes;
    for (store::Process& process : m_trace.all<store::Process>()) processes[process.id] = std::move(process);
    bool failed = m_end.exitStatus.value_or(0) != 0;
    for (const store::Rank& row : m_trace.all<store::Rank>()) {
        RankEnd rank;
        rank.rank = row.rank;
        if (const RankFacts* known = m_facts.findRank(row.rank)) rank.host = known->host;
        if (const auto process = row.processId ? processes.find(*row.processId) : processes.end();
            process != processes.end()) {
            rank.recorded = true;
            rank.endKind = process->second.endKind;
            rank.endCode = process->second.endCode;
            rank.lastNs = process->second.endNs;
            rank.pid = process->second.pid;
        }
        failed = failed || rank.failed() || !rank.recorded;
        m_end.ranks.push_back(std::move(rank));
    }
    std::ranges::sort(m_end.ranks, {}, &RankEnd::rank);
    return failed;
}

void Reader::readMembers() {
    for (const store::CommunicatorMember& member : m_trace.all<store::CommunicatorMember>()) {
        m_rankOf[{member.communicatorId, member.commRank}] = member.rank;
        m_end.communicators[member.communicatorId].called[member.rank] = 0;
    }
    for (auto& [id, counts] : m_end.communicators)
        if (const Communicator* known = m_facts.findCommunicator(id))
            counts.missing = std::max(0, known->size - static_cast<int>(counts.called.size()));
}

/// Nothing of communicators of which a member's last calls may be missing: its file was cut, or copied while it ran, or
/// holds no call of it at all.
void Reader::readCalled() {
    if (lostCalls(m_facts)) return;
    for (const RankEnd& rank : m_end.ranks)
        if (rank.recorded)
            m_trace.forEach<store::NcclCall>(rank.rank, [&](const store::NcclCall& row) {
                if (!row.communicatorId || !row.seq || isMessage(row.op)) return;
                const auto place = m_end.communicators.find(*row.communicatorId);
                if (place == m_end.communicators.end()) return;
                int64_t& called = place->second.called[rank.rank];
                called = std::max(called, *row.seq + 1);
            });
    for (const auto& [id, counts] : m_end.communicators) {
        int64_t least = INT64_MAX;
        for (const auto& [rank, called] : counts.called) {
            const RankEnd* member = m_end.find(rank);
            if (!member || !member->recorded) continue;
            const bool isCut = member->endKind == "unknown" || (member->endKind == "running" && !m_end.seenToStand);
            least = std::min(least, isCut ? 0 : called);
        }
        if (least > 0 && least < INT64_MAX) m_calledByAll[id] = least;
    }
}

void Reader::readCalls(RankEnd& rank) {
    m_trace.forEach<store::NcclCall>(rank.rank, [&](const store::NcclCall& row) {
        if (!row.communicatorId) return;
        const auto place = m_end.communicators.find(*row.communicatorId);
        if (place == m_end.communicators.end()) return;
        MemberCounts& counts = place->second;
        EndedCall call{row.id, *row.communicatorId, row.seq.value_or(-1), row.op, row.bytes.value_or(-1), row.dataType};
        if (row.peer)
            if (const auto peer = m_rankOf.find({call.communicator, *row.peer}); peer != m_rankOf.end())
                call.peer = peer->second;
        call.stream = row.streamId.value_or(-1);
        call.group = row.groupId.value_or(-1);
        call.startNs = row.startNs;
        const bool ended = hasEnded(row) && !wasAborted(call);
        if (const auto told = m_recorded.find(row.id); told != m_recorded.end()) {
            call.place = text::oneLine(told->second.place.value_or(""));
            if (told->second.startedNs || told->second.state == "started")
                call.begunNs = told->second.startedNs.value_or(row.startNs);
            rank.seesBegins = rank.seesBegins || call.begunNs;
            for (const auto& seenNs : {told->second.startedNs, told->second.completedNs})
                m_end.lastProgressNs = std::max(m_end.lastProgressNs, seenNs.value_or(0));
        }
        m_end.lastProgressNs = std::max(m_end.lastProgressNs, row.startNs);
        rank.lastNccl = call;
        if (call.seq < 0) return;
        if (isMessage(row.op)) {
            if (call.peer >= 0) {
                auto& count = row.op == store::Op::send ? counts.sent[{rank.rank, call.peer}]
                                                        : counts.received[{call.peer, rank.rank}];
                count = std::max(count, call.seq + 1);
            }
        } else {
            if (!m_end.isRecorder) counts.called[rank.rank] = std::max(counts.called[rank.rank], call.seq + 1);
            if (ended && store::isSynchronizing(row.op)) {
                counts.done = std::max(counts.done, call.seq + 1);
                int64_t& last = m_synchronized[call.communicator];
                last = std::max(last, call.seq);
            }
            if (m_open.contains({call.communicator, call.seq})) {
                // A broadcast's root leaves before others come; where all wait for all, they came.
                if (ended && store::isSynchronizing(row.op)) counts.ended.insert(call.seq);
                Contradiction& compared = m_compared[{call.communicator, call.seq}];
                compared.communicator = call.communicator;
                compared.seq = call.seq;
                compared.calls.emplace_back(rank.rank, call);
            }
        }
        if (!ended && rank.unfinished.size() < kMostUnfinished) rank.unfinished.push_back(call);
    });
    std::ranges::stable_sort(rank.unfinished, {}, &EndedCall::startNs);
}

void Reader::readLastActs(RankEnd& rank) {
    // Rows are in order of start: of calls in several threads the last to return is looked for among the last ones.
    constexpr int64_t kLastRows = 64;
    const store::IdRange calls = m_trace.extent<store::ApiCall>(rank.rank);
    for (int64_t id = std::max(calls.first, calls.last - kLastRows); !calls.empty() && id <= calls.last; ++id) {
        store::ApiCall call;
        if (!m_trace.find(id, call) || call.startNs + call.durNs < rank.lastCallNs) continue;
        rank.lastCallNs = call.startNs + call.durNs;
        rank.lastCall = std::string(m_facts.string(call.nameId));
    }
    m_trace.forEach<store::NvtxRange>(rank.rank, [&](const store::NvtxRange& range) {
        if (!range.durNs && !range.domainId) rank.openRanges.emplace_back(m_facts.string(range.nameId));
    });
}

void Reader::readFailedAllocations() {
    for (store::FailedAllocation& row : m_trace.all<store::FailedAllocation>()) {
        const auto rank = std::ranges::find(m_end.ranks, row.rank, &RankEnd::rank);
        // Allocators ask again after they have given back what they kept: whoever goes on has got what it needed.
        if (rank == m_end.ranks.end() || (rank->lastNccl && rank->lastNccl->startNs > row.refusedNs)) continue;
        row.call = text::oneLine(row.call);
        rank->failedAllocation = std::move(row);
    }
}

/// Whether the rank called what shows that it got on, as the wrapper judges that, after that time.
bool Reader::wentOnAfter(const RankEnd& rank, int64_t ns) const {
    constexpr int64_t kMostRows = 100'000;  // threads that ask whether something is done call on while a rank hangs
    if (rank.lastNccl && rank.lastNccl->startNs > ns) return true;
    const store::IdRange calls = m_trace.extent<store::ApiCall>(rank.rank);
    store::ApiCall call;
    for (int64_t id = calls.last; !calls.empty() && id >= std::max(calls.first, calls.last - kMostRows); --id) {
        if (!m_trace.find(id, call)) continue;
        if (call.startNs <= ns) return false;
        if (call.kind == store::ApiKind::launch || call.kind == store::ApiKind::graphLaunch ||
            call.kind == store::ApiKind::copy || call.kind == store::ApiKind::set)
            return true;
    }
    return false;
}

void Reader::readStacks() {
    const auto linesOf = [](const std::string& text) {
        constexpr size_t kMostLines = 64;
        std::vector<std::string> lines;
        for (size_t at = 0; at < text.size() && lines.size() < kMostLines;) {
            const size_t end = std::min(text.find('\n', at), text.size());
            lines.push_back(text::oneLine(std::string_view(text).substr(at, end - at)));
            at = end + 1;
        }
        return lines;
    };
    if (!m_trace.hasTable("thread_stack")) return;
    std::map<int, int32_t> readings;
    std::map<int, std::pair<std::optional<int64_t>, bool>> judged;  // time of the last reading; whether it is old
    std::map<int, std::set<int64_t>> threads;                       // with frames, of the last reading
    store::ThreadStack row;
    for (auto rows = m_trace.cursor<store::ThreadStack>(); rows.next(row);) {
        RankEnd* rank = m_end.find(row.rank);
        if (rank == nullptr) continue;
        if (row.readNs) {
            auto& [readNs, isOld] = judged[row.rank];
            if (readNs != row.readNs) isOld = wentOnAfter(*rank, *row.readNs);
            readNs = row.readNs;
            if (isOld) continue;  // what it stood in then is not what it ended in
        }
        int32_t& last = readings[row.rank];
        if (!rank->stack || row.reading > last) {
            rank->stack.emplace().stalledNs = row.stalledNs;
            last = row.reading;
            threads[row.rank].clear();
        }
        if (row.reading < last || row.frames.empty()) continue;
        const bool native = row.language == "native";
        threads[row.rank].insert(row.tid);
        rank->stack->threads = static_cast<int>(threads[row.rank].size());
        if (row.tid == rank->pid) (native ? rank->stack->native : rank->stack->python) = linesOf(row.frames);
    }
}

void Reader::compare() {
    std::set<int64_t> known;
    for (auto& [place, compared] : m_compared) {
        if (known.contains(place.first)) continue;
        const bool agree = std::ranges::all_of(
            compared.calls, [&](const auto& call) { return sameCall(compared.calls.front().second, call.second); });
        if (agree) continue;
        known.insert(place.first);
        std::ranges::sort(compared.calls, {}, [](const auto& call) { return call.first; });
        if (const auto next = m_compared.find({place.first, place.second + 1}); next != m_compared.end())
            compared.next = next->second.calls;
        m_end.contradictions.push_back(std::move(compared));
    }
}

/// The k-th send of a rank to another is taken by that one's k-th receive from it. Where neither ended and their sizes
/// differ, they do not fit: NCCL does not compare them, and moves what the two have room for. Types may differ.
void Reader::compareMessages() {
    std::map<std::tuple<int64_t, int, int, int64_t>, std::pair<int, const EndedCall*>>
        sent;  // by whom, to whom, number
    for (const RankEnd& rank : m_end.ranks)
        for (const EndedCall& call : rank.unfinished)
            if (call.op == store::Op::send && call.peer >= 0 && call.bytes >= 0)
                sent[{call.communicator, rank.rank, call.peer, call.seq}] = {rank.rank, &call};
    std::map<int64_t, Contradiction> first;  // by communicator
    for (const RankEnd& rank : m_end.ranks)
        for (const EndedCall& call : rank.unfinished) {
            if (call.op != store::Op::recv || call.bytes < 0) continue;
            const auto send = sent.find({call.communicator, call.peer, rank.rank, call.seq});
            if (send == sent.end() || send->second.second->bytes == call.bytes) continue;
            const auto& [sender, sentCall] = send->second;
            Contradiction& known = first[call.communicator];
            if (!known.calls.empty() && known.calls.front().second.startNs <= sentCall->startNs) continue;
            known = {call.communicator, call.seq, {{sender, *sentCall}, {rank.rank, call}}, {}};
        }
    for (auto& [communicator, contradiction] : first) m_end.contradictions.push_back(std::move(contradiction));
}

void Reader::readProgress() {
    std::vector<int64_t> ends;
    for (const store::Collective& row : m_facts.collectives)
        if (row.endNs) ends.push_back(*row.endNs);
    std::ranges::sort(ends);
    for (size_t i = 1; i < ends.size(); ++i) m_end.longestGapNs = std::max(m_end.longestGapNs, ends[i] - ends[i - 1]);
    store::Statement last(m_trace.database(), "SELECT max(start_ns + dur_ns) FROM kernel");
    if (last.step() && !last.isNull(0)) m_end.lastProgressNs = std::max(m_end.lastProgressNs, last.integer(0));
    m_end.endNs = m_end.lastProgressNs;
    for (const RankEnd& rank : m_end.ranks) m_end.endNs = std::max(m_end.endNs, rank.lastNs.value_or(0));
    // Who waits inside a call leaves no sign of life until the wrapper sees the job end; virtual time is another.
    const auto endUnixNs = metaNumber("end_unix_ns"), startUnixNs = metaNumber("start_unix_ns");
    if (endUnixNs && startUnixNs && m_facts.text("virtual") != "1")
        m_end.endNs = std::max(m_end.endNs, *endUnixNs - *startUnixNs);
}

/// How far calls got, who belongs to each group, and how much each called.
void Reader::readRecorder() {
    for (store::RecorderCall& row : m_trace.all<store::RecorderCall>()) {
        const int64_t id = row.callId;
        m_recorded.emplace(id, std::move(row));
    }
    for (const store::RecorderGroup& row : m_trace.all<store::RecorderGroup>()) {
        m_rankOf[{row.communicatorId, row.commRank}] = row.rank;
        MemberCounts& counts = m_end.communicators[row.communicatorId];
        if (row.enqueued) {
            counts.called[row.rank] = *row.enqueued + 1;
        } else {
            counts.untold.push_back(row.rank);
        }
        if (row.completed) {
            counts.finished[row.rank] = *row.completed + 1;
            counts.done = std::max(counts.done, *row.completed + 1);
        }
        if (!m_end.find(row.rank)) {
            RankEnd rank;
            rank.rank = row.rank;
            m_end.ranks.push_back(std::move(rank));
            std::ranges::sort(m_end.ranks, {}, &RankEnd::rank);
        }
        if (row.fromStart) m_end.find(row.rank)->fromStart = *row.fromStart != 0;
    }
    for (const store::Loss& loss : m_facts.losses)
        if (RankEnd* rank = loss.kind == "torn_tail" && loss.rank ? m_end.find(*loss.rank) : nullptr)
            rank->isCut = true;
}

/// Where others have ended a collective that takes all members, and the dump of one does not know that it called it,
/// it was written before: what it lacks says nothing, and it is no member of anything that is judged.
void Reader::doubtOldDumps() {
    std::set<int> old;
    for (const auto& [id, last] : m_synchronized)
        for (const auto& [rank, called] : m_end.communicators.at(id).called)
            if (called <= last) old.insert(rank);
    for (const int rank : old) {
        m_end.find(rank)->isOld = true;
        for (auto& [id, counts] : m_end.communicators) counts.called.erase(rank);
    }
}

std::optional<JobEnd> Reader::readDumps() {
    m_end.isRecorder = true;
    readProcesses();
    readRecorder();
    for (const store::Collective& row : m_facts.collectives)
        if (!row.complete && m_open.size() < kMostCompared) m_open.insert({row.communicatorId, row.seq});
    for (RankEnd& rank : m_end.ranks)
        if (rank.recorded) readCalls(rank);
    doubtOldDumps();
    compare();
    readProgress();
    return std::move(m_end);
}

std::optional<JobEnd> Reader::read() {
    if (m_facts.text("source") == "flight_recorder") return readDumps();
    if (m_facts.text("source") != "capture") return std::nullopt;
    if (const auto status = metaNumber("exit_status")) m_end.exitStatus = static_cast<int>(*status);
    if (const auto signal = metaNumber("stop_signal")) m_end.stopSignal = static_cast<int>(*signal);
    const bool contradicting = std::ranges::any_of(m_facts.losses, [](const store::Loss& loss) {
        return loss.kind == "unmatched_collective" && loss.severity == store::Severity::error;
    });
    m_end.seenToStand = m_facts.text("dump") == "hang";
    if (!readProcesses() && !contradicting && !m_end.seenToStand) return std::nullopt;
    readMembers();
    for (const store::Collective& row : m_facts.collectives)
        if (!row.complete && m_open.size() < kMostCompared) m_open.insert({row.communicatorId, row.seq});
    readCalled();
    for (RankEnd& rank : m_end.ranks) {
        if (!rank.recorded) continue;
        readCalls(rank);
        readLastActs(rank);
    }
    readFailedAllocations();
    readStacks();
    compare();
    compareMessages();
    readProgress();
    return std::move(m_end);
}

}  // namespace

std::vector<int> MemberCounts::members() const {
    std::vector<int> all = untold;
    for (const auto& [rank, count] : called) all.push_back(rank);
    std::ranges::sort(all);
    return all;
}

const RankEnd* JobEnd::find(int rank) const {
    const auto at = std::ranges::lower_bound(ranks, rank, {}, &RankEnd::rank);
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

RankEnd* JobEnd::find(int rank) {
    const auto at = std::ranges::lower_bound(ranks, rank, {}, &RankEnd::rank);
    return at != ranks.end() && at->rank == rank ? &*at : nullptr;
}

bool lostCalls(const TraceFacts& facts) {
    return std::ranges::any_of(facts.losses, [](const store::Loss& loss) {
        return loss.kind == "ring_full" || loss.kind == "size_cap" || loss.kind == "capture_range" ||
               loss.kind == "too_many_threads" || loss.kind == "bad_block" || loss.kind == "bad_ring";
    });
}

std::optional<JobEnd> readJobEnd(store::TraceReader& trace, const TraceFacts& facts) {
    return Reader(trace, facts).read();
}

}  // namespace rankscope::facts
