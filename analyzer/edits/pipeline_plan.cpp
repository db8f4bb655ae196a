// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyzer/edits/pipeline.h"

namespace rankscope::edits {
namespace {

struct Unit {
    int chunk = 0;
    int micro = 0;
};

struct Slot {
    bool isForward = true;
    Unit unit;
};

class Planner {
  public:
    Planner(const PipelineShape& shape, int stage)
        : m_shape(shape),
          m_stage(stage),
          m_chunks(shape.schedule == "interleaved" ? shape.virtualStages : 1),
          m_units(shape.microBatches * m_chunks) {}

    std::vector<PlannedRun> make() {
        if (m_shape.schedule == "interleaved" && m_shape.passByPass)
            interleavedBySlots();
        else if (m_shape.schedule == "interleaved")
            interleaved();
        else
            oneForwardOneBackward();
        return std::move(m_runs);
    }

  private:
    int place(Unit unit) const { return unit.chunk * m_shape.stages + m_stage; }
    bool first(Unit unit) const { return place(unit) == 0; }
    bool last(Unit unit) const { return place(unit) + 1 == m_shape.stages * m_chunks; }
    int next() const { return (m_stage + 1) % m_shape.stages; }
    int previous() const { return (m_stage + m_shape.stages - 1) % m_shape.stages; }

    void forward(Unit unit) { m_runs.back().work.push_back({StepPart::forward, unit.chunk, unit.micro}); }
    void backward(Unit unit) { m_runs.back().work.push_back({StepPart::backward, unit.chunk, unit.micro}); }
    void receiveActivation(Unit unit) {
        if (!first(unit)) m_runs.back().messages.push_back({true, false, unit.micro, place(unit) - 1, previous()});
    }
    void sendActivation(Unit unit) {
        if (!last(unit)) m_runs.back().messages.push_back({true, true, unit.micro, place(unit), next()});
    }
    void receiveGradient(Unit unit) {
        if (!last(unit)) m_runs.back().messages.push_back({false, false, unit.micro, place(unit) + 1, next()});
    }
    void sendGradient(Unit unit) {
        if (!first(unit)) m_runs.back().messages.push_back({false, true, unit.micro, place(unit), previous()});
    }
    void transfer() {
        if (!m_runs.back().messages.empty()) m_runs.emplace_back();
    }

    /// GPipe is ahead by all of them.
    void oneForwardOneBackward() {
        const int all = m_shape.microBatches;
        const int ahead = m_shape.schedule == "gpipe" ? all : std::min(m_shape.stages - m_stage - 1, all);
        const int steady = all - ahead;
        for (int micro = 0; micro < ahead; ++micro) {
            receiveActivation({0, micro});
            transfer();
            forward({0, micro});
            sendActivation({0, micro});
            transfer();
        }
        if (steady > 0) receiveActivation({0, ahead});
        transfer();
        for (int i = 0; i < steady; ++i) {
            forward({0, ahead + i});
            sendActivation({0, ahead + i});
            receiveGradient({0, i});
            transfer();
            backward({0, i});
            if (i + 1 < steady) receiveActivation({0, ahead + i + 1});
            sendGradient({0, i});
            transfer();
        }
        for (int micro = steady; micro < all; ++micro) {
            receiveGradient({0, micro});
            transfer();
            backward({0, micro});
            sendGradient({0, micro});
            transfer();
        }
    }

    /// Groups of as many micro-batches as stages go through one chunk after the other; every stage walks the same list
    /// of units.
    Unit forwardUnit(int index) const {
        const int round = m_shape.stages * m_chunks;
        return {index % round / m_shape.stages, index / round * m_shape.stages + index % m_shape.stages};
    }
    Unit backwardUnit(int index) const {
        const Unit unit = forwardUnit(index);
        return {m_chunks - 1 - unit.chunk, unit.micro};
    }

    /// Forward passes before the first backward one.
    int inFlight() const {
        return std::min((m_shape.stages - m_stage - 1) * 2 + (m_chunks - 1) * m_shape.stages, m_units);
    }

    /// What the stage does in each of the slots that all stages walk through; nothing while others fill or drain.
    std::vector<std::optional<Slot>> slots() const {
        const int ahead = inFlight();
        std::vector<std::optional<Slot>> slots(static_cast<size_t>(m_stage));
        for (int i = 0; i < ahead; ++i) slots.push_back(Slot{true, forwardUnit(i)});
        // The first backward pass begins when the last stage has done the first one.
        slots.resize(static_cast<size_t>(m_chunks * m_shape.stages + 2 * (m_shape.stages - 1 - m_stage) - 1));
        for (int i = 0; i < m_units; ++i) {
            const bool steady = i + ahead < m_units;
            slots.push_back(steady ? std::optional(Slot{true, forwardUnit(i + ahead)}) : std::nullopt);
            slots.push_back(Slot{false, backwardUnit(i)});
        }
        return slots;
    }

    /// Behind each slot a stage sends what it made in it, and receives what its neighbours made for it.
    void interleavedBySlots() {
        std::map<int, std::vector<std::optional<Slot>>> all;
        size_t length = 0;
        for (int stage : {m_stage, previous(), next()})
            length = std::max(length, (all[stage] = Planner(m_shape, stage).slots()).size());
        for (size_t at = 0; at < length; ++at) {
            for (const auto& [stage, slots] : all) {
                if (at >= slots.size() || !slots[at]) continue;
                const auto& [isForward, unit] = *slots[at];
                const Planner sender(m_shape, stage);
                if (stage == m_stage) {
                    isForward ? forward(unit) : backward(unit);
                    isForward ? sendActivation(unit) : sendGradient(unit);
                } else if (isForward ? !sender.last(unit) && sender.next() == m_stage
                                     : !sender.first(unit) && sender.previous() == m_stage) {
                    m_runs.back().messages.push_back({isForward, false, unit.micro, sender.place(unit), stage});
                }
            }
            transfer();
        }
    }

    void interleaved() {
        const int ahead = inFlight();
        receiveActivation(forwardUnit(0));
        transfer();
        for (int i = 0; i < ahead; ++i) {
            forward(forwardUnit(i));
            if (i + 1 < m_units) receiveActivation(forwardUnit(i + 1));
            sendActivation(forwardUnit(i));
            if (i + 1 == ahead && ahead < m_units) receiveGradient(backwardUnit(0));
            transfer();
        }
        if (ahead == m_units) receiveGradient(backwardUnit(0));
        transfer();
        for (int i = 0; i + ahead < m_units; ++i) {
            forward(forwardUnit(i + ahead));
            backward(backwardUnit(i));
            if (i + ahead + 1 < m_units) receiveActivation(forwardUnit(i + ahead + 1));
            sendActivation(forwardUnit(i + ahead));
            sendGradient(backwardUnit(i));
            receiveGradient(backwardUnit(i + 1));
            transfer();
        }
        for (int i = m_units - ahead; i < m_units; ++i) {
            backward(backwardUnit(i));
            sendGradient(backwardUnit(i));
            if (i + 1 < m_units) receiveGradient(backwardUnit(i + 1));
            transfer();
        }
    }

    PipelineShape m_shape;
    int m_stage;
    int m_chunks;
    int m_units;
    std::vector<PlannedRun> m_runs{1};
};

}  // namespace

bool PlannedRun::receives() const {
    return std::ranges::any_of(messages, [](const PipelineMessage& message) { return !message.send; });
}

std::string impossible(const PipelineShape& shape) {
    if (shape.microBatches < 1 || shape.virtualStages < 1)
        return "a pipeline needs at least one micro-batch and one virtual stage";
    if (shape.schedule != "gpipe" && shape.schedule != "1f1b" && shape.schedule != "interleaved")
        return fmt::format("'{}' is no schedule: gpipe, 1f1b or interleaved", shape.schedule);
    if (shape.schedule == "interleaved" && shape.microBatches % shape.stages != 0)
        return fmt::format("interleaving takes micro-batches in multiples of the {} stages, not {}", shape.stages,
                           shape.microBatches);
    if (shape.schedule != "interleaved" && shape.virtualStages > 1)
        return fmt::format("{} has one chunk per stage: virtual stages need schedule=interleaved", shape.schedule);
    if (shape.schedule == "interleaved" && shape.virtualStages < 2)
        return "interleaving needs at least 2 virtual stages";
    return {};
}

std::vector<PlannedRun> planStage(const PipelineShape& shape, int stage) {
    return Planner(shape, stage).make();
}

}  // namespace rankscope::edits
