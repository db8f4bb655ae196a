// SPDX-License-Identifier: Apache-2.0
// How a job that failed or stood still came to its end: what each rank had called, what of it was never finished, how
// its process ended, and what it did last.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/store/event_model.h"

namespace rankscope::store {
class TraceReader;
}

namespace rankscope::facts {

struct TraceFacts;

/// A collective or message that a rank called.
struct EndedCall {
    int64_t callId = 0;  // row of nccl_call
    int64_t communicator = 0;
    int64_t seq = 0;  // of a message: the k-th with that peer and direction
    store::Op op = store::Op::unknown;
    int64_t bytes = -1;  // -1 unknown
    store::DataType dataType = store::DataType::unknown;
    int peer = -1;        // global rank of a message's other end, or of the root; -1 none, or not recorded
    int64_t stream = -1;  // -1 unknown
    int64_t group = -1;   // -1 outside of a group
    int64_t startNs = 0;
    std::string place;               // "function (file:line)" that called it; empty: not told
    std::optional<int64_t> begunNs;  // when a recorder saw its device begin it; empty: not seen

    bool isMessage() const { return op == store::Op::send || op == store::Op::recv; }
};

/// What the main thread of a rank that stood still was in, when it was last looked at, if it called nothing
/// more that shows that it got on; innermost frames first.
struct StandingStack {
    int64_t stalledNs = 0;            // for which it had recorded no progress then
    std::vector<std::string> native;  // "read+0x4d (libc.so.6)"; empty: not read
    std::vector<std::string> python;  // "__next__ (dataloader.py:633)"
    int threads = 0;                  // of the process, of which any frame was read
};

struct RankEnd {
    int rank = 0;
    bool recorded = false;    // left a capture, or a dump
    bool isCut = false;       // of a flight recorder: the last calls are missing
    bool seesBegins = false;  // of a flight recorder: it tells when the device began calls
    bool fromStart = false;   // of a flight recorder: it holds all calls since its process began
    bool isOld = false;       // of a flight recorder: others' dumps were written later, while the job got on
    std::string endKind;      // as in trace.db's table process
    std::optional<int64_t> endCode;
    std::optional<int64_t> lastNs;  // last sign of life
    std::string host;
    int64_t pid = 0;
    std::optional<store::FailedAllocation> failedAllocation;  // the last one, behind which it communicated no more
    std::string lastCall;                                     // the last CUDA call that it returned from
    int64_t lastCallNs = 0;                                   // when it did
    std::vector<std::string> openRanges;                      // NVTX, outermost first
    std::optional<StandingStack> stack;                       // nothing: nobody looked
    std::optional<EndedCall> lastNccl;
    std::vector<EndedCall> unfinished;  // in the order in which it called them

    /// Ended by itself with a status other than 0.
    bool failedByStatus() const { return (endKind == "exit" || endKind == "_exit") && endCode.value_or(0) != 0; }
    /// Ended by a signal, or without a farewell, which only a signal or a power cut does.
    bool died() const { return endKind == "signal" || endKind == "vanished"; }
    bool failed() const { return failedByStatus() || died(); }
};

/// A collective of which its members did not call the same, or a message whose two ends differ in size.
struct Contradiction {
    int64_t communicator = 0;
    int64_t seq = 0;                               // of a message: as EndedCall has it
    std::vector<std::pair<int, EndedCall>> calls;  // by rank
    std::vector<std::pair<int, EndedCall>> next;   // of the collective behind it, as far as it was called

    bool isMessage() const { return !calls.empty() && calls.front().second.isMessage(); }
};

/// Who of a communicator called how much.
struct MemberCounts {
    std::map<int, int64_t> called;  // collectives, by rank, as many as the sequence numbers tell
    int64_t done = 0;               // collectives up to the last of which some member's kernel ended
    std::set<int64_t> ended;  // of those that not all members' kernels are recorded of: some member's kernel ended
    std::map<std::pair<int, int>, int64_t> sent, received;  // messages by (source, destination)
    int missing = 0;                                        // members that left no recording
    // Of a flight recorder, where seq is PyTorch's number: calls of a number are those up to it.
    std::map<int, int64_t> finished;  // collectives that the member's process saw end, as many as the numbers tell
    std::vector<int> untold;          // members of which nothing tells how much they called

    /// All members that are known of.
    std::vector<int> members() const;
};

struct JobEnd {
    /// Told by dumps of PyTorch's flight recorder: what ended is told, so that a call without an end did not; how
    /// processes ended, when, and what else they did is not.
    bool isRecorder = false;
    /// A dump of a job that stood still: its ranks have not ended.
    bool seenToStand = false;
    std::vector<RankEnd> ranks;  // by rank
    std::map<int64_t, MemberCounts> communicators;
    std::vector<Contradiction> contradictions;  // of each communicator the first collective and the first message
    std::optional<int> exitStatus;              // of the wrapped command, as a shell tells it
    std::optional<int> stopSignal;              // by which somebody ended the job from outside
    int64_t lastProgressNs = 0;                 // last end of a kernel, and last call of a collective, of any rank
    int64_t endNs = 0;                          // last that is known of the job
    int64_t longestGapNs = 0;                   // between two ends of collectives before that, the longest

    const RankEnd* find(int rank) const;
    RankEnd* find(int rank);
};

/// Whether calls are missing in the recording: numbers of what was not all recorded do not fit each other.
bool lostCalls(const TraceFacts& facts);

/// Nothing where all ranks ended well and called the same; nothing of imported traces, which do not tell how ranks
/// ended, but for dumps of a flight recorder, which are written of jobs that may have.
std::optional<JobEnd> readJobEnd(store::TraceReader& trace, const TraceFacts& facts);

}  // namespace rankscope::facts
