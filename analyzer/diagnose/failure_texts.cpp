// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyzer/diagnose/job_failure.h"
#include "analyzer/facts/layout.h"
#include "analyzer/text/lists.h"
#include "analyzer/text/units.h"

namespace rankscope::diagnose {
namespace {

std::string onHost(const facts::RankEnd& rank) {
    return rank.host.empty() ? std::string() : " on " + rank.host;
}

/// "read" of "__read+0x4d (libc.so.6)"; empty where the function has no name.
std::string functionOf(const std::string& frame) {
    std::string name = frame.substr(0, std::min(frame.find("+0x"), frame.find(" (")));
    if (name.starts_with("0x")) return {};
    if (const size_t word = name.find_first_not_of('_');
        name.find(':') == std::string::npos && word != std::string::npos)
        name.erase(0, word);  // libc's names for what programs call without
    return name;
}

/// "read() <- __next__ (dataloader.py:633) <- train (train.py:41)": the innermost function, and who called it in the
/// program's own language. Empty where nothing could be read.
std::string standsText(const facts::StandingStack& stack) {
    constexpr size_t kShown = 5;
    std::vector<std::string> words;
    for (const std::string& frame : stack.native) {
        const std::string function = functionOf(frame);
        if (function.empty()) continue;
        words.push_back(function + "()");
        // Below a Python program lies the interpreter, which says nothing.
        if (words.size() == (stack.python.empty() ? kShown : 1)) break;
    }
    for (const std::string& frame : stack.python)
        if (words.size() < kShown) words.push_back(frame);
    return text::joined(words, " <- ");
}

bool mentions(const std::vector<std::string>& texts, std::string_view word) {
    return std::ranges::any_of(texts, [&](const std::string& text) { return text.find(word) != std::string::npos; });
}

}  // namespace

std::string callText(const job::Analysis& analysis, const facts::EndedCall& call) {
    const std::string group = facts::communicatorName(analysis.facts, analysis.layout, call.communicator);
    std::string size = call.bytes >= 0 ? text::bytesText(static_cast<double>(call.bytes)) : std::string();
    if (call.dataType != store::DataType::unknown)
        size += (size.empty() ? "" : ", ") + std::string(store::toText(call.dataType));
    if (!call.isMessage() && call.peer >= 0) size += fmt::format("{}root rank {}", size.empty() ? "" : ", ", call.peer);
    const std::string peer = !call.isMessage() || call.peer < 0
                                 ? std::string()
                                 : fmt::format("{} rank {}", call.op == store::Op::send ? " to" : " from", call.peer);
    // Recorders number messages over all peers, and drop the first ones: their number would say nothing.
    const bool numbered = !call.isMessage() || !analysis.facts.end || !analysis.facts.end->isRecorder;
    return fmt::format("{}{}{} of {}{}", store::toText(call.op), numbered ? fmt::format(" {}", call.seq) : "", peer,
                       group, size.empty() ? "" : " (" + size + ")");
}

std::string waitText(const job::Analysis& analysis, const Wait& wait) {
    constexpr std::string_view kWhy[] = {
        "", ", which that one called behind another that waits", ", which that one's device has not begun",
        ", which that one called behind another that did not end", ", which both called and none ended"};
    return fmt::format("rank {} waits for rank {} in {}{}", wait.waiter, wait.on, callText(analysis, wait.call),
                       kWhy[static_cast<size_t>(wait.why)]);
}

std::string endText(const facts::RankEnd& rank, double stalledNs) {
    std::string text;
    if (!rank.recorded) return "left no recording: it ended, or hangs, before it used its GPU";
    if (rank.failedAllocation)
        text = fmt::format("ran out of memory ({} of {} was refused)", rank.failedAllocation->call,
                           text::bytesText(static_cast<double>(rank.failedAllocation->bytes)));
    std::string how;
    if (rank.failedByStatus()) {
        how = fmt::format("ended with exit status {}", *rank.endCode);
    } else if (rank.endKind == "signal") {
        how = fmt::format("died of signal {}", rank.endCode.value_or(0));
    } else if (rank.endKind == "vanished") {
        how = rank.stack ? "stood still until it was killed, or crashed: it left no farewell"
              : stalledNs >= FailureThresholds::kLeastStallNs
                  ? "stood still, or was killed unnoticed: it left no farewell"
                  : "was killed, or crashed: it left no farewell (SIGKILL, SIGSEGV, SIGABRT, out of host memory, a "
                    "scheduler)";
    } else if (rank.endKind == "exit" || rank.endKind == "_exit") {
        how = "ended by itself with status 0, before its peers were done";
    } else {
        how = "had not ended when this was collected";
    }
    return text.empty() ? how : text + " and " + how;
}

std::vector<std::string> lastActs(const job::Analysis& analysis, const facts::RankEnd& rank) {
    std::vector<std::string> acts;
    const auto before = [&](int64_t ns) {
        return text::durationText(static_cast<double>(std::max<int64_t>(0, analysis.facts.end->endNs - ns))) +
               " before the end of the job";
    };
    if (const std::string stands = rank.stack ? standsText(*rank.stack) : std::string(); !stands.empty())
        acts.push_back(fmt::format("rank {} stood in {} when it had recorded no progress for {}", rank.rank, stands,
                                   text::durationText(static_cast<double>(rank.stack->stalledNs))));
    if (rank.lastNccl)
        acts.push_back(fmt::format("the last that rank {} called of NCCL is {}{}{}", rank.rank,
                                   callText(analysis, *rank.lastNccl),
                                   analysis.facts.end->isRecorder ? "" : ", " + before(rank.lastNccl->startNs),
                                   rank.lastNccl->place.empty() ? "" : ", called in " + rank.lastNccl->place));
    if (!rank.lastCall.empty())
        acts.push_back(
            fmt::format("the last CUDA call that it returned from is {}, {}", rank.lastCall, before(rank.lastCallNs)));
    if (!rank.openRanges.empty()) acts.push_back("it is inside " + text::joined(rank.openRanges, " > "));
    return acts;
}

std::vector<std::string> fixesFor(const facts::RankEnd& rank, double stalledNs) {
    const std::string who = fmt::format("rank {}{}", rank.rank, onHost(rank));
    if (rank.failedAllocation)
        return {fmt::format("give {} less to hold: a smaller micro-batch, activation checkpointing, more sharding; or "
                            "less waste: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
                            who),
                "compare its memory with its peers' (torch.cuda.memory_summary()): uneven input or a process of "
                "somebody else on its device shows there"};
    if (rank.failedByStatus())
        return {
            fmt::format("read what {} (pid {}) wrote last: the error stands there, the others' time-outs are its "
                        "consequence (torchrun --log-dir DIR --redirects 3 keeps each rank's output)",
                        who, rank.pid)};
    if (rank.endKind == "signal")
        return {fmt::format("look at the core dump or the fault handler's trace of {} (python -X faulthandler)", who)};
    if (!rank.recorded) return {fmt::format("look at what {} wrote when it started", who)};
    std::vector<std::string> fixes;
    if (rank.endKind == "exit" || rank.endKind == "_exit")
        return {
            fmt::format("look why {} ended: its loop is shorter than its peers', or something in it left early "
                        "(sys.exit(), an exception that was caught)",
                        who)};
    if (rank.endKind == "vanished" && !rank.stack)
        fixes.push_back(
            fmt::format("look whether the kernel killed pid {}{} (dmesg -T | grep -i -e oom -e killed -e segfault; the "
                        "scheduler's and the container's memory limits), and at what it wrote last (python -X "
                        "faulthandler tells of a crash)",
                        rank.pid, onHost(rank)));
    if (rank.stack || stalledNs >= FailureThresholds::kLeastStallNs || rank.endKind != "vanished") {
        const bool loads =
            mentions(rank.openRanges, "DataLoader") || (rank.stack && mentions(rank.stack->python, "(dataloader.py:"));
        fixes.push_back(loads
                            ? fmt::format("{} stands in its data loader: give it a timeout, look at its workers and at "
                                          "the storage that they read",
                                          who)
                        : rank.stack && rank.stack->threads > 0
                            ? fmt::format("look at what the {} of {} stood in: the newest file of pid {} in the run's "
                                          "folder stacks, or the table thread_stack",
                                          text::countedText(rank.stack->threads, "thread"), who, rank.pid)
                            : fmt::format("when it happens again, look where {} stands: py-spy dump --pid PID, or gdb "
                                          "-p PID, on its host",
                                          who));
    }
    return fixes;
}

}  // namespace rankscope::diagnose
