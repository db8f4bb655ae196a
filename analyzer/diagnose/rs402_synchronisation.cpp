// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analyzer/diagnose/diagnoses.h"
#include "analyzer/diagnose/host_cost.h"
#include "analyzer/diagnose/missing_input.h"
#include "analyzer/diagnose/repairs.h"
#include "analyzer/facts/statistics.h"

namespace rankscope::diagnose {
inline namespace rs402 {
namespace {

bool isBlocking(const facts::HostStall& stall) {
    return stall.cause == facts::IdleCause::blockingCall && !stall.pageableCopy;
}

/// Calls of one name in host ranges of one name, numbers apart (layer 3, ProfilerStep#7), that waited for the same.
struct Place {
    std::string call, range;
    bool copyToDevice = false;
    double stallNs = 0;
    int stalls = 0;
};

/// Where the worst rank stalls, most costly place first.
std::vector<Place> placesOf(const job::Analysis& analysis, const facts::RankSummary& rank) {
    std::map<std::tuple<std::string, std::string, bool>, Place> places;
    for (const facts::HostStall& stall : rank.hostStalls) {
        if (!isBlocking(stall) || !std::binary_search(analysis.steps.begin(), analysis.steps.end(), stall.step))
            continue;
        const std::string call = nameOr(analysis, stall.callNameId, "a blocking call");
        const std::string range = withoutNumber(nameOr(analysis, stall.rangeNameId, ""));
        Place& place = places[{call, range, stall.copyToDevice}];
        place.call = call;
        place.range = range;
        place.copyToDevice = stall.copyToDevice;
        place.stallNs += static_cast<double>(stall.stallNs);
        ++place.stalls;
    }
    std::vector<Place> sorted;
    for (const auto& [key, place] : places) sorted.push_back(place);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Place& a, const Place& b) { return a.stallNs > b.stallNs; });
    return sorted;
}

std::string placeText(const Place& place) {
    return place.range.empty() ? place.call : fmt::format("{} in range '{}'", place.call, place.range);
}

std::string fixOf(const Place& place) {
    if (place.copyToDevice)
        return fmt::format(
            "let the host go on while it copies to the device: .to(device, non_blocking=True) of tensors in pinned "
            "memory (DataLoader(pin_memory=True)), and no synchronisation behind it; without non_blocking=True each "
            "copy waits in {}",
            placeText(place));
    return fmt::format(
        "take {} out of the step: read values (loss, metrics, .item(), .cpu(), print of a tensor) every so many steps, "
        "or copy them with non_blocking=True into pinned memory and look at them a step later",
        placeText(place));
}

void detectSynchronisationStall(const job::Analysis& analysis, Claims& claims, std::vector<job::Finding>& findings) {
    HostCost cost =
        hostCost(analysis, [](const facts::RankSummary& rank, int step) { return stallSum(rank, step, isBlocking); });
    job::Finding finding;
    finding.id = "RS402";
    if (!describeHostCost(analysis, cost, finding)) return;
    const facts::RankSummary& worst = analysis.ranks[cost.worst()];
    const std::vector<Place> places = placesOf(analysis, worst);
    if (places.empty()) return;
    const double steps = static_cast<double>(analysis.steps.size());
    finding.cause = fmt::format(
        "the device of {} idles behind {}: the host waits for {} to finish, then works before it launches anything",
        ranksText(analysis, finding.ranks), placeText(places[0]),
        places[0].copyToDevice ? "a copy to the device" : "the device");
    for (size_t i = 0; i < places.size() && i < 3; ++i) {
        const Place& place = places[i];
        finding.evidence.facts.push_back(
            fmt::format("{}{}: {:.1f} times per step, the device idles {:.3f} ms behind each (rank {})",
                        placeText(place), place.copyToDevice ? ", waiting for a copy to the device" : "",
                        place.stalls / steps, place.stallNs / place.stalls / 1e6, worst.rank));
    }
    finding.evidence.numbers.emplace_back("stalls_per_step", places[0].stalls / steps);
    finding.evidence.numbers.emplace_back("stall_ns_per_step", facts::median(cost.stallNs[cost.worst()]));
    for (const facts::HostStall& stall : longestStalls(analysis, cost, finding, isBlocking))
        if (finding.evidence.rows.size() < 5 && stall.callId != 0)
            finding.evidence.rows.push_back(
                {"api_call", stall.callId, worst.rank,
                 fmt::format("the device idles {:.3f} ms behind it", static_cast<double>(stall.stallNs) / 1e6)});
    finding.fix = {
        fixOf(places[0]),
        "where the program must wait, do the host work in front of the call: the device still has work then",
    };
    claimHostCost(analysis, cost, finding, claims);
    findings.push_back(std::move(finding));
}

std::string missingForSynchronisationStall(const job::Analysis& analysis) {
    return withoutHostCalls(analysis);
}

Changes noSynchronisation(const job::Analysis&, const job::Finding& f) {
    return noStalls("sync", f);
}

}  // namespace

const Diagnosis kSynchronisation{
    .id = "RS402",
    .title = "synchronisation stall",
    .definition =
        "The device idles behind a call that made the host wait for it: cudaStreamSynchronize, cudaDeviceSynchronize, "
        "cudaEventSynchronize, a copy that blocks (.item(), .cpu(), .to(device)). The time the host spends inside the "
        "call costs nothing while the device works; what counts begins when the device has run dry and ends when the "
        "first operation submitted after the call starts.",
    .falsePositives =
        "Reading the loss once per step costs a launch and stays under the floor. A wait for the next batch in front "
        "of the step is RS403, an allocation RS404, a copy from pageable memory RS405, also when a synchronisation "
        "emptied the queue before.",
    .fix =
        "Read values every so many steps, or asynchronously and a step later; copy inputs from pinned memory with "
        "non_blocking=True; do host work before the call that waits, not behind it.",
    .hint = "Blank behind a framed call: the host waits for the GPU, and then the GPU for the host's next launch.",
    .detect = detectSynchronisationStall,
    .missing = missingForSynchronisationStall,
    .repair = noSynchronisation,
};

}  // namespace rs402
}  // namespace rankscope::diagnose
