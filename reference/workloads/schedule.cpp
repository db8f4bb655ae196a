// SPDX-License-Identifier: Apache-2.0
#include "reference/workloads/schedule.h"

#include <algorithm>

namespace rankscope::reference {

namespace {

class Planner {
  public:
    Planner(int stages, int stage) : m_first(stage == 0), m_last(stage + 1 == stages) {}

    void forward(int micro) { m_actions.push_back({PipelineAction::Type::forward, micro, {}}); }
    void backward(int micro) { m_actions.push_back({PipelineAction::Type::backward, micro, {}}); }

    void transfer(Transfer transfer) {
        if (m_first) transfer.receiveActivation = transfer.sendGradient = std::nullopt;
        if (m_last) transfer.sendActivation = transfer.receiveGradient = std::nullopt;
        if (transfer.sends() || transfer.receives()) m_actions.push_back({PipelineAction::Type::transfer, 0, transfer});
    }
    void receiveActivation(int micro) { transfer({.receiveActivation = micro}); }
    void sendActivation(int micro) { transfer({.sendActivation = micro}); }
    void receiveGradient(int micro) { transfer({.receiveGradient = micro}); }
    void sendGradient(int micro) { transfer({.sendGradient = micro}); }

    std::vector<PipelineAction> take() { return std::move(m_actions); }

  private:
    bool m_first;
    bool m_last;
    std::vector<PipelineAction> m_actions;
};

std::vector<PipelineAction> planGpipe(int stages, int stage, int microBatches) {
    Planner plan(stages, stage);
    for (int micro = 0; micro < microBatches; ++micro) {
        plan.receiveActivation(micro);
        plan.forward(micro);
        plan.sendActivation(micro);
    }
    for (int micro = 0; micro < microBatches; ++micro) {
        plan.receiveGradient(micro);
        plan.backward(micro);
        plan.sendGradient(micro);
    }
    return plan.take();
}

std::vector<PipelineAction> planOneForwardOneBackward(int stages, int stage, int microBatches) {
    Planner plan(stages, stage);
    const int warmUp = std::min(stages - stage - 1, microBatches);
    const int steady = microBatches - warmUp;
    for (int micro = 0; micro < warmUp; ++micro) {
        plan.receiveActivation(micro);
        plan.forward(micro);
        plan.sendActivation(micro);
    }
    if (steady > 0) plan.receiveActivation(warmUp);
    for (int i = 0; i < steady; ++i) {
        plan.forward(warmUp + i);
        plan.transfer({.sendActivation = warmUp + i, .receiveGradient = i});
        plan.backward(i);
        if (i + 1 < steady) plan.transfer({.receiveActivation = warmUp + i + 1, .sendGradient = i});
        else plan.sendGradient(i);
    }
    for (int micro = steady; micro < microBatches; ++micro) {
        plan.receiveGradient(micro);
        plan.backward(micro);
        plan.sendGradient(micro);
    }
    return plan.take();
}

}  // namespace

std::vector<PipelineAction> planPipeline(Schedule schedule, int stages, int stage, int microBatches) {
    return schedule == Schedule::gpipe ? planGpipe(stages, stage, microBatches) : planOneForwardOneBackward(stages, stage, microBatches);
}

}  // namespace rankscope::reference
