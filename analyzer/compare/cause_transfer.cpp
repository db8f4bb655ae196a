// SPDX-License-Identifier: Apache-2.0
#include "analyzer/compare/cause_transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzer/compare/cause_pipeline.h"
#include "analyzer/compare/cause_text.h"
#include "analyzer/compare/message_speed.h"
#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/text/units.h"

namespace rankscope::compare {
namespace {

constexpr double kOtherBytes = 0.05;  // share: more bytes than that are other tensors, not padding
constexpr double kOtherCount = 0.15;  // share of messages: a bucket more or less at the end of a step is less
constexpr double kLinkIsWhy = 0.3;    // of the added transfer time that slower messages of the same size must explain:
                                      // what they no longer hide comes on top
constexpr double kSlower = 0.02;      // share: how much slower messages of one size must be at least
constexpr double kIsWhy = 0.5;        // of what messages take longer: what explains that much is the reason
constexpr double kSameWaySlower =
    0.2;  // share: messages that go the same way as before and take so much longer show that it is not the way

struct Counterparts {
    TrafficSummary before, after;
    bool reversed = false;

    double countGrowth() const { return after.count / before.count - 1; }
    double bytesGrowth() const { return before.bytes > 0 && after.bytes > 0 ? after.bytes / before.bytes - 1 : 0; }
    double exposedGrowthNs() const { return after.exposedTransferNs - before.exposedTransferNs; }
};

void sayMessages(const Counterparts& both, ChangeCause& cause) {
    const auto change = [&](double before, double after, const auto& text) {
        return fromTo(text(before), text(after), both.reversed);
    };
    const auto count = [](double value) { return fmt::format("{:.0f}", value); };
    const auto time = [](double ns) { return text::durationText(ns); };
    const auto size = [](double bytes) { return text::bytesText(bytes); };
    cause.evidence.push_back(fmt::format("{} messages, {} a step and rank",
                                         change(both.before.count, both.after.count, count),
                                         change(both.before.bytes, both.after.bytes, size)));
    cause.evidence.push_back(fmt::format("transfer {}, exposed {}",
                                         change(both.before.transferNs, both.after.transferNs, time),
                                         change(both.before.exposedTransferNs, both.after.exposedTransferNs, time)));
}

bool explainedByBytes(const Counterparts& both, const std::string& traffic, ChangeCause& cause) {
    if (both.bytesGrowth() < kOtherBytes) return false;
    if (both.before.dataType != both.after.dataType && !both.before.dataType.empty() && !both.after.dataType.empty()) {
        cause.kind = "full_precision";
        cause.diagnosis = diagnose::kFullPrecision.id;
        cause.text = fmt::format("{} in {} instead of {}: {}", traffic, both.after.dataType, both.before.dataType,
                                 amountGrowthText(both.bytesGrowth(), "bytes"));
    } else if (both.countGrowth() > kOtherCount &&
               std::abs(both.after.bytes / both.after.count / (both.before.bytes / both.before.count) - 1) <
                   kOtherCount) {
        cause.kind = "redundant_communication";
        cause.diagnosis = diagnose::kRedundant.id;
        cause.text = fmt::format("{} as large as before, but {:.1f} times as many a step", traffic,
                                 both.after.count / both.before.count);
    } else {
        cause.kind = "more_bytes";
        cause.diagnosis = diagnose::kSaturation.id;
        cause.text = fmt::format("{}: {} a step", traffic, amountGrowthText(both.bytesGrowth(), "bytes"));
    }
    return true;
}

/// NCCL goes other ways between nodes: what changed first is where the group lies.
bool explainedByPlace(const Counterparts& both, const std::string& traffic, ChangeCause& cause) {
    if (both.after.nodes <= both.before.nodes || both.after.transferNs < both.before.transferNs * (1 + kSlower))
        return false;
    cause.kind = "group_spans_nodes";
    cause.diagnosis = diagnose::kTensorParallelSpan.id;
    cause.text = fmt::format("{} spans {} nodes instead of {}", traffic, both.after.nodes, both.before.nodes);
    return true;
}

std::string wayText(const TrafficSummary& traffic) {
    return traffic.algorithm + "/" + traffic.protocol;
}

/// The other way explains what it can cost on the same link, and nothing if what goes the old way got slower as well:
/// then NCCL chose it because of the link.
bool explainedByWay(const MessageSpeed& speed, const std::string& traffic, ChangeCause& cause) {
    if (speed.growth() < kSlower || speed.otherWayNs < kIsWhy * speed.addedNs) return false;
    if (speed.sameWayGrowth >= std::max(kSameWaySlower, kIsWhy * speed.growth())) return false;
    cause.kind = "algorithm";
    cause.diagnosis = diagnose::kAlgorithm.id;
    cause.text = fmt::format("{} by {} instead of {}", traffic, wayText(speed.after), wayText(speed.before));
    return true;
}

/// Sums are means over ranks; messages from rank to rank may all be those of one slow pair, which the critical path
/// then leads through.
double mostOnARank(const Counterparts& both, const SideMeans& now, double ns) {
    return both.after.op == "send" || both.after.op == "recv" ? ns * static_cast<double>(now.roles.size()) : ns;
}

bool explainedByLink(const Counterparts& both, const MessageSpeed& speed, const SideMeans& now,
                     const std::string& traffic, ChangeCause& cause) {
    if (speed.growth() < kSlower || mostOnARank(both, now, speed.addedNs) < kLinkIsWhy * cause.ns) return false;
    cause.evidence.push_back(fmt::format("messages of the same size {} {}",
                                         both.reversed ? "took, on the base side," : "take",
                                         longerText(speed.growth())));
    if (!speed.after.algorithm.empty())
        cause.evidence.push_back(fmt::format("{}, which explains {} of {}",
                                             fromTo(wayText(speed.before), wayText(speed.after), both.reversed),
                                             text::durationText(speed.otherWayNs), text::durationText(speed.addedNs)));
    const bool pipeline = both.after.use == "pipeline";
    cause.kind = pipeline ? "slower_p2p" : "slower_link";
    cause.diagnosis = pipeline ? diagnose::kExposedP2p.id : diagnose::kSlowLink.id;
    cause.text = fmt::format("the link is slower: {} of the same size takes {}", traffic, longerText(speed.growth()));
    return true;
}

bool explainedBySpeed(const Counterparts& both, const MessageSpeed& speed, const SideMeans& now,
                      const std::string& traffic, ChangeCause& cause) {
    return explainedByPlace(both, traffic, cause) || explainedByWay(speed, traffic, cause) ||
           explainedByLink(both, speed, now, traffic, cause);
}

/// Messages as many as before and larger, or as large and more, take no longer than in proportion.
bool explainedByAmount(const Counterparts& both, const std::string& traffic, ChangeCause& cause) {
    if (explainedByBytes(both, traffic, cause)) return true;
    if (both.countGrowth() <= kOtherCount) return false;
    cause.kind = "smaller_buckets";
    cause.diagnosis = diagnose::kSmallMessages.id;
    cause.text = fmt::format("{} in {:.0f} messages instead of {:.0f}: each costs its start-up", traffic,
                             both.after.count, both.before.count);
    return true;
}

}  // namespace

ChangeCause transferCause(const SideMeans& base, const SideMeans& now, const std::string& traffic, double ns,
                          bool reversed) {
    ChangeCause cause;
    cause.ns = ns;
    cause.where = traffic;
    cause.kind = "unknown";
    const std::map<std::string, TrafficSummary> before = byUse(base), after = byUse(now);
    const auto a = before.find(traffic), b = after.find(traffic);
    if (b == after.end()) return cause;
    if (a == before.end() || a->second.count <= 0) {
        cause.kind = "more_bytes";
        cause.diagnosis = diagnose::kSaturation.id;
        cause.text = fmt::format("additional {}: {} a step and rank", traffic, text::bytesText(b->second.bytes));
        return cause;
    }
    const Counterparts both{a->second, b->second, reversed};
    sayMessages(both, cause);
    if (b->second.use == "pipeline" && std::abs(both.countGrowth()) > kOtherCount)
        if (const auto schedule = pipelineCause(base, now, ns, reversed)) return *schedule;
    MessageSpeed speed = compareSpeed(base, now, traffic);
    const MessageSpeed all = compareSpeed(a->second, b->second);
    if (speed.newNs < kIsWhy * b->second.transferNs) speed = all;  // most messages have other sizes
    const bool beyondAmount = all.addedNs > kIsWhy * (b->second.transferNs - a->second.transferNs);
    if (beyondAmount && explainedBySpeed(both, speed, now, traffic, cause)) return cause;
    if (explainedByAmount(both, traffic, cause) || explainedBySpeed(both, speed, now, traffic, cause)) return cause;
    if (both.countGrowth() < -kOtherCount) {
        cause.kind = "larger_buckets";
        cause.diagnosis = diagnose::kOverlap.id;
        cause.text = fmt::format("{} in {:.0f} messages instead of {:.0f}: they leave later and hide less", traffic,
                                 both.after.count, both.before.count);
        return cause;
    }
    cause.kind = "lost_overlap";
    cause.diagnosis = diagnose::kOverlap.id;
    cause.text = fmt::format("{} hides less behind compute: {} of it exposed instead of {} a step", traffic,
                             text::durationText(both.after.exposedTransferNs),
                             text::durationText(both.before.exposedTransferNs));
    return cause;
}

}  // namespace rankscope::compare
