// SPDX-License-Identifier: Apache-2.0
#include "analyzer/recommend/played_job.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace rankscope::recommend {
namespace {

/// Durations with every transfer scaled; a kernel that carries several collectives takes the mean of their factors by
/// bytes.
std::vector<int64_t> scaledDurations(const replay::TaskGraph& graph, const TransferScale& scale) {
    std::vector<int64_t> durations = graph.durationNs;
    std::map<replay::TaskId, std::pair<double, double>>
        factors;  // of kernels that change: sum of factor x bytes, sum of bytes
    for (const replay::Exchange& exchange : graph.exchanges) {
        if (exchange.message()) continue;
        const double factor =
            scale({exchange.communicatorId, exchange.op, exchange.bytes, {exchange.algorithm, exchange.protocol}});
        const auto weight = static_cast<double>(std::max<int64_t>(1, exchange.bytes));
        for (const replay::ExchangeMember& member : graph.membersOf(exchange)) {
            if (member.transfer == replay::kNoTask) continue;
            auto& sums = factors[member.transfer];
            sums.first += factor * weight;
            sums.second += weight;
        }
    }
    for (const auto& [task, sums] : factors)
        durations[task] = std::llround(static_cast<double>(durations[task]) * sums.first / sums.second);
    return durations;
}

}  // namespace

EditedStep editedStep(const edits::StepSides& before, const edits::StepSides& after) {
    const edits::SideGain gain = edits::gainOf(before, after);
    return {gain.saving.ns, gain.saving.lowNs, gain.saving.highNs, {}, gain.mayDoNothing};
}

PlayedJob::PlayedJob(const job::Analysis& analysis, double noiseNs) : m_analysis(&analysis), m_noiseNs(noiseNs) {
    m_steps = edits::sidesOf(analysis.replay.stepsNs(analysis.replay.graph, analysis.replay.unchanged));
}

std::vector<double> PlayedJob::stepsWith(const edits::ChangedJob& job, const TransferScale& scale) const {
    std::vector<double> result =
        m_analysis->replay.stepsNs(job.graph, replay::simulate(job.graph, scaledDurations(job.graph, scale)));
    for (double& ns : result) ns /= job.effect.tokens;
    return result;
}

std::optional<edits::StepSides> PlayedJob::play(const edits::ChangedJob& job, const TransferChange& transfers) const {
    if (!transfers) return edits::sidesOf(job.stepsNs);
    edits::StepSides sides;
    const auto scales = transfers(messagesOf(*m_analysis, job.graph));
    if (!scales) return std::nullopt;
    sides.expected = stepsWith(job, scales->expected);
    sides.pessimistic = stepsWith(job, scales->pessimistic);
    sides.optimistic = stepsWith(job, scales->optimistic);
    return sides;
}

std::optional<std::vector<double>> PlayedJob::playExpected(const edits::ChangedJob& job,
                                                           const TransferChange& transfers) const {
    if (!transfers) return job.stepsNs;
    const auto scales = transfers(messagesOf(*m_analysis, job.graph));
    if (!scales) return std::nullopt;
    return stepsWith(job, scales->expected);
}

std::optional<edits::ChangedJob> PlayedJob::changed(const JobChange& change, edits::Outlook outlook) const {
    if (change.transfers && m_transfers) return std::nullopt;
    const bool asExpected = outlook == edits::Outlook::expected;
    edits::ChangedJob job = m_job && asExpected ? *m_job : edits::unchangedJob(*m_analysis);
    job.effect.outlook = outlook;
    try {
        if (!asExpected)
            for (const std::string& edit : m_edits) edits::change(job, *edits::parseEdit(edit), *m_analysis);
        for (const std::string& edit : change.edits) edits::change(job, *edits::parseEdit(edit), *m_analysis);
    } catch (const edits::EditError&) {
        return std::nullopt;  // not for this job
    }
    return job;
}

void PlayedJob::addOutlooks(const JobChange& change, const edits::ChangedJob& job, const TransferChange& transfers,
                            edits::StepSides& steps) const {
    const auto stepsWith = [&](edits::Outlook outlook) {
        const auto other = changed(change, outlook);
        const auto played = other ? playExpected(*other, transfers) : std::nullopt;
        if (!played) throw edits::EditError("this outlook cannot be played");
        return *played;
    };
    const replay::ReplayModel& replay = m_analysis->replay;
    edits::addOutlooks(replay.stepsNs(replay.graph, replay.unchanged), job.effect, stepsWith, steps);
}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change) const {
    return with(change, std::nullopt);
}

std::optional<PlayedJob> PlayedJob::with(const JobChange& change, std::optional<double> leastNs) const {
    auto job = changed(change, edits::Outlook::expected);
    if (!job) return std::nullopt;
    PlayedJob next = *this;
    if (change.transfers) next.m_transfers = change.transfers;
    auto steps = play(*job, next.m_transfers);
    if (!steps) return std::nullopt;
    const bool tooLittle = leastNs && edits::typicalSaving(m_steps.expected, steps->expected).ns <= *leastNs;
    if (job->effect.open && !tooLittle) addOutlooks(change, *job, next.m_transfers, *steps);
    next.m_steps = std::move(*steps);
    next.m_edits.insert(next.m_edits.end(), change.edits.begin(), change.edits.end());
    next.m_job = std::make_shared<const edits::ChangedJob>(std::move(*job));
    return next;
}

std::optional<EditedStep> PlayedJob::gainBy(const std::string& edit) const {
    const auto after = with({{edit}, {}}, m_noiseNs);
    if (!after) return std::nullopt;
    EditedStep gain = editedStep(m_steps, after->m_steps);
    const std::vector<std::string> known = m_job ? m_job->effect.assumed : std::vector<std::string>();
    for (const std::string& sentence : after->m_job->effect.assumed)
        if (std::find(known.begin(), known.end(), sentence) == known.end()) gain.assumed.push_back(sentence);
    return gain;
}

std::vector<double> PlayedJob::savedBy(const TransferScale& scale) const {
    std::vector<double> saved = m_steps.expected;
    const std::vector<double> after =
        m_analysis->replay.stepsNs(graph(), replay::simulate(graph(), scaledDurations(graph(), scale)));
    saved.resize(std::min(saved.size(), after.size()));
    for (size_t i = 0; i < saved.size(); ++i) saved[i] -= after[i] / (m_job ? m_job->effect.tokens : 1);
    return saved;
}

MessageList PlayedJob::messages() const {
    return m_job ? messagesOf(*m_analysis, m_job->graph) : messagesOf(*m_analysis);
}

}  // namespace rankscope::recommend
