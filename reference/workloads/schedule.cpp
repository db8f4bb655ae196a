// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/schedule.h"

#include <algorithm>

namespace rankscope::reference {

namespace {

/// A chunk's work on a micro-batch.
struct Unit {
    int chunk;
    int micro;
};

class Planner {
  public:
    Planner(int stages, int stage, int chunks) : m_stages(stages), m_stage(stage), m_chunks(chunks) {}

    void forward(Unit unit) { m_actions.push_back({PipelineAction::Type::forward, unit.chunk, unit.micro, {}}); }
    void backward(Unit unit) { m_actions.push_back({PipelineAction::Type::backward, unit.chunk, unit.micro, {}}); }

    // Parts of the next transfer; nothing where the model begins or ends. Activations come first on both sides, so that
    // two stages that are each other's neighbours in both directions pair the right messages.
    Planner& receiveActivation(Unit unit) {
        return add(!modelBegins(unit), {PipelineMessage::What::activation, false, unit.chunk, unit.micro, previous()});
    }
    Planner& sendActivation(Unit unit) {
        return add(!modelEnds(unit), {PipelineMessage::What::activation, true, unit.chunk, unit.micro, next()});
    }
    Planner& sendGradient(Unit unit) {
        return add(!modelBegins(unit), {PipelineMessage::What::gradient, true, unit.chunk, unit.micro, previous()});
    }
    Planner& receiveGradient(Unit unit) {
        return add(!modelEnds(unit), {PipelineMessage::What::gradient, false, unit.chunk, unit.micro, next()});
    }

    void transfer() {
        if (!m_messages.empty()) m_actions.push_back({PipelineAction::Type::transfer, 0, 0, std::move(m_messages)});
        m_messages.clear();
    }

    std::vector<PipelineAction> take() { return std::move(m_actions); }

  private:
    bool modelBegins(Unit unit) const { return m_stage == 0 && unit.chunk == 0; }
    bool modelEnds(Unit unit) const { return m_stage + 1 == m_stages && unit.chunk + 1 == m_chunks; }
    int previous() const { return (m_stage + m_stages - 1) % m_stages; }
    int next() const { return (m_stage + 1) % m_stages; }

    Planner& add(bool exists, PipelineMessage message) {
        if (exists) m_messages.push_back(message);
        return *this;
    }

    int m_stages;
    int m_stage;
    int m_chunks;
    std::vector<PipelineMessage> m_messages;
    std::vector<PipelineAction> m_actions;
};

std::vector<PipelineAction> planGpipe(int stages, int stage, int microBatches) {
    Planner plan(stages, stage, 1);
    for (int micro = 0; micro < microBatches; ++micro) {
        plan.receiveActivation({0, micro}).transfer();
        plan.forward({0, micro});
        plan.sendActivation({0, micro}).transfer();
    }
    for (int micro = 0; micro < microBatches; ++micro) {
        plan.receiveGradient({0, micro}).transfer();
        plan.backward({0, micro});
        plan.sendGradient({0, micro}).transfer();
    }
    return plan.take();
}

std::vector<PipelineAction> planOneForwardOneBackward(int stages, int stage, int microBatches) {
    Planner plan(stages, stage, 1);
    const int warmUp = std::min(stages - stage - 1, microBatches);
    const int steady = microBatches - warmUp;
    for (int micro = 0; micro < warmUp; ++micro) {
        plan.receiveActivation({0, micro}).transfer();
        plan.forward({0, micro});
        plan.sendActivation({0, micro}).transfer();
    }
    if (steady > 0) plan.receiveActivation({0, warmUp}).transfer();
    for (int i = 0; i < steady; ++i) {
        plan.forward({0, warmUp + i});
        plan.sendActivation({0, warmUp + i}).receiveGradient({0, i}).transfer();
        plan.backward({0, i});
        if (i + 1 < steady) plan.receiveActivation({0, warmUp + i + 1});
        plan.sendGradient({0, i}).transfer();
    }
    for (int micro = steady; micro < microBatches; ++micro) {
        plan.receiveGradient({0, micro}).transfer();
        plan.backward({0, micro});
        plan.sendGradient({0, micro}).transfer();
    }
    return plan.take();
}

/// Narayanan et al. 2021, section 2.2: micro-batches go through each chunk in groups of `stages`; every stage walks the
/// same list of units, each a beat after the stage before it.
class InterleavedPlan {
  public:
    InterleavedPlan(int stages, int stage, int microBatches, int chunks)
        : m_stages(stages), m_chunks(chunks), m_units(microBatches * chunks), m_plan(stages, stage, chunks) {
        const int inFlight = (stages - stage - 1) * 2 + (chunks - 1) * stages;
        m_warmUp = std::min(inFlight, m_units);
    }

    std::vector<PipelineAction> make() {
        warmUp();
        for (int i = 0; i + m_warmUp < m_units; ++i) {
            const int forward = i + m_warmUp;
            m_plan.forward(forwardUnit(forward));
            m_plan.backward(backwardUnit(i));
            if (forward + 1 < m_units) m_plan.receiveActivation(forwardUnit(forward + 1));
            m_plan.sendActivation(forwardUnit(forward))
                .sendGradient(backwardUnit(i))
                .receiveGradient(backwardUnit(i + 1))
                .transfer();
        }
        coolDown();
        return m_plan.take();
    }

  private:
    Unit forwardUnit(int index) const {
        const int round = m_stages * m_chunks;
        return {index % round / m_stages, index / round * m_stages + index % m_stages};
    }
    Unit backwardUnit(int index) const {
        const Unit mirrored = forwardUnit(index);
        return {m_chunks - 1 - mirrored.chunk, mirrored.micro};
    }

    void warmUp() {
        m_plan.receiveActivation(forwardUnit(0)).transfer();
        for (int i = 0; i < m_warmUp; ++i) {
            m_plan.forward(forwardUnit(i));
            if (i + 1 < m_units) m_plan.receiveActivation(forwardUnit(i + 1));
            m_plan.sendActivation(forwardUnit(i));
            if (i + 1 == m_warmUp && m_warmUp < m_units) m_plan.receiveGradient(backwardUnit(0));
            m_plan.transfer();
        }
        if (m_warmUp == m_units) m_plan.receiveGradient(backwardUnit(0)).transfer();
    }

    void coolDown() {
        for (int i = m_units - m_warmUp; i < m_units; ++i) {
            m_plan.backward(backwardUnit(i));
            m_plan.sendGradient(backwardUnit(i));
            if (i + 1 < m_units) m_plan.receiveGradient(backwardUnit(i + 1));
            m_plan.transfer();
        }
    }

    int m_stages;
    int m_chunks;
    int m_units;
    int m_warmUp;
    Planner m_plan;
};

}  // namespace

std::vector<PipelineAction> planPipeline(Schedule schedule, int stages, int stage, int microBatches,
                                         int virtualStages) {
    switch (schedule) {
        case Schedule::gpipe:
            return planGpipe(stages, stage, microBatches);
        case Schedule::oneForwardOneBackward:
            return planOneForwardOneBackward(stages, stage, microBatches);
        case Schedule::interleaved:
            return InterleavedPlan(stages, stage, microBatches, virtualStages).make();
    }
    return {};
}

}  // namespace rankscope::reference
