// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "analyzer/diagnose/detector.h"
#include "analyzer/diagnose/savings.h"
#include "analyzer/replay/simulate.h"

namespace rankscope::diagnose {
namespace {

using Changes = std::vector<std::string>;

/// "0-3+6": as ranks and steps are given to a change.
std::string listText(const std::vector<int>& numbers) {
    std::string text;
    for (size_t i = 0; i < numbers.size();) {
        size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
        text += fmt::format("{}{}", text.empty() ? "" : "+", numbers[i]);
        if (last > i) text += fmt::format("-{}", numbers[last]);
        i = last + 1;
    }
    return text;
}

std::optional<double> number(const job::Finding& finding, std::string_view name) {
    for (const auto& [key, value] : finding.evidence.numbers)
        if (key == name) return value;
    return std::nullopt;
}

Changes balanced(const job::Analysis&, const job::Finding& f) {
    return {"balance:ranks=" + listText(f.ranks)};
}
Changes evenWork(const job::Analysis&, const job::Finding&) {
    return {"balance:what=work"};
}
Changes steady(const job::Analysis&, const job::Finding& f) {
    return {fmt::format("steady:steps={},ranks={}", listText(f.steps), listText(f.ranks))};
}
Changes graphs(const job::Analysis&, const job::Finding&) {
    return {"graphs"};
}
Changes noSynchronisation(const job::Analysis&, const job::Finding& f) {
    return {"no-stalls:cause=sync,ranks=" + listText(f.ranks)};
}
Changes noInputStall(const job::Analysis&, const job::Finding& f) {
    return {"no-stalls:cause=input,ranks=" + listText(f.ranks)};
}
Changes noAllocator(const job::Analysis&, const job::Finding& f) {
    return {"no-stalls:cause=allocator,ranks=" + listText(f.ranks)};
}
Changes noPauses(const job::Analysis&, const job::Finding& f) {
    return {"no-stalls:cause=pauses,ranks=" + listText(f.ranks)};
}
Changes noPageable(const job::Analysis&, const job::Finding& f) {
    return {"no-stalls:cause=pageable,ranks=" + listText(f.ranks)};
}
Changes noContention(const job::Analysis&, const job::Finding&) {
    return {"no-contention"};
}

Changes reducedOnce(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> microSteps = number(f, "micro_steps");
    return microSteps ? Changes{fmt::format("reduce-once:micro-steps={:.0f}", *microSteps)} : Changes();
}

Changes sixteenBit(const job::Analysis&, const job::Finding&) {
    return {"gradients:dtype=bf16"};
}

Changes overlapped(const job::Analysis&, const job::Finding& f) {
    if (number(f, "lateness_ns")) return {"launch-early"};
    const std::optional<double> bytes = number(f, "proposed_bucket_bytes");  // a single one has nothing to overlap with
    return {bytes ? fmt::format("buckets:mb={:g},overlap=yes", *bytes / (1024 * 1024)) : "overlap"};
}

Changes merged(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> bytes = number(f, "proposed_bucket_bytes");
    return bytes ? Changes{fmt::format("buckets:mb={:g}", *bytes / (1024 * 1024))} : Changes();
}

Changes enoughMicroBatches(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> count = number(f, "proposed_micro_batches");
    return count ? Changes{fmt::format("micro-batches:count={:.0f}", *count)} : Changes();
}

Changes chosenAlgorithm(const job::Analysis&, const job::Finding&) {
    return {"algorithm:algo=auto"};
}

/// The step after a change, ns; nothing where it cannot be made.
std::optional<double> stepAfter(const job::Analysis& analysis, const char* change) {
    try {
        replay::TaskGraph graph = analysis.replay.graph;
        edits::EditEffect effect;
        edits::parseEdit(change)->apply(graph, analysis, effect);
        return analysis.replay.stepNs(graph, replay::simulate(graph));
    } catch (const edits::EditError&) {
        return std::nullopt;
    }
}

/// Where whole layers are too coarse, parts of them: an embedding or a head is moved, too, and of a few heavy layers
/// more than a finding's worth would stay behind.
Changes movedLayers(const job::Analysis& analysis, const job::Finding&) {
    const std::optional<double> whole = stepAfter(analysis, "layers"), parts = stepAfter(analysis, "layers:parts=yes");
    const bool tooCoarse = !whole || (parts && *whole - *parts > CommonThresholds::kFloorShare * analysis.stepNs);
    return {tooCoarse ? "layers:parts=yes" : "layers"};
}

Changes instantMessages(const job::Analysis& analysis, const job::Finding&) {
    Changes changes;
    for (const auto& [id, role] : analysis.layout.roles)
        if (role == facts::CommRole::pipeline) changes.push_back(fmt::format("speed:factor=inf,communicator={}", id));
    return changes;
}

Changes healthyLinks(const job::Analysis&, const job::Finding& f) {
    const std::optional<double> slowness = number(f, "slowness");
    return slowness && *slowness > 1 ? Changes{fmt::format("speed:factor={:.4g},links=rank,ranks={},limit=peak",
                                                           *slowness, listText(f.ranks))}
                                     : Changes();
}

constexpr double kHalf =
    0.5;  // 16 bit instead of 32, every second reduction: each fix for too many bytes leaves half of them or less

/// So many bytes less that the rest hides, and half of them at least: its transfers without the part that the finding
/// says is too much.
Changes fewerBytes(const job::Analysis& analysis, const job::Finding& f) {
    const replay::TaskGraph& graph = analysis.replay.graph;
    if (!f.communicator || !f.savingNsPerStep || analysis.replay.steps.empty()) return {};
    const auto group = analysis.facts.communicators.find(*f.communicator);
    if (group == analysis.facts.communicators.end()) return {};
    const facts::CommRole role = analysis.layout.role(*f.communicator);
    std::map<int64_t, double> transferNs;  // by communicator like it, of a member, all steps
    for (const replay::Exchange& exchange : graph.exchanges) {
        const auto other = analysis.facts.communicators.find(exchange.communicatorId);
        if (exchange.join == replay::kNoTask || other == analysis.facts.communicators.end() ||
            other->second.size != group->second.size || analysis.layout.role(exchange.communicatorId) != role)
            continue;
        if (std::find(analysis.replay.steps.begin(), analysis.replay.steps.end(), exchange.step) ==
            analysis.replay.steps.end())
            continue;
        transferNs[exchange.communicatorId] +=
            static_cast<double>(graph.durationNs[graph.membersOf(exchange).front().transfer]);
    }
    Changes changes;
    for (const auto& [id, ns] : transferNs) {
        const double tooMuch = *f.savingNsPerStep * static_cast<double>(analysis.replay.steps.size());
        if (ns > 0)
            changes.push_back(
                fmt::format("bytes:factor={:.3g},communicator={}", std::clamp(1 - tooMuch / ns, 0.01, kHalf), id));
    }
    return changes;
}

Changes placedInside(const job::Analysis&, const job::Finding& f) {
    return f.communicator ? Changes{fmt::format("place:communicator={}", *f.communicator)} : Changes();
}

struct Repair {
    std::string_view id;
    Changes (*changes)(const job::Analysis& analysis, const job::Finding& finding);
};

constexpr std::array kRepairs{
    Repair{"RS101", enoughMicroBatches},
    Repair{"RS102", movedLayers},
    Repair{"RS103", instantMessages},
    Repair{"RS201", overlapped},
    Repair{"RS202", merged},
    Repair{"RS203", fewerBytes},
    Repair{"RS204", healthyLinks},
    Repair{"RS205", chosenAlgorithm},
    Repair{"RS206", reducedOnce},
    Repair{"RS207", placedInside},
    Repair{"RS208", healthyLinks},
    Repair{"RS209", noContention},
    Repair{"RS210", sixteenBit},
    Repair{"RS301", balanced},
    Repair{"RS302", balanced},
    Repair{"RS303", steady},
    Repair{"RS304", evenWork},
    Repair{"RS401", graphs},
    Repair{"RS402", noSynchronisation},
    Repair{"RS403", noInputStall},
    Repair{"RS404", noAllocator},
    Repair{"RS405", noPageable},
    Repair{"RS406", noPauses},
};

}  // namespace

std::vector<std::string> changesFor(const job::Analysis& analysis, const job::Finding& finding) {
    for (const Repair& repair : kRepairs)
        if (repair.id == finding.id) return repair.changes(analysis, finding);
    return {};
}

}  // namespace rankscope::diagnose
