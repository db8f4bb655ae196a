// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/played_job.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyzer/replay/savings.h"

namespace rankscope::analyzer {
namespace {

/// Durations with every transfer scaled; a kernel that carries several collectives takes the mean of their factors by bytes.
std::vector<int64_t> scaledDurations(const TaskGraph& graph, const TransferScale& scale) {
    std::vector<int64_t> durations = graph.durationNs;
    std::map<TaskId, std::pair<double, double>> factors;  // of kernels that change: sum of factor x bytes, sum of bytes
    for (const Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const double factor = scale({exchange.communicatorId, exchange.op, exchange.bytes, {exchange.algorithm, exchange.protocol}});
        const auto weight = static_cast<double>(std::max<int64_t>(1, exchange.bytes));
        for (const ExchangeMember& member : graph.membersOf(exchange)) {
            if (member.transfer == kNoTask) continue;
            auto& sums = factors[member.transfer];
            sums.first += factor * weight;
            sums.second += weight;
        }
    }
    for (const auto& [task, sums] : factors) durations[task] = std::llround(static_cast<double>(durations[task]) * sums.first / sums.second);
    return durations;
}

/// What the formulas leave of a time, as a share of it: of the 154 sizes of five operations in SuperBench's nccl-tests tables of eight A100, 93 % lie within 5 % of the pieces
/// alpha + beta x bytes through them (transfer_cost.cpp).
constexpr double kFormulaError = 0.05;

double asTheyAre(const MessageKey&) { return 1; }

void widen(EditedStep& gain, const std::vector<double>& before, const std::vector<double>& after) {
    const ReplayedSaving typical = typicalSaving(before, after);
    double mean = 0;
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) mean += before[i] - after[i];
    mean /= static_cast<double>(std::max<size_t>(1, std::min(before.size(), after.size())));
    gain.lowNs = std::min({gain.lowNs, typical.lowNs, mean});
    gain.highNs = std::max({gain.highNs, typical.highNs, mean});
}

}  // namespace

EditedStep gainOf(const StepSides& before, const StepSides& after) {
    const ReplayedSaving expected = typicalSaving(before.expected, after.expected);
    EditedStep gain{expected.ns, expected.lowNs, expected.highNs, {}};
    widen(gain, before.expected, after.expected);
    widen(gain, before.pessimistic, after.pessimistic);
    widen(gain, before.optimistic, after.optimistic);
    return gain;
}

PlayedJob::PlayedJob(const Analysis& analysis) : m_analysis(&analysis) {
    m_steps.expected = analysis.replay.stepsNs(analysis.replay.graph, analysis.replay.unchanged);
    m_steps.pessimistic = m_steps.optimistic = m_steps.expected;
    auto recorded = std::make_shared<Sizes>();
    for (const Exchange& exchange : analysis.replay.graph.exchanges) recorded->insert({exchange.communicatorId, exchange.op, exchange.bytes});
    m_recorded = std::move(recorded);
}

std::optional<StepSides> PlayedJob::play(const ChangedJob& job, const TransferChange& transfers, bool withEnds) const {
    TransferScales scales{asTheyAre, asTheyAre, asTheyAre};
    if (transfers) {
        auto chosen = transfers(messagesOf(*m_analysis, job.graph));
        if (!chosen) return std::nullopt;
        scales = std::move(*chosen);
    }
    const auto steps = [&](const TransferScale& scale) {
        std::vector<double> result = m_analysis->replay.stepsNs(job.graph, simulate(job.graph, scaledDurations(job.graph, scale)));
        for (double& ns : result) ns /= job.effect.tokens;
        return result;
    };
    const bool resized = std::any_of(job.graph.exchanges.begin(), job.graph.exchanges.end(), [&](const Exchange& exchange) {
        return exchange.bytes > 0 && !exchange.message() && m_recorded->count({exchange.communicatorId, exchange.op, exchange.bytes}) == 0;
    });
    StepSides sides;
    sides.expected = transfers ? steps(scales.expected) : job.stepsNs;
    if (!withEnds || (!transfers && !resized)) {
        sides.pessimistic = sides.optimistic = sides.expected;
        return sides;
    }
    const auto end = [&](const TransferScale& scale, double factor) {
        return steps([&, factor](const MessageKey& key) { return scale(key) * (m_recorded->count({key.communicatorId, key.op, key.bytes}) == 0 ? factor : 1); });
    };
    sides.pessimistic = end(scales.pessimistic, 1 + kFormulaError);
    sides.optimistic = end(scales.optimistic, 1 / (1 + kFormulaError));
    return sides;
}

std::optional<ChangedJob> PlayedJob::changed(const JobChange& change, Outlook outlook) const {
    if (change.transfers && m_transfers) return std::nullopt;
    ChangedJob job = m_job ? *m_job : unchangedJob(*m_analysis);
    job.effect.outlook = outlook;
    try {
        for (const std::string& edit : change.edits) analyzer::change(job, *parseEdit(edit), *m_analysis);
    } catch (const EditError&) {
        return std::nullopt;  // not for this job
    }
    return job;
}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change) const {
    auto job = changed(change);
    if (!job) return std::nullopt;
    PlayedJob next = *this;
    if (change.transfers) next.m_transfers = change.transfers;
    auto steps = play(*job, next.m_transfers, true);
    if (!steps) return std::nullopt;
    next.m_steps = std::move(*steps);
    next.m_job = std::make_shared<const ChangedJob>(std::move(*job));
    return next;
}

void PlayedJob::widenByOutlooks(EditedStep& gain, const StepSides& before, const std::string& edit, const ChangedJob& job) const {
    if (!job.effect.open) return;
    for (Outlook outlook : {Outlook::dear, Outlook::cheap, Outlook::coarse, Outlook::fine}) {
        const auto other = changed({{edit}, {}}, outlook);
        const auto steps = other ? play(*other, m_transfers, false) : std::nullopt;
        if (!steps) continue;
        if (steps->expected == before.expected) {
            gain.mayDoNothing = true;
            continue;
        }
        widen(gain, before.expected, steps->expected);
    }
    const double chance = chanceNs(before.expected, job.effect);
    gain.lowNs -= chance;
    gain.highNs += chance;
    if (gain.mayDoNothing) {
        gain.lowNs = std::min(gain.lowNs, 0.0);
        gain.highNs = std::max(gain.highNs, 0.0);
    }
}

std::optional<EditedStep> PlayedJob::gainBy(const std::string& edit) const {
    const auto job = changed({{edit}, {}});
    if (!job) return std::nullopt;
    const auto steps = play(*job, m_transfers, false);
    if (!steps) return std::nullopt;
    const StepSides before{m_steps.expected, m_steps.expected, m_steps.expected};
    EditedStep gain = gainOf(before, *steps);
    widenByOutlooks(gain, before, edit, *job);
    const std::vector<std::string> known = m_job ? m_job->effect.assumed : std::vector<std::string>();
    for (const std::string& sentence : job->effect.assumed)
        if (std::find(known.begin(), known.end(), sentence) == known.end()) gain.assumed.push_back(sentence);
    return gain;
}

std::vector<double> PlayedJob::savedBy(const TransferScale& scale) const {
    std::vector<double> saved = m_steps.expected;
    const std::vector<double> after = m_analysis->replay.stepsNs(graph(), simulate(graph(), scaledDurations(graph(), scale)));
    saved.resize(std::min(saved.size(), after.size()));
    for (size_t i = 0; i < saved.size(); ++i) saved[i] -= after[i] / (m_job ? m_job->effect.tokens : 1);
    return saved;
}

MessageList PlayedJob::messages() const { return m_job ? messagesOf(*m_analysis, m_job->graph) : messagesOf(*m_analysis); }

}  // namespace rankscope::analyzer
