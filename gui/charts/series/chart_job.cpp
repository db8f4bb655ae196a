// SPDX-License-Identifier: Apache-2.0
#include "gui/charts/series/chart_job.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyzer/costs/nccl_formulas.h"
#include "collector/store/bounded_json.h"
#include "collector/store/link_spec.h"

namespace rankscope::gui {
namespace {

constexpr int64_t kMostRanks = 1 << 20;  // a communicator that claims more is damage

/// The file may be anybody's: what is no speed is unknown.
std::optional<costs::LinkClass> classIn(const nlohmann::json& peaks, const char* name) {
    const auto link = peaks.find(name);
    if (link == peaks.end() || !link->is_object()) return std::nullopt;
    const auto gbps = link->find("gbps");
    const double rate = gbps != link->end() && gbps->is_number() ? gbps->get<double>() : 0;
    if (!std::isfinite(rate) || rate <= 0 || rate > store::LinkSpec::kMostGbps) return std::nullopt;
    const auto written = link->find("kind");
    costs::LinkClass result{rate, 0, costs::PeakKind::told};
    for (const costs::PeakKind kind :
         {costs::PeakKind::measured, costs::PeakKind::machine, costs::PeakKind::deviceTable, costs::PeakKind::atLeast})
        if (written != link->end() && *written == costs::toText(kind)) result.kind = kind;
    if (const auto medium = link->find("medium"); medium != link->end() && medium->is_string())
        result.medium = costs::mediumOfText(medium->get<std::string>());
    return result;
}

costs::LinkPeaks readLinks(store::TraceReader& reader) {
    const auto stored = store::parseJsonOrNothing(reader.meta("link_peaks", ""));
    costs::LinkPeaks links;
    if (!stored.is_object()) {
        links = costs::parseLinkPeaks(reader.meta("links", ""));
        links.source = "as told when the run was made";
        return links;
    }
    links.intra = classIn(stored, "intra");
    links.inter = classIn(stored, "inter");
    if (const auto text = stored.find("text"); text != stored.end() && text->is_string())
        links.source = text->get<std::string>();
    return links;
}

void readRanks(store::TraceReader& reader, ChartJob& job) {
    store::Statement rows(reader.database(),
                          "SELECT rank, host_id FROM rank WHERE rank BETWEEN 0 AND 1048575 ORDER BY rank");
    while (rows.step()) {
        const auto rank = static_cast<int32_t>(rows.integer(0));
        job.indexOf.emplace(rank, job.ranks.size());
        job.ranks.push_back(rank);
        if (!rows.isNull(1)) job.hostOf.emplace(rank, rows.integer(1));
    }
}

void readMembers(store::TraceReader& reader, ChartJob& job) {
    store::Statement sizes(reader.database(), "SELECT id, n_ranks FROM communicator");
    while (sizes.step())
        job.communicators[sizes.integer(0)].size =
            static_cast<int>(std::clamp<int64_t>(sizes.integer(1), 0, kMostRanks));
    store::Statement rows(reader.database(),
                          "SELECT communicator_id, comm_rank, rank FROM communicator_member WHERE comm_rank BETWEEN 0 "
                          "AND 1048575 ORDER BY 1, 2");
    while (rows.step()) {
        const auto communicator = job.communicators.find(rows.integer(0));
        const int64_t rank = rows.integer(2);
        if (communicator == job.communicators.end() || rank < 0 || rank >= kMostRanks ||
            !job.knows(static_cast<int32_t>(rank)))
            continue;
        auto& members = communicator->second.members;
        // A gap is a member that was not recorded; a gap wider than the job is damage.
        const auto at = static_cast<size_t>(rows.integer(1));
        if (at < members.size() || at > members.size() + job.ranks.size()) continue;
        members.resize(at, -1);
        members.push_back(static_cast<int32_t>(rank));
    }
}

void countNodes(const ChartJob& job, ChartCommunicator& communicator) {
    std::map<int64_t, int> onHost;
    for (const int32_t rank : communicator.members)
        if (const auto host = job.hostOf.find(rank); host != job.hostOf.end()) ++onHost[host->second];
    communicator.size = std::max(communicator.size, static_cast<int>(communicator.members.size()));
    communicator.nodes = std::max<int>(1, static_cast<int>(onHost.size()));
    communicator.smallestNode = communicator.size;
    for (const auto& [host, count] : onHost) communicator.smallestNode = std::min(communicator.smallestNode, count);
}

}  // namespace

bool ChartJob::sameHost(int32_t a, int32_t b) const {
    const auto first = hostOf.find(a), second = hostOf.find(b);
    return first == hostOf.end() || second == hostOf.end() || first->second == second->second;
}

std::optional<double> ChartJob::ceiling(store::Op op, int size, int nodes, int smallestNode) const {
    facts::Communicator group;
    group.size = size;
    group.nodes = nodes;
    group.smallestNode = smallestNode;
    return costs::bestCeiling(links, group, op);
}

ChartJob readChartJob(store::TraceReader& reader) {
    ChartJob job;
    job.links = readLinks(reader);
    readRanks(reader, job);
    readMembers(reader, job);
    for (auto& [id, communicator] : job.communicators) countNodes(job, communicator);
    return job;
}

}  // namespace rankscope::gui
