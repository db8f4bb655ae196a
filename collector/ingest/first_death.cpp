// SPDX-License-Identifier: Apache-2.0
#include "collector/ingest/first_death.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <optional>

namespace rankscope::collector {

namespace {

struct Failure {
    size_t index = 0;       ///< of the summary
    int64_t lastNs = 0;     ///< last sign of life on the job clock
    int64_t boundNs = 0;    ///< how well its host's clock is known
    bool byStatus = false;  ///< it ended by itself, with a status other than 0
};

bool failedByStatus(const RankSummary& summary) {
    const std::string& how = summary.process.endKind;
    return (how == "exit" || how == "_exit") && summary.process.endCode.value_or(0) != 0;
}

std::vector<Failure> findFailures(const JoinedRanks& ranks) {
    std::vector<Failure> failures;
    for (size_t i = 0; i < ranks.summaries.size(); ++i) {
        const RankSummary& summary = ranks.summaries[i];
        const bool byStatus = failedByStatus(summary);
        if ((!byStatus && summary.state != store::RankState::died) || !summary.process.endNs) continue;
        const auto host = static_cast<size_t>(ranks.clocks.hostOfSummary[i]);
        failures.push_back(
            {i, ranks.clocks.jobNs(i, *summary.process.endNs), ranks.clocks.hosts[host].fit.boundNs, byStatus});
    }
    std::ranges::sort(failures, [&](const Failure& a, const Failure& b) {
        return std::pair(a.lastNs, ranks.summaries[a.index].rank) < std::pair(b.lastNs, ranks.summaries[b.index].rank);
    });
    return failures;
}

std::vector<store::Loss> tellStatuses(const JoinedRanks& ranks) {
    std::map<int64_t, std::vector<const RankSummary*>> byStatus;
    for (const RankSummary& summary : ranks.summaries)
        if (failedByStatus(summary)) byStatus[*summary.process.endCode].push_back(&summary);
    std::vector<store::Loss> losses;
    for (const auto& [status, summaries] : byStatus) {
        store::Loss loss{
            0, "failed_exit", store::Severity::error, {}, "injector", static_cast<int64_t>(summaries.size()), {}, {},
            {}};
        if (summaries.size() == 1) {
            const RankSummary& only = *summaries.front();
            loss.rank = only.rank;
            loss.file = only.process.captureFile;
            loss.message = fmt::format("rank {} (pid {} on {}) ended with exit status {}", only.rank, only.process.pid,
                                       only.hostName, status);
        } else {
            std::vector<int32_t> numbers;
            for (const RankSummary* summary : summaries) numbers.push_back(summary->rank);
            std::ranges::sort(numbers);
            constexpr size_t kMostNamed = 16;
            const bool all = numbers.size() <= kMostNamed;
            numbers.resize(std::min(numbers.size(), kMostNamed));
            loss.message = fmt::format("{} ranks ended with exit status {}: {}{}", summaries.size(), status,
                                       fmt::join(numbers, ", "), all ? "" : " and more");
        }
        losses.push_back(std::move(loss));
    }
    return losses;
}

/// A collective that one rank did not come to.
struct Absence {
    size_t summary = 0;
    int64_t seq = 0;
    int64_t communicatorId = 0;
};

/// Of the failed ranks, the only one that others wait for in a collective and that waits in none itself.
std::optional<Absence> findAbsent(const JoinedRanks& ranks, const std::vector<Failure>& failures) {
    const auto& communicators = ranks.communicators.all();
    // By communicator: how far each member's calls got. Members that left no recording are not among them.
    std::vector<std::map<size_t, int64_t>> lastSeq(communicators.size());
    for (size_t c = 0; c < communicators.size(); ++c)
        for (const JoinedMember& member : communicators[c].members)
            lastSeq[c][static_cast<size_t>(member.summary)] = -1;
    for (size_t s = 0; s < ranks.summaries.size(); ++s)
        for (const CallFact& call : ranks.summaries[s].calls) {
            const int32_t joined = ranks.communicators.joinedOf(static_cast<int32_t>(s), call.communicator);
            if (joined < 0 || call.op == store::Op::send || call.op == store::Op::recv) continue;
            int64_t& last = lastSeq[static_cast<size_t>(joined)][s];
            last = std::max(last, call.seq);
        }
    std::vector<Absence> absent;
    for (const Failure& failure : failures) {
        bool waits = false;
        std::optional<Absence> missed;
        for (size_t c = 0; c < communicators.size(); ++c) {
            const auto own = lastSeq[c].find(failure.index);
            if (own == lastSeq[c].end()) continue;
            for (const auto& [other, last] : lastSeq[c]) {
                waits = waits || last < own->second;
                if (last > own->second && !missed)
                    missed = Absence{failure.index, own->second + 1, ranks.communicatorIds[c]};
            }
        }
        if (!waits && missed) absent.push_back(*missed);
    }
    return absent.size() == 1 ? std::optional(absent.front()) : std::nullopt;
}

std::string endText(const RankSummary& summary) {
    if (failedByStatus(summary)) return fmt::format("ended with exit status {}", *summary.process.endCode);
    if (summary.process.endKind == "signal")
        return fmt::format("died of signal {}", summary.process.endCode.value_or(0));
    return "ended without a farewell";
}

/// The signal that all of them died of, when it is one that somebody sends: a fault of one rank does not end the others
/// and the launcher by the same one. A rank killed by it leaves no farewell; then the launcher's own end tells, or
/// `stopSignal`, which the job's wrapper was sent: launchers end their ranks by another one.
std::optional<const char*> sentToAll(const JoinedRanks& ranks, const std::vector<Failure>& failures, int exitStatus,
                                     int stopSignal) {
    constexpr std::pair<int64_t, const char*> kSent[] = {
        {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}, {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}};
    const auto isSent = [&](std::optional<int64_t> code) {
        return std::ranges::any_of(kSent, [&](const auto& sent) { return sent.first == code; });
    };
    for (const auto& [number, name] : kSent)
        if (std::ranges::all_of(failures, [&, number = number](const Failure& failure) {
                const auto& process = ranks.summaries[failure.index].process;
                if (process.endKind == "signal")
                    return stopSignal == number ? isSent(process.endCode) : process.endCode == number;
                return !failure.byStatus && (exitStatus == 128 + number || stopSignal == number);
            }))
            return name;
    return std::nullopt;
}

double inMs(int64_t ns) {
    return static_cast<double>(ns) / 1e6;
}

store::Loss nameFirst(const JoinedRanks& ranks, const std::vector<Failure>& failures,
                      std::span<const int32_t> disagreeing, int exitStatus, int stopSignal) {
    store::Loss loss{
        0, "first_death", store::Severity::error, {}, "collector", static_cast<int64_t>(failures.size()), {}, {}, {}};
    const auto name = [&](size_t index, const std::string& why) {
        const RankSummary& summary = ranks.summaries[index];
        loss.rank = summary.rank;
        loss.message = fmt::format("rank {} (on {}) {}: look there for the cause", summary.rank, summary.hostName, why);
        return loss;
    };
    if (disagreeing.size() == 1)
        for (const Failure& failure : failures)
            if (ranks.summaries[failure.index].rank == disagreeing.front())
                return name(failure.index, fmt::format("called another collective than its peers, and {} ranks failed",
                                                       failures.size()));
    const std::optional<Absence> absence = findAbsent(ranks, failures);
    if (const std::optional<const char*> signal = sentToAll(ranks, failures, exitStatus, stopSignal)) {
        loss.message = fmt::format(
            "{} ranks were ended by {}: the job was ended from outside (a scheduler, its launcher, a user); no rank is "
            "to blame for that",
            failures.size(), *signal);
        // Whoever ends a job may have seen it hang; a rank in the middle of a step looks the same.
        if (absence)
            loss.message += fmt::format(
                "; if the job stood still before, look at rank {}: it had not come to collective {} of communicator {}",
                ranks.summaries[absence->summary].rank, absence->seq, absence->communicatorId);
        return loss;
    }
    if (absence)
        return name(absence->summary, fmt::format("failed first: it {} before collective {} of communicator {}, in "
                                                  "which others of the {} ranks that failed waited for it",
                                                  endText(ranks.summaries[absence->summary]), absence->seq,
                                                  absence->communicatorId, failures.size()));
    const Failure& first = failures[0];
    const Failure& next = failures[1];
    const int64_t apartNs = next.lastNs - first.lastNs;
    const int32_t firstRank = ranks.summaries[first.index].rank, nextRank = ranks.summaries[next.index].rank;
    if (apartNs <= first.boundNs + next.boundNs) {
        loss.message = fmt::format(
            "{} ranks failed; which of ranks {} and {} stopped first cannot be told: their last signs of life are "
            "{:.3f} ms apart, the clocks good to {:.3f} ms",
            failures.size(), firstRank, nextRank, inMs(apartNs), inMs(first.boundNs + next.boundNs));
        return loss;
    }
    // Silence is no death: it may have waited for a rank that ended by itself later.
    const auto exited = std::ranges::find_if(failures, &Failure::byStatus);
    if (!first.byStatus && exited != failures.end()) {
        const RankSummary& later = ranks.summaries[exited->index];
        loss.message = fmt::format(
            "{} ranks failed; which was first cannot be told: rank {} was silent from {:.3f} ms before rank {} {}",
            failures.size(), firstRank, inMs(exited->lastNs - first.lastNs), later.rank, endText(later));
        return loss;
    }
    return name(first.index, fmt::format("stopped first: it {}, {:.3f} ms before the next of the {} ranks that failed",
                                         endText(ranks.summaries[first.index]), inMs(apartNs), failures.size()));
}

}  // namespace

std::vector<store::Loss> tellFailures(const JoinedRanks& ranks, std::span<const int32_t> disagreeing, int exitStatus,
                                      int stopSignal) {
    std::vector<store::Loss> losses = tellStatuses(ranks);
    const std::vector<Failure> failures = findFailures(ranks);
    if (failures.size() > 1) losses.push_back(nameFirst(ranks, failures, disagreeing, exitStatus, stopSignal));
    return losses;
}

}  // namespace rankscope::collector
